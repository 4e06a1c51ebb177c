//! The scheduler on a region in memory, with a clock that stands still while nobody waits.

mod cleanup;
mod inventory;
mod launch;
mod logs;
mod poll;

use crate::{
    cloud::{CloudError, fake::Fake},
    plan::{
        Handle,
        testing::{plain, site, workload},
    },
    scheduler::Ec2,
};
use muster_core::{
    case::Identifier,
    error::Class,
    job::{
        scheduler::{Chunk, Job, JobStatus, Launch, LogMarks, Scheduler},
        workload::Workload,
    },
};
use muster_text::time::Timestamp;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// When all tests begin.
const START: i64 = 1_796_000_000;

struct World {
    fake: Arc<Fake>,
    ec2: Ec2,
}

impl World {
    fn new() -> Self {
        Self::with(Arc::new(Fake::default()))
    }

    /// Another process, with the same region.
    fn with(fake: Arc<Fake>) -> Self {
        let (began, cloud) = (Instant::now(), Arc::clone(&fake));
        let clock = Arc::new(move || Timestamp::of_seconds(START).plus(began.elapsed()));
        Self { ec2: Ec2::new(Box::new(move |_| Ok(cloud.clone())), clock), fake }
    }

    /// Two zones with no room in either.
    fn is_full(&self) {
        for subnet in ["subnet-0a1b2c3d", "subnet-1b2c3d4e"] {
            self.fake.state().capacity.insert(("c7i.8xlarge".to_owned(), subnet.to_owned()), 0);
        }
    }

    async fn launched(&self, job: &Job) -> Job {
        match self.ec2.launch(job).await.unwrap() {
            Launch::Launched(job) => job,
            other => panic!("{other:?}"),
        }
    }

    /// What an agent says, and its instance with it.
    fn says(&self, job: &Job, rank: u32, state: &str, exit: Option<i32>) {
        self.says_all(job, rank, state, exit, 0);
    }

    fn says_all(&self, job: &Job, rank: u32, state: &str, exit: Option<i32>, log_bytes: u64) {
        let said = json!({
            "v": 1, "rank": rank, "ip": format!("10.0.0.{rank}"), "type": "c7i.8xlarge", "zone": "eu-west-1a",
            "state": state, "exit": exit, "started": START, "log_bytes": log_bytes, "t": START + 60,
        });
        self.put(job, &format!("{rank}/status"), said.to_string().as_bytes());
    }

    fn put(&self, job: &Job, name: &str, bytes: &[u8]) {
        let handle = Handle::of(job).unwrap();
        self.fake.put_now(&handle.bucket.name, &format!("{}{name}", handle.prefix), bytes);
    }

    fn set(&self, job: &Job, state: &str, reason: Option<(&str, &str)>) {
        for id in &Handle::of(job).unwrap().ids {
            self.fake.set(id, state, reason);
        }
    }

    /// The first status that is not this one.
    async fn next(&self, job: &Job, seen: Option<&JobStatus>) -> JobStatus {
        self.ec2.wait(job, seen).await.unwrap()
    }

    /// How it ends.
    async fn end(&self, job: &Job) -> Result<JobStatus, String> {
        let mut seen = None;
        loop {
            match self.ec2.wait(job, seen.as_ref()).await {
                Ok(status @ (JobStatus::Ended(_) | JobStatus::Gone { .. })) => return Ok(status),
                Ok(status) => seen = Some(status),
                Err(error) if error.class == Class::Outage => tokio::time::sleep(Duration::from_secs(1)).await,
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// The bytes of each section, and what is missing of them.
    async fn log(&self, job: &Job) -> (Vec<(String, Vec<u8>)>, Vec<String>) {
        use futures_util::StreamExt;
        let (mut sections, mut gaps): (Vec<(String, Vec<u8>)>, Vec<String>) = (Vec::new(), Vec::new());
        let mut chunks = self.ec2.collect_logs(job, LogMarks::default());
        while let Some(chunk) = chunks.next().await {
            match chunk.unwrap() {
                Chunk::Open(_, origin) => sections.push((origin.name, Vec::new())),
                Chunk::Bytes { section, at, data, .. } => {
                    let (_, bytes) = sections.iter_mut().find(|(name, _)| *name == section).unwrap();
                    if at != bytes.len() as u64 {
                        gaps.push(format!("{} before {at}", at - bytes.len() as u64));
                        bytes.resize(usize::try_from(at).unwrap(), b'?');
                    }
                    bytes.extend(data);
                }
                Chunk::Gap { why, .. } => gaps.push(why),
                _ => {}
            }
        }
        (sections, gaps)
    }

    /// What is there of anybody.
    fn there(&self) -> [usize; 5] {
        let state = self.fake.state();
        let live = state.instances.iter().filter(|instance| instance.state != "terminated").count();
        [live, state.groups.len(), state.placement_groups.len(), state.volumes.len(), state.objects.len()]
    }

    fn count(&self, action: &str) -> usize {
        self.fake.state().calls.iter().filter(|call| **call == action).count()
    }
}

fn job_of(workload: &Workload) -> Job {
    crate::plan::planned(workload).unwrap()
}

/// A job of one instance.
fn job() -> Job {
    job_of(&workload(plain(), site()))
}

/// One of some, each with an identifier of its own.
fn numbered(number: u8, instances: u32) -> Job {
    let identifier = Identifier::from_letters([0, 0, 0, 0, 0, 0, number / 26, number % 26]);
    job_of(&Workload { identifier, num_tasks: instances, ..workload(plain(), site()) })
}

fn lost(action: &str) -> CloudError {
    CloudError::Unreached { service: "EC2", action: action.to_owned(), why: "connection reset".to_owned() }
}
