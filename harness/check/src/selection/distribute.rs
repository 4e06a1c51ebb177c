//! `--distribute`: on which nodes there is a copy of every case. The schedulers know which nodes there are.

use muster_core::job::descriptor::Schedulers;
use muster_text::{diagnostic::did_you_mean, node_list};
use std::collections::BTreeSet;

/// The nodes that `--distribute` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distribute {
    /// These, by name.
    Nodes(Vec<String>),
    /// All nodes of a case's partition that are in a state, of which the scheduler decides.
    State(&'static str),
}

impl Distribute {
    /// Reads a state that one of the schedulers knows of its nodes, or names divided by commas: `node-1,rack[1-2]b[01-04]`.
    ///
    /// # Errors
    /// A lower-case fragment: what is no name of a node, as a state in capitals is none, or nothing.
    pub fn parse(text: &str, schedulers: &Schedulers) -> Result<Self, String> {
        let states = states(schedulers);
        if let Some(state) = states.iter().find(|state| **state == text) {
            return Ok(Self::State(state));
        }
        let all = states.iter().copied().collect::<Vec<_>>().join(", ");
        let word = text.to_ascii_lowercase();
        if text.contains(['|', '*']) || states.contains(&*word) {
            return Err(format!("no scheduler knows nodes in state `{text}`: write {all}, or names, as in node-1,node-2"));
        }
        let mut nodes: Vec<String> = Vec::new();
        for name in node_list::expand(text) {
            if let Some(state) = states.iter().find(|state| **state == name) {
                return Err(format!("`{state}` is a state of nodes, and stands alone: write {state}, or names"));
            }
            if name.contains(['[', ']']) {
                return Err(format!("`{name}` is not a list of nodes: write them as in node-[1-3,7]"));
            }
            // A case that is there twice would be two jobs in one folder.
            if !nodes.contains(&name) {
                nodes.push(name);
            }
        }
        if nodes.is_empty() { Err(format!("no node is named: write {all}, or names")) } else { Ok(Self::Nodes(nodes)) }
    }

    /// Returns a warning if a name is perhaps a mistyped state: most names of nodes have a number.
    pub fn doubt(&self, schedulers: &Schedulers) -> Option<String> {
        let Self::Nodes(nodes) = self else { return None };
        let [name] = &nodes[..] else { return None };
        let hint = did_you_mean(name, states(schedulers)).filter(|_| !name.contains(|c: char| c.is_ascii_digit()))?;
        Some(format!("`{name}` is taken for the name of a node: {hint}"))
    }
}

/// All states that a scheduler knows of its nodes.
fn states(schedulers: &Schedulers) -> BTreeSet<&'static str> {
    schedulers.all().iter().flat_map(|scheduler| scheduler.node_states.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::job::descriptor::Descriptor;

    static ALL: &[&Descriptor] = &[&STATES, &NAMELESS];
    static STATES: Descriptor = Descriptor { names: &["x"], node_states: &["all", "avail", "maint"], ..Descriptor::NONE };
    static NAMELESS: Descriptor = Descriptor { names: &["y"], ..Descriptor::NONE };

    #[test]
    fn a_state_that_a_scheduler_knows_is_a_word_and_everything_else_is_a_name() {
        let schedulers = Schedulers::new(ALL);
        let names = |names: &[&str]| Ok(Distribute::Nodes(names.iter().map(|name| (*name).to_owned()).collect()));
        let rows = [
            ("all", Ok(Distribute::State("all"))),
            ("maint", Ok(Distribute::State("maint"))),
            ("idle", names(&["idle"])),
            ("node-1, node-2,node-1,", names(&["node-1", "node-2"])),
            ("drain-3", names(&["drain-3"])),
            ("n[1-2,07],x", names(&["n1", "n2", "n07", "x"])),
        ];
        for (text, expected) in rows {
            assert_eq!(Distribute::parse(text, &schedulers), expected, "{text}");
        }
        let wrong = ["MAINT", "idle|alloc", "idle*", ",", "node-1,all", "n[1", "n[2-1]"]
            .map(|text| Distribute::parse(text, &schedulers).unwrap_err());
        insta::assert_snapshot!(wrong.join("\n"), @"
        no scheduler knows nodes in state `MAINT`: write all, avail, maint, or names, as in node-1,node-2
        no scheduler knows nodes in state `idle|alloc`: write all, avail, maint, or names, as in node-1,node-2
        no scheduler knows nodes in state `idle*`: write all, avail, maint, or names, as in node-1,node-2
        no node is named: write all, avail, maint, or names
        `all` is a state of nodes, and stands alone: write all, or names
        `n[1` is not a list of nodes: write them as in node-[1-3,7]
        `n[2-1]` is not a list of nodes: write them as in node-[1-3,7]
        ");
    }

    #[test]
    fn a_name_that_is_nearly_a_state_is_doubted() {
        let schedulers = Schedulers::new(ALL);
        let doubt = |text| Distribute::parse(text, &schedulers).unwrap().doubt(&schedulers);
        let rows = ["avial", "avail", "avial1", "avial,node", "gpu-node"].map(doubt);
        assert_eq!(
            rows,
            [Some("`avial` is taken for the name of a node: did you mean `avail`?".to_owned()), None, None, None, None]
        );
    }
}
