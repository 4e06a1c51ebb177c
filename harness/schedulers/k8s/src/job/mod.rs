//! A job as it is stored (`Handle`) and as it was last seen (`Observed`), and what both say of its pods.

pub(crate) mod counted;
mod handle;
mod observed;
pub(crate) mod replaced_pods;
pub(crate) mod sections;
pub(crate) mod told;

pub use handle::Handle;
pub(crate) use handle::{Deadline, LogRotation, Object, hide_data, is_of, parse_named};
pub(crate) use observed::{Assessment, JobState, LiveObject, Observed, Seen, SeenPod, Trouble};
pub(crate) use sections::ContainerLog;
