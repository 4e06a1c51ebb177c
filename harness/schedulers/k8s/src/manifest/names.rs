//! Marks objects as belonging to one attempt: Muster's labels on every `metadata`, and names with the identifier.
//!
//! `name: NAME` becomes `rfm-NAME-ID`, `generateName: NAME-` becomes `rfm-NAME-ID` too: the answer to a lost creation is
//! found again only under a name that Muster chose. A name that is too long loses letters in the middle, never the identifier.
//!
//! Labels go wherever `metadata` is. Names change only at the top and in templates: a `volumeClaimTemplate` is mounted by
//! its name, and a template's own name means nothing to the API.

use super::{children_mut, place};
use crate::api::{LABEL, SESSION_LABEL};
use muster_text::Value;

/// The marks of one attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptLabels<'a> {
    /// The identifier.
    pub(crate) id: &'a str,
    /// The session.
    pub(crate) session: &'a str,
}

impl AttemptLabels<'_> {
    /// The new name of something that was written with a name, or with a generated one.
    pub(crate) fn renamed(&self, name: Option<&str>, generate_name: Option<&str>, max: usize) -> Option<String> {
        // A generated name ends with its own dash, if it wants one.
        let (stem, dash) = name.map(|name| (name, "-")).or_else(|| generate_name.map(|stem| (stem, "")))?;
        Some(shortened(stem, &format!("{dash}{}", self.id), max))
    }

    /// Labels every metadata of an object, and renames those in templates.
    pub(crate) fn label_all(&self, object: &mut Value, metadata_paths: &[String], max: usize) {
        for path in metadata_paths {
            // The last key is made if need be, for a `podMetadata` is rarely written; what it is of is not.
            let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
            if super::at(object, parent).is_some_and(Value::is_object)
                && let Some(metadata) = place(object, path)
            {
                self.label(metadata);
            }
        }
        if let Some(metadata) = place(object, "metadata") {
            self.label(metadata);
        }
        self.descend(object, None, max);
    }

    /// `key`: of this value; `None` for the object itself, which is named elsewhere.
    fn descend(&self, value: &mut Value, key: Option<&str>, max: usize) {
        if let Some(key) = key {
            let is_template = is_template(key, value);
            if (is_template || value.get("metadata").is_some_and(Value::is_object))
                && let Some(metadata) = place(value, "metadata")
            {
                self.label(metadata);
                if is_template && !key.starts_with("volumeClaim") {
                    self.rename_template(metadata, max);
                }
            }
        }
        for (key, child) in children_mut(value).filter(|(key, _)| *key != "metadata") {
            self.descend(child, Some(key), max);
        }
    }

    fn rename_template(&self, metadata: &mut Value, max: usize) {
        let text = |key| metadata.get(key).and_then(Value::as_str);
        let new = self.renamed(text("name"), text("generateName"), max);
        if let (Some(new), Some(metadata)) = (new, metadata.as_object_mut()) {
            metadata.shift_remove("generateName");
            metadata.insert("name".to_owned(), new.into());
        }
    }

    fn label(&self, metadata: &mut Value) {
        for (key, value) in [(LABEL, self.id), (SESSION_LABEL, self.session)] {
            if let Some(labels) = place(metadata, "labels") {
                if !labels.is_object() {
                    *labels = Value::Object(serde_json::Map::new());
                }
                labels[key] = value.into();
            }
        }
    }
}

/// A template of something, be it a pod, a job or a volume: it has a `spec`, and metadata of its own.
fn is_template(key: &str, value: &Value) -> bool {
    (key == "template" || key.ends_with("Template")) && value.get("spec").is_some_and(Value::is_object)
}

/// `rfm-STEM` and the end, with as many letters of the stem left out before the end as `max` asks for.
pub(crate) fn shortened(stem: &str, end: &str, max: usize) -> String {
    let whole = format!("rfm-{stem}{end}");
    if whole.len() <= max {
        return whole;
    }
    let end = end.trim_start_matches('-');
    let room = max.saturating_sub("rfm-".len() + "-".len() + end.len());
    let cut = (0..=room.min(stem.len())).rev().find(|cut| stem.is_char_boundary(*cut)).unwrap_or(0);
    let kept = stem[..cut].trim_end_matches(['-', '.']);
    if kept.is_empty() { format!("rfm-{end}") } else { format!("rfm-{kept}-{end}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name`, `generateName`, the limit, the new name.
    type Row<'a> = (Option<&'a str>, Option<&'a str>, usize, Option<&'a str>);

    #[test]
    fn a_name_keeps_its_mark_and_loses_its_middle() {
        let mark = AttemptLabels { id: "abcdefgh", session: "s" };
        let long = "x".repeat(70);
        let rows: [Row<'_>; 10] = [
            (Some("nbody"), None, 63, Some("rfm-nbody-abcdefgh")),
            (None, Some("jobtest-"), 63, Some("rfm-jobtest-abcdefgh")),
            (None, Some("cuda-test-pod"), 63, Some("rfm-cuda-test-podabcdefgh")),
            (Some("nbody"), Some("ignored-"), 63, Some("rfm-nbody-abcdefgh")),
            (None, None, 63, None),
            (Some("mnist-training-on-one"), None, 36, Some("rfm-mnist-training-on-one-abcdefgh")),
            (Some("mnist-training-on-four-units"), None, 36, Some("rfm-mnist-training-on-four-abcdefgh")),
            (None, Some("mnist-training-on-four-units-"), 36, Some("rfm-mnist-training-on-four-abcdefgh")),
            (Some("a.b-c"), None, 16, Some("rfm-a.b-abcdefgh")),
            (Some("ab"), None, 14, Some("rfm-a-abcdefgh")),
        ];
        for (name, generate, max, expected) in rows {
            let new = mark.renamed(name, generate, max);
            assert_eq!(new.as_deref(), expected, "{name:?} {generate:?}");
            assert!(new.is_none_or(|new| new.len() <= max));
        }
        assert_eq!(mark.renamed(Some(&long), None, 63).map(|name| name.len()), Some(63));
        assert_eq!(mark.renamed(Some("é€é"), None, 15).as_deref(), Some("rfm-é-abcdefgh"));
    }
}
