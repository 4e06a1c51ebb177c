//! Workloads as scripts: what stands in them, and what is refused.

use super::*;
use muster_core::{
    case::{CaseName, Identifier, SessionId},
    job::workload::Limits,
};
use muster_text::Value;
use serde_json::json;
use std::time::Duration;

fn workload(shared: &Value, options: Value) -> Workload {
    Workload {
        identifier: Identifier::parse("aotugiob").unwrap(),
        session: SessionId("s1".into()),
        case: CaseName { display: "nbody".into(), check: "n body".into(), ..CaseName::default() },
        stage: "/stage/it's".into(),
        staging: None,
        keep_files: Vec::new(),
        program: Program::Script { text: "#!/bin/sh\ntrue\n".to_owned(), pass_env: Vec::new() },
        scheduler: NAME.into(),
        own: serde_json::Map::new(),
        shared: shared.as_object().cloned().unwrap_or_default(),
        num_tasks: 8,
        sched_options: options,
        limits: Limits { pending: None, run: Some(Duration::from_secs(601)), judge: Duration::ZERO },
        keep_failed: None,
    }
}

fn script(shared: &Value, options: Value) -> String {
    let job = planned(&workload(shared, options)).unwrap();
    job.handle["script"].as_str().unwrap().to_owned()
}

/// The options after those that every job has.
fn own_lines(shared: &Value, options: Value) -> Vec<String> {
    let script = script(shared, options);
    let lines = script.lines().filter_map(|line| line.strip_prefix("#SBATCH "));
    lines.skip(8).map(str::to_owned).collect()
}

fn mistakes(shared: &Value, options: Value) -> Vec<String> {
    let wrong = planned(&workload(shared, options)).unwrap_err();
    wrong.into_iter().map(|mistake| mistake.message).collect()
}

#[test]
fn a_script_can_be_submitted_by_hand_and_runs_once() {
    assert_eq!(
        script(&json!({}), json!({})),
        r#"#!/bin/sh
#SBATCH --job-name=rfm-n-body-aotugiob
#SBATCH --comment="rfm=aotugiob rfm-session=s1"
#SBATCH --chdir="/stage/it's"
#SBATCH --output="/stage/it's/rfm_job.out"
#SBATCH --open-mode=append
#SBATCH --no-requeue
#SBATCH --time=11
#SBATCH --ntasks=8
cd '/stage/it'\''s' || exit 97
[ ! -e rfm_job.cancelled ] || { echo 'nothing ran: remove rfm_job.cancelled to run it by hand' > rfm_job.skipped; exit 0; }
( set -C; echo "$SLURM_JOB_ID" > rfm_job.id ) 2> /dev/null || [ "$(cat rfm_job.id)" = "$SLURM_JOB_ID" ] || { echo "nothing ran: job $(cat rfm_job.id) has the folder; remove rfm_job.id to run another by hand" > rfm_job.skipped; exit 0; }
[ -z "$SLURM_CPUS_PER_TASK" ] || export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"
true
"#
    );
}

#[test]
fn a_job_that_slurm_may_start_again_leaves_nothing_of_an_earlier_start() {
    let script = script(&json!({}), json!({ "policy": { "requeue": true } }));
    assert!(script.contains("#SBATCH --requeue\n"), "{script}");
    let line = "[ \"${SLURM_RESTART_COUNT:-0}\" -eq 0 ] || { rm -f rfm_job.exit rfm_job.fault; \
                dd if=/dev/null of=rfm_job.out bs=1 seek=28 2> /dev/null; }\n";
    assert!(script.contains(line), "{script}");
}

#[test]
fn the_shape_of_a_job_is_that_of_its_check() {
    let shape = json!({
        "num_tasks_per_node": 3, "num_cpus_per_task": 2, "num_gpus_per_node": 1, "exclusive_access": true,
        "use_multithreading": false,
    });
    let lines = ["--ntasks-per-node=3", "--cpus-per-task=2", "--gpus-per-node=1", "--exclusive", "--hint=nomultithread"];
    assert_eq!(own_lines(&shape, json!({})), lines);
    let with_nodes = own_lines(&shape, json!({ "use_nodes_option": true }));
    assert_eq!(with_nodes[1], "--nodes=3", "8 tasks, 3 a node");
}

#[test]
fn later_layers_replace_but_features_add_up_and_so_do_nodes_to_leave_out() {
    let shared = json!({
        "access": ["-p gpu -C a100", "--account=x", "-x n1"],
        "resources": [
            { "name": "_rfm_gpu", "options": ["--gres=gpu:{num_gpus_per_node}"] },
            { "name": "memory", "options": "--mem={size}" },
            { "name": "unused", "options": ["--licenses=l"] },
        ],
        "num_gpus_per_node": 2,
        "extra_resources": { "memory": { "size": "4G" }, "elsewhere": { "a": "b" } },
    });
    let options = json!({
        "account": "y", "constraint": ["nvme", "big"], "exclude": ["n2", "n3"], "mem": 0, "contiguous": true, "qos": null, "licenses": [],
        "options": ["--uenv=prgenv", "-L one", "--mounts='/a b'"], "node": "n4",
    });
    let mut lines = own_lines(&shared, options);
    lines.sort();
    assert_eq!(
        lines,
        [
            "--account=y",
            "--constraint=a100&nvme&big",
            "--contiguous",
            "--exclude=n1,n2,n3",
            "--gres=gpu:2",
            "--licenses=one",
            "--mem=0",
            "--mounts=\"/a b\"",
            "--nodelist=n4",
            "--nodes=1",
            "--partition=gpu",
            "--uenv=prgenv",
        ]
    );
}

