//! The controller, or the accounting, does not answer for a while: nothing is lost, and nothing runs twice.

use crate::{
    common::eventually,
    suite::{
        cluster::{Accounting, Cluster, User},
        sandbox::{Place, outcome},
    },
};
use std::{fs, thread::sleep, time::Duration};

/// The job ends meanwhile; another waits for it.
pub(crate) fn a_controller_that_hangs_for_half_a_minute_fails_no_case() {
    let cluster = Cluster::own(Accounting::Off);
    // The nodes do not answer a controller that hangs, and it may not ask them again first.
    cluster.set("SlurmdTimeout", "120");
    let check = "executable: sleep ${{ n }}; echo done\nparameters: { n: [4, 33] }\nsanity: [{ found: done }]";
    let place = Place::new(&cluster, "outage", "launcher: none", check);
    let running = place.started(&[]);
    eventually("two jobs", Duration::from_secs(30), || place.jobs().iter().filter(|(_, state)| state == "RUNNING").count() == 2);
    cluster.hang("slurmctld");
    sleep(Duration::from_secs(30));
    cluster.resume("slurmctld");
    let ended = running.ended().expect(0);
    assert_eq!(ended.report["totals"]["passed"], 2, "{}", ended.text);
}

/// Killed while a job runs, and started again after its end: what it has saved is some seconds old.
pub(crate) fn a_controller_that_is_killed_and_comes_back_fails_no_case() {
    let cluster = Cluster::own(Accounting::Off);
    let check = "executable: echo mark >> $SLURM_SUBMIT_DIR/marks; sleep ${{ n }}; echo done\nparameters: { n: [10, 20] }\n\
                 sanity: [{ found: done }]";
    let place = Place::new(&cluster, "killed", "launcher: none", check);
    let running = place.started(&[]);
    eventually("two jobs", Duration::from_secs(30), || place.jobs().iter().filter(|(_, state)| state == "RUNNING").count() == 2);
    // Its state is saved every five seconds.
    sleep(Duration::from_secs(6));
    cluster.stop("slurmctld");
    sleep(Duration::from_secs(7));
    cluster.start("slurmctld");
    let ended = running.ended().expect(0);
    assert_eq!(ended.report["totals"]["passed"], 2, "{}", ended.text);
    assert_eq!(place.marks(), 2, "{}", ended.text);
}

/// A launch waits for the controller, and a line says so.
pub(crate) fn a_controller_that_comes_late_gets_the_job_then() {
    let cluster = Cluster::own(Accounting::Off);
    let marks = "executable: echo mark >> $SLURM_SUBMIT_DIR/marks; echo done\nsanity: [{ found: done }]";
    let place = Place::new(&cluster, "late", "launcher: none", marks);
    cluster.stop("slurmctld");
    let running = place.started(&[]);
    sleep(Duration::from_secs(25));
    cluster.start("slurmctld");
    let ended = running.ended().expect_case(0, "pass", &[]);
    assert_eq!(place.marks(), 1);
    for line in ["partition main: no answer for ", "Unable to contact slurm controller", "partition main: it answers again"] {
        assert_eq!(ended.text.matches(line).count(), 1, "{line}: {}", ended.text);
    }
}

/// The answer of sbatch is lost, as the controller hangs; the job runs once.
pub(crate) fn a_submission_whose_answer_is_lost_runs_once() {
    let cluster = Cluster::own(Accounting::Off);
    // The working folder of sbatch is that of the harness.
    let marks = "executable: 'echo mark >> $SLURM_SUBMIT_DIR/marks; echo done'\nsanity: [{ found: done }]";
    let place = Place::new(&cluster, "lost", "launcher: none", marks);
    cluster.hang("slurmctld");
    let running = place.started(&[]);
    sleep(Duration::from_secs(8));
    cluster.resume("slurmctld");
    let ended = running.ended().expect_case(0, "pass", &[]);
    eventually("the end of every job", Duration::from_secs(30), || cluster.jobs(User::Alice).is_empty());
    assert_eq!(place.marks(), 1, "{}", ended.text);
}

/// The same where sbatch itself is killed at its limit, before the controller has answered.
pub(crate) fn a_submission_that_takes_too_long_runs_once() {
    let cluster = Cluster::own(Accounting::Off);
    let marks = "executable: 'echo mark >> $SLURM_SUBMIT_DIR/marks; echo done'\nsanity: [{ found: done }]";
    let options = "launcher: none, sched_options: { job_submit_timeout: 2s }";
    let place = Place::new(&cluster, "killedsbatch", options, marks);
    // The controller hangs between the questions before the launch and the launch.
    let path = place.stub("sbatch", "[ -e submitting ] || { echo > submitting; sleep 1; }; exec /usr/bin/sbatch \"$@\"");
    let running = place.start(place.command(&["-c", "c.check.yaml", "-r"]).env("PATH", path));
    eventually("sbatch", Duration::from_secs(30), || place.file("submitting").exists());
    cluster.hang("slurmctld");
    sleep(Duration::from_secs(5));
    cluster.resume("slurmctld");
    let ended = running.ended().expect_case(0, "pass", &[]);
    eventually("the end of every job", Duration::from_secs(30), || cluster.jobs(User::Alice).is_empty());
    assert_eq!(place.marks(), 1, "{}", ended.text);
}

