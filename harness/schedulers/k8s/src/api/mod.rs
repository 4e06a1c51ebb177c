//! What the Kubernetes API is made of: resources, places, labels, times, amounts, selectors. Pure, and used by everything else.

pub(crate) mod clock;
mod labels;
mod merge;
mod place;
mod quantity;
mod resource;
pub(crate) mod selector;
mod server_clock;

pub(crate) use labels::{
    CASE_ANNOTATION, DEFAULT_CONTAINER_ANNOTATION, EXPIRES_ANNOTATION, HOSTNAME_LABEL, KEPT_LABEL, LABEL, OBJECTS_ANNOTATION,
    QUEUE_LABEL, SESSION_LABEL,
};
pub(crate) use merge::{merge, merge_pod};
pub use place::ClusterPlace;
pub(crate) use quantity::Quantity;
pub use resource::Resource;
pub(crate) use server_clock::ServerClock;
