//! Finds why a workload would fail, by what a region has answered.

use super::facts::{Facts, is_forbidden};
use crate::{
    cloud::{CloudError, CredentialsEnd, Image, InstanceType, Kind, action},
    config::regions,
    decide::{
        block::{Block, block, shown},
        offer::{Refusal, Refused, share_a_quota},
    },
    plan::{Handle, Offer},
    resolve::Unresolved,
};
use muster_text::{diagnostic::did_you_mean, time::Timestamp};
use std::collections::BTreeSet;

/// One sentence, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mistake {
    pub what: String,
    pub hint: Option<String>,
}

pub(super) enum Wrong {
    Mistake(Mistake),
    /// One that the credentials do not have: `ec2:DescribeImages`.
    Right(String),
}

const WHO: &str = "`aws sts get-caller-identity` has to work in the same environment";

/// All of it.
pub(super) fn wrong(facts: &Facts, handle: &Handle, now: Timestamp) -> Vec<Wrong> {
    let mut list = List::default();
    list.credentials(facts, handle, now);
    let image = list.image(facts, handle);
    list.types(facts, handle, image);
    list.subnets(facts, handle);
    list.bucket(facts, handle);
    list.capacity_block(facts, handle, now);
    list.trial(facts, handle);
    for error in facts.refusals() {
        list.refused(error);
    }
    list.0
}

/// Those that are missing, in one sentence.
pub(super) fn missing_rights(rights: &BTreeSet<String>) -> Mistake {
    let named: Vec<&str> = rights.iter().map(String::as_str).collect();
    Mistake {
        what: format!("the AWS credentials do not allow {}", named.join(", ")),
        hint: Some("`muster ec2 policy` prints the rights that the selected checks need".to_owned()),
    }
}

#[derive(Default)]
struct List(Vec<Wrong>);

impl List {
    fn say(&mut self, what: impl Into<String>, hint: &str) {
        self.0.push(Wrong::Mistake(Mistake { what: what.into(), hint: Some(hint.to_owned()) }));
    }

    /// What an error means for certain; anything else is left to the launch.
    fn refused(&mut self, error: &CloudError) {
        match error {
            CloudError::NoCredentials(what) => self.say(what, WHO),
            CloudError::NoRegion(region) => self.say(
                format!("AWS has no region `{region}`: none is known by this name, and its endpoint has no address"),
                &format!("{}; `region` is in the `sched_options` of the site file", regions::hint(region)),
            ),
            CloudError::Refused { service, code, message, .. } if error.is_of_the_clock() => {
                let what = format!("{service} takes no requests of this machine: {code}: {message}");
                self.0.push(Wrong::Mistake(Mistake { what, hint: None }));
            }
            CloudError::Refused { service, code, message, .. } if Kind::of(code) == Kind::UnknownCaller => {
                self.say(format!("{service} does not take the AWS credentials: {code}: {message}"), WHO);
            }
            CloudError::Refused { service, action, message, .. } if is_forbidden(error) => {
                self.0.push(Wrong::Right(named_right(message).unwrap_or_else(|| action::right(service, action))));
            }
            CloudError::Refused { .. }
            | CloudError::Unreached { .. }
            | CloudError::Unread { .. }
            | CloudError::CredentialsLost(_) => {
                tracing::debug!(%error, "a preflight leaves this to the launch");
            }
        }
    }

    /// An address of S3 ends with the credentials that have signed it: a log would end before its script. A launch waits for others
    /// where others can come.
    fn credentials(&mut self, facts: &Facts, handle: &Handle, now: Timestamp) {
        match &facts.credentials {
            Some(Ok(Some(CredentialsEnd { at: end, is_final: true }))) => {
                let needed = now.plus(handle.lifetime.needs_addresses());
                if *end < needed {
                    let what = format!(
                        "the AWS credentials end at {}, and the instances may need them until {}",
                        shown(*end),
                        shown(needed)
                    );
                    self.say(what, "use credentials that last longer, or lower `time_limit`");
                }
            }
            Some(Err(error)) => self.refused(error),
            Some(Ok(_)) | None => {}
        }
    }

