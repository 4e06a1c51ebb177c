//! How jobs end by themselves, by a limit, or before they begin.

use crate::suite::{
    cluster::Cluster,
    sandbox::{Ended, Place, outcome},
};

/// Outcome and cause of each case, by the value of its parameter.
fn by_parameter(ended: &Ended, parameter: &str) -> Vec<(String, String, String)> {
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let case = |case: &serde_json::Value| (text(&case["parameters"][parameter]), outcome(case), text(&case["cause"]));
    let mut cases: Vec<_> = ended.cases().iter().map(case).collect();
    cases.sort();
    cases
}

pub(crate) fn a_failed_job_names_its_status_and_the_commands_to_look_further() {
    let place = Place::new(Cluster::shared(), "fails", "launcher: none", "executable: exit\nexecutable_opts: 3\nsanity: []");
    let ended = place.run(&[]).expect_case(1, "fail{workload}", &["exit status 3 on n"]);
    for part in ["scontrol show job", "rfm_job.out"] {
        assert!(ended.text.contains(part), "{part}: {}", ended.text);
    }
    assert!(!ended.text.contains("sacct -j"), "there is no accounting: {}", ended.text);
    let place = Place::new(Cluster::with_accounting(), "failstoo", "launcher: none", "executable: 'false'\nsanity: []");
    let ended = place.run(&[]).expect_case(1, "fail{workload}", &["exit status 1 on n"]);
    assert!(ended.text.contains("sacct -j"), "{}", ended.text);
}

/// With srun and without: every status arrives, and the check says which is good.
pub(crate) fn the_exit_status_is_that_of_the_program() {
    for (name, launcher) in [("status", "none"), ("srunstatus", "srun")] {
        let check = "executable: sh\nexecutable_opts: [-c, \"'exit ${{ n }}'\"]\nparameters: { n: [0, 4, 42, 255] }\n\
                     sanity: [{ exit: [0, 42] }]";
        let place = Place::new(Cluster::shared(), name, &format!("launcher: {launcher}"), check);
        let ended = place.run(&[]).expect(1);
        let expected = [
            ("0", "pass", "null"),
            ("255", "fail{workload}", "status 255"),
            ("4", "fail{workload}", "status 4"),
            ("42", "pass", "null"),
        ];
        for (is, (n, outcome, cause)) in by_parameter(&ended, "n").iter().zip(expected) {
            assert!(is.0 == n && is.1 == outcome && is.2.contains(cause), "{launcher}: {is:?}");
        }
        assert_eq!(ended.cases().len(), 4);
    }
}

/// A status that says too little has words, with a launcher and without.
pub(crate) fn a_program_that_is_not_there_is_named() {
    for (name, launcher, words) in [
        ("nocommand", "none", "usually a command that was not found"),
        ("noprogram", "srun", "srun has not started nosuchprog: No such file"),
    ] {
        let place = Place::new(Cluster::shared(), name, &format!("launcher: {launcher}"), "executable: nosuchprog\nsanity: []");
        place.run(&[]).expect_case(1, "fail{workload}", &[words]);
    }
}

/// A step that fails and is tolerated leaves the same words in the log as one whose status counts.
pub(crate) fn the_status_of_an_earlier_step_is_not_that_of_the_program() {
    let check = "prerun_cmds: [\"${{ launcher }} sh -c '[ $SLURM_PROCID != 1 ] || exit 3; sleep 20' || true\"]\nnum_tasks: 2\n\
                 command: [sh, -c, 'kill -SEGV $$']\nsanity: [{ exit: [0, 3] }]";
    let place = Place::new(Cluster::shared(), "tolerated", "max_pending_time: 1m", check);
    place.run(&[]).expect_case(1, "fail{workload}", &["exit status 139 on n"]);
}

