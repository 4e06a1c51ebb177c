//! The position of the judge, so that a judge that is stopped can be reported with it.

use super::{Judgement, sanity::question, words::quote};
use crate::{
    job::stdout::Section,
    result::Phase,
    rules::{Rules, perf::Source, sanity::Claim},
};
use muster_text::expr::Effort;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The cause of a case whose judge was stopped, whatever it was doing.
pub const TOO_LONG: &str = "judging took longer than judge_limit";

/// The position of the judge. Numbers are places in the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Position {
    #[default]
    Rules,
    /// A sanity item: where its pattern is searched for, if it is.
    Sanity(usize, Option<usize>),
    /// A performance variable, likewise.
    Variable(usize, Option<usize>),
    /// A value for other cases, in the order of the names.
    Output(usize),
}

/// Follows a judge, which cannot be stopped from within.
pub struct Monitor<'w> {
    /// Called before each step that may take long.
    pub report: &'w dyn Fn(Position),
    /// The limits of each expression.
    pub effort: Arc<Effort>,
}

impl Default for Monitor<'_> {
    fn default() -> Self {
        Self { report: &|_| {}, effort: Arc::default() }
    }
}

impl Position {
    /// The judgement of a judge that was stopped here. `sections` are those of the logs.
    pub fn too_long(self, rules: &Rules, sections: &[Section]) -> Judgement {
        let (phase, doing) = self.doing(rules, sections);
        Judgement::error(phase, format!("{TOO_LONG}{doing}"))
    }

    /// The phase, and what the judge was doing: `: it was evaluating ..`.
    pub fn doing(self, rules: &Rules, sections: &[Section]) -> (Phase, String) {
        let searching = |pattern: &str, section: Option<usize>, whose: &str| {
            let pattern = quote(pattern);
            match section.map(|section| sections.get(section).map_or_else(String::new, |section| section.origin.title())) {
                Some(section) => format!(": it was searching {section} for {pattern}{whose}"),
                None => format!(": it was reading the pattern {pattern}{whose}"),
            }
        };
        let evaluating = |expression: &str, whose: &str| format!(": it was evaluating {}{whose}", quote(expression));
        match self {
            Self::Rules => (Phase::Sanity, String::new()),
            Self::Sanity(item, section) => {
                let doing = rules.sanity.get(item).map_or_else(String::new, |item| match (&item.claim, question(&item.claim)) {
                    (Claim::Assert { expression }, _) => evaluating(expression, ""),
                    (_, Some((pattern, _))) => searching(pattern, section, ""),
                    _ => String::new(),
                });
                (Phase::Sanity, doing)
            }
            Self::Variable(variable, section) => {
                let doing = rules.perf_variables.get(variable).map_or_else(String::new, |variable| {
                    let whose = format!(", for `{}`", variable.name);
                    match &variable.source {
                        Source::Value(expression) => evaluating(expression, &whose),
                        Source::Pattern { pattern, .. } => searching(pattern, section, &whose),
                    }
                });
                (Phase::Performance, doing)
            }
            Self::Output(output) => {
                let wanted = rules.planned_outputs.iter().flat_map(|planned| &planned.outputs).nth(output);
                let whose = |name: &str| format!(", for the output `{name}`");
                (Phase::Sanity, wanted.map_or_else(String::new, |(name, pattern)| searching(pattern, Some(0), &whose(name))))
            }
        }
    }
}
