//! Others use the queue, too: they preempt, cancel, hold and suspend.

use crate::{
    common::eventually,
    suite::{
        cluster::{Accounting, Cluster, User},
        sandbox::Place,
    },
};
use std::{
    thread::sleep,
    time::{Duration, Instant},
};

pub(crate) fn a_job_that_root_cancels_is_disrupted() {
    let check = "executable: trap '' TERM; sleep 100\nsanity: []\non_disruption: fail";
    let place = Place::new(Cluster::with_accounting(), "cancelled", "launcher: none", check);
    let running = place.started(&[]);
    place.cluster.run(User::Root, &["scancel", &place.job("RUNNING")]);
    let ended = running.ended().expect_case(3, "disrupted{deleted}", &["cancelled by root", " on n"]);
    assert!(ended.text.contains("sacct -j"), "{}", ended.text);
}

/// While an epilog runs the job is COMPLETING, and nothing but its last state says who has ended it.
pub(crate) fn a_job_that_is_cancelled_before_an_epilog_is_disrupted() {
    let cluster = Cluster::own(Accounting::Off);
    cluster.set_epilog("sleep 4");
    for (name, executable) in [("dies", "sleep 100"), ("traps", "trap 'exit 0' TERM; sleep 100 & wait")] {
        let place =
            Place::new(&cluster, name, "launcher: none", &format!("executable: {executable}\nsanity: []\non_disruption: fail"));
        let running = place.started(&[]);
        let job = place.job("RUNNING");
        place.staged("rfm_job.id");
        cluster.run(User::Root, &["scancel", &job]);
        // On a busy machine the last state is over before it is looked at: MinJobAge is 2 s here.
        running.ended().expect_case(3, "disrupted{deleted}", &["job"]);
    }
}

