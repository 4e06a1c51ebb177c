//! Planning: a workload as a handle from which any process of this machine can launch it.

use crate::{LocalScheduler, handle::LocalHandle};
use muster_core::job::{
    scheduler::Job,
    scheduler_kind::SchedulerKind,
    workload::{Program, Staging, Workload},
};
use muster_text::diagnostic::Diagnostic;

impl LocalScheduler {
    pub(crate) fn planned(&self, workload: &Workload) -> Result<Job, Vec<Diagnostic>> {
        let Program::Script { text, pass_env } = &workload.program else {
            let mistake = Diagnostic::general(format!("`{}` has no script for the scheduler `local`", workload.case));
            return Err(vec![mistake.hint("set `executable` or `command`")]);
        };
        if let Some(node) = workload.sched_options.get("node").and_then(muster_text::Value::as_str)
            && node != self.here.host
        {
            let mistake =
                Diagnostic::general(format!("`{}` is to run on {node}, and `local` runs on this machine", workload.case));
            return Err(vec![mistake.hint("leave the node out, or name this one")]);
        }
        let handle = LocalHandle {
            script: text.clone(),
            staging: workload.staging.clone().map(absolute),
            pass_env: pass_env.clone(),
            machine: self.here.clone(),
            leader: None,
            started: None,
        };
        Ok(Job {
            identifier: workload.identifier.clone(),
            session: workload.session.clone(),
            case: workload.case.to_string(),
            scheduler: SchedulerKind::Local,
            stage: workload.stage.clone(),
            handle: handle.into_value(),
        })
    }
}

/// Another process may launch it, with another working directory.
fn absolute(staging: Staging) -> Staging {
    Staging { folder: std::path::absolute(&staging.folder).unwrap_or(staging.folder), ..staging }
}
