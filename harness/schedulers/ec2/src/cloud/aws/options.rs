//! Options that a request has and can do without. Where EC2 refuses one (a Xen type, a partition of AWS that does not know it
//! yet), the request is made without it, and so is every later one for that type.

use crate::cloud::{
    CloudError, Kind,
    action::{self, RUN_INSTANCES, TERMINATE_INSTANCES},
};
use muster_text::Value;
use std::{collections::BTreeSet, sync::Mutex};

/// The action, the name of the parameter or of the kind of resource, and what is different without it.
type Dispensable = (&'static str, &'static str, &'static str);

/// Not among them: what keeps containers from the credentials of an instance.
const OPTIONS: [Dispensable; 5] = [
    (TERMINATE_INSTANCES, "SkipOsShutdown", "the instances shut their systems down first"),
    (TERMINATE_INSTANCES, "Force", "an instance that does not shut down may stay for minutes"),
    (RUN_INSTANCES, "Monitoring", "CloudWatch has a figure every 5 minutes, not every minute"),
    (RUN_INSTANCES, "InstanceMetadataTags", "the default of the account says whether an instance can read its tags"),
    (RUN_INSTANCES, "network-interface", "network interfaces have no tags"),
];

/// Options that were refused: the place in the table, and the type of the instances.
#[derive(Default)]
pub(super) struct Refused(Mutex<BTreeSet<(usize, String)>>);

impl Refused {
    /// Takes out of a request what was refused for the type.
    pub(super) fn leave_out(&self, instance_type: &str, parameters: &mut Value) {
        for (at, of) in self.known().iter() {
            if of == instance_type {
                remove(OPTIONS[*at].1, parameters);
            }
        }
    }

    /// Takes out what this refusal of the request is about. Returns whether there is something.
    pub(super) fn learn(&self, action: &str, instance_type: &str, parameters: &mut Value, error: &CloudError) -> bool {
        let CloudError::Refused { code, message, status: ..500, .. } = error else { return false };
        let action = if action == action::TRY_RUN_INSTANCES { RUN_INSTANCES } else { action };
        let (refused, is_named) = refused(action, code, message);
        let mut removed = Vec::new();
        for at in refused {
            let before = parameters.clone();
            remove(OPTIONS[at].1, parameters);
            if *parameters != before {
                removed.push(at);
            }
        }
        for at in &removed {
            let (_, name, without) = OPTIONS[*at];
            tracing::warn!("{error}; asked again for {instance_type} without {name}: {without}");
            if is_named {
                self.known().insert((*at, instance_type.to_owned()));
            }
        }
        !removed.is_empty()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeSet<(usize, String)>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The options of an action that a refusal is about, and whether it names them. An end that is refused in words that name none, and not
/// for who asks, is asked for once more without any: an instance that goes on costs more than a request.
fn refused(action: &str, code: &str, message: &str) -> (Vec<usize>, bool) {
    if Kind::of(code) != Kind::Other || code.starts_with("InvalidInstanceID") || code.ends_with("LimitExceeded") {
        return (Vec::new(), false);
    }
    let plain = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let said = plain(message);
    let of_action = || OPTIONS.iter().enumerate().filter(|(_, option)| option.0 == action);
    let named: Vec<usize> = of_action().filter(|(_, option)| said.contains(&plain(option.1))).map(|(at, _)| at).collect();
    let is_named = !named.is_empty() || action != TERMINATE_INSTANCES;
    (if is_named { named } else { of_action().map(|(at, _)| at).collect() }, is_named)
}

/// Removes a parameter wherever it is, and from lists what is for such a resource.
fn remove(name: &str, value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove(name);
            for (_, member) in members {
                remove(name, member);
            }
        }
        Value::Array(items) => {
            items.retain(|item| item.get("ResourceType").and_then(Value::as_str) != Some(name));
            for item in items {
                remove(name, item);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{OPTIONS, remove};
    use serde_json::json;

    #[test]
    fn a_refusal_says_which_options_it_is_about() {
        // action, code, message, the options
        let rows = [
            (
                "TerminateInstances",
                "OperationNotPermitted",
                "SkipOsShutdown is not supported on Xen instance types.",
                "SkipOsShutdown",
            ),
            ("TerminateInstances", "UnknownParameter", "The parameter SkipOsShutdown is not recognized", "SkipOsShutdown"),
            ("TerminateInstances", "UnsupportedOperation", "Skip OS shutdown cannot be used here", "SkipOsShutdown"),
            ("TerminateInstances", "UnsupportedOperation", "not for this type", "SkipOsShutdown Force"),
            ("TerminateInstances", "InvalidInstanceID.NotFound", "no i-1", ""),
            ("TerminateInstances", "UnauthorizedOperation", "not authorized to use Force", ""),
            ("RunInstances", "UnknownParameter", "The parameter InstanceMetadataTags is not recognized", "InstanceMetadataTags"),
            (
                "RunInstances",
                "InvalidParameterValue",
                "'network-interface' is not a valid taggable resource type.",
                "network-interface",
            ),
            ("RunInstances", "InvalidParameterValue", "SkipOsShutdown", ""),
            ("RunInstances", "NetworkInterfaceLimitExceeded", "too many network interfaces", ""),
        ];
        for (action, code, message, expected) in rows {
            let names: Vec<&str> = super::refused(action, code, message).0.into_iter().map(|at| OPTIONS[at].1).collect();
            assert_eq!(names.join(" "), expected, "{action} {code} {message}");
        }
    }

    #[test]
    fn an_option_is_removed_wherever_it_is() {
        let mut request = json!({
            "MetadataOptions": { "HttpTokens": "required", "HttpPutResponseHopLimit": 1 },
            "TagSpecifications": [{ "ResourceType": "instance" }, { "ResourceType": "network-interface" }],
        });
        for name in ["HttpPutResponseHopLimit", "network-interface", "Monitoring"] {
            remove(name, &mut request);
        }
        let left =
            json!({ "MetadataOptions": { "HttpTokens": "required" }, "TagSpecifications": [{ "ResourceType": "instance" }] });
        assert_eq!(request, left);
    }
}
