//! What the Kubernetes API is made of: names, times, amounts, selectors. Pure, and used by everything else.

pub(crate) mod clock;
pub(crate) mod merge;
pub(crate) mod quantity;
pub(crate) mod selector;
