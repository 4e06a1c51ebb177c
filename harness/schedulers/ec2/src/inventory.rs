//! Lists what carries our tags in the places of a scope, and what has expired of it, for `muster sweep` and for takeovers.
//!
//! A thing is ours if it has `rfm-managed`. It is over ten minutes after `rfm-expires`, whoever its owner is: clocks differ.

use crate::{
    cloud::{CloudError, Filter, Instance, Kind, Tags, Thing},
    config::{Bucket, Image, Options, PlannedVolume, Volume, regions},
    failure, objects,
    plan::{Handle, Lifetime, NAME, Place},
    poll::Region,
};
use futures_util::{StreamExt, stream};
use muster_core::{
    case::{Identifier, SessionId},
    error::{Class, SchedulerError},
    job::{
        handle::JobHandle,
        inventory::{Found, Inventory, JobId, Kept, Scope},
        scheduler::Job,
    },
    usage::Prices,
};
use muster_text::{
    Value,
    diagnostic::Diagnostic,
    time::{Timestamp, format_duration},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

/// How many objects are read at once.
const AT_ONCE: usize = 16;

/// How far clocks may differ.
const SKEW: Duration = Duration::from_mins(10);

/// A place, with the buckets there and the prices of its site.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spot {
    buckets: BTreeSet<Bucket>,
    prices: Prices,
}

/// All that is left of one attempt.
#[derive(Debug, Clone, Default)]
struct Left {
    instances: Vec<Instance>,
    groups: Vec<Thing>,
    placement_groups: Vec<Thing>,
    volumes: Vec<Thing>,
    /// Where its objects are, and how many there are.
    objects: Option<(Bucket, usize)>,
    mark: Mark,
}

/// What the bucket says of whether it is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Mark {
    #[default]
    Absent,
    Kept,
    /// Of what has no instance any more: until when it was kept.
    KeptUntil(Timestamp),
}

/// The places of a scope, and the partitions of which it is not known where they are.
pub(crate) fn places(scope: &Scope) -> (BTreeMap<Place, Spot>, Vec<SchedulerError>) {
    let (mut places, mut unknown) = (BTreeMap::<Place, Spot>::new(), Vec::new());
    for options in &scope.partitions {
        let read = match Options::read(options, "") {
            Ok(read) => read,
            Err(mistakes) => {
                unknown.push(unreadable(options, &mistakes));
                continue;
            }
        };
        let place = Place { region: read.region.0, endpoint_url: read.endpoint_url.map(|address| address.0) };
        let spot = places.entry(place).or_default();
        spot.buckets.insert(read.bucket);
        spot.prices.currency = read.prices.currency;
        spot.prices.per_hour.extend(read.prices.per_hour);
    }
    for handle in scope.jobs.iter().filter_map(|job| Handle::of(job).ok()) {
        places.entry(handle.place.clone()).or_default().buckets.insert(handle.bucket.clone());
    }
    (places, unknown)
}

/// `look for what is left of an EC2 partition in eu-west-1: the partition has no ..`
fn unreadable(options: &Value, mistakes: &[Diagnostic]) -> SchedulerError {
    let region = options.get("region").and_then(Value::as_str).map_or_else(String::new, |region| format!(" in {region}"));
    let why: Vec<&str> = mistakes.iter().map(|mistake| &*mistake.message).collect();
    SchedulerError::plain(Class::Config, format!("look for what is left of an EC2 partition{region}: {}", why.join("; ")))
}

/// The place of one job.
pub(crate) fn place_of(handle: &Handle) -> Spot {
    Spot { buckets: BTreeSet::from([handle.bucket.clone()]), ..Spot::default() }
}

