//! Names of resources as kubectl takes them: `ipujob`, `ipujobs`, `IPUJob`, `po`, `jobs.batch`, `jobs.v1.batch`, `pod/client`.

use super::Kinds;
use crate::api::Resource;

/// What `k8s_resource` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceName {
    /// `jobs`, in small letters.
    word: String,
    /// `batch` or `v1.batch`, if it says so.
    group: Option<String>,
    /// `client` of `pod/client`.
    object: Option<String>,
}

impl ResourceName {
    /// Reads a name.
    pub(crate) fn parse(text: &str) -> Self {
        let (resource, object) = match text.split_once('/') {
            Some((resource, object)) => (resource, Some(object.to_owned())),
            None => (text, None),
        };
        let (word, group) = match resource.split_once('.') {
            Some((word, group)) => (word, Some(group.to_lowercase())),
            None => (resource, None),
        };
        Self { word: word.to_lowercase(), group, object }
    }

    /// Whether it means this resource.
    pub(crate) fn means(&self, resource: &Resource, kinds: &Kinds) -> bool {
        let singular = resource.kind.to_lowercase();
        let known = kinds.find(resource);
        let short = known.into_iter().flat_map(|kind| kind.short_names.iter());
        let plural = known.and_then(|kind| kind.plural.clone()).unwrap_or_else(|| plural(&singular));
        let is_word = self.word == singular || self.word == plural || short.into_iter().any(|short| *short == self.word);
        let is_group = self.group.as_ref().is_none_or(|group| {
            *group == resource.group
                || group
                    .strip_prefix(&resource.version)
                    .is_some_and(|rest| rest.strip_prefix('.').unwrap_or(rest) == resource.group)
        });
        is_word && is_group
    }

    /// Whether it means an object of this name.
    pub(crate) fn means_object(&self, name: &str) -> bool {
        self.object.as_deref().is_none_or(|object| object == name)
    }
}

/// The probable plural of an unknown kind.
pub(crate) fn plural(singular: &str) -> String {
    match singular {
        _ if singular.ends_with(['s', 'x']) || singular.ends_with("ch") || singular.ends_with("sh") => format!("{singular}es"),
        _ if singular.ends_with('y') => format!("{}ies", &singular[..singular.len() - 1]),
        _ => format!("{singular}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_named_as_kubectl_names_it() {
        let rows = [
            ("pod", "v1", "Pod", true),
            ("po", "v1", "Pod", true),
            ("Pods", "v1", "Pod", true),
            ("pods.v1", "v1", "Pod", true),
            ("jobs", "batch/v1", "Job", true),
            ("job.batch", "batch/v1", "Job", true),
            ("jobs.v1.batch", "batch/v1", "Job", true),
            ("jobs.v1beta1.batch", "batch/v1", "Job", false),
            ("jobs.batch", "batch.volcano.sh/v1alpha1", "Job", false),
            ("vcjob", "batch.volcano.sh/v1alpha1", "Job", true),
            ("ipujob", "graphcore.ai/v1alpha1", "IPUJob", true),
            ("ipujobs.graphcore.ai", "graphcore.ai/v1alpha1", "IPUJob", true),
            ("ipujobs.v1alpha1.graphcore.ai", "graphcore.ai/v1alpha1", "IPUJob", true),
            ("policies", "example.org/v1", "Policy", true),
            ("boxes", "example.org/v1", "Box", true),
            ("job", "v1", "Pod", false),
        ];
        for (text, api_version, kind, expected) in rows {
            let resource = Resource::of(api_version, kind);
            assert_eq!(ResourceName::parse(text).means(&resource, Kinds::known()), expected, "{text} {kind}");
        }
        let client = ResourceName::parse("pod/client");
        assert!(client.means_object("client") && !client.means_object("server"));
        assert!(ResourceName::parse("pod").means_object("anything"));
    }
}
