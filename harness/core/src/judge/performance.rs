//! Figures become measurements, and measurements are held against references.

use super::{
    evaluate::Evaluator,
    position::{Monitor, Position},
    search::figures::{Figures, MissingValue, Row},
    views::Views,
    words::{in_section, list, quote, sentences},
};
use crate::{
    fact::Fact,
    job::stdout::Stdout,
    result::{Failure, Invalid, Outcome},
    rules::{
        Rules,
        perf::{self, Bounds, Measurement, PerfVariable, Source, Verdict, format_digits, format_number},
        reference::{Reference, ReferenceRow},
    },
};

/// Maximum number of misses named in a sentence.
const NAMED_MISSES: usize = 10;

/// What came of all variables. The lists hold fragments, in the order of the variables.
#[derive(Debug, Default)]
pub(super) struct Performance {
    pub measurements: Vec<Measurement>,
    pub warnings: Vec<String>,
    /// Values that should have been measured and were not.
    missing_values: Vec<String>,
    /// Missed references.
    misses: Vec<String>,
    /// Expected misses.
    expected: Vec<String>,
    /// Expected misses that did not happen.
    unexpected_passes: Vec<String>,
    /// The first fact of the site that a `value` needs and that is missing: it says nothing here.
    pub missing: Option<Fact>,
}

/// What was read for one variable: its rows, or why it has none.
pub(super) type Readings = Result<Vec<Row>, NoRows>;

/// Why a variable has no rows.
pub(super) struct NoRows {
    why: String,
    /// The fact of the site that it needs and that is missing.
    missing: Option<Fact>,
}

impl NoRows {
    fn because(why: String) -> Self {
        Self { why, missing: None }
    }
}

/// Reads all variables, so that expressions see those before them. `figures` are those of the variables with a pattern,
/// in order.
pub(super) fn read(
    rules: &Rules,
    views: &Views,
    figures: impl IntoIterator<Item = Figures>,
    evaluator: &mut Evaluator,
    monitor: &Monitor<'_>,
) -> Vec<Readings> {
    let mut figures = figures.into_iter();
    let mut read = |(number, variable): (usize, &PerfVariable)| {
        let text = views.of(variable.file.as_deref());
        // Every pattern has its figures, whether there is something to read them from or not.
        let found = matches!(variable.source, Source::Pattern { .. }).then(|| figures.next()).flatten();
        if let Some(why) = views.no_files(variable.file.as_deref()) {
            return Err(NoRows::because(why.to_owned()));
        }
        (monitor.report)(Position::Variable(number, None));
        let rows = match &variable.source {
            Source::Pattern { .. } => {
                found.map_or_else(|| Ok(Vec::new()), |found| found.finish(text.sections().len())).map_err(NoRows::because)
            }
            Source::Value(expression) => match evaluator.figure(expression, text) {
                Ok(value) => Ok(vec![Row { section: None, key: None, value: Ok(value) }]),
                Err(error) => {
                    let why = format!("{}: {error}", quote(expression));
                    Err(NoRows { why, missing: Fact::missing_in(&error) })
                }
            },
        };
        for row in rows.iter().flatten() {
            if let Ok(value) = row.value {
                evaluator.learn(name_of(variable, row, text), value);
            }
        }
        rows
    };
    rules.perf_variables.iter().enumerate().map(&mut read).collect()
}

/// What expressions call a figure: `flops`, `latency[8]`, `flops@pod-a`, `latency[8]@pod-a`.
fn name_of(variable: &PerfVariable, row: &Row, stdout: &Stdout) -> String {
    let section = row.section.and_then(|section| stdout.sections().get(section));
    section.map_or_else(|| label(variable, row), |section| format!("{}@{}", label(variable, row), section.origin.title()))
}

fn label(variable: &PerfVariable, row: &Row) -> String {
    perf::label(&variable.name, row.key.as_deref())
}

