//! What an observation means.

#[cfg(test)]
pub(crate) mod testing;
