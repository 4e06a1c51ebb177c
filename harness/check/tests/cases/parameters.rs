//! Parameters: their product, what they may be computed from, and what is wrong with them.

use super::*;

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
fn bad_parameters_are_reported() {
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
        let found = mistakes(&check(&format!("{PLAIN}\nparameters: {parameters}")));
        assert!(found.iter().any(|message| message.contains(expected)), "{parameters}: {found:?}");
    }
}

#[test]
fn a_mistake_in_a_count_or_a_variable_is_reported_once() {
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
        ["the parameter `num_tasks` sets the key of this name: expected a whole number from 1, found text"]
    );
    assert_eq!(
        mistakes(&check(&format!("{PLAIN}\nparameters: {{ num_tasks: [x] }}\nnum_tasks: null"))),
        ["`num_tasks` must be a whole number above 0"]
    );
    assert_eq!(
        mistakes(&check(&format!("{PLAIN}\nparameters: {{ partition: [x] }}"))),
        ["`partition` is a fact that Muster fills in"]
    );
}

#[test]
fn a_parameter_with_the_name_of_a_key_sets_it_in_every_case() {
    let limits = |rest: &str| -> Vec<u64> {
        let (cases, mistakes) = cases(rest);
        assert_eq!(mistakes, [""; 0], "{rest}");
        let limit = |case: &TestCase| case.render(&LaunchFacts::rehearsal()).expect("sound").workload.limits.run;
        cases.iter().map(|case| limit(case).unwrap_or_default().as_secs()).collect()
    };
    let base = format!("name: base\nabstract: true\n{PLAIN}\nparameters: {{ time_limit: [1m, 90] }}\n---\n");
    let derived = |more: &str| format!("{base}{}", check(&format!("extends: '#base'\n{more}")));
    let own = |more: &str| check(&format!("{PLAIN}\nparameters: {{ time_limit: [1m, 90] }}\n{more}"));
    let when = "when: [{ with: { time_limit: 1m }, time_limit: 5m }]";
    let rows = [
        (own(""), [60, 90]),
        (own("time_limit: 3m"), [180, 180]),
        (own(when), [300, 90]),
        (derived(""), [60, 90]),
        (derived("time_limit: 3m"), [180, 180]),
        (derived(when), [300, 90]),
        (derived("parameters: { time_limit: [2m, 3m] }"), [120, 180]),
        (base.replace("---", "time_limit: 7m\n---") + &check("extends: '#base'"), [420, 420]),
    ];
    for (text, expected) in rows {
        assert_eq!(limits(&text), expected, "{text}");
    }
    let early = cases(&format!("name: c\n{PLAIN}\nparameters: {{ valid_systems: ['eidf:gpu', 'eidf:cpu'], tags: [a, b] }}\n")).0;
    let places: Vec<String> = early.iter().map(|case| format!("{} {}", case.name.partition, case.tags().join(" "))).collect();
    assert_eq!(places, ["gpu a", "gpu a", "gpu b", "gpu b", "cpu a", "cpu b"]);
}
