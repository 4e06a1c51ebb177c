//! Fixtures, dependencies and exclusions: which cases there are, and who needs whom.

use super::{check, facts, loaded};
use muster_check::{
    cases::dependencies::{self, Library, Planned, Rehearsal},
    files::needs,
};
use std::sync::Arc;

/// All that runs of what these names select, one line each: `name @place <- what it needs`, and all mistakes.
fn planned(text: &str, selected: &[&str]) -> (Vec<String>, Vec<String>) {
    let (plan, mistakes) = plan(text, selected);
    let short = |at: usize| {
        let name = &plan[at].case.name;
        format!("{} @{}", name.display, name.place().replace("eidf:", ""))
    };
    let line = |(at, planned): (usize, &Planned)| {
        let needs: Vec<String> = planned.needs.iter().map(|edge| format!("{}: {}", edge.binding, short(edge.at))).collect();
        if needs.is_empty() { short(at) } else { format!("{} <- {}", short(at), needs.join("; ")) }
    };
    (plan.iter().enumerate().map(line).collect(), mistakes)
}

fn plan(text: &str, selected: &[&str]) -> (Vec<Planned>, Vec<String>) {
    let facts = facts();
    let (checks, mut diagnostics) = loaded(text, &facts);
    needs::check(checks.iter().map(|check| (&*check.name, &check.needs)), &mut diagnostics);
    let mut all = Vec::new();
    if diagnostics.is_empty() {
        let fixtures = needs::used_as_fixtures(checks.iter().map(|check| &check.needs));
        let mut library = Library::new(checks.iter(), &facts);
        for check in checks.iter().filter(|check| !fixtures.contains(&*check.name) || check.runs_by_itself()) {
            for case in Arc::clone(check).cases(&facts, &mut diagnostics) {
                all.extend(library.fork(case, &mut diagnostics));
            }
        }
    }
    let wanted = all.iter().filter(|case| selected.iter().any(|name| case.name.display.starts_with(name))).cloned().collect();
    let plan = dependencies::resolve(wanted, &all, &mut diagnostics);
    let needed = dependencies::needed(&plan);
    let mut rehearsal = Rehearsal::default();
    for (at, planned) in plan.iter().enumerate() {
        let Some(facts) = rehearsal.facts(&plan, at, needed[at]) else { continue };
        match planned.case.render(&facts) {
            Ok(rendered) => rehearsal.leaves(at, &rendered),
            Err(mut mistakes) => diagnostics.append(&mut mistakes),
        }
    }
    (plan, diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect())
}

/// A check without a place, with whatever else is given.
fn fixture(name: &str, rest: &str) -> String {
    format!("---\nname: {name}\nexecutable: run\nsanity: []\n{rest}\n")
}

fn user(rest: &str) -> String {
    check(&format!("executable: run\nsanity: []\n{rest}"))
}

#[test]
fn a_fixture_runs_once_in_its_scope() {
    let text = |scope: &str| {
        let places = "name: c\nvalid_systems: ['eidf:gpu', 'eidf:cpu']\nparameters: { n: [1, 2] }\nexecutable: run\nsanity: []\n";
        format!("{places}fixtures: {{ b: {{ check: build, scope: {scope} }} }}\n{}", fixture("build", ""))
    };
    let rows = [
        ("session", vec!["build ~eidf @gpu+gnu"]),
        ("partition", vec!["build ~eidf:gpu @gpu+gnu", "build ~eidf:cpu @cpu+gnu"]),
        ("environment", vec!["build ~eidf:gpu+gnu @gpu+gnu", "build ~eidf:gpu+cray @gpu+cray", "build ~eidf:cpu+gnu @cpu+gnu"]),
    ];
    for (scope, expected) in rows {
        let (lines, mistakes) = planned(&text(scope), &["c"]);
        assert_eq!(mistakes, [""; 0]);
        let fixtures: Vec<&String> = lines.iter().filter(|line| line.starts_with("build")).collect();
        assert_eq!(fixtures, expected.iter().collect::<Vec<_>>(), "{scope}");
        assert_eq!(lines.len(), expected.len() + 6, "{lines:?}");
    }
    let (lines, _) = planned(&text("test"), &["c"]);
    assert_eq!(lines.len(), 12, "one for every case: {lines:?}");
}

