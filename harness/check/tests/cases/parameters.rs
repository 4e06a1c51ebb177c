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
        ["`num_tasks` must be a whole number above 0"]
    );
    assert_eq!(
        mistakes(&check(&format!("{PLAIN}\nparameters: {{ partition: [x] }}"))),
        ["`partition` is a fact that Muster fills in"]
    );
}
