//! `--distribute`: on which nodes there is a copy of every case. The scheduler knows which nodes there are.

use muster_text::{decode::Words, words};
use std::fmt;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distribute {
    /// These, by name.
    Nodes(Vec<String>),
    /// All nodes of a case's partition that are in a state.
    State(NodeState),
}

words! {
    /// What is asked of a node.
    pub enum NodeState {
        /// Nothing.
        Any = "all",
        /// It takes jobs, whether it has some already or not.
        Available = "avail",
        /// It takes jobs and has none.
        Idle = "idle",
    }
}

/// States of nodes in Slurm, long and short.
const OF_SLURM: [&str; 14] = [
    "alloc",
    "allocated",
    "completing",
    "down",
    "drain",
    "drained",
    "draining",
    "fail",
    "maint",
    "mix",
    "mixed",
    "planned",
    "reserved",
    "resv",
];

impl Distribute {
    /// Reads `all`, `avail`, `idle`, or names divided by commas.
    ///
    /// # Errors
    /// A lower-case fragment: a state that no scheduler knows of its nodes, or nothing.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some((_, state)) = NodeState::WORDS.iter().find(|(word, _)| *word == text) {
            return Ok(Self::State(*state));
        }
        let word = text.trim_end_matches('*').to_ascii_lowercase();
        if text.contains(['|', '*']) || OF_SLURM.contains(&&*word) {
            return Err(format!("`{text}` is a state of Slurm's nodes: write all, avail, idle, or names, as in node-1,node-2"));
        }
        let nodes: Vec<String> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if nodes.is_empty() {
            Err("no node is named: write all, avail, idle, or names".to_owned())
        } else {
            Ok(Self::Nodes(nodes))
        }
    }
}

/// As it is written.
impl fmt::Display for Distribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(nodes) => f.write_str(&nodes.join(",")),
            Self::State(state) => f.write_str(state.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_a_word_and_everything_else_is_a_name() {
        let names = |names: &[&str]| Ok(Distribute::Nodes(names.iter().map(|name| (*name).to_owned()).collect()));
        let rows = [
            ("all", Ok(Distribute::State(NodeState::Any))),
            ("avail", Ok(Distribute::State(NodeState::Available))),
            ("idle", Ok(Distribute::State(NodeState::Idle))),
            ("node-1, node-2,", names(&["node-1", "node-2"])),
            ("drain-3", names(&["drain-3"])),
        ];
        for (text, expected) in rows {
            assert_eq!(Distribute::parse(text), expected, "{text}");
        }
        let wrong: Vec<String> =
            ["DRAIN", "idle|alloc", "idle*", ","].iter().filter_map(|text| Distribute::parse(text).err()).collect();
        insta::assert_snapshot!(wrong.join("\n"), @"
        `DRAIN` is a state of Slurm's nodes: write all, avail, idle, or names, as in node-1,node-2
        `idle|alloc` is a state of Slurm's nodes: write all, avail, idle, or names, as in node-1,node-2
        `idle*` is a state of Slurm's nodes: write all, avail, idle, or names, as in node-1,node-2
        no node is named: write all, avail, idle, or names
        ");
    }
}
