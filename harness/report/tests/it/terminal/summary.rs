//! The end of a session.

use crate::sample::{after, case, colored, screen, session, with, with_only};
use insta::assert_snapshot;
use muster_core::{
    decisions::{
        attempts::{Attempts, KEPT},
        rounds,
    },
    result::{CaseResult, Counting, Failure, Outcome, Phase, Session},
};
use muster_report::{
    Results,
    summary::{kept, leftovers, summary},
};

#[test]
fn a_summary_counts_outcomes_and_time() {
    assert_snapshot!(with(|results| summary(results, after(100.0))), @"
    13 cases in 1m34s: 4 pass, 1 abort, 1 error{config}, 1 fail{performance},
      1 fail{sanity}, 1 invalid{metrics}, 1 skip, 1 timeout{pending}, 1 xfail,
      1 not run
    the cases took 5m31s in all; the longest 38.4s: soak /c06f543b @eidf:gpu-service+default
    1 case retried, 1 of them flaky
    ");
    assert_snapshot!(with_only(&["p2p"], |results| summary(results, after(100.0))), @"
    1 case in 1m34s: 1 skip
    nothing ran: 1 case skipped, which proves nothing
    ");
}

#[test]
fn what_was_left_behind_is_named() {
    assert_snapshot!(with(|results| leftovers(results, &screen(80))), @"
    LEFT BEHIND: 1 thing could not be removed
      soak /c06f543b @eidf:gpu-service+default
          pod eidf095ns/rfm-kqjzmvxa-0: kubectl -n eidf095ns delete pod rfm-kqjzmvxa-0
    ");
    assert_snapshot!(with_only(&["soak"], |results| leftovers(results, &colored(80))).replace('\x1b', "^"), @"
    ^[31mLEFT BEHIND: 1 thing could not be removed^[0m
      soak /c06f543b @eidf:gpu-service+default
          pod eidf095ns/rfm-kqjzmvxa-0: kubectl -n eidf095ns delete pod rfm-kqjzmvxa-0
    ");
    assert_eq!(with_only(&["nbody"], |results| leftovers(results, &screen(80))), "");
}

#[test]
fn what_others_were_given_and_is_kept_is_named_up_to_a_number() {
    let of = |count: usize| {
        let kept_case = |n: usize| CaseResult {
            delete: vec![format!("rm -r /stage/build{n}")],
            ..case(&format!("build{n}"), &[], Outcome::Pass, Phase::Sanity)
        };
        let mut cases: Vec<_> = (0..count).map(kept_case).collect();
        cases.push(CaseResult { delete: vec!["rm -r /stage/bad".into()], ..case("bad", &[], Outcome::Abort, Phase::Run) });
        // It was skipped when it was judged.
        cases.push(CaseResult { delete: vec!["rm -r /stage/late".into()], ..case("late", &[], Outcome::Skip, Phase::Sanity) });
        kept(&Results::new(&session(), &cases), &screen(80))
    };
    assert_eq!(of(0), "");
    assert_snapshot!(of(2), @"
    KEPT: what 2 cases left behind
      build0 /748d9462 @eidf:gpu-service+default
          rm -r /stage/build0
      build1 /6a6203f8 @eidf:gpu-service+default
          rm -r /stage/build1
    ");
    assert!(of(12).ends_with("  ... and 2 more: see `delete` in the run report\n"));
}

#[test]
fn attempts_of_a_long_session_that_are_not_shown_are_counted() {
    let session = Session { counting: Counting::Every, num_cases: 2, ..session() };
    let attempt =
        |check: &str, attempt: u32, outcome: Outcome| CaseResult { attempt, ..case(check, &[], outcome, Phase::Sanity) };
    let fails = || Outcome::Fail(Failure::Sanity);
    let rounds = 1..=u32::try_from(KEPT).unwrap() + 4;
    let both = rounds.flat_map(|round| [attempt("good", round, Outcome::Pass), attempt("bad", round, fails())]);
    let last = [attempt("bad", 90_000, Outcome::Pass)];
    let attempts = Attempts::of(session.counting, both.chain(last));
    let results = Results::of(&session, &attempts);
    assert_snapshot!(summary(&results, after(100.0)), @"
    20009 cases in 1m34s: 10005 pass, 10004 fail{sanity}
    the cases took 2d21h28m32s in all; the longest 12.5s: bad /2f05d4b6 @eidf:gpu-service+default
    7 earlier attempts are only counted here: the results database has them
    ");
    assert_eq!(results.attempts().len(), 2 * KEPT + 2);
    assert_eq!(rounds::end(&session, [], results.dropped()).0, 1, "one of them failed");
}
