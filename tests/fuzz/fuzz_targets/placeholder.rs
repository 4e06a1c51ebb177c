//! A tree with placeholders: rendered, or the reason why not; twice the same; and a tree without placeholders is itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_text::{yaml, diagnostic::FileId, expr::Scope, template::{Cache, render}};
use serde_json::json;

fuzz_target!(|text: &str| {
    let parsed = yaml::parse(FileId::default(), text);
    let mut scope = Scope::new();
    for (name, value) in [("n", json!(4)), ("x", json!(1.5)), ("s", json!("a b")), ("xs", json!([1, "b", null]))] {
        scope.set(name, value);
    }
    scope.set("map", json!({ "k": { "v": true } }));
    scope.set("none", json!(null));
    for node in &parsed.documents {
        let mut mistakes = Vec::new();
        // Two NaN are not equal, but look alike: the trees' looks are compared.
        let new = format!("{:?}", render(node, &scope, &Cache::default(), &mut mistakes));
        let mut again = Vec::new();
        assert_eq!(format!("{:?}", render(node, &scope, &Cache::default(), &mut again)), new);
        assert_eq!(mistakes, again);
        for span in mistakes.iter().filter_map(|diagnostic| diagnostic.span) {
            assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} of {} bytes", text.len());
        }
        if !text.contains("${{") && mistakes.is_empty() {
            assert_eq!(new, format!("{:?}", Some(node)));
        }
    }
});
