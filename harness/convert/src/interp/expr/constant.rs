//! Computes constants: formats, and comprehensions over what is written out.

use crate::interp::{Interp, Made, Stop};
use crate::{
    python::{Comprehension, Expr},
    value::{Value, cond::Cond, float_text},
};

/// Items that a comprehension or a loop may have.
pub(crate) const MOST_ITEMS: usize = 512;

impl Interp<'_> {
    /// A value in a format; only constants have one.
    pub(crate) fn formatted(&mut self, value: &Value, repr: bool, spec: &str, line: u32) -> Made {
        if let Value::Choice(choice) = value
            && (repr || !spec.is_empty())
        {
            let choice = choice.clone();
            return choice.map(|value| self.formatted(value, repr, spec, line));
        }
        if value.is_constant() {
            let value = if repr { Value::Str(value.repr().unwrap_or_default()) } else { value.clone() };
            if spec.is_empty() {
                return Ok(Value::Str(value.shown().unwrap_or_default()));
            }
            return with_spec(&value, spec)
                .map(Value::Str)
                .ok_or_else(|| Stop::new(line, format!("the format `{spec}` is not known here")));
        }
        // Of a computed integer `d`, of a computed text `s` say nothing.
        if repr || !matches!(spec, "" | "s" | "d") {
            return Err(Stop::new(line, "a computed value has no format in Muster")
                .instead("write the text for each value of the parameter"));
        }
        Ok(value.clone())
    }

    /// `'%s' % value`
    pub(crate) fn percent(&mut self, text: &str, value: &Value, line: u32) -> Made {
        let args: &[Value] = match value {
            Value::Tuple(items) => items,
            other => std::slice::from_ref(other),
        };
        let (mut values, mut rest, mut args) = (Vec::new(), text, args.iter());
        while let Some((before, from)) = rest.split_once('%') {
            values.push(Value::text(before));
            let end = from.find(|letter: char| letter.is_ascii_alphabetic() || letter == '%');
            let Some(end) = end else { return Err(Stop::new(line, "this format cannot be followed")) };
            let (spec, after) = from.split_at(end + 1);
            rest = after;
            if spec == "%" {
                values.push(Value::text("%"));
                continue;
            }
            let value = args.next().ok_or_else(|| Stop::new(line, "the format wants more values than there are"))?;
            let spec = if spec == "s" { "" } else { spec };
            values.push(self.formatted(value, false, spec, line)?);
        }
        values.push(Value::text(rest));
        self.concatenated(&values, line)
    }

    /// A comprehension over constants; over anything else it would be a loop.
    pub(crate) fn comprehension(&mut self, of: &Comprehension, line: u32) -> Made {
        let outer = self.state.locals.clone();
        let mut made = Vec::new();
        let result = self.clauses(of, &of.clauses, &mut made, line);
        self.state.locals = outer;
        result?;
        if of.kind != "dict" {
            return Ok(Value::List(made.into_iter().map(|(_, value)| value).collect()));
        }
        let mut dict: Vec<(Value, Value)> = Vec::new();
        for (key, value) in made {
            match dict.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => *known = value,
                None => dict.push((key, value)),
            }
        }
        Ok(Value::Dict(dict))
    }

    fn clauses(
        &mut self,
        of: &Comprehension,
        clauses: &[(Expr, Expr, Vec<Expr>)],
        made: &mut Vec<(Value, Value)>,
        line: u32,
    ) -> Made<()> {
        let Some(((target, iter, ifs), rest)) = clauses.split_first() else {
            let key = of.key.as_ref().map(|key| self.expr(key)).transpose()?.unwrap_or(Value::None);
            made.push((key, self.expr(&of.item)?));
            return if made.len() > MOST_ITEMS { Err(Stop::new(line, "this makes too many items")) } else { Ok(()) };
        };
        for item in self.iterable(iter)? {
            self.step(line)?;
            self.assign(target, &item)?;
            let mut is_wanted = true;
            for test in ifs {
                match self.cond(test)? {
                    Cond::Always(holds) => is_wanted &= holds,
                    _ => return Err(Stop::new(line, "which items this has is known only when it runs")),
                }
            }
            if is_wanted {
                self.clauses(of, rest, made, line)?;
            }
        }
        Ok(())
    }

    /// The items of what is written out.
    pub(crate) fn iterable(&mut self, iter: &Expr) -> Made<Vec<Value>> {
        let items = match self.expr(iter)? {
            Value::Dict(entries) => entries.into_iter().map(|(key, _)| key).collect(),
            Value::Str(text) => text.chars().map(|letter| Value::Str(letter.to_string())).collect(),
            list @ (Value::List(_) | Value::Tuple(_)) if list.items().is_some() => list.items().unwrap_or_default().to_vec(),
            _ => return Err(Stop::new(iter.line, "a loop over what is known only when it runs has no counterpart")),
        };
        if items.len() > MOST_ITEMS { Err(Stop::new(iter.line, "the loop is too long to be written out")) } else { Ok(items) }
    }
}

/// `[[fill]align][sign][0][width][.digits][type]` of a constant.
fn with_spec(value: &Value, spec: &str) -> Option<String> {
    let letters: Vec<char> = spec.chars().collect();
    let is_align = |letter: Option<&char>| matches!(letter, Some('<' | '>' | '^'));
    let (fill, align, mut at) = if is_align(letters.get(1)) {
        (letters[0], Some(letters[1]), 2)
    } else if is_align(letters.first()) {
        (' ', Some(letters[0]), 1)
    } else {
        (' ', None, 0)
    };
    let zero = letters.get(at) == Some(&'0');
    let digits = |at: &mut usize| {
        let start = *at;
        while letters.get(*at).is_some_and(char::is_ascii_digit) {
            *at += 1;
        }
        letters[start..*at].iter().collect::<String>().parse::<usize>().ok()
    };
    let width = digits(&mut at).unwrap_or(0).min(256);
    let precision = if letters.get(at) == Some(&'.') {
        at += 1;
        Some(digits(&mut at)?.min(64))
    } else {
        None
    };
    let kind: String = letters[at..].iter().collect();
    let number = crate::interp::expr::operators::number(value);
    let text = match (kind.as_str(), value) {
        ("" | "d", Value::Int(value)) => value.to_string(),
        ("x", Value::Int(value)) => format!("{value:x}"),
        ("s" | "", Value::Str(text)) => text.chars().take(precision.unwrap_or(usize::MAX)).collect(),
        ("f", _) => format!("{:.*}", precision.unwrap_or(6), number?),
        ("", Value::Float(value)) if precision.is_none() => float_text(*value),
        _ => return None,
    };
    let missing = width.saturating_sub(text.chars().count());
    let is_number = number.is_some();
    Some(match align {
        None if zero && is_number => {
            let (sign, rest) = text.strip_prefix('-').map_or(("", &*text), |rest| ("-", rest));
            format!("{sign}{}{rest}", "0".repeat(missing))
        }
        Some('<') => text + &fill.to_string().repeat(missing),
        Some('^') => {
            let left = missing / 2;
            format!("{}{text}{}", fill.to_string().repeat(left), fill.to_string().repeat(missing - left))
        }
        Some(_) => fill.to_string().repeat(missing) + &text,
        None if is_number => " ".repeat(missing) + &text,
        None => text + &" ".repeat(missing),
    })
}
