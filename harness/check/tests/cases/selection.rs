//! What is said of filters that no case passes.

use super::*;
use muster_check::selection::select::{self, Filters};
use muster_core::case::matcher::Matcher;

fn why(name: &str, tag: &str, environ: &str, expression: &str) -> String {
    let (all, mistakes) = cases(
        "name: memory\nvalid_systems: ['eidf:gpu']\nexecutable: a\nsanity: []\ntags: [slow, gpu]\nparameters: { n: [1, 2] }\n---\n\
         name: network\nvalid_systems: ['eidf:cpu']\nexecutable: a\nsanity: []\ntags: [fast]\n",
    );
    assert_eq!(mistakes, [""; 0]);
    let hash = all[0].name.hash.clone();
    let of = |text: &str| -> Vec<Matcher> {
        let text = text.replace("HASH", &hash);
        text.split(',').filter(|text| !text.is_empty()).map(|text| Matcher::parse(text, true).expect("a pattern")).collect()
    };
    let filters = Filters {
        names: of(name),
        tags: of(tag),
        environs: of(environ),
        expressions: Some(expression)
            .filter(|text| !text.is_empty())
            .map(|text| select::expression(text).expect("an expression"))
            .into_iter()
            .collect(),
        ..Filters::default()
    };
    assert!(!all.iter().any(|case| filters.admit(case).expect("decided")));
    filters.why_none(&all).join("; ").replace(&hash, "HASH")
}

#[test]
fn the_filter_that_admits_nothing_is_named_with_what_there_is() {
    let rows = [
        (("memroy", "", "", ""), "-n memroy matches no name: did you mean `memory`?"),
        (("stream", "", "", ""), "-n stream matches no name: the checks are memory, network"),
        (("HASH", "", "", ""), "-n HASH matches no name: did you mean the hash, `-n /HASH`?"),
        (("/abcdef01", "", "", ""), "-n /abcdef01 matches no name: hashes change with names and parameters: `-l` lists them"),
        (("", "fasst", "", ""), "-t fasst matches no tag: did you mean `fast`?"),
        (("", "nightly", "", ""), "-t nightly matches no tag: the tags are fast, gpu, slow"),
        (("", "", "intel", ""), "-p intel matches no environment: there are cray, gnu"),
        (("", "", "", "n > 2"), "-E 'n > 2' is true of none"),
        (("memory", "fast", "", ""), ""),
        // Each of them admits something, and the two nothing.
        (("memory,!memory", "", "", ""), ""),
        (("", "", "gnu,!gnu", ""), ""),
        (
            ("memroy", "nightly", "", ""),
            "-n memroy matches no name: did you mean `memory`?; -t nightly matches no tag: the tags are fast, gpu, slow",
        ),
    ];
    for ((name, tag, environ, expression), expected) in rows {
        assert_eq!(why(name, tag, environ, expression), expected);
    }
}
