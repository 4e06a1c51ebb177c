//! `--distribute`: on which nodes there is a copy of every case. The schedulers know which nodes there are.

use muster_core::job::descriptor::Schedulers;
use std::collections::BTreeSet;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distribute {
    /// These, by name.
    Nodes(Vec<String>),
    /// All nodes of a case's partition that are in a state, of which the scheduler decides.
    State(&'static str),
}

impl Distribute {
    /// Reads a state that one of the schedulers knows of its nodes, or names divided by commas.
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
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if let Some(state) = states.iter().find(|state| **state == name) {
                return Err(format!("`{state}` is a state of nodes, and stands alone: write {state}, or names"));
            }
            // A case that is there twice would be two jobs in one folder.
            if !nodes.iter().any(|known| known == name) {
                nodes.push(name.to_owned());
            }
        }
        if nodes.is_empty() { Err(format!("no node is named: write {all}, or names")) } else { Ok(Self::Nodes(nodes)) }
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
        ];
        for (text, expected) in rows {
            assert_eq!(Distribute::parse(text, &schedulers), expected, "{text}");
        }
        let wrong =
            ["MAINT", "idle|alloc", "idle*", ",", "node-1,all"].map(|text| Distribute::parse(text, &schedulers).unwrap_err());
        insta::assert_snapshot!(wrong.join("\n"), @"
        no scheduler knows nodes in state `MAINT`: write all, avail, maint, or names, as in node-1,node-2
        no scheduler knows nodes in state `idle|alloc`: write all, avail, maint, or names, as in node-1,node-2
        no scheduler knows nodes in state `idle*`: write all, avail, maint, or names, as in node-1,node-2
        no node is named: write all, avail, maint, or names
        `all` is a state of nodes, and stands alone: write all, or names
        ");
    }
}
