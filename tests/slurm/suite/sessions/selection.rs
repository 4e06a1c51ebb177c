//! Options of a session, nodes, and what would be submitted.

use crate::{
    common::eventually,
    suite::{
        cluster::{Accounting, Cluster, User},
        sandbox::Place,
    },
};
use std::time::Duration;

pub(crate) fn a_copy_of_a_case_runs_on_each_node_of_a_state() {
    let place = Place::new(Cluster::shared(), "nodes", "launcher: none", "executable: hostname\nsanity: [{ found: '^n' }]");
    let ended = place.run(&["--distribute=avail"]).expect(0);
    assert!(ended.text.contains("Ran 3/3"), "{}", ended.text);
    assert_eq!(ended.nodes(), ["n1", "n2", "n3"], "{}", ended.text);
    // What they are is stored: n1 and n3 have the feature.
    let facts = "SELECT n.name || ' ' || f.key || ' ' || f.value FROM node n JOIN node_fact f ON f.node = n.id
        WHERE f.until IS NULL AND (f.value LIKE '%big%' OR f.key = 'kernel') ORDER BY 1";
    let facts = muster_test_database::rows(&place.file("results.db"), facts).expect("facts");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
    let kernel = |node: &str| format!("{node} kernel {}", kernel.trim());
    let features = |node: &str| facts.iter().any(|fact| fact.starts_with(&format!("{node} features ")));
    assert!(["n1", "n2", "n3"].iter().all(|node| facts.contains(&kernel(node))), "{facts:?}");
    assert_eq!(["n1", "n2", "n3"].map(features), [true, false, true], "{facts:?}");
}

/// Nodes by name, and only those that meet the constraint of the partition.
pub(crate) fn copies_run_on_the_nodes_that_are_named_or_meet_the_constraint() {
    let check = "executable: hostname\nsanity: [{ found: '^n' }]";
    let place = Place::new(Cluster::shared(), "named", "launcher: none", check);
    assert_eq!(place.run(&["--distribute=n[2-3]"]).expect(0).nodes(), ["n2", "n3"]);
    let place = Place::new(Cluster::shared(), "big", "launcher: none, access: [-C big]", check);
    assert_eq!(place.run(&["--distribute=avail"]).expect(0).nodes(), ["n1", "n3"]);
}

/// The node of a reservation is for its users: they run there, and other copies do not.
pub(crate) fn a_reserved_node_gets_copies_only_with_its_reservation() {
    let cluster = Cluster::own(Accounting::Off);
    let words =
        ["scontrol", "create", "reservation", "reservationname=night", "starttime=now", "duration=30", "users=alice", "nodes=n3"];
    cluster.run(User::Root, &words);
    // Its nodes are marked some seconds later.
    eventually("the reservation", Duration::from_secs(20), || {
        cluster.run(User::Root, &["sinfo", "-h", "-p", "main", "-n", "n3", "-o", "%T"]) == "reserved\n"
    });
    let place =
        Place::new(&cluster, "night", "launcher: none", "executable: hostname\ntime_limit: 1m\nsanity: [{ found: '^n' }]");
    assert_eq!(place.run(&["--distribute=avail"]).expect(0).nodes(), ["n1", "n2"]);
    assert_eq!(place.run(&["--distribute=avail", "-J", "reservation=night"]).expect(0).nodes(), ["n3"]);
}

/// `-J` is above what the site and the check say.
pub(crate) fn options_of_the_command_line_count_last() {
    let check = "executable: scontrol\nexecutable_opts: [-o, show, job, $SLURM_JOB_ID]\nsched_options: { mem: 100M, nodelist: n1 }\n\
                 sanity: [{ found: ' MinMemoryNode=170M ' }, { found: ' ReqNodeList=n2 ' }, { found: ' Partition=low ' }]";
    let options = "launcher: none, sched_options: { partition: main }";
    let place = Place::new(Cluster::shared(), "above", options, check);
    place.run(&["-J", "mem=170M", "-J", "nodelist=n2", "-J", "partition=low"]).expect(0);
    let ended = place.run(&["-J", "nodelits=n2"]).expect(2);
    assert!(ended.text.contains("nodelist"), "{}", ended.text);
}

