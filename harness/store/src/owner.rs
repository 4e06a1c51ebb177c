//! Who holds a session, as the store has seen it.

use muster_host::owner::Owner;

/// A session in the hands of an owner, as it was seen: whoever takes it over takes it from there, or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub owner: Owner,
    /// How often the owner has said that it lives.
    pub heartbeat: i64,
}
