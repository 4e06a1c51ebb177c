//! Planning: a workload as a handle from which any process can launch, find and end its instances. No I/O.
//!
//! ```text
//! offers    what is asked for, in order: market, instance type, subnet
//! request   the parameters of RunInstances        preview  what `--dry-run` prints
//! ```

mod offers;
mod preview;
mod request;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub(crate) use offers::{Bought, Offer};
pub(crate) use preview::preview;
pub(crate) use request::{Found, run_instances};

use crate::{
    agent::{Orders, Pace},
    config::{Bucket, CONFIG, Config, DataSet, Image, Network, Options, Placement, PlannedVolume},
};
use muster_core::{
    error::{Class, SchedulerError},
    job::{
        handle::JobHandle,
        scheduler::Job,
        workload::{Program, Staging, Workload},
    },
    usage::{Prices, Usage},
};
use muster_text::{
    Value,
    diagnostic::Diagnostic,
    time::{Timestamp, format_duration},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The name of the scheduler.
pub(crate) const NAME: &str = "ec2";

/// How long a failed instance is kept where nothing says more.
const KEEP: Duration = Duration::from_mins(30);

/// How long fetching data sets may take, where a check does not say it.
const FETCH: Duration = Duration::from_hours(2);

/// What an instance gets beyond its time limit and its keep before its own timer ends it: for booting, fetching and saving.
const GRACE: Duration = Duration::from_mins(15);

/// Amazon signs no address for longer.
pub(crate) const LONGEST_ADDRESS: Duration = Duration::from_hours(7 * 24);

/// How often a region is asked where nothing says more.
pub(crate) const POLL: Duration = Duration::from_secs(5);

/// The most of a check's name that is in a name on EC2.
const NAME_LIMIT: usize = 40;

/// [`Job::handle`] of a job on EC2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Handle {
    pub place: Place,
    pub bucket: Bucket,
    /// The prefix of the job's objects in the bucket, with a slash at the end.
    pub prefix: String,
    /// `rfm-NAME-abcdefgh`: the tag `Name`, and the name of a security group or placement group of its own.
    pub name: String,
    /// The first part of each `ClientToken`: the number of the request follows.
    pub token: String,
    pub tags: BTreeMap<String, String>,
    pub image: Image,
    pub offers: Vec<Offer>,
    pub instances: u32,
    pub volume: PlannedVolume,
    #[serde(default)]
    pub security_groups: Vec<String>,
    #[serde(default)]
    pub instance_profile: Option<String>,
    /// The key pair of those who log in to what is kept.
    #[serde(default)]
    pub key_name: Option<String>,
    #[serde(default)]
    pub network: Option<Network>,
    #[serde(default)]
    pub placement: Option<Placement>,
    #[serde(default)]
    pub capacity_reservation: Option<String>,
    /// The path where the disks of the instances themselves are mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_store: Option<String>,
    #[serde(default)]
    pub threads_per_core: Option<u32>,
    pub lifetime: Lifetime,
    pub script: String,
    /// Variables taken over from the harness' own environment.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// The interval at which EC2 and S3 are asked, and at which an agent sends its log.
    #[serde(default = "poll_interval")]
    pub poll_interval: Duration,
    #[serde(default)]
    pub launched: Option<Timestamp>,
    /// Seconds that fetching its data sets may take at most.
    #[serde(default = "longest_fetch")]
    pub longest_fetch: u64,
    /// The data sets that the instances fetch before the script begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<DataSet>,
    /// The files that are sent with the script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staging: Option<Staging>,
    /// The globs of what comes back of what the script leaves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep_files: Vec<String>,
    /// Its instances, in the order of their ranks.
    #[serde(default)]
    pub ids: Vec<String>,
    /// The prices of its instances.
    #[serde(default)]
    pub prices: Prices,
    /// Volumes that no instance uses: an inventory has found them.
    #[serde(default)]
    pub volumes: Vec<String>,
}

fn poll_interval() -> Duration {
    POLL
}

fn longest_fetch() -> u64 {
    FETCH.as_secs()
}

/// Where an instance is. Jobs with the same place share one poller.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Place {
    pub region: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_url: Option<String>,
}

/// How long an instance lives at most, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lifetime {
    /// The script's own limit.
    pub limit: u64,
    /// The time for which a failed instance is kept.
    pub keep: u64,
    /// The longest time from the launch to the first sign of life.
    pub boot: u64,
    /// The longest time for its data sets, which is known when they are.
    #[serde(default)]
    pub fetch: u64,
}

impl Lifetime {
    /// Minutes from the start of the agent, after which the instance ends itself whatever happens.
    pub(crate) fn timer_minutes(self) -> u64 {
        (self.limit + self.fetch + self.keep + GRACE.as_secs()).div_ceil(60)
    }