#[test]
fn variants_of_a_fixture_fork_its_user_or_join_in_it() {
    let build = fixture("build", "parameters: { kind: [a, b] }\nvariables: { flag: x }");
    let rows = [
        ("b: { check: build, scope: session }", vec!["c %b.kind=a", "c %b.kind=b"]),
        ("b: { check: build, scope: session, with: { kind: b, flag: y } }", vec!["c %b.kind=b %b.flag=y"]),
        ("b: { check: build, scope: session, with: { kind: [a, b] }, action: join }", vec!["c"]),
        ("b: { check: build, with: { kind: '${{ system.name == \"eidf\" ? \"a\" : \"b\" }}' } }", vec!["c %b.kind=a"]),
    ];
    for (fixtures, expected) in rows {
        let (plan, mistakes) = plan(&format!("{}{build}", user(&format!("fixtures: {{ {fixtures} }}"))), &["c"]);
        assert_eq!(mistakes, [""; 0], "{fixtures}");
        let names = plan.iter().map(|planned| planned.case.name.display.as_str());
        assert_eq!(names.filter(|name| name.starts_with('c')).collect::<Vec<_>>(), expected, "{fixtures}");
    }
}

#[test]
fn a_fixture_of_a_fixture_comes_first() {
    let text = format!(
        "{}{}{}",
        user("fixtures: { b: { check: build, scope: environment } }"),
        fixture("build", "fixtures: { src: { check: fetch, scope: session } }"),
        fixture("fetch", "")
    );
    let (lines, mistakes) = planned(&text, &["c"]);
    assert_eq!(mistakes, [""; 0]);
    insta::assert_snapshot!(lines.join("\n"), @"
    fetch ~eidf @gpu+gnu
    build ~eidf:gpu+gnu @gpu+gnu <- fixtures.src: fetch ~eidf @gpu+gnu
    c @gpu+gnu <- fixtures.b: build ~eidf:gpu+gnu @gpu+gnu
    ");
}

#[test]
fn dependencies_pair_equal_parameters_at_places_as_how_says() {
    let both = "valid_systems: ['eidf:gpu', 'eidf:cpu']\nexecutable: run\nsanity: []\n";
    let text = |how: &str| {
        format!(
            "name: w\n{both}parameters: {{ n: [1, 2], own: [x, y] }}\n---\nname: r\n{both}parameters: {{ n: [1, 2], mine: [z] }}\n\
             depends_on: [{{ check: w, how: {how} }}]\n"
        )
    };
    for (how, expected) in [("by_case", 2), ("by_part", 4), ("by_env", 4), ("fully", 6)] {
        let (plan, mistakes) = plan(&text(how), &["r %n=1"]);
        assert_eq!(mistakes, [""; 0]);
        let reader = plan.iter().find(|planned| planned.case.name.place() == "eidf:gpu+gnu" && !planned.needs.is_empty());
        let needs = &reader.expect("selected").needs;
        assert_eq!(needs.len(), expected, "{how}");
        assert!(needs.iter().all(|edge| edge.is_one_of_many && plan[edge.at].case.name.display.starts_with("w %n=1")));
    }
}

#[test]
fn what_cannot_be_resolved_is_reported() {
    let fixtures = |entry: &str| user(&format!("fixtures: {{ b: {{ {entry} }} }}"));
    let build = fixture("build", "parameters: { kind: [a, b] }\noutputs: { dir: 'D=(.*)' }");
    let rows = [
        (fixtures("check: bild"), "there is no check `bild` in the files that were read"),
        (fixtures("check: build, with: { kind: c }"), "no variant of `build` has kind=c"),
        (fixtures("check: build, with: { knd: a }"), "`build` has neither a parameter nor a variable `knd`"),
        (fixtures("check: '${{ system.name }}'"), "the name of a check cannot hold a placeholder"),
        (user("depends_on: [w]"), "there is no check `w` in the files that were read"),
        (user("depends_on: [c]"), "a check cannot depend on itself: c -> c"),
        (user("executable_opts: '${{ fixtures.b.outputs.dir }}'"), "there is no key `b` here"),
        (
            user("fixtures: { b: { check: build } }\nexecutable_opts: '${{ fixtures.b.outputs.dri }}'"),
            "there is no key `dri` here",
        ),
        (user("parameters: { städt: [1] }"), "`städt` cannot be the name of a parameter"),
        (user("variables: { a-b: 1 }"), "`a-b` cannot be the name of a variable"),
        (user("exclude: [{ m: 1 }]"), "there is no parameter `m`"),
        (user("fixtures: { a-b: { check: build } }"), "`a-b` cannot be the name of a fixture"),
        (
            "name: c\nvalid_systems: ['eidf:gpu']\ndepends_on: build\nexecutable: run\nsanity: []\n".to_owned(),
            "`c @eidf:gpu+gnu` depends on no case of `build`",
        ),
    ];
    for (text, expected) in rows {
        let (_, mistakes) = planned(&format!("{}{build}", text.trim_end_matches('\n').to_owned() + "\n"), &["c"]);
        assert!(mistakes.iter().any(|mistake| mistake == expected), "{text}: {mistakes:?}");
    }
}

#[test]
fn a_cycle_is_reported_as_a_path() {
    let text = format!(
        "{}{}{}",
        user("depends_on: [w]"),
        fixture("w", "valid_systems: ['*']\nfixtures: { b: { check: build } }"),
        fixture("build", "depends_on: c")
    );
    assert_eq!(planned(&text, &["c"]).1, ["a check cannot depend on itself: build -> c -> w -> build"]);
}

#[test]
fn a_folder_on_another_machine_is_a_mistake_and_an_output_is_none() {
    let text = |read: &str| {
        format!(
            "name: c\nvalid_systems: ['eidf:k']\nimage: i\nexecutable: run ${{{{ {read} }}}}\nsanity: []\n\
             fixtures: {{ b: {{ check: build }} }}\n{}",
            fixture("build", "image: i\noutputs: { dir: 'D=(.*)' }")
        )
    };
    assert_eq!(planned(&text("fixtures.b.outputs.dir"), &["c"]).1, [""; 0]);
    assert_eq!(
        planned(&text("fixtures.b.stagedir"), &["c"]).1,
        ["`fixtures.b.stagedir` needs one file system, which jobs of `k8s` do not share with others"]
    );
}

#[test]
fn excluded_combinations_are_no_cases() {
    let rows = [
        ("[{ a: 1, b: [x, z] }]", vec!["c %a=1 %b=y", "c %a=2 %b=x", "c %a=2 %b=y", "c %a=2 %b=z"]),
        ("[{ a: 1 }, { b: z }]", vec!["c %a=2 %b=x", "c %a=2 %b=y"]),
    ];
    for (exclude, expected) in rows {
        let text = user(&format!("parameters: {{ a: [1, 2], b: [x, y, z] }}\nexclude: {exclude}"));
        let (plan, mistakes) = plan(&text, &["c"]);
        assert_eq!(mistakes, [""; 0]);
        assert_eq!(plan.iter().map(|planned| &*planned.case.name.display).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_teardown_needs_something_to_run_in() {
    let on =
        |place: &str, rest: &str| format!("name: c\nvalid_systems: ['eidf:{place}']\nteardown_cmds: rm x\nsanity: []\n{rest}\n");
    let found = planned(&on("k", "k8s_config: { apiVersion: v1, kind: Pod }"), &["c"]).1;
    assert_eq!(found, ["`teardown_cmds` of `c` cannot run on `k8s`"]);
    assert_eq!(planned(&on("k", "image: i\nexecutable: run"), &["c"]).1, [""; 0]);
    assert_eq!(planned(&on("gpu", "executable: run"), &["c"]).1, [""; 0]);
}
