//! What a case runs: scripts, manifests, limits, options.

use super::*;

#[test]
fn the_script_takes_system_partition_environment_and_check_in_this_order() {
    let rendered = only(&check(
        "executable: run\nexecutable_opts: [-n, '${{ partition.processor.num_cores }}']\nenv_vars: { MINE: '4' }\nprerun_cmds: [pre]\npostrun_cmds: post\nsanity: []",
    ));
    let script = script(&rendered);
    let order = [". /etc/profile", "FROM_SYSTEM", "FROM_PARTITION", "FROM_ENVIRON", "MINE", "pre", "run -n 128", "post"];
    let places: Vec<Option<usize>> = order.iter().map(|piece| script.find(piece)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{script}");
}

#[test]
fn limits_come_from_the_check_else_from_the_partition() {
    let limits = |rest: &str| only(&check(&format!("{PLAIN}\n{rest}"))).workload.limits;
    let minutes = |minutes| Some(Duration::from_mins(minutes));
    assert_eq!((limits("").run, limits("").pending), (minutes(30), minutes(12 * 60)));
    assert_eq!(limits("time_limit: 5m").run, minutes(5));
    assert_eq!(limits("time_limit: null").run, None);
    assert_eq!(limits("max_pending_time: 2h").pending, minutes(120));
    assert_eq!(limits("max_pending_time: null").pending, None);
    assert_eq!(limits("judge_limit: 60").judge, Duration::from_mins(1));
}

#[test]
fn scheduler_options_of_the_check_lie_over_those_of_the_partition() {
    let on_local = check(&format!("{PLAIN}\nsched_options: {{ labels: {{ a: b }} }}\nnamespace: mine"));
    assert_eq!(only(&on_local).workload.sched_options, serde_json::json!({}), "of another scheduler");
    let of_k = on_k8s("k", "image: i\ncommand: [a]\nsched_options: { max_lifetime: 3h }\nnamespace: mine");
    assert_eq!(only(&of_k).workload.sched_options, serde_json::json!({ "max_lifetime": "3h", "namespace": "mine" }));
}

/// A check on a Kubernetes partition.
fn on_k8s(place: &str, rest: &str) -> String {
    format!("name: c\nvalid_systems: ['eidf:{place}']\n{rest}\nsanity: []")
}

#[test]
fn maps_of_scheduler_options_merge_and_rules_of_kinds_are_added_to_the_sites() {
    let text = on_k8s(
        "ipu",
        "image: i\ncommand: [a]\nsched_options: { labels: { team: null, mine: 1 }, k8s_workloads: [{ match: { kind: B } }] }",
    );
    let options = only(&text).workload.sched_options;
    assert_eq!(
        options,
        serde_json::json!({
            "labels": { "team": null, "queue": "q", "mine": 1 },
            "policy": { "max_pods": 4 },
            "k8s_workloads": [{ "match": { "kind": "A" } }, { "match": { "kind": "B" } }],
        })
    );
}

#[test]
fn a_sites_policy_and_its_patch_of_pods_are_not_for_a_check_to_change() {
    let own = "sched_options: { policy: { max_pods: 9 }, pod_patch: { spec: {} } }";
    let mistakes = mistakes(&on_k8s("ipu", &format!("image: i\ncommand: [a]\n{own}")));
    assert_eq!(
        mistakes,
        [
            "`policy` belongs to the site file: a check cannot set it",
            "`pod_patch` belongs to the site file: a check cannot set it"
        ]
    );
}

#[test]
fn a_key_of_several_schedulers_is_refused_where_it_has_no_meaning() {
    let on_k = on_k8s("k", "image: i\ncommand: [a]\nlauncher: srun");
    assert_eq!(mistakes(&on_k), ["`launcher` has no meaning on `k8s`"]);
    let shape = "num_nodes: 2\nnum_tasks_per_node: 4\nnum_tasks_per_socket: 2\nnum_tasks_per_core: 1";
    let of_local = only(&check(&format!("{PLAIN}\n{shape}")));
    assert!(of_local.workload.shared.is_empty(), "as ReFrame's local scheduler does");
    let keys = ["num_nodes", "num_tasks_per_node", "num_tasks_per_socket", "num_tasks_per_core"];
    let refused = keys.map(|key| format!("`{key}` has no meaning on `k8s`"));
    let mut found = mistakes(&on_k8s("k", &format!("image: i\ncommand: [a]\n{shape}")));
    found.sort_by_key(|message| refused.iter().position(|refusal| refusal == message));
    assert_eq!(found, refused);
}

#[test]
fn commands_that_start_tasks_themselves_have_the_launcher_of_the_partition() {
    let on = |place: &str, rest: &str| format!("name: c\nvalid_systems: ['eidf:{place}']\nsanity: []\n{rest}");
    let lines =
        |text: &str| script(&only(text)).lines().filter(|line| line.contains("solve")).map(str::to_owned).collect::<Vec<_>>();
    let both = "executable: solve\nprerun_cmds: ['${{ launcher }} ./presolve']";
    let rows = [
        ("", ["mpirun -np 1 ./presolve", "mpirun -np 1 solve"]),
        ("num_tasks: 8", ["mpirun -np 8 ./presolve", "mpirun -np 8 solve"]),
        ("variables: { n: 4 }\nnum_tasks: '${{ n }}'\nlauncher: srun", ["srun ./presolve", "srun solve"]),
        ("launcher: none\nlauncher_options: --x", [" ./presolve", "solve"]),
        ("launcher: srun\nlauncher_options: [--label, -v]", ["srun --label -v ./presolve", "srun --label -v solve"]),
        ("launcher: srun\nlauncher_modifier: ddt --offline", ["ddt --offline srun ./presolve", "ddt --offline srun solve"]),
        ("variables: { launcher: mine }", ["mine ./presolve", "mpirun -np 1 solve"]),
        (
            "launcher: 'run -n ${{ num_tasks }} {num_tasks_per_node}'\nnum_tasks_per_node: '${{ num_tasks * 2 }}'",
            ["run -n 1 2 ./presolve", "run -n 1 2 solve"],
        ),
    ];
    for (rest, expected) in rows {
        assert_eq!(lines(&on("batch", &format!("{both}\n{rest}"))), expected, "{rest}");
    }
    assert_eq!(lines(&on("cpu", both)), [" ./presolve", "solve"], "nothing starts tasks here");
    let wrong = [
        ("launcher: srum", "there is no launcher `srum`"),
        ("launcher: [srun]", "expected text, found a list"),
        ("variables: { step: '${{ launcher }}' }", "there is no `launcher` here"),
    ];
    for (rest, expected) in wrong {
        assert_eq!(mistakes(&on("batch", &format!("{both}\n{rest}"))), [expected], "{rest}");
    }
}

#[test]
fn an_unknown_option_is_a_mistake_on_every_scheduler() {
    for (text, message) in [
        (check(&format!("{PLAIN}\nsched_options: {{ nod: n2 }}")), "unknown option `nod` of the scheduler local"),
        (on_k8s("k", "image: i\ncommand: [a]\nsched_options: { lables: {} }"), "unknown option `lables` of the scheduler k8s"),
        (on_k8s("k", "image: i\ncommand: [a]\nsched_options: { max_lifetime: soon }"), "`soon` is not a duration"),
    ] {
        assert_eq!(mistakes(&text), [message], "{text}");
    }
}

#[test]
fn a_command_in_an_image_needs_a_shell_only_with_commands_around_it() {
    let program = |rest: &str| {
        let workload = only(&on_k8s("k", &format!("image: i\n{rest}"))).workload;
        match workload.program {
            Program::Container { command, script, .. } => (command, script, workload.own.get("k8s_patch").cloned()),
            other => panic!("{other:?}"),
        }
    };
    let (command, script, patch) = program("command: [echo, a b]\nk8s_patch: { spec: { nodeName: n1 } }");
    assert_eq!(command, Some(vec!["echo".to_owned(), "a b".to_owned()]));
    assert_eq!(patch, Some(serde_json::json!({ "spec": { "nodeName": "n1" } })));
    assert!(!script.contains("rfm_job.exit"), "{script}");
    let (command, script, patch) = program("command: [echo, a b]\nprerun_cmds: [pre]");
    assert_eq!((command, patch), (None, None));
    assert!(script.contains("pre\necho 'a b'\n"), "{script}");
}

#[test]
fn tasks_are_counted_before_anything_reads_them() {
    let rendered = only(&check(
        "executable: run ${{ num_tasks }} ${{ total }}\nvariables: { total: '${{ num_tasks * 2 }}' }\nnum_tasks: ${{ partition.devices.gpu.num_devices }}\nsanity: []",
    ));
    assert_eq!(rendered.workload.num_tasks, 8);
    assert!(script(&rendered).contains("run 8 16"));
    assert!(
        mistakes(&check(&format!("{PLAIN}\nnum_tasks: 0")))
            .iter()
            .any(|message| message.contains("above 0") || message.contains('0'))
    );
}

#[test]
fn a_check_without_what_its_scheduler_needs_is_a_mistake() {
    assert!(mistakes(&check("sanity: []"))[0].contains("no `executable` and no `command`, which `local` needs"));
    let found = mistakes("name: c\nvalid_systems: ['eidf:k']\nexecutable: a\nsanity: []");
    assert!(found[0].contains("`k8s_config`"), "{found:?}");
    assert!(mistakes(&check("executable: a"))[0].contains("no `sanity`"));
}

#[test]
fn a_manifest_is_filled_in_with_the_case() {
    let text = "name: c\nvalid_systems: ['eidf:k']\nparameters: { n: [3] }\nk8s_config: job.yaml\nk8s_patch: { spec: { extra: '${{ n + 1 }}' } }\nenv_vars: { A: '${{ n }}' }\nsanity: []";
    let workload = only(text).workload;
    assert_eq!(workload.own["k8s_config"], serde_json::json!([{ "kind": "Job", "spec": { "size": 3 } }]));
    assert_eq!(workload.own["k8s_patch"], serde_json::json!({ "spec": { "extra": 4 } }));
    match workload.program {
        Program::Own { env_vars } => {
            assert!(env_vars.contains(&("A".to_owned(), "3".to_owned())));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn check_or_partition_says_how_long_staging_may_take() {
    let minutes = |count| Some(Duration::from_mins(count));
    let rows = [
        ("gpu", "", minutes(10)),
        ("cpu", "", minutes(2)),
        ("cpu", "stage_limit: 1h", minutes(60)),
        ("cpu", "stage_limit: null", None),
    ];
    for (partition, key, expected) in rows {
        let text = format!(
            "name: c\nvalid_systems: ['eidf:{partition}']\nvalid_prog_environs: [gnu]\nsourcesdir: input\n{PLAIN}\n{key}\n"
        );
        let staging = only(&text).workload.staging.expect("a folder is staged");
        assert_eq!(staging.limit, expected, "{partition} {key}");
    }
}
