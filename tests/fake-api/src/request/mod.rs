//! The meaning of a request, and the words of a refusal. Knows no objects but those that it is given.

pub(crate) mod patch;
pub(crate) mod path;
pub(crate) mod selector;
pub(crate) mod status;
