//! From the text of check and site files to rendered cases: the rules of the format, as tables.

use muster_core::{
    check::Check,
    decode::{Context, Placeholders},
    diagnostic::{FileId, Severity},
    load::Loader,
    site_facts::{KnownSystems, SystemFacts},
    site_file,
    test_case::{LaunchFacts, Rendered, TestCase},
    workload::Program,
    yaml,
};
use std::{sync::Arc, time::Duration};

const SITE: &str = r#"
name: eidf
extras: { region: north }
env_vars: { FROM_SYSTEM: "1" }
partitions:
  - name: gpu
    scheduler: local
    environs: [gnu, cray]
    features: [gpu, a100]
    extras: { cores: 64 }
    time_limit: 30m
    env_vars: { FROM_PARTITION: "2" }
    prepare_cmds: [". /etc/profile"]
    sched_options: { queue: fast, depth: 1 }
    processor: { num_cores: 128 }
    devices: [{ type: gpu, arch: sm_80, num_devices: 8 }]
  - { name: cpu, scheduler: local, environs: [gnu] }
  - { name: k, scheduler: k8s, environs: [gnu] }
  - name: ipu
    scheduler: ipu
    environs: [gnu]
    sched_options: { labels: { team: hpc, queue: q }, policy: { max_pods: 4 }, k8s_workloads: [{ match: { kind: A } }] }
environments:
  - { name: gnu, features: [mpi], env_vars: { FROM_ENVIRON: "3" } }
  - { name: cray }
"#;

/// All cases of the checks in `text`, and the messages of all mistakes.
fn cases(text: &str) -> (Vec<TestCase>, Vec<String>) {
    let parsed = yaml::parse(FileId::default(), SITE);
    let mut context = Context::new(Placeholders::Refuse);
    let system = site_file::read(&parsed.documents[0], &mut context).expect("a sound site");
    assert_eq!(context.diagnostics, []);
    let known = KnownSystems::of([&system]);
    let facts = SystemFacts::new(Arc::new(system), known);

    let mut loader = Loader::default();
    loader.add("check.yaml", text);
    loader.provide("job.yaml", Ok("kind: Job\nspec: { size: '${{ n }}' }\n".to_owned()));
    let read = loader.finish();
    let mut diagnostics = read.diagnostics;
    let mut all = Vec::new();
    for document in &read.checks {
        let check = Check::new(document, None, read.manifests.clone(), &facts.known, &mut diagnostics);
        if let Some(check) = check {
            all.extend(Arc::new(check).cases(&facts, &mut diagnostics));
        }
    }
    (all, diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect())
}

/// A check on one place, with whatever else is given.
fn check(rest: &str) -> String {
    format!("name: c\nvalid_systems: ['eidf:gpu']\nvalid_prog_environs: [gnu]\n{rest}\n")
}

fn rendered(text: &str) -> Vec<Rendered> {
    let (cases, mistakes) = cases(text);
    assert_eq!(mistakes, [""; 0], "{text}");
    cases.iter().map(|case| case.render(&LaunchFacts::rehearsal()).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))).collect()
}

