//! `exclude`: combinations of parameter values that are no cases.
//!
//! ```yaml
//! parameters: { tile: [1, 2, 4], ranks: [1, 8, 64] }
//! exclude:
//!   - { tile: 4, ranks: [1, 64] }
//! ```

use crate::cases::parameter::{Parameter, Variant};
use muster_text::{
    diagnostic::Diagnostic,
    yaml::{Kind, Node},
};

/// One entry: a variant is out if all of it holds.
#[derive(Debug, Clone)]
pub(crate) struct Exclusion(Vec<(String, Vec<String>)>);

impl Exclusion {
    pub(crate) fn admits(&self, variant: &Variant) -> bool {
        let holds = |(name, texts): &(String, Vec<String>)| {
            variant.get(name).is_some_and(|setting| texts.iter().any(|text| **text == *setting.text))
        };
        self.0.iter().all(holds)
    }
}

/// Reads the entries. With values from the command line, values in the file may be unused.
pub(crate) fn read(
    check: &Node,
    parameters: &[Parameter],
    is_overridden: bool,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Exclusion> {
    let entries = check.get("exclude").map(Node::items).unwrap_or_default();
    let entries = entries.iter().filter(|entry| matches!(&*entry.kind, Kind::Map(_)));
    entries.map(|entry| exclusion(entry, parameters, is_overridden, diagnostics)).collect()
}

fn exclusion(entry: &Node, parameters: &[Parameter], is_overridden: bool, diagnostics: &mut Vec<Diagnostic>) -> Exclusion {
    let mut wanted = Vec::new();
    if entry.entries().is_empty() {
        let message = "an empty entry of `exclude` leaves no case";
        diagnostics.push(Diagnostic::error(entry.place(), message).hint("name values of parameters: `{ tile: 4 }`"));
    }
    for (key, value) in entry.entries() {
        let Some(name) = key.text() else { continue };
        let items = value.one_or_many();
        for node in items.iter().filter(|node| node.has_placeholder()) {
            let hint = "give the parameter a computed list of values instead";
            diagnostics.push(Diagnostic::error(node.place(), "`exclude` cannot hold a placeholder").hint(hint));
        }
        match parameters.iter().find(|parameter| &*parameter.name == name) {
            Some(parameter) if !is_overridden => parameter.check_wanted(items.iter(), diagnostics),
            Some(_) => {}
            None => {
                let diagnostic = Diagnostic::error(key.span, format!("there is no parameter `{name}`"));
                let known = parameters.iter().map(|parameter| &*parameter.name);
                diagnostics.push(diagnostic.did_you_mean(name, known, Some("`exclude` compares parameters")));
            }
        }
        wanted.push((name.to_owned(), items.iter().filter_map(|item| item.text().map(str::to_owned)).collect()));
    }
    Exclusion(wanted)
}
