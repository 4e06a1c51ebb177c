//! References that judge nothing.

use super::{Report, Subject};
use crate::site::selector::{Entry, Selector};
use muster_text::yaml::{Kind, Node};

pub(super) fn unused_reference(subject: &Subject<'_>, report: &mut Report) {
    const NAME: &str = "unused-reference";
    let Some(reference) = subject.tree().get("reference").filter(|_| subject.knows_sites && !subject.cases.is_empty()) else {
        return;
    };
    let mut record = |node: &Node, is_used: bool| {
        if is_used {
            report.fine(NAME, node.span.head());
        } else {
            let hint = "compare it with `valid_systems`, the parameters and the site files";
            report.found(NAME, node.span.head(), "no case on the known sites can use this reference", hint);
        }
    };
    for (scope, _) in reference.entries() {
        let Some(Ok(entry)) = scope.text().map(Entry::parse) else { continue };
        let selector = Selector::of(vec![entry]);
        let admits = |case: &&crate::cases::test_case::TestCase| selector.admits(&case.place.system, &case.place.partition);
        record(scope, subject.cases.iter().any(|case| admits(&case)));
    }
    let layer = subject.check.layer(&[]);
    for (rule, condition) in reference.items().iter().zip(&layer.reference_conditions) {
        let is_used = subject.cases.iter().any(|case| {
            let place = &case.place;
            condition.admits_place(&place.system, &place.partition, &place.environ) && condition.admits_variant(&case.variant)
        });
        record(rule, is_used);
    }
}

pub(super) fn open(subject: &Subject<'_>, report: &mut Report) {
    if subject.all("require_reference").any(|node| node.text() == Some("true")) {
        return;
    }
    for reference in subject.all("reference") {
        let scopes = reference.entries().iter().map(|(_, values)| values);
        let rules = reference.items().iter().filter_map(|rule| rule.get("values"));
        for (_, value) in scopes.chain(rules).flat_map(Node::entries) {
            if is_open(value) {
                let hint = "a figure without a reference is kept and shown all the same: leave it out, or give it a bound";
                report.found("open-reference", value.span, "a reference with two open ends judges nothing", hint);
            }
        }
    }
}

fn is_open(reference: &Node) -> bool {
    match &*reference.kind {
        Kind::Seq(items) => items.len() >= 3 && items[1].is_null() && items[2].is_null(),
        Kind::Map(_) => {
            let is_open = |key: &str| reference.get(key).is_none_or(Node::is_null);
            reference.get("value").is_some() && ["lower", "upper", "warn"].into_iter().all(is_open)
        }
        _ => false,
    }
}