/// Compares what was read with the references.
pub(super) fn compare(rules: &Rules, views: &Views, readings: Vec<Readings>) -> Performance {
    let mut all = Performance::default();
    for (variable, rows) in rules.perf_variables.iter().zip(readings) {
        let begin = all.measurements.len();
        let file = variable.file.as_deref();
        match rows {
            Ok(rows) => rows.into_iter().for_each(|row| all.take(rules, variable, row, views.of(file))),
            // What is read or computed from something that may be missing may itself be missing: that is a warning.
            Err(NoRows { why, .. })
                if variable.optional && (matches!(variable.source, Source::Value(_)) || views.no_files(file).is_some()) =>
            {
                all.warnings.push(format!("`{}` is left out: {why}", variable.name));
            }
            Err(NoRows { missing: Some(fact), .. }) => {
                all.missing.get_or_insert(fact);
            }
            Err(NoRows { why, .. }) => all.missing_values.push(format!("`{}`: {why}", variable.name)),
        }
        all.miss_keys(rules, variable, begin);
    }
    all
}

impl Performance {
    fn take(&mut self, rules: &Rules, variable: &PerfVariable, row: Row, stdout: &Stdout) {
        let label = label(variable, &row);
        let place = row.section.map_or_else(String::new, |section| in_section(stdout, section));
        let value = match row.value {
            Ok(value) => value,
            Err(MissingValue::NotFound) if variable.optional => return,
            Err(MissingValue::NotFound) => return self.missing_values.push(format!("nothing found for `{label}`{place}")),
            Err(MissingValue::Unusable(why)) => return self.missing_values.push(format!("`{label}`{place}: {why}")),
        };
        let reference = reference_of(&rules.references, &variable.name, row.key.as_deref());
        let bounds = reference.map(Reference::bounds);
        let verdict = verdict(value, reference, rules.require_reference);
        let shown = describe(&label, value, &variable.unit, bounds.as_ref(), &place);
        match &verdict {
            Verdict::None | Verdict::Pass => {}
            Verdict::Warn => {
                let band = reference.and_then(Reference::warn_bounds);
                let shown = describe(&label, value, &variable.unit, band.as_ref(), &place);
                self.warnings.push(format!("within the bounds, but not within the warn band: {shown}"));
            }
            Verdict::Fail => self.misses.push(shown),
            Verdict::Xfail(reason) => self.expected.push(format!("{shown}: {reason}")),
            Verdict::Xpass(reason) => self.unexpected_passes.push(format!("{shown}: {reason}")),
        }
        let origin = row.section.and_then(|section| stdout.sections().get(section)).map(|section| &section.origin);
        self.measurements.push(Measurement {
            variable: variable.name.clone(),
            key: row.key,
            section: origin.map(crate::job::stdout::SectionOrigin::title),
            node: origin.and_then(|origin| origin.node.clone()),
            value,
            unit: variable.unit.clone(),
            bounds,
            verdict,
            direction: variable.direction,
        });
    }

    /// A reference for a row that the table does not have: the row is missing, not fine.
    fn miss_keys(&mut self, rules: &Rules, variable: &PerfVariable, begin: usize) {
        let measured = &self.measurements[begin..];
        if variable.optional || measured.is_empty() {
            return;
        }
        let keys = rules.references.iter().filter(|row| row.variable == variable.name).filter_map(|row| row.key.as_deref());
        let missing = keys.filter(|key| *key != "*" && !measured.iter().any(|row| row.key.as_deref() == Some(key)));
        self.missing_values
            .extend(missing.map(|key| format!("nothing found for `{}[{key}]`, which has a reference", variable.name)));
    }

