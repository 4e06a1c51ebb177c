//! Asks a region for facts. Each question is asked once for all workloads, and all at the same time.

use crate::{
    cloud::{Cloud, CloudError, CredentialsEnd, Filter, Image, Instance, InstanceType, Reservation, Subnet, action},
    config,
    plan::{Found, Handle, run_instances},
    poll::Written,
    resolve::{Resolver, Unresolved},
};
use futures_util::future::join_all;
use muster_core::probe;
use muster_text::{Value, time::Timestamp};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    slice,
    time::Duration,
};
use tokio::time::timeout;

/// For the credentials, for what needs nothing but them, and for what needs the answers to that.
const CREDENTIALS: Duration = Duration::from_millis(2500);
const FIRST: Duration = Duration::from_secs(3);
const SECOND: Duration = Duration::from_secs(2);

const _: () = assert!(CREDENTIALS.as_millis() + FIRST.as_millis() + SECOND.as_millis() < probe::PART.as_millis());

/// More differ in nothing that is checked.
const MOST_TRIALS: usize = 32;

/// An id as EC2 has them, of no image.
const ANY_IMAGE: &str = "ami-00000000000000000";

/// A launch that is tried with `DryRun`.
pub(super) struct Trial {
    /// The key of the check: requests that are checked alike have the same.
    pub key: String,
    pub request: Value,
    /// It is the request of the launch: what is wrong with it is wrong with the workload. Else it says whether one may launch.
    pub is_whole: bool,
}

/// Whether the credentials do not allow a call.
pub(super) fn is_forbidden(error: &CloudError) -> bool {
    matches!(error.code(), Some("UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException"))
}

/// Whether a small object may be written and deleted, to see that it can.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Writes<'a> {
    /// And who knows of it until it is deleted.
    AnObject(&'a Written),
    Nothing,
}

/// `None`: it was not asked, or not answered in time.
#[derive(Default)]
pub(super) struct Facts {
    pub region: String,
    pub credentials: Option<Result<Option<CredentialsEnd>, CloudError>>,
    pub images: BTreeMap<config::Image, Option<Result<Image, Unresolved>>>,
    /// The types by name; those that do not exist are not there.
    pub types: Option<Result<BTreeMap<String, InstanceType>, CloudError>>,
    /// The names of all types of the region, if one of them does not exist.
    pub all_types: Vec<String>,
    /// Pairs of type and zone.
    pub offered: Option<Result<BTreeSet<(String, String)>, CloudError>>,
    pub subnets: Option<Result<BTreeMap<String, Subnet>, CloudError>>,
    /// The instances of Muster.
    pub listed: Option<Result<Vec<Instance>, CloudError>>,
    /// The reservations by id; `None` in it: there is none.
    pub reservations: BTreeMap<String, Option<Result<Option<Reservation>, CloudError>>>,
    /// The errors that kept an object from being written, read, listed and deleted, by bucket and its prefix.
    pub buckets: BTreeMap<(String, String), Vec<CloudError>>,
    /// The results of trials, by the key of the trial.
    pub trials: BTreeMap<String, Option<Result<(), CloudError>>>,
    /// The refusals of other calls that jobs make.
    pub others: Vec<CloudError>,
    /// A bucket did not answer in time.
    is_silent: bool,
}

