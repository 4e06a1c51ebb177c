//! How many jobs at once, how long they wait, and what runs again.

use crate::{
    common::eventually,
    suite::{
        cluster::{Cluster, User},
        sandbox::{Place, outcome},
    },
};
use std::time::Duration;

/// Never more jobs in the queue than the partition says.
pub(crate) fn no_more_jobs_are_submitted_than_a_partition_allows() {
    let check = "executable: sleep 1\nparameters: { n: [1, 2, 3, 4, 5, 6] }\nsanity: []";
    let place = Place::new(Cluster::shared(), "most", "launcher: none", check);
    let site = std::fs::read_to_string(place.file("site.yaml")).expect("a site");
    place.write("site.yaml", &site.replace("max_jobs: 100", "max_jobs: 2"));
    let (mut most, mut running) = (0, Some(place.started(&[])));
    eventually("the end of the session", Duration::from_secs(90), || {
        most = most.max(place.jobs().len());
        place.file("results.db").exists() && running.as_ref().is_some_and(|running| running.text().contains("Run report"))
    });
    let ended = running.take().expect("it").ended().expect(0);
    assert_eq!((ended.report["totals"]["passed"].as_u64(), most), (Some(6), 2), "{}", ended.text);
}

/// Its job is cancelled, and the cause is Slurm's reason in words.
pub(crate) fn a_job_that_waits_too_long_is_given_up() {
    let cluster = Cluster::shared();
    let blocker =
        cluster.run(User::Bob, &["sbatch", "--parsable", "-w", "n1", "--gres=gpu:2", "-o", "/dev/null", "--wrap", "sleep 100"]);
    let check = "executable: 'true'\nsanity: []\nmax_pending_time: 5s\nsched_options: { gres: 'gpu:1', nodelist: n1 }";
    let place = Place::new(cluster, "waits", "launcher: none", check);
    place.run(&[]).expect_case(3, "timeout{pending}", &["still waiting after", "Resources: its nodes are busy"]);
    assert!(place.jobs().is_empty());
    cluster.run(User::Root, &["scancel", blocker.trim()]);
}

/// A failure is run again in a folder of its own; a pass is not.
pub(crate) fn a_failed_case_is_run_again_in_another_folder() {
    let check = "executable: echo mark >> $SLURM_SUBMIT_DIR/marks; [ $(wc -l < $SLURM_SUBMIT_DIR/marks) = 2 ]\nsanity: []";
    let place = Place::new(Cluster::shared(), "retried", "launcher: none", check);
    let ended = place.run(&["--max-retries=3"]).expect(0);
    let outcomes: Vec<String> = ended.cases().iter().map(outcome).collect();
    assert_eq!((outcomes.join(" "), place.marks()), ("fail{workload} pass".to_owned(), 2), "{}", ended.text);
    assert_ne!(ended.cases()[0]["folder"], ended.cases()[1]["folder"]);
}

/// Where the site or the check says so, what is taken away is not run again.
pub(crate) fn a_disruption_is_run_again_only_if_it_may_be() {
    for (name, key, attempts) in [("norepeat", "fail", 1), ("repeat", "retry", 2)] {
        let check = format!(
            "executable: trap '' TERM; echo mark >> $SLURM_SUBMIT_DIR/marks; [ $(wc -l < $SLURM_SUBMIT_DIR/marks) = 2 ] || sleep 100\n\
             sanity: []\non_disruption: {key}"
        );
        let place = Place::new(Cluster::with_accounting(), name, "launcher: none", &check);
        let running = place.started(&[]);
        place.cluster.run(
            User::Root,
            &["scancel", &{
                let job = place.job("RUNNING");
                eventually("its mark", Duration::from_secs(10), || place.marks() == 1);
                job
            }],
        );
        let ended = running.ended().expect(if attempts == 1 { 3 } else { 0 });
        assert_eq!((ended.cases().len(), place.marks()), (attempts, attempts), "{key}: {}", ended.text);
    }
}

/// A case that builds something, and one that uses it.
pub(crate) fn a_fixture_runs_as_a_job_before_those_that_need_it() {
    let check = "executable: cat\nexecutable_opts: ['${{ fixtures.build.stagedir }}/product']\nsanity: [{ found: '^built on n' }]\n\
                 fixtures: { build: { check: build, scope: session } }\n---\nname: build\nvalid_systems: ['*']\n\
                 executable: echo built on $(hostname) > product\nsanity: []";
    let place = Place::new(Cluster::shared(), "fixture", "launcher: none", check);
    place.run(&[]).expect(0);
}
