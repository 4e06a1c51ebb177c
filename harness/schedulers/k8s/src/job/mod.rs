//! A job as it is stored (`handle`) and as it was last seen (`observed`), and what both say of its pods.

pub(crate) mod handle;
pub(crate) mod observed;
pub(crate) mod replaced_pods;
pub(crate) mod sections;
