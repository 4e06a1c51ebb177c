//! The state of the region in memory, and the changes to it that take more than one step.

use super::refused;
use crate::{
    cloud::{CloudError, CredentialsEnd, Filter, Image, Instance, InstanceType, Reservation, Subnet, Tags, Thing, action},
    decide::offer::NO_ROOM_AT_START,
};
use muster_text::{Value, time::Timestamp};
use std::collections::BTreeMap;

/// All of it may be set and read at any time.
#[derive(Default)]
pub(crate) struct State {
    pub account: String,
    /// All calls end with that.
    pub no_region: bool,
    /// The most bytes of an object that one answer has, where that is less than was asked for.
    pub most_bytes: Option<usize>,
    /// `None`: they do not end.
    pub credentials_end: Option<CredentialsEnd>,
    /// The time at which instances are launched.
    pub now: Option<Timestamp>,
    pub images: Vec<Image>,
    pub types: Vec<InstanceType>,
    /// Type and zone.
    pub offerings: Vec<(String, String)>,
    pub subnets: Vec<Subnet>,
    pub reservations: Vec<Reservation>,
    pub parameters: BTreeMap<String, String>,
    pub instances: Vec<Instance>,
    /// The number of answers of `instances` that do not list yet what is launched from now on.
    pub listed_after: u32,
    /// The number of instances that fit into a subnet, by type and subnet. Others have room for all.
    pub capacity: BTreeMap<(String, String), u64>,
    /// The text of each console, by instance.
    pub console: BTreeMap<String, String>,
    /// The tags of each group, by its name; its id is `sg-NAME`.
    pub groups: BTreeMap<String, Tags>,
    pub placement_groups: BTreeMap<String, Tags>,
    pub volumes: Vec<Thing>,
    /// The content of each object, by bucket and key. A bucket is there if it holds an object, or is in `buckets`.
    pub objects: BTreeMap<(String, String), Vec<u8>>,
    /// The times when objects were written that are not new.
    pub modified: BTreeMap<(String, String), Timestamp>,
    /// The objects that are written directly after the next listing, with their times.
    pub written_after_listing: BTreeMap<(String, String), (Vec<u8>, Timestamp)>,
    /// The content of each download, by its address.
    pub web: BTreeMap<String, Vec<u8>>,
    /// Errors that the next calls of an action get instead of an answer, first come, first served. Actions are those of [`action`].
    pub refusals: Vec<(&'static str, CloudError)>,
    /// The number of calls of an action that are answered before it gets one of those.
    pub passes: BTreeMap<&'static str, u32>,
    /// The number of calls that are answered. Later calls are executed, but their answers never come, as for a process that is killed.
    pub stops_after: Option<usize>,
    /// The actions that were called, in order.
    pub calls: Vec<&'static str>,
    /// The requests to `run_instances`.
    pub requests: Vec<Value>,
    /// Each launch, by its token.
    pub(super) launches: BTreeMap<String, (Value, Vec<Instance>)>,
    /// Types and zones without room when instances are to start: for how many of those that are pending.
    pub full_at_start: BTreeMap<(String, String), usize>,
    /// Instances that are not listed yet, and for how many calls more.
    pub hidden: BTreeMap<String, u32>,
}

impl State {
    pub(super) fn launch(&mut self, request: &Value) -> Result<Vec<Instance>, CloudError> {
        self.requests.push(request.clone());
        let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
        let (token, instance_type) = (text("ClientToken"), text("InstanceType"));
        if let Some((first, launched)) = self.launches.get(&token) {
            let message = "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).";
            let mismatch = || Err(refused(action::RUN_INSTANCES, "IdempotentParameterMismatch", message, 400));
            return if first == request { Ok(launched.clone()) } else { mismatch() };
        }
        let subnet = request["SubnetId"].as_str().or_else(|| request["NetworkInterfaces"][0]["SubnetId"].as_str());
        let subnet = subnet.unwrap_or_default().to_owned();
        let count = request["MinCount"].as_u64().unwrap_or(1);
        if let Some(left) = self.capacity.get_mut(&(instance_type.clone(), subnet.clone())) {
            if *left < count {
                let message = "We currently do not have sufficient capacity in the Availability Zone you requested.";
                return Err(refused(action::RUN_INSTANCES, "InsufficientInstanceCapacity", message, 500));
            }
            *left -= count;
        }
        let zone = self.subnets.iter().find(|one| one.id == subnet).map(|one| one.zone.clone()).unwrap_or_default();
        let tags = &request["TagSpecifications"][0]["Tags"];
        let pair = |tag: &Value| Some((tag["Key"].as_str()?.to_owned(), tag["Value"].as_str()?.to_owned()));
        let tags: Tags = tags.as_array().into_iter().flatten().filter_map(pair).collect();
        let first = self.instances.len() as u64 + 1;
        let instance = |index: u64| Instance {
            id: format!("i-{:017x}", first + index),
            index: u32::try_from(index).unwrap_or(u32::MAX),
            state: "pending".to_owned(),
            reason: None,
            instance_type: instance_type.clone(),
            zone: zone.clone(),
            image: text("ImageId"),
            private_ip: Some(format!("10.0.0.{}", first + index)),
            launched: self.now,
            is_spot: request["InstanceMarketOptions"]["MarketType"] == "spot",
            token: token.clone(),
            tags: tags.clone(),
        };
        let launched: Vec<Instance> = (0..count).map(instance).collect();
        if self.listed_after > 0 {
            self.hidden.extend(launched.iter().map(|instance| (instance.id.clone(), self.listed_after)));
        }
        self.instances.extend(launched.iter().cloned());
        self.launches.insert(token, (request.clone(), launched.clone()));
        Ok(launched)
    }

