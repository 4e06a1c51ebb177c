//! Processor and device facts of a partition: the only things that a site may leave out without a mistake anywhere. A case
//! whose evaluation needs one that is missing is skipped.

use muster_text::{
    diagnostic::{Diagnostic, MissingKey},
    expr::ExprError,
};
use std::fmt;

/// The keys of `processor` in a site file.
pub const PROCESSOR: [&str; 8] =
    ["arch", "model", "platform", "num_cpus", "num_cpus_per_core", "num_cpus_per_socket", "num_cores", "num_sockets"];
/// The keys of an entry of `devices` in a site file.
pub const DEVICE: [&str; 4] = ["type", "arch", "model", "num_devices"];

/// A fact that the site file does not state: `processor.num_cores`, `devices.gpu.num_devices`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact(String);

impl Fact {
    /// The fact that a missing key is. `None`: it is something else, a misspelt key for one.
    pub fn of(missing: &MissingKey) -> Option<Self> {
        let is_key_of_device = |key: &str| DEVICE.contains(&key);
        let path: Vec<&str> = missing.path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["partition", "processor", key] => PROCESSOR.contains(key).then(|| Self(format!("processor.{key}"))),
            ["partition", "devices", kind] => Some(Self(match missing.then.first() {
                Some(key) if is_key_of_device(key) => format!("devices.{kind}.{key}"),
                _ => format!("devices.{kind}"),
            })),
            ["partition", "devices", kind, key] => is_key_of_device(key).then(|| Self(format!("devices.{kind}.{key}"))),
            _ => None,
        }
    }

    /// The missing fact that an expression needs.
    pub fn missing_in(error: &ExprError) -> Option<Self> {
        error.missing.as_deref().and_then(Self::of)
    }

    /// The first missing fact, if every diagnostic is about a missing fact.
    pub fn only_missing(diagnostics: &[Diagnostic]) -> Option<&MissingKey> {
        let mut missing =
            diagnostics.iter().map(|diagnostic| diagnostic.missing.as_deref().filter(|key| Self::of(key).is_some()));
        let first = missing.next()??;
        missing.all(|missing| missing.is_some()).then_some(first)
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_missing_keys_are_facts() {
        let rows = [
            ("partition processor num_cores", "", Some("processor.num_cores")),
            ("partition processor num_coers", "", None),
            ("partition devices npu", "", Some("devices.npu")),
            ("partition devices npu", "num_devices", Some("devices.npu.num_devices")),
            ("partition devices npu", "number", Some("devices.npu")),
            ("partition devices gpu model", "", Some("devices.gpu.model")),
            ("partition devices gpu number", "", None),
            ("partition extras gpu", "", None),
            ("partition processors", "num_cores", None),
            ("environ processor num_cores", "", None),
        ];
        for (path, then, expected) in rows {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
            let fact = Fact::of(&MissingKey { path: words(path), then: words(then) });
            assert_eq!(fact.map(|fact| fact.to_string()).as_deref(), expected, "{path} {then}");
        }
    }
}
