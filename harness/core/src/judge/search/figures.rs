//! Figures read from matches, reduced as they come: one row, or one a key, or one a section.

use super::each_capture;
use crate::{
    judge::words::quote,
    rules::perf::{Pick, ROWS_LIMIT, Reduce, VALUES_LIMIT, parse_number},
    stats::median_in_place,
};
use muster_text::{
    pattern::{Groups, Haystack, Pattern},
    unit::Conversion,
};
use regex::bytes::CaptureLocations;
use std::collections::{HashMap, HashSet, VecDeque};

/// The longest key of a table's row, in bytes.
const KEY_LIMIT: usize = 200;

/// Why there is no figure.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::judge) enum MissingValue {
    /// Nothing was found, or too little for the item that is wanted.
    NotFound,
    /// A match is not a number; the fragment says why.
    Unusable(Box<str>),
}

type Reading = Result<f64, MissingValue>;

#[derive(Debug, PartialEq)]
pub(in crate::judge) struct Row {
    /// The place of the section, for `per: section`.
    pub section: Option<usize>,
    /// The key of the row, for a table.
    pub key: Option<String>,
    pub value: Reading,
}

/// A variable's figures so far.
#[derive(Debug)]
pub(in crate::judge) struct Figures {
    groups: Groups,
    /// The last unit read from the text, with the way to the variable's: nearly always the next one too.
    unit: String,
    last_unit: Option<(Vec<u8>, Option<Conversion>)>,
    pick: Pick,
    per_section: bool,
    /// Whether the last match alone is wanted and always has its groups: then the others need not be taken apart.
    last_alone: bool,
    section: usize,
    rows: Vec<OpenRow>,
    /// Where in `rows` a key is, the empty one if there is no table; for `per: section`, of the current section.
    index: HashMap<Vec<u8>, usize>,
    kept: usize,
    fault: Option<String>,
}

/// A row whose values are still being read.
#[derive(Debug)]
struct OpenRow {
    section: Option<usize>,
    key: Vec<u8>,
    values: Reduction,
}

/// Reduces the values of one row as they are read.
#[derive(Debug)]
enum Reduction {
    Nth {
        left: i64,
        value: Option<Reading>,
    },
    FromEnd {
        back: usize,
        last: VecDeque<Reading>,
    },
    Reduced {
        how: Reduce,
        count: u64,
        value: f64,
    },
    Median(Vec<f64>),
    /// A match that counts is not a number.
    Unusable(MissingValue),
}

impl Figures {
    pub(in crate::judge) fn new(pattern: &Pattern, groups: Groups, unit: &str, pick: Pick, per_section: bool) -> Self {
        let regex = pattern.regex();
        let last = matches!(pick, Pick::Item(-1) | Pick::Reduce(Reduce::Last));
        Self {
            groups,
            unit: unit.to_owned(),
            last_unit: None,
            pick,
            per_section,
            last_alone: last && groups.key.is_none() && regex.static_captures_len() == Some(regex.captures_len()),
            section: 0,
            rows: Vec::new(),
            index: HashMap::new(),
            kept: 0,
            fault: None,
        }
    }

    pub(in crate::judge) fn enter(&mut self, section: usize) {
        self.section = section;
        if self.per_section {
            self.index.clear();
        }
    }

    pub(in crate::judge) fn is_done(&self) -> bool {
        let only_row = || self.index.get(&[][..]).is_some_and(|row| self.rows[*row].values.is_done());
        self.fault.is_some() || (self.groups.key.is_none() && only_row())
    }

    pub(in crate::judge) fn feed(&mut self, pattern: &Pattern, text: Haystack<'_>) {
        if self.last_alone {
            return self.add_last(pattern, text);
        }
        each_capture(pattern, text, |groups| {
            self.add_match(groups, text);
            !self.is_done()
        });
    }

    fn add_last(&mut self, pattern: &Pattern, text: Haystack<'_>) {
        let last = pattern.find_iter(text).last().map(|found| found.start());
        let mut groups = pattern.locations(text);
        if let Some(start) = last
            && pattern.captures_read_at(&mut groups, text, start).is_some()
        {
            self.add_match(&groups, text);
        }
    }

    /// A match in which the value's group has no part (an alternative was taken) is none.
    fn add_match(&mut self, groups: &CaptureLocations, text: Haystack<'_>) {
        let group = |number: usize| groups.get(number).map(|(start, end)| text.between(start, end));
        let Some(value) = group(self.groups.value) else { return };
        let (key, unit) = (self.groups.key.and_then(group), self.groups.unit.and_then(group));
        let reading = self.read(&value, unit.as_deref());
        self.add(key.as_deref().map_or(&[][..], <[u8]>::trim_ascii), reading);
    }

    fn read(&mut self, value: &[u8], unit: Option<&[u8]>) -> Reading {
        if self.pick == Pick::Reduce(Reduce::Count) {
            return Ok(0.0);
        }
        let unusable = |why: String| MissingValue::Unusable(why.into());
        let number = parse_number(value).ok_or_else(|| unusable(format!("{} is not a number", quote(value))))?;
        let Some(unit) = unit else { return Ok(number) };
        if self.last_unit.as_ref().is_none_or(|(known, _)| known != unit) {
            let way = std::str::from_utf8(unit).ok().and_then(|from| Conversion::between(from, &self.unit));
            self.last_unit = Some((unit.to_vec(), way));
        }
        let way = self.last_unit.as_ref().and_then(|(_, way)| *way);
        let way = way.ok_or_else(|| unusable(format!("no conversion from {} in the text to `{}`", quote(unit), self.unit)))?;
        Ok(way.apply(number))
    }

