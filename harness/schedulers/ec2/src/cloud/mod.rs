//! The interface to Amazon: the calls of EC2, S3, SSM and STS that this scheduler needs, and no other, with small types of its
//! own. Decisions and tests see only this; the wire is behind it.

pub(crate) mod action;
mod aws;
mod kind;

#[cfg(test)]
pub(crate) mod contract;
#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;

pub(crate) use aws::connect;
pub(crate) use kind::Kind;

pub(crate) use crate::agent::parcel::Method;

use crate::plan::Place;
use futures_util::future::BoxFuture;
use muster_core::error::SchedulerError;
use muster_text::{Value, time::Timestamp};
use std::path::Path;

/// A call. It is sent again where nothing can have happened twice, but `run_instances` never: what follows from its refusal is
/// decided by `decide::offer`.
pub(crate) type Call<'a, T> = BoxFuture<'a, Result<T, CloudError>>;

/// One region of an account. One instance for all jobs of a session there.
pub(crate) trait Cloud: Send + Sync {
    fn place(&self) -> &Place;

    /// The number of the account: STS, `GetCallerIdentity`.
    fn account(&self) -> Call<'_, String>;

    /// When the credentials end, if they do: no presigned address works longer. Those that end before `wanted` are looked for again.
    fn credentials_end(&self, wanted: Timestamp) -> Call<'_, Option<CredentialsEnd>>;

    // EC2: what is there.
    /// None if there is no such image, or it is not shared with this account.
    fn images<'a>(&'a self, which: &'a Images) -> Call<'a, Vec<Image>>;
    /// Those that do not exist are left out.
    fn instance_types<'a>(&'a self, names: &'a [String]) -> Call<'a, Vec<InstanceType>>;
    /// Which type each zone offers: pairs of type and zone. No types: all of them.
    fn offerings<'a>(&'a self, types: &'a [String]) -> Call<'a, Vec<(String, String)>>;
    /// Those that do not exist are left out.
    fn subnets<'a>(&'a self, ids: &'a [String]) -> Call<'a, Vec<Subnet>>;
    /// The value of a parameter of the Systems Manager.
    fn parameter<'a>(&'a self, name: &'a str) -> Call<'a, String>;