/// Names, folders and identifiers are drawn at the launch; all else is what a dry run shows.
pub(crate) fn a_dry_run_shows_the_script_that_is_submitted() {
    let check = "executable: echo\nexecutable_opts: ['it is ${{ n }}']\nparameters: { n: [5] }\nnum_tasks: 2\nnum_cpus_per_task: 1\n\
                 time_limit: 5m\nenv_vars: { COLOUR: red }\nsched_options: { mem: 100M, comment: mine }\nsanity: []";
    let options = "access: ['-C big'], sched_options: { exclude: n1 }";
    let place = Place::new(Cluster::shared(), "dry", options, check);
    let shown = place.muster(&["-c", "c.check.yaml", "--dry-run"]).expect(0).text;
    let ended = place.run(&[]).expect_case(0, "pass", &[]);
    let submitted = String::from_utf8_lossy(&ended.kept("rfm_job.sh")).into_owned();
    // What is drawn or made for the launch; variables of the tests' own environment that only sbatch needs.
    let drawn = |line: &&str| {
        ["#SBATCH --job-name=", "#SBATCH --chdir=", "#SBATCH --output=", "cd ", "unset "]
            .iter()
            .any(|begin| line.starts_with(begin))
    };
    let script = shown.find("#!/bin/sh").map(|at| shown[at..].trim_end()).unwrap_or_default();
    let (shown, submitted): (Vec<&str>, Vec<&str>) =
        (script.lines().filter(|line| !drawn(line)).collect(), submitted.lines().filter(|line| !drawn(line)).collect());
    assert_eq!(shown, submitted);
    assert!(submitted.contains(&"#SBATCH --comment=mine") && submitted.contains(&"#SBATCH --time=5"), "{submitted:?}");
}

/// Nothing is known of the cases then.
pub(crate) fn a_dry_run_of_a_server_that_is_away_validates_nothing() {
    let cluster = Cluster::own(Accounting::Off);
    let place = Place::new(&cluster, "awayserver", "launcher: none", "executable: 'true'\nsanity: []");
    cluster.stop("slurmctld");
    let ended = place.muster(&["-c", "c.check.yaml", "--dry-run=server"]).expect(2);
    assert!(ended.text.contains("# NOT VALIDATED: "), "{}", ended.text);
    assert!(ended.text.contains("the server gave no answer for 1 of 1 case(s)"), "{}", ended.text);
    cluster.start("slurmctld");
    // sbatch alone is not there.
    let folder = place.file("bin");
    std::fs::create_dir(&folder).expect("a folder");
    for program in ["squeue", "sinfo", "scontrol"] {
        std::os::unix::fs::symlink(format!("/usr/bin/{program}"), folder.join(program)).expect("a link");
    }
    let ended = place.to_end(place.command(&["-c", "c.check.yaml", "--dry-run=server"]).env("PATH", &folder)).expect(2);
    assert!(ended.text.contains("# NOT VALIDATED: sbatch is not on the PATH"), "{}", ended.text);
}

pub(crate) fn a_dry_run_of_the_server_says_what_would_be_refused_and_launches_nothing() {
    let check = "executable: echo mark >> $SLURM_SUBMIT_DIR/marks\nsanity: []\nparameters: { p: [main, short] }\ntime_limit: 30m\n\
                 sched_options: { partition: '${{ p }}' }";
    let place = Place::new(Cluster::shared(), "server", "launcher: none", check);
    let ended = place.muster(&["-c", "c.check.yaml", "--dry-run=server"]).expect(2);
    assert!(ended.text.contains("short allows 1 min"), "{}", ended.text);
    assert!(ended.text.contains("# accepted by the server"), "the other one: {}", ended.text);
    let wrong = place.muster(&["-c", "c.check.yaml", "--dry-run=server", "-J", "constraint=nope", "-E", "p == 'main'"]).expect(2);
    assert!(wrong.text.contains("# REFUSED by the server: sbatch: Invalid feature specification"), "{}", wrong.text);
    assert!(place.jobs().is_empty() && place.marks() == 0 && !place.file("stage/trial").exists(), "{}", ended.text);
}
