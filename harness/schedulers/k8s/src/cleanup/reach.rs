//! Pods that cannot be stopped because their nodes do not answer.

use crate::{job::SeenPod, status::node_is_silent};
use std::collections::BTreeSet;

/// `n1, n2`: the nodes of these pods, if none of them answers.
pub(super) fn silent_nodes<'a>(pods: impl Iterator<Item = &'a SeenPod>) -> Option<String> {
    let node = |seen: &'a SeenPod| {
        let node = seen.pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        node.filter(|_| node_is_silent(&seen.pod))
    };
    let nodes: BTreeSet<&str> = pods.map(node).collect::<Option<_>>()?;
    (!nodes.is_empty()).then(|| nodes.into_iter().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::testing::pod;
    use std::sync::Arc;

    fn on(node: &str, ready: &str) -> SeenPod {
        let pod = pod(&format!(
            "{{metadata: {{name: x}}, spec: {{nodeName: {node}}}, status: {{phase: Running, conditions: \
             [{{type: ContainersReady, status: 'True'}}, {{type: Ready, status: '{ready}'}}]}}}}"
        ));
        SeenPod { pod: Arc::new(pod), gone: false, deleted_by_us: true }
    }

    #[test]
    fn pods_are_unreachable_only_if_none_of_their_nodes_answers() {
        let nodes = |pods: &[SeenPod]| silent_nodes(pods.iter());
        assert_eq!(nodes(&[]), None);
        assert_eq!(nodes(&[on("n1", "True")]), None);
        assert_eq!(nodes(&[on("n1", "False"), on("n2", "True")]), None);
        assert_eq!(nodes(&[on("n2", "False"), on("n1", "False"), on("n1", "False")]).as_deref(), Some("n1, n2"));
    }
}