    /// For so long after the launch its instances need their addresses.
    pub(crate) fn needs_addresses(self) -> Duration {
        Duration::from_secs(self.boot + self.fetch + self.limit)
    }

    /// Seconds from the launch, after which anybody may end the instance.
    pub(crate) fn expires_after(self) -> u64 {
        self.boot + self.timer_minutes() * 60
    }
}

impl Handle {
    /// That of a job.
    ///
    /// # Errors
    /// It is of another scheduler, or another version.
    pub(crate) fn of(job: &Job) -> Result<Arc<Self>, SchedulerError> {
        let read = job.handle.read::<Self>();
        read.map_err(|error| SchedulerError::new(Class::Infra, format!("read the plan of {}", job.case), error))
    }

    /// Whether the job gets a security group of its own: its instances talk to each other, and the site names none.
    pub(crate) fn needs_group(&self) -> bool {
        self.instances > 1 && self.security_groups.is_empty()
    }

    /// How long its instances live at most, whatever its data sets turn out to be.
    pub(crate) fn longest(&self) -> Lifetime {
        let fetch = if self.data.is_empty() { 0 } else { self.longest_fetch };
        Lifetime { fetch: self.lifetime.fetch.max(fetch), ..self.lifetime }
    }

    /// What one attempt uses at most: its dearest type, until anybody may end it.
    pub(crate) fn most_usage(&self) -> Usage {
        let types = self.offers.iter().map(|offer| &offer.instance_type);
        let price = |kind: &&String| self.prices.per_hour.get(*kind).copied().unwrap_or(f64::INFINITY);
        let dearest = types.max_by(|one, other| price(one).total_cmp(&price(other)));
        let seconds = self.longest().expires_after().saturating_mul(u64::from(self.instances));
        self.prices.usage(dearest.map(|kind| (kind.clone(), seconds)))
    }

    pub(crate) fn in_cluster(&self) -> bool {
        self.placement == Some(Placement::Cluster)
    }

    pub(crate) fn has_efa(&self) -> bool {
        self.network == Some(Network::Efa)
    }
}

/// What the agent of a job is told.
pub(crate) fn orders<'a>(handle: &'a Handle, offer: &Offer, id: &'a str, boot_url: &'a str) -> Orders<'a> {
    Orders {
        id,
        instances: handle.instances,
        timer_minutes: handle.lifetime.timer_minutes(),
        limit: handle.lifetime.limit,
        keep_minutes: handle.lifetime.keep.div_ceil(60),
        fetch: handle.lifetime.fetch,
        is_spot: offer.bought == Bought::Spot,
        keeps_files: !handle.keep_files.is_empty(),
        store: handle.instance_store.as_deref().unwrap_or_default(),
        boot_url,
        pace: Pace { flush: handle.poll_interval.as_secs().max(1), ..Pace::default() },
    }
}

/// A workload as a job.
///
/// # Errors
/// Every reason why this workload cannot run here.
pub(crate) fn planned(workload: &Workload) -> Result<Job, Vec<Diagnostic>> {
    handle(workload).map(|handle| Job::of(workload, NAME, JobHandle::of(handle)))
}

/// What a workload creates.
pub(crate) fn handle(workload: &Workload) -> Result<Handle, Vec<Diagnostic>> {
    let (mut mistakes, place) = (Vec::new(), workload.case.system_partition());
    let mut kept = |mut wrong: Vec<Diagnostic>| mistakes.append(&mut wrong);
    let config = Config::read(workload.own.get(CONFIG).unwrap_or(&Value::Null)).map_err(&mut kept).ok();
    let options = Options::read(&workload.sched_options, &place).map_err(&mut kept).ok();
    let script = script(workload).map_err(&mut kept).ok();
    let limit = limit(workload).map_err(&mut kept).ok();
    match (config, options, script, limit) {
        (Some(config), Some(options), Some(script), Some(limit)) => put_together(workload, config, options, script, limit),
        _ => Err(mistakes),
    }
}

