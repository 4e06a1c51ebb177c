//! Turns the measurements of one run into a figure for each metric. Pure.

use muster_core::{
    rules::perf::{Bounds, Direction, Measurement},
    stats::median,
};
use std::collections::BTreeMap;

/// The figure of a run for one metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure<'m> {
    pub(crate) variable: &'m str,
    /// The row of a table; '' for a single figure.
    pub(crate) key: &'m str,
    pub(crate) unit: &'m str,
    pub(crate) direction: Option<Direction>,
    /// Of the first measurement.
    pub(crate) bounds: Option<Bounds>,
    /// `None`: it was no finite number.
    pub(crate) value: Option<f64>,
}

/// The figures of a run, in the order in which they were measured. One that every section has counts with the median of its sections.
pub(crate) fn of_run(measurements: &[Measurement]) -> Vec<Figure<'_>> {
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut groups: Vec<Vec<&Measurement>> = Vec::new();
    for measurement in measurements {
        let name = (measurement.variable.as_str(), measurement.key.as_deref().unwrap_or_default());
        let place = *places.entry(name).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(measurement);
    }
    groups.iter().map(|group| of_group(group)).collect()
}

fn of_group<'m>(group: &[&'m Measurement]) -> Figure<'m> {
    let first = group[0];
    let whole = group.iter().find(|measurement| measurement.section.is_none());
    let value = match whole {
        Some(whole) => finite(whole.value),
        None => median(&group.iter().filter_map(|measurement| finite(measurement.value)).collect::<Vec<_>>()),
    };
    Figure {
        variable: &first.variable,
        key: first.key.as_deref().unwrap_or_default(),
        unit: &first.unit,
        direction: first.direction,
        bounds: first.bounds,
        value,
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::rules::perf::Verdict;

    fn measured(variable: &str, key: Option<&str>, section: Option<(&str, &str)>, value: f64) -> Measurement {
        Measurement {
            variable: variable.into(),
            key: key.map(Into::into),
            section: section.map(|(section, _)| section.into()),
            node: section.map(|(_, node)| node.into()),
            value,
            unit: "GB/s".into(),
            bounds: None,
            verdict: Verdict::None,
            direction: Some(Direction::Higher),
        }
    }

    fn rows(measurements: &[Measurement]) -> Vec<(&str, &str, Option<f64>)> {
        of_run(measurements).into_iter().map(|figure| (figure.variable, figure.key, figure.value)).collect()
    }

    #[test]
    fn each_variable_and_each_row_of_a_table_has_a_figure() {
        let run =
            [measured("rate", None, None, 3.0), measured("table", Some("8"), None, 1.0), measured("table", Some("9"), None, 2.0)];
        assert_eq!(rows(&run), [("rate", "", Some(3.0)), ("table", "8", Some(1.0)), ("table", "9", Some(2.0))]);
    }

    #[test]
    fn a_figure_of_sections_is_their_median() {
        let run = [
            measured("rate", None, Some(("p0", "n1")), 1.0),
            measured("rate", None, Some(("p1", "n1")), 2.0),
            measured("rate", None, Some(("p2", "n2")), 9.0),
            measured("rate", None, Some(("p3", "n2")), f64::NAN),
        ];
        assert_eq!(rows(&run), [("rate", "", Some(2.0))]);
    }

    #[test]
    fn what_is_no_finite_number_has_no_value() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(rows(&[measured("rate", None, None, value)]), [("rate", "", None)]);
        }
    }
}
