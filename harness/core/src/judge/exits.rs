//! Exit statuses: judged first, because a workload reports its failure with them.

use crate::{
    job::scheduler::{Ending, Exit, SectionExit},
    rules::sanity::{Assertion, Claim, ExitRule},
};
use std::fmt::Write;

/// What is wrong with the exits, in one sentence; `None` if every section ended as it may.
///
/// Without a rule of its own a check wants 0 everywhere. A listed status covers the signal that a shell reports so:
/// 137 is a kill. If the exit of a section is unknown, or a 0 that is no success, only `exit: any` accepts it.
pub(super) fn failure(sanity: &[Assertion], ending: &Ending) -> Option<String> {
    let rules: Vec<_> = sanity.iter().filter_map(rule).collect();
    let fine = |exit: Exit| match rules.as_slice() {
        [] => exit.status() == Some(0),
        rules => rules.iter().any(|(rule, _)| allows(rule, exit)),
    };
    let failed: Vec<_> = ending.exits.iter().filter(|section| !fine(section.exit)).collect();
    let first = failed.first()?;
    let mut sentence = describe(first, ending.exits.len() > 1);
    if failed.len() > 1 {
        let _ = write!(sentence, " (and {} more of {} sections)", failed.len() - 1, ending.exits.len());
    }
    if let Some(cause) = &ending.cause {
        let _ = write!(sentence, ": {cause}");
    }
    Some(match rules.iter().find_map(|(_, msg)| *msg) {
        Some(msg) => format!("{msg} ({sentence})"),
        None => sentence,
    })
}

fn rule(assertion: &Assertion) -> Option<(&ExitRule, Option<&str>)> {
    match &assertion.claim {
        Claim::Exit(rule) => Some((rule, assertion.msg.as_deref())),
        Claim::Found { .. } | Claim::NotFound { .. } | Claim::Assert { .. } => None,
    }
}

fn allows(rule: &ExitRule, exit: Exit) -> bool {
    match rule {
        ExitRule::Any => true,
        ExitRule::OneOf(statuses) => exit.status().is_some_and(|status| statuses.contains(&status)),
    }
}

fn describe(section: &SectionExit, name_it: bool) -> String {
    let mut text = section.exit.to_string();
    if name_it {
        let _ = write!(text, " in {}", section.section);
    }
    if let Some(node) = &section.node {
        let _ = write!(text, " on {node}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_text::time::Timestamp;

    fn section(name: &str, node: Option<&str>, exit: Exit) -> SectionExit {
        SectionExit { section: name.into(), node: node.map(str::to_owned), exit, ..SectionExit::default() }
    }

    fn ending(exits: &[SectionExit], cause: Option<&str>) -> Ending {
        Ending { ended: Timestamp(1), exits: exits.to_vec(), cause: cause.map(str::to_owned), ..Ending::default() }
    }

    fn one_of(statuses: &[i32]) -> Assertion {
        Assertion { claim: Claim::Exit(ExitRule::OneOf(statuses.to_vec())), file: None, msg: None }
    }

    #[test]
    fn every_section_has_to_end_as_it_may() {
        use Exit::{Code, NoSuccess, Signal, Unknown};
        let any = || Assertion { claim: Claim::Exit(ExitRule::Any), file: None, msg: None };
        let other = || Assertion { claim: Claim::NotFound { pattern: "x".into() }, file: None, msg: None };
        let rows: [(Vec<Assertion>, Vec<Exit>, bool); 18] = [
            (vec![], vec![Code(0)], true),
            (vec![other()], vec![Code(0), Code(0)], true),
            (vec![], vec![Code(0), Code(7)], false),
            (vec![], vec![Signal(9)], false),
            (vec![], vec![Unknown], false),
            (vec![], vec![], true),
            (vec![one_of(&[7])], vec![Code(7)], true),
            (vec![one_of(&[7])], vec![Code(0)], false),
            (vec![one_of(&[0, 3])], vec![Code(3), Code(0)], true),
            (vec![one_of(&[137])], vec![Signal(9)], true),
            (vec![one_of(&[137])], vec![Code(137)], true),
            (vec![one_of(&[9])], vec![Signal(9)], false),
            (vec![one_of(&[0]), one_of(&[1])], vec![Code(1)], true),
            (vec![one_of(&[0])], vec![Unknown], false),
            (vec![], vec![Code(0), NoSuccess], false),
            (vec![one_of(&[0, 137])], vec![NoSuccess], false),
            (vec![any()], vec![NoSuccess], true),
            (vec![any()], vec![Code(255), Signal(11), Unknown], true),
        ];
        for (rules, exits, fine) in rows {
            let sections: Vec<_> = exits.iter().map(|exit| section("s", None, *exit)).collect();
            assert_eq!(failure(&rules, &ending(&sections, None)).is_none(), fine, "{rules:?} {exits:?}");
        }
    }

    #[test]
    fn a_bad_exit_is_reported_with_section_and_node() {
        let say = |rules: &[Assertion], exits: &[SectionExit], cause| failure(rules, &ending(exits, cause)).unwrap();
        let ok = || section("pod-a", Some("node01"), Exit::Code(0));
        let bad = || section("pod-b", Some("node02"), Exit::Code(7));
        insta::assert_snapshot!(say(&[], &[section("stdout", None, Exit::Code(7))], None), @"exit status 7");
        insta::assert_snapshot!(say(&[], &[section("stdout", Some("node01"), Exit::Signal(9))], None), @"killed by signal 9 (SIGKILL) on node01");
        insta::assert_snapshot!(say(&[], &[section("stdout", None, Exit::Signal(34))], None), @"killed by signal 34");
        insta::assert_snapshot!(say(&[], &[section("stdout", None, Exit::Unknown)], None), @"ended with unknown exit status");
        insta::assert_snapshot!(say(&[], &[ok(), bad()], None), @"exit status 7 in pod-b on node02");
        insta::assert_snapshot!(say(&[], &[bad(), ok(), bad(), bad()], Some("OOMKilled: used more than 4Gi")), @"exit status 7 in pod-b on node02 (and 2 more of 4 sections): OOMKilled: used more than 4Gi");
        let with_msg = Assertion { msg: Some("the solver must end with 3".into()), ..one_of(&[3]) };
        insta::assert_snapshot!(say(&[with_msg], &[bad()], None), @"the solver must end with 3 (exit status 7 on node02)");
    }
}
