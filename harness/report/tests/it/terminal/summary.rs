//! The end of a session.

use crate::sample::{after, case, colored, screen, session, with, with_only};
use insta::assert_snapshot;
use muster_core::result::{CaseResult, Outcome, Phase};
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
    assert_snapshot!(with_only(&["p2p"], |results| summary(results, after(100.0))), @"1 case in 1m34s: 1 skip");
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
