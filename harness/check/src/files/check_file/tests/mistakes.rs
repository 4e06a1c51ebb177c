//! Mistakes in check files and their messages, one picture for each in the snapshots.

use super::*;
use crate::testing::schedulers;
use muster_text::diagnostic::render;
use std::fmt::Write;

/// Every picture of one text, without the line that counts them.
fn pictures(text: &str) -> String {
    let mut sources = Sources::default();
    let file = sources.add("checks/check.yaml", text);
    let parsed = parse(file, text);
    let mut context = Context::with(Placeholders::Defer, schedulers().own_keys().clone());
    context.diagnostics = parsed.diagnostics;
    for document in &parsed.documents {
        CheckFile::decode(document, &mut context);
    }
    let rendered = render(&context.diagnostics, &sources, false);
    rendered.rsplit_once("error: ").map_or(String::new(), |(pictures, _)| pictures.trim_end().to_owned())
}

/// The pictures of all these texts under their titles.
fn titled(mistakes: &[(&str, &str)]) -> String {
    let mut all = String::new();
    for (title, text) in mistakes {
        let pictures = pictures(text);
        assert!(pictures.contains("error: ") && pictures.contains("--> checks/check.yaml:"), "{title}: {pictures}");
        writeln!(all, "## {title}\n\n{pictures}\n").unwrap();
    }
    all
}

#[test]
fn mistakes_in_keys_and_names() {
    insta::assert_snapshot!(titled(&[
        ("a key with a slip", "name: a\nvalid_system: [x]\n"),
        ("a key of another system", "name: a\ntrap_job_errors: true\n"),
        ("a key of a later stage", "name: a\nbuild: make\n"),
        ("a key nobody knows", "name: a\nqqq: 1\n"),
        ("no name", "descr: a check\n"),
        ("a name that cannot be a folder", "name: my check\n"),
        ("a key twice", "name: a\ndescr: x\ntags: [a]\ndescr: y\n"),
        ("no mapping", "- name: a\n"),
    ]));
}

#[test]
fn values_of_a_wrong_type() {
    insta::assert_snapshot!(titled(&[
        ("a shell line for a list", "name: a\ncommand: echo hello\n"),
        ("text for a list", "name: a\ncommand: hostname\n"),
        ("a list for text", "name: a\ndescr: [x]\n"),
        ("nothing for an item", "name: a\ntags: [x, ]\nprerun_cmds:\n  - \n"),
        ("yes for a boolean", "name: a\nstrict_check: yes\n"),
        ("a boolean in quotes", "name: a\nstrict_check: \"true\"\n"),
        ("a number in quotes", "name: a\nnum_tasks: \"4\"\n"),
        ("no tasks", "name: a\nnum_tasks: 0\n"),
        ("a fraction of a task", "name: a\nnum_tasks: 1.5\n"),
        ("a duration with a blank", "name: a\ntime_limit: 10 min\n"),
        ("a duration as a list", "name: a\ntime_limit: [10]\n"),
        ("a list of objects as manifest", "name: a\nk8s_config: [{ kind: Pod }]\n"),
        ("a patch that is text", "name: a\nk8s_patch: patch.yaml\n"),
    ]));
}

#[test]
fn mistakes_in_sanity_and_figures() {
    insta::assert_snapshot!(titled(&[
        ("sanity as a list of regexes", "name: a\nsanity: [ok]\n"),
        ("sanity as one item", "name: a\nsanity: { found: ok }\n"),
        ("two claims in one item", "name: a\nsanity:\n  - found: a\n    not_found: b\n"),
        ("a count of nothing", "name: a\nsanity:\n  - not_found: b\n    count: 2\n"),
        ("an exit status in words", "name: a\nsanity: [{ exit: none }]\n"),
        ("a claim with a slip", "name: a\nsanity: [{ fuond: a }]\n"),
        ("a figure without a source", "name: a\nperf_variables: { x: { unit: s } }\n"),
        ("a source with a slip", "name: a\nperf_variables: { x: { patern: a } }\n"),
        ("a figure with two sources", "name: a\nperf_variables: { x: { pattern: a, value: b } }\n"),
        ("a figure as a regex", "name: a\nperf_variables: { x: '(\\d+)' }\n"),
        ("item and reduce", "name: a\nperf_variables: { x: { pattern: a, item: 1, reduce: max } }\n"),
        ("a reduction with a slip", "name: a\nperf_variables: { x: { pattern: a, reduce: maen } }\n"),
        ("an unknown direction", "name: a\nperf_variables: { x: { pattern: a, direction: up } }\n"),
    ]));
}

