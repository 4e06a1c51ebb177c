//! A parameter with the name of a key sets the key: as if the check said `KEY: ${{ KEY }}`. What the check, its bases or an
//! entry of `when` write of that key comes first.

use crate::files::check_file::CheckFile;
use muster_text::{
    decode::{Context, Keyed, MoreKeys, Placeholders},
    diagnostic::{Diagnostic, Span},
    yaml::{Kind, Node, Style},
};

/// Keys that no parameter sets: they are read before there are cases.
pub const FIXED: [&str; 9] =
    ["name", "abstract", "extends", "parameters", "variables", "exclude", "fixtures", "depends_on", "when"];

/// The key that expressions read under its name: beside a parameter it has no other value.
const TASKS: &str = "num_tasks";

/// Returns whether a parameter of this name sets a key.
pub fn is_key(name: &str, more: &MoreKeys) -> bool {
    !FIXED.contains(&name) && keys(more).any(|key| key == name)
}

/// The keys of a check, those of schedulers included.
pub fn keys(more: &MoreKeys) -> impl Iterator<Item = &'static str> {
    CheckFile::TABLE.keys.iter().map(|key| key.name).chain(more.iter().map(|key| key.name))
}

/// Returns the value of such a key: that of the parameter of its name.
pub fn value(name: &str, span: Span) -> Node {
    Node::scalar(span, format!("${{{{ {name} }}}}"), Style::Plain)
}

/// The check with the keys that its parameters set. A parameter whose name or values cannot be those of a key is a mistake.
pub fn applied(check: &Node, more: &MoreKeys, diagnostics: &mut Vec<Diagnostic>) -> Node {
    let Kind::Map(written) = &*check.kind else { return check.clone() };
    let mut entries = written.clone();
    for (key, values) in check.get("parameters").map(Node::entries).unwrap_or_default() {
        let Some(name) = key.text() else { continue };
        if FIXED.contains(&name) {
            let message =
                format!("a parameter cannot be called `{name}`: it would set this key, which is read before there are cases");
            diagnostics.push(Diagnostic::error(key.place(), message).hint("rename it"));
        }
        let is_written = written.iter().filter_map(|(key, _)| key.text()).any(|key| key.trim_end_matches('+') == name);
        if name == TASKS
            && let Some(place) = other_value(check, name)
        {
            let message = format!("`{name}` is a parameter of this check, and its key has another value");
            diagnostics.push(
                Diagnostic::error(place, message).hint(format!("rename the parameter, or write {name}: ${{{{ {name} }}}}")),
            );
        }
        if is_written || values.is_null() || !is_key(name, more) {
            continue;
        }
        let mut mistakes = mistakes(name, values, more);
        // A value that is wrong is reported once, here.
        let set = if mistakes.is_empty() { value(name, key.place()) } else { Node::new(key.place(), Kind::Bad) };
        entries.push((key.clone(), set));
        diagnostics.append(&mut mistakes);
    }
    Node::new(check.span, Kind::Map(entries))
}

/// What the check or `when` writes for a key, if that is not the parameter of its name.
fn other_value(check: &Node, name: &str) -> Option<Span> {
    let when = check.get("when").map(Node::items).unwrap_or_default();
    let written = when.iter().chain([check]).filter_map(|node| node.get(name)).filter(|node| !node.is_null());
    let is_same = |node: &Node| node.text().is_some_and(|text| text.replace(' ', "") == format!("${{{{{name}}}}}"));
    written.filter(|node| !is_same(node)).map(Node::place).next()
}

/// The values that the key does not take, as far as they are written out.
fn mistakes(name: &str, values: &Node, more: &MoreKeys) -> Vec<Diagnostic> {
    let mut context = Context::with(Placeholders::Defer, more.clone());
    for value in values.items().iter().filter(|value| !value.is_null()) {
        match (CheckFile::TABLE.keys.iter().find(|key| key.name == name), more.iter().find(|key| key.name == name)) {
            (Some(key), _) => (key.set)(&mut CheckFile::default(), value, &mut context),
            (None, Some(key)) => (key.set)(&mut (), value, &mut context),
            (None, None) => {}
        }
    }
    context.diagnostics.into_iter().map(|mistake| set_by_parameter(name, mistake)).collect()
}

