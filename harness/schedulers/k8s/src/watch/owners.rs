//! Finds the owner of a pod along its controllers: Pod -> Job -> `JobSet` -> ... Each object between is asked for once.

use crate::{
    api::Resource,
    client::{Cluster, Why},
    job::replaced_pods::{controller, controller_of},
};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::OwnerReference};
use parking_lot::Mutex;
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The longest chain of controllers that is followed.
const LONGEST: usize = 6;

/// Where a chain of controllers leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chain {
    Ours,
    Others,
    /// To one that cannot be read: that needs another right, or it does not exist any more.
    Unknown,
}

/// Owner references that were read so far.
pub(super) struct Owners {
    cluster: Arc<Cluster>,
    /// By uid: its own controller, if it has one; `Err`: it cannot be read.
    known: Mutex<BTreeMap<String, Result<Option<OwnerReference>, ()>>>,
    /// Kinds that this account may not read: asked for once.
    denied: Mutex<BTreeSet<Resource>>,
}

impl Owners {
    pub(super) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster, known: Mutex::default(), denied: Mutex::default() }
    }

    /// Whether the controllers of `pod` end at, or pass, an object with one of the uids `roots`.
    pub(super) async fn lead_to(&self, pod: &Pod, roots: &BTreeSet<String>) -> Chain {
        let mut next = controller(pod).cloned();
        for _ in 0..LONGEST {
            let Some(controller) = next else { return Chain::Others };
            if roots.contains(&controller.uid) {
                return Chain::Ours;
            }
            match self.above(&controller).await {
                Ok(above) => next = above,
                Err(()) => return Chain::Unknown,
            }
        }
        Chain::Others
    }

    async fn above(&self, below: &OwnerReference) -> Result<Option<OwnerReference>, ()> {
        if let Some(known) = self.known.lock().get(&below.uid) {
            return known.clone();
        }
        let resource = Resource::of(&below.api_version, &below.kind);
        if self.denied.lock().contains(&resource) {
            return Err(());
        }
        let above = match self.cluster.get(&resource, &below.name).await {
            Ok(object) if object["metadata"]["uid"] == *below.uid => {
                let owners = Vec::deserialize(&object["metadata"]["ownerReferences"]).unwrap_or_default();
                Ok(controller_of(&owners).cloned())
            }
            Ok(_) => Err(()),
            Err(error) => {
                tracing::debug!(%error, "an owner cannot be read");
                if error.why() == Why::NotAllowed {
                    self.denied.lock().insert(resource);
                }
                if error.why().passes() {
                    // It may pass, so it is not remembered: the pod's next change asks again.
                    return Err(());
                }
                Err(())
            }
        };
        self.known.lock().insert(below.uid.clone(), above.clone());
        above
    }
}
