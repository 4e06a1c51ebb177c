//! Which document is the workload, and which one a patch is for.

use crate::{
    kind::{Kinds, ResourceName},
    manifest::Document,
};
use muster_text::{Value, diagnostic::Diagnostic};

/// The document that `k8s_resource` names, else the only one that is no helper.
pub(super) fn workload(documents: &[Document], resource: Option<&str>, kinds: &Kinds) -> Result<usize, Vec<Diagnostic>> {
    let is_helper = |document: &Document| kinds.find(&document.resource).is_some_and(|kind| kind.helper);
    let name = resource.map(ResourceName::parse);
    let fits = |document: &Document| match &name {
        None => !is_helper(document),
        Some(name) => {
            name.means(&document.resource, kinds) && document.written_name().is_none_or(|written| name.means_object(written))
        }
    };
    let fitting: Vec<usize> = (0..documents.len()).filter(|index| fits(&documents[*index])).collect();
    let wrong = |message: String, hint: &str| Err(vec![Diagnostic::general(message).hint(hint)]);
    match (&fitting[..], resource) {
        ([only], _) => Ok(*only),
        ([], Some(resource)) => wrong(
            format!("`k8s_resource: {resource}` is none of the manifest's objects: {}", listed(documents)),
            "name the kind that ends: its kind, plural or short name, with its group if need be",
        ),
        ([], None) => wrong(
            format!("nothing in the manifest ends by itself: {}", listed(documents)),
            "add the workload, or name one of these with `k8s_resource` and a rule in `k8s_workloads`",
        ),
        (several, _) => {
            let several: Vec<Document> = several.iter().map(|index| documents[*index].clone()).collect();
            let message = format!("the manifest has several workloads: {}", listed(&several));
            wrong(message, "name with `k8s_resource` the one whose end is the case's: `job`, or `pod/NAME`")
        }
    }
}

/// The document that a patch is for: the one of its `kind` (and `metadata.name`), if it says one, else the workload.
pub(super) fn patched(documents: &[Document], workload: usize, patch: &Value) -> Result<usize, Vec<Diagnostic>> {
    let Some(kind) = patch.get("kind").and_then(Value::as_str) else { return Ok(workload) };
    let api_version = patch.get("apiVersion").and_then(Value::as_str);
    let is_meant = |document: &Document| {
        document.resource.kind == kind && api_version.is_none_or(|version| version == document.resource.api_version())
    };
    let mut meant: Vec<usize> = (0..documents.len()).filter(|index| is_meant(&documents[*index])).collect();
    if meant.len() > 1
        && let Some(name) = patch.pointer("/metadata/name").and_then(Value::as_str)
    {
        meant.retain(|index| documents[*index].metadata("name") == Some(name));
    }
    match &meant[..] {
        [only] => Ok(*only),
        [] => {
            let message = format!("`k8s_patch` is for a {kind} that is not in the manifest: {}", listed(documents));
            Err(vec![
                Diagnostic::general(message)
                    .hint("name the `kind` and `metadata.name` of one of these, or leave `kind` out for the workload"),
            ])
        }
        _ => {
            let meant: Vec<Document> = meant.iter().map(|index| documents[*index].clone()).collect();
            let message = format!("`k8s_patch` may be for any of {}", listed(&meant));
            Err(vec![Diagnostic::general(message).hint("write the `metadata.name` of the one it is for")])
        }
    }
}

fn listed(documents: &[Document]) -> String {
    documents.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
