//! Decides which instances stay when a case has ended.

use crate::decide::seen::{Member, Phase};
use std::collections::BTreeSet;

/// Its script ran, and its agent keeps the instance: it waits for its timer.
fn has_failed(member: &Member) -> bool {
    let Some(said) = &member.said else { return false };
    match said.state {
        Phase::Done | Phase::Timeout | Phase::Rebooted => said.exit.is_some_and(|exit| exit != 0),
        Phase::Booted
        | Phase::Ready
        | Phase::Running
        | Phase::Sending
        | Phase::Full
        | Phase::Interrupted
        | Phase::Failed
        | Phase::Stopped => false,
    }
}

/// The instances that are kept to be looked at: if the script of the first has failed, the first and all others that have. `keep`: for so many seconds;
/// `live`: those that have not ended.
pub(crate) fn kept(keep: u64, members: &[Member], live: &BTreeSet<&str>) -> Vec<String> {
    if keep == 0 || !members.first().is_some_and(has_failed) {
        return Vec::new();
    }
    let kept = members.iter().filter(|member| has_failed(member));
    kept.filter(|member| live.contains(&*member.id)).map(|member| member.id.clone()).collect()
}

/// All agents have said that they end their instances.
pub(crate) fn ends_itself(keep: u64, members: &[Member]) -> bool {
    let ends = |member: &Member| member.exit().is_some_and(|exit| exit == 0 || keep == 0);
    !members.is_empty() && members.iter().all(ends)
}
