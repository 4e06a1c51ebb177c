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
        ("valid_systems: ['*']", "gpu+gnu gpu+cray cpu+gnu k+gnu"),
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
