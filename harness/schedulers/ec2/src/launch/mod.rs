//! Asking for the instances of a job, once.
//!
//! ```text
//! what exists of it -> found
//! image, type -> bundle and list in S3 -> its groups -> RunInstances --refused, or no room at the start--> decide::offer
//! decide::offer -> another offer, again, later, never
//! ```
//! All instances come with one request, or none. A request whose answer was lost is sent again with its token: EC2 answers it with what
//! it has launched then.

mod objects;
mod start;

pub(crate) use objects::pack_ahead;

use crate::{
    cloud::{CloudError, Filter, Instance},
    decide::{
        LISTED_WITHIN, UNTIL_LISTED,
        block::{Block, block, shown},
        offer::{Next, Refusal, Refused, is_quota, next_offer},
    },
    failure,
    launch::objects::Parcel,
    objects::note_asked,
    plan::{Found, Handle, Lifetime, Offer, run_instances},
    poll::{Asked, Attempts, Region, TURN, Wanted},
    resolve::Unresolved,
};
use muster_core::{
    decisions::backoff::Backoff,
    error::{Class, SchedulerError},
    job::{
        handle::JobHandle,
        scheduler::{Job, Launch},
    },
};
use muster_text::{Value, time::Timestamp};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// How often a request is sent again whose answer was lost.
const LOST_TRIES: u32 = 5;
const LOST_PAUSES: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(16) };
/// A block that begins later is looked at again after this time.
const LOOK_AGAIN: Duration = Duration::from_mins(5);

/// One attempt.
pub(crate) async fn launch(region: &Arc<Region>, job: &Job) -> Result<Launch, SchedulerError> {
    let handle = Handle::of(job)?;
    // Where each request of this process was answered, there is nothing, and who waits for room asks nobody. What another process
    // has launched may be listed later than it is looked for first.
    let attempts = region.attempts(job);
    let is_known = attempts.asked == Asked::Answered && attempts.looked.is_some_and(|at| at.elapsed() > LISTED_WITHIN);
    // Where there is no region, nobody has launched anything.
    let certain = |error: SchedulerError| if CloudError::is_no_region(&error) { error.with_nothing_created() } else { error };
    if !is_known && let Some(launched) = existing(region, job, &handle).await.map_err(certain)? {
        region.track(&launched)?;
        return Ok(Launch::Launched(launched));
    }
    match in_its_block(region, &handle).await {
        Ok(None) => {}
        Ok(Some(answer)) => return Ok(answer),
        Err(error) => {
            objects::forget_bundle(region, job).await;
            return Err(error.with_nothing_created());
        }
    }
    let (asked, looked) = (attempts.asked.max(Asked::Answered), attempts.looked.or_else(|| Some(Instant::now())));
    region.set_attempts(job, Attempts { looked, asked, ..attempts });
    let mut attempt = Attempt { region, job, handle, parcel: None, reached: Reached::Nothing };
    let answer = attempt.ask().await;
    if let Ok(Launch::Launched(launched)) = &answer {
        region.track(launched)?;
    }
    if !matches!(answer, Ok(Launch::NotNow { .. })) {
        objects::forget_bundle(region, job).await;
    }
    answer.map_err(|error| if attempt.reached == Reached::Nothing { error.with_nothing_created() } else { error })
}

/// Why there is no launch into a capacity block now. `None`: there is one, or the job is for no block.
async fn in_its_block(region: &Region, handle: &Handle) -> Result<Option<Launch>, SchedulerError> {
    let Some(id) = &handle.capacity_reservation else { return Ok(None) };
    let found = region.cloud.reservation(id).await;
    let found = found.map_err(|error| failure::of_launch(error, "look at the capacity block"))?;
    let place = &region.cloud.place().region;
    let missing = || SchedulerError::plain(Class::Config, format!("{place} has no capacity reservation {id}"));
    let now = region.now();
    match block(&found.ok_or_else(missing)?, handle.lifetime, now) {
        Block::Open => Ok(None),
        Block::NotYet(begins) => Ok(Some(Launch::NotNow {
            why: format!("the capacity block {id} begins at {}", shown(begins)),
            retry_after: begins.since(now).min(LOOK_AGAIN),
            created: None,
        })),
        Block::Never(why) => Err(SchedulerError::plain(Class::Config, why)),
    }
}

