//! The watches that fail, and why.

use super::follow::Source;
use crate::client::{ApiError, Why};
use muster_core::{
    case::Identifier,
    error::{Class, SchedulerError},
};
use std::collections::BTreeMap;
use tokio::sync::watch;

/// One for all watches of a session in a place.
#[derive(Clone)]
pub(super) struct Health(watch::Sender<Outages>);

/// The watches that fail, each with its last error.
pub(crate) type Outages = BTreeMap<Source, ApiError>;

/// Reports the state of one watch. When it is dropped, the watch counts as healthy.
pub(super) struct Report {
    health: Health,
    source: Source,
}

impl Health {
    pub(super) fn new() -> Self {
        Self(watch::Sender::default())
    }

    pub(super) fn receiver(&self) -> watch::Receiver<Outages> {
        self.0.subscribe()
    }

    pub(super) fn of(&self, source: Source) -> Report {
        Report { health: self.clone(), source }
    }
}

impl Report {
    pub(super) fn up(&self) {
        self.health.0.send_if_modified(|outages| outages.remove(&self.source).is_some());
    }

    pub(super) fn down(&self, error: &ApiError) {
        self.health.0.send_if_modified(|outages| {
            let old = outages.insert(self.source.clone(), error.clone());
            old.is_none_or(|old| old.why() != error.why())
        });
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.up();
    }
}

/// The error of a watch that a job depends on. Not while the error is transient: what runs
/// goes on, and the job's own limits apply.
pub(crate) fn watch_error(outages: &Outages, job: &Identifier, concerns: impl Fn(&Source) -> bool) -> Result<(), SchedulerError> {
    let of_job = |source: &Source| source.job.as_ref().map_or_else(|| concerns(source), |owner| owner == job);
    let down = outages.iter().find(|(source, error)| of_job(source) && !passes(error.why()));
    match down {
        None => Ok(()),
        Some((Source { job: Some(_), selector: Some(selector), .. }, error)) if error.why() == Why::Invalid => {
            let what = format!("watch pods by `pods.selector: {selector}`: correct it in `k8s_workloads`");
            Err(SchedulerError::new(Class::Config, what, error.message()))
        }
        Some((_, error)) => Err(error.clone().classify()),
    }
}

fn passes(why: Why) -> bool {
    why.passes() || why == Why::Expired
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api::Resource, client::testing};

    fn source(kind: &str, job: Option<&str>) -> Source {
        let job = job.map(|job| Identifier::parse(job).unwrap());
        Source { resource: Resource::of("v1", kind), selector: Some("a b".into()), job }
    }

    #[test]
    fn only_what_cannot_pass_ends_a_job_and_only_its_own() {
        let (mine, other) = (Some("aaaaaaaa"), Some("bbbbbbbb"));
        let rows = [
            (source("Pod", None), Why::NotAllowed, true),
            (source("Job", None), Why::NotServed, true),
            (source("Pod", None), Why::Unauthorized, true),
            (source("JobSet", None), Why::NotServed, false),
            (source("Pod", None), Why::Transient, false),
            (source("Pod", None), Why::Withdrawn, false),
            (source("Pod", None), Why::Expired, false),
            (source("Pod", other), Why::Invalid, false),
            (source("Pod", other), Why::NotAllowed, false),
            (source("Pod", mine), Why::Invalid, true),
        ];
        for (source, why, ends) in rows {
            let outages = Outages::from([(source.clone(), testing::refused(why))]);
            let job = Identifier::parse("aaaaaaaa").unwrap();
            let error = watch_error(&outages, &job, |source| ["Pod", "Job"].contains(&source.resource.kind.as_str()));
            assert_eq!(error.is_err(), ends, "{source:?} {why:?}");
        }
    }

    #[test]
    fn a_watch_that_has_ended_is_not_down() {
        let health = Health::new();
        let report = health.of(source("Pod", None));
        report.down(&testing::refused(Why::Transient));
        assert_eq!(health.receiver().borrow().len(), 1);
        drop(report);
        assert_eq!(health.receiver().borrow().len(), 0);
    }
}
