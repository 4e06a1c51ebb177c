//! Limits of Slurm's own, and of the memory.

use crate::suite::{
    cluster::{Cluster, User},
    sandbox::Place,
};

/// Slurm looks at its time limits twice a minute.
pub(crate) fn a_job_that_slurm_ends_at_its_own_time_limit_says_so() {
    let check = "executable: sleep 200\nsanity: []\ntime_limit: 30m";
    let place = Place::new(Cluster::with_accounting(), "slurmlimit", "launcher: none", check);
    let running = place.started(&[]);
    let job = place.job("RUNNING");
    place.cluster.run(User::Root, &["scontrol", "update", &format!("jobid={job}"), "EndTime=now+1"]);
    running.ended().expect_case(1, "timeout{run}", &["TIMEOUT", "Slurm's time limit", " on n"]);
}

/// Without cgroups Slurm only kills it; the log has the figures.
pub(crate) fn a_job_that_uses_more_memory_than_it_may_says_how_much() {
    let check =
        "executable: \"perl -e '$x=\\\"x\\\" x 300000000; sleep 20'\"\nsanity: []\ntime_limit: 1m\nsched_options: { mem: 50M }";
    let place = Place::new(Cluster::shared(), "memory", "launcher: none", check);
    let ended = place.run(&[]).expect_case(1, "fail{workload}", &["OUT_OF_MEMORY on n", "MiB, and may use 50 MiB"]);
    let used =
        ended.cause().split("used ").nth(1).and_then(|rest| rest.split(' ').next()).and_then(|used| used.parse::<u64>().ok());
    assert!(used.is_some_and(|used| used > 50), "{}", ended.cause());
    // A launcher is killed as a program of the job.
    let place = Place::new(Cluster::shared(), "stepmemory", "launcher: srun", check);
    place.run(&[]).expect_case(1, "fail{workload}", &[]);
}