/// Looks at one place. `stored`: the jobs that the database knows.
///
/// # Errors
/// EC2 or S3 does not answer.
pub(crate) async fn look(region: &Region, spot: &Spot, stored: &[Job]) -> Result<Inventory, SchedulerError> {
    let left = left(region, spot).await.map_err(|error| {
        let place = &region.cloud.place().region;
        failure::of_running(error, &format!("look for what is left in {place}"))
    })?;
    let place = region.cloud.place();
    let now = region.now();
    let found: Vec<Found> = left.iter().filter_map(|(id, left)| found(place, spot, id, left, stored, now)).collect();
    let is_here = |job: &&Job| Handle::of(job).is_ok_and(|handle| handle.place == *place);
    let absent = stored.iter().filter(is_here).map(Job::id).filter(|id| !left.contains_key(id)).collect();
    Ok(Inventory { found, absent, ..Inventory::default() })
}

/// A region that does not exist: nothing of the jobs that were to run there can be left. `None`: something was launched there.
pub(crate) fn of_no_region(place: &Place, stored: &[Job]) -> Option<Inventory> {
    let is_there = |job: &&Job| Handle::of(job).is_ok_and(|handle| handle.place == *place);
    if stored.iter().filter(is_there).any(|job| Handle::of(job).is_ok_and(|handle| handle.launched.is_some())) {
        return None;
    }
    let region = &place.region;
    let note = format!("AWS has no region `{region}`, so that nothing was launched there ({})", regions::hint(region));
    let absent = stored.iter().filter(is_there).map(Job::id).collect();
    Some(Inventory { absent, notes: vec![note], ..Inventory::default() })
}

