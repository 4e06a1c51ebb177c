//! Reads the answers of EC2, which are XML. It reads only what a request needs.

use crate::cloud::{Image, Instance, InstanceType, Reservation as Capacity, Subnet, Tags, Thing};
use muster_text::time::Timestamp;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};

/// A list: each item is an element `item`. Left out where it is empty.
#[derive(Debug, Deserialize)]
pub(super) struct Items<T> {
    #[serde(default = "Vec::new")]
    item: Vec<T>,
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self { item: Vec::new() }
    }
}

/// A part of a list, and where the next begins.
pub(super) trait Page: DeserializeOwned {
    type Item;

    fn take(self) -> (Vec<Self::Item>, Option<String>);
}

/// Declares answers that come in pages: the element of the list, what it holds, and as what it is read.
macro_rules! pages {
    ($($name:ident: $element:literal of $raw:ty => $item:ty;)*) => {$(
        #[derive(Debug, Deserialize)]
        pub(super) struct $name {
            #[serde(rename = $element, default)]
            list: Items<$raw>,
            #[serde(rename = "nextToken", default)]
            next: Option<String>,
        }

        impl Page for $name {
            type Item = $item;

            fn take(self) -> (Vec<$item>, Option<String>) {
                (self.list.item.into_iter().map(<$item>::from).collect(), self.next.filter(|token| !token.is_empty()))
            }
        }
    )*};
}

pages! {
    Images: "imagesSet" of RawImage => Image;
    InstanceTypes: "instanceTypeSet" of RawType => InstanceType;
    Offerings: "instanceTypeOfferingSet" of RawOffering => (String, String);
    Subnets: "subnetSet" of RawSubnet => Subnet;
    Launched: "instancesSet" of RawInstance => Instance;
    SecurityGroups: "securityGroupInfo" of RawThing => Thing;
    PlacementGroups: "placementGroupSet" of RawThing => Thing;
    CapacityReservations: "capacityReservationSet" of RawReservation => Capacity;
    Volumes: "volumeSet" of RawThing => Thing;
    Reservations: "reservationSet" of Launched => Reservation;
}

/// The instances of one request.
pub(super) struct Reservation(pub Vec<Instance>);

