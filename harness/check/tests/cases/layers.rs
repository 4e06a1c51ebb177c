//! Settings laid over settings: `when` and `extends`.

use super::*;

#[test]
fn later_entries_of_when_win_and_see_what_earlier_ones_left() {
    let text = "executable: run ${{ mode }}\nvariables: { mode: a }\nsanity: [{ found: x }]\nwhen:\n  - { system: +gpu, variables: { mode: b } }\n  - { if: \"mode == 'b'\", variables: { mode: c }, sanity+: [{ found: y }] }\n  - { environ: cray, variables: { mode: d } }\n  - { system: 'eidf:cpu', variables: { mode: e } }";
    let rendered = only(&check(text));
    assert!(script(&rendered).contains("run c"), "{}", script(&rendered));
    assert_eq!(rendered.rules.sanity.len(), 2);
}

#[test]
fn checks_extend_each_other_within_a_file() {
    let text = "name: base\nabstract: true\nvalid_systems: ['eidf:gpu']\nvalid_prog_environs: [gnu]\ntags: [a]\nvariables: { size: 1, mode: x }\nexecutable: run ${{ size }} ${{ mode }}\nsanity: []\n---\nname: big\nextends: '#base'\nvariables: { size: 100 }\ntags+: [b]\n";
    let (all, found) = cases(text);
    assert_eq!(found, [""; 0]);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].tags(), ["a", "b"]);
    let rendered = all[0].render(&LaunchFacts::rehearsal()).expect("renders");
    assert!(script(&rendered).contains("run 100 x"));
}

#[test]
fn entries_of_when_that_cannot_work_are_reported() {
    let rows = [
        ("{ system: +gpu, tags: [a] }", "`tags` is read before this entry can be decided"),
        ("{ if: num_tasks > 0, valid_systems: [eidf] }", "`valid_systems` is read before"),
        ("{ environ: gnu, tags+: [a] }", "`tags+` is read before"),
        ("{ with: { n: '${{ 1 }}' }, descr: x }", "a selector cannot hold a placeholder"),
        ("{ system: ['${{ 1 }}'], descr: x }", "a selector cannot hold a placeholder"),
        ("{ system: 'eidf:gppu', descr: x }", "has no partition `gppu`"),
        ("{ with: { n: 3 }, descr: x }", "parameter `n` is never `3`"),
        ("{ if: '${{ n }}', descr: x }", "this is an expression already"),
    ];
    for (entry, expected) in rows {
        let found = mistakes(&check(&format!("{PLAIN}\nparameters: {{ n: [1, 2] }}\nwhen: [{entry}]")));
        assert!(found.len() == 1 && found[0].contains(expected), "{entry}: {found:?}");
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
fn what_is_wrong_with_every_case_is_reported_once() {
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
