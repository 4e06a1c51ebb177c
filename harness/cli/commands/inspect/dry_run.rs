//! `--dry-run`: what would be launched, in full, and nothing launched.

use crate::{
    args::{Cli, DryRun},
    commands::session::plan::{self, Purpose},
    inputs::selection::{self, Depth},
    terminal::Terminal,
    wiring::{self, k8s_plans},
};
use anyhow::Context;
use muster_check::{
    cases::test_case::{LaunchFacts, Rendered, TestCase},
    selection::adjust::Adjustments,
};
use muster_core::{
    decisions::pipeline::EXIT_USAGE,
    error::{Class, chain},
    job::workload::{Program, Workload},
};
use muster_k8s::{Contexts, Kubernetes, Plan};
use muster_session::{
    runtime,
    session_loop::preflight::{self, Refused},
};
use muster_text::{Value, diagnostic::Diagnostic, time::format_duration, yaml};
use std::fmt::Write;
use tokio::runtime::Runtime;

/// Prints every selected case's script or objects.
pub fn dry_run(cli: &Cli, how: DryRun, terminal: Terminal) -> anyhow::Result<u8> {
    let selection = selection::select(cli, Depth::Every, terminal.live)?;
    terminal.diagnostics(&selection.diagnostics, &selection.sources);
    if selection.has_errors() {
        return Ok(EXIT_USAGE);
    }
    let runtime = runtime::build().context("start the runtime")?;
    let plan = plan::plan(cli, selection, Purpose::Show, &plan::session_id(), &runtime, terminal)?;
    let Some(plan) = plan else { return Ok(0) };
    let selection = &plan.selection;
    let contexts = if selection.cases.iter().any(k8s_plans::is_ours) { Contexts::to_plan_with()? } else { Contexts::unknown() };
    let server = if how == DryRun::Server { Some(Kubernetes::within(contexts.clone(), &wiring::harness())) } else { None };
    let foreseen = server.as_ref().map(|kubernetes| foreseen(&selection.cases, &plan.adjustments, &runtime, kubernetes));
    let (mut text, mut mistakes, mut refused) = (String::new(), Vec::new(), 0);
    for case in &selection.cases {
        // Every case was rendered once already, when it was selected.
        if let Some(rendered) = plan.rendered(case) {
            let (shown, planned) = match shown(case, &rendered, &contexts) {
                Ok(shown) => shown,
                Err(found) => {
                    k8s_plans::add_new(&mut mistakes, found);
                    continue;
                }
            };
            text += &shown;
            let why = foreseen.as_ref().and_then(|foreseen| foreseen.get(&case.name));
            if let Some(why) = why {
                refused += 1;
                let _ = writeln!(text, "# NOT LAUNCHED: {why}");
            } else if let (Some(kubernetes), Some(planned)) = (&server, planned) {
                match runtime.block_on(kubernetes.dry_run(&planned.handle)) {
                    Ok(warnings) => text += &accepted(&warnings),
                    Err(error) => {
                        refused += 1;
                        let what = if error.class == Class::Outage { "NOT VALIDATED" } else { "REFUSED by the API server" };
                        let _ = writeln!(text, "# {what}: {}", chain(&error));
                    }
                }
            }
            text.push('\n');
        }
    }
    terminal.print(&text);
    terminal.diagnostics(&mistakes, &selection.sources);
    if refused > 0 {
        terminal.note(&format!("the API server did not accept {refused} of {} case(s)", selection.cases.len()));
    }
    let has_mistakes = !mistakes.is_empty() || refused > 0;
    Ok(if has_mistakes {
        EXIT_USAGE
    } else if !plan.restored.is_empty() {
        0
    } else {
        selection.report_if_empty(terminal)
    })
}

/// The cases that a session would not launch, and why.
fn foreseen(cases: &[TestCase], adjustments: &Adjustments, runtime: &Runtime, kubernetes: &Kubernetes) -> Refused {
    let cases = cases.iter().filter(|case| k8s_plans::is_ours(case));
    let session = LaunchFacts::rehearsal().session;
    runtime.block_on(preflight::ask(kubernetes, cases, adjustments, &session))
}

/// What the API server made of it.
fn accepted(warnings: &[String]) -> String {
    let mut text = "# accepted by the API server\n".to_owned();
    for warning in warnings {
        let _ = writeln!(text, "# it warns: {warning}");
    }
    text
}

/// A case's script, or its objects and the plan that they are of.
fn shown(case: &TestCase, rendered: &Rendered, contexts: &Contexts) -> Result<(String, Option<Plan>), Vec<Diagnostic>> {
    let mut text = format!("# {} /{}\n", case.name, case.name.hash);
    if let Some(reason) = &rendered.skip {
        return Ok((text + &format!("# skipped: {reason}\n"), None));
    }
    let workload = &rendered.workload;
    let limit = |limit: Option<std::time::Duration>| limit.map_or_else(|| "none".to_owned(), format_duration);
    let _ = writeln!(
        text,
        "# scheduler {}, {} task(s), time_limit {}, max_pending_time {}",
        rendered.about.scheduler,
        workload.num_tasks,
        limit(workload.limits.run),
        limit(workload.limits.pending),
    );
    if let Some(staging) = &workload.staging {
        let linked: Vec<_> = staging.readonly_files.iter().map(String::as_str).collect();
        let linked = if linked.is_empty() { String::new() } else { format!(", {} linked", linked.join(", ")) };
        let _ = writeln!(text, "# stages {}{linked}", staging.folder.display());
    }
    if !muster_k8s::SCHEDULER.names.contains(&&*rendered.about.scheduler) {
        return Ok((text + &program(workload), None));
    }
    let plan = k8s_plans::planned(case, workload, contexts)?;
    Ok((text + &planned(&plan, contexts), Some(plan)))
}

/// The objects as they would be sent.
fn planned(plan: &Plan, contexts: &Contexts) -> String {
    let place = &plan.handle.place;
    let context = match &place.context {
        Some(context) => format!("context {context}"),
        None if contexts.unknown => "no kubeconfig, so the context is not known".to_owned(),
        None => "in-cluster".to_owned(),
    };
    let pods = plan.handle.expected_pods.map_or_else(|| "?".to_owned(), |pods| pods.to_string());
    let mut text = format!("# {context}, namespace {}, {pods} pod(s)\n", place.namespace);
    for note in &plan.notes {
        let _ = writeln!(text, "# {note}");
    }
    text + &plan.handle.objects.iter().map(|object| document(&object.manifest)).collect::<String>()
}

fn program(workload: &Workload) -> String {
    let own = workload.own.values().map(document);
    own.collect::<String>()
        + &match &workload.program {
            Program::Script { text, .. } => text.clone(),
            Program::Container { image, script, .. } => format!("# in a container of {image}\n{script}"),
            Program::Own { .. } => String::new(),
        }
}

fn document(value: &Value) -> String {
    format!("---\n{}", yaml::to_text(value))
}
