use super::*;

#[test]
fn scalars_keep_their_text() {
    let (documents, mistakes) = read("a: 1.20\nb: '1.20'\nc: 0644\nd: |\n  x\n  y\ne: ~\nf:\n");
    assert_eq!(mistakes, "");
    assert_eq!(shape(&documents[0]), r#"{a: "1.20", b: "1.20", c: "0644", d: "x\ny\n", e: "~", f: ""}"#);
    let what: Vec<_> = documents[0].entries().iter().map(|(_, value)| value.what()).collect();
    assert_eq!(what, ["a number", "text", "a number", "text", "nothing", "nothing"]);
}

#[test]
fn a_syntax_error_ends_its_document_and_not_the_file() {
    let text = "a: 1\n---\nb: [1, 2\n---\nc: x: y\n---\nd: 4\n";
    insta::assert_snapshot!(shapes(text), @r#"
    {a: "1"}
    BAD
    BAD
    {d: "4"}
    t.yaml:3:4: error: a bracket is never closed (close it with ] or })
    t.yaml:5:5: error: a key is not possible here (a value that contains `: ` needs quotes; or a `:` is missing in the line above)
    "#);
}

#[test]
fn empty_documents_are_no_documents() {
    for (text, documents) in [
        ("", 0),
        ("# nothing\n", 0),
        ("---\n---\n# nothing\n---\na: 1\n...\n", 1),
        ("%YAML 1.2\n---\na: 1\n---\nb: 1\n---\n", 2),
        ("\u{feff}a: 1\n", 1),
        ("a: 1\r\nb: 2\r\n", 1),
        ("''", 1),
    ] {
        let (read, mistakes) = read(text);
        assert_eq!((read.len(), mistakes.as_str()), (documents, ""), "{text:?}");
    }
}

#[test]
fn merge_keys_are_resolved_and_explicit_keys_win() {
    let rows = [
        ("a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}", r#"{a: {k: "1", l: "2"}, b: {k: "3", l: "2"}}"#),
        ("a: &x {k: 1}\nb: {z: 1, <<: [*x, {k: 9, m: 4}]}", r#"{a: {k: "1"}, b: {z: "1", k: "1", m: "4"}}"#),
        ("a: &x {k: 1}\nb: &y {<<: *x, l: 2}\nc: {<<: *y}", r#"{a: {k: "1"}, b: {l: "2", k: "1"}, c: {l: "2", k: "1"}}"#),
        ("a: {'<<': 1}", r#"{a: {<<: "1"}}"#),
    ];
    for (text, expected) in rows {
        assert_eq!(shapes(text).trim_end(), expected, "{text}");
    }
}

#[test]
fn an_alias_is_reached_through_its_own_place() {
    let text = "a: &x [1]\nb: *x\n";
    let (documents, _) = read(text);
    let b = documents[0].get("b").unwrap();
    assert_eq!(&text[b.span.start as usize..b.span.end as usize], "[1]");
    assert_eq!(b.via.map(|via| &text[via.start as usize..via.end as usize]), Some("*x"));
    assert_eq!(b.place(), b.via.unwrap());
    assert!(documents[0].get("a").unwrap().via.is_none());
}

#[test]
fn spans_cover_what_was_written() {
    let text = "first: [1, 2]\nmap:\n  x: 'é'\n  y:\n    - a\n    - b\n\n# comment\nlast: |\n  text\n";
    let (documents, _) = read(text);
    let written = |node: &Node| &text[node.span.start as usize..node.span.end as usize];
    let map = documents[0].get("map").unwrap();
    assert_eq!(written(documents[0].get("first").unwrap()), "[1, 2]");
    assert_eq!(written(map), "x: 'é'\n  y:\n    - a\n    - b");
    assert_eq!(written(map.get("x").unwrap()), "'é'");
    assert_eq!(written(map.get("y").unwrap()), "- a\n    - b");
}

#[test]
fn an_unfinished_placeholder_is_an_error_that_says_so() {
    insta::assert_snapshot!(
        shapes("a: ${{ x + 'p # q' }}\nb: ${{ x\nc: '${{ fine # here }}'\nd: ${{ x }} and ${{ y\ne: ${{ x }}\n"),
        @r#"
    {a: BAD, b: BAD, c: "${{ fine # here }}", d: BAD, e: "${{ x }}"}
    t.yaml:1:4: error: a placeholder `${{` is never closed (YAML takes ` #` for the beginning of a comment: put the whole value in quotes)
    t.yaml:2:4: error: a placeholder `${{` is never closed (close it with `}}`, or put the whole value in quotes)
    t.yaml:4:4: error: a placeholder `${{` is never closed (close it with `}}`, or put the whole value in quotes)
    "#
    );
}

#[test]
fn limits_are_named() {
    let deep = |count: usize| format!("{}1{}", "[".repeat(count), "]".repeat(count));
    // Each level stands for ten of the level before it.
    let laughs = (1..8).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, level| {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        format!("{text}a{level}: &a{level} [{aliases}]\n")
    });
    let tower =
        (1..=MAX_DEPTH).fold("a0: &a0 [x]\n".to_owned(), |text, level| format!("{text}a{level}: &a{level} [*a{}]\n", level - 1));
    let rows = [
        (deep(MAX_DEPTH), ""),
        (deep(MAX_DEPTH + 1), "lists and mappings are nested more than 100 deep"),
        (deep(100_000), "lists and mappings are nested more than 100 deep"),
        (format!("{}a: {}", "- ".repeat(60), deep(60)), "lists and mappings are nested more than 100 deep"),
        (laughs, "the file has more than 250000 values, aliases counted as what they refer to"),
        (tower, "lists and mappings are nested more than 100 deep"),
        (format!("# {}\na: 1", "x".repeat(MAX_BYTES)), "the file has 4194311 bytes; the limit is 4194304"),
        ("- 1\n".repeat(MAX_NODES), "the file has more than 250000 values, aliases counted as what they refer to"),
    ];
    for (text, expected) in rows {
        let (_, mistakes) = read(&text);
        let message = mistakes.split_once("error: ").map_or("", |(_, message)| message);
        let message = message.trim_end().trim_end_matches(" (split it)");
        assert_eq!((message, mistakes.lines().count()), (expected, usize::from(!expected.is_empty())));
    }
}

#[test]
fn ten_thousand_values_are_no_trouble() {
    let values: Vec<_> = (0..10_000).map(|n| n.to_string()).collect();
    for text in [format!("a: [{}]\n", values.join(", ")), format!("a:\n  - {}\n", values.join("\n  - "))] {
        let (documents, mistakes) = read(&text);
        assert_eq!((documents[0].get("a").unwrap().items().len(), mistakes.as_str()), (10_000, ""));
    }
}
