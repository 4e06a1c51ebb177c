//! Parameters as EC2 and STS take them: pairs of a form.

use crate::cloud::Filter;
use muster_text::Value;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use std::fmt::Write;

/// What is never written as it is in an address or a form that is signed.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const RESERVED_IN_PATHS: &AsciiSet = &RESERVED.remove(b'/');

/// On the wire a list has the name of one of its items. Lists that are not here keep theirs.
const LISTS: &[(&str, &str)] = &[
    ("BlockDeviceMappings", "BlockDeviceMapping"),
    ("CapacityReservationIds", "CapacityReservationId"),
    ("Filters", "Filter"),
    // Of an adapter. The groups of a permission are `UserIdGroupPairs`.
    ("Groups", "SecurityGroupId"),
    ("ImageIds", "ImageId"),
    ("InstanceIds", "InstanceId"),
    ("NetworkInterfaces", "NetworkInterface"),
    ("Owners", "Owner"),
    ("Resources", "ResourceId"),
    ("SecurityGroupIds", "SecurityGroupId"),
    ("TagSpecifications", "TagSpecification"),
    ("Tags", "Tag"),
    ("UserIdGroupPairs", "Groups"),
    ("Values", "Value"),
];

pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The same for a path: its slashes stay.
pub(super) fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, RESERVED_IN_PATHS).to_string()
}

/// A call as the body of a request.
pub(super) fn form(action: &str, version: &str, parameters: &Value) -> String {
    let mut form = format!("Action={}&Version={version}", encode(action));
    for (name, value) in flat(parameters) {
        let _ = write!(form, "&{}={}", encode(&name), encode(&value));
    }
    form
}

pub(super) fn filters(filters: &[Filter]) -> Value {
    filters.iter().map(|Filter { name, values }| json!({ "Name": name, "Values": values })).collect()
}

fn flat(parameters: &Value) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    flatten("", parameters, &mut pairs);
    pairs
}

fn flatten(at: &str, value: &Value, pairs: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) => pairs.push((at.to_owned(), value.to_string())),
        Value::String(text) => pairs.push((at.to_owned(), text.clone())),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                flatten(&format!("{at}.{}", index + 1), item, pairs);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let one = LISTS.iter().find(|(list, _)| member.is_array() && list == name).map_or(name.as_str(), |(_, one)| one);
                let below = if at.is_empty() { one.to_owned() } else { format!("{at}.{one}") };
                flatten(&below, member, pairs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{filters, flat, form};
    use crate::cloud::Filter;
    use serde_json::json;

    #[test]
    fn lists_are_numbered_and_have_the_name_of_one_item() {
        let rows = [
            (json!({ "MinCount": 2, "Monitoring": { "Enabled": true } }), "MinCount=2 Monitoring.Enabled=true"),
            (json!({ "SecurityGroupIds": ["sg-1", "sg-2"] }), "SecurityGroupId.1=sg-1 SecurityGroupId.2=sg-2"),
            (
                json!({ "BlockDeviceMappings": [{ "DeviceName": "/dev/xvda", "Ebs": { "VolumeSize": 16 } }] }),
                "BlockDeviceMapping.1.DeviceName=/dev/xvda BlockDeviceMapping.1.Ebs.VolumeSize=16",
            ),
            (
                json!({ "TagSpecifications": [{ "ResourceType": "instance", "Tags": [{ "Key": "rfm", "Value": "a b" }] }] }),
                "TagSpecification.1.ResourceType=instance TagSpecification.1.Tag.1.Key=rfm TagSpecification.1.Tag.1.Value=a b",
            ),
            (
                json!({ "NetworkInterfaces": [{ "DeviceIndex": 0, "Groups": ["sg-1"] }, { "DeviceIndex": 1 }] }),
                "NetworkInterface.1.DeviceIndex=0 NetworkInterface.1.SecurityGroupId.1=sg-1 NetworkInterface.2.DeviceIndex=1",
            ),
            (
                json!({ "IpPermissions": [{ "IpProtocol": "-1", "UserIdGroupPairs": [{ "GroupId": "sg-1" }] }] }),
                "IpPermissions.1.IpProtocol=-1 IpPermissions.1.Groups.1.GroupId=sg-1",
            ),
            (json!({ "Resources": ["i-1"], "NextToken": null, "Owners": [] }), "ResourceId.1=i-1"),
            (
                json!({ "CapacityReservationSpecification": { "CapacityReservationTarget": { "CapacityReservationId": "cr-1" } } }),
                "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId=cr-1",
            ),
            (
                json!({ "Filters": filters(&[Filter { name: "tag:rfm".into(), values: vec!["a".into(), "b".into()] }]) }),
                "Filter.1.Name=tag:rfm Filter.1.Value.1=a Filter.1.Value.2=b",
            ),
        ];
        for (parameters, expected) in rows {
            let pairs: Vec<String> = flat(&parameters).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(pairs.join(" "), expected);
        }
    }

    #[test]
    fn everything_that_is_not_plain_is_encoded() {
        let written = form("RunInstances", "2016-11-15", &json!({ "UserData": "H4sI+/==", "Name": "a b&é*~" }));
        assert_eq!(written, "Action=RunInstances&Version=2016-11-15&UserData=H4sI%2B%2F%3D%3D&Name=a%20b%26%C3%A9%2A~");
    }
}
