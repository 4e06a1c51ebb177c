//! Files that do not come, come late, or have no room; clocks that differ.

use crate::{
    common::eventually,
    suite::{
        cluster::{Cluster, User},
        sandbox::{Place, Running, outcome},
    },
};
use std::{
    fs::{self, File},
    io::Write as _,
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

fn latency(limit: &str) -> String {
    format!("launcher: none, sched_options: {{ policy: {{ file_latency: {limit}, poll_max: 2s }} }}")
}

/// Programs of the job see a `mv` that leaves the exit file aside, as a file server does that shows it later.
fn with_late_exit_file<'p>(place: &'p Place<'p>) -> Running<'p> {
    let path = place.stub("mv", "exec /bin/mv \"$1\" \"$2.hidden\"");
    place.start(place.command(&["-c", "c.check.yaml", "-r"]).env("PATH", path))
}

pub(crate) fn an_exit_file_that_comes_late_is_waited_for() {
    let check = "executable: sh\nexecutable_opts: [-c, \"'exit 7'\"]\nsanity: [{ exit: 7 }]";
    let place = Place::new(Cluster::shared(), "lateexit", &latency("30s"), check);
    let running = with_late_exit_file(&place);
    let hidden = place.staged("rfm_job.exit.hidden");
    place.await_empty_queue();
    sleep(Duration::from_secs(4));
    fs::rename(&hidden, hidden.with_extension("")).expect("the file");
    running.ended().expect_case(0, "pass", &[]);
}

/// The status of Slurm alone is no pass.
pub(crate) fn a_job_whose_exit_file_never_comes_does_not_pass() {
    let place = Place::new(Cluster::shared(), "noexit", &latency("3s"), "executable: 'true'\nsanity: []");
    with_late_exit_file(&place).ended().expect_case(3, "error{infra}", &["exit file did not come", "within 3.0s"]);
}

/// The script was killed and has counted nothing. What Slurm has written last is seen seconds later.
pub(crate) fn a_log_that_comes_late_is_waited_for_without_an_exit_file_too() {
    let check = "executable: echo begun; kill -KILL $PPID; sleep 20\nsanity: []";
    let place = Place::new(Cluster::shared(), "latelog", &latency("30s"), check);
    let running = place.started(&[]);
    let log = place.staged("rfm_job.out");
    eventually("its output", Duration::from_secs(20), || fs::read_to_string(&log).is_ok_and(|text| text.contains("begun")));
    place.await_empty_queue();
    let mut file = File::options().append(true).open(&log).expect("a log");
    for line in
        ["one more line", "slurmstepd-n1: error: StepId=1.batch exceeded memory limit (487809024 > 52428800), being killed"]
    {
        sleep(Duration::from_millis(1500));
        writeln!(file, "{line}").expect("room");
    }
    let ended = running.ended().expect_case(1, "fail{workload}", &["OUT_OF_MEMORY", "used 465 MiB"]);
    assert!(ended.printed().contains("being killed"), "{}", ended.text);
}

/// The folder is not where Slurm looks for it when the job starts.
pub(crate) fn a_folder_that_the_node_does_not_see_is_named() {
    let check = "executable: 'true'\nsanity: []\nsched_options: { begin: now+4 }";
    let place = Place::new(Cluster::shared(), "unseen", &latency("5s"), check);
    let running = place.started(&[]);
    place.job("PENDING");
    let (there, away) = (place.file("stage"), place.file("away"));
    fs::rename(&there, &away).expect("a folder");
    // Slurm 24.11 makes the folder of a log that is not there; it cannot make this one.
    fs::write(&there, "").expect("a file");
    place.await_empty_queue();
    fs::remove_file(&there).expect("a file");
    fs::rename(&away, &there).expect("a folder");
    running.ended().expect_case(3, "error{infra}", &["on a file system that"]);
}

/// The log ends where the disk does: that is no result.
pub(crate) fn a_job_that_fills_the_disk_of_its_stage_is_an_error() {
    let check = "executable: yes | head -c 3000000; echo ended\nsanity: [{ found: y }]";
    let place = Place::new(Cluster::shared(), "full", &latency("4s"), check);
    let small = place.file("small");
    fs::create_dir(&small).expect("a folder");
    let folder = small.to_string_lossy().into_owned();
    let mount = ["-t", "tmpfs", "-o", "size=200k,mode=777", "small", &folder];
    assert!(Command::new("mount").args(mount).stdin(Stdio::null()).status().is_ok_and(|status| status.success()));
    let ended = place.run(&["--stage", &folder]).expect_case(3, "error{infra}", &["is full", &folder]);
    assert_eq!(ended.nodes().len(), 1, "{}", ended.text);
}

/// Muster's clock is hours before and behind that of the cluster: limits count as they should.
pub(crate) fn clocks_that_differ_by_hours_change_no_limit() {
    for (name, skew) in [("ahead", "+3h"), ("behind", "-3h")] {
        let check = "executable: sleep ${{ n }}\nparameters: { n: [2, 100] }\ntime_limit: 6s\nsanity: []";
        let place = Place::new(Cluster::shared(), name, "launcher: none, max_pending_time: 1m", check);
        let mut command = place.prefixed(&["faketime", "-f", skew], &["-c", "c.check.yaml", "-r"]);
        let ended = place.to_end(command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1")).expect(1);
        let totals = &ended.report["totals"];
        let cases = ended.cases().iter().map(|case| (case["parameters"]["n"].to_string(), outcome(case)));
        let mut cases: Vec<_> = cases.collect();
        cases.sort();
        assert_eq!(
            cases,
            [("\"100\"".to_owned(), "timeout{run}".to_owned()), ("\"2\"".to_owned(), "pass".to_owned())],
            "{totals} {}",
            ended.text
        );
        let begun = ended.cases()[0]["times"]["begun"].as_str().unwrap_or_default().to_owned();
        let now = place.cluster.run(User::Root, &["date", "-u", "+%FT%H"]);
        assert!(!begun.starts_with(now.trim()), "the clock of Muster was right: {begun}");
    }
}
