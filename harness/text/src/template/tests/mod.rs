//! Trees with placeholders: what becomes of them, and where mistakes are shown.

mod mistakes;
mod properties;

use super::*;
use crate::{diagnostic::FileId, yaml};
use serde_json::json;
use std::collections::BTreeSet;

fn read(text: &str) -> Node {
    let parsed = yaml::parse(FileId(0), text);
    assert_eq!(parsed.diagnostics, [], "{text}");
    parsed.documents.into_iter().next().unwrap()
}

fn scope() -> Scope {
    let mut scope = Scope::new();
    for (name, value) in [
        ("n", json!(4)),
        ("big", json!(9_007_199_254_740_993_i64)),
        ("half", json!(0.5)),
        ("one", json!(1.0)),
        ("yes", json!(true)),
        ("none", json!(null)),
        ("s", json!("a.b")),
        ("looks", json!("010")),
        ("xs", json!(["-v", 2])),
        ("map", json!({"z": "no", "a": [1]})),
    ] {
        scope.set(name, value);
    }
    scope
}

/// A tree in one line: quoted text in quotes, block text after a bar.
fn shape(node: &Node) -> String {
    match &*node.kind {
        Kind::Scalar { text, style: Style::Plain, .. } => text.clone(),
        Kind::Scalar { text, style: Style::Quoted, .. } => format!("{text:?}"),
        Kind::Scalar { text, style: Style::Block, .. } => format!("|{text:?}"),
        Kind::Seq(items) => format!("[{}]", items.iter().map(shape).collect::<Vec<_>>().join(", ")),
        Kind::Map(entries) => {
            let entry = |(key, value): &(Node, Node)| format!("{}: {}", key.text().unwrap_or("?"), shape(value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Kind::Bad => "BAD".to_owned(),
    }
}

/// The mistakes, each with the text at its place.
fn listed(text: &str, diagnostics: &[Diagnostic]) -> String {
    let lines = diagnostics.iter().map(|diagnostic| {
        let place = diagnostic.span.map_or("", |span| &text[span.start as usize..span.end as usize]);
        let hint = diagnostic.hint.as_ref().map(|hint| format!(" | {hint}")).unwrap_or_default();
        let related =
            diagnostic.related.as_ref().map(|(span, why)| format!(" | {why}: {}", &text[span.start as usize..span.end as usize]));
        format!("at {place:?}: {}{hint}{}", diagnostic.message, related.unwrap_or_default())
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn rendered(text: &str) -> String {
    let mut diagnostics = Vec::new();
    let node = render(&read(text), &scope(), &Cache::default(), &mut diagnostics);
    let shape = node.map_or("nothing".to_owned(), |node| shape(&node));
    if diagnostics.is_empty() { shape } else { format!("{shape}\n{}", listed(text, &diagnostics)) }
}

fn all(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{}\n-> {}\n", text.trim_end(), rendered(text))).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_lone_placeholder_keeps_its_type() {
    insta::assert_snapshot!(all(&[
        "a: ${{ n }}", "a: \"${{ n }}\"", "a: '  ${{ big }}  '", "a: ${{ half }}", "a: ${{ one }}", "a: ${{ yes }}", "a: ${{ s }}", "a: ${{ looks }}", "a: ${{ map }}", "a: ${{ string(n) }}",
        "${{ xs }}", "a: !!str ${{ n }}",
    ]), @r#"
    a: ${{ n }}
    -> {a: 4}

    a: "${{ n }}"
    -> {a: 4}

    a: '  ${{ big }}  '
    -> {a: 9007199254740993}

    a: ${{ half }}
    -> {a: 0.5}

    a: ${{ one }}
    -> {a: 1.0}

    a: ${{ yes }}
    -> {a: true}

    a: ${{ s }}
    -> {a: "a.b"}

    a: ${{ looks }}
    -> {a: "010"}

    a: ${{ map }}
    -> {a: {z: "no", a: [1]}}

    a: ${{ string(n) }}
    -> {a: "4"}

    ${{ xs }}
    -> ["-v", 2]

    a: !!str ${{ n }}
    -> {a: "4"}
    "#);
}

#[test]
fn null_removes_and_a_list_in_a_list_is_spliced() {
    insta::assert_snapshot!(all(&[
        "a: ${{ none }}\nb: 1", "[1, \"${{ none }}\", 2]", "- 0\n- ${{ xs }}\n- [x, y]\n- ${{ [] }}\n- 3", "- [\"${{ xs }}\"]", "a: ${{ xs }}", "${{ none }}", "a: ~\nb: ${{ n }}",
        "- ${{ [xs, xs] }}",
    ]), @r#"
    a: ${{ none }}
    b: 1
    -> {b: 1}

    [1, "${{ none }}", 2]
    -> [1, 2]

    - 0
    - ${{ xs }}
    - [x, y]
    - ${{ [] }}
    - 3
    -> [0, "-v", 2, [x, y], 3]

    - ["${{ xs }}"]
    -> [["-v", 2]]

    a: ${{ xs }}
    -> {a: ["-v", 2]}

    ${{ none }}
    -> nothing

    a: ~
    b: ${{ n }}
    -> {a: ~, b: 4}

    - ${{ [xs, xs] }}
    -> [["-v", 2], ["-v", 2]]
    "#);
}

#[test]
fn inside_a_longer_text_values_are_text() {
    insta::assert_snapshot!(all(&[
        "-n=${{ n }}", "'${{ n }}${{ n }}'", "a: ${{ n }}0", "a: ${{ half }} ${{ one }} ${{ big }} ${{ yes }} ${{ s }}", "a: |\n  ${{ n }}\n", "a: >-\n  ${{ xs[1] }}\n  b\n", "x${{ s }}: ${{ n }}", "${{ n }}: 1", "a: $(A) ${B} {{ c }} ${{ '${{' }}",
    ]), @r#"
    -n=${{ n }}
    -> "-n=4"

    '${{ n }}${{ n }}'
    -> "44"

    a: ${{ n }}0
    -> {a: "40"}

    a: ${{ half }} ${{ one }} ${{ big }} ${{ yes }} ${{ s }}
    -> {a: "0.5 1.0 9007199254740993 true a.b"}

    a: |
      ${{ n }}
    -> {a: |"4\n"}

    a: >-
      ${{ xs[1] }}
      b
    -> {a: |"2 b"}

    x${{ s }}: ${{ n }}
    -> {xa.b: 4}

    ${{ n }}: 1
    -> {4: 1}

    a: $(A) ${B} {{ c }} ${{ '${{' }}
    -> {a: "$(A) ${B} {{ c }} ${{"}
    "#);
}

#[test]
fn patterns_take_text_literally_and_a_lone_placeholder_whole() {
    insta::assert_snapshot!(all(&[
        "sanity:\n  - found: ${{ s }}\n  - found: x ${{ s }} .*\n  - not_found: '${{ n }}'\n  - found: '${{ none }}'\n    count: ${{ n }}\n  - msg: x ${{ s }}",
        "perf_variables:\n  a: { pattern: '${{ s }} (.*)', unit: '${{ s }}' }\n  '${{ s }}': { pattern: '${{ s }}' }",
        "when:\n  - if: n > 1\n    sanity+:\n      - found: =${{ s }}",
        "spec: { found: '=${{ s }}', pattern: '=${{ s }}' }",
    ]), @r#"
    sanity:
      - found: ${{ s }}
      - found: x ${{ s }} .*
      - not_found: '${{ n }}'
      - found: '${{ none }}'
        count: ${{ n }}
      - msg: x ${{ s }}
    -> {sanity: [{found: "a.b"}, {found: "x a\\.b .*"}, {not_found: "4"}, {count: 4}, {msg: "x a.b"}]}

    perf_variables:
      a: { pattern: '${{ s }} (.*)', unit: '${{ s }}' }
      '${{ s }}': { pattern: '${{ s }}' }
    -> {perf_variables: {a: {pattern: "a\\.b (.*)", unit: "a.b"}, a.b: {pattern: "a.b"}}}

    when:
      - if: n > 1
        sanity+:
          - found: =${{ s }}
    -> {when: [{if: n > 1, sanity+: [{found: "=a\\.b"}]}]}

    spec: { found: '=${{ s }}', pattern: '=${{ s }}' }
    -> {spec: {found: "=a.b", pattern: "=a.b"}}
    "#);
}

#[test]
fn expressions_are_copied() {
    insta::assert_snapshot!(all(&[
        "sanity:\n  - assert: n > 1 # ${{\n  - assert: '{n: n}[n] == n'",
        "sanity:\n  - assert: ${{ n }} > 1",
        "perf_variables:\n  a: { value: '${{ n }}' }",
        "when:\n  - if: n > ${{ n }}\n    tags: ['${{ s }}']",
        "reference:\n  - if: '${{ yes }}'\n    values: { a: ['${{ n }}'] }",
        "env: [{ name: A, value: '${{ n }}' }]\nreference: { '*': { a: { value: '${{ n }}' } } }",
    ]), @r#"
    sanity:
      - assert: n > 1 # ${{
      - assert: '{n: n}[n] == n'
    -> {sanity: [{assert: n > 1}, {assert: "{n: n}[n] == n"}]}

    sanity:
      - assert: ${{ n }} > 1
    -> {sanity: [{assert: BAD}]}
    at "${{": this is an expression already | write it without ${{ }}

    perf_variables:
      a: { value: '${{ n }}' }
    -> {perf_variables: {a: {value: BAD}}}
    at "${{": this is an expression already | write it without ${{ }}

    when:
      - if: n > ${{ n }}
        tags: ['${{ s }}']
    -> {when: [{if: BAD, tags: ["a.b"]}]}
    at "${{": this is an expression already | write it without ${{ }}

    reference:
      - if: '${{ yes }}'
        values: { a: ['${{ n }}'] }
    -> {reference: [{if: BAD, values: {a: [4]}}]}
    at "${{": this is an expression already | write it without ${{ }}

    env: [{ name: A, value: '${{ n }}' }]
    reference: { '*': { a: { value: '${{ n }}' } } }
    -> {env: [{name: A, value: 4}], reference: {*: {a: {value: 4}}}}
    "#);
}

#[test]
fn the_names_of_a_tree_are_those_of_its_placeholders() {
    let text = "a: ${{ x + y }}\n${{ k }}: ['${{ xs.map(i, i + z) }} ${{ broken +']\nsanity: [{ assert: w }]\nb: 'a ${{ x'";
    assert_eq!(names(&read(text)).into_iter().collect::<Vec<_>>(), ["k", "x", "y"]);
}

#[test]
fn what_holds_no_placeholder_is_shared() {
    let node = read("a: [1, { b: c }]\nd: { e: '${{ n }}', f: [1] }\n");
    let new = render(&node, &scope(), &Cache::default(), &mut Vec::new()).unwrap();
    let same = |path: &dyn Fn(&Node) -> Node| Arc::ptr_eq(&path(&node).kind, &path(&new).kind);
    assert!(same(&|node| node.get("a").unwrap().clone()));
    assert!(same(&|node| node.get("d").unwrap().get("f").unwrap().clone()));
    assert!(!same(&|node| node.get("d").unwrap().clone()));
    let plain = read("a: [1, { b: c }]");
    assert!(Arc::ptr_eq(&plain.kind, &render(&plain, &scope(), &Cache::default(), &mut Vec::new()).unwrap().kind));
}

#[test]
fn a_cache_compiles_each_placeholder_once() {
    let cache = Cache::default();
    let node = read("[\"${{ n }}\", \"x${{ n }}\", \"${{ s }}\"]");
    for _ in 0..3 {
        render(&node, &scope(), &cache, &mut Vec::new());
    }
    assert_eq!(cache.0.read().unwrap().len(), 2);
    assert!(Arc::ptr_eq(&cache.get("n"), &cache.get("n")));
}