/// A mistake in the value of a key, as one of the parameter that sets it.
fn set_by_parameter(name: &str, mistake: Diagnostic) -> Diagnostic {
    let message = format!("the parameter `{name}` sets the key of this name: {}", mistake.message);
    let otherwise = format!("rename the parameter, or write the key as well: `{name}: null` where it is a label only");
    let hint = mistake.hint.map_or_else(|| otherwise.clone(), |hint| format!("{hint}; or {otherwise}"));
    Diagnostic { message, hint: Some(hint), ..mistake }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::schedulers;
    use muster_text::{diagnostic::Sources, yaml};

    /// What parameters set in a check, and the mistakes with the texts at their places.
    fn set(text: &str) -> (Vec<String>, Vec<String>) {
        let mut sources = Sources::default();
        let check = yaml::parse(sources.add("check.yaml", text), text).documents.swap_remove(0);
        let mut found = Vec::new();
        let tree = applied(&check, schedulers().own_keys(), &mut found);
        let new = tree.entries().iter().skip(check.entries().len());
        let new = new.filter_map(|(key, value)| Some(format!("{}: {}", key.text()?, value.text()?)));
        let place = |found: Diagnostic| {
            let span = found.span.expect("a place");
            format!("{}: {}", &text[span.start as usize..span.end as usize], found.message)
        };
        (new.collect(), found.into_iter().map(place).collect())
    }

    #[test]
    fn a_parameter_with_the_name_of_a_key_sets_it_unless_the_check_writes_it() {
        let rows: [(&str, &[&str]); 9] = [
            ("parameters: { num_nodes: [1, 2, 4] }", &["num_nodes: ${{ num_nodes }}"]),
            ("parameters: { num_nodes: [1], n: [1], tags: [a] }", &["num_nodes: ${{ num_nodes }}", "tags: ${{ tags }}"]),
            ("parameters: { namespace: [a, b] }", &["namespace: ${{ namespace }}"]),
            ("parameters: { time_limit: [1h, 90] }", &["time_limit: ${{ time_limit }}"]),
            ("parameters: { num_nodes: '${{ [1] }}' }", &["num_nodes: ${{ num_nodes }}"]),
            ("{ parameters: { num_nodes: [1] }, num_nodes: 3 }", &[]),
            ("{ parameters: { namespace: [label] }, namespace: null }", &[]),
            ("{ parameters: { tags: [a] }, tags+: [b] }", &[]),
            ("parameters: { num_nodes: null }", &[]),
        ];
        for (check, expected) in rows {
            assert_eq!(set(check), (expected.iter().map(ToString::to_string).collect(), vec![]), "{check}");
        }
    }

    #[test]
    fn a_name_or_a_value_that_a_key_cannot_have_is_a_mistake_at_its_place() {
        for name in FIXED {
            let (new, found) = set(&format!("parameters: {{ {name}: [1] }}"));
            let expected = format!(
                "{name}: a parameter cannot be called `{name}`: it would set this key, which is read before there are cases"
            );
            assert_eq!((new, found), (vec![], vec![expected]), "{name}");
        }
        for (check, place) in [
            ("{ parameters: { num_tasks: [1] }, num_tasks: 4 }", Some("4")),
            ("{ parameters: { num_tasks: [1] }, when: [{ system: a, num_tasks: 4 }] }", Some("4")),
            ("{ parameters: { num_tasks: [1] }, num_tasks: '${{num_tasks}}' }", None),
        ] {
            let expected =
                place.map(|place| format!("{place}: `num_tasks` is a parameter of this check, and its key has another value"));
            assert_eq!(set(check).1, Vec::from_iter(expected), "{check}");
        }
        let rows = [
            (
                "num_nodes: [1, small]",
                "small: the parameter `num_nodes` sets the key of this name: expected a whole number from 1, found text",
            ),
            (
                "num_nodes: [{ name: small, n: 1 }]",
                "{ name: small, n: 1 }: the parameter `num_nodes` sets the key of this name: expected a whole number from 1, found a mapping",
            ),
            ("sanity: [ok]", "ok: the parameter `sanity` sets the key of this name: expected a list, found text"),
            ("k8s_patch: [a]", "a: the parameter `k8s_patch` sets the key of this name: expected a mapping, found text"),
        ];
        for (parameters, expected) in rows {
            assert_eq!(set(&format!("parameters: {{ {parameters} }}")), (vec![], vec![expected.to_owned()]), "{parameters}");
        }
    }
}