    /// What is pending runs when it is looked at, or there is no room for it.
    pub(super) fn start(&mut self) {
        for instance in self.instances.iter_mut().filter(|instance| instance.state == "pending") {
            let left = self.full_at_start.get_mut(&(instance.instance_type.clone(), instance.zone.clone()));
            let is_full = left.is_some_and(|left| std::mem::replace(left, left.saturating_sub(1)) > 0);
            instance.state = if is_full { "terminated" } else { "running" }.to_owned();
            instance.reason = is_full.then(|| (NO_ROOM_AT_START.to_owned(), "no room".to_owned()));
        }
    }

    /// Instances that are not terminated, of such requests.
    pub(super) fn live_of(&self, is: impl Fn(&Value) -> bool) -> impl Iterator<Item = &str> {
        let launched = self.launches.values().filter(move |(request, _)| is(request)).flat_map(|(_, launched)| launched);
        let is_live = |id: &str| self.instances.iter().any(|instance| instance.id == id && instance.state != "terminated");
        launched.map(|instance| instance.id.as_str()).filter(move |id| is_live(id))
    }
}

pub(super) fn named(
    things: &BTreeMap<String, Tags>,
    filters: &[Filter],
    id: impl Fn(&str) -> String,
) -> Result<Vec<Thing>, CloudError> {
    let mut listed = Vec::new();
    for (name, tags) in things {
        let is_chosen = all_match(filters, tags, |filter| (filter == "group-name").then_some(name))?;
        listed.extend(is_chosen.then(|| Thing { id: id(name), tags: tags.clone() }));
    }
    Ok(listed)
}

/// Whether all filters match. One that is unknown is refused, as EC2 does.
pub(super) fn all_match<'a>(
    filters: &[Filter],
    tags: &Tags,
    field: impl Fn(&str) -> Option<&'a String>,
) -> Result<bool, CloudError> {
    let mut all = true;
    for Filter { name, values } in filters {
        let value = match (name.strip_prefix("tag:"), name.as_str()) {
            (Some(tag), _) => tags.get(tag),
            (None, "tag-key") => values.iter().find(|key| tags.contains_key(*key)),
            (None, name) => {
                let message = || format!("The filter '{name}' is invalid");
                Some(field(name).ok_or_else(|| refused("Describe", "InvalidParameterValue", &message(), 400))?)
            }
        };
        all &= value.is_some_and(|value| values.iter().any(|pattern| matches_pattern(pattern, value)));
    }
    Ok(all)
}

/// `*` is any text.
pub(super) fn matches_pattern(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text
            .strip_prefix(start)
            .is_some_and(|left| (0..=left.len()).any(|at| left.is_char_boundary(at) && matches_pattern(rest, &left[at..]))),
    }
}