    fn add(&mut self, key: &[u8], reading: Reading) {
        let Some(row) = self.row(key) else { return };
        self.kept += self.rows[row].values.add(reading);
        if self.kept > VALUES_LIMIT {
            self.fault = Some(format!("more than {VALUES_LIMIT} values: narrow the pattern, or reduce them to something else"));
        }
    }

    /// The row of a key, created if it is new.
    fn row(&mut self, key: &[u8]) -> Option<usize> {
        if let Some(row) = self.index.get(key) {
            return Some(*row);
        }
        if key.len() > KEY_LIMIT {
            self.fault = Some(format!("a key of the table is longer than {KEY_LIMIT} bytes"));
        } else if self.rows.len() == ROWS_LIMIT {
            self.fault = Some(format!("the table has more than {ROWS_LIMIT} rows"));
        }
        if self.fault.is_some() {
            return None;
        }
        let section = self.per_section.then_some(self.section);
        self.rows.push(OpenRow { section, key: key.to_vec(), values: Reduction::new(self.pick) });
        self.index.insert(key.to_vec(), self.rows.len() - 1);
        Some(self.rows.len() - 1)
    }

    /// The rows in the order in which they were first met, at least one for the stdout or, `per: section`, for each of
    /// its `sections`. Sums and counts of none are 0. An error is about the variable as a whole.
    pub(in crate::judge) fn finish(self, sections: usize) -> Result<Vec<Row>, String> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let of_none = || if self.groups.key.is_some() { Err(MissingValue::NotFound) } else { Reduction::new(self.pick).finish() };
        let places: Vec<_> = if self.per_section { (0..sections).map(Some).collect() } else { vec![None] };
        let mut rows: Vec<_> = self.rows.into_iter().map(OpenRow::finish).collect();
        let met: HashSet<_> = rows.iter().map(|row| row.section).collect();
        let missing = places.into_iter().filter(|place| !met.contains(place));
        rows.extend(missing.map(|section| Row { section, key: None, value: of_none() }));
        rows.sort_by_key(|row| row.section);
        Ok(rows)
    }
}

impl OpenRow {
    fn finish(self) -> Row {
        let key = (!self.key.is_empty()).then(|| String::from_utf8_lossy(&self.key).into_owned());
        Row { section: self.section, key, value: self.values.finish() }
    }
}

impl Reduction {
    fn new(pick: Pick) -> Self {
        match pick {
            Pick::Item(item) if item >= 0 => Self::Nth { left: item, value: None },
            Pick::Item(item) => {
                let back = usize::try_from(item.unsigned_abs()).unwrap_or(usize::MAX).min(VALUES_LIMIT + 1);
                Self::FromEnd { back, last: VecDeque::new() }
            }
            Pick::Reduce(Reduce::First) => Self::Nth { left: 0, value: None },
            Pick::Reduce(Reduce::Last) => Self::FromEnd { back: 1, last: VecDeque::new() },
            Pick::Reduce(Reduce::Median) => Self::Median(Vec::new()),
            Pick::Reduce(how) => Self::Reduced { how, count: 0, value: 0.0 },
        }
    }

    fn is_done(&self) -> bool {
        matches!(self, Self::Nth { value: Some(_), .. } | Self::Unusable(_))
    }

    /// Says how many values more than before are kept in memory.
    fn add(&mut self, reading: Reading) -> usize {
        match self {
            // Only what is picked has to be a number.
            Self::Nth { value: Some(_), .. } | Self::Unusable(_) => 0,
            Self::Nth { left: 0, value } => {
                *value = Some(reading);
                0
            }
            Self::Nth { left, .. } => {
                *left -= 1;
                0
            }
            Self::FromEnd { back, last } => {
                last.push_back(reading);
                if last.len() <= *back {
                    return 1;
                }
                last.pop_front();
                0
            }
            Self::Reduced { .. } | Self::Median(_) => match reading {
                Ok(value) => self.add_number(value),
                Err(missing) => {
                    *self = Self::Unusable(missing);
                    0
                }
            },
        }
    }

    fn add_number(&mut self, number: f64) -> usize {
        match self {
            Self::Median(values) => {
                values.push(number);
                return 1;
            }
            Self::Reduced { how, count, value } => {
                *count += 1;
                *value = match how {
                    Reduce::Min | Reduce::Max if *count == 1 => number,
                    // Unlike `f64::min`, NaN wins: it is a figure that fails.
                    Reduce::Min if value.is_nan() || *value <= number => *value,
                    Reduce::Max if value.is_nan() || *value >= number => *value,
                    Reduce::Min | Reduce::Max => number,
                    _ => *value + number,
                };
            }
            Self::Nth { .. } | Self::FromEnd { .. } | Self::Unusable(_) => {}
        }
        0
    }

    #[expect(clippy::cast_precision_loss, reason = "no log has 2^53 matches")]
    fn finish(self) -> Reading {
        match self {
            Self::Nth { value, .. } => value.unwrap_or(Err(MissingValue::NotFound)),
            Self::FromEnd { back, mut last } if last.len() == back => last.pop_front().unwrap_or(Err(MissingValue::NotFound)),
            Self::Unusable(missing) => Err(missing),
            Self::Median(values) if values.iter().any(|value| value.is_nan()) => Ok(f64::NAN),
            Self::Median(mut values) => median_in_place(&mut values).ok_or(MissingValue::NotFound),
            Self::Reduced { how: Reduce::Count, count, .. } => Ok(count as f64),
            Self::Reduced { how: Reduce::Sum, value, .. } => Ok(value),
            Self::FromEnd { .. } | Self::Reduced { count: 0, .. } => Err(MissingValue::NotFound),
            Self::Reduced { how: Reduce::Mean, count, value } => Ok(value / count as f64),
            Self::Reduced { value, .. } => Ok(value),
        }
    }
}