/// What an earlier launch has created, of this process or another.
async fn existing(region: &Region, job: &Job, handle: &Handle) -> Result<Option<Job>, SchedulerError> {
    let listed = region.listed(&job.session).await.map_err(|error| failure::of_launch(error, "look for what was launched"))?;
    // What had room when another of its request had none was ended for that.
    let in_vain: BTreeSet<&str> = listed.iter().filter(|one| start::had_no_room(one)).map(|one| one.token.as_str()).collect();
    let is_ours = |instance: &&Instance| instance.tags.get("rfm").is_some_and(|id| *id == *job.identifier.as_str());
    let mut ours: Vec<&Instance> = listed.iter().filter(is_ours).filter(|one| !in_vain.contains(&*one.token)).collect();
    ours.sort_by_key(|instance| instance.index);
    Ok((!ours.is_empty()).then(|| launched(region, job, handle, &ours)))
}

/// The job with what its launch has found out. Its script is in S3.
fn launched(region: &Region, job: &Job, handle: &Handle, instances: &[&Instance]) -> Job {
    let at = instances.iter().filter_map(|instance| instance.launched).min();
    let handle = Handle {
        launched: Some(at.unwrap_or_else(|| region.now())),
        ids: instances.iter().map(|instance| instance.id.clone()).collect(),
        script: String::new(),
        ..handle.clone()
    };
    job.with(JobHandle::of(handle))
}

struct Attempt<'a> {
    region: &'a Arc<Region>,
    job: &'a Job,
    handle: Arc<Handle>,
    /// What is in S3.
    parcel: Option<Parcel>,
    reached: Reached,
}

/// How far an attempt has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    /// It has only asked.
    Nothing,
    /// The bucket may have something of it.
    Bucket,
    /// A request for instances was sent.
    Ec2,
}

/// Why a launch goes no further.
enum Stop {
    /// It may later, and nothing was asked for.
    NotYet(String),
    Failed(SchedulerError),
}

impl From<SchedulerError> for Stop {
    fn from(error: SchedulerError) -> Self {
        Self::Failed(error)
    }
}

/// A quota that others use is waited for.
fn stop(error: CloudError, operation: &str) -> Stop {
    if error.code().is_some_and(is_quota) { Stop::NotYet(error.to_string()) } else { failure::of_launch(error, operation).into() }
}

/// A request and what it is for.
struct Request {
    wanted: Wanted,
    value: Value,
}

/// The answer to a request.
enum Answer {
    Launched(Vec<Instance>),
    Refused { code: String, message: String, status: u16 },
}

