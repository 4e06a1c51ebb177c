//! References in a file of their own, as a person meets them: judged like those in the check, mistakes reported in their file.

use crate::sandbox::Sandbox;
use insta::assert_snapshot;

const CHECK: &str = "name: base
abstract: true
valid_systems: ['%scheduler=local']
executable: echo speed 100
sanity: []
perf_variables: { speed: { pattern: 'speed (\\d+)', unit: MB/s } }
reference: refs.yaml#stream
---
name: fine
extends: '#base'
---
name: slow
extends: '#base'
parameters: { n: [1, 2] }
when: [{ with: { n: 2 }, reference: others/refs.yaml }]
";

#[test]
fn references_from_a_file_judge_inherit_and_are_overlaid_like_those_in_the_check() {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("refs.yaml", "stream:\n  '*': { speed: [90, -0.2, 0.2, MB/s] }\n");
    sandbox.write("others/refs.yaml", "local: { speed: [200, -0.1, null, MB/s] }\n");
    let ended = sandbox.muster(&["-c", "check.yaml", "-r", "--performance-report"]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let reported: Vec<&str> = ended.stdout.lines().filter(|line| line.starts_with("P: ")).map(str::trim_end).collect();
    assert_snapshot!(reported.join("\n"));
    assert!(ended.stdout.contains("slow %n=2"), "{}", ended.stdout);
}

#[test]
fn a_mistake_in_a_file_of_references_is_reported_there() {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("refs.yaml", "stream:\n  '*':\n    sped: [90, -0.2, 0.2, MB/s]\n  nowhere: { speed: [90, 0.2, 0.2, GB/s] }\n");
    sandbox.write("others/refs.yaml", "local: { speed: [200] }\n");
    let ended = sandbox.muster(&["-c", "check.yaml", "-r"]);
    assert_eq!(ended.code, Some(2));
    assert_snapshot!(ended.stderr);
}
