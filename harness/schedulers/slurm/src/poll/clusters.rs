//! The clusters of a session. Each is one for all partitions there.

use super::Cluster;
use crate::plan::{Handle, Place};
use muster_core::{error::SchedulerError, job::scheduler::Job};
use parking_lot::Mutex;
use std::{collections::HashMap, path::PathBuf, sync::Arc};

#[derive(Debug)]
pub(crate) struct Clusters {
    /// Where the program of the harness is.
    program: Option<PathBuf>,
    known: Mutex<HashMap<Place, Arc<Cluster>>>,
}

impl Clusters {
    pub(crate) fn new(program: Option<PathBuf>) -> Self {
        Self { program, known: Mutex::default() }
    }

    /// That of a place, which all jobs there share.
    pub(crate) fn at(&self, place: &Place) -> Arc<Cluster> {
        let mut known = self.known.lock();
        let cluster = known.entry(place.clone()).or_insert_with(|| Cluster::new(place.clone(), self.program.as_ref()));
        Arc::clone(cluster)
    }

    /// That of a job.
    ///
    /// # Errors
    /// It is not a job of Slurm's.
    pub(crate) fn of(&self, job: &Job) -> Result<Arc<Cluster>, SchedulerError> {
        Ok(self.at(&Handle::of(job)?.place))
    }

    /// Stops looking.
    pub(crate) fn close(&self) {
        self.known.lock().values().for_each(|cluster| cluster.close());
    }
}