    /// A capacity reservation. `None`: there is none with this id.
    fn reservation<'a>(&'a self, id: &'a str) -> Call<'a, Option<Reservation>>;
    /// Any call of EC2 with `DryRun`: nothing is changed, and what is refused is what the rights do not allow.
    fn try_call<'a>(&'a self, action: &'static str, parameters: &'a Value) -> Call<'a, ()>;

    // EC2: instances.
    /// `request` as `plan::request` has it. Sent once.
    fn run_instances<'a>(&'a self, request: &'a Value) -> Call<'a, Vec<Instance>>;
    /// The same with `DryRun`.
    fn try_run_instances<'a>(&'a self, request: &'a Value) -> Call<'a, ()> {
        self.try_call(action::TRY_RUN_INSTANCES, request)
    }
    /// All pages, of all states that EC2 still lists.
    fn instances<'a>(&'a self, filters: &'a [Filter]) -> Call<'a, Vec<Instance>>;
    /// Ends instances of a type, without waiting for their own shutdown where EC2 can do that. Those that are gone are fine.
    fn terminate<'a>(&'a self, instance_type: &'a str, ids: &'a [String]) -> Call<'a, ()>;
    /// What an instance has written to its console. `latest`: all of it, which only the Nitro hypervisor has while it runs.
    fn console<'a>(&'a self, id: &'a str, latest: bool) -> Call<'a, String>;
    /// Sets a tag on instances.
    fn tag<'a>(&'a self, ids: &'a [String], tag: (&'a str, &'a str)) -> Call<'a, ()>;

    // EC2: what a job has beside its instances. Deleting what is gone is fine.
    /// A group whose members may say everything to each other, and nobody else to them. Returns its id. One with this name and tags
    /// that is there already is taken.
    fn create_security_group<'a>(&'a self, name: &'a str, vpc: &'a str, tags: &'a Tags) -> Call<'a, String>;
    fn security_groups<'a>(&'a self, filters: &'a [Filter]) -> Call<'a, Vec<Thing>>;
    fn delete_security_group<'a>(&'a self, id: &'a str) -> Call<'a, ()>;
    /// With the strategy `cluster`. One with this name that is there already is taken.
    fn create_placement_group<'a>(&'a self, name: &'a str, tags: &'a Tags) -> Call<'a, ()>;
    fn placement_groups<'a>(&'a self, filters: &'a [Filter]) -> Call<'a, Vec<Thing>>;
    fn delete_placement_group<'a>(&'a self, name: &'a str) -> Call<'a, ()>;
    /// Volumes that no instance uses.
    fn free_volumes<'a>(&'a self, filters: &'a [Filter]) -> Call<'a, Vec<Thing>>;
    fn delete_volume<'a>(&'a self, id: &'a str) -> Call<'a, ()>;

    // S3.
    fn put<'a>(&'a self, bucket: &'a str, key: &'a str, bytes: Vec<u8>) -> Call<'a, ()>;
    /// At most [`PIECE`] bytes of an object from an offset on; fewer only at its end. `None`: there is none.
    fn get<'a>(&'a self, bucket: &'a str, key: &'a str, from: u64) -> Call<'a, Option<Piece>>;
    /// All pages, in the order of the keys.
    fn objects<'a>(&'a self, bucket: &'a str, prefix: &'a str) -> Call<'a, Vec<Object>>;
    fn delete<'a>(&'a self, bucket: &'a str, keys: &'a [String]) -> Call<'a, ()>;
    /// A file of the web in a new file here, without credentials. `shown`: the address for people; it may be presigned.
    fn download<'a>(&'a self, address: &'a str, shown: &'a str, to: &'a Path) -> Call<'a, Downloaded>;
    /// A file here as an object, whatever its size.
    fn upload<'a>(&'a self, bucket: &'a str, key: &'a str, from: &'a Path) -> Call<'a, ()>;
    /// Addresses that who has them may use until `until`, of the same order as the keys.
    fn presign<'a>(&'a self, bucket: &'a str, wanted: &'a [(Method, String)], until: Timestamp) -> Call<'a, Vec<String>>;
}

/// The most of an object that one call brings: what takes too long is little, and is asked for again.
pub(crate) const PIECE: u64 = 1 << 20;

/// Bytes of an object, with what belongs to the version of which they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub bytes: Vec<u8>,
    pub etag: String,
    /// The time when it was written, if the answer says so.
    pub modified: Option<Timestamp>,
}

/// What such a call brings of a whole object.
pub(crate) fn piece_of(object: &[u8], from: u64) -> Vec<u8> {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(object.len());
    object[place(from)..place(from.saturating_add(PIECE))].to_vec()
}

/// When credentials end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CredentialsEnd {
    pub at: Timestamp,
    /// They are of the environment of this process: no others can come.
    pub is_final: bool,
}

/// A filter of EC2: a name, `tag:rfm-session`, and the values of which one has to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    pub name: String,
    pub values: Vec<String>,
}

pub(crate) type Tags = std::collections::BTreeMap<String, String>;