impl Attempt<'_> {
    async fn ask(&mut self) -> Result<Launch, SchedulerError> {
        match self.try_offers().await {
            Ok(launch) => Ok(launch),
            Err(Stop::NotYet(why)) => Ok(self.not_now(why)),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    fn not_now(&self, why: String) -> Launch {
        let created = self.parcel.is_some().then(|| Box::new(self.job.clone()));
        Launch::NotNow { why, retry_after: TURN, created }
    }

    async fn try_offers(&mut self) -> Result<Launch, Stop> {
        let vcpus = self.vcpus().await?;
        let (mut refused, mut request): (Vec<Refused>, Option<Request>) = (Vec::new(), None);
        let mut at = 0;
        loop {
            match next_offer(&self.handle.offers, &refused, &vcpus) {
                Next::Try(next) => {
                    at = next;
                    let wanted = self.wanted(next).await?;
                    if let Some(known) = self.region.refusal(&wanted, self.handle.instances, next, self.job) {
                        refused.push(known);
                        continue;
                    }
                    let value = self.request(next).await?;
                    request = Some(Request { wanted, value });
                }
                Next::Again(pause) => sleep(pause).await,
                Next::Renew(same) => {
                    let wanted = self.wanted(same).await?;
                    let value = self.request(same).await?;
                    request = Some(Request { wanted, value });
                }
                Next::Wait(why) => return Ok(self.not_now(why)),
                Next::Fail { class, why } => {
                    return Err(SchedulerError::plain(class, format!("launch instances: {why}")).into());
                }
            }
            let Some(Request { wanted, value }) = &request else {
                return Err(SchedulerError::plain(Class::Infra, "launch instances: there is nothing to ask for").into());
            };
            match self.send(value).await? {
                Answer::Launched(instances) => {
                    // The last offer has no successor: how it ends is seen by the looks at the job.
                    let is_last = at + 1 == self.handle.offers.len();
                    if !is_last && let Some(one) = start::refused(self.region, self.job, &instances, at).await {
                        self.region.refuse(wanted.clone(), self.handle.instances, &one, self.job);
                        refused.push(one);
                        continue;
                    }
                    let instances: Vec<&Instance> = instances.iter().collect();
                    self.region.found_room(wanted, self.job);
                    return Ok(Launch::Launched(launched(self.region, self.job, &self.handle, &instances)));
                }
                Answer::Refused { code, message, status } => {
                    let one = Refused { offer: at, code, message, status };
                    match one.kind() {
                        Refusal::TokenReused => {
                            // Another request has launched something.
                            self.asked(Asked::Doubtful);
                            if let Some(found) = self.of_token(value).await? {
                                return Ok(Launch::Launched(found));
                            }
                        }
                        Refusal::NoCapacity | Refusal::Quota(_) | Refusal::SpotQuota => {
                            self.region.refuse(wanted.clone(), self.handle.instances, &one, self.job);
                        }
                        _ => {}
                    }
                    refused.push(one);
                }
            }
        }
    }

    /// What all instances need together, of each offer.
    async fn vcpus(&self) -> Result<Vec<Option<u32>>, SchedulerError> {
        let mut names: Vec<String> = self.handle.offers.iter().map(|offer| offer.instance_type.clone()).collect();
        names.sort();
        names.dedup();
        let known = self.region.resolver.types(&names).await;
        let known = known.map_err(|error| failure::of_launch(error, "look at the instance types"))?;
        let of = |offer: &Offer| {
            let found = known.iter().find(|one| one.name == offer.instance_type)?;
            Some(found.vcpus.saturating_mul(self.handle.instances))
        };
        Ok(self.handle.offers.iter().map(of).collect())
    }

    async fn wanted(&self, at: usize) -> Result<Wanted, SchedulerError> {
        let offer = &self.handle.offers[at];
        Ok(Wanted::new(offer, &self.region.subnet(&offer.subnet, &self.subnets()).await?.zone))
    }

    fn subnets(&self) -> Vec<String> {
        let mut subnets: Vec<String> = self.handle.offers.iter().map(|offer| offer.subnet.clone()).collect();
        subnets.sort();
        subnets.dedup();
        subnets
    }

    /// The request for an offer, with what it needs in place.
    async fn request(&mut self, at: usize) -> Result<Value, Stop> {
        let region = self.region;
        let offer = &self.handle.offers[at].clone();
        let handle = &self.handle;
        let resolved = region.resolver.resolved(&handle.image, &offer.instance_type).await.map_err(|error| match error {
            Unresolved::Missing(what) => SchedulerError::plain(Class::Config, what),
            Unresolved::Cloud(error) => failure::of_launch(error, "look at the image"),
        })?;
        let now = region.now();
        if self.parcel.is_none() {
            let ready = objects::prepare(region, self.job, handle, now).await?;
            self.reached = Reached::Bucket;
            let parcel = objects::send(region, self.job, handle, ready).await?;
            let lifetime = Lifetime { fetch: parcel.fetch, ..handle.lifetime };
            self.handle = Arc::new(Handle { lifetime, ..(**handle).clone() });
            self.parcel = Some(parcel);
        }
        let handle = Arc::clone(&self.handle);
        let own_group = self.groups(offer, now).await?;
        let (boot_url, data_gib) =
            self.parcel.as_ref().map(|parcel| (parcel.boot_url.as_str(), parcel.data_gib)).unwrap_or_default();
        let found = Found {
            image_id: resolved.image.id,
            root_device: resolved.image.root_device,
            root_gib: resolved.image.root_gib,
            data_gib,
            network_cards: resolved.instance_type.network_cards,
            own_group,
            expires: expires(now, &handle),
            user_data: objects::user_data(&handle, offer, self.job.identifier.as_str(), boot_url)?,
        };
        let attempts = region.attempts(self.job);
        region.set_attempts(self.job, Attempts { requests: attempts.requests + 1, ..attempts });
        Ok(run_instances(&handle, offer, &found, attempts.requests))
    }

    /// The groups that live as long as the job.
    async fn groups(&self, offer: &Offer, now: Timestamp) -> Result<Option<String>, Stop> {
        let (region, handle) = (self.region, &self.handle);
        let mut tags = handle.tags.clone();
        tags.insert("rfm-expires".to_owned(), expires(now, handle));
        if handle.in_cluster() {
            let created = region.cloud.create_placement_group(&handle.name, &tags).await;
            created.map_err(|error| stop(error, "create a placement group"))?;
        }
        if !handle.needs_group() {
            return Ok(None);
        }
        let subnet = region.subnet(&offer.subnet, &self.subnets()).await?;
        let created = region.cloud.create_security_group(&handle.name, &subnet.vpc, &tags).await;
        created.map(Some).map_err(|error| stop(error, "create a security group"))
    }

    /// Sends a request until there is an answer.
    async fn send(&mut self, request: &Value) -> Result<Answer, SchedulerError> {
        let (mut lost, before) = (0, self.region.attempts(self.job).asked);
        loop {
            let noted = note_asked(self.region, &self.handle).await;
            if lost == 0 {
                noted.map_err(|error| failure::of_launch(error, "note that instances are asked for"))?;
            }
            self.reached = Reached::Ec2;
            // Until there is an answer: this may be dropped.
            self.asked(Asked::Doubtful);
            match self.region.cloud.run_instances(request).await {
                Ok(instances) => return Ok(Answer::Launched(instances)),
                Err(CloudError::Refused { code, message, status, .. }) => {
                    self.asked(if lost > 0 { Asked::Doubtful } else { before });
                    return Ok(Answer::Refused { code, message, status });
                }
                Err(CloudError::Unreached { .. } | CloudError::Unread { .. }) if lost < LOST_TRIES => {
                    lost += 1;
                    sleep(LOST_PAUSES.after(lost)).await;
                }
                Err(error) => {
                    self.asked(if lost > 0 || !error.had_no_effect() { Asked::Doubtful } else { before });
                    return Err(failure::of_launch(error, "launch instances"));
                }
            }
        }
    }

    fn asked(&self, asked: Asked) {
        self.region.set_attempts(self.job, Attempts { asked, ..self.region.attempts(self.job) });
    }

    /// What another request with this token has launched, which EC2 may list later. None: it has ended long ago.
    async fn of_token(&self, request: &Value) -> Result<Option<Job>, SchedulerError> {
        let token = request["ClientToken"].as_str().unwrap_or_default().to_owned();
        let filter = [Filter { name: "client-token".to_owned(), values: vec![token] }];
        let began = Instant::now();
        loop {
            let found = self.region.cloud.instances(&filter).await;
            let found = found.map_err(|error| failure::of_launch(error, "look for what was launched"))?;
            if !found.is_empty() {
                let found: Vec<&Instance> = found.iter().collect();
                return Ok(Some(launched(self.region, self.job, &self.handle, &found)));
            }
            if began.elapsed() >= LISTED_WITHIN {
                return Ok(None);
            }
            sleep(UNTIL_LISTED).await;
        }
    }
}

/// When anybody may end the instances.
fn expires(now: Timestamp, handle: &Handle) -> String {
    now.plus(Duration::from_secs(handle.lifetime.expires_after())).seconds().to_string()
}
