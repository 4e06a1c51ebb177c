//! The methods of the trait, each led to where it is done. One instance for all partitions of a session.

use crate::{
    cleanup,
    cloud::{Cloud, CloudError},
    data, inventory, launch, logs, outputs,
    plan::{self, Handle, Place},
    poll::{Clock, Region},
    preflight::{self, Access, Answered, Preflight, Writes, doctor},
};
use futures_util::{StreamExt, future::try_join_all, stream};
use muster_core::{
    case::SessionId,
    error::{Class, SchedulerError, chain},
    job::{
        inventory::{Examined, Found, Inventory, Removed, Scope},
        scheduler::{
            CASES, CallLimits, Chunks, Disposition, Finding, Fut, Job, JobStatus, Launch, Leftovers, LogMarks, Scheduler, Staged,
            probed_cases,
        },
        workload::Workload,
    },
    probe::{PART, Probe},
    usage::Usage,
};
use muster_stage::Stager;
use muster_text::diagnostic::Diagnostic;
use parking_lot::Mutex;
use std::{collections::BTreeMap, pin::Pin, sync::Arc, time::Duration};
use tokio::time::timeout;

/// How many that have expired are removed at once.
const AT_ONCE: usize = 16;

/// Opens the connection to a place.
pub(crate) type Connect = Box<dyn Fn(&Place) -> Result<Arc<dyn Cloud>, CloudError> + Send + Sync>;

pub(crate) struct Ec2 {
    connect: Connect,
    clock: Clock,
    regions: Mutex<BTreeMap<Place, Arc<Region>>>,
    stager: Stager,
}

impl Ec2 {
    pub(crate) fn new(connect: Connect, clock: Clock) -> Self {
        Self { connect, clock, regions: Mutex::default(), stager: Stager::default() }
    }

    /// The region at a place. No request is sent.
    fn at(&self, place: &Place) -> Result<Arc<Region>, SchedulerError> {
        let mut regions = self.regions.lock();
        if let Some(region) = regions.get(place) {
            return Ok(Arc::clone(region));
        }
        let connected = (self.connect)(place);
        let cloud =
            connected.map_err(|error| SchedulerError::new(Class::Config, format!("connect to {}", place.region), error))?;
        let region = Region::new(cloud, Arc::clone(&self.clock));
        regions.insert(place.clone(), Arc::clone(&region));
        Ok(region)
    }

    /// What the planned would fail of, each by its position.
    async fn findings(&self, handles: &[Option<Handle>], access: Access) -> Result<Preflight, SchedulerError> {
        let mut by_place: BTreeMap<&Place, Vec<(usize, &Handle)>> = BTreeMap::new();
        for (at, handle) in handles.iter().enumerate() {
            if let Some(handle) = handle {
                by_place.entry(&handle.place).or_default().push((at, handle));
            }
        }
        // Side by side: a place that is silent takes no time from the others.
        let asked = by_place.into_iter().map(|(place, planned)| async move {
            let region = self.at(place)?;
            let writes = match access {
                Access::Reads => Writes::Nothing,
                Access::ReadsAndWrites => Writes::AnObject(&region.written),
            };
            Ok(preflight::findings(&*region.cloud, &region.resolver, &planned, region.now(), writes).await)
        });
        let mut all = Preflight::default();
        all.extend(try_join_all(asked).await?);
        Ok(all)
    }

    fn of(&self, job: &Job) -> Result<Arc<Region>, SchedulerError> {
        self.at(&Handle::of(job)?.place)
    }
}

