//! The failure report.

use crate::sample::{case, colored, screen, session, with, with_only};
use insta::assert_snapshot;
use muster_core::{
    job::scheduler::{Exit, SectionExit},
    result::{CaseResult, Failure, Outcome, Phase},
};
use muster_report::{Results, failure::report};

#[test]
fn a_failure_is_told_in_one_block() {
    assert_snapshot!(with(|results| report(results, &["-C".into(), "my site.yaml".into()], &screen(80))), @"
    ============================= SUMMARY OF FAILURES ==============================
    FAILURE INFO for babelstream /529bd767 (1/6)
      * Place:           eidf:gpu-service+default (k8s)
      * File:            checks/babelstream/check.yaml
      * Maintainers:     hpc-support
      * Duration:        36.3s
      * Failing phase:   launch
      * Outcome:         error{config}
      * Reason:          error (config) during 'launch': namespace 'eidf095n' does
                         not exist
      * Rerun with:
          muster -C 'my site.yaml' -c /home/ada/site/checks/babelstream/check.yaml -n /529bd767 --system eidf:gpu-service -p '^default$' -r
    --------------------------------------------------------------------------------
    FAILURE INFO for hpcg /330e31e9 (2/6)
      * Place:           eidf:gpu-service+default (k8s)
      * File:            checks/hpcg/check.yaml
      * Maintainers:     hpc-support
      * Identifier:      kqjzmvxa (attempt 1)
      * Duration:        34.1s
      * Failing phase:   run
      * Outcome:         timeout{pending}
      * Reason:          waited longer than max_pending_time during 'run': 0/12
                         nodes are available: 12 Insufficient nvidia.com/gpu
      * Rerun with:
          muster -C 'my site.yaml' -c /home/ada/site/checks/hpcg/check.yaml -n /330e31e9 --system eidf:gpu-service -p '^default$' -r
    --------------------------------------------------------------------------------
    FAILURE INFO for hpl /74fb67c8 (3/6)
      * Place:           eidf:gpu-service+default (k8s)
      * File:            checks/hpl/check.yaml
      * Maintainers:     hpc-support
      * Identifier:      kqjzmvxa (attempt 1)
      * Duration:        27.6s
      * Failing phase:   performance
      * Outcome:         invalid{metrics}
      * Reason:          cannot be judged (metrics) during 'performance': variable
                         'bandwidth' matched nothing
      * Figures out of bounds:
          errors: NaN (r:0, u:0) [fail]
      * Rerun with:
          muster -C 'my site.yaml' -c /home/ada/site/checks/hpl/check.yaml -n /74fb67c8 --system eidf:gpu-service -p '^default$' -r
    --------------------------------------------------------------------------------
    FAILURE INFO for ior %fs.dir=/lustre/my dir /29b785a6 (4/6)
      * Description:     Writes and reads one file for each process through MPI-IO
                         and compares the bandwidth with what the file system showed
                         in the acceptance test
      * Place:           eidf:gpu-service+default (k8s)
      * File:            my checks/ior.check.yaml
      * Maintainers:     hpc-support
      * Identifier:      kqjzmvxa (attempt 1)
      * Nodes:           cpu-1
      * Stage folder:    stage/eidf/gpu-service/default/ior it's
      * Duration:        23.3s
      * Failing phase:   sanity
      * Outcome:         fail{sanity}
      * Reason:          failed during 'sanity': pattern 'Max Write: .* MiB/sec' was
                         not found in any of 2 sections
      * Exits:
          ior-1 on cpu-1: killed by signal 9 (SIGKILL)
      * Warning:         the log has no last line end
      * Last lines of the log:
          | write  10%
          | write  20%
          | ERROR: no space left on device
      * Rerun with:
          muster -C 'my site.yaml' -c '/home/ada/site/my checks/ior.check.yaml' -n /29b785a6 --system eidf:gpu-service -p '^default$' -r
    --------------------------------------------------------------------------------
    FAILURE INFO for nbody_pods /ea0063fb (5/6)
      * Place:           eidf:gpu-service+default (k8s)
      * File:            checks/nbody_pods/check.yaml
      * Maintainers:     hpc-support
      * Identifier:      kqjzmvxa (attempt 1)
      * Nodes:           gpu-16, gpu-17, gpu-18
      * Stage folder:    stage/eidf/gpu-service/default/nbody_pods_5a1b2c3d4e5f6071
      * Duration:        19.0s
      * Failing phase:   performance
      * Outcome:         fail{performance}
      * Reason:          failed during 'performance': node_flops on gpu-18: 1893.4
                         GFLOP/s, expected 2480 (l:2356)
      * Figures out of bounds:
          node_flops gpu-18: 1893.4 GFLOP/s (r:2480, l:2356) [fail]
      * Look further:
          kubectl --context eidf-general -n eidf095ns describe pods -l rfm=kqjzmvxa
      * Delete what was kept:
          kubectl --context eidf-general -n eidf095ns delete jobs,pods -l rfm=kqjzmvxa
      * Rerun with:
          muster -C 'my site.yaml' -c /home/ada/site/checks/nbody_pods/check.yaml -n /ea0063fb --system eidf:gpu-service -p '^default$' -r
    --------------------------------------------------------------------------------
    FAILURE INFO for soak /c06f543b (6/6)
      * Place:           eidf:gpu-service+default (k8s)
      * File:            checks/soak/check.yaml
      * Maintainers:     hpc-support
      * Identifier:      kqjzmvxa (attempt 1)
      * Duration:        38.4s
      * Failing phase:   run
      * Outcome:         abort
      * Reason:          aborted during 'run': interrupted by SIGINT
      * Left behind:
          pod eidf095ns/rfm-kqjzmvxa-0: kubectl -n eidf095ns delete pod rfm-kqjzmvxa-0
      * Rerun with:
          muster -C 'my site.yaml' -c /home/ada/site/checks/soak/check.yaml -n /c06f543b --system eidf:gpu-service -p '^default$' -r
    ================================================================================
    ");
}

#[test]
fn a_wide_screen_breaks_less_prose() {
    assert_snapshot!(with_only(&["ior"], |results| report(results, &[], &screen(120))), @"
    ============================= SUMMARY OF FAILURES ==============================
    FAILURE INFO for ior %fs.dir=/lustre/my dir /29b785a6 (1/1)
      * Description:     Writes and reads one file for each process through MPI-IO and compares the bandwidth with what the
                         file system showed in the acceptance test
      * Place:           eidf:gpu-service+default (k8s)
      * File:            my checks/ior.check.yaml
      * Maintainers:     hpc-support
      * Identifier:      kqjzmvxa (attempt 1)
      * Nodes:           cpu-1
      * Stage folder:    stage/eidf/gpu-service/default/ior it's
      * Duration:        23.3s
      * Failing phase:   sanity
      * Outcome:         fail{sanity}
      * Reason:          failed during 'sanity': pattern 'Max Write: .* MiB/sec' was not found in any of 2 sections
      * Exits:
          ior-1 on cpu-1: killed by signal 9 (SIGKILL)
      * Warning:         the log has no last line end
      * Last lines of the log:
          | write  10%
          | write  20%
          | ERROR: no space left on device
      * Rerun with:
          muster -c '/home/ada/site/my checks/ior.check.yaml' -n /29b785a6 --system eidf:gpu-service -p '^default$' -r
    ================================================================================
    ");
}

#[test]
fn colours_mark_titles_and_figures() {
    let text = with_only(&["nbody_pods"], |results| report(results, &[], &colored(80)));
    assert_snapshot!(text.replace('\x1b', "^"), @"
    ^[1m============================= SUMMARY OF FAILURES ==============================^[0m
    ^[31mFAILURE INFO for nbody_pods /ea0063fb (1/1)^[0m
      * Place:           eidf:gpu-service+default (k8s)
      * File:            checks/nbody_pods/check.yaml
      * Maintainers:     hpc-support
      * Identifier:      kqjzmvxa (attempt 1)
      * Nodes:           gpu-16, gpu-17, gpu-18
      * Stage folder:    stage/eidf/gpu-service/default/nbody_pods_5a1b2c3d4e5f6071
      * Duration:        19.0s
      * Failing phase:   performance
      * Outcome:         fail{performance}
      * Reason:          failed during 'performance': node_flops on gpu-18: 1893.4
                         GFLOP/s, expected 2480 (l:2356)
      * Figures out of bounds:
          node_flops gpu-18: ^[31m1893.4 GFLOP/s^[0m (r:2480, l:2356) ^[31m[fail]^[0m
      * Look further:
          kubectl --context eidf-general -n eidf095ns describe pods -l rfm=kqjzmvxa
      * Delete what was kept:
          kubectl --context eidf-general -n eidf095ns delete jobs,pods -l rfm=kqjzmvxa
      * Rerun with:
          muster -c /home/ada/site/checks/nbody_pods/check.yaml -n /ea0063fb --system eidf:gpu-service -p '^default$' -r
    ================================================================================
    ");
}

#[test]
fn without_a_failure_there_is_no_report() {
    assert_eq!(with_only(&["nbody", "smoke", "p2p", "stream"], |results| report(results, &[], &screen(80))), "");
}

#[test]
fn cases_that_were_aborted_before_they_began_are_only_counted() {
    let aborted = |number: u32| case(&format!("soak{number}"), &[], Outcome::Abort, Phase::Plan);
    let cases: Vec<_> = (0..12).map(aborted).collect();
    let session = session();
    assert_snapshot!(report(&Results::new(&session, &cases), &[], &screen(80)), @"
    ============================= SUMMARY OF FAILURES ==============================
    12 cases aborted, nothing is left of them
    ================================================================================
    ");
}

#[test]
fn cases_that_were_aborted_while_they_ran_are_counted_too() {
    let ran = |number: u32| {
        let mut case = case(&format!("soak{number}"), &[], Outcome::Abort, Phase::Run);
        case.delete = vec![format!("rm -r stage/soak{number}")];
        case
    };
    let cases: Vec<_> = (0..3).map(ran).chain([case("late", &[], Outcome::Abort, Phase::Plan)]).collect();
    let text = report(&Results::new(&session(), &cases), &[], &screen(80));
    assert!(text.contains("\n4 cases aborted; 3 had started, and their stage folders are kept\n"), "{text}");
    assert!(!text.contains("FAILURE INFO"), "{text}");
}

#[test]
fn what_looks_like_a_secret_is_masked() {
    let cases = [CaseResult {
        cause: Some("exit status 1: db_password=hunter2x".to_owned()),
        warnings: vec!["Authorization: Bearer hunter2xhunter2x".to_owned()],
        log_tail: Some("connecting\nAuthorization: Token hunter2x\nDB_PASSWORD=hunter2x\n".to_owned()),
        ..case("secret", &[], Outcome::Fail(Failure::Workload), Phase::Run)
    }];
    let session = session();
    let text = report(&Results::new(&session, &cases), &[], &screen(80));
    assert!(text.contains("DB_PASSWORD=***") && text.contains("| connecting") && !text.contains("hunter2x"), "{text}");
}

#[test]
fn a_thousand_pods_do_not_fill_the_screen() {
    let exit = |number| SectionExit { section: format!("pod-{number}"), exit: Exit::Code(7), ..SectionExit::default() };
    let cases = [CaseResult {
        exits: (0..1000).map(exit).collect(),
        log_tail: Some((0..1000).map(|number| format!("{number}%\r")).collect::<Vec<_>>().concat()),
        ..case("wide", &[], Outcome::Fail(Failure::Workload), Phase::Run)
    }];
    let session = session();
    let text = report(&Results::new(&session, &cases), &[], &screen(80));
    assert!(text.contains("... and 990 more") && text.contains("| 999%"), "{text}");
    assert!(text.lines().count() < 60, "{text}");
}