#[test]
fn a_value_that_is_missing_or_cannot_be_meant_is_a_mistake() {
    let resource = json!({
        "resources": [{ "name": "memory", "options": ["--mem={size}"] }], "extra_resources": { "memory": { "sise": 1 } },
    });
    assert_eq!(mistakes(&resource, json!({})), ["the resource `memory` needs `size`, which `extra_resources` does not give"]);
    let slip =
        json!({ "resources": [{ "name": "gpu", "options": ["--gres=gpu:{num}"] }], "extra_resources": { "gpuu": { "num": 1 } } });
    assert_eq!(mistakes(&slip, json!({})), ["`extra_resources`: the partition has no resource `gpuu`"]);
    for others in [json!({ "gpu": { "num": 1 }, "gpus": { "num": 2 } }), json!({ "ipu": { "num": 1 } })] {
        let of_two_sites =
            json!({ "resources": [{ "name": "gpu", "options": ["--gres=gpu:{num}"] }], "extra_resources": others });
        assert!(planned(&workload(&of_two_sites, json!({}))).is_ok(), "{of_two_sites}");
    }
    let rows = [
        (json!({ "options": ["--array=1-9"] }), "`sched_options.options`: `--array=1-9` is not taken"),
        (json!({ "options": ["x"] }), "`sched_options.options`: `x` is not an option of sbatch"),
        (json!({ "mem": "1\n#SBATCH --x" }), "`sched_options.mem`: it has a control character"),
        (json!({ "mem": {} }), "`sched_options.mem`: it has one value"),
        (json!({ "account": "$ACCOUNT" }), "`sched_options.account`: sbatch does not expand `$ACCOUNT`"),
        (json!({ "policy": { "poll": 1 } }), "`sched_options.policy`: there is no `poll`"),
        (json!({ "policy": { "requeue": "yes" } }), "`sched_options.policy`: `requeue` is true or false"),
        (json!({ "policy": { "cluster": 1 } }), "`sched_options.policy`: `cluster` is a name"),
        (
            json!({ "policy": { "poll_min": "9s", "poll_max": "1s" } }),
            "`sched_options.policy`: `poll_min` is above 0, and `poll_max` is not less",
        ),
        (json!({ "resubmit_on_errors": ["("] }), "`sched_options.resubmit_on_errors`: `(` is not a regular expression"),
    ];
    for (options, mistake) in rows {
        assert_eq!(mistakes(&json!({}), options.clone()), [mistake], "{options}");
    }
    assert_eq!(
        mistakes(&json!({}), json!({ "comment": "x".repeat(2000) })),
        ["`comment` has more than 1024 bytes, and Slurm takes no more"]
    );
}

#[test]
fn a_site_decides_for_all_its_jobs() {
    let policy = json!({ "policy": { "requeue": true, "poll_max": "20s", "via": ["ssh", "login1"], "cluster": "big" } });
    let job = planned(&workload(&json!({}), policy)).unwrap();
    let handle = Handle::of(&job).unwrap();
    assert_eq!((handle.policy.requeue, handle.policy.poll_max), (true, Duration::from_secs(20)));
    assert_eq!(handle.place, Place { via: vec!["ssh".into(), "login1".into()], cluster: Some("big".into()) });
    assert!(handle.script.contains("#SBATCH --requeue\n") && !handle.script.contains("no-requeue"));
}

#[test]
fn what_a_script_leaves_of_its_end_is_read_as_it_was_meant() {
    let stage = tempfile::tempdir().unwrap();
    std::fs::write(stage.path().join("rfm_job.out"), "12345").unwrap();
    let left = |variables: &[(&str, &str)]| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", KEEP_STATUS]).current_dir(stage.path()).envs(variables.iter().copied());
        assert!(command.status().unwrap().success());
        crate::files::ExitFile::read(stage.path()).unwrap()
    };
    let plain = left(&[("rfm_status", "7"), ("SLURM_JOB_NODELIST", "n[1-2]")]);
    let read = (plain.status, plain.bytes, plain.restarts, plain.signalled, &*plain.nodes);
    assert_eq!(read, (7, Some(5), 0, false, "n[1-2]"));
    assert!(plain.ended.is_some() && plain.has_log_of(5) && !plain.has_log_of(4));
    let signalled = left(&[("rfm_status", "0"), ("rfm_signal", "1"), ("SLURM_RESTART_COUNT", "2")]);
    assert_eq!((signalled.status, signalled.restarts, signalled.is_doubtful()), (0, 2, true));
}
