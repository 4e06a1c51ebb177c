//! Properties that hold for every text.

use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_tree_without_placeholders_is_itself(text in r#"[a-c$ {}'"é]{0,12}"#, style in 0_usize..3) {
        prop_assume!(!text.contains("${{"));
        let style = [Style::Plain, Style::Quoted, Style::Block][style];
        let leaf = Node::scalar(crate::diagnostic::Span::default(), text.as_str(), style);
        let tree = Node::new(leaf.span, Kind::Seq(vec![leaf.clone(), Node::new(leaf.span, Kind::Map(vec![(leaf.clone(), leaf)]))]));
        let mut diagnostics = Vec::new();
        let new = render(&tree, &Scope::new(), &Cache::default(), &mut diagnostics).unwrap();
        prop_assert!(Arc::ptr_eq(&tree.kind, &new.kind));
        prop_assert_eq!(diagnostics, []);
    }

    #[test]
    fn any_scalar_renders_or_says_why(text in r#"(\$\{\{|\}\}|[ an1'"{}\\+é]){0,12}"#) {
        let span = crate::diagnostic::Span { end: u32::try_from(text.len()).unwrap(), ..Default::default() };
        let mut diagnostics = Vec::new();
        let new = render(&Node::scalar(span, text.as_str(), Style::Plain), &scope(), &Cache::default(), &mut diagnostics);
        prop_assert_eq!(new.is_some_and(|node| node.is_bad()), !diagnostics.is_empty());
        for diagnostic in diagnostics {
            let span = diagnostic.span.unwrap();
            prop_assert!(text.get(span.start as usize..span.end as usize).is_some(), "{:?}", span);
        }
    }
}