/// Of the program, and of the process around the check's part of the script, which then leaves no exit file.
pub(crate) fn a_signal_that_ends_a_job_is_named() {
    let check = "executable: kill\nexecutable_opts: ['${{ kill }}', '; sleep 20']\n\
                 parameters: { kill: ['-SEGV $PPID', '-KILL $PPID'] }\nsanity: []";
    let place = Place::new(Cluster::shared(), "signals", "launcher: none", check);
    let ended = place.run(&[]).expect(1);
    let cases = by_parameter(&ended, "kill");
    for ((_, outcome, cause), signal) in cases.iter().zip(["SIGKILL", "SIGSEGV"]) {
        assert!(outcome == "fail{workload}" && cause.contains(signal), "{cases:?}");
    }
    let program = "executable: sh\nexecutable_opts: [-c, \"'kill -BUS $$'\"]\nsanity: []";
    let place = Place::new(Cluster::shared(), "bus", "launcher: none", program);
    place.run(&[]).expect_case(1, "fail{workload}", &["135"]);
    let part = "executable: kill\nexecutable_opts: ['-SEGV $$', '; sleep 20']\nsanity: []";
    let place = Place::new(Cluster::shared(), "part", "launcher: none", part);
    place.run(&[]).expect_case(1, "fail{workload}", &["139"]);
}

pub(crate) fn a_job_that_runs_too_long_ends_at_its_time_limit() {
    let place = Place::new(Cluster::shared(), "toolong", "launcher: none", "executable: sleep 300\ntime_limit: 3s\nsanity: []");
    let ended = place.run(&[]).expect_case(1, "timeout{run}", &["time_limit"]);
    assert!(place.jobs().is_empty(), "{}", ended.text);
}

pub(crate) fn what_can_never_run_is_a_mistake_before_or_at_its_launch() {
    let cluster = Cluster::shared();
    for (name, options, part) in [
        ("nowhere", "sched_options: { partition: nowhere }", "nowhere"),
        ("toobig", "launcher: none, access: [--gres=tpu:1]", "generic resource"),
        ("tooshort", "launcher: none, time_limit: 30m, sched_options: { partition: short }", "short allows 1 min"),
        ("isdown", "launcher: none, sched_options: { partition: down }", "down is DOWN"),
        ("isclosed", "launcher: none, sched_options: { partition: closed }", "group"),
        ("nofeature", "launcher: none, access: ['-C huge']", "Invalid feature specification (--constraint=huge)"),
    ] {
        let place = Place::new(cluster, name, options, "executable: 'true'\nsanity: []");
        place.run(&[]).expect_case(3, "error{config}", &[part]);
        assert!(place.jobs().is_empty(), "{name}");
    }
    let place = Place::new(cluster, "toomany", "launcher: none", "executable: 'true'\nnum_nodes: 9\nnum_tasks: 9\nsanity: []");
    place.run(&[]).expect_case(3, "error{config}", &["9 nodes", "gives 3"]);
}

/// An account of somebody else's: only the accounting knows.
pub(crate) fn an_account_that_is_not_ones_own_is_a_mistake_at_the_launch() {
    let check = "executable: 'true'\nsanity: []\nsched_options: { account: other }";
    let place = Place::new(Cluster::with_accounting(), "account", "launcher: none", check);
    place.run(&[]).expect_case(3, "error{config}", &["Invalid account", "(--account=other)"]);
}

/// srun ends the other tasks, and its own status is that of the signal.
pub(crate) fn the_task_that_failed_first_gives_the_status() {
    let check = "parameters: { how: [exit 7, 'kill -SEGV $$'] }\nnum_tasks: 3\nexecutable: sh\n\
                 executable_opts: [-c, \"'[ $SLURM_PROCID != 1 ] || ${{ how }}; sleep 20'\"]\nsanity: []";
    let place = Place::new(Cluster::shared(), "firsttask", "access: [-p main]", check);
    let ended = place.run(&[]).expect(1);
    for case in ended.cases() {
        let how = case["parameters"]["how"].as_str().unwrap_or_default();
        let (status, words) = if how == "exit 7" {
            ("exit status 7", "Exited with exit code 7")
        } else {
            ("exit status 139", "Segmentation fault")
        };
        let cause = case["cause"].as_str().unwrap_or_default();
        assert!(cause.contains(status), "{how}: {cause}\n{}", ended.text);
        assert!(ended.text.contains(words) && ended.text.contains("srun ended"), "{}", ended.text);
    }
    assert_eq!(ended.cases().len(), 2);
}
