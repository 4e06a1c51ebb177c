//! The settings of checks and sites for EC2: the key tables, and the types of their values.
//!
//! ```text
//! mod      `ec2_config` of a check          options  `sched_options` of a partition
//! values   ids, names and types of EC2, as they are written        data    what instances fetch before their script
//! regions  the regions of Amazon
//! ```
//! Every value is checked where it is written, when the file is read. A plan reads the same tables again, from values that are rendered.

mod data;
mod options;
pub(crate) mod regions;
mod values;

#[cfg(test)]
mod tests;

pub(crate) use data::{DataSet, Digest, Source, is_plain_path};
pub(crate) use options::{OPTIONS, Options, SITE_OPTIONS, wrong_options};
pub(crate) use values::{Bucket, Image, InstanceType};

use muster_text::{
    Value,
    decode::{Context, Decode, OneOrMany, Placeholders, Spanned, Within, object},
    diagnostic::{Diagnostic, Span},
    keys, words,
    yaml::Node,
};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use values::{Folder, ReservationId, ThreadsPerCore, VolumeSize};

/// The key of a check.
pub(crate) const CONFIG: &str = "ec2_config";

keys! {
    /// `ec2_config`
    pub(crate) struct Config("`ec2_config`") {
        /// The image of the instances: an id, `resolve:ssm:NAME` (the parameter that holds an id), or `{ owner, name }`
        /// (the newest of that name).
        @required ami: Image,
        /// The instance type, or several in order of preference: the next is tried where there is no capacity.
        @required instance_type: OneOrMany<Spanned<InstanceType>>,
        /// The root volume: `{ size, type, iops, throughput }`.
        volume: Volume,
        /// A folder for the disks of the instance itself, which are empty at first and gone with it: `/scratch`. Several are joined
        /// with mdadm. `$RFM_INSTANCE_STORE` has it.
        instance_store: Folder,
        /// How the instances are bought. Default: on-demand.
        market: Spanned<Market>,
        /// The reservation of a capacity block: `cr-...`.
        capacity_reservation: Spanned<ReservationId>,
        /// `efa` gives every network card an Elastic Fabric Adapter. Default: default.
        network: Network,
        /// `cluster` places the instances close to each other. Default: none.
        placement: Spanned<Placement>,
        /// Options of the processor: `{ threads_per_core }`.
        cpu_options: CpuOptions,
        /// Files that the instances fetch before the script begins: a list of `{ src, dest, sha256, md5, unpack }`. Each is
        /// verified, and the root volume is sized for them.
        data: Vec<data::Entry>,
        /// How long an instance may take from its launch to the first sign of life. Default: 10m, for bare metal 25m.
        boot_timeout: Within,
        /// How long instances may take to fetch `data`. A case that may need longer, at 20 MiB/s, is not launched. Default: 2h.
        fetch_timeout: Within,
    }
    instead {
        "instances" | "count" | "min_count" | "max_count" => "write `num_tasks` in the check: each instance is a task",
        "volume_gb" => "write `volume: { size: GIB }`",
        "keep_failed" | "max_pending_time" | "time_limit" => "write it in the check, beside `ec2_config`",
        "setup" => "write `prerun_cmds` in the check: they run as root before the executable",
        "image" | "image_id" => "write `ami`",
        "user_data" => "write `prerun_cmds` in the check: the user data is Muster's own",
        "subnet" | "subnets" | "region" | "security_groups" | "instance_profile" | "key_name" | "tags" => "a site writes it in `sched_options`",
    }
    decode Config::checked;
}

keys! {
    /// `ec2_config.volume`
    pub(crate) struct Volume("`volume`") {
        /// GiB, or `auto`: 8 more than the image needs. Default: auto.
        size: VolumeSize,
        /// The type. Default: gp3.
        kind: Spanned<VolumeType> as "type",
        /// Provisioned IOPS, of gp3, io1 and io2. Default: those of the type.
        iops: Spanned<NonZeroU32>,
        /// MiB/s, of gp3. Default: 125.
        throughput: Spanned<NonZeroU32>,
    }
    decode Volume::checked;
}

keys! {
    /// `ec2_config.cpu_options`
    pub(crate) struct CpuOptions("`cpu_options`") {
        /// 1 turns hardware threads off. Default: 2 where the type has them.
        threads_per_core: ThreadsPerCore,
    }
}

words! {
    /// How instances are bought.
    #[derive(Default)]
    pub(crate) enum Market {
        #[default]
        OnDemand = "on-demand",
        Spot = "spot",
        /// On demand where no spot capacity is left.
        SpotOrOnDemand = "spot-or-on-demand",
        CapacityBlock = "capacity-block",
    }

    #[derive(Default)]
    pub(crate) enum Network {
        #[default]
        Default = "default",
        Efa = "efa",
    }

    #[derive(Default)]
    pub(crate) enum Placement {
        #[default]
        None = "none",
        Cluster = "cluster",
    }

    #[derive(Default)]
    pub(crate) enum VolumeType {
        #[default]
        Gp3 = "gp3",
        Gp2 = "gp2",
        Io1 = "io1",
        Io2 = "io2",
        St1 = "st1",
        Sc1 = "sc1",
    }
}