impl Facts {
    pub(super) async fn ask<'a>(
        cloud: &dyn Cloud,
        resolver: &Resolver,
        handles: impl Iterator<Item = &'a Handle> + Clone,
        writes: Writes<'_>,
        now: Timestamp,
    ) -> Self {
        let mut facts = Self { region: cloud.place().region.clone(), ..Self::default() };
        // Who has no credentials can ask nothing.
        let needed = handles.clone().map(|handle| handle.lifetime.needs_addresses()).max().unwrap_or_default();
        facts.credentials = timeout(CREDENTIALS, cloud.credentials_end(now.plus(needed))).await.ok();
        if !matches!(facts.credentials, Some(Ok(_))) {
            return facts;
        }
        let types = names(handles.clone().flat_map(|handle| handle.offers.iter().map(|offer| &offer.instance_type)));
        let subnets = names(handles.clone().flat_map(|handle| handle.offers.iter().map(|offer| &offer.subnet)));
        let images: BTreeSet<config::Image> = handles.clone().map(|handle| handle.image.clone()).collect();
        let buckets: BTreeMap<(String, String), &Handle> =
            handles.clone().map(|handle| ((handle.bucket.name.clone(), handle.bucket.prefix.clone()), handle)).collect();

        let ask_images = join_all(images.iter().map(|image| timeout(FIRST, resolver.image(image))));
        let ask_buckets = join_all(buckets.values().map(|handle| try_bucket(cloud, handle, writes)));
        let reservations = names(handles.clone().filter_map(|handle| handle.capacity_reservation.as_ref()));
        let ask_reservations = join_all(reservations.iter().map(|id| timeout(FIRST, cloud.reservation(id))));
        let ours = [Filter { name: "tag:rfm-managed".to_owned(), values: vec!["true".to_owned()] }];
        let (found, known, offered, networks, listed, refused, reserved) = tokio::join!(
            ask_images,
            timeout(FIRST, resolver.types(&types)),
            timeout(FIRST, cloud.offerings(&types)),
            timeout(FIRST, cloud.subnets(&subnets)),
            timeout(FIRST, cloud.instances(&ours)),
            ask_buckets,
            ask_reservations,
        );
        facts.images = images.into_iter().zip(found.into_iter().map(Result::ok)).collect();
        facts.types = known.ok().map(|known| Ok(known?.into_iter().map(|one| (one.name.clone(), one)).collect()));
        facts.offered = offered.ok().map(|offered| Ok(offered?.into_iter().collect()));
        facts.subnets = networks.ok().map(|networks| Ok(networks?.into_iter().map(|one| (one.id.clone(), one)).collect()));
        facts.listed = listed.ok();
        facts.reservations = reservations.iter().cloned().zip(reserved.into_iter().map(Result::ok)).collect();
        facts.is_silent = refused.iter().any(|(_, is_answered)| !is_answered);
        facts.buckets = buckets.into_keys().zip(refused.into_iter().map(|(refused, _)| refused)).collect();
        facts.ask_again(cloud, handles, types.len()).await;
        facts
    }

    /// What depends on the first answers.
    async fn ask_again<'a>(&mut self, cloud: &dyn Cloud, handles: impl Iterator<Item = &'a Handle> + Clone, types: usize) {
        let trials = handles.clone().filter_map(|handle| self.trial(handle)).map(|trial| (trial.key, trial.request));
        let trials: BTreeMap<String, Value> = trials.take(MOST_TRIALS).collect();
        let others = self.other_calls(&handles);
        let ask_others = join_all(others.iter().map(|(action, call)| timeout(SECOND, cloud.try_call(action, call))));
        let ask_trials = join_all(trials.values().map(|request| timeout(SECOND, cloud.try_run_instances(request))));
        let is_missing = matches!(&self.types, Some(Ok(known)) if known.len() < types);
        let ask_names = async { if is_missing { timeout(SECOND, cloud.offerings(&[])).await.ok()?.ok() } else { None } };
        let (tried, all, other) = tokio::join!(ask_trials, ask_names, ask_others);
        self.is_silent |= other.iter().any(Result::is_err);
        self.others = other.into_iter().filter_map(|answer| answer.ok()?.err()).collect();
        self.trials = trials.into_keys().zip(tried.into_iter().map(Result::ok)).collect();
        self.all_types = names(all.iter().flatten().map(|(name, _)| name));
    }

    /// The calls beside the launch that jobs make, to be tried: of groups as they would be created, of instances with one of Muster's
    /// that is there. Without one, whether it may be ended cannot be asked: the right depends on its tag.
    fn other_calls<'a>(&self, handles: &(impl Iterator<Item = &'a Handle> + Clone)) -> Vec<(&'static str, Value)> {
        let specification = |kind: &str, handle: &Handle| {
            let tags = handle.tags.iter().map(|(key, value)| json!({ "Key": key, "Value": value }));
            json!([{ "ResourceType": kind, "Tags": tags.collect::<Vec<_>>() }])
        };
        let mut calls = Vec::new();
        if let Some(handle) = handles.clone().find(|handle| handle.needs_group())
            && let Some(Ok(subnets)) = &self.subnets
            && let Some(subnet) = handle.offers.iter().find_map(|offer| subnets.get(&offer.subnet))
        {
            let group = json!({
                "GroupName": handle.name,
                "GroupDescription": "a preflight",
                "VpcId": subnet.vpc,
                "TagSpecifications": specification("security-group", handle),
            });
            calls.push((action::CREATE_SECURITY_GROUP, group));
        }
        if let Some(handle) = handles.clone().find(|handle| handle.in_cluster()) {
            let tags = specification("placement-group", handle);
            let group = json!({ "GroupName": handle.name, "Strategy": "cluster", "TagSpecifications": tags });
            calls.push((action::CREATE_PLACEMENT_GROUP, group));
        }
        if let Some(Ok(instances)) = &self.listed
            && let Some(one) = instances.first()
        {
            calls.push((action::TERMINATE_INSTANCES, json!({ "InstanceIds": [one.id] })));
            let tag = json!([{ "Key": "rfm-expires", "Value": one.tags.get("rfm-expires") }]);
            calls.push((action::CREATE_TAGS, json!({ "Resources": [one.id], "Tags": tag })));
        }
        calls
    }

    /// Whether all that was asked was answered in time.
    pub(super) fn are_all_answered(&self) -> bool {
        let all = [self.types.is_some(), self.offered.is_some(), self.subnets.is_some(), self.listed.is_some()];
        let each = self.images.values().all(Option::is_some)
            && self.reservations.values().all(Option::is_some)
            && self.trials.values().all(Option::is_some);
        match &self.credentials {
            None => false,
            // Nothing more was asked.
            Some(Err(_)) => true,
            Some(Ok(_)) => all.iter().all(|is_answered| *is_answered) && each && !self.is_silent,
        }
    }

    /// Why questions that concern all workloads have no answer. What every launch and every look asks is among them.
    pub(super) fn refusals(&self) -> impl Iterator<Item = &CloudError> {
        let types = self.types.as_ref().and_then(|answer| answer.as_ref().err());
        let offered = self.offered.as_ref().and_then(|answer| answer.as_ref().err());
        let subnets = self.subnets.as_ref().and_then(|answer| answer.as_ref().err());
        let listed = self.listed.as_ref().and_then(|answer| answer.as_ref().err());
        [types, offered, subnets, listed].into_iter().flatten().chain(&self.others)
    }

    /// The request of a workload without what differs between those that are checked alike. None for one whose image or type does not
    /// exist. Where it may not be looked at, the right to launch is tried with another.
    pub(super) fn trial(&self, handle: &Handle) -> Option<Trial> {
        let image = match self.images.get(&handle.image) {
            Some(Some(Ok(image))) => Some(image),
            Some(Some(Err(Unresolved::Cloud(error)))) if is_forbidden(error) => None,
            _ => return None,
        };
        let known = match &self.types {
            Some(Ok(types)) => Some(handle.offers.iter().find_map(|offer| Some((offer, types.get(&offer.instance_type)?)))?),
            Some(Err(error)) if is_forbidden(error) => None,
            _ => return None,
        };
        let offer = known.map(|(offer, _)| offer).or(handle.offers.first())?;
        let found = Found {
            image_id: image.map_or_else(|| ANY_IMAGE.to_owned(), |image| image.id.clone()),
            root_device: image.map_or_else(|| "/dev/xvda".to_owned(), |image| image.root_device.clone()),
            root_gib: image.map_or(8, |image| image.root_gib),
            data_gib: 0,
            network_cards: known.map_or(1, |(_, instance_type)| instance_type.network_cards),
            own_group: None,
            expires: "0".to_owned(),
            user_data: String::new(),
        };
        let mut request = run_instances(handle, offer, &found, 0);
        // It is created with the launch, and so are the tags.
        let members = request.as_object_mut()?;
        for key in ["Placement", "ClientToken", "UserData"] {
            members.remove(key);
        }
        let mut alike = members.clone();
        alike.remove("TagSpecifications");
        Some(Trial { key: Value::Object(alike).to_string(), request, is_whole: image.is_some() && known.is_some() })
    }
}

