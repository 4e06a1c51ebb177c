//! The aggregation of the figures of a group, and the columns of its table.

use super::{SpecError, split};
use std::fmt;

/// The functions of each group, and the columns by which figures are grouped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregation {
    pub calls: Vec<Call>,
    pub group_by: Columns,
}

/// A function of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub function: Function,
    /// `pval` where nothing is said.
    pub column: String,
}

/// A function of the values of a group, in order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    First,
    Last,
    Min,
    Max,
    Mean,
    Median,
    /// The standard deviation of a sample: divided by one less than their number.
    Std,
    Sum,
    Count,
    Percentile(u8),
}

/// What `stats` stands for.
const STATS: [Function; 9] = [
    Function::Min,
    Function::Percentile(1),
    Function::Percentile(5),
    Function::Median,
    Function::Percentile(95),
    Function::Percentile(99),
    Function::Max,
    Function::Mean,
    Function::Std,
];

/// The names of functions, but for percentiles.
const NAMES: [(&str, Function); 9] = [
    ("first", Function::First),
    ("last", Function::Last),
    ("min", Function::Min),
    ("max", Function::Max),
    ("mean", Function::Mean),
    ("median", Function::Median),
    ("std", Function::Std),
    ("sum", Function::Sum),
    ("count", Function::Count),
];

/// Names of columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Columns {
    /// The default columns, and these.
    Extend(Vec<String>),
    Replace(Vec<String>),
}

impl Aggregation {
    /// Reads `median:`, `first,last(pval),p95:+job_nodelist`.
    pub(super) fn parse(text: &str) -> Result<Self, SpecError> {
        let wrong =
            |why: &str| SpecError(format!("`{text}` is not an aggregation: {why}, as in median: or min,max:+job_nodelist"));
        let (calls, group_by) = text.split_once(':').ok_or_else(|| wrong("write a colon behind the functions"))?;
        if calls.trim().is_empty() {
            return Err(wrong("write a function before the colon"));
        }
        let mut all = Vec::new();
        for call in split(calls, ',') {
            all.extend(Call::parse(call.trim())?);
        }
        Ok(Self { calls: all, group_by: Columns::parse(group_by)? })
    }
}

impl Call {
    fn parse(text: &str) -> Result<Vec<Self>, SpecError> {
        let (name, column) = match text.split_once('(') {
            None => (text, "pval"),
            Some((name, rest)) => {
                let column = rest.strip_suffix(')').ok_or_else(|| SpecError(format!("`{text}`: the bracket is not closed")))?;
                (name, is_name(column)?)
            }
        };
        let functions = if name == "stats" { STATS.to_vec() } else { vec![Function::parse(name)?] };
        Ok(functions.into_iter().map(|function| Self { function, column: column.to_owned() }).collect())
    }
}

/// `pval (median)`, as the title of a column.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.column, self.function)
    }
}

impl Function {
    fn parse(name: &str) -> Result<Self, SpecError> {
        let percent = name.strip_prefix('p').filter(|digits| digits.len() == 2).and_then(|digits| digits.parse::<u8>().ok());
        let known = NAMES.iter().find(|(known, _)| *known == name).map(|(_, function)| *function);
        known.or(percent.map(Self::Percentile)).ok_or_else(|| {
            let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
            SpecError(format!("`{name}` is not a function of an aggregation: write {}, stats or p01 to p99", names.join(", ")))
        })
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Percentile(percent) = self {
            return write!(f, "p{percent:02}");
        }
        NAMES.iter().filter(|(_, known)| known == self).try_for_each(|(name, _)| f.write_str(name))
    }
}

impl Columns {
    /// Reads nothing, `+a+b` or `a,b`.
    pub(super) fn parse(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let (rest, separator) = text.strip_prefix('+').map_or((text, ','), |rest| (rest, '+'));
        if text.is_empty() {
            return Ok(Self::Extend(Vec::new()));
        }
        let names = rest.split(separator).map(|name| is_name(name.trim()).map(str::to_owned)).collect::<Result<_, _>>()?;
        Ok(if separator == '+' { Self::Extend(names) } else { Self::Replace(names) })
    }

    /// All of them, each once, where nothing else is said after the default.
    pub fn over(&self, default: &[&str]) -> Vec<String> {
        let mut all: Vec<String> = match self {
            Self::Extend(_) => default.iter().map(|name| (*name).to_owned()).collect(),
            Self::Replace(_) => Vec::new(),
        };
        let (Self::Extend(names) | Self::Replace(names)) = self;
        for name in names {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        all
    }
}

/// A name of a column: letters, digits, `_`, `.` and `-`.
fn is_name(text: &str) -> Result<&str, SpecError> {
    let is_name = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'));
    let wrong = || SpecError(format!("`{text}` is not a column: write +a+b to add columns, or a,b to choose them"));
    is_name.then_some(text).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregations_are_read() {
        let read = |text: &str| {
            let read = Aggregation::parse(text).expect(text);
            let calls: Vec<String> = read.calls.iter().map(ToString::to_string).collect();
            format!("{} | {:?}", calls.join(", "), read.group_by)
        };
        let lines: Vec<String> =
            ["median:", "first,last:+job_nodelist", "p05(pval), max(num_tasks):name,pvar", "stats:", "count:"].map(read).into();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn columns_extend_or_replace_the_default() {
        let over = |text: &str| Columns::parse(text).expect(text).over(&["name", "pval"]).join(" ");
        assert_eq!([over(""), over("+result+pval"), over("pval,user")], ["name pval", "name pval result", "pval user"]);
    }
}