impl From<Launched> for Reservation {
    fn from(launched: Launched) -> Self {
        Self(launched.take().0)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Created {
    #[serde(rename = "groupId")]
    pub group_id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Console {
    /// Base64, if there is anything yet.
    #[serde(default)]
    pub output: Option<String>,
}

/// An answer of which nothing is read.
#[derive(Debug, Deserialize)]
pub(super) struct Done {}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawImage {
    image_id: String,
    #[serde(default)]
    name: String,
    image_state: String,
    architecture: String,
    root_device_type: String,
    #[serde(default)]
    root_device_name: String,
    #[serde(default)]
    block_device_mapping: Items<Mapping>,
    #[serde(default)]
    creation_date: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mapping {
    device_name: String,
    ebs: Option<Ebs>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ebs {
    volume_size: Option<u32>,
}

impl From<RawImage> for Image {
    fn from(raw: RawImage) -> Self {
        let root = raw.block_device_mapping.item.iter().find(|mapping| mapping.device_name == raw.root_device_name);
        Self {
            root_gib: root.and_then(|mapping| mapping.ebs.as_ref()?.volume_size).unwrap_or(0),
            is_on_ebs: raw.root_device_type == "ebs",
            id: raw.image_id,
            name: raw.name,
            state: raw.image_state,
            architecture: raw.architecture,
            root_device: raw.root_device_name,
            created: raw.creation_date,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawType {
    instance_type: String,
    #[serde(default)]
    hypervisor: String,
    #[serde(default)]
    processor_info: Processor,
    v_cpu_info: Cpus,
    #[serde(default)]
    gpu_info: Option<GpuInfo>,
    #[serde(default)]
    network_info: Option<Network>,
    #[serde(default)]
    instance_storage_info: Option<Storage>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Storage {
    #[serde(default)]
    nvme_support: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Processor {
    #[serde(default)]
    supported_architectures: Items<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cpus {
    #[serde(rename = "defaultVCpus")]
    vcpus: u32,
    default_cores: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct GpuInfo {
    #[serde(default)]
    gpus: Items<Gpu>,
}

#[derive(Debug, Deserialize)]
struct Gpu {
    #[serde(default)]
    count: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Network {
    maximum_network_cards: Option<u32>,
    efa_supported: Option<bool>,
}

impl From<RawType> for InstanceType {
    fn from(raw: RawType) -> Self {
        let network = raw.network_info.as_ref();
        Self {
            vcpus: raw.v_cpu_info.vcpus,
            // Bare metal of old types has no number of cores.
            cores: raw.v_cpu_info.default_cores.unwrap_or(raw.v_cpu_info.vcpus),
            gpus: raw.gpu_info.map_or(0, |info| info.gpus.item.iter().map(|gpu| gpu.count).sum()),
            network_cards: network.and_then(|network| network.maximum_network_cards).unwrap_or(1),
            has_efa: network.and_then(|network| network.efa_supported).unwrap_or(false),
            has_nvme_store: raw.instance_storage_info.is_some_and(|info| info.nvme_support != "unsupported"),
            is_nitro: raw.hypervisor == "nitro",
            name: raw.instance_type,
            architectures: raw.processor_info.supported_architectures.item,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawOffering {
    instance_type: String,
    location: String,
}

impl From<RawOffering> for (String, String) {
    fn from(RawOffering { instance_type, location }: RawOffering) -> Self {
        (instance_type, location)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSubnet {
    subnet_id: String,
    availability_zone: String,
    vpc_id: String,
    #[serde(default)]
    available_ip_address_count: u32,
    #[serde(default)]
    cidr_block: String,
}

impl From<RawSubnet> for Subnet {
    fn from(raw: RawSubnet) -> Self {
        Self {
            id: raw.subnet_id,
            zone: raw.availability_zone,
            vpc: raw.vpc_id,
            free_addresses: raw.available_ip_address_count,
            addresses: addresses(&raw.cidr_block).unwrap_or(u32::MAX),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawReservation {
    capacity_reservation_id: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    availability_zone: String,
    #[serde(default, deserialize_with = "time")]
    start_date: Option<Timestamp>,
    #[serde(default, deserialize_with = "time")]
    end_date: Option<Timestamp>,
}

impl From<RawReservation> for Capacity {
    fn from(raw: RawReservation) -> Self {
        Self {
            id: raw.capacity_reservation_id,
            state: raw.state,
            zone: raw.availability_zone,
            starts: raw.start_date,
            ends: raw.end_date,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawInstance {
    instance_id: String,
    #[serde(default)]
    ami_launch_index: u32,
    instance_state: State,
    #[serde(default)]
    state_reason: Option<Reason>,
    #[serde(default)]
    instance_type: String,
    #[serde(default)]
    placement: Placement,
    #[serde(default)]
    image_id: String,
    #[serde(default)]
    private_ip_address: Option<String>,
    #[serde(default, deserialize_with = "time")]
    launch_time: Option<Timestamp>,
    #[serde(default)]
    instance_lifecycle: String,
    #[serde(default)]
    client_token: String,
    #[serde(default)]
    tag_set: Items<Tag>,
}

#[derive(Debug, Deserialize)]
struct State {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Reason {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Placement {
    #[serde(default)]
    availability_zone: String,
}

#[derive(Debug, Deserialize)]
struct Tag {
    key: String,
    #[serde(default)]
    value: String,
}

impl Items<Tag> {
    fn tags(self) -> Tags {
        self.item.into_iter().map(|Tag { key, value }| (key, value)).collect()
    }
}

impl From<RawInstance> for Instance {
    fn from(raw: RawInstance) -> Self {
        let reason = raw.state_reason.filter(|reason| !reason.code.is_empty());
        Self {
            id: raw.instance_id,
            index: raw.ami_launch_index,
            state: raw.instance_state.name,
            reason: reason.map(|Reason { code, message }| (code, message)),
            instance_type: raw.instance_type,
            zone: raw.placement.availability_zone,
            image: raw.image_id,
            private_ip: raw.private_ip_address.filter(|address| !address.is_empty()),
            launched: raw.launch_time,
            is_spot: raw.instance_lifecycle == "spot",
            token: raw.client_token,
            tags: raw.tag_set.tags(),
        }
    }
}

/// Something with tags. What it is found by has another name in each list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawThing {
    group_id: Option<String>,
    group_name: Option<String>,
    volume_id: Option<String>,
    strategy: Option<String>,
    #[serde(default)]
    tag_set: Items<Tag>,
}

impl From<RawThing> for Thing {
    fn from(raw: RawThing) -> Self {
        // A placement group has both, too; it is deleted by its name.
        let (id, other) = if raw.strategy.is_some() { (raw.group_name, raw.group_id) } else { (raw.group_id, raw.volume_id) };
        Self { id: id.or(other).unwrap_or_default(), tags: raw.tag_set.tags() }
    }
}

/// Of `10.0.0.0/24`. Amazon takes five of them.
fn addresses(block: &str) -> Option<u32> {
    let bits: u32 = block.split_once('/')?.1.parse().ok()?;
    Some(1_u32.checked_shl(32_u32.checked_sub(bits)?)?.saturating_sub(5))
}

/// RFC 3339.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp(at.as_microsecond())))
}
