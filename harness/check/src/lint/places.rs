//! Where a check runs, on all sites that are known.

use super::{Report, Subject};
use crate::files::check_file::layers;
use muster_core::job::scheduler_kind::SchedulerKind;

pub(super) fn no_time_limit(subject: &Subject<'_>, report: &mut Report) {
    // A null sets no limit on purpose.
    let sets_limit = layers(subject.tree()).any(|layer| layer.get("time_limit").is_some());
    let endless = subject.cases.iter().map(|case| &case.place).find(|place| {
        let on_cluster = matches!(place.partition.scheduler, SchedulerKind::K8s | SchedulerKind::Ipu | SchedulerKind::Ec2);
        on_cluster && place.partition.time_limit.is_none()
    });
    if let Some(place) = endless.filter(|_| !sets_limit) {
        let message = format!("this job has no time limit on {}:{}", place.system.name, place.partition.name);
        report.found("no-time-limit", subject.check.span, message, "write `time_limit: 30m`, or null if that is intended");
    }
}

pub(super) fn runs_nowhere(subject: &Subject<'_>, report: &mut Report) {
    // Without `valid_systems` it runs where those run that use it, otherwise that is reported already.
    if subject.knows_sites && subject.cases.is_empty() && subject.check.runs_by_itself() {
        let place = subject.tree().get("valid_systems").map_or(subject.check.span, |node| node.span);
        let hint = "look at the features and names of the site files, or give the right ones with -C";
        report.found("runs-nowhere", place, "no partition of the known sites takes this check", hint);
    }
}