fn only(text: &str) -> Rendered {
    let mut all = rendered(text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

/// The mistakes of loading and of rendering every case.
fn mistakes(text: &str) -> Vec<String> {
    let (cases, mut mistakes) = cases(text);
    let of_cases = cases.iter().filter_map(|case| case.render(&LaunchFacts::rehearsal()).err()).flatten();
    mistakes.extend(of_cases.map(|diagnostic| diagnostic.message));
    // As they are printed: equal ones once.
    let mut seen = std::collections::HashSet::new();
    mistakes.retain(|message| seen.insert(message.clone()));
    mistakes
}

fn script(rendered: &Rendered) -> &str {
    match &rendered.workload.program {
        Program::Script { text, .. } => text,
        other => panic!("{other:?}"),
    }
}

const PLAIN: &str = "executable: run\nsanity: []";

#[test]
fn parameters_make_a_product_with_the_last_one_fastest() {
    let (all, _) = cases(&check(&format!("{PLAIN}\nparameters: {{ a: [1, 2], b: [x, {{ name: y, z: 3 }}] }}")));
    let names: Vec<&str> = all.iter().map(|case| case.name.display.as_str()).collect();
    assert_eq!(names, ["c %a=1 %b=x", "c %a=1 %b=y", "c %a=2 %b=x", "c %a=2 %b=y"]);
}

#[test]
fn a_parameter_may_be_computed_from_the_system_and_earlier_parameters() {
    let (all, mistakes) = cases(&check(&format!(
        "{PLAIN}\nparameters: {{ n: [1, 2], m: '${{{{ range(0, n) }}}}', r: ['${{{{ system.extras.region }}}}'] }}"
    )));
    let names: Vec<&str> = all.iter().map(|case| case.name.display.as_str()).collect();
    assert_eq!(names, ["c %n=1 %m=0 %r=north", "c %n=2 %m=0 %r=north", "c %n=2 %m=1 %r=north"], "{mistakes:?}");
}

#[test]
fn a_hash_survives_another_order_of_the_file() {
    let hashes = |parameters: &str| {
        let (all, _) = cases(&check(&format!("{PLAIN}\nparameters: {parameters}")));
        let mut hashes: Vec<String> = all.iter().map(|case| case.name.hash.clone()).collect();
        hashes.sort();
        hashes
    };
    assert_eq!(hashes("{ a: [1, 2], b: [x] }"), hashes("{ b: [x], a: [2, 1] }"));
}

#[test]
fn bad_parameters_are_told() {
    let rows = [
        ("{ a: [1, 1] }", "has the value `1` twice"),
        ("{ a: [] }", "has no values"),
        ("{ a: 5 }", "needs a list"),
        ("{ a: [1.20] }", "1.20"),
        ("{ a: [[1]] }", "is a list"),
        ("{ a: [{ size: 1 }] }", "is a mapping"),
        ("{ a: ['${{ b }}'], b: [1] }", "`b`"),
    ];
    for (parameters, expected) in rows {
        let told = mistakes(&check(&format!("{PLAIN}\nparameters: {parameters}")));
        assert!(told.iter().any(|message| message.contains(expected)), "{parameters}: {told:?}");
    }
}

#[test]
fn places_are_chosen_by_systems_and_environments() {
    let places = |selectors: &str| {
        let (all, _) = cases(&format!("name: c\n{selectors}\n{PLAIN}"));
        all.iter().map(|case| format!("{}+{}", case.name.partition, case.name.environ)).collect::<Vec<_>>().join(" ")
    };
    let rows = [
        ("valid_systems: ['*']", "gpu+gnu gpu+cray cpu+gnu k+gnu ipu+gnu"),
        ("valid_systems: eidf:cpu", "cpu+gnu"),
        ("valid_systems: [+gpu]\nvalid_prog_environs: [cray]", "gpu+cray"),
        ("valid_systems: ['+gpu %cores=64', 'eidf:cpu']\nvalid_prog_environs: [+mpi]", "gpu+gnu cpu+gnu"),
        ("valid_systems: ['%gpu=sm_80']\nvalid_prog_environs: [-mpi]", "gpu+cray"),
        ("valid_systems: ['%scheduler=k8s']", "k+gnu"),
        (
            "valid_systems: ['*']\nparameters: { p: [cpu, k] }\nwhen: [{ with: { p: k }, valid_systems: ['eidf:k'] }, { with: { p: cpu }, valid_systems: ['eidf:cpu'] }]",
            "cpu+gnu k+gnu",
        ),
        ("valid_systems: ['eidf:${{ p }}']\nparameters: { p: [cpu, k] }", "cpu+gnu k+gnu"),
    ];
    for (selectors, expected) in rows {
        assert_eq!(places(selectors), expected, "{selectors}");
    }
}

#[test]
fn names_of_systems_that_nobody_knows_are_told() {
    let (_, told) = cases("name: c\nvalid_systems: ['eidff', 'eidf:gppu', 'somewhere-else:x']\nexecutable: a\nsanity: []");
    let expected = [
        "no site file defines a system `eidff`",
        "system `eidf` has no partition `gppu`",
        "no site file defines a system `somewhere-else`",
    ];
    assert_eq!(told, expected);
    // Another site's name is no mistake of this one.
    let known = KnownSystems::of([&site_file::built_in_local()]);
    let mut diagnostics = Vec::new();
    known.check_name("somewhere-else", muster_core::diagnostic::Span::default(), &mut diagnostics);
    assert_eq!(diagnostics[0].severity, Severity::Warning);
}

#[test]
fn the_script_takes_system_partition_environment_and_check_in_this_order() {
    let rendered = only(&check(
        "executable: run\nexecutable_opts: [-n, '${{ partition.processor.num_cores }}']\nenv_vars: { MINE: '4' }\nprerun_cmds: [pre]\npostrun_cmds: post\nsanity: []",
    ));
    let script = script(&rendered);
    let order = ["FROM_SYSTEM", "FROM_PARTITION", "FROM_ENVIRON", "MINE", ". /etc/profile", "pre", "run -n 128", "post"];
    let places: Vec<Option<usize>> = order.iter().map(|piece| script.find(piece)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{script}");
}

#[test]
fn limits_come_from_the_check_else_from_the_partition() {
    let limits = |rest: &str| only(&check(&format!("{PLAIN}\n{rest}"))).workload.limits;
    let minutes = |minutes| Some(Duration::from_mins(minutes));
    assert_eq!((limits("").run, limits("").pending), (minutes(30), None));
    assert_eq!(limits("time_limit: 5m").run, minutes(5));
    assert_eq!(limits("time_limit: null").run, None);
    assert_eq!(limits("max_pending_time: 2h").pending, minutes(120));
    assert_eq!(limits("judge_limit: 60").judge, Duration::from_mins(1));
}

#[test]
fn scheduler_options_of_the_check_lie_over_those_of_the_partition() {
    let options = only(&check(&format!("{PLAIN}\nsched_options: {{ depth: 2 }}\nnamespace: mine"))).workload.sched_options;
    assert_eq!(options, serde_json::json!({ "queue": "fast", "depth": 2, "namespace": "mine" }));
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
fn a_sites_policy_is_not_for_a_check_to_change() {
    let mistakes = mistakes(&on_k8s("ipu", "image: i\ncommand: [a]\nsched_options: { policy: { max_pods: 9 } }"));
    assert_eq!(mistakes, ["`policy` is the site's: a check cannot set it"]);
}

#[test]
fn on_an_ipu_partition_an_ipujob_is_the_workload_unless_the_check_says_otherwise() {
    let resource = |place: &str, rest: &str| {
        let options = only(&on_k8s(place, rest)).workload.sched_options;
        options.get("k8s_resource").and_then(|resource| resource.as_str().map(str::to_owned))
    };
    assert_eq!(resource("ipu", "k8s_config: { kind: IPUJob }").as_deref(), Some("ipujob"));
    assert_eq!(resource("ipu", "k8s_config: { kind: IPUJob }\nk8s_resource: pod").as_deref(), Some("pod"));
    assert_eq!(resource("ipu", "k8s_config: { kind: Pod }"), None);
    assert_eq!(resource("k", "k8s_config: { kind: IPUJob }"), None);
}

#[test]
fn a_command_in_an_image_needs_a_shell_only_with_commands_around_it() {
    let program = |rest: &str| match only(&on_k8s("k", &format!("image: i\n{rest}"))).workload.program {
        Program::Container { command, script, patch, .. } => (command, script, patch),
        other => panic!("{other:?}"),
    };
    let (command, script, patch) = program("command: [echo, a b]\nk8s_patch: { spec: { nodeName: n1 } }");
    assert_eq!(command, Some(vec!["echo".to_owned(), "a b".to_owned()]));
    assert_eq!(patch, Some(serde_json::json!({ "spec": { "nodeName": "n1" } })));
    assert!(!script.contains("rfm_job.exit"), "{script}");
    let (command, script, patch) = program("command: [echo, a b]\nprerun_cmds: [pre]");
    assert_eq!((command, patch), (None, None));
    assert!(script.contains("pre\n'echo' 'a b'\n"), "{script}");
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
fn a_fact_that_the_site_does_not_know_skips_the_case_and_is_named() {
    for (expression, fact) in [
        ("partition.processor.num_sockets", "processor.num_sockets"),
        ("partition.devices.npu.num_devices", "devices.npu.num_devices"),
    ] {
        let rendered = only(&check(&format!("executable: run ${{{{ {expression} }}}}\nsanity: []")));
        assert_eq!(rendered.skip.as_deref(), Some(format!("eidf:gpu does not say {fact}").as_str()));
    }
    // An extra is the site's own promise: without it the file is wrong.
    assert_ne!(mistakes(&check("executable: run ${{ partition.extras.missing }}\nsanity: []")), [""; 0]);
}

#[test]
fn later_entries_of_when_win_and_see_what_earlier_ones_left() {
    let text = "executable: run ${{ mode }}\nvariables: { mode: a }\nsanity: [{ found: x }]\nwhen:\n  - { system: +gpu, variables: { mode: b } }\n  - { if: \"mode == 'b'\", variables: { mode: c }, sanity+: [{ found: y }] }\n  - { environ: cray, variables: { mode: d } }\n  - { system: 'eidf:cpu', variables: { mode: e } }";
    let rendered = only(&check(text));
    assert!(script(&rendered).contains("run c"), "{}", script(&rendered));
    assert_eq!(rendered.rules.sanity.len(), 2);
}

#[test]
fn an_item_whose_keys_became_null_is_left_out() {
    let rendered = only(&check(
        "executable: run\nvariables: { strict: false }\nsanity: [{ found: a }, { found: \"${{ strict ? 'b' : null }}\" }]",
    ));
    assert_eq!(rendered.rules.sanity.len(), 1);
}

#[test]
fn inserted_text_is_escaped_in_a_pattern_unless_it_is_the_pattern() {
    let rendered =
        only(&check("executable: run\nvariables: { v: 1.5+ }\nsanity: [{ found: 'speed ${{ v }}x' }, { found: '${{ v }}' }]"));
    let text = serde_json::to_string(&rendered.rules.sanity).expect("JSON");
    assert!(text.contains(r"speed 1\\.5\\+x") && text.contains(r#""1.5+""#), "{text}");
}

#[test]
fn the_narrowest_reference_wins() {
    let winner = |reference: &str| {
        let rendered = only(&check(&format!(
            "{PLAIN}\nparameters: {{ n: [4] }}\nperf_variables: {{ x: {{ pattern: '(\\d+)', unit: s }} }}\nreference:\n{reference}"
        )));
        rendered.rules.references.iter().map(|row| row.reference.value).collect::<Vec<_>>()
    };
    let rows = [
        ("  '*': { x: [1, null, null] }\n  eidf: { x: [2, null, null] }\n  'eidf:gpu': { x: [3, null, null] }", vec![3.0]),
        ("  '*': { x: [1, null, null] }\n  +a100: { x: [4, null, null] }", vec![4.0]),
        ("  eidf: { x: [2, null, null] }\n  +a100: { x: [4, null, null] }", vec![2.0]),
        ("  'eidf:cpu': { x: [5, null, null] }", vec![]),
        (
            "  - { system: 'eidf:gpu', values: { x: [1, null, null] } }\n  - { with: { n: 4 }, values: { x: [2, null, null] } }",
            vec![2.0],
        ),
        (
            "  - { with: { n: 5 }, values: { x: [1, null, null] } }\n  - { if: n > 3, values: { x: ['${{ n * 10 }}', null, null] } }",
            vec![40.0],
        ),
    ];
    for (reference, expected) in rows {
        assert_eq!(winner(reference), expected, "{reference}");
    }
}

#[test]
fn references_that_cannot_be_meant_are_told_wherever_they_apply() {
    let told = |reference: &str| {
        mistakes(&check(&format!("{PLAIN}\nperf_variables: {{ x: {{ pattern: '(\\d+)', unit: s }} }}\nreference: {reference}")))
            .join("; ")
    };
    let rows = [
        ("{ +gpu: { x: [1, null, null] }, +a100: { x: [2, null, null] } }", "equally narrow"),
        ("{ 'eidf:cpu': { x: [1, 0.1, null] } }", "lower threshold"),
        ("{ '*': { x: [1, null, null, ms] } }", "ms"),
        ("{ '*': { y: [1, null, null] } }", "no performance variable"),
        ("{ eidff: { x: [1, null, null] } }", "eidff"),
        ("[{ with: { nn: 1 }, values: { x: [1, null, null] } }]", "no parameter `nn`"),
    ];
    for (reference, expected) in rows {
        assert!(told(reference).contains(expected), "{reference}: {}", told(reference));
    }
}

#[test]
fn a_check_without_what_its_scheduler_needs_is_a_mistake() {
    assert!(mistakes(&check("sanity: []"))[0].contains("no `executable` and no `command`, which `local` needs"));
    let told = mistakes("name: c\nvalid_systems: ['eidf:k']\nexecutable: a\nsanity: []");
    assert!(told[0].contains("`k8s_config`"), "{told:?}");
    assert!(mistakes(&check("executable: a"))[0].contains("no `sanity`"));
}

#[test]
fn a_manifest_is_filled_in_with_the_case() {
    let text = "name: c\nvalid_systems: ['eidf:k']\nparameters: { n: [3] }\nk8s_config: job.yaml\nk8s_patch: { spec: { extra: '${{ n + 1 }}' } }\nenv_vars: { A: '${{ n }}' }\nsanity: []";
    match only(text).workload.program {
        Program::Objects { manifest, patch, env_vars } => {
            assert_eq!(manifest, [serde_json::json!({ "kind": "Job", "spec": { "size": 3 } })]);
            assert_eq!(patch, Some(serde_json::json!({ "spec": { "extra": 4 } })));
            assert!(env_vars.contains(&("A".to_owned(), "3".to_owned())));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn checks_extend_each_other_within_a_file() {
    let text = "name: base\nabstract: true\nvalid_systems: ['eidf:gpu']\nvalid_prog_environs: [gnu]\ntags: [a]\nvariables: { size: 1, mode: x }\nexecutable: run ${{ size }} ${{ mode }}\nsanity: []\n---\nname: big\nextends: '#base'\nvariables: { size: 100 }\ntags+: [b]\n";
    let (all, told) = cases(text);
    assert_eq!(told, [""; 0]);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].tags(), ["a", "b"]);
    let rendered = all[0].render(&LaunchFacts::rehearsal()).expect("renders");
    assert!(script(&rendered).contains("run 100 x"));
}

#[test]
fn rules_carry_only_the_facts_that_expressions_read() {
    let rendered = only(&check(
        "executable: a\nvariables: { limit: 5, other: 6 }\nsanity: [{ assert: 'count(r\"x\") < limit' }]\nperf_variables: { y: { value: 'perf[\"y\"] + 1.0', unit: s } }",
    ));
    let names: Vec<&String> = rendered.rules.facts.keys().collect();
    assert_eq!(names, ["limit"]);
}

#[test]
fn a_base_is_judged_with_what_its_heirs_declare() {
    let base = "name: base\nabstract: true\nvalid_systems: ['eidf:gpu']\nvalid_prog_environs: [gnu]\nexecutable: run ${{ size }}\nsanity: []\nperf_variables: { x: { unit: s } }\nreference: { '*': { x: [1, null, null, s] } }\nwhen: [{ with: { size: 2 }, skip: too large }]\n";
    let heir = "---\nname: heir\nextends: '#base'\nparameters: { size: [1, 2] }\nperf_variables: { x: { pattern: '(.)' } }\n";
    assert_eq!(mistakes(base), [""; 0]);
    let all = rendered(&format!("{base}{heir}"));
    assert_eq!(all.len(), 1);
    assert!(script(&all[0]).contains("run 1"));
    // What is wrong in itself is told of a base, too.
    for (slip, expected) in [("sanity: [{ found: '(' }]", "unclosed group"), ("descr: '${{ 1 + }}'", "ends too early")] {
        let told = mistakes(&format!("name: base\nabstract: true\n{slip}\n"));
        assert!(told.iter().any(|message| message.contains(expected)), "{slip}: {told:?}");
    }
}

#[test]
fn a_reason_to_skip_sees_variables_and_a_null_is_none() {
    let skip = |entry: &str| {
        let all = rendered(&check(&format!(
            "{PLAIN}\nparameters: {{ n: [1] }}\nvariables: {{ v: '${{{{ n + 1 }}}}' }}\nwhen: [{entry}]"
        )));
        all.first().map(|rendered| rendered.skip.clone())
    };
    let rows = [
        ("{ if: v > 1, skip: 'v is ${{ v }}' }", Some(Some("v is 2"))),
        ("{ if: n == 1, skip: never }", None),
        ("{ skip: null }", Some(None)),
        ("{ if: v > 1, skip: '${{ null }}' }", Some(None)),
        ("{ if: n == 1, skip: \"${{ n > 1 ? 'large' : null }}\" }", Some(None)),
        ("{ if: n == 1, skip: \"${{ n > 0 ? 'small' : null }}\" }", None),
        ("{ if: n == 1, skip: 'v is ${{ v }}' }", Some(Some("v is 2"))),
    ];
    for (entry, expected) in rows {
        assert_eq!(skip(entry), expected.map(|reason| reason.map(str::to_owned)), "{entry}");
    }
}

#[test]
fn entries_of_when_that_cannot_work_are_told() {
    let rows = [
        ("{ system: +gpu, tags: [a] }", "`tags` is read before this entry can be decided"),
        ("{ if: num_tasks > 0, valid_systems: [eidf] }", "`valid_systems` is read before"),
        ("{ environ: gnu, tags+: [a] }", "`tags+` is read before"),
        ("{ with: { n: '${{ 1 }}' }, descr: x }", "a selector cannot hold a placeholder"),
        ("{ system: ['${{ 1 }}'], descr: x }", "a selector cannot hold a placeholder"),
        ("{ system: 'eidf:gppu', descr: x }", "has no partition `gppu`"),
        ("{ with: { n: 3 }, descr: x }", "parameter `n` never is `3`"),
        ("{ if: '${{ n }}', descr: x }", "this is an expression already"),
    ];
    for (entry, expected) in rows {
        let told = mistakes(&check(&format!("{PLAIN}\nparameters: {{ n: [1, 2] }}\nwhen: [{entry}]")));
        assert!(told.len() == 1 && told[0].contains(expected), "{entry}: {told:?}");
    }
    let early = check(&format!("{PLAIN}\nparameters: {{ n: [1] }}\nwhen: [{{ with: {{ n: 1 }}, system: eidf, tags: [a] }}]"));
    assert_eq!(cases(&early).0[0].tags(), ["a"]);
}

#[test]
fn a_layer_takes_back_what_one_below_it_says() {
    let rendered = only(&check(
        "executable: run\nenv_vars: { A: x, B: y }\nsanity: []\nperf_variables: { a: { pattern: a }, b: { pattern: b } }\nreference: { '*': { a: [1, null, null] } }\nwhen: [{ system: +gpu, env_vars: { A: null }, perf_variables: { a: null } }]",
    ));
    let script = script(&rendered);
    assert!(script.contains("B=\"y\"") && !script.contains("export A="), "{script}");
    let names: Vec<&str> = rendered.rules.perf_variables.iter().map(|variable| variable.name.as_str()).collect();
    assert_eq!(names, ["b"]);
    assert_eq!(rendered.rules.references, []);
}

#[test]
fn references_find_their_variables_wherever_those_are_declared() {
    let text = |reference: &str, when: &str| {
        check(&format!(
            "{PLAIN}\nvariables: {{ w: x, k: 8 }}\nperf_variables: {{ x: {{ pattern: '(.)', unit: s }}, t: {{ pattern: '(?<key>.)(?<value>.)', unit: s }} }}\nreference: {{ '*': {{ {reference} }} }}\nwhen: [{{ system: +gpu, {when} }}]"
        ))
    };
    let labels =
        |text: &str| only(text).rules.references.iter().map(muster_core::reference::ReferenceRow::label).collect::<Vec<_>>();
    let of_another = "perf_variables: { y: { pattern: '(.)', unit: s } }";
    let rows = [
        ("y: [1, null, null, s]", of_another, vec!["y"]),
        (
            "x: [1, null, null, s]",
            "perf_variables: { y: { pattern: a } }, reference: { '*': { x: [2, null, null, s], y: [3, 0, 0] } }",
            vec!["x", "y"],
        ),
        ("'${{ w }}': [1, null, null, s], 't[${{ k }}]': [1, null, null, s]", "descr: x", vec!["t[8]", "x"]),
    ];
    for (reference, when, expected) in rows {
        assert_eq!(labels(&text(reference, when)), expected, "{reference}");
    }
    // One that only another layer measures is not asked for here.
    let elsewhere = text("y: [1, null, null, s]", of_another).replace("+gpu", "+arm");
    assert_eq!(labels(&elsewhere), [""; 0]);
    let told = mistakes(&text("'x[8]': [1, null, null, s]", "descr: x"));
    assert_eq!(told, ["`x` is no table: its pattern has no group `key`"]);
}

#[test]
fn what_is_wrong_with_every_case_is_told_once() {
    let slips = [
        "reference: { +gpu: { x: [1, 0, 0] }, +a100: { x: [1, 0, 0] } }",
        "descr: ${{ partition.extras.nope }}",
        "tags: ['${{ partition.name }}']",
    ];
    for slip in slips {
        let text =
            check(&format!("{PLAIN}\nparameters: {{ n: [1, 2, 3] }}\nperf_variables: {{ x: {{ pattern: '(.)' }} }}\n{slip}"));
        assert_eq!(mistakes(&text).len(), 1, "{slip}: {:?}", mistakes(&text));
    }
}

#[test]
fn a_null_bound_is_open_wherever_it_comes_from() {
    let rendered = only(&check(&format!(
        "{PLAIN}\nperf_variables: {{ x: {{ pattern: '(.)', unit: s }} }}\nreference: {{ '*': {{ x: [10, '${{{{ null }}}}', 0.1, s] }} }}"
    )));
    let reference = &rendered.rules.references[0].reference;
    assert_eq!((reference.lower, reference.upper, reference.unit.as_deref()), (None, Some(0.1), Some("s")));
    let rendered = only(&check(&format!(
        "{PLAIN}\nperf_variables: {{ x: {{ pattern: '(.)' }} }}\nreference: [{{ values: {{ x: {{ value: 10, upper: 1, warn: ['${{{{ null }}}}', 0.1] }} }} }}]"
    )));
    assert_eq!(rendered.rules.references[0].reference.warn, Some((None, Some(0.1))));
}

#[test]
fn an_item_of_sanity_claims_something() {
    let told = |item: &str| mistakes(&check(&format!("executable: run\nsanity: [{item}]")));
    for item in ["{}", "{ msg: x }", "{ count: 3 }"] {
        assert_eq!(told(item), ["an item of `sanity` claims something"], "{item}");
    }
    assert_eq!(cases(&check("executable: run\nsanity: [{ foud: a }]")).1, ["unknown key `foud` in an item of `sanity`"]);
    assert_eq!(told("{ found: null }, { found: '${{ null }}', count: 3, msg: x }"), [""; 0]);
    assert_eq!(told("{ exit: 300 }"), ["300 is no exit status"]);
    assert_eq!(told("{ exit: [0, -1] }"), ["-1 is no exit status"]);
}

#[test]
fn only_a_missing_fact_skips_and_wherever_it_is_read() {
    let skip = |rest: &str| {
        let (all, told) = cases(&check(rest));
        assert_eq!(told, [""; 0], "{rest}");
        all[0].render(&LaunchFacts::rehearsal()).map(|rendered| rendered.skip).map_err(|mistakes| mistakes.len())
    };
    let npu = Ok(Some("eidf:gpu does not say devices.npu.num_devices".to_owned()));
    let rows = [
        ("executable: run ${{ partition.devices['npu'].num_devices }}\nsanity: []", npu.clone()),
        ("executable: run\nsanity: [{ assert: partition.devices.npu.num_devices > 1 }]", npu.clone()),
        (
            "executable: run\nsanity: [{ assert: '!has(partition.devices.npu) || partition.devices.npu.num_devices > 1' }]",
            Ok(None),
        ),
        (
            "executable: run ${{ v }}\nvariables: { v: '${{ partition.devices.npu.num_devices }}' }\nnum_tasks: ${{ v }}\nsanity: []",
            npu,
        ),
        // Another mistake beside it stays one.
        ("executable: run ${{ partition.devices.npu.num_devices }}\nexecutable_opts: ${{ 1 + 'x' }}\nsanity: []", Err(1)),
        (
            "executable: run ${{ partition.extras.npu }}\nexecutable_opts: ${{ get(partition.processor, 'num_sockets', 1) }}\nsanity: []",
            Err(1),
        ),
    ];
    for (rest, expected) in rows {
        assert_eq!(skip(rest), expected, "{rest}");
    }
    let manifest = "name: c\nvalid_systems: ['eidf:k']\nvariables: { n: 1 }\nk8s_config: { kind: Pod, spec: { n: '${{ partition.processor.num_cores }}' } }\nsanity: []";
    assert_eq!(only(manifest).skip.as_deref(), Some("eidf:k does not say processor.num_cores"));
}

#[test]
fn a_mistake_in_a_count_or_a_variable_is_told_once() {
    for rest in ["num_tasks: '${{ 1 - 1 }}'", "variables: { a: \"${{ 1 + 'x' }}\", b: '${{ a }}' }\ndescr: ${{ b }}"] {
        assert_eq!(mistakes(&check(&format!("{PLAIN}\n{rest}"))).len(), 1, "{rest}");
    }
}

#[test]
fn a_parameter_may_count_tasks_and_hides_no_fact() {
    let all = rendered(&check(&format!(
        "{PLAIN}\nparameters: {{ num_tasks: [2, 4] }}\nvariables: {{ double: '${{{{ num_tasks * 2 }}}}' }}"
    )));
    assert_eq!(all.iter().map(|rendered| rendered.workload.num_tasks).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(
        mistakes(&check(&format!("{PLAIN}\nparameters: {{ num_tasks: [x] }}"))),
        ["`num_tasks` must be a whole number above 0"]
    );
    assert_eq!(
        mistakes(&check(&format!("{PLAIN}\nparameters: {{ partition: [x] }}"))),
        ["`partition` is a fact that Muster fills in"]
    );
}
