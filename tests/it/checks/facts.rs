//! Facts that a site does not tell: which cases they skip, and which not.

use crate::sandbox::{Ended, Sandbox};

const SITE: &str = "name: here\nhostnames: ['.*']\npartitions: [{ name: p, scheduler: local, environs: [default], max_jobs: 4, \
                    devices: [{ type: cpu, num_devices: 2 }] }]\nenvironments: [{ name: default }]\n";

/// A check that says `said`, with more keys.
fn check(name: &str, keys: &str) -> String {
    format!("name: {name}\nvalid_systems: ['*']\nexecutable: echo said\n{keys}\n")
}

fn sandbox(checks: &[(&str, &str)]) -> Sandbox {
    let checks: Vec<String> = checks.iter().map(|(name, keys)| check(name, keys)).collect();
    let sandbox = Sandbox::with_check(&checks.join("---\n"));
    sandbox.write("site-config/here.yaml", SITE);
    sandbox
}

fn run(sandbox: &Sandbox) -> Ended {
    sandbox.muster(&["-c", "check.yaml", "-r", "--nocolor", "--db", "r.db"])
}

/// `name outcome` of each case, and the reason behind it.
fn outcomes(ended: &Ended) -> Vec<String> {
    let word =
        |line: &str| Some((line.strip_prefix("[")?.split_once(']')?.0.trim().to_owned(), line.split(") ").nth(1)?.to_owned()));
    let ends = ended.stdout.lines().filter(|line| line.contains(" @here:")).filter_map(word);
    let mut ends: Vec<String> =
        ends.filter_map(|(word, case)| Some(format!("{} {word}", case.split_whitespace().next()?))).collect();
    ends.sort();
    ends
}

#[test]
fn a_guarded_fact_skips_nothing() {
    let guarded = "'gpu' in partition.devices ? partition.devices.gpu.num_devices : 1";
    let sandbox = sandbox(&[
        ("value", &format!("sanity: []\nperf_variables: {{ n: {{ value: \"{guarded}\", unit: one }} }}")),
        ("assert", &format!("sanity: [{{ assert: \"({guarded}) == 1\" }}]")),
        ("has", "sanity: [{ assert: '!has(partition.devices.gpu) || partition.devices.gpu.num_devices > 1' }]"),
        ("option", &format!("executable_opts: [\"${{{{ {guarded} }}}}\"]\nsanity: [{{ found: said 1 }}]")),
        ("if", &format!("when: [{{ if: \"({guarded}) == 1\", executable: echo one }}]\nsanity: [{{ found: one }}]")),
        (
            "variable",
            "variables: { gpus: '${{ partition.devices.gpu.num_devices }}' }\nexecutable_opts: ['${{ gpus }}']\n\
             when: [{ if: \"!('gpu' in partition.devices)\", variables: { gpus: 0 } }]\nsanity: [{ found: said 0 }]",
        ),
    ]);
    let ended = run(&sandbox);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{}", ended.stdout);
    assert_eq!(outcomes(&ended), ["assert OK", "has OK", "if OK", "option OK", "value OK", "variable OK"], "{}", ended.stdout);
    assert!(ended.stdout.contains("P: n: 1 one"), "{}", ended.stdout);
}

#[test]
fn a_fact_that_is_needed_skips_the_case_wherever_it_is_read() {
    let fact = "partition.devices.gpu.num_devices";
    let sandbox = sandbox(&[
        ("value", &format!("sanity: []\nperf_variables: {{ n: {{ value: {fact}, unit: one }} }}")),
        ("assert", &format!("sanity: [{{ assert: \"true && {fact} > count('said')\" }}]")),
        ("option", &format!("executable_opts: [\"${{{{ 'cpu' in partition.devices ? {fact} : 1 }}}}\"]\nsanity: []")),
        ("if", &format!("when: [{{ if: {fact} > 1, executable: echo one }}]\nsanity: []")),
        ("variable", &format!("variables: {{ gpus: '${{{{ {fact} }}}}' }}\nexecutable_opts: ['${{{{ gpus }}}}']\nsanity: []")),
        ("fixture", &format!("fixtures: {{ b: {{ check: build, with: {{ n: '${{{{ {fact} }}}}' }} }} }}\nsanity: []")),
    ]);
    let build = "---\nname: build\nvariables: { n: 1 }\nexecutable: echo\nsanity: []\n";
    sandbox.write("check.yaml", &(sandbox.read("check.yaml") + build));
    let listed = sandbox.muster(&["-c", "check.yaml", "-l"]);
    assert_eq!((listed.code, &*listed.stderr), (Some(0), ""), "{}", listed.stdout);
    let dry = sandbox.muster(&["-c", "check.yaml", "--dry-run"]);
    let reason = "here:p does not define devices.gpu.num_devices";
    assert_eq!(dry.stdout.matches(&format!("# skipped: {reason}\n")).count(), 6, "{}", dry.stdout);
    let ended = run(&sandbox);
    assert_eq!((ended.code, &*ended.stderr), (Some(3), ""), "{}", ended.stdout);
    assert_eq!(ended.stdout.matches(&format!("skipped: {reason}\n")).count(), 6, "{}", ended.stdout);
    let filtered = sandbox.muster(&["-c", "check.yaml", "-l", "-E", &format!("{fact} > 1")]);
    assert!(filtered.stderr.contains("passes the filters"), "{}{}", filtered.stdout, filtered.stderr);
}

#[test]
fn what_the_output_asks_for_skips_only_what_asks_for_it() {
    let fact = "partition.devices.gpu.num_devices";
    let sandbox = sandbox(&[
        ("asked", &format!("sanity: [{{ assert: \"count('said') > 0 ? {fact} > 1 : true\" }}]")),
        ("not-asked", &format!("sanity: [{{ assert: \"count('said') > 1 ? {fact} > 1 : true\" }}]")),
        ("wrong-too", &format!("sanity: [{{ assert: \"count('said') > 0 ? {fact} > 1 : true\" }}, {{ found: unheard }}]")),
        ("optional", &format!("sanity: []\nperf_variables: {{ n: {{ value: {fact}, unit: one, optional: true }} }}")),
    ]);
    let ended = run(&sandbox);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert_eq!(outcomes(&ended), ["asked SKIP", "not-asked OK", "optional OK", "wrong-too FAIL"], "{}", ended.stdout);
    let reason = "skipped: it ran, and cannot be judged: the partition does not define devices.gpu.num_devices\n";
    assert_eq!(ended.stdout.matches(reason).count(), 1, "{}", ended.stdout);
}
