//! The rules by which a test is judged: sanity, figures, references.

use super::{Level, Making, Reading, Root, Setting, Value, figure, plain, reference_key, references, sanity, settle};

impl Making {
    /// A check whose sanity could not be carried over fails, and says why: it must not pass for want of a question.
    pub(super) fn sanity(&mut self, reading: &mut Reading) {
        if reading.sanity.is_none() && reading.root == Root::CompileOnly {
            return self.put("sanity", Value::List(vec![]));
        }
        let Some(value) = reading.sanity.clone() else {
            if !self.is_base {
                reading.tell_of("sanity_patterns", Level::Defect, "the test has no sanity function, so ReFrame fails it", None);
                self.put("sanity", Value::failing());
            }
            return;
        };
        let made = sanity(&value).and_then(|list| {
            let settled = settle("sanity", &list);
            let base = settled
                .base
                .map(|base| plain(&base, false))
                .transpose()
                .map_err(|_| "what it asserts is known only when it runs")?;
            Ok((base, settled.settings))
        });
        match made {
            Ok((base, settings)) => {
                if let Some(base) = base {
                    self.put("sanity", base);
                }
                self.settings.extend(settings);
                if !self.has("sanity") {
                    self.put("sanity", Value::failing());
                }
            }
            Err(why) => {
                if value != Value::Unknown {
                    reading.tell_of("sanity_patterns", Level::Refused, why, None);
                }
                self.put("sanity", Value::failing());
            }
        }
    }

    /// The figures; gives the units, by name, of those that are carried over.
    pub(super) fn figures(&mut self, reading: &mut Reading) -> Vec<(String, Option<String>)> {
        let mut known = Vec::new();
        let mut variables = Vec::new();
        for (name, value) in reading.figures.clone() {
            let Some(name) = name.as_str().map(str::to_owned) else {
                reading.tell_of("perf_variables", Level::Refused, "a figure whose name is known only when it runs", None);
                continue;
            };
            if value == Value::Unknown {
                continue;
            }
            match figure(&value) {
                Ok(entry) => {
                    let unit = match &entry {
                        Value::Dict(entry) => entry
                            .iter()
                            .find(|(key, _)| key.as_str() == Some("unit"))
                            .map(|(_, unit)| unit.as_str().map(str::to_owned)),
                        _ => None,
                    };
                    known.push((
                        name.clone(),
                        Some(unit.flatten().unwrap_or_default()).filter(|_| matches!(entry, Value::Dict(_))),
                    ));
                    variables.push((Value::Str(name), entry));
                }
                Err(why) => {
                    let place = if reading.interp.lines.contains_key(&name) { &*name } else { "perf_variables" };
                    reading.tell_of(place, Level::Refused, format!("`{name}`: {why}"), None);
                }
            }
        }
        if !variables.is_empty() {
            let settled = settle("perf_variables", &Value::Dict(variables));
            if let Some(base) = settled.base.filter(|base| *base != Value::Dict(vec![])) {
                self.write(reading, "perf_variables", &base, false, None);
            }
            self.settings.extend(settled.settings);
        }
        known
    }

    /// References with the units of their figures: ReFrame warns of another one and goes by the function's.
    pub(super) fn references(&mut self, reading: &mut Reading, units: &[(String, Option<String>)]) {
        let Some(value) = reading.attr("reference").cloned() else { return };
        let (rows, misfits) = references(&value);
        let is_whole = misfits.is_empty();
        for why in misfits {
            reading.tell_of("reference", Level::Refused, why, Some("write what differs as rows of `reference`"));
        }
        // No other branch or scope stands in for one that is lost.
        if !is_whole {
            return;
        }
        let mut kept = Vec::new();
        let mut reported: Vec<String> = Vec::new();
        for mut row in rows {
            let Some((_, unit)) = units.iter().find(|(name, _)| *name == row.variable) else {
                let is_lost = reading.figures.iter().any(|(name, _)| name.as_str() == Some(&*row.variable));
                if self.is_base && !is_lost {
                    kept.push(row);
                } else if !reported.contains(&row.variable) {
                    let (level, why) = if is_lost {
                        (Level::Refused, format!("the figure `{}` is not carried over, and so is its reference", row.variable))
                    } else {
                        (Level::Defect, format!("there is no performance variable `{}` for this reference", row.variable))
                    };
                    reading.tell_of("reference", level, why, None);
                    reported.push(row.variable);
                }
                continue;
            };
            // ReFrame judges nothing by it, as by bounds that are open.
            if row.values[..3].iter().all(|value| *value == Value::None) {
                row.values[0] = Value::Int(0);
            }
            if let Some(unit) = unit {
                let written = row.values.get(3).and_then(Value::as_str).filter(|written| !written.is_empty());
                if let Some(written) = written.filter(|written| written != unit) {
                    let key = format!("{} {written}", row.variable);
                    if !reported.contains(&key) {
                        let why = format!(
                            "the reference of `{}` is in {written}, the figure in {}",
                            row.variable,
                            if unit.is_empty() { "nothing" } else { unit }
                        );
                        reading.tell_of(
                            "reference",
                            Level::Defect,
                            why,
                            Some("ReFrame compares the numbers as they are, and so does the converted check"),
                        );
                        reported.push(key);
                    }
                }
                row.values.truncate(3);
                if !unit.is_empty() {
                    row.values.push(Value::text(&**unit));
                }
            }
            kept.push(row);
        }
        let (base, settings) = reference_key(&kept);
        if let Some(base) = base {
            self.put("reference", base);
        }
        let setting = |(cond, value)| Setting { cond, key: "reference".to_owned(), value };
        self.settings.extend(settings.into_iter().map(setting));
    }
}
