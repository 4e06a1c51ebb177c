use super::*;
use crate::diagnostic::FileId;
use std::fmt::Write;

/// Merges two texts: the result in one line, and the mistakes.
fn merged(base: &str, over: &str) -> String {
    let mut sources = Sources::default();
    let mut document = |path: &str, text: &str| -> Node {
        let file: FileId = sources.add(path, text);
        parse(file, text).documents.remove(0)
    };
    let (base, over) = (document("base", base), document("over", over));
    let mut diagnostics = Vec::new();
    let mut line = shape(&merge(&base, &over, &mut diagnostics));
    write!(line, "\n{}", render_short(&diagnostics, &sources)).unwrap();
    line.trim_end().to_owned()
}

#[test]
fn mappings_merge_and_the_rest_replaces() {
    let rows = [
        ("{a: 1, b: 2}", "{c: 3, a: 4}", r#"{a: "4", b: "2", c: "3"}"#),
        ("{a: {x: 1, y: 2}}", "{a: {y: 3, z: 4}}", r#"{a: {x: "1", y: "3", z: "4"}}"#),
        ("{a: [1, 2]}", "{a: [3]}", r#"{a: ["3"]}"#),
        ("{a: {x: 1}}", "{a: 1}", r#"{a: "1"}"#),
        ("{a: 1}", "{a: {x: 1}}", r#"{a: {x: "1"}}"#),
        ("{a: 1}", "{a: null}", r#"{a: "null"}"#),
        ("{a: 1}", "[x]", r#"["x"]"#),
        ("[x]", "{a: 1}", r#"{a: "1"}"#),
    ];
    for (base, over, expected) in rows {
        assert_eq!(merged(base, over), expected, "{base} {over}");
    }
}

#[test]
fn a_key_with_a_plus_appends_to_a_list() {
    let rows = [
        ("{a: [1]}", "{a+: [2, 3]}", r#"{a: ["1", "2", "3"]}"#),
        ("{b: 1}", "{a+: [2]}", r#"{b: "1", a: ["2"]}"#),
        ("{a: null}", "{a+: [2]}", r#"{a: ["2"]}"#),
        ("{a: {x: [1]}}", "{a: {x+: [2]}}", r#"{a: {x: ["1", "2"]}}"#),
        ("{}", "{a: {x+: [2]}}", r#"{a: {x: ["2"]}}"#),
        ("{a: [1]}", "{a: [5], a+: [6]}", r#"{a: ["5", "6"]}"#),
        ("{a: [1]}", "{a+: '${{ more }}'}", r#"{a: ["1", "${{ more }}"]}"#),
        ("{a: '${{ some }}'}", "{a+: [2]}", r#"{a: ["${{ some }}", "2"]}"#),
    ];
    for (base, over, expected) in rows {
        assert_eq!(merged(base, over), expected, "{base} {over}");
    }
}

#[test]
fn appending_to_what_is_no_list_is_a_mistake_and_changes_nothing() {
    insta::assert_snapshot!(merged("{a: x, b: {c: 1}}", "{a+: [1], b+: [2], c+: 3}"), @r#"
    {a: "x", b: {c: "1"}}
    over:1:2: error: `a+` appends to a list, but the value below it is text (write `a` to replace the value)
    over:1:11: error: `b+` appends to a list, but the value below it is a mapping (write `b` to replace the value)
    over:1:24: error: `c+` appends a list, found a number (write `c+: [...]`)
    "#);
}

#[test]
fn places_stay_with_what_was_written() {
    let (documents, _) = read("a: {x: 1}\n---\na: {y: 2}\n");
    let both = merge(&documents[0], &documents[1], &mut vec![]);
    let inner = both.get("a").unwrap();
    assert_eq!(inner.get("x").unwrap().span, documents[0].get("a").unwrap().get("x").unwrap().span);
    assert_eq!(inner.get("y").unwrap().span, documents[1].get("a").unwrap().get("y").unwrap().span);
}
