//! `fixtures`, `depends_on` and `exclude`: what comes before a check, and which of its variants there are.

use muster_text::{
    Value,
    decode::{Context, Decode, Keyed, Ordered, Spanned, object},
    keys, words,
    yaml::{Kind, Node},
};
use serde_json::json;

keys! {
    /// One entry of `fixtures`.
    pub struct FixtureEntry ("a fixture") {
        /// The check that runs before this one: its name, or `build.yaml#build` for one in a file that `-c` does not have to
        /// name. It needs no `valid_systems`: it runs in the same place as the checks that use it.
        @required check: Spanned<String>,
        /// How often it runs: once for each session, partition, environment of a partition, or case that uses it (`test`).
        /// Default: test.
        scope: FixtureScope,
        /// What to do with several variants of it: `fork` makes a case of this check for each, `join` gives one case a list of
        /// all of them. Default: fork.
        action: FixtureAction,
        /// Values of its parameters, which select variants (a value, or a list of them), and of its variables.
        with: Ordered<Node>,
    }
    instead {
        "variables" => "write them under `with`",
        "variants" => "write the wanted values of its parameters under `with`",
        "name" => "the key of the entry is its name; write `check` for the check that runs",
    }
}

words! {
    /// The scope of a fixture, which says how often it runs.
    #[derive(Default)]
    pub enum FixtureScope {
        /// Runs once.
        Session = "session",
        /// Runs once a partition.
        Partition = "partition",
        /// Runs once a partition and environment.
        Environment = "environment",
        /// Runs once a case.
        #[default]
        Test = "test",
    }
}

words! {
    /// The treatment of several variants of a fixture.
    #[derive(Default)]
    pub enum FixtureAction {
        /// Each has a case of its own that uses it.
        #[default]
        Fork = "fork",
        /// One case uses them all.
        Join = "join",
    }
}

/// One entry of `depends_on`: a check's name, or a mapping that also says how cases are paired.
#[derive(Debug, Clone)]
pub struct Dependency {
    pub check: Spanned<String>,
    pub how: How,
}

keys! {
    /// The long form of an entry of `depends_on`.
    pub struct LongDependency ("a dependency") {
        /// The check that must have passed.
        @required check: Spanned<String>,
        /// Which of its cases, of those with equal values of common parameters: those of the same partition and environment
        /// (`by_case`), of the same partition (`by_part`), of the same environment (`by_env`), or all (`fully`). Default:
        /// `by_case`.
        how: How,
    }
}

words! {
    /// The cases of a check that another one depends on.
    #[derive(Default)]
    pub enum How {
        /// All cases.
        Fully = "fully",
        /// The cases of the same partition.
        ByPart = "by_part",
        /// The cases of the same environment.
        ByEnv = "by_env",
        /// The cases of the same partition and environment.
        #[default]
        ByCase = "by_case",
    }
}

impl Decode for Dependency {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        if let Kind::Scalar { .. } = context.kind(node)? {
            return Some(Self { check: Spanned::decode(node, context)?, how: How::default() });
        }
        let LongDependency { check, how, .. } = object(node, context)?;
        Some(Self { check: check?, how: how.unwrap_or_default() })
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "type": "string" }, LongDependency::TABLE.schema()] })
    }
}
