//! Documents as people write them, without knowing what they are about. Pure: no files, no clock, no network.
//!
//! ```text
//! diagnostic   mistakes with their place and a hint, collected
//! yaml         text -> tree; each node keeps its place, source text and quoting
//! decode       tree -> structs, by tables of keys that are also the JSON schema
//! format       `muster check fmt`
//! expr         the expression language (CEL) and its functions
//! template     `${{ }}` placeholders in a tree
//! pattern      regular expressions over bytes, and what of a text they can match
//! moment       points in time and periods of queries
//! ```

pub mod decode;
pub mod diagnostic;
pub mod expr;
pub mod file_mode;
pub mod format;
pub mod glob;
pub mod median;
pub mod moment;
pub mod node_list;
pub mod pattern;
pub mod secret;
pub mod shell;
pub mod size;
pub mod template;
pub mod time;
pub mod unit;
pub mod yaml;

/// The value type of parameters, variables, facts and rendered settings: JSON's data model with exact integers.
pub use serde_json::Value;