impl Config {
    /// Reads `ec2_config` from a rendered value.
    ///
    /// # Errors
    /// Every mistake. The same ones are reported with their place when the check is read.
    pub(crate) fn read(value: &Value) -> Result<Self, Vec<Diagnostic>> {
        let mut context = Context::new(Placeholders::Refuse);
        let read = Self::decode(&Node::from_value(value, Span::default()), &mut context);
        match read.filter(|_| context.diagnostics.is_empty()) {
            Some(config) => Ok(config),
            None => Err(without_places(context.diagnostics)),
        }
    }

    fn checked(node: &Node, context: &mut Context) -> Option<Self> {
        let config: Self = object(node, context)?;
        let block = config.market.is_some_and(|market| *market == Market::CapacityBlock);
        let wrong = |span: Span, what: &str, hint: &str| Diagnostic::error(span, what).hint(hint);
        match (&config.capacity_reservation, config.market) {
            (Some(reservation), market) if !block && (market.is_some() || node.get("market").is_none()) => {
                context.push(wrong(
                    reservation.span,
                    "`capacity_reservation` needs `market: capacity-block`",
                    "write both, or leave both out",
                ));
            }
            (None, Some(market)) if block && !context.is_overlay() && node.get("capacity_reservation").is_none() => {
                context.push(wrong(
                    market.span,
                    "`market: capacity-block` needs `capacity_reservation`",
                    "write the id of the block: `cr-...`",
                ));
            }
            _ => {}
        }
        if let Some(placement) = config.placement.filter(|placement| block && **placement == Placement::Cluster) {
            let hint = "leave it out: the instances of a capacity block are close to each other";
            context.push(wrong(placement.span, "a capacity block takes no placement group", hint));
        }
        if let Some(second) = config.instance_type.as_ref().and_then(|types| types.get(1)).filter(|_| block) {
            context.push(wrong(second.span, "a capacity block has one instance type", "write the one that was bought"));
        }
        if config.instance_type.as_ref().is_some_and(|types| types.is_empty())
            && node.get("instance_type").is_some_and(has_no_items)
        {
            let place = node.get("instance_type").map_or(node.place(), Node::place);
            context.push(wrong(place, "`instance_type` names no type", "write one, or several in order of preference"));
        }
        Some(config)
    }
}

fn has_no_items(node: &Node) -> bool {
    node.items().is_empty()
}

impl Volume {
    fn checked(node: &Node, context: &mut Context) -> Option<Self> {
        let volume: Self = object(node, context)?;
        // A type that is still a placeholder, or in a layer below, is not known here.
        let kind = match (volume.kind, node.get("type")) {
            (Some(kind), _) => *kind,
            (None, None) if !context.is_overlay() => VolumeType::default(),
            (None, _) => return Some(volume),
        };
        if let Some(iops) = volume.iops.filter(|_| !kind.takes_iops()) {
            let what = format!("a volume of the type {kind} takes no `iops`");
            context.push(Diagnostic::error(iops.span, what).hint("leave it out, or write `type: gp3`, `io1` or `io2`"));
        }
        if let Some(throughput) = volume.throughput.filter(|_| kind != VolumeType::Gp3) {
            let what = format!("a volume of the type {kind} takes no `throughput`");
            context.push(Diagnostic::error(throughput.span, what).hint("leave it out, or write `type: gp3`"));
        }
        if matches!(kind, VolumeType::Io1 | VolumeType::Io2) && node.get("iops").is_none() && !context.is_overlay() {
            let what = format!("a volume of the type {kind} needs `iops`");
            context.push(Diagnostic::error(node.place(), what).hint("write how many are provisioned"));
        }
        Some(volume)
    }
}

impl VolumeType {
    fn takes_iops(self) -> bool {
        match self {
            Self::Gp3 | Self::Io1 | Self::Io2 => true,
            Self::Gp2 | Self::St1 | Self::Sc1 => false,
        }
    }
}

/// Mistakes in values that are not in a file any more.
pub(crate) fn without_places(mistakes: Vec<Diagnostic>) -> Vec<Diagnostic> {
    mistakes.into_iter().map(|mistake| Diagnostic { span: None, ..mistake }).collect()
}

/// Which fields of `ec2_config` are text although they may look like a number.
pub(crate) fn is_text(path: &[&str]) -> bool {
    matches!(path, ["ami", "owner"] | ["data", "[]", "sha256" | "md5" | "src" | "dest"])
}

/// The size of the root volume, as it is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedVolume {
    /// `None`: by the image.
    pub size_gib: Option<u32>,
    pub kind: VolumeType,
    pub iops: Option<u32>,
    pub throughput: Option<u32>,
}

impl From<&Volume> for PlannedVolume {
    fn from(volume: &Volume) -> Self {
        Self {
            size_gib: volume.size.and_then(|VolumeSize(size)| size),
            kind: volume.kind.map(|kind| kind.value).unwrap_or_default(),
            iops: volume.iops.map(|iops| iops.get()),
            throughput: volume.throughput.map(|throughput| throughput.get()),
        }
    }
}
