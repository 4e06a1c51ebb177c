//! Digests of what a check and its manifests say: figures are compared as long as both stay the same.

use muster_core::case::CaseHash;
use muster_text::yaml::{Kind, Node, Style};

/// What changes no figure: words for people, which cases there are, and how a figure is judged.
const WITHOUT: [&str; 12] = [
    "descr",
    "maintainers",
    "tags",
    "reference",
    "night",
    "parameters",
    "exclude",
    "valid_systems",
    "valid_prog_environs",
    "abstract",
    "extends",
    "name",
];

/// Sixteen hex digits each. A comment, a blank and the order of keys change none of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hashes {
    /// Of the check with its bases and the settings of the command line.
    pub(crate) check: String,
    /// Of all manifests that it mentions; empty: none.
    pub(crate) manifest: String,
}

impl Hashes {
    pub(crate) fn of<'n>(check: &Node, manifests: impl Iterator<Item = &'n Node>) -> Self {
        let mut text = String::new();
        write(&check.without(&WITHOUT), &mut text);
        let mut manifest = String::new();
        manifests.for_each(|node| write(node, &mut manifest));
        Self { check: digest(&text), manifest: if manifest.is_empty() { manifest } else { digest(&manifest) } }
    }
}

/// Returns the hash of a site file.
pub fn hash_of_site(site: &Node) -> String {
    let mut text = String::new();
    write(&site.without(&["descr"]), &mut text);
    digest(&text)
}

fn digest(text: &str) -> String {
    CaseHash::of(text, []).long()
}

/// Writes a value so that equal values are equal texts, and others are not.
fn write(node: &Node, text: &mut String) {
    match &*node.kind {
        Kind::Scalar { text: scalar, style, tag } => {
            let is_text = *style != Style::Plain || tag.is_some();
            // The length comes first, so that no text reads like the end of another.
            text.push(if is_text { '"' } else { '=' });
            text.push_str(&scalar.len().to_string());
            text.push(':');
            text.push_str(scalar);
        }
        Kind::Seq(items) => {
            text.push('[');
            for item in items {
                write(item, text);
            }
            text.push(']');
        }
        Kind::Map(entries) => {
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by_key(|(key, _)| key.text().unwrap_or_default().to_owned());
            text.push('{');
            for (key, value) in entries {
                write(key, text);
                write(value, text);
            }
            text.push('}');
        }
        Kind::Bad => text.push('!'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_text::{diagnostic::Sources, yaml};

    fn hashes(check: &str, manifest: &str) -> Hashes {
        let mut sources = Sources::default();
        let mut documents = |text: &str| yaml::parse(sources.add("check.yaml", text), text).documents;
        let (check, manifests) = (documents(check), documents(manifest));
        Hashes::of(&check[0], manifests.iter())
    }

    #[test]
    fn what_changes_no_figure_changes_no_digest() {
        let one = hashes("executable: ./a\nvariables: { n: 1, m: 2 }\n", "");
        assert_eq!(one.check.len(), 16);
        assert_eq!(one.manifest, "");
        for same in [
            "# why\nvariables: { m: 2, n: 1 }\nexecutable:   ./a\n",
            "name: a\ndescr: new\ntags: [b]\nnight: { limit: 5% }\nreference: { x: { y: [1, 2] } }\nexecutable: ./a\nvariables: { n: 1, m: 2 }\n",
        ] {
            assert_eq!(hashes(same, ""), one, "{same}");
        }
        for other in [
            "executable: ./b\nvariables: { n: 1, m: 2 }\n",
            "executable: ./a\nvariables: { n: '1', m: 2 }\n",
            "executable: ./a\nvariables: { n: 1, m: [2] }\n",
            "executable: ./a\nvariables: { n: 1 }\n",
        ] {
            assert_ne!(hashes(other, ""), one, "{other}");
        }
        let with = |manifest: &str| hashes("executable: ./a\nvariables: { n: 1, m: 2 }\n", manifest);
        assert_eq!(with("kind: Pod\n").check, one.check);
        assert_ne!(with("kind: Pod\n").manifest, with("kind: Job\n").manifest);
        assert_ne!(with("kind: Pod\n").manifest, "");
    }
}
