//! The clusters themselves: without these all other tests prove nothing.

use crate::{
    common::eventually,
    suite::cluster::{Accounting, Cluster, User, run_folder},
};
use std::time::Duration;

/// Submits a script as Alice; its number.
fn submitted(cluster: &Cluster, options: &[&str], line: &str) -> String {
    let mut words = vec!["sbatch", "--parsable", "--chdir=/", "--output=/dev/null"];
    words.extend(options);
    let wrapped = format!("--wrap={line}");
    words.push(&wrapped);
    cluster.run(User::Alice, &words).trim().to_owned()
}

pub(crate) fn a_job_of_a_user_runs_on_a_node_that_calls_itself_so() {
    let cluster = Cluster::shared();
    let printed = cluster.run(User::Alice, &["srun", "-N", "3", "sh", "-c", "echo $(hostname) $(id -un)"]);
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["n1 alice", "n2 alice", "n3 alice"]);
    let refused = cluster.output(User::Alice, &["sacct"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("accounting storage is disabled"), "{refused:?}");
    // 24.11 takes the job and lets it wait.
    let refused = cluster.output(User::Alice, &["sbatch", "--parsable", "-p", "closed", "--wrap", "true"]);
    if refused.status.success() {
        let job = String::from_utf8_lossy(&refused.stdout).trim().to_owned();
        let reason = cluster.run(User::Alice, &["squeue", "-h", "-a", "-j", &job, "-o", "%r"]);
        cluster.run(User::Alice, &["scancel", &job]);
        assert!(reason.contains("not in group permitted"), "Alice is no member of the group bob: {reason}");
    }
}

pub(crate) fn accounting_knows_how_a_job_ended_and_whose_it_may_be() {
    let cluster = Cluster::with_accounting();
    let job = submitted(cluster, &[], "exit 3");
    eventually("accounting of the job", Duration::from_secs(30), || {
        cluster.run(User::Alice, &["sacct", "-n", "-P", "-X", "-j", &job, "-o", "state,exitcode"]) == "FAILED|3:0\n"
    });
    let refused = cluster.output(User::Alice, &["sbatch", "-A", "other", "--wrap", "true"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("Invalid account"), "{refused:?}");
}

pub(crate) fn a_node_that_is_stopped_takes_its_jobs_with_it_and_comes_back() {
    let cluster = Cluster::own(Accounting::Off);
    let file = run_folder().join("beat");
    let beat = format!("while :; do date +%s%N > {}; sleep 0.1; done", file.display());
    std::fs::write(&file, "").expect("a file");
    std::os::unix::fs::chown(&file, Some(User::Alice.id()), None).expect("root may do this");
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    submitted(&cluster, &["--nodelist=n2", "--no-requeue"], &beat);
    eventually("the job", Duration::from_secs(20), || !read().is_empty());
    cluster.stop("n2");
    let last = read();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(read(), last, "the job of the node lives on");
    eventually("the end of the job", Duration::from_mins(1), || cluster.jobs(User::Alice).is_empty());
    cluster.start("n2");
    eventually("the node", Duration::from_secs(30), || {
        cluster.run(User::Root, &["sinfo", "-h", "-n", "n2", "-p", "main", "-o", "%t"]) == "idle\n"
    });
}

pub(crate) fn a_controller_that_hangs_answers_no_more_until_it_is_resumed() {
    let cluster = Cluster::own(Accounting::Off);
    cluster.hang("slurmctld");
    let asked = cluster.output(User::Alice, &["sinfo", "-h"]);
    assert!(String::from_utf8_lossy(&asked.stderr).contains("Socket timed out"), "{asked:?}");
    cluster.resume("slurmctld");
    cluster.run(User::Alice, &["sinfo", "-h"]);
}