/// What sbatch says is no refusal that is known, and its job is there: it is killed, fails after the number of the job, or tells of a
/// broken connection.
pub(crate) fn a_submission_that_ends_without_a_known_refusal_runs_once() {
    let failed =
        "/usr/bin/sbatch \"$@\" > said; echo 'sbatch: error: Batch job submission failed: Message receive failure' >&2; exit 1";
    for (name, script) in [
        ("failsafter", "/usr/bin/sbatch \"$@\"; exit 1"),
        ("killedafter", "/usr/bin/sbatch \"$@\" > said; kill -9 $$"),
        ("receivefailure", failed),
    ] {
        let marks = "executable: 'echo mark >> $SLURM_SUBMIT_DIR/marks; echo done'\nsanity: [{ found: done }]";
        let place = Place::new(Cluster::shared(), name, "launcher: none", marks);
        let path = place.stub("sbatch", script);
        let ended = place.to_end(place.command(&["-c", "c.check.yaml", "-r"]).env("PATH", path)).expect_case(0, "pass", &[]);
        assert_eq!(place.marks(), 1, "{name}: {}", ended.text);
    }
}

/// The controller has no room on its disk for the script: that passes, and is tried again.
pub(crate) fn a_controller_that_cannot_write_a_script_is_asked_again() {
    let place = Place::new(Cluster::shared(), "nodisk", "launcher: none", "executable: echo done\nsanity: [{ found: done }]");
    let failed = "sbatch: error: Batch job submission failed: I/O error writing script/environment to file";
    let path = place.stub(
        "sbatch",
        &format!("[ -e tried ] || {{ echo > tried; echo '{failed}' >&2; exit 1; }}; exec /usr/bin/sbatch \"$@\""),
    );
    place.to_end(place.command(&["-c", "c.check.yaml", "-r"]).env("PATH", path)).expect_case(0, "pass", &[]);
}

/// Jobs run and end without slurmdbd; who was killed is known all the same.
pub(crate) fn jobs_run_and_end_while_the_accounting_is_down() {
    let cluster = Cluster::own(Accounting::On);
    cluster.stop("slurmdbd");
    let check = "executable: \"${{ how }}\"\nparameters: { how: [echo good, 'kill -KILL $PPID', exit 3] }\nsanity: []";
    let place = Place::new(&cluster, "nodbd", "launcher: none", check);
    let ended = place.run(&[]).expect(1);
    for case in ended.cases() {
        let (how, cause) = (case["parameters"]["how"].as_str().unwrap_or_default(), case["cause"].as_str().unwrap_or_default());
        let (expected, part) = match how {
            "echo good" => ("pass", ""),
            "exit 3" => ("fail{workload}", "exit status 3"),
            _ => ("fail{workload}", "SIGKILL"),
        };
        assert!(outcome(case) == expected && cause.contains(part), "{how}: {cause}\n{}", ended.text);
    }
    assert_eq!(ended.cases().len(), 3);
    cluster.start("slurmdbd");
    place.run(&["-n", "good"]).expect(0);
}

/// On a busy head node the accounting hears of an end seconds after the queue shows it. Only the accounting knows the user.
pub(crate) fn who_cancelled_a_job_is_known_although_the_accounting_is_late() {
    let place = Place::new(
        Cluster::with_accounting(),
        "latedbd",
        "launcher: none",
        "executable: sleep 100\nsanity: []\non_disruption: fail",
    );
    let late = place.file("late");
    let path = place.stub("sacct", &format!("[ -e {} ] || exec /usr/bin/sacct \"$@\"", late.display()));
    let running = place.start(place.command(&["-c", "c.check.yaml", "-r"]).env("PATH", path));
    let job = place.job("RUNNING");
    fs::write(&late, "").expect("a file");
    place.cluster.run(User::Root, &["scancel", &job]);
    // Of the questions at 0, 1 and 3 s, the controller answers the third.
    sleep(Duration::from_secs(5));
    fs::remove_file(&late).expect("a file that is there");
    running.ended().expect_case(3, "disrupted{deleted}", &["cancelled by root"]);
}
