//! Nodes that die, and nodes that an administrator takes away.

use crate::{
    common::eventually,
    suite::{
        cluster::{Accounting, Cluster, User},
        sandbox::{Place, outcome},
    },
};
use std::time::Duration;

pub(crate) fn a_node_that_dies_disrupts_its_job() {
    let cluster = Cluster::own(Accounting::On);
    let check = "executable: sleep 100\nsanity: []\non_disruption: fail\nsched_options: { nodelist: n2 }";
    let place = Place::new(&cluster, "nodedies", "launcher: none", check);
    let running = place.started(&[]);
    place.job("RUNNING");
    cluster.stop("n2");
    running.ended().expect_case(3, "disrupted{node}", &["n2"]);
}

/// The script runs on the first node, and Slurm ends it: whatever its status is then, it did not end by itself.
pub(crate) fn a_job_whose_other_node_dies_is_disrupted() {
    let cluster = Cluster::own(Accounting::On);
    let check = "executable: trap 'sleep 1; exit 0' TERM; echo at work; sleep 100 & wait\nnum_tasks: 2\nnum_nodes: 2\n\
                 num_tasks_per_node: 1\nsanity: [{ found: at work }]\non_disruption: fail\nsched_options: { nodelist: 'n1,n2' }";
    let place = Place::new(&cluster, "othernode", "launcher: none", check);
    let running = place.started(&[]);
    place.staged("rfm_job.id");
    cluster.stop("n2");
    running.ended().expect_case(3, "disrupted{node}", &["a node was lost on n1 and 1 more"]);
}

/// Without accounting the state is all that tells; the next attempt runs on another node, once.
pub(crate) fn a_case_whose_node_dies_runs_again_elsewhere() {
    let cluster = Cluster::own(Accounting::Off);
    // `n2` is preferred: without the other two the job runs there.
    let check = "executable: echo mark >> $SLURM_SUBMIT_DIR/marks; hostname; [ $(hostname) != n2 ] || sleep 100\n\
                 sanity: [{ found: '^n[13]$' }]\non_disruption: retry";
    let place = Place::new(&cluster, "elsewhere", "launcher: none", check);
    let block =
        |state| cluster.run(User::Root, &["scontrol", "update", "nodename=n[1,3]", &format!("state={state}"), "reason=test"]);
    block("drain");
    let running = place.started(&[]);
    place.job("RUNNING");
    eventually("its mark", Duration::from_secs(10), || place.marks() == 1);
    block("resume");
    cluster.stop("n2");
    let ended = running.ended().expect(0);
    let outcomes: Vec<String> = ended.cases().iter().map(outcome).collect();
    assert_eq!(outcomes, ["disrupted{node}", "pass"], "{}", ended.text);
    assert_eq!(place.marks(), 2);
}

/// It lets its jobs end, and gets no more.
pub(crate) fn a_node_that_is_drained_meanwhile_ends_its_job_in_peace() {
    let cluster = Cluster::own(Accounting::Off);
    let check = "executable: sleep 4; echo done\nsanity: [{ found: done }]\nsched_options: { nodelist: n2 }";
    let place = Place::new(&cluster, "draining", "launcher: none", check);
    let running = place.started(&[]);
    place.job("RUNNING");
    cluster.run(User::Root, &["scontrol", "update", "nodename=n2", "state=drain", "reason=bad fan"]);
    running.ended().expect_case(0, "pass", &[]);
    // Who asks for it now waits, and hears why.
    let place = Place::new(&cluster, "drainedfor", "launcher: none, max_pending_time: 6s", check);
    place.run(&[]).expect_case(3, "timeout{pending}", &["n2", "drain", "bad fan"]);
    assert!(place.jobs().is_empty());
}

/// A node that is drained gets no copy, and its reason is said; asked for by its state it gets one.
pub(crate) fn a_node_that_is_drained_is_left_out_and_named() {
    let cluster = Cluster::own(Accounting::Off);
    cluster.run(User::Root, &["scontrol", "update", "nodename=n2", "state=drain", "reason=bad gpu, see #12"]);
    let place = Place::new(&cluster, "drained", "launcher: none", "executable: hostname\nsanity: [{ found: '^n[13]' }]");
    let ended = place.run(&["--distribute"]).expect(0);
    assert_eq!(ended.nodes(), ["n1", "n3"], "{}", ended.text);
    let warning = "warning: --distribute leaves out a node of partition main: n2 idle+drain (bad gpu, see #12)";
    assert_eq!(ended.text.matches("leaves out").count(), 1, "{}", ended.text);
    assert!(ended.text.contains(warning), "{}", ended.text);
    for (states, nodes) in
        [("drain", "n2"), ("drained", "n2"), ("idle*", "n1 n3"), ("idle", "n1 n2 n3"), ("all", "n1 n2 n3"), ("n2,n3", "n2 n3")]
    {
        let listed = place.muster(&["-c", "c.check.yaml", "-lC", &format!("--distribute={states}")]).expect(0).text;
        let has: Vec<&str> = ["n1", "n2", "n3"].into_iter().filter(|node| listed.contains(&format!("%.nid={node}"))).collect();
        assert_eq!(has.join(" "), nodes, "{states}: {listed}");
    }
    let none = place.muster(&["-c", "c.check.yaml", "-lC", "--distribute=mixed"]);
    assert!(!none.text.contains("%.nid="), "{}", none.text);
}
