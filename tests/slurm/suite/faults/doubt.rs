//! Programs that end with 0 because they are told to end: that is no pass.

use crate::{
    common::eventually,
    suite::{
        cluster::{Accounting, Cluster, User},
        sandbox::{Place, Running},
    },
};
use std::{fs, thread::sleep, time::Duration};

/// Two nodes: the script is on n1, whose slurmd hears of nothing, and the program on n2 ends with 0 when it is told to end. So the exit
/// file says that all is well.
struct EndsBeforeItsScript<'c> {
    place: Place<'c>,
}

impl<'c> EndsBeforeItsScript<'c> {
    fn new(cluster: &'c Cluster, name: &str) -> Self {
        let check = "executable: sh\nexecutable_opts: [-c, \"'trap \\\"exit 0\\\" TERM; echo at work; sleep 60 & wait'\"]\nnum_tasks: 2\n\
                     num_nodes: 2\nsanity: [{ found: at work }]\non_disruption: fail";
        let options = "launcher: 'srun -N 1 -n 1 -w n2', sched_options: { nodelist: 'n1,n2' }";
        Self { place: Place::new(cluster, name, options, check) }
    }

    /// Until its exit file is there, and n1 answers again.
    fn end(&self, end: impl FnOnce(&str)) -> Running<'_> {
        let path = format!("{}:{}", self.place.file("bin").display(), std::env::var("PATH").unwrap_or_default());
        let running = self.place.start(self.place.command(&["-c", "c.check.yaml", "-r"]).env("PATH", path));
        let job = self.place.job("RUNNING");
        let log = self.place.staged("rfm_job.out");
        eventually("its work", Duration::from_secs(20), || fs::read_to_string(&log).is_ok_and(|text| text.contains("at work")));
        self.place.cluster.hang("n1");
        end(&job);
        let exit = fs::read_to_string(self.place.staged("rfm_job.exit")).expect("an exit file");
        let fields: Vec<&str> = exit.split_whitespace().collect();
        assert_eq!((fields[0], fields[4]), ("0", "0"), "the script was told first: {exit}");
        // Muster looks at a job that completes.
        sleep(Duration::from_secs(3));
        self.place.cluster.resume("n1");
        running
    }
}

/// Its script has left 0 and has seen no signal, and still it has not ended by itself.
pub(crate) fn a_program_that_ends_before_its_script_is_told_is_disrupted() {
    let cluster = Cluster::own(Accounting::Off);
    let job = EndsBeforeItsScript::new(&cluster, "beforescript");
    let running = job.end(|id| _ = cluster.run(User::Root, &["scancel", id]));
    running.ended().expect_case(3, "disrupted{deleted}", &["was cancelled on n1 and 1 more"]);
}

/// The accounting tells how a job has ended before its epilogue is over.
pub(crate) fn the_accounting_tells_who_ended_a_job_that_still_completes() {
    let cluster = Cluster::own(Accounting::On);
    cluster.set_epilog("sleep 16");
    let job = EndsBeforeItsScript::new(&cluster, "stillcompletes");
    let asked = job.place.file("asked");
    job.place.stub("sacct", &format!("echo >> {}; exec /usr/bin/sacct \"$@\"", asked.display()));
    let running = job.end(|id| _ = cluster.run(User::Root, &["scancel", id]));
    eventually("a question", Duration::from_secs(40), || asked.exists());
    assert_eq!(job.place.jobs().first().map(|(_, state)| state.as_str()), Some("COMPLETING"), "{}", running.text());
    running.ended().expect_case(3, "disrupted{deleted}", &["was cancelled by root on n"]);
}

/// It is told to end some time before it is ended, and ends within that time: its state is COMPLETED.
pub(crate) fn a_program_that_ends_because_it_will_be_preempted_is_disrupted() {
    let cluster = Cluster::own(Accounting::Off);
    cluster.run(User::Root, &["scontrol", "update", "partition=low", "GraceTime=20"]);
    let check = "executable: sh\nexecutable_opts: [-c, \"'trap \\\"exit 0\\\" TERM; echo at work; sleep 60 & wait'\"]\n\
                 sanity: [{ found: at work }]\non_disruption: fail";
    let options = "launcher: srun, sched_options: { partition: low, nodelist: n1, gres: 'gpu:2' }";
    let place = Place::new(&cluster, "grace", options, check);
    let running = place.started(&[]);
    place.job("RUNNING");
    let log = place.staged("rfm_job.out");
    eventually("its work", Duration::from_secs(20), || fs::read_to_string(&log).is_ok_and(|text| text.contains("at work")));
    cluster.run(User::Bob, &["srun", "-p", "main", "-w", "n1", "--gres=gpu:2", "true"]);
    running.ended().expect_case(3, "disrupted{preempted}", &["PREEMPTED", "n1"]);
}
