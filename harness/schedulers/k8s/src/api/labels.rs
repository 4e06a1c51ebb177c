//! Labels and annotations that Muster writes or reads.

/// Label of everything that one attempt of one case creates: its identifier.
pub(crate) const LABEL: &str = "rfm";
/// Label of everything that one session creates.
pub(crate) const SESSION_LABEL: &str = "rfm-session";
/// Label of what was stopped and kept to be looked at.
pub(crate) const KEPT_LABEL: &str = "rfm-kept";
/// Annotation of what was kept: when `muster sweep` may remove it (RFC 3339).
pub(crate) const EXPIRES_ANNOTATION: &str = "rfm/expires";
/// Annotation of the workload: the case's name as displayed.
pub(crate) const CASE_ANNOTATION: &str = "rfm/case";

/// Annotation of the workload: what was created beside it, as `Object::named` writes it, for those who may not list it.
pub(crate) const OBJECTS_ANNOTATION: &str = "rfm/objects";

/// Kueue's label of what waits in a queue; older versions of Kueue read an annotation of this name.
pub(crate) const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";
/// Every node has it; the value usually is the node's name.
pub(crate) const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
/// Annotation of a pod: the container whose end is the pod's.
pub(crate) const DEFAULT_CONTAINER_ANNOTATION: &str = "kubectl.kubernetes.io/default-container";