/// Removes what other sessions have left and what has expired, beside the launches.
fn tidy(region: &Arc<Region>, job: &Job) {
    let Ok(handle) = Handle::of(job) else { return };
    if !region.is_to_be_tidied() {
        return;
    }
    let (region, spot) = (Arc::clone(region), inventory::place_of(&handle));
    tokio::spawn(async move {
        match inventory::expired(&region, &spot).await {
            Ok(found) => {
                let remove = async |found: Found| {
                    tracing::info!(what = found.line(), "removes what has expired on EC2");
                    if let Err(error) = cleanup::clean(&region, &found.job, Disposition::Delete).await {
                        tracing::warn!(error = chain(&error), what = found.line(), "what has expired on EC2 is not removed");
                    }
                };
                stream::iter(found).map(remove).buffer_unordered(AT_ONCE).for_each(|()| async {}).await;
            }
            Err(error) => tracing::warn!(error = chain(&error), "it is not known what has expired on EC2"),
        }
    });
}

impl Scheduler for Ec2 {
    /// A request may be sent again for minutes, a console lags for one, and metal takes its time to end.
    fn limits(&self) -> CallLimits {
        CallLimits {
            launch: Duration::from_mins(5),
            silence: Duration::from_secs(90),
            cleanup: cleanup::ENDS_WITHIN + Duration::from_mins(2),
            ..CallLimits::default()
        }
    }

    fn plan(&self, workload: &Workload) -> Result<Job, Vec<Diagnostic>> {
        plan::planned(workload)
    }

    fn preview(&self, workload: &Workload) -> Result<Option<String>, Vec<Diagnostic>> {
        plan::handle(workload).map(|handle: Handle| Some(plan::preview(&handle)))
    }

    fn preflight<'a>(&'a self, workloads: &'a mut (dyn Iterator<Item = Workload> + Send)) -> Fut<'a, Vec<Finding>> {
        // What cannot be planned is left to `plan`.
        let handles: Vec<Option<Handle>> = workloads.map(|workload| plan::handle(&workload).ok()).collect();
        Box::pin(async move { self.findings(&handles, Access::ReadsAndWrites).await.map(|found| found.findings) })
    }

    /// They write nothing: whether the bucket takes an object, the preflight of a run sees.
    fn probes<'a>(&'a self, examined: Examined<'a>) -> Vec<Probe<'a>> {
        let place = doctor::place(examined.options);
        let silent = doctor::silent(CASES, place.as_ref().ok());
        let region = place.map(|place| self.at(&place));
        vec![
            Probe::new(doctor::CREDENTIALS, doctor::credentials(region)),
            Probe::new(CASES, async move {
                let mut names = Vec::new();
                let workloads = examined.workloads.all().inspect(|workload| names.push(workload.case.display.clone()));
                let handles: Vec<Option<Handle>> = workloads.map(|workload| plan::handle(&workload).ok()).collect();
                let asked = timeout(PART, self.findings(&handles, Access::Reads)).await;
                match asked {
                    Err(_) => vec![silent],
                    Ok(Ok(Preflight { findings, answered: Answered::NotAll })) if findings.is_empty() => vec![silent],
                    Ok(Ok(Preflight { findings, answered: Answered::NotAll })) => {
                        probed_cases(&names, Ok(findings)).into_iter().chain([silent]).collect()
                    }
                    Ok(answer) => probed_cases(&names, answer.map(|found| found.findings)),
                }
            }),
        ]
    }