#[test]
fn mistakes_in_references_and_fixtures() {
    insta::assert_snapshot!(titled(&[
        ("a reference without bounds", "name: a\nreference: { sys: { x: [10] } }\n"),
        ("a reference as a number", "name: a\nreference: { sys: { x: 10 } }\n"),
        ("a reference without a scope", "name: a\nreference: { flops: [10, -0.1, 0.1] }\n"),
        ("a bound in words", "name: a\nreference: { sys: { x: [10, \"-10%\", null] } }\n"),
        ("a rule without values", "name: a\nreference: [{ system: sys }]\n"),
        ("a fixture without a check", "name: a\nfixtures: { build: { scope: session } }\n"),
        ("a fixture with a slip", "name: a\nfixtures: { build: { check: b, scope: enviroment } }\n"),
        ("a fixture in ReFrame's words", "name: a\nfixtures: { build: { check: b, variables: { v: 1 } } }\n"),
        ("a dependency with a slip", "name: a\ndepends_on: [{ check: b, how: by_partition }]\n"),
        ("outputs as a list", "name: a\noutputs: ['STORAGE=(.*)']\n"),
        ("an exclusion as text", "name: a\nexclude: [tile=4]\n"),
    ]));
}

#[test]
fn mistakes_in_when_and_appends() {
    insta::assert_snapshot!(titled(&[
        ("a fixture set in when", "name: a\nwhen: [{ system: x, depends_on: [b] }]\n"),
        ("a key that cannot be set in when", "name: a\nwhen: [{ system: x, parameters: { a: [1] } }]\n"),
        ("a selector with a slip", "name: a\nwhen: [{ sytem: x, num_tasks: 1 }]\n"),
        ("a wrong type in when", "name: a\nwhen: [{ system: x, num_tasks: many }]\n"),
        ("an append with nothing below", "name: a\ntags+: [x]\n"),
        ("an append of text", "name: a\nextends: '#b'\ntags+: x\n"),
    ]));
}

#[test]
fn mistakes_in_the_yaml() {
    insta::assert_snapshot!(titled(&[
        ("an alias without an anchor", "name: a\nvalid_systems: *all\n"),
        ("an alias to the wrong type", "name: &n a\nsanity: *n\n"),
        ("a star without quotes", "name: a\nvalid_systems: [*]\n"),
        ("a percent sign without quotes", "name: a\nvalid_systems: [%gpu=a100]\n"),
        ("a placeholder in brackets", "name: a\ntags: [${{ x }}]\n"),
        ("a ternary without quotes", "name: a\nnum_tasks: ${{ x ? 1 : 2 }}\n"),
        ("a placeholder cut at a hash", "name: a\ndescr: ${{ x + ' # ' }}\n"),
        ("a tab", "name: a\nsanity:\n\t- found: x\n"),
        ("a bracket that is not closed", "name: a\ntags: [a, b\ndescr: x\n"),
        ("a quote that is not closed", "name: a\ndescr: 'x\ntags: [a]\n"),
        ("a regex in double quotes", "name: a\nsanity:\n  - found: \"\\d+ GB/s\"\n"),
        ("a colon in a value", "name: a\ndescr: speed: all of it\n"),
        ("an item that is indented differently", "name: a\nsanity:\n  - found: a\n - found: b\n"),
        ("a tag", "name: a\ndescr: !important x\n"),
        ("a missing colon", "name a\ndescr: x\n"),
    ]));
}

#[test]
fn all_mistakes_of_a_file_are_found_at_once() {
    let text = "name: a\nnum_tasks: x\nwhat: 1\n---\nb: [\n---\nname: c\ntime_limit: soon\n";
    let places: Vec<_> = read_all(text, Placeholders::Defer).1.lines().map(|line| line[..14].to_owned()).collect();
    assert_eq!(places, ["check.yaml:2:1", "check.yaml:3:1", "check.yaml:5:4", "check.yaml:8:1"]);
}

#[test]
fn a_placeholder_in_a_rendered_tree_is_a_mistake() {
    let (_, mistakes) = read_all("name: a\ntags: ['${{ x }}']\n", Placeholders::Refuse);
    assert!(mistakes.starts_with("check.yaml:2:8: error: `${{` is not allowed here"), "{mistakes}");
}

#[test]
fn placeholders_wait_without_a_word_whatever_the_type() {
    let waiting = "name: a\nnum_tasks: ${{ n }}\ntime_limit: '${{ t }}'\nsanity: ${{ s }}\nwhen: ['${{ w }}']\n\
                   perf_variables: { x: { pattern: a, item: '${{ i }}' } }\nreference: { s: { x: ['${{ v }}', null, null] } }\n";
    assert_eq!(read_all(waiting, Placeholders::Defer).1, "");
}

#[test]
fn a_figure_in_an_overlay_may_lack_what_its_base_has() {
    let over = "perf_variables: { x: { unit: s } }\nreference: [{ system: s, values: { x: { upper: 0.1 } } }]\n";
    for text in
        [format!("name: a\nextends: b\n{over}"), format!("name: a\nwhen:\n  - {}\n", over.trim_end().replace('\n', "\n    "))]
    {
        assert_eq!(read_all(&text, Placeholders::Defer).1, "", "{text}");
    }
}
