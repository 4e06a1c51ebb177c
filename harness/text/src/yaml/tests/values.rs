use super::*;
use crate::Value;
use proptest::prelude::*;
use serde_json::json;

fn manifest(text: &str) -> Result<Value, String> {
    convert(text, to_value)
}

fn parameter(text: &str) -> Result<Value, String> {
    convert(text, to_parameter_value)
}

fn convert(text: &str, read: fn(&Node) -> Result<Value, Vec<crate::diagnostic::Diagnostic>>) -> Result<Value, String> {
    let (documents, mistakes) = super::read(text);
    assert_eq!(mistakes, "", "{text}");
    let one = |d: crate::diagnostic::Diagnostic| format!("{}; {}", d.message, d.hint.unwrap_or_default());
    read(&documents[0]).map_err(|diagnostics| diagnostics.into_iter().map(one).collect::<Vec<_>>().join("\n"))
}

#[test]
fn manifests_are_read_as_kubectl_reads_them() {
    let rows = [
        ("1", json!(1)),
        ("-1", json!(-1)),
        ("+1", json!(1)),
        ("0", json!(0)),
        ("0644", json!(420)),
        ("-010", json!(-8)),
        ("0x1F", json!(31)),
        ("0b101", json!(5)),
        ("0o17", json!(15)),
        ("1_000", json!(1000)),
        ("18446744073709551615", json!(u64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("9007199254740993", json!(9_007_199_254_740_993_u64)),
        ("1.20", json!(1.2)),
        (".5", json!(0.5)),
        ("1e3", json!(1000.0)),
        ("1.5E-3", json!(0.0015)),
        ("true", json!(true)),
        ("False", json!(false)),
        ("~", json!(null)),
        ("null", json!(null)),
        ("'0644'", json!("0644")),
        ("\"yes\"", json!("yes")),
        ("!!str 12", json!("12")),
        ("1.2.3", json!("1.2.3")),
        ("1:30", json!("1:30")),
        ("2001-01-01", json!("2001-01-01")),
        ("500m", json!("500m")),
        ("2Gi", json!("2Gi")),
        ("0xzz", json!("0xzz")),
        ("1e", json!("1e")),
        (".", json!(".")),
        ("nope", json!("nope")),
        ("{a: [1, x], 2: ~}", json!({ "a": [1, "x"], "2": null })),
    ];
    for (text, value) in rows {
        assert_eq!(manifest(text), Ok(value), "{text}");
    }
}

#[test]
fn what_surprises_in_a_manifest_is_refused() {
    let rows = [
        ("yes", "yes is a boolean to some readers of YAML and text to others; write true, or quote it"),
        ("Off", "Off is a boolean to some readers of YAML and text to others; write false, or quote it"),
        ("n", "n is a boolean to some readers of YAML and text to others; write false, or quote it"),
        (".inf", ".inf cannot be a number: JSON has no infinity and no NaN; quote it to keep it as text"),
        ("-.INF", "-.INF cannot be a number: JSON has no infinity and no NaN; quote it to keep it as text"),
        ("1e999", "1e999 cannot be a number: it is too large for a number of 64 bits; quote it to keep it as text"),
        (
            "18446744073709551616",
            "18446744073709551616 cannot be a number: it is too large for a whole number of 64 bits; quote it to keep it as text",
        ),
        (
            "089",
            "089 cannot be a number: a leading zero means octal, and 8 and 9 are not octal digits; quote it to keep it as text",
        ),
        ("{on: 1}", "YAML 1.1 reads the key on as a boolean; quote it"),
        (
            "[no, y]",
            "no is a boolean to some readers of YAML and text to others; write false, or quote it\ny is a boolean to some readers of YAML and text to others; write true, or quote it",
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(manifest(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn the_numbers_of_parameters_are_written_as_they_are_printed() {
    for (text, value) in [
        ("512000", json!(512_000)),
        ("1.2", json!(1.2)),
        ("-0.5", json!(-0.5)),
        ("1e-6", json!(1e-6)),
        ("[x, y, n]", json!(["x", "y", "n"])),
        ("{name: a, y: 1}", json!({ "name": "a", "y": 1 })),
        ("'1.20'", json!("1.20")),
    ] {
        assert_eq!(parameter(text), Ok(value), "{text}");
    }
    for (text, hint) in [
        ("1.20", "write 1.2, or quote it to keep it as text"),
        ("010", "write 8, or quote it to keep it as text"),
        ("+1", "write 1, or quote it to keep it as text"),
        ("1e3", "write 1000.0, or quote it to keep it as text"),
        ("1_000", "write 1000, or quote it to keep it as text"),
        ("-0", "write 0, or quote it to keep it as text"),
        ("no", "write false, or quote it"),
        ("0.1000000000000000055", "write 0.1, or quote it to keep it as text"),
    ] {
        let error = parameter(text).unwrap_err();
        assert!(error.ends_with(&format!("; {hint}")), "{text}: {error}");
    }
}

/// Values with the texts that writers of YAML get wrong.
fn values() -> impl Strategy<Value = Value> {
    let tricky = prop::sample::select(vec![
        "yes",
        "No",
        "on",
        "OFF",
        "y",
        "n",
        "~",
        "null",
        "",
        "0644",
        "1.20",
        "0x1f",
        "1_000",
        ".inf",
        "-.NaN",
        "089",
        "1e3",
        "+1",
        "- a",
        "a: b",
        "a #b",
        "#",
        "*x",
        "&x",
        "!x",
        "%x",
        "@x",
        "{",
        "[",
        "'",
        "\"",
        "a\nb\n",
        " x ",
        "\t",
        "---",
        "...",
        "${{ x }}",
        "<<",
        "=",
        "\u{1b}[1m",
        "\u{85}",
        "\u{feff}",
        "é",
    ]);
    let text = prop_oneof![tricky.prop_map(str::to_owned), "\\PC{0,12}", "[ -~\n]{0,20}"];
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    let key = text.prop_filter("a key is text", |key| !key.is_empty() && key != "<<");
    scalar.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_value_that_was_written_is_read_as_itself(value in values()) {
        let text = to_text(&value);
        let (documents, mistakes) = super::read(&text);
        prop_assert_eq!(mistakes, "", "{}", text);
        // An empty text is an empty document.
        let read = documents.first().map_or(Ok(Value::Null), to_value);
        prop_assert_eq!(read, Ok(value), "{}", text);
    }

    #[test]
    fn a_tree_made_of_a_value_is_that_value_again(value in values()) {
        let node = Node::from_value(&value, Span::default());
        prop_assert_eq!(to_value(&node), Ok(value.clone()));
        prop_assert_eq!(to_parameter_value(&node), Ok(value));
    }
}

#[test]
fn what_kubectl_would_read_as_something_else_is_written_with_quotes() {
    let value = json!({
        "metadata": { "labels": { "on": "yes", "mode": "0644", "plain": "text" } },
        "args": ["-n", "n", "1_000", "0o7", "echo a\necho b\n"],
        "replicas": 2,
    });
    insta::assert_snapshot!(to_text(&value), @r#"
    metadata:
      labels:
        "on": "yes"
        mode: '0644'
        plain: text
    args:
    - -n
    - "n"
    - "1_000"
    - '0o7'
    - |
      echo a
      echo b
    replicas: 2
    "#);
}

#[test]
fn a_field_that_takes_text_alone_gets_numbers_as_they_are_written() {
    let read = |text: &str| {
        let is_text: IsText = |path| matches!(path, ["spec", "args", "[]"] | ["labels", _]);
        to_value_with_texts(&parse(crate::diagnostic::FileId::default(), text).documents[0], is_text)
            .map_err(|mistakes| mistakes[0].message.clone())
    };
    assert_eq!(
        read("{ spec: { args: [5, 1.20, 010, true, null, [6]], num: 5 }, labels: { a: 1, b: { c: 2 } } }"),
        Ok(
            json!({ "spec": { "args": ["5", "1.20", "010", "true", null, [6]], "num": 5 }, "labels": { "a": "1", "b": { "c": 2 } } })
        )
    );
    assert_eq!(read("labels: { a: yes }"), Err("yes is a boolean to some readers of YAML and text to others".to_owned()));
}
