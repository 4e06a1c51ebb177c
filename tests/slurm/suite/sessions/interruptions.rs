//! Signals and `kill -9` at every step of a case's life.

use crate::{
    common::{STEPS, copy_environment, eventually},
    suite::{
        cluster::{Accounting, Cluster, User},
        sandbox::Place,
    },
};
use std::{
    process::Command,
    thread,
    time::{Duration, Instant},
};

/// Runs a check that is killed at a step. A job that runs at the first look is never seen in another state.
fn at_each_step(name: &str, verify: impl Fn(&Place<'_>, &str) + Sync) {
    let steps: Vec<&str> = STEPS.into_iter().filter(|step| *step != "seen").collect();
    for some in steps.chunks(4) {
        thread::scope(|scope| {
            for &step in some {
                let verify = &verify;
                scope.spawn(move || {
                    let check =
                        "executable: echo mark >> \"$SLURM_SUBMIT_DIR/marks\"; sleep 2; echo done\nsanity: [{ found: done }]";
                    let name = format!("{name}{}", step.replace('-', ""));
                    let place = Place::new(Cluster::shared(), &name, "launcher: none", check);
                    let mut plain = place.command(&["-c", "c.check.yaml", "-r"]);
                    plain.env("RFM_CRASH_AT", step);
                    let mut command = Command::new("timeout");
                    copy_environment(&plain, &mut command);
                    User::Alice.becomes(&mut command);
                    command.current_dir(place.file("")).args(["60"]).arg(plain.get_program()).args(plain.get_args());
                    let ended = place.to_end(&mut command);
                    assert!(ended.code != Some(0) && ended.code != Some(124), "{step}: was not killed: {}", ended.text);
                    verify(&place, step);
                });
            }
        });
    }
}

/// What runs on is followed, and what never ran is run: each case has its result, of one job.
pub(crate) fn after_a_kill_at_any_step_attach_finishes_each_case_once() {
    at_each_step("akill", |place, step| {
        let ended = place.muster(&["attach"]).expect(0);
        assert_eq!(ended.report["totals"]["passed"], 1, "{step}: {}", ended.text);
        assert_eq!(place.marks(), 1, "{step}: {}", ended.text);
        place.await_empty_queue();
    });
}

/// Nothing stays in the queue, whatever had been launched.
pub(crate) fn after_a_kill_at_any_step_sweep_leaves_nothing() {
    at_each_step("skill", |place, step| {
        let swept = place.muster(&["sweep"]).expect(0);
        eventually("the end of every job", Duration::from_secs(20), || place.jobs().is_empty());
        assert!(place.marks() <= 1, "{step}: ran {} times: {}", place.marks(), swept.text);
        let again = place.muster(&["sweep", "--dry-run"]).expect(0);
        assert!(!again.text.contains("would remove"), "{step}: {}", again.text);
    });
}

/// Once: what runs is cancelled, and reported.
pub(crate) fn an_interrupt_cancels_what_runs_and_reports_it() {
    let check = "executable: echo mark >> $SLURM_SUBMIT_DIR/marks; sleep ${{ n }}\nparameters: { n: [100, 101] }\nsanity: []";
    for signal in ["INT", "TERM"] {
        let place = Place::new(Cluster::shared(), &format!("one{}", signal.to_lowercase()), "launcher: none", check);
        let running = place.started(&[]);
        eventually("two jobs at work", Duration::from_secs(30), || place.marks() == 2);
        running.signal(signal);
        let ended = running.ended().expect(130);
        assert!(place.jobs().is_empty(), "{signal}: {}", ended.text);
        assert_eq!(ended.report["totals"]["aborted"], 2, "{signal}: {}", ended.text);
    }
}

/// Twice, while the first one waits for a controller that hangs: Muster leaves, and says what ends the job.
pub(crate) fn a_second_interrupt_leaves_at_once_and_names_what_is_left() {
    let cluster = Cluster::own(Accounting::Off);
    let place = Place::new(&cluster, "twice", "launcher: none", "executable: sleep 100\nsanity: []");
    let running = place.started(&[]);
    place.job("RUNNING");
    cluster.hang("slurmctld");
    running.signal("INT");
    thread::sleep(Duration::from_millis(1500));
    let second = Instant::now();
    running.signal("INT");
    let ended = running.ended().expect(130);
    assert!(second.elapsed() < Duration::from_secs(10), "it took {:?}", second.elapsed());
    assert!(ended.text.contains("may be left: twice") && ended.text.contains("muster sweep"), "{}", ended.text);
    cluster.resume("slurmctld");
    place.muster(&["sweep"]).expect(0);
    place.await_empty_queue();
}

/// The controller is away when the session is interrupted: a line says what it waits for, and the job is cancelled when it is back.
pub(crate) fn an_end_that_takes_long_says_what_it_waits_for() {
    let cluster = Cluster::own(Accounting::Off);
    let place = Place::new(&cluster, "longend", "launcher: none", "executable: sleep 100\nsanity: []");
    let running = place.started(&[]);
    place.job("RUNNING");
    cluster.stop("slurmctld");
    running.signal("INT");
    eventually("a line", Duration::from_secs(20), || running.text().contains("it waits for the end of longend"));
    cluster.start("slurmctld");
    let ended = running.ended().expect(130);
    assert!(place.jobs().is_empty(), "{}", ended.text);
}

/// An interrupt at any step ends in a report, and leaves nothing in the queue.
pub(crate) fn an_interrupt_at_any_step_leaves_nothing() {
    for some in STEPS.chunks(4) {
        thread::scope(|scope| {
            for &step in some.iter().filter(|step| **step != "seen") {
                scope.spawn(move || {
                    let check = "executable: sleep ${{ n }}\nparameters: { n: [1, 60] }\nsanity: []";
                    let name = format!("int{}", step.replace('-', ""));
                    let place = Place::new(Cluster::shared(), &name, "launcher: none", check);
                    let ended =
                        place.to_end(place.command(&["-c", "c.check.yaml", "-r"]).env("RFM_INTERRUPT_AT", step)).expect(130);
                    let totals = &ended.report["totals"];
                    let (passed, aborted) = (totals["passed"].as_u64().unwrap_or(0), totals["aborted"].as_u64().unwrap_or(0));
                    assert!(passed + aborted == 2 && aborted >= 1, "{step}: {totals}\n{}", ended.text);
                    assert!(place.jobs().is_empty(), "{step}: {}", ended.text);
                });
            }
        });
    }
}