    fn image<'a>(&mut self, facts: &'a Facts, handle: &Handle) -> Option<&'a Image> {
        let image = match facts.images.get(&handle.image)?.as_ref()? {
            Ok(image) => image,
            Err(Unresolved::Missing(what)) => {
                self.say(what, "images are per region: look for it with `aws ec2 describe-images`");
                return None;
            }
            Err(Unresolved::Cloud(error)) => {
                self.refused(error);
                return None;
            }
        };
        if image.state != "available" {
            self.say(format!("image {} is {}, not available", image.id, image.state), "wait until it is, or take another");
        }
        if !image.is_on_ebs {
            self.say(
                format!("the root of image {} is not a volume of EBS", image.id),
                "take an image whose root device is `ebs`",
            );
        }
        if let Some(size) = handle.volume.size_gib.filter(|size| *size < image.root_gib) {
            let (needed, id) = (image.root_gib, &image.id);
            self.say(
                format!("a volume of {size} GiB is smaller than the snapshot of image {id}, which has {needed} GiB"),
                "write `volume: { size: auto }`, or a larger one",
            );
        }
        Some(image)
    }

    fn types(&mut self, facts: &Facts, handle: &Handle, image: Option<&Image>) {
        let Some(Ok(known)) = &facts.types else { return };
        let mut named: Vec<&str> = handle.offers.iter().map(|offer| offer.instance_type.as_str()).collect();
        named.dedup();
        let mut seen = BTreeSet::new();
        named.retain(|name| seen.insert(*name));
        for name in &named {
            let Some(found) = known.get(*name) else {
                let hint = did_you_mean(name, facts.all_types.iter().map(String::as_str));
                let hint = hint.unwrap_or_else(|| {
                    "types are per region: look for it with `aws ec2 describe-instance-type-offerings`".into()
                });
                self.say(format!("{} has no instance type {name}", facts.region), &hint);
                continue;
            };
            self.fits(handle, found, image);
        }
        self.zones(facts, handle, &named);
    }

    fn fits(&mut self, handle: &Handle, found: &InstanceType, image: Option<&Image>) {
        let name = &found.name;
        if let Some(image) = image.filter(|image| !found.architectures.contains(&image.architecture)) {
            let (is, wants) = (&image.architecture, found.architectures.join(" or "));
            self.say(format!("image {} is {is}, and {name} is {wants}", image.id), "take another image, or another type");
        }
        if handle.has_efa() && !found.has_efa {
            self.say(format!("{name} has no Elastic Fabric Adapter"), "leave `network: efa` out, or take a type that has one");
        }
        if handle.instance_store.is_some() && !found.has_nvme_store {
            self.say(format!("{name} has no NVMe disks of its own"), "leave `instance_store` out, or take a type that has them");
        }
    }

    /// One type that one of the subnets offers is enough.
    fn zones(&mut self, facts: &Facts, handle: &Handle, named: &[&str]) {
        let (Some(Ok(offered)), Some(Ok(subnets))) = (&facts.offered, &facts.subnets) else { return };
        let zone = |id: &str| subnets.get(id).map(|subnet| subnet.zone.clone());
        let is_offered = |name: &str, id: &str| zone(id).is_none_or(|zone| offered.contains(&(name.to_owned(), zone)));
        let is_known = |name: &str| offered.iter().any(|(one, _)| one == name);
        let is_possible = handle.offers.iter().any(|offer| is_offered(&offer.instance_type, &offer.subnet));
        if is_possible || !named.iter().any(|name| is_known(name)) {
            return;
        }
        let mut places = Vec::new();
        for offer in &handle.offers {
            let place = format!("{} ({})", offer.subnet, zone(&offer.subnet).unwrap_or_default());
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let what = format!("{} is not offered in the zones of the subnets {}", named.join(" or "), places.join(", "));
        let zones: BTreeSet<&str> =
            offered.iter().filter(|(name, _)| named.contains(&name.as_str())).map(|(_, zone)| zone.as_str()).collect();
        let zones: Vec<&str> = zones.into_iter().collect();
        self.say(what, &format!("name a subnet in {} in the site file, or take another type", zones.join(" or ")));
    }

    fn subnets(&mut self, facts: &Facts, handle: &Handle) {
        let Some(Ok(known)) = &facts.subnets else { return };
        let mut named: Vec<&str> = handle.offers.iter().map(|offer| offer.subnet.as_str()).collect();
        named.sort_unstable();
        named.dedup();
        for id in &named {
            if !known.contains_key(*id) {
                self.say(format!("{} has no subnet {id}", facts.region), "correct `subnets` in the site file");
            }
        }
        let rooms = || named.iter().filter_map(|id| known.get(*id)).map(|subnet| subnet.addresses);
        if let Some(most) = rooms().max().filter(|most| *most < handle.instances) {
            self.say(
                format!("{} instances do not fit into a subnet: the largest has {most} addresses", handle.instances),
                "name a larger one in the site file, or lower `num_tasks`",
            );
        }
    }

    fn bucket(&mut self, facts: &Facts, handle: &Handle) {
        let (name, prefix) = (&handle.bucket.name, &handle.bucket.prefix);
        for error in facts.buckets.get(&(name.clone(), prefix.clone())).into_iter().flatten() {
            match error.code() {
                Some("NoSuchBucket") => {
                    let hint = "`muster ec2 setup --print` shows the commands that create it";
                    self.say(format!("there is no bucket {name}"), hint);
                }
                Some("PermanentRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") => {
                    let what = format!("the bucket {name} is not in {}", facts.region);
                    self.say(what, "name one in the region of the instances: data between regions costs money");
                }
                Some(_) | None => self.refused(error),
            }
        }
    }

    fn capacity_block(&mut self, facts: &Facts, handle: &Handle, now: Timestamp) {
        let Some(id) = &handle.capacity_reservation else { return };
        let reservation = match facts.reservations.get(id) {
            Some(Some(Ok(Some(reservation)))) => reservation,
            Some(Some(Ok(None))) => {
                let what = format!("{} has no capacity reservation {id}", facts.region);
                return self.say(what, "correct `capacity_reservation`: `aws ec2 describe-capacity-reservations` lists them");
            }
            Some(Some(Err(error))) => return self.refused(error),
            Some(None) | None => return,
        };
        if let Block::Never(why) = block(reservation, handle.lifetime, now) {
            self.say(why, "name another capacity block, or lower `time_limit`");
        }
        let Some(Ok(subnets)) = &facts.subnets else { return };
        let is_elsewhere = |id: &String| subnets.get(id).is_some_and(|subnet| subnet.zone != reservation.zone);
        if !reservation.zone.is_empty() && handle.offers.iter().all(|offer| is_elsewhere(&offer.subnet)) {
            let what = format!("the capacity block {id} is in {}, where the site names no subnet", reservation.zone);
            self.say(what, "name a subnet in this zone in the site file");
        }
    }

    fn trial(&mut self, facts: &Facts, handle: &Handle) {
        let Some(trial) = facts.trial(handle) else { return };
        let Some(Some(Err(error))) = facts.trials.get(&trial.key) else { return };
        let CloudError::Refused { code, message, status, .. } = error else { return };
        if Kind::of(code) == Kind::UnknownCaller || is_forbidden(error) || error.is_of_the_clock() {
            return self.refused(error);
        }
        if !trial.is_whole {
            return;
        }
        let refused = Refused { offer: 0, code: code.clone(), message: message.clone(), status: *status };
        match refused.kind() {
            Refusal::Quota(limit) => self.quota(facts, handle, limit, code),
            Refusal::Wrong if *status < 500 && !names_own_mistake(code) => {
                self.say(
                    format!("EC2 does not take the request: {code}: {message}"),
                    "correct what it names in the check or the site file",
                );
            }
            Refusal::Forbidden => {
                self.say(
                    format!("EC2 does not take requests of this account: {code}: {message}"),
                    "ask for it in the console of AWS",
                );
            }
            Refusal::Wrong
            | Refusal::NoCapacity
            | Refusal::SpotQuota
            | Refusal::Busy
            | Refusal::ProfileUnknown
            | Refusal::TokenReused
            | Refusal::TokenSpent => {}
        }
    }

    fn quota(&mut self, facts: &Facts, handle: &Handle, limit: Option<u32>, code: &str) {
        let (Some(limit), Some(Ok(types))) = (limit, &facts.types) else { return };
        let Some(found) = handle.offers.iter().find_map(|offer| types.get(&offer.instance_type)) else { return };
        let needed = found.vcpus.saturating_mul(handle.instances);
        // Another offer may have room in the quota of its own family, or need less.
        let is_too_large = |offer: &Offer| {
            let vcpus = types.get(&offer.instance_type).map(|found| found.vcpus.saturating_mul(handle.instances));
            share_a_quota(offer, &handle.offers[0]) && vcpus.is_some_and(|vcpus| vcpus > limit)
        };
        if handle.offers.iter().all(is_too_large) {
            let (count, name) = (handle.instances, &found.name);
            self.say(
                format!("{count} x {name} need {needed} vCPUs, and the quota of this account is {limit}, so that it can never run ({code})"),
                "ask for a higher quota, or lower `num_tasks`",
            );
        }
    }
}

/// The right that a refusal names: what a call does for the caller with another service needs rights of that one.
/// `.. is not authorized to perform: kms:GenerateDataKey on resource: ..`
fn named_right(message: &str) -> Option<String> {
    let right = message.split_once("to perform: ")?.1.split_whitespace().next()?;
    let is_word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let (service, action) = right.split_once(':')?;
    (is_word(service) && is_word(action)).then(|| right.to_owned())
}

/// What was found without a trial, in better words.
fn names_own_mistake(code: &str) -> bool {
    code.starts_with("InvalidAMIID") || code.starts_with("InvalidSubnetID") || code == "InvalidInstanceType"
}