/// Does what a job does with its objects. Returns what was refused, and whether all was answered in time.
async fn try_bucket(cloud: &dyn Cloud, handle: &Handle, writes: Writes<'_>) -> (Vec<CloudError>, bool) {
    let (bucket, key) = (handle.bucket.name.as_str(), format!("{}preflight", handle.prefix));
    let list = async { timeout(FIRST, cloud.objects(bucket, &handle.prefix)).await.map(|listed| listed.map(drop)).ok() };
    let answers = match writes {
        Writes::Nothing => vec![list.await],
        Writes::AnObject(written) => {
            let (written, listed) = tokio::join!(try_to_write(cloud, (bucket, &key), written), list);
            let [put, read, deleted] = written;
            vec![put, read, listed, deleted]
        }
    };
    let is_answered = answers.iter().all(Option::is_some);
    (answers.into_iter().flatten().filter_map(Result::err).collect(), is_answered)
}

/// Writes an object, reads it and deletes it. What stays is deleted when the session ends.
async fn try_to_write(cloud: &dyn Cloud, (bucket, key): (&str, &str), written: &Written) -> [Option<Result<(), CloudError>>; 3] {
    written.note(bucket, key);
    let put = timeout(FIRST / 3, cloud.put(bucket, key, b"written by a preflight, and deleted at once\n".to_vec())).await.ok();
    let read = match &put {
        Some(Ok(())) => timeout(FIRST / 3, cloud.get(bucket, key, 0)).await.ok().map(|piece| piece.map(drop)),
        // It may not be there.
        Some(Err(_)) | None => Some(Ok(())),
    };
    // One that was given up, or of which S3 says that it has failed, may have been written.
    let key = key.to_owned();
    let deleted = match &put {
        Some(Err(error)) if error.had_no_effect() => Some(Ok(())),
        Some(_) | None => timeout(FIRST / 3, cloud.delete(bucket, slice::from_ref(&key))).await.ok(),
    };
    if matches!(deleted, Some(Ok(()))) && put.is_some() {
        written.is_gone(bucket, &key);
    }
    [put, read, deleted]
}

fn names<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let names: BTreeSet<&String> = names.collect();
    names.into_iter().cloned().collect()
}