fn put_together(
    workload: &Workload,
    config: Config,
    options: Options,
    (script, pass_env): (String, Vec<String>),
    limit: Duration,
) -> Result<Handle, Vec<Diagnostic>> {
    // Both are required, so that a config without them is not read.
    let (Some(image), Some(types)) = (config.ami.clone(), &config.instance_type) else { return Err(Vec::new()) };
    let types: Vec<String> = types.iter().map(|name| name.0.clone()).collect();
    let (identifier, session) = (&workload.identifier, &workload.session);
    let keep = workload.keep_failed.unwrap_or(KEEP);
    let name = name(workload);
    let subnets = options.subnets.into_iter().map(|subnet| subnet.0).collect::<Vec<_>>();
    let market = config.market.map(|market| market.value).unwrap_or_default();
    let is_metal = types.iter().any(|name| name.contains(".metal"));
    let boot = config.boot_timeout.map_or(Duration::from_mins(if is_metal { 25 } else { 10 }), Into::into);
    signed_long_enough(workload, limit, boot)?;
    Ok(Handle {
        place: Place { region: options.region.0, endpoint_url: options.endpoint_url.map(|address| address.0) },
        prefix: options.bucket.key(&format!("{session}/{identifier}/")),
        bucket: options.bucket,
        token: format!("rfm-{session}-{identifier}"),
        tags: tags(workload, &name, options.tags.0),
        name,
        image,
        offers: offers::offers(market, &types, &subnets),
        instances: workload.num_tasks.max(1),
        volume: PlannedVolume::from(config.volume.as_ref().unwrap_or(&crate::config::Volume::default())),
        security_groups: options.security_groups.into_iter().map(|group| group.0).collect(),
        instance_profile: options.instance_profile.map(|profile| profile.0),
        key_name: options.key_name.map(|key| key.0),
        instance_store: config.instance_store.map(|folder| folder.0),
        network: config.network,
        placement: config.placement.map(|placement| placement.value),
        capacity_reservation: config.capacity_reservation.as_ref().map(|reservation| reservation.0.clone()),
        threads_per_core: config.cpu_options.as_ref().and_then(|options| options.threads_per_core).map(|threads| threads.0),
        lifetime: Lifetime {
            limit: limit.as_secs(),
            keep: options.max_keep.map_or(keep, |most| keep.min(most)).as_secs(),
            boot: boot.as_secs(),
            fetch: 0,
        },
        script,
        pass_env,
        poll_interval: options.poll_interval.unwrap_or(POLL),
        launched: None,
        longest_fetch: config.fetch_timeout.map_or(FETCH, Into::into).as_secs(),
        data: config.data.into_iter().flatten().filter_map(Option::from).collect(),
        staging: workload.staging.clone().map(muster_stage::absolute),
        keep_files: workload.keep_files.clone(),
        ids: Vec::new(),
        prices: options.prices,
        volumes: Vec::new(),
    })
}

fn script(workload: &Workload) -> Result<(String, Vec<String>), Vec<Diagnostic>> {
    match &workload.program {
        Program::Script { text, pass_env } => Ok((text.clone(), pass_env.clone())),
        Program::Container { .. } | Program::Own { .. } => {
            let mistake = Diagnostic::general(format!("`{}` has no script for the scheduler `ec2`", workload.case));
            Err(vec![mistake.hint("set `executable` or `command`")])
        }
    }
}

/// The addresses by which an instance sends its log are signed before its launch.
fn signed_long_enough(workload: &Workload, limit: Duration, boot: Duration) -> Result<(), Vec<Diagnostic>> {
    if limit + boot <= LONGEST_ADDRESS {
        return Ok(());
    }
    let longest = format_duration(LONGEST_ADDRESS.saturating_sub(boot));
    let what = format!(
        "`{}` may run for {}, and the addresses by which its log is sent work for {} after the launch",
        workload.case,
        format_duration(limit),
        format_duration(LONGEST_ADDRESS)
    );
    Err(vec![Diagnostic::general(what).hint(format!("lower `time_limit` to {longest} or less"))])
}

/// Without a limit the timer of an instance would have no end.
fn limit(workload: &Workload) -> Result<Duration, Vec<Diagnostic>> {
    workload.limits.run.ok_or_else(|| {
        let what = format!("`{}` has no time limit, by which an instance ends itself", workload.case);
        vec![Diagnostic::general(what).hint("write `time_limit`: the instance costs money until it ends")]
    })
}

/// `rfm-NAME-abcdefgh`, of letters that are allowed in every name.
fn name(workload: &Workload) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_.".contains(c) { c } else { '-' };
    let check: String = workload.case.check.chars().map(plain).take(NAME_LIMIT).collect();
    format!("rfm-{check}-{}", workload.identifier)
}

/// By these everything that a job creates is found again. `rfm-expires` joins them with the launch, whose time it depends on.
fn tags(workload: &Workload, name: &str, of_site: Vec<(String, String)>) -> BTreeMap<String, String> {
    let ours = [
        ("Name", name.to_owned()),
        ("rfm", workload.identifier.to_string()),
        ("rfm-managed", "true".to_owned()),
        ("rfm-session", workload.session.to_string()),
        ("rfm-check", workload.case.check.chars().take(256).collect()),
    ];
    of_site.into_iter().chain(ours.map(|(name, value)| (name.to_owned(), value))).collect()
}
