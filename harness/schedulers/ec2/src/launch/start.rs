//! Sees whether launched instances start. EC2 may take a request and then have no room: its instances end before they have run.

use crate::{
    cloud::Instance,
    decide::{
        UNTIL_LISTED,
        offer::{NO_ROOM_AT_START, Refused},
        seen::State,
    },
    poll::{Region, state},
};
use muster_core::job::scheduler::Job;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// For EC2, to start instances or to end them. What is pending for longer is left to the looks at the job.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// It ended because there was no room for it.
pub(super) fn had_no_room(instance: &Instance) -> bool {
    state(&instance.state) == State::Ended && instance.reason.as_ref().is_some_and(|(code, _)| code == NO_ROOM_AT_START)
}

/// Waits until the instances run. If there was no room for one, the others end, and that is how the offer was refused.
pub(super) async fn refused(region: &Region, job: &Job, launched: &[Instance], offer: usize) -> Option<Refused> {
    let began = Instant::now();
    loop {
        // Where EC2 does not answer, it is as if they had started.
        let listed = region.listed(&job.session).await.ok()?;
        let ours: Vec<&Instance> = listed.iter().filter(|one| launched.iter().any(|other| other.id == one.id)).collect();
        if let Some(without) = ours.iter().find(|one| had_no_room(one)) {
            let (code, message) = without.reason.clone().unwrap_or_default();
            let ids: Vec<String> = launched.iter().map(|one| one.id.clone()).collect();
            region.cloud.terminate(&without.instance_type, &ids).await.ok()?;
            return Some(Refused { offer, code, message, status: 500 });
        }
        let are_open = ours.len() < launched.len() || ours.iter().any(|one| state(&one.state) == State::Pending);
        if !are_open || began.elapsed() >= STARTS_WITHIN {
            return None;
        }
        sleep(UNTIL_LISTED).await;
    }
}
