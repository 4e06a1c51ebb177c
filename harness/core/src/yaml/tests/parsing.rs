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
    t.yaml:5:5: error: a key is not possible here (a value that contains `: ` needs quotes; or the line above lacks a `:`)
    "#);
}
