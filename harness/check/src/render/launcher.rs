//! The command that starts the tasks of a job: `launcher_modifier`, the launcher of partition or check, `launcher_options`.
//!
//! It stands before `executable`. Commands that the check writes itself have it as `${{ launcher }}`.

use crate::cases::{
    check::{LAUNCHER, Layer},
    test_case::TestCase,
};
use muster_core::{job::descriptor::SharedKey, launcher::VALUES};
use muster_text::{Value, diagnostic::Diagnostic, expr::Scope, template, yaml::Node};

const TASKS: &str = "num_tasks";
const MODIFIER: &str = "launcher_modifier";
const OPTIONS: &str = "launcher_options";

/// The launcher of a case, empty if it has none; expressions see it from here on. `None` after a mistake.
pub(crate) fn define(case: &TestCase, layer: &Layer, scope: &mut Scope, diagnostics: &mut Vec<Diagnostic>) -> Option<String> {
    let line = if case.place.partition.scheduler.shared_key(LAUNCHER) == SharedKey::Takes {
        line(case, layer, scope, diagnostics)?
    } else {
        String::new()
    };
    if !case.check.is_parameter(LAUNCHER) && layer.variables.names().all(|name| name != LAUNCHER) {
        scope.set(LAUNCHER, line.clone());
    }
    Some(line)
}

fn line(case: &TestCase, layer: &Layer, scope: &Scope, diagnostics: &mut Vec<Diagnostic>) -> Option<String> {
    // The scope knows `num_tasks`.
    let values = VALUES.into_iter().filter(|name| *name != TASKS);
    let keys = layer.tree.only(&[LAUNCHER, MODIFIER, OPTIONS].into_iter().chain(values).collect::<Vec<_>>());
    let keys = template::render(&keys, scope, &case.check.cache, diagnostics)?;
    let partition = &case.place.partition;
    let own = keys.get(LAUNCHER).filter(|node| !node.is_null());
    let launcher = own.and_then(Node::text).or_else(|| partition.shared.get(LAUNCHER)?.as_str());
    let value = |name: &str| match name {
        TASKS => Some(scope.get(name).and_then(Value::as_u64).unwrap_or(1).to_string()),
        name => keys.get(name).and_then(Node::text).map(str::to_owned),
    };
    let place = own.map_or(case.check.span, Node::place);
    let refused = |mistake: Diagnostic| diagnostics.push(Diagnostic { span: Some(place), ..mistake });
    let line = partition.scheduler.launchers.line(launcher, value).map_err(refused).ok()?;
    if line.is_empty() {
        // Without a launcher nothing takes them.
        return Some(line);
    }
    let texts = |key: &str| {
        let node = keys.get(key).filter(|node| !node.is_null());
        node.map(texts_of).unwrap_or_default()
    };
    Some([texts(MODIFIER), vec![&*line], texts(OPTIONS)].concat().join(" "))
}

/// One text, or a list of them.
fn texts_of(node: &Node) -> Vec<&str> {
    node.text().map_or_else(|| node.items().iter().filter_map(Node::text).collect(), |text| vec![text])
}

/// A program with what starts it.
pub(crate) fn launched(launcher: &str, program: &str) -> String {
    if launcher.is_empty() { program.to_owned() } else { format!("{launcher} {program}") }
}
