//! The fields that the API takes as text alone. YAML makes a number of `5`, and so does a parameter in `args: ["${{ n }}"]`.

/// Lists of containers in a pod.
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];
/// Fields of a container.
const OF_CONTAINER: [&str; 5] = ["name", "image", "workingDir", "terminationMessagePath", "imagePullPolicy"];
/// Maps of texts, wherever they are.
const MAPS: [&str; 4] = ["labels", "annotations", "matchLabels", "nodeSelector"];
/// Fields of a pod's `spec`.
const OF_POD: [&str; 7] =
    ["hostname", "subdomain", "nodeName", "serviceAccountName", "priorityClassName", "schedulerName", "runtimeClassName"];

/// Whether a field of an object, or of a patch of one, is text: by the keys that lead to it, `[]` for an item of a list.
pub(crate) fn is_text(path: &[&str]) -> bool {
    match path {
        [.., list, "[]", "args" | "command", "[]"] | [.., list, "[]", "env", "[]", "name" | "value"] => CONTAINERS.contains(list),
        [.., list, "[]", field] if CONTAINERS.contains(list) => OF_CONTAINER.contains(field),
        // Of probes and hooks; of nodes to choose; of a ConfigMap and a Secret.
        [.., "exec", "command", "[]"]
        | [.., "tolerations", "[]", "key" | "value" | "operator" | "effect"]
        | [.., "matchExpressions" | "matchFields", "[]", "values", "[]"]
        | ["data" | "stringData", _] => true,
        [.., "spec", field] if OF_POD.contains(field) => true,
        [.., map, _] => MAPS.contains(map),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_take_text_alone() {
        let rows = [
            ("spec/containers/[]/args/[]", true),
            ("spec/initContainers/[]/command/[]", true),
            ("spec/template/spec/containers/[]/env/[]/value", true),
            ("spec/containers/[]/livenessProbe/exec/command/[]", true),
            ("spec/containers/[]/lifecycle/preStop/exec/command/[]", true),
            ("spec/containers/[]/image", true),
            ("spec/replicatedJobs/[]/template/spec/template/spec/nodeSelector/pool", true),
            ("metadata/labels/size", true),
            ("spec/template/metadata/annotations/n", true),
            ("spec/tolerations/[]/value", true),
            ("spec/affinity/nodeAffinity/x/nodeSelectorTerms/[]/matchExpressions/[]/values/[]", true),
            ("spec/template/spec/nodeName", true),
            ("data/n", true),
            ("spec/containers/[]/ports/[]/containerPort", false),
            ("spec/containers/[]/stdin", false),
            ("spec/tolerations/[]/tolerationSeconds", false),
            ("spec/containers/[]/resources/limits/nvidia.com/gpu", false),
            ("spec/completions", false),
            ("spec/data/n", false),
            ("spec/args/[]", false),
        ];
        for (path, expected) in rows {
            assert_eq!(is_text(&path.split('/').collect::<Vec<_>>()), expected, "{path}");
        }
    }
}
