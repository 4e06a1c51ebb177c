//! What a site and a check ask Slurm for: the job prints what Slurm has of it.

use crate::suite::{
    cluster::{Accounting, Cluster, User},
    sandbox::Place,
};

/// The executable: a line `KEY=VALUE ..`, as Slurm knows the job while it runs.
const SHOW: &str = "executable: scontrol\nexecutable_opts: [-o, show, job, $SLURM_JOB_ID]\nsanity: [{ found: JobId= }]\n";

/// Runs such a job. Returns its line with a blank before and after.
fn shown(cluster: &Cluster, name: &str, options: &str, check: &str) -> String {
    let place = Place::new(cluster, name, options, &format!("{SHOW}{check}"));
    let ended = place.run(&[]).expect_case(0, "pass", &[]);
    format!(" {} ", ended.printed().trim_end())
}

fn expect(shown: &str, words: &[&str]) {
    // Slurm 24.11 writes `gres/gpu:2`.
    let shown = shown.replace("=gres/gpu:", "=gres:gpu:");
    for word in words {
        assert!(shown.contains(&format!(" {word} ")), "{word}: {shown}");
    }
}

pub(crate) fn the_options_of_a_check_reach_slurm() {
    let check = "time_limit: 90s\nsched_options: { account: proj, qos: tight, constraint: big, exclude: n1, \
                 mem: 150M, licenses: 'lic:1', nice: 7 }";
    let shown = shown(Cluster::with_accounting(), "reach", "launcher: none", check);
    // The limit of Slurm is that of Muster, in whole minutes.
    let words = ["Account=proj", "QOS=tight", "Features=big", "ExcNodeList=n1", "NodeList=n3", "MinMemoryNode=150M"];
    expect(&shown, &words);
    expect(&shown, &["Licenses=lic:1", "TimeLimit=00:02:00", "Requeue=0", "Nice=7"]);
    assert!(shown.contains(" Comment=rfm=") && shown.contains(" rfm-session="), "{shown}");
}

pub(crate) fn a_job_runs_on_the_node_that_is_asked_for_in_its_reservation() {
    let cluster = Cluster::with_accounting();
    let reservation = ["reservationname=trial", "starttime=now", "duration=10", "users=alice", "nodes=n2", "flags=ignore_jobs"];
    cluster.run(User::Root, &[&["scontrol", "create", "reservation"], &reservation[..]].concat());
    let check = "sched_options: { reservation: trial, nodelist: [n2] }";
    expect(&shown(cluster, "reserved", "launcher: none", check), &["Reservation=trial", "ReqNodeList=n2", "NodeList=n2"]);
    cluster.run(User::Root, &["scontrol", "delete", "reservationname=trial"]);
    let place = Place::new(cluster, "unreserved", "launcher: none", &format!("{SHOW}{check}"));
    place.run(&[]).expect_case(3, "error{config}", &["reservation is invalid"]);
}

/// Slurm's commands are those of another machine: ssh has a shell there read them, with an environment of its own.
pub(crate) fn commands_of_slurm_run_through_a_remote_shell() {
    let check = "executable: echo\nexecutable_opts: [\"it is $((6 * 7))\"]\nparameters: { pause: [0, 100] }\n\
                 postrun_cmds: ['sleep ${{ pause }}']\nsanity: [{ found: it is 42 }]";
    let options = "launcher: none, sched_options: { policy: { via: [ssh, login1] } }";
    let place = Place::new(Cluster::shared(), "via", options, check);
    let remote = "[ \"$1\" = login1 ] || exit 255; shift; \
                  exec /usr/bin/env -i PATH=/usr/bin:/bin SLURM_CONF=\"$SLURM_CONF\" /bin/sh -c \"$*\"";
    place.stub("ssh", remote);
    let muster = |arguments: &[&str]| {
        let mut command = place.command(&[&["-c", "c.check.yaml", "--stage", "a stage's"], arguments].concat());
        command.env("PATH", place.file("bin"));
        command
    };
    let ended = place.to_end(&mut muster(&["-r", "-S", "pause=0", "--distribute=avail"])).expect(0);
    assert_eq!(ended.nodes(), ["n1", "n2", "n3"], "{}", ended.text);
    let validated = place.to_end(&mut muster(&["--dry-run=server"])).expect(0);
    assert!(validated.text.contains("# accepted by the server"), "{}", validated.text);
    let running = place.start(&mut muster(&["-r", "-S", "pause=100"]));
    place.job("RUNNING");
    running.signal("INT");
    running.ended().expect(130);
    assert!(place.jobs().is_empty());
}

