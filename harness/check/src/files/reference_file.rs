//! `reference: refs.yaml#name`: references in a file of their own, put in the place of the path before anything else is
//! done. So `extends`, `when` and every mistake see them as if they had been written there, each value in its own file.

use crate::files::check_file;
use muster_text::{
    diagnostic::{Diagnostic, FileId, Span},
    yaml::{Kind, Node},
};

/// A path as written, and the part of the file that is meant.
fn split(written: &str) -> (&str, Option<&str>) {
    written.split_once('#').map_or((written, None), |(path, part)| (path, Some(part)))
}

fn is_path(reference: &Node) -> bool {
    reference.text().is_some() && !reference.is_null() && !reference.has_placeholder()
}

/// The files that a check mentions, in its body and under `when`.
pub(crate) fn paths(check: &Node) -> impl Iterator<Item = (&str, Span)> {
    let paths = check_file::texts(check, "reference").map(|(written, span)| (split(written).0, span));
    paths.filter(|(path, _)| !path.is_empty())
}

/// The documents of a file, by the file that mentions it and the path as written there; `None`: it could not be read, and
/// that is reported.
pub(crate) type Find<'a> = dyn Fn(FileId, &str) -> Option<&'a [Node]> + 'a;

/// The check with the references themselves in the place of their paths.
pub(crate) fn inlined(check: &Node, find: &Find<'_>, diagnostics: &mut Vec<Diagnostic>) -> Node {
    let mut put = |node: &Node| if is_path(node) { block(node, find, diagnostics) } else { Some(node.clone()) };
    let check = replaced(check, "reference", &mut put);
    replaced(&check, "when", |when| {
        let Kind::Seq(entries) = &*when.kind else { return Some(when.clone()) };
        if !entries.iter().filter_map(|entry| entry.get("reference")).any(is_path) {
            return Some(when.clone());
        }
        let entries = entries.iter().map(|entry| replaced(entry, "reference", &mut put));
        Some(Node { via: when.via, ..Node::new(when.span, Kind::Seq(entries.collect())) })
    })
}

/// The mapping with another value of a key, or without it.
fn replaced(map: &Node, key: &str, mut by: impl FnMut(&Node) -> Option<Node>) -> Node {
    if map.get(key).is_none() {
        return map.clone();
    }
    let entries = map.entries().iter().filter_map(|(name, value)| {
        let value = if name.text() == Some(key) { by(value)? } else { value.clone() };
        Some((name.clone(), value))
    });
    Node { via: map.via, ..Node::new(map.span, Kind::Map(entries.collect())) }
}

fn block(mention: &Node, find: &Find<'_>, diagnostics: &mut Vec<Diagnostic>) -> Option<Node> {
    let (path, part) = split(mention.text()?);
    let mut wrong = |message: String, hint: &str| {
        diagnostics.push(Diagnostic::error(mention.place(), message).hint(hint));
        None
    };
    if path.is_empty() {
        return wrong(
            "references need the path of a file".to_owned(),
            "write `refs.yaml`, or `refs.yaml#name` for one key of it",
        );
    }
    let document = match find(mention.span.file, path)? {
        [document] => document,
        [] => return wrong(format!("{path} holds no references"), "write them there as you would write them here"),
        _ => return wrong(format!("{path} holds several documents"), "one is enough: `path#name` reads one key of it"),
    };
    // Its mistakes are reported already.
    let document = Some(document).filter(|document| !document.is_bad())?;
    let Some(part) = part else { return Some(document.clone()) };
    if let Some(found) = document.get(part) {
        return Some(found.clone());
    }
    let names = document.entries().iter().filter_map(|(name, _)| name.text());
    let missing = Diagnostic::error(mention.place(), format!("{path} has no `{part}`"));
    let otherwise = "write a key of the file after `#`; its value is the references";
    diagnostics.push(missing.did_you_mean(part, names, Some(otherwise)));
    None
}

#[cfg(test)]
mod tests {
    use crate::files::load::{Loaded, testing::load};

    /// The place of a figure's reference, in the last check.
    fn place_of(loaded: &Loaded, scope: &str, figure: &str) -> Option<String> {
        let tree = &loaded.checks.last()?.tree;
        let value = tree.get("reference")?.get(scope)?.get(figure)?;
        Some(loaded.sources.get(value.span.file)?.path.clone())
    }

    #[test]
    fn a_path_stands_for_what_the_file_says_and_values_keep_their_own_place() {
        let refs = "stream:\n  '*': { speed: [1, 0, 0] }\nosu: {}\n";
        let base = "name: base\nabstract: true\nreference: refs.yaml#stream\n";
        let own = "name: a\nextends: ../base.yaml#base\nreference: { sys: { wait: [2, 0, 0] } }\n";
        let loaded = load(&[("a/check.yaml", own), ("base.yaml", base), ("refs.yaml", refs)]);
        assert_eq!(loaded.diagnostics.len(), 0, "{:?}", loaded.diagnostics);
        assert_eq!(place_of(&loaded, "*", "speed").as_deref(), Some("refs.yaml"));
        assert_eq!(place_of(&loaded, "sys", "wait").as_deref(), Some("a/check.yaml"));
    }

    #[test]
    fn an_entry_of_when_may_name_another_file() {
        let check = "name: a\nreference: one.yaml\nwhen: [{ system: s, reference: two.yaml }, { system: t, tags: [x] }]\n";
        let loaded =
            load(&[("c.yaml", check), ("one.yaml", "'*': { a: [1, 0, 0] }"), ("two.yaml", "- { values: { a: [2, 0, 0] } }")]);
        assert_eq!(loaded.diagnostics.len(), 0, "{:?}", loaded.diagnostics);
        let when = loaded.checks[0].tree.get("when").expect("kept").items();
        assert_eq!(when[0].get("reference").expect("put in").items().len(), 1);
        assert_eq!(when[1].get("tags").expect("kept").items().len(), 1);
    }

    #[test]
    fn what_is_not_there_is_reported_once_and_the_check_has_no_references() {
        let rows = [
            ("refs.yaml", None, "the file of references refs.yaml could not be read: no such file"),
            ("refs.yaml", Some(""), "refs.yaml holds no references"),
            ("refs.yaml", Some("a: 1\n---\nb: 2\n"), "refs.yaml holds several documents"),
            ("refs.yaml#strem", Some("stream: {}\n"), "refs.yaml has no `strem` (did you mean `stream`?)"),
            ("'#stream'", None, "references need the path of a file (write `refs.yaml`, or `refs.yaml#name` for one key of it)"),
            ("refs.yaml", Some("a: [1\n"), "expected"),
        ];
        for (written, text, expected) in rows {
            let check = format!("name: a\nreference: {written}\n");
            let files: Vec<(&str, &str)> =
                std::iter::once(("c.yaml", check.as_str())).chain(text.map(|text| ("refs.yaml", text))).collect();
            let loaded = load(&files);
            let [mistake] = &loaded.diagnostics[..] else { panic!("{written}: {:?}", loaded.diagnostics) };
            let hint =
                mistake.hint.as_deref().filter(|_| expected.ends_with(')')).map(|hint| format!(" ({hint})")).unwrap_or_default();
            if expected != "expected" {
                assert_eq!(format!("{}{hint}", mistake.message), expected);
            }
            assert!(loaded.checks[0].tree.get("reference").is_none(), "{written}");
        }
    }
}