/// Which images are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Images {
    Id(String),
    Named { owner: String, name: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    pub id: String,
    pub name: String,
    /// `available`, or why it cannot be used.
    pub state: String,
    /// `x86_64`, `arm64`.
    pub architecture: String,
    pub is_on_ebs: bool,
    pub root_device: String,
    /// The size of the snapshot of its root.
    pub root_gib: u32,
    /// RFC 3339, as EC2 writes it: the greatest is the newest.
    pub created: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstanceType {
    pub name: String,
    pub architectures: Vec<String>,
    pub vcpus: u32,
    /// Physical cores.
    pub cores: u32,
    pub gpus: u32,
    pub network_cards: u32,
    pub has_efa: bool,
    /// Disks of its own, which the agent knows by their model.
    pub has_nvme_store: bool,
    pub is_nitro: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subnet {
    pub id: String,
    pub zone: String,
    pub vpc: String,
    pub free_addresses: u32,
    /// The number of all addresses, those in use among them.
    pub addresses: u32,
}

/// A reservation of capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub id: String,
    /// `scheduled`, `active`, `expired`, ...
    pub state: String,
    pub zone: String,
    pub starts: Option<Timestamp>,
    pub ends: Option<Timestamp>,
}

/// An instance as EC2 lists it.
#[expect(clippy::struct_field_names, reason = "`type` is a word of Rust")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    pub id: String,
    /// Its rank: the position within its request.
    pub index: u32,
    /// `pending`, `running`, `shutting-down`, `terminated`, `stopping`, `stopped`.
    pub state: String,
    /// `StateReason`: code and message.
    pub reason: Option<(String, String)>,
    pub instance_type: String,
    pub zone: String,
    pub image: String,
    pub private_ip: Option<String>,
    pub launched: Option<Timestamp>,
    pub is_spot: bool,
    pub token: String,
    pub tags: Tags,
}

/// What else a job has created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thing {
    /// Its id; of a placement group its name.
    pub id: String,
    pub tags: Tags,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub key: String,
    pub size: u64,
    /// It changes with the content.
    pub etag: String,
    /// The time when it was written, if its listing says so.
    pub modified: Option<Timestamp>,
}

/// What a file of the web turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Downloaded {
    pub size: u64,
    /// Hex digits.
    pub sha256: String,
    pub md5: String,
}

/// How it is said that the clock of this machine is wrong.
const CLOCK: &str = "the clock of this machine";

/// Why a call gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CloudError {
    #[error("{service} refuses {action}: {code}: {message}{}", if origin.is_empty() { String::new() } else { format!(" ({origin})") })]
    Refused {
        service: &'static str,
        action: String,
        code: String,
        message: String,
        /// Of HTTP.
        status: u16,
        /// The host, with the region if its name does not have it, and the number of the request: `at ec2.eu-west-1.amazonaws.com,
        /// request r-1`. Empty: the action says it.
        origin: String,
    },
    /// No connection, a connection that broke, or no answer in time: whether the call has had an effect is not known.
    #[error("{service} does not answer {action}: {why}")]
    Unreached { service: &'static str, action: String, why: String },
    #[error("the answer of {service} to {action} cannot be read: {why}")]
    Unread { service: &'static str, action: String, why: String },
    /// None were found, or they have ended. A sentence that says what to do.
    #[error("{0}")]
    NoCredentials(String),
    /// Amazon has taken some before: to get others fails now, and may work later.
    #[error("{0}")]
    CredentialsLost(String),
    /// No region that is known, and its endpoints have no address: nothing of it can be there.
    #[error("AWS has no region `{0}`")]
    NoRegion(String),
}

impl CloudError {
    /// Whether this is the cause of an error: what asked has asked a region that does not exist.
    pub(crate) fn is_no_region(error: &SchedulerError) -> bool {
        matches!(error.cause.as_ref().and_then(|cause| cause.downcast_ref()), Some(Self::NoRegion(_)))
    }

    /// Whether it is certain that the call has changed nothing.
    pub(crate) fn had_no_effect(&self) -> bool {
        matches!(
            self,
            Self::Refused { status: ..500, .. } | Self::NoCredentials(_) | Self::CredentialsLost(_) | Self::NoRegion(_)
        )
    }

    /// Whether the clock of this machine is what is refused.
    pub(crate) fn is_of_the_clock(&self) -> bool {
        matches!(self, Self::Refused { code, message, .. } if code == "RequestTimeTooSkewed" || message.contains(CLOCK))
    }

    /// The code of a refusal, in the words of Amazon.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            Self::Unreached { .. }
            | Self::Unread { .. }
            | Self::NoCredentials(_)
            | Self::CredentialsLost(_)
            | Self::NoRegion(_) => None,
        }
    }
}
