//! Patterns that fit more than was meant.

use super::{Report, Subject};
use muster_text::{
    pattern::{self, Pattern},
    yaml::Node,
};
use regex::Regex;
use std::sync::LazyLock;

/// A text with hardly anything in it, of every sort. What is found in all of them is found in any line.
const ANYTHING: [&str; 5] = ["\u{1}", "a", "0", "-", " "];

/// A regex of a check, and the performance variable that it gives the figure of.
struct Written<'a> {
    node: &'a Node,
    figure: Option<&'a Node>,
}

fn patterns<'a>(subject: &'a Subject<'_>) -> Vec<Written<'a>> {
    let items = subject.all("sanity").flat_map(Node::items);
    let claims = items.flat_map(|item| ["found", "not_found"].into_iter().filter_map(|key| item.get(key)));
    let claims = claims.map(|node| Written { node, figure: None });
    let figures = subject.all("perf_variables").flat_map(Node::entries);
    let figures = figures.filter_map(|(_, figure)| figure.get("pattern").map(|node| Written { node, figure: Some(figure) }));
    claims.chain(figures).filter(|written| written.node.text().is_some() && !written.node.has_placeholder()).collect()
}

pub(super) fn empty_match(subject: &Subject<'_>, report: &mut Report) {
    for Written { node, figure } in patterns(subject) {
        let Some(Ok(pattern)) = node.text().map(Pattern::compile) else { continue };
        let tag = figure.and_then(|figure| figure.get("tag")).and_then(Node::text);
        if ANYTHING.iter().all(|text| pattern.regex().is_match(text.as_bytes())) {
            let hint = "with `*` a part may be empty, and here all of it: write `+`, or add the text around it";
            report.found("empty-match", node.span, "the pattern matches any line", hint);
        } else if figure.is_some() && pattern.groups(tag).is_ok_and(|groups| pattern.group_can_be_empty(groups.value)) {
            let hint = "an empty figure is not a number: write `+` instead of `*` in the group";
            report.found("empty-match", node.span, "the figure may be empty", hint);
        }
    }
}

pub(super) fn unescaped_dot(subject: &Subject<'_>, report: &mut Report) {
    static DOT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(\\d|\[0-9\])[+*?]{0,2}\.(\\d|\[0-9\])").ok());
    for Written { node, .. } in patterns(subject) {
        let text = node.text().unwrap_or_default();
        if DOT.as_ref().is_some_and(|dot| dot.is_match(text)) {
            let hint = "write `\\.` for the decimal point";
            report.found("unescaped-dot", node.span, "the `.` between the digits matches any character", hint);
        }
    }
}

pub(super) fn unbounded_capture(subject: &Subject<'_>, report: &mut Report) {
    for Written { node, .. } in patterns(subject) {
        if node.text().and_then(pattern::lint).is_some() {
            let hint = "bound it, as in `[\\s\\S]{0,500}?`, or keep to one line";
            report.found("unbounded-capture", node.span, "a part of the pattern may match the whole log", hint);
        }
    }
}
