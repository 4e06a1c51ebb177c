//! What is printed while a session runs.

use crate::sample::{after, case, cases, colored, screen, session, with, with_only};
use insta::assert_snapshot;
use muster_core::{
    job::{scheduler::Disruption, workload::Clock},
    result::{CaseResult, Failure, Fault, Invalid, Outcome, Phase, Session},
};
use muster_report::{
    Counts, Paint, Results,
    progress::{Header, ended, finished, header, started, verdict_line},
};

#[test]
fn a_header_says_what_runs_where() {
    let session = session();
    let of = Header {
        session: &session,
        num_checks: 12,
        stage: "/home/ada/site/stage",
        output: "/home/ada/site/output",
        database: "/home/ada/.local/state/muster/results.db",
    };
    assert_snapshot!(header(&of, &screen(80)), @"
    [Muster Setup]
      version:           0.1.0
      command:           muster -c 'my checks/' -r --performance-report
      launched by:       ada@login-1
      working directory: /home/ada/site
      system:            eidf
      session:           20260105-070312-qkzvaxpe
      stage directory:   /home/ada/site/stage
      output directory:  /home/ada/site/output
      results database:  /home/ada/.local/state/muster/results.db

    [==========] Running 12 check(s), 13 test case(s)
    [==========] Started on 2026-01-05 07:03:12 +00:00

    [----------] start processing checks
    ");
}

#[test]
fn cases_are_told_in_the_original_brackets() {
    let cases = cases();
    let total = u32::try_from(cases.len()).unwrap();
    let mut text = String::new();
    for (number, case) in (1..).zip(&cases) {
        text += &started(&case.name, Paint::OFF);
        text += &finished(case, number, total, Paint::OFF);
    }
    assert_snapshot!(text, @"
    [ RUN      ] p2p /992b18c0 @eidf:gpu-service+default
    [     SKIP ] (1/13) p2p /992b18c0 @eidf:gpu-service+default
    ==> skipped: partition.devices.gpu.num_devices is not known here
    [ RUN      ] nbody %num_bodies=1024000 /99a18000 @eidf:gpu-service+default
    [       OK ] (2/13) nbody %num_bodies=1024000 /99a18000 @eidf:gpu-service+default (14.7s)
    P: flops: 7439.68 GFLOP/s (r:7440, l:6696, u:8184)
    [ RUN      ] smoke /04d588cb @eidf:gpu-service+default
    [     FAIL ] (3/13) smoke /04d588cb @eidf:gpu-service+default (16.8s)
    ==> the workload failed during 'run': exit status 7
    [ RUN      ] nbody_pods /ea0063fb @eidf:gpu-service+default
    [     FAIL ] (4/13) nbody_pods /ea0063fb @eidf:gpu-service+default (19.0s)
    P: node_flops gpu-16: 2481.12 GFLOP/s (r:2480, l:2356)
    P: node_flops gpu-17: 2479.5 GFLOP/s (r:2480, l:2356)
    P: node_flops gpu-18: 1893.4 GFLOP/s (r:2480, l:2356) [fail]
    ==> failed during 'performance': node_flops on gpu-18: 1893.4 GFLOP/s, expected 2480 (l:2356)
    ==> kept in stage/eidf/gpu-service/default/nbody_pods_5a1b2c3d4e5f6071
    [ RUN      ] osu_latency /ddd5a073 @eidf:gpu-service+default
    [       OK ] (5/13) osu_latency /ddd5a073 @eidf:gpu-service+default (21.1s)
    P: latency[8]: 1.5 us (r:1.4, u:1.68)
    P: latency[1048576]: 110 us (r:100, u:120) [warn]
    P: drift: -100.5 ppm (r:-100, l:-101, u:-98)
    P: lost: 0 packets (r:0, l:-2, u:5)
    P: sent: 1073741824
    W: latency[1048576] is outside its warn band
    [ RUN      ] ior %fs.dir=/lustre/my dir /29b785a6 @eidf:gpu-service+default
    [     FAIL ] (6/13) ior %fs.dir=/lustre/my dir /29b785a6 @eidf:gpu-service+default (23.3s)
    W: the log has no last line end
    ==> failed during 'sanity': pattern 'Max Write: .* MiB/sec' was not found in any of 2 sections
    ==> kept in stage/eidf/gpu-service/default/ior it's
    [ RUN      ] nbody %num_bodies=512000 /798275c1 @eidf:gpu-service+default
    [       OK ] (7/13) nbody %num_bodies=512000 /798275c1 @eidf:gpu-service+default (25.5s)
    P: flops: 7011.25 GFLOP/s (r:7440, l:6696, u:8184)
    [ RUN      ] hpl /74fb67c8 @eidf:gpu-service+default
    [  INVALID ] (8/13) hpl /74fb67c8 @eidf:gpu-service+default (27.6s)
    P: errors: NaN (r:0, u:0) [fail]
    ==> cannot be judged (metrics) during 'performance': variable 'bandwidth' matched nothing
    [ RUN      ] smoke /04d588cb @eidf:gpu-service+default
    [       OK ] (9/13) smoke /04d588cb @eidf:gpu-service+default (attempt 2) (29.8s)
    [ RUN      ] stream /dca83e71 @eidf:gpu-service+default
    [    XFAIL ] (10/13) stream /dca83e71 @eidf:gpu-service+default (31.9s)
    P: copy: 9.1 GB/s (r:12, l:10.8, u:13.2) [xfail: DIMM 4 is on order]
    ==> failed as expected during 'performance': copy: 9.1 GB/s, expected 12
    [ RUN      ] hpcg /330e31e9 @eidf:gpu-service+default
    [  TIMEOUT ] (11/13) hpcg /330e31e9 @eidf:gpu-service+default (34.1s)
    ==> waited longer than max_pending_time during 'run': 0/12 nodes are available: 12 Insufficient nvidia.com/gpu
    [ RUN      ] babelstream /529bd767 @eidf:gpu-service+default
    [    ERROR ] (12/13) babelstream /529bd767 @eidf:gpu-service+default (36.3s)
    ==> error (config) during 'launch': namespace 'eidf095n' does not exist
    [ RUN      ] soak /c06f543b @eidf:gpu-service+default
    [    ABORT ] (13/13) soak /c06f543b @eidf:gpu-service+default (38.4s)
    ==> aborted during 'run': interrupted by SIGINT
    ==> left behind: pod eidf095ns/rfm-kqjzmvxa-0: kubectl -n eidf095ns delete pod rfm-kqjzmvxa-0
    ");
}

#[test]
fn every_outcome_has_a_bracket_of_the_same_width_and_a_sentence() {
    let outcomes = [
        (Outcome::Pass, Phase::Performance),
        (Outcome::Skip, Phase::Plan),
        (Outcome::Xfail, Phase::Sanity),
        (Outcome::Xpass, Phase::Performance),
        (Outcome::Fail(Failure::Sanity), Phase::Sanity),
        (Outcome::Fail(Failure::Performance), Phase::Performance),
        (Outcome::Fail(Failure::Workload), Phase::Run),
        (Outcome::Invalid(Invalid::Logs), Phase::Sanity),
        (Outcome::Invalid(Invalid::Metrics), Phase::Performance),
        (Outcome::Invalid(Invalid::Validity), Phase::Sanity),
        (Outcome::Timeout(Clock::Pending), Phase::Run),
        (Outcome::Timeout(Clock::Run), Phase::Run),
        (Outcome::Disrupted(Disruption::Preempted), Phase::Run),
        (Outcome::Disrupted(Disruption::Evicted), Phase::Run),
        (Outcome::Disrupted(Disruption::Node), Phase::Run),
        (Outcome::Disrupted(Disruption::Deleted), Phase::Run),
        (Outcome::Error(Fault::Config), Phase::Plan),
        (Outcome::Error(Fault::Infra), Phase::Launch),
        (Outcome::Abort, Phase::Run),
        (Outcome::Stopped("enough\n\x1b[2J".into()), Phase::Run),
    ];
    let text: String = outcomes
        .map(|(outcome, phase)| {
            let case = CaseResult { cause: Some("why".into()), ..case("t", &[], outcome, phase) };
            let text = finished(&case, 1, 1, Paint::OFF);
            assert_eq!(text.find("] (1/1) t /"), Some(11), "{text}");
            text
        })
        .concat();
    assert_snapshot!(text, @"
    [       OK ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    [     SKIP ] (1/1) t /e3b98a4d @eidf:gpu-service+default
    ==> skipped: why
    [    XFAIL ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> failed as expected during 'sanity': why
    [    XPASS ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> passed although a failure was expected during 'performance': why
    [     FAIL ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> failed during 'sanity': why
    [     FAIL ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> failed during 'performance': why
    [     FAIL ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> the workload failed during 'run': why
    [  INVALID ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> cannot be judged (logs) during 'sanity': why
    [  INVALID ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> cannot be judged (metrics) during 'performance': why
    [  INVALID ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> cannot be judged (validity) during 'sanity': why
    [  TIMEOUT ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> waited longer than max_pending_time during 'run': why
    [  TIMEOUT ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> ran longer than time_limit during 'run': why
    [DISRUPTED ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> was ended by the site (preempted) during 'run': why
    [DISRUPTED ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> was ended by the site (evicted) during 'run': why
    [DISRUPTED ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> was ended by the site (node) during 'run': why
    [DISRUPTED ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> was ended by the site (deleted) during 'run': why
    [    ERROR ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> error (config) during 'plan': why
    [    ERROR ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> error (infra) during 'launch': why
    [    ABORT ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> aborted during 'run': why
    [  STOPPED ] (1/1) t /e3b98a4d @eidf:gpu-service+default (12.5s)
    ==> stopped by the rule 'enough' during 'run': why
    ");
}

#[test]
fn colours_say_how_a_case_ended() {
    let text = with_only(&["nbody_pods", "stream", "osu_latency", "soak"], |results| {
        let lines = results.attempts().iter().map(|case| finished(case, 1, 4, Paint::ON));
        started(&results.attempts()[0].name, Paint::ON) + &lines.collect::<String>() + &ended(results, after(94.25), &colored(80))
    });
    assert_snapshot!(text.replace('\x1b', "^"), @"
    [ ^[2mRUN     ^[0m ] nbody_pods /ea0063fb @eidf:gpu-service+default
    [^[31m     FAIL^[0m ] (1/4) nbody_pods /ea0063fb @eidf:gpu-service+default (19.0s)
    P: node_flops gpu-16: ^[32m2481.12 GFLOP/s^[0m (r:2480, l:2356)
    P: node_flops gpu-17: ^[32m2479.5 GFLOP/s^[0m (r:2480, l:2356)
    P: node_flops gpu-18: ^[31m1893.4 GFLOP/s^[0m (r:2480, l:2356) ^[31m[fail]^[0m
    ==> failed during 'performance': node_flops on gpu-18: 1893.4 GFLOP/s, expected 2480 (l:2356)
    ==> kept in stage/eidf/gpu-service/default/nbody_pods_5a1b2c3d4e5f6071
    [^[32m       OK^[0m ] (1/4) osu_latency /ddd5a073 @eidf:gpu-service+default (21.1s)
    P: latency[8]: ^[32m1.5 us^[0m (r:1.4, u:1.68)
    P: latency[1048576]: ^[33m110 us^[0m (r:100, u:120) ^[33m[warn]^[0m
    P: drift: ^[32m-100.5 ppm^[0m (r:-100, l:-101, u:-98)
    P: lost: ^[32m0 packets^[0m (r:0, l:-2, u:5)
    P: sent: 1073741824
    ^[33mW:^[0m latency[1048576] is outside its warn band
    [^[33m    XFAIL^[0m ] (1/4) stream /dca83e71 @eidf:gpu-service+default (31.9s)
    P: copy: ^[33m9.1 GB/s^[0m (r:12, l:10.8, u:13.2) ^[33m[xfail: DIMM 4 is on order]^[0m
    ==> failed as expected during 'performance': copy: 9.1 GB/s, expected 12
    [^[33m    ABORT^[0m ] (1/4) soak /c06f543b @eidf:gpu-service+default (38.4s)
    ==> aborted during 'run': interrupted by SIGINT
    ^[31m==>^[0m left behind: pod eidf095ns/rfm-kqjzmvxa-0: kubectl -n eidf095ns delete pod rfm-kqjzmvxa-0
    [^[32m----------^[0m] all spawned checks have finished

    [^[31m  FAILED  ^[0m] Ran 3/4 test case(s) from 4 check(s) (1 failure(s), 1 expected failure(s), 0 skipped, 1 aborted)
    [^[32m==========^[0m] Finished on 2026-01-05 07:04:46 +00:00 (1m34s)
    ");
}

#[test]
fn without_colours_there_is_no_escape_sequence() {
    for case in cases() {
        assert!(!finished(&case, 1, 1, Paint::OFF).contains('\x1b'), "{}", case.name);
    }
}

#[test]
fn the_last_line_adds_up() {
    assert_snapshot!(with(|results| ended(results, after(94.25), &screen(80))), @"
    [----------] all spawned checks have finished

    [  FAILED  ] Ran 10/13 test case(s) from 12 check(s) (5 failure(s), 1 expected failure(s), 1 skipped, 1 aborted, 1 not run)
    [==========] Finished on 2026-01-05 07:04:46 +00:00 (1m34s)
    ");
}

#[test]
fn a_session_that_ran_nothing_did_not_pass() {
    let session = Session { num_cases: 1, ..session() };
    let counts = Results::new(&session, []).counts();
    assert_snapshot!(verdict_line(&counts, false, Paint::OFF), @"[  FAILED  ] Ran 0/1 test case(s) from 0 check(s) (0 failure(s), 0 expected failure(s), 0 skipped, 0 aborted, 1 not run)");
    assert_snapshot!(verdict_line(&Counts::default(), false, Paint::OFF), @"[  FAILED  ] Ran 0/0 test case(s) from 0 check(s) (0 failure(s), 0 expected failure(s), 0 skipped, 0 aborted)");
}

#[test]
fn a_session_that_was_interrupted_did_not_pass() {
    let last_line =
        |interrupted| with_only(&["nbody", "p2p", "stream"], |results| verdict_line(&results.counts(), interrupted, Paint::OFF));
    assert_snapshot!(last_line(false), @"[  PASSED  ] Ran 3/4 test case(s) from 4 check(s) (0 failure(s), 1 expected failure(s), 1 skipped, 0 aborted)");
    assert_snapshot!(last_line(true), @"[  FAILED  ] Ran 3/4 test case(s) from 4 check(s) (0 failure(s), 1 expected failure(s), 1 skipped, 0 aborted, interrupted)");
}
