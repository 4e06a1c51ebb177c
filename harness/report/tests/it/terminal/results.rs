//! Sessions of the past.

use crate::sample::{START, after, cases, colored, screen, session, with, with_only};
use insta::assert_snapshot;
use muster_core::result::SessionState;
use muster_core::{case::SessionId, result::Session};
use muster_report::{
    Counts, Results, Screen,
    results::{ListedSession, list, nothing, show},
};
use std::time::Duration;

fn listed(screen: &Screen) -> String {
    let named = |id: &str, hours: u64| Session {
        id: SessionId(id.into()),
        started: START.plus(Duration::from_secs(hours * 3600)),
        ended: Some(START.plus(Duration::from_secs(hours * 3600 + 754))),
        ..session()
    };
    let signalled = Session { interrupted: true, ..named("20260105-080312-abcdefgh", 1) };
    let killed = Session { ended: None, num_cases: 40, ..named("20260105-090312-ijklmnop", 2) };
    let running = Session { ended: None, num_cases: 200, ..named("20260105-100312-qrstuvwx", 3) };
    let sessions = [
        (session(), SessionState::Ended),
        (signalled, SessionState::Ended),
        (killed, SessionState::Interrupted),
        (running, SessionState::Running),
    ];
    let cases = cases();
    let counts = |session: &Session| Results::new(session, &cases).counts();
    let rows: Vec<_> =
        sessions.iter().map(|(session, state)| ListedSession { session, state: *state, counts: counts(session) }).collect();
    list(&rows, false, after(3.0 * 3600.0 + 65.0), screen)
}

#[test]
fn sessions_are_listed_one_a_line() {
    assert_snapshot!(listed(&screen(80)), @"
    session                   started        took  passed  failed  state
    ──────────────────────────────────────────────────────────────────────────
    20260105-070312-qkzvaxpe  01-05 07:03   1m34s    4/13       5  ended
    20260105-080312-abcdefgh  01-05 08:03  12m34s    4/13       5  interrupted
    20260105-090312-ijklmnop  01-05 09:03       -    4/40       5  interrupted
    20260105-100312-qrstuvwx  01-05 10:03    1m5s   4/200       5  running
    ──────────────────────────────────────────────────────────────────────────
    4 session(s)
    ");
    assert_snapshot!(listed(&screen(120)), @"
    session                   started             took  system  passed  failed  state
    ───────────────────────────────────────────────────────────────────────────────────────
    20260105-070312-qkzvaxpe  2026-01-05 07:03   1m34s  eidf      4/13       5  ended
    20260105-080312-abcdefgh  2026-01-05 08:03  12m34s  eidf      4/13       5  interrupted
    20260105-090312-ijklmnop  2026-01-05 09:03       -  eidf      4/40       5  interrupted
    20260105-100312-qrstuvwx  2026-01-05 10:03    1m5s  eidf     4/200       5  running
    ───────────────────────────────────────────────────────────────────────────────────────
    4 session(s)
    ");
}

#[test]
fn colours_say_which_sessions_were_cut_short() {
    assert_snapshot!(listed(&colored(80)).replace('\x1b', "^"), @"
    ^[1msession                   started        took  passed  failed  state^[0m
    ──────────────────────────────────────────────────────────────────────────
    20260105-070312-qkzvaxpe  01-05 07:03   1m34s    4/13       5  ended
    20260105-080312-abcdefgh  01-05 08:03  12m34s    4/13       5  ^[31minterrupted^[0m
    20260105-090312-ijklmnop  01-05 09:03       -    4/40       5  ^[31minterrupted^[0m
    20260105-100312-qrstuvwx  01-05 10:03    1m5s   4/200       5  ^[32mrunning^[0m
    ──────────────────────────────────────────────────────────────────────────
    4 session(s)
    ");
}

#[test]
fn an_empty_store_says_so() {
    assert_eq!((nothing(true), nothing(false)), ("No session is stored\n", "No stored session matches\n"));
    assert_eq!(Counts::default().total, 0);
}

#[test]
fn a_session_is_shown_whole() {
    assert_snapshot!(with_only(&["osu_latency", "ior", "smoke"], |results| show(results, &[], SessionState::Ended, after(200.0), &screen(80))), @"
    [Muster Setup]
      version:           0.1.0
      command:           muster -c 'my checks/' -r --performance-report
      launched by:       ada@login-1
      working directory: /home/ada/site
      system:            eidf
      session:           20260105-070312-qkzvaxpe
      started:           2026-01-05 07:03:12 +00:00
      ended:             2026-01-05 07:04:46 +00:00 (1m34s)
      state:             ended

    [     FAIL ] (1/4) ior %fs.dir=/lustre/my dir /29b785a6 @eidf:gpu-service+default (23.3s)
    W: the log has no last line end
    ==> failed during 'sanity': pattern 'Max Write: .* MiB/sec' was not found in any of 2 sections
    ==> kept in stage/eidf/gpu-service/default/ior it's
    [       OK ] (2/4) osu_latency /ddd5a073 @eidf:gpu-service+default (21.1s)
    P: latency[8]: 1.5 us (r:1.4, u:1.68)
    P: latency[1048576]: 110 us (r:100, u:120) [warn]
    P: drift: -100.5 ppm (r:-100, l:-101, u:-98)
    P: lost: 0 packets (r:0, l:-2, u:5)
    P: sent: 1073741824
    W: latency[1048576] is outside its warn band
    [     FAIL ] (3/4) smoke /04d588cb @eidf:gpu-service+default (16.8s)
    ==> the workload failed during 'run': exit status 7
    [       OK ] (4/4) smoke /04d588cb @eidf:gpu-service+default (attempt 2) (29.8s)

    ============================= SUMMARY OF FAILURES ==============================
    FAILURE INFO for ior %fs.dir=/lustre/my dir /29b785a6 (1/1)
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
          muster -c '/home/ada/site/my checks/ior.check.yaml' -n /29b785a6 --system eidf:gpu-service -p '^default$' -r
    ================================================================================

    [  FAILED  ] Ran 3/4 test case(s) from 3 check(s) (1 failure(s), 0 expected failure(s), 0 skipped, 0 aborted, 1 not run)
    4 cases in 1m34s: 2 pass, 1 fail{sanity}, 1 not run
    the cases took 1m31s in all; the longest 29.8s: smoke /04d588cb @eidf:gpu-service+default
    1 case retried, 1 of them flaky
    ");
}

#[test]
fn a_killed_session_is_not_said_to_run() {
    let text = with(|results| {
        let session = Session { ended: None, num_cases: 40, ..session() };
        let results = Results::new(&session, results.attempts().iter().copied());
        show(&results, &[], SessionState::Interrupted, after(86_400.0), &screen(80))
    });
    let ends: Vec<_> =
        text.lines().filter(|line| line.contains("state:") || line.contains("FAILED") || line.contains("40 cases")).collect();
    assert_snapshot!(ends.join("\n"), @"
      state:             interrupted
    [  FAILED  ] Ran 10/40 test case(s) from 12 check(s) (5 failure(s), 1 expected failure(s), 1 skipped, 1 aborted, 28 not run, interrupted)
    40 cases in 1m5s: 4 pass, 1 abort, 1 error{config}, 1 fail{performance},
    ");
}