async fn left(region: &Region, spot: &Spot) -> Result<BTreeMap<JobId, Left>, CloudError> {
    let cloud = &region.cloud;
    let tag = |name: &str, values: &[&str]| Filter {
        name: name.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let ours = [tag("tag:rfm-managed", &["true"])];
    let live = [ours[0].clone(), tag("instance-state-name", &["pending", "running", "stopping", "stopped"])];
    let mut all: BTreeMap<JobId, Left> = BTreeMap::new();
    for instance in cloud.instances(&live).await? {
        if let Some(id) = job_of(&instance.tags) {
            all.entry(id).or_default().instances.push(instance);
        }
    }
    for (things, push) in [
        (
            unless_forbidden(cloud.security_groups(&ours).await)?,
            (|left: &mut Left, thing| left.groups.push(thing)) as fn(&mut Left, Thing),
        ),
        (unless_forbidden(cloud.placement_groups(&ours).await)?, |left, thing| left.placement_groups.push(thing)),
        (cloud.free_volumes(&ours).await?, |left, thing| left.volumes.push(thing)),
    ] {
        for thing in things {
            if let Some(id) = job_of(&thing.tags) {
                push(all.entry(id).or_default(), thing);
            }
        }
    }
    for bucket in &spot.buckets {
        let prefix = bucket.key("");
        for object in cloud.objects(&bucket.name, &prefix).await? {
            let mut parts = object.key.strip_prefix(&prefix).unwrap_or_default().splitn(3, '/');
            let (session, identifier, name) = (parts.next(), parts.next().and_then(Identifier::parse), parts.next());
            let (Some(session), Some(identifier), Some(name)) = (session, identifier, name) else { continue };
            let left = all.entry((SessionId(session.to_owned()), identifier)).or_default();
            if name == objects::KEPT {
                left.mark = Mark::Kept;
            }
            left.objects.get_or_insert_with(|| (bucket.clone(), 0)).1 += 1;
        }
    }
    read_marks(region, &mut all).await;
    Ok(all)
}

/// Reads until when those were kept of which only objects are left: nothing else says it. One that cannot be read never expires.
async fn read_marks(region: &Region, all: &mut BTreeMap<JobId, Left>) {
    let alone = all.iter_mut().filter(|(_, left)| left.mark == Mark::Kept && left.instances.is_empty());
    let reads = alone.map(|((session, identifier), left)| async move {
        let Some((bucket, _)) = &left.objects else { return };
        let prefix = bucket.key(&format!("{session}/{identifier}/"));
        match objects::kept_until(region, &bucket.name, &prefix).await {
            Ok(until) => left.mark = until.map_or(Mark::Kept, Mark::KeptUntil),
            Err(error) => tracing::debug!(%error, prefix, "it is not known until when something was kept"),
        }
    });
    let reads: Vec<_> = reads.collect();
    stream::iter(reads).buffer_unordered(AT_ONCE).for_each(|()| async {}).await;
}

/// Who has the rights for none creates none.
fn unless_forbidden(answer: Result<Vec<Thing>, CloudError>) -> Result<Vec<Thing>, CloudError> {
    match answer {
        Err(error) if error.kind() == Kind::Forbidden => Ok(Vec::new()),
        answer => answer,
    }
}

/// Whose something is, by its tags. EC2 has filtered them; a tag of ours is looked at all the same.
fn job_of(tags: &Tags) -> Option<JobId> {
    let tag = |name: &str| tags.get(name).map(String::as_str);
    let is_ours = tag("rfm-managed") == Some("true");
    let identifier = Identifier::parse(tag("rfm")?)?;
    is_ours.then_some((SessionId(tag("rfm-session")?.to_owned()), identifier))
}

fn found(place: &Place, spot: &Spot, id: &JobId, left: &Left, stored: &[Job], now: Timestamp) -> Option<Found> {
    let known = stored.iter().find(|job| job.id() == *id);
    let job = job(place, spot, id, left, known)?;
    Some(Found {
        job,
        what: left.what(place, now),
        cost: left.cost(&spot.prices, now),
        kept: left.kept(now),
        place: place.region.clone(),
        has_ended: left.instances.is_empty(),
    })
}

impl Left {
    /// `instance i-1 (c7i.large, for 2h) in eu-west-1, security group sg-1`
    fn what(&self, place: &Place, now: Timestamp) -> String {
        let instance = |one: &Instance| {
            let age = one.launched.map_or(Duration::ZERO, |launched| now.since(launched));
            let age = format_duration(Duration::from_secs(age.as_secs()));
            format!("instance {} ({}, {} for {age})", one.id, one.instance_type, one.state)
        };
        let mut parts: Vec<String> = self.instances.iter().map(instance).collect();
        for (kind, things) in
            [("security group", &self.groups), ("placement group", &self.placement_groups), ("volume", &self.volumes)]
        {
            parts.extend(things.iter().map(|thing| format!("{kind} {}", thing.id)));
        }
        if let Some((bucket, count)) = &self.objects {
            parts.push(format!("{count} object(s) in s3://{}", bucket.name));
        }
        format!("{} in {}", parts.join(", "), place.region)
    }

    /// What its instances have cost so far.
    fn cost(&self, prices: &Prices, now: Timestamp) -> Option<String> {
        let time = |one: &Instance| {
            let seconds = one.launched.map_or(0, |launched| now.since(launched).as_secs());
            (one.instance_type.clone(), seconds)
        };
        let usage = prices.usage(self.instances.iter().map(time));
        (!usage.is_empty()).then(|| format!("so far {usage}"))
    }

    /// Until when it may stay: the last of its tags says.
    fn kept(&self, now: Timestamp) -> Option<Kept> {
        let things = self.groups.iter().chain(&self.placement_groups).chain(&self.volumes).map(|thing| &thing.tags);
        let of = |tags: &Tags| Some(Timestamp::of_seconds(tags.get("rfm-expires")?.parse().ok()?));
        let noted = match self.mark {
            Mark::KeptUntil(until) => Some(Some(until)),
            Mark::Absent | Mark::Kept => None,
        };
        // Groups and objects are there for their instances.
        let instances: Vec<Option<Timestamp>> = self.instances.iter().map(|one| of(&one.tags)).collect();
        let all = if instances.is_empty() { things.map(of).chain(noted).collect() } else { instances };
        // What has no time, or none that can be read, never expires.
        let last = all.into_iter().collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
        match last {
            Some(last) if now.since(last) > SKEW => Some(Kept::Over),
            Some(_) if self.mark != Mark::Absent && !self.instances.is_empty() => Some(Kept::Still),
            Some(_) => None,
            None if self.instances.is_empty() => None,
            None => Some(Kept::Unknown),
        }
    }
}

/// The job of what is left: as it was stored, or enough of it to remove all.
fn job(place: &Place, spot: &Spot, id: &JobId, left: &Left, known: Option<&Job>) -> Option<Job> {
    let (session, identifier) = id;
    let handle = known.and_then(|job| Handle::of(job).ok()).map(|handle| (*handle).clone());
    let handle = match handle {
        Some(handle) => handle,
        None => unknown(place, spot, id, left)?,
    };
    let volumes = left.volumes.iter().map(|volume| volume.id.clone()).collect();
    let handle = JobHandle::of(Handle { volumes, ..handle });
    Some(match known {
        Some(job) => job.with(handle),
        None => Job {
            identifier: identifier.clone(),
            session: session.clone(),
            case: left.check().unwrap_or_else(|| "a case that no database knows".to_owned()),
            scheduler: NAME.into(),
            stage: PathBuf::new(),
            handle,
        },
    })
}

impl Left {
    fn tags(&self) -> Option<&Tags> {
        let things = self.groups.iter().chain(&self.placement_groups).chain(&self.volumes).map(|thing| &thing.tags);
        self.instances.iter().map(|one| &one.tags).chain(things).next()
    }

    fn check(&self) -> Option<String> {
        self.tags()?.get("rfm-check").cloned()
    }
}

/// What a handle has to say to be removed.
fn unknown(place: &Place, spot: &Spot, (session, identifier): &JobId, left: &Left) -> Option<Handle> {
    let bucket = left.objects.as_ref().map(|(bucket, _)| bucket).or(spot.buckets.first())?.clone();
    let name = left.tags().and_then(|tags| tags.get("Name").cloned()).unwrap_or_else(|| format!("rfm-{identifier}"));
    let instances = u32::try_from(left.instances.len()).unwrap_or(u32::MAX).max(1);
    Some(Handle {
        place: place.clone(),
        prefix: bucket.key(&format!("{session}/{identifier}/")),
        bucket,
        token: format!("rfm-{session}-{identifier}"),
        tags: left.tags().cloned().unwrap_or_default(),
        name,
        image: Image::Id(String::new()),
        offers: Vec::new(),
        // Several have a group, if one is there.
        instances: if left.groups.is_empty() { instances } else { instances.max(2) },
        volume: PlannedVolume::from(&Volume::default()),
        security_groups: Vec::new(),
        instance_profile: None,
        key_name: None,
        network: None,
        placement: (!left.placement_groups.is_empty()).then_some(crate::config::Placement::Cluster),
        capacity_reservation: None,
        instance_store: None,
        threads_per_core: None,
        lifetime: Lifetime { limit: 0, keep: 0, boot: 0, fetch: 0 },
        script: String::new(),
        pass_env: Vec::new(),
        poll_interval: crate::plan::POLL,
        launched: left.instances.iter().filter_map(|one| one.launched).min(),
        longest_fetch: 0,
        ids: left.instances.iter().map(|one| one.id.clone()).collect(),
        prices: spot.prices.clone(),
        volumes: Vec::new(),
        data: Vec::new(),
        staging: None,
        keep_files: Vec::new(),
    })
}

/// What has expired at a place, of whichever session.
///
/// # Errors
/// Those of `look`.
pub(crate) async fn expired(region: &Arc<Region>, spot: &Spot) -> Result<Vec<Found>, SchedulerError> {
    let looked = look(region, spot, &[]).await?;
    Ok(looked.found.into_iter().filter(|found| found.kept == Some(Kept::Over)).collect())
}
