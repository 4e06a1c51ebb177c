//! The parameters of `RunInstances`, as EC2's documentation and `aws ec2 run-instances --cli-input-json` have them.

use super::{Bought, Handle, Offer};
use muster_text::Value;
use serde_json::{Map, json};

/// What a launch has found out before it asks for instances.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub image_id: String,
    /// `/dev/xvda`, `/dev/sda1`: it is the image's.
    pub root_device: String,
    /// The size of its snapshot.
    pub root_gib: u32,
    /// The size of the data sets, in GiB.
    pub data_gib: u32,
    /// The network cards of the instance type; each gets an adapter with `network: efa`.
    pub network_cards: u32,
    /// The security group that was created for the job.
    pub own_group: Option<String>,
    /// Seconds since the Unix epoch, when anybody may end the instances.
    pub expires: String,
    /// Base64 of the agent, compressed.
    pub user_data: String,
}

/// What a root volume has beyond the image.
const ROOM_GIB: u32 = 8;

/// One request for all instances. `number`: how many were sent before it; one with other parameters needs another token.
pub(crate) fn run_instances(handle: &Handle, offer: &Offer, found: &Found, number: u32) -> Value {
    let mut request = json!({
        "ClientToken": format!("{}-{number}", handle.token),
        "ImageId": found.image_id,
        "InstanceType": offer.instance_type,
        // All or none: no instance is paid that waits for others.
        "MinCount": handle.instances,
        "MaxCount": handle.instances,
        "InstanceInitiatedShutdownBehavior": "terminate",
        "Monitoring": { "Enabled": true },
        "MetadataOptions": { "HttpTokens": "required", "HttpPutResponseHopLimit": 1, "InstanceMetadataTags": "disabled" },
        "BlockDeviceMappings": [{ "DeviceName": found.root_device, "Ebs": volume(handle, found) }],
    });
    for (key, value) in network(handle, offer, found).into_iter().chain(choices(handle, offer)) {
        request[key] = value;
    }
    request["TagSpecifications"] = tag_specifications(handle, &found.expires);
    request["UserData"] = found.user_data.as_str().into();
    request
}

fn volume(handle: &Handle, found: &Found) -> Value {
    let volume = handle.volume;
    let mut ebs = json!({
        "VolumeSize": volume.size_gib.unwrap_or(found.root_gib.max(8).saturating_add(ROOM_GIB).saturating_add(found.data_gib)),
        "VolumeType": volume.kind.as_str(),
        "DeleteOnTermination": true,
        "Encrypted": true,
    });
    for (key, value) in [("Iops", volume.iops), ("Throughput", volume.throughput)] {
        if let Some(value) = value {
            ebs[key] = value.into();
        }
    }
    ebs
}

/// Subnet and groups: in the request, or with adapters on each card.
fn network(handle: &Handle, offer: &Offer, found: &Found) -> Vec<(&'static str, Value)> {
    let groups: Vec<&str> = handle.security_groups.iter().map(String::as_str).chain(found.own_group.as_deref()).collect();
    if !handle.has_efa() {
        let groups = (!groups.is_empty()).then(|| ("SecurityGroupIds", json!(groups)));
        return std::iter::once(("SubnetId", json!(offer.subnet))).chain(groups).collect();
    }
    let card = |card: u32| {
        let mut interface = json!({
            "NetworkCardIndex": card,
            // The first is the network device of the instance; the others carry nothing but the fabric.
            "DeviceIndex": u32::from(card > 0),
            "InterfaceType": if card == 0 { "efa" } else { "efa-only" },
            "SubnetId": offer.subnet,
            "DeleteOnTermination": true,
        });
        if !groups.is_empty() {
            interface["Groups"] = json!(groups);
        }
        interface
    };
    vec![("NetworkInterfaces", (0..found.network_cards.max(1)).map(card).collect())]
}

/// What only some jobs ask for.
fn choices(handle: &Handle, offer: &Offer) -> Vec<(&'static str, Value)> {
    let mut chosen = Vec::new();
    if let Some(profile) = &handle.instance_profile {
        chosen.push(("IamInstanceProfile", json!({ "Name": profile })));
    }
    if let Some(key) = &handle.key_name {
        chosen.push(("KeyName", json!(key)));
    }
    if handle.in_cluster() {
        chosen.push(("Placement", json!({ "GroupName": handle.name })));
    }
    if let Some(threads) = handle.threads_per_core {
        chosen.push(("CpuOptions", json!({ "ThreadsPerCore": threads })));
    }
    match offer.bought {
        Bought::OnDemand => {}
        Bought::Spot => chosen.push((
            "InstanceMarketOptions",
            json!({ "MarketType": "spot", "SpotOptions": { "SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate" } }),
        )),
        Bought::CapacityBlock => chosen.push(("InstanceMarketOptions", json!({ "MarketType": "capacity-block" }))),
    }
    if let Some(reservation) = &handle.capacity_reservation {
        let target = json!({ "CapacityReservationTarget": { "CapacityReservationId": reservation } });
        chosen.push(("CapacityReservationSpecification", target));
    }
    chosen
}

/// Everything that comes with the instances carries the same tags from the first moment.
fn tag_specifications(handle: &Handle, expires: &str) -> Value {
    let tag = |(key, value): (&str, &str)| json!({ "Key": key, "Value": value });
    let tags = handle.tags.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let tags: Vec<Value> = tags.chain([("rfm-expires", expires)]).map(tag).collect();
    let of =
        |kind: &str| Value::Object(Map::from_iter([("ResourceType".to_owned(), kind.into()), ("Tags".to_owned(), json!(tags))]));
    ["instance", "volume", "network-interface"].map(of).to_vec().into()
}
