//! Whose a pod is, along its controllers: Pod -> Job -> `JobSet` -> ... Each object between is asked for once.

use crate::{api::Resource, client::Cluster};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::OwnerReference};
use parking_lot::Mutex;
use serde::Deserialize;
use std::{collections::BTreeMap, sync::Arc};

/// The longest chain of controllers that is followed.
const LONGEST: usize = 6;

/// A controller, as a dependent names it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Controller {
    resource: Resource,
    name: String,
    uid: String,
}

/// Owner references that were read so far.
pub(super) struct Owners {
    cluster: Arc<Cluster>,
    /// By uid: its own controller, if it has one.
    known: Mutex<BTreeMap<String, Option<Controller>>>,
}

impl Owners {
    pub(super) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster, known: Mutex::default() }
    }

    /// Whether the controllers of `pod` end at, or pass, the object with the uid `root`.
    pub(super) async fn lead_to(&self, pod: &Pod, root: &str) -> bool {
        let mut next = controller(pod.metadata.owner_references.as_deref().unwrap_or_default());
        for _ in 0..LONGEST {
            match next {
                Some(controller) if controller.uid == root => return true,
                Some(controller) => next = self.above(&controller).await,
                None => return false,
            }
        }
        false
    }

    /// An owner that cannot be read counts as absent: reading it needs another right, and a pod too many is worse than none.
    async fn above(&self, below: &Controller) -> Option<Controller> {
        if let Some(known) = self.known.lock().get(&below.uid) {
            return known.clone();
        }
        let above = match self.cluster.get(&below.resource, &below.name).await {
            Ok(object) => controller(&Vec::deserialize(&object["metadata"]["ownerReferences"]).unwrap_or_default()),
            Err(error) => {
                tracing::debug!(%error, "an owner cannot be read");
                if error.why().passes() {
                    // It may pass, so it is not remembered: the pod's next change asks again.
                    return None;
                }
                None
            }
        };
        self.known.lock().insert(below.uid.clone(), above.clone());
        above
    }
}

fn controller(owners: &[OwnerReference]) -> Option<Controller> {
    let owner = owners.iter().find(|owner| owner.controller == Some(true)).or_else(|| owners.first())?;
    let resource = Resource::of(&owner.api_version, &owner.kind);
    Some(Controller { resource, name: owner.name.clone(), uid: owner.uid.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_controller_is_taken_before_other_owners() {
        let owner = |kind: &str, controller: bool| OwnerReference {
            kind: kind.into(),
            uid: kind.into(),
            controller: Some(controller),
            ..OwnerReference::default()
        };
        assert_eq!(controller(&[owner("Other", false), owner("Job", true)]).map(|owner| owner.uid), Some("Job".into()));
        assert_eq!(controller(&[]), None);
    }
}