/// The reason is that of the partition which Slurm has looked at last: this one never takes the job, and the other is only busy.
pub(crate) fn a_job_for_two_partitions_is_waited_for_while_one_is_busy() {
    let cluster = Cluster::own(Accounting::Off);
    cluster.run(User::Bob, &["sbatch", "-N", "3", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 12"]);
    let check = "executable: hostname\nsanity: [{ found: '^n' }]";
    let place = Place::new(&cluster, "onebusy", "launcher: none, access: ['-p main,closed']", check);
    place.run(&[]).expect_case(0, "pass", &[]);
}

/// Only its user and root end a job.
pub(crate) fn another_user_may_not_cancel_a_job() {
    let place = Place::new(Cluster::shared(), "refused", "launcher: none", "executable: sleep 4\nsanity: []");
    let running = place.started(&[]);
    let refused = place.cluster.output(User::Bob, &["scancel", &place.job("RUNNING")]);
    assert!(!refused.status.success(), "Bob has cancelled a job of Alice's");
    running.ended().expect_case(0, "pass", &[]);
}

/// Preempted for good, as Muster asks for: no requeue.
pub(crate) fn a_job_that_is_preempted_is_disrupted() {
    let options = "launcher: none, sched_options: { partition: low, nodelist: n1, gres: 'gpu:2' }";
    let place = Place::new(
        Cluster::with_accounting(),
        "preempted",
        options,
        "executable: trap '' TERM; sleep 100\nsanity: []\non_disruption: fail",
    );
    let running = place.started(&[]);
    let job = place.job("RUNNING");
    place.cluster.run(User::Bob, &["srun", "-p", "main", "-w", "n1", "--gres=gpu:2", "true"]);
    running.ended().expect_case(3, "disrupted{preempted}", &["PREEMPTED", "n1"]);
    let state = place.cluster.output(User::Root, &["squeue", "-h", "-t", "PD,R", "-j", &job]);
    assert!(state.stdout.is_empty(), "it was started again: {state:?}");
}

/// The case is run again, and waits for those who took its place.
pub(crate) fn a_case_that_is_preempted_runs_again_afterwards() {
    let options = "launcher: none, sched_options: { partition: low, nodelist: n3, gres: 'gpu:2' }";
    let check = "executable: trap '' TERM; echo mark >> $SLURM_SUBMIT_DIR/marks; [ $(wc -l < $SLURM_SUBMIT_DIR/marks) = 2 ] || sleep 60\n\
                 sanity: []\non_disruption: retry";
    let place = Place::new(Cluster::with_accounting(), "again", options, check);
    let running = place.started(&[]);
    place.job("RUNNING");
    eventually("its mark", Duration::from_secs(10), || place.marks() == 1);
    place.cluster.run(User::Bob, &["srun", "-p", "main", "-w", "n3", "--gres=gpu:2", "sleep", "2"]);
    let ended = running.ended().expect(0);
    assert_eq!((ended.cases().len(), place.marks()), (2, 2), "{}", ended.text);
    assert_eq!(ended.cases()[1]["flaky"], true, "{}", ended.text);
}

/// Where the site lets Slurm start a job again, log and status are those of the last start.
pub(crate) fn a_job_that_slurm_starts_again_is_judged_by_its_last_start() {
    let options = "launcher: none, sched_options: { partition: low, nodelist: n2, gres: 'gpu:2', policy: { requeue: true } }";
    let check = "executable: echo mark >> $SLURM_SUBMIT_DIR/marks; echo start $(wc -l < $SLURM_SUBMIT_DIR/marks); \
                 [ $(wc -l < $SLURM_SUBMIT_DIR/marks) = 2 ] || sleep 60\nsanity: [{ found: start 2 }, { found: start, count: 1 }]";
    let place = Place::new(Cluster::with_accounting(), "requeued", options, check);
    let running = place.started(&[]);
    let job = place.job("RUNNING");
    eventually("its mark", Duration::from_secs(10), || place.marks() == 1);
    place.cluster.run(User::Bob, &["srun", "-p", "main", "-w", "n2", "--gres=gpu:2", "true"]);
    let ended = running.ended().expect_case(0, "pass", &[]);
    assert_eq!((ended.printed().as_str(), place.marks()), ("start 2\n", 2), "{}", ended.text);
    assert!(
        ended.warnings().contains("Slurm started the job again: log and status are those of its last start"),
        "{}",
        ended.text
    );
    assert!(ended.text.contains(&format!("job {job}")) || ended.report.to_string().contains(&format!("show job {job}")));
}

/// Held while it waits: the time limit of waiting names who holds it, and a release lets it run.
pub(crate) fn a_job_that_is_held_waits_until_it_is_released() {
    let cluster = Cluster::shared();
    let check = |limit: &str| format!("executable: hostname\nsanity: [{{ found: n }}]\nmax_pending_time: {limit}");
    let blocker = cluster.run(User::Bob, &["sbatch", "--parsable", "-L", "lic:4", "-o", "/dev/null", "--wrap", "sleep 100"]);
    let options = "launcher: none, sched_options: { licenses: 'lic:1' }";
    let (held, released) =
        (Place::new(cluster, "held", options, &check("9s")), Place::new(cluster, "released", options, &check("1m")));
    let (never, later) = (held.started(&[]), released.started(&[]));
    let jobs = [held.job("PENDING"), released.job("PENDING")];
    for job in &jobs {
        cluster.run(User::Alice, &["scontrol", "hold", job]);
    }
    cluster.run(User::Root, &["scancel", blocker.trim()]);
    never.ended().expect_case(3, "timeout{pending}", &["JobHeldUser", "max_pending_time"]);
    assert!(held.jobs().is_empty(), "it was not cancelled");
    cluster.run(User::Alice, &["scontrol", "release", &jobs[1]]);
    later.ended().expect_case(0, "pass", &[]);
}

/// Figures of a job that was suspended are no figures.
pub(crate) fn a_job_that_root_suspends_ends_later_and_says_so() {
    let check = "executable: sleep 3\nsanity: []\ntime_limit: 1m";
    let place = Place::new(Cluster::shared(), "suspended", "launcher: none", check);
    let running = place.started(&[]);
    let job = place.job("RUNNING");
    place.cluster.run(User::Root, &["scontrol", "suspend", &job]);
    sleep(Duration::from_secs(4));
    place.cluster.run(User::Root, &["scontrol", "resume", &job]);
    let ended = running.ended().expect_case(0, "pass", &[]);
    assert!(ended.warnings().contains("suspended for "), "{}", ended.text);
}

/// The quality of service takes three jobs of a user, and runs one: five cases wait for room, and each runs once.
pub(crate) fn cases_wait_where_a_site_takes_no_more_jobs() {
    let check = "executable: echo mark >> $SLURM_SUBMIT_DIR/marks\nparameters: { n: [1, 2, 3, 4, 5] }\nsanity: []";
    let options = "launcher: none, sched_options: { qos: tight }";
    let place = Place::new(Cluster::with_accounting(), "tight", options, check);
    let ended = place.run(&[]).expect(0);
    assert_eq!((ended.report["totals"]["passed"].as_u64(), place.marks()), (Some(5), 5), "{}", ended.text);
}

/// A reason for which jobs of this site never start, by its own list.
pub(crate) fn a_reason_of_the_site_ends_the_waiting_at_once() {
    let options = "launcher: none, sched_options: { begin: now+1hour, policy: { never: [BeginTime] } }";
    let place = Place::new(Cluster::shared(), "begins", options, "executable: 'true'\nsanity: []");
    let started = Instant::now();
    place.run(&[]).expect_case(3, "error{config}", &["can never start", "BeginTime"]);
    assert!(started.elapsed() < Duration::from_secs(30) && place.jobs().is_empty(), "{:?}", started.elapsed());
}