    /// Copies `sourcesdir` into the stage folder and packs it, so that a launch, which no signal ends, only sends it; and copies data
    /// sets of others into the bucket.
    fn stage<'a>(&'a self, job: &'a Job, mut cancelled: Pin<Box<dyn Future<Output = ()> + Send + 'a>>) -> Option<Staged<'a>> {
        let handle = Handle::of(job).ok().filter(|handle| handle.launched.is_none())?;
        let sources = data::copied(&handle).map(|(set, ..)| set.source.to_string());
        let folder = handle.staging.as_ref().map(|staging| staging.folder.display().to_string());
        let what: Vec<String> = folder.into_iter().chain(sources).collect();
        if what.is_empty() {
            return None;
        }
        let done = Box::pin(async move {
            if let Some(staging) = handle.staging.clone() {
                self.stager.stage(staging, job.stage.clone(), cancelled.as_mut()).await?;
            }
            let region = self.of(job)?;
            let prepared = async {
                if handle.staging.is_some() {
                    launch::pack_ahead(&region, job, &handle).await?;
                }
                region.copies.bring(data::Here { cloud: &*region.cloud, now: region.now(), folder: &job.stage }, &handle).await
            };
            tokio::select! {
                prepared = prepared => prepared,
                () = cancelled.as_mut() => Err(SchedulerError::plain(Class::Infra, "what the instances get was not prepared to its end")),
            }
        });
        Some(Staged { what: what.join(", "), done })
    }

    fn launch<'a>(&'a self, job: &'a Job) -> Fut<'a, Launch> {
        Box::pin(async move {
            let region = self.of(job)?;
            tidy(&region, job);
            launch::launch(&region, job).await
        })
    }

    fn wait<'a>(&'a self, job: &'a Job, seen: Option<&'a JobStatus>) -> Fut<'a, JobStatus> {
        Box::pin(async move {
            let region = self.of(job)?;
            let status = region.next_status(job, seen).await?;
            let JobStatus::Ended(mut ending) = status else { return Ok(status) };
            // Fetching what it has left takes none of its time.
            if let Some(ending) = outputs::first_said(job, &ending, seen)? {
                return Ok(ending);
            }
            let note = outputs::bring(&region, job, &ending).await?;
            ending.notes.extend(note);
            Ok(JobStatus::Ended(ending))
        })
    }

    fn collect_logs<'a>(&'a self, job: &'a Job, from: LogMarks) -> Chunks<'a> {
        logs::log(self.of(job), job, from)
    }

    fn cleanup<'a>(&'a self, job: &'a Job, how: Disposition) -> Fut<'a, Leftovers> {
        Box::pin(async move { cleanup::clean(&self.of(job)?, job, how).await })
    }

    fn usage(&self, job: &Job) -> Usage {
        let (Ok(handle), Ok(region)) = (Handle::of(job), self.of(job)) else { return Usage::default() };
        handle.prices.usage(region.used.take(&job.id(), region.now()))
    }

    fn most_usage(&self, workload: &Workload) -> Usage {
        plan::handle(workload).map(|handle| handle.most_usage()).unwrap_or_default()
    }

    /// Removes what an interrupted preflight has written.
    fn close<'a>(&'a self, _over: Option<&'a SessionId>) -> Fut<'a, Vec<Removed>> {
        Box::pin(async move {
            let regions: Vec<Arc<Region>> = self.regions.lock().values().cloned().collect();
            let mut left = Vec::new();
            for region in regions {
                let aws = &region.cloud.place().region;
                let line = |(object, error)| format!("{object} is not removed: {error}; `aws s3 rm {object} --region {aws}`");
                left.extend(region.written.remove(&*region.cloud).await.into_iter().map(line));
            }
            if left.is_empty() { Ok(Vec::new()) } else { Err(SchedulerError::plain(Class::Outage, left.join("; "))) }
        })
    }

    fn inventory<'a>(&'a self, scope: &'a Scope) -> Fut<'a, Inventory> {
        Box::pin(async move {
            let (places, blind) = inventory::places(scope);
            let mut all = Inventory { blind, ..Inventory::default() };
            for (place, spot) in places {
                let looked = match self.at(&place) {
                    Ok(region) => inventory::look(&region, &spot, &scope.jobs).await,
                    Err(error) => Err(error),
                };
                match looked {
                    Ok(looked) => {
                        all.found.extend(looked.found);
                        all.absent.extend(looked.absent);
                    }
                    Err(error) => match inventory::of_no_region(&place, &scope.jobs) {
                        Some(none) if CloudError::is_no_region(&error) => {
                            all.absent.extend(none.absent);
                            all.notes.extend(none.notes);
                        }
                        _ => all.blind.push(error),
                    },
                }
            }
            all.found.sort_by(|one, other| one.job.identifier.cmp(&other.job.identifier));
            Ok(all)
        })
    }
}
