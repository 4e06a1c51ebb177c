//! Sessions: what is selected and submitted, how many at once, and what is found after the end of one.

pub(crate) mod guide;
pub(crate) mod interruptions;
pub(crate) mod owners;
pub(crate) mod rounds;
pub(crate) mod selection;