/// `access` of a ReFrame site: short names, blanks, several options in one text.
pub(crate) fn the_access_of_a_reframe_site_becomes_options() {
    let options = "launcher: none, access: ['-p low', -C big, '--gres=gpu:2 -x n1', --mem=120M]";
    let words =
        ["Partition=low", "Features=big", "ExcNodeList=n1", "NodeList=n3", "TresPerNode=gres:gpu:2", "MinMemoryNode=120M"];
    expect(&shown(Cluster::shared(), "access", options, ""), &words);
}

/// Features add up, and so do nodes to leave out; of everything else the check counts.
pub(crate) fn constraints_and_excluded_nodes_of_site_and_check_both_hold() {
    let options = "launcher: none, access: ['--constraint=big|small -x n1'], sched_options: { mem: 100M, partition: low }";
    let check = "sched_options: { exclude: [n2], constraint: big, mem: 200M }";
    let words = ["Features=(big|small)&big", "ExcNodeList=n[1-2]", "NodeList=n3", "MinMemoryNode=200M", "Partition=low"];
    expect(&shown(Cluster::shared(), "layers", options, check), &words);
}

/// The same if the site has them in its own `sched_options`.
pub(crate) fn constraints_and_excluded_nodes_of_both_sched_options_hold() {
    let options = "launcher: none, sched_options: { exclude: n1, constraint: big|small, options: --nice=5 }";
    let check = "sched_options: { exclude: [n2], constraint: big, options: [--wckey=*] }";
    let words = ["Features=(big|small)&big", "ExcNodeList=n[1-2]", "NodeList=n3", "Nice=5"];
    expect(&shown(Cluster::shared(), "joined", options, check), &words);
}

/// Slurm takes no parentheses within others.
pub(crate) fn constraints_of_three_places_hold() {
    let (options, check) = ("launcher: none, access: ['-C (big|small)&big']", "sched_options: { constraint: big, exclude: n1 }");
    expect(&shown(Cluster::shared(), "nested", options, check), &["Features=(big|small)&big&big", "NodeList=n3"]);
    let options = "launcher: none, access: [-C big], sched_options: { constraint: big|small }";
    let check = "sched_options: { constraint: small|big, exclude: n1 }";
    expect(&shown(Cluster::shared(), "three", options, check), &["Features=big&(big|small)&(small|big)"]);
}

/// Commands of Slurm do not list it unless they are asked for all partitions.
pub(crate) fn a_hidden_partition_is_used_like_any_other() {
    let cluster = Cluster::own(Accounting::Off);
    cluster.run(User::Root, &["scontrol", "update", "partitionname=low", "hidden=yes"]);
    let place =
        Place::new(&cluster, "hidden", "launcher: none, sched_options: { partition: low }", "executable: sleep 3\nsanity: []");
    place.run(&[]).expect_case(0, "pass", &[]);
}

/// Those that the partition does not have add nothing.
pub(crate) fn a_resource_gets_the_values_of_the_check() {
    let resources = "launcher: none, resources: [{ name: gpu, options: ['--gres=gpu:{num}'] }, { name: bb, options: [--bb=x] }]";
    let check = "extra_resources: { gpu: { num: 2 }, scratch: { size: 1G } }";
    expect(&shown(Cluster::shared(), "resource", resources, check), &["TresPerNode=gres:gpu:2"]);
    let gpus = "launcher: none, resources: [{ name: _rfm_gpu, options: ['--gres=gpu:{num_gpus_per_node}'] }]";
    expect(&shown(Cluster::shared(), "rfmgpu", gpus, "num_gpus_per_node: 1"), &["TresPerNode=gres:gpu:1"]);
}

pub(crate) fn gpus_and_a_node_of_its_own_are_asked_for() {
    let shown =
        shown(Cluster::shared(), "exclusive", "launcher: none, access: [-p low]", "num_gpus_per_node: 2\nexclusive_access: true");
    expect(&shown, &["TresPerNode=gres:gpu:2", "NumCPUs=4", "OverSubscribe=NO"]);
}