    /// The outcome of the variables alone, with its sentence, and misses that the check only wants to hear of.
    ///
    /// Missing values outweigh misses. Then ReFrame's order: a miss, an unexpected pass, an expected miss.
    pub(super) fn outcome(&self, strict: bool) -> (Outcome, Option<String>, Option<String>) {
        let misses =
            (!self.misses.is_empty()).then(|| format!("failed to meet reference(s): {}", list(&self.misses, "; ", NAMED_MISSES)));
        let (fatal, tolerated) = if strict { (misses, None) } else { (None, misses) };
        let (outcome, cause) = if !self.missing_values.is_empty() {
            let missing_values = sentences(&self.missing_values);
            (
                Outcome::Invalid(Invalid::Metrics),
                Some(fatal.map_or(missing_values.clone(), |misses| format!("{missing_values}; {misses}"))),
            )
        } else if let Some(misses) = fatal {
            (Outcome::Fail(Failure::Performance), Some(misses))
        } else if !self.unexpected_passes.is_empty() {
            let unexpected_passes = list(&self.unexpected_passes, "; ", NAMED_MISSES);
            (Outcome::Xpass, Some(format!("met reference(s) that it was expected to miss: {unexpected_passes}")))
        } else if !self.expected.is_empty() {
            let expected = list(&self.expected, "; ", NAMED_MISSES);
            (Outcome::Xfail, Some(format!("missed reference(s) as expected: {expected}")))
        } else {
            (Outcome::Pass, None)
        };
        (outcome, cause, tolerated)
    }
}

/// A row's own reference, else the one for all rows, else the variable's.
fn reference_of<'r>(references: &'r [ReferenceRow], variable: &str, key: Option<&str>) -> Option<&'r Reference> {
    let of = |wanted: Option<&str>| {
        let mut rows = references.iter().filter(|row| row.variable == variable);
        rows.find(|row| row.key.as_deref() == wanted).map(|row| &row.reference)
    };
    match key {
        Some(_) => of(key).or_else(|| of(Some("*"))).or_else(|| of(None)),
        None => of(None),
    }
}

fn verdict(value: f64, reference: Option<&Reference>, required: bool) -> Verdict {
    let Some(reference) = reference else {
        return if value.is_nan() || required { Verdict::Fail } else { Verdict::None };
    };
    let passes = reference.bounds().hold(value);
    match (&reference.xfail, passes) {
        (Some(reason), true) => Verdict::Xpass(reason.clone()),
        (Some(reason), false) => Verdict::Xfail(reason.clone()),
        (None, true) if reference.warn_bounds().is_some_and(|band| !band.hold(value)) => Verdict::Warn,
        (None, true) => Verdict::Pass,
        (None, false) => Verdict::Fail,
    }
}

/// `a=10 GB/s in pod-a on node01, expected 100 (l=90, u=110)`.
fn describe(label: &str, value: f64, unit: &str, bounds: Option<&Bounds>, place: &str) -> String {
    let digits = bounds.map_or(6, |bounds| distinguishing_digits(value, bounds));
    let number = |value: f64| format_digits(value, digits);
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let figure = format!("{label}={}{unit}{place}", number(value));
    let Some(bounds) = bounds else {
        return figure + if value.is_nan() { ", which is not a number" } else { ", which has no reference" };
    };
    let ends =
        [bounds.lower.map(|lower| format!("l={}", number(lower))), bounds.upper.map(|upper| format!("u={}", number(upper)))];
    let ends = ends.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let ends = if ends.is_empty() { ends } else { format!(" ({ends})") };
    format!("{figure}, expected {}{ends}", format_number(bounds.reference))
}

/// The number of digits with which the printed value is on the same side of its bounds as the measured one: 6, except for a near miss.
fn distinguishing_digits(value: f64, bounds: &Bounds) -> usize {
    let printed = |value: f64, digits| format_digits(value, digits).parse().unwrap_or(value);
    let tells_apart = |digits: usize| {
        let shown = Bounds {
            lower: bounds.lower.map(|end| printed(end, digits)),
            upper: bounds.upper.map(|end| printed(end, digits)),
            ..*bounds
        };
        shown.hold(printed(value, digits)) == bounds.hold(value)
    };
    (6..17).find(|digits| tells_apart(*digits)).unwrap_or(17)
}
