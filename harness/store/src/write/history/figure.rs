//! What the measurements of one run say of each metric. Pure.

use muster_core::rules::perf::{Bounds, Direction, Measurement};
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
    /// The same on each node, where that is known.
    pub(crate) by_node: Vec<(&'m str, Option<f64>)>,
}

/// The figures of a run on these nodes, in the order in which they were measured. One that every section has counts with the median
/// of its sections.
pub(crate) fn of_run<'m>(measurements: &'m [Measurement], nodes: &[&'m str]) -> Vec<Figure<'m>> {
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
    groups.iter().map(|group| of_group(group, nodes)).collect()
}

fn of_group<'m>(group: &[&'m Measurement], nodes: &[&'m str]) -> Figure<'m> {
    let first = group[0];
    let whole = group.iter().find(|measurement| measurement.section.is_none());
    let value = match whole {
        Some(whole) => finite(whole.value),
        None => median(group.iter().map(|measurement| measurement.value)),
    };
    let mut on_node: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for measurement in group {
        if let (Some(node), true) = (&measurement.node, measurement.section.is_some()) {
            on_node.entry(node).or_default().push(measurement.value);
        }
    }
    let mut by_node: Vec<_> = on_node.into_iter().map(|(node, values)| (node, median(values.into_iter()))).collect();
    if let (true, [node]) = (by_node.is_empty(), nodes) {
        by_node.push((node, value));
    }
    Figure {
        variable: &first.variable,
        key: first.key.as_deref().unwrap_or_default(),
        unit: &first.unit,
        direction: first.direction,
        bounds: first.bounds,
        value,
        by_node,
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// The median of the finite values; the mean of the middle two for an even number.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.filter_map(finite).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        // Halves first: the sum of two large values is infinite.
        _ => Some(values[middle - 1] / 2.0 + values[middle] / 2.0),
    }
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

    type Row<'a> = (&'a str, &'a str, Option<f64>, Vec<(&'a str, Option<f64>)>);

    fn rows<'m>(measurements: &'m [Measurement], nodes: &[&'m str]) -> Vec<Row<'m>> {
        let row = |figure: Figure<'m>| (figure.variable, figure.key, figure.value, figure.by_node);
        of_run(measurements, nodes).into_iter().map(row).collect()
    }

    #[test]
    fn a_figure_of_a_run_on_one_node_is_that_of_the_node_too() {
        let run =
            [measured("rate", None, None, 3.0), measured("table", Some("8"), None, 1.0), measured("table", Some("9"), None, 2.0)];
        let expected = |nodes: &[&'static str]| {
            let by_node = |value| nodes.iter().filter(|_| nodes.len() == 1).map(|node| (*node, Some(value))).collect();
            vec![
                ("rate", "", Some(3.0), by_node(3.0)),
                ("table", "8", Some(1.0), by_node(1.0)),
                ("table", "9", Some(2.0), by_node(2.0)),
            ]
        };
        for nodes in [&["n1"][..], &["n1", "n2"], &[]] {
            assert_eq!(rows(&run, nodes), expected(nodes));
        }
    }

    #[test]
    fn a_figure_of_sections_is_their_median_over_the_run_and_on_each_node() {
        let run = [
            measured("rate", None, Some(("p0", "n1")), 1.0),
            measured("rate", None, Some(("p1", "n1")), 2.0),
            measured("rate", None, Some(("p2", "n2")), 9.0),
            measured("rate", None, Some(("p3", "n2")), f64::NAN),
        ];
        assert_eq!(rows(&run, &["n1", "n2"]), [("rate", "", Some(2.0), vec![("n1", Some(1.5)), ("n2", Some(9.0))])]);
    }

    #[test]
    fn what_is_no_finite_number_has_no_value() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(rows(&[measured("rate", None, None, value)], &["n"]), [("rate", "", None, vec![("n", None)])]);
        }
        assert_eq!(median([f64::MAX, f64::MAX].into_iter()), Some(f64::MAX));
        assert_eq!(median([].into_iter()), None);
    }
}
