//! Sanity items, figures and references.

use super::*;

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
fn references_that_cannot_be_meant_are_reported_wherever_they_apply() {
    let found = |reference: &str| {
        mistakes(&check(&format!("{PLAIN}\nperf_variables: {{ x: {{ pattern: '(\\d+)', unit: s }} }}\nreference: {reference}")))
            .join("; ")
    };
    let rows = [
        ("{ +gpu: { x: [1, null, null] }, +a100: { x: [2, null, null] } }", "equally specific"),
        ("{ 'eidf:cpu': { x: [1, 0.1, null] } }", "lower threshold"),
        ("{ '*': { x: [1, null, null, ms] } }", "ms"),
        ("{ '*': { y: [1, null, null] } }", "not a performance variable"),
        ("{ 'eidf:gppu': { x: [1, null, null] } }", "no partition `gppu`"),
        ("[{ with: { nn: 1 }, values: { x: [1, null, null] } }]", "no parameter `nn`"),
    ];
    for (reference, expected) in rows {
        assert!(found(reference).contains(expected), "{reference}: {}", found(reference));
    }
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
    let derived =
        "---\nname: derived\nextends: '#base'\nparameters: { size: [1, 2] }\nperf_variables: { x: { pattern: '(.)' } }\n";
    assert_eq!(mistakes(base), [""; 0]);
    let all = rendered(&format!("{base}{derived}"));
    assert_eq!(all.len(), 1);
    assert!(script(&all[0]).contains("run 1"));
    // What is wrong in itself is reported of a base, too.
    for (slip, expected) in [("sanity: [{ found: '(' }]", "unclosed group"), ("descr: '${{ 1 + }}'", "ends too early")] {
        let found = mistakes(&format!("name: base\nabstract: true\n{slip}\n"));
        assert!(found.iter().any(|message| message.contains(expected)), "{slip}: {found:?}");
    }
}

#[test]
fn references_find_their_variables_wherever_those_are_declared() {
    let text = |reference: &str, when: &str| {
        check(&format!(
            "{PLAIN}\nvariables: {{ w: x, k: 8 }}\nperf_variables: {{ x: {{ pattern: '(.)', unit: s }}, t: {{ pattern: '(?<key>.)(?<value>.)', unit: s }} }}\nreference: {{ '*': {{ {reference} }} }}\nwhen: [{{ system: +gpu, {when} }}]"
        ))
    };
    let labels = |text: &str| {
        only(text).rules.references.iter().map(muster_core::rules::reference::ReferenceRow::label).collect::<Vec<_>>()
    };
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
    let found = mistakes(&text("'x[8]': [1, null, null, s]", "descr: x"));
    assert_eq!(found, ["`x` is not a table: its pattern has no group `key`"]);
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
    let found = |item: &str| mistakes(&check(&format!("executable: run\nsanity: [{item}]")));
    for item in ["{}", "{ msg: x }", "{ count: 3 }"] {
        assert_eq!(found(item), ["an item of `sanity` claims something"], "{item}");
    }
    assert_eq!(cases(&check("executable: run\nsanity: [{ foud: a }]")).1, ["unknown key `foud` in an item of `sanity`"]);
    assert_eq!(found("{ found: null }, { found: '${{ null }}', count: 3, msg: x }"), [""; 0]);
    assert_eq!(found("{ exit: 300 }"), ["300 is not an exit status"]);
    assert_eq!(found("{ exit: [0, -1] }"), ["-1 is not an exit status"]);
}

#[test]
fn what_a_check_says_of_its_nights_goes_with_its_cases() {
    let of = |night: &str| {
        check(&format!("{PLAIN}\nparameters: {{ n: [4] }}\nperf_variables: {{ x: {{ pattern: '(\\d+)' }} }}\nnight: {night}"))
    };
    let night = only(&of("{ min_effect: '${{ n }}%', limit: 40%, ignore: x }")).about.night;
    assert_eq!((night.min_effect, night.limit, night.ignore), (Some(0.04), Some(0.4), vec!["x".to_owned()]));
    assert!(only(&check(PLAIN)).about.night.is_silent());
    let rows = [
        ("{ ignore: [y] }", "`y` is not a performance variable"),
        ("{ min_effect: 5 }", "not a part of the whole"),
        ("{ confirm: 2 }", "not supported yet"),
    ];
    for (night, expected) in rows {
        let found = mistakes(&of(night)).join("; ");
        assert!(found.contains(expected), "{night}: {found}");
    }
}
