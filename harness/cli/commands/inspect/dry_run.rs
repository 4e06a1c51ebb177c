//! `--dry-run`: what would be launched, in full, and nothing launched.

use crate::{
    args::{Cli, DryRun},
    commands::session::plan::{self, Plan, Purpose},
    inputs::selection::{self, Depth},
    terminal::Terminal,
    wiring::{Connections, budget, patience, plans},
};
use anyhow::Context;
use muster_check::cases::test_case::{LaunchFacts, Rendered, TestCase};
use muster_core::{
    decisions::pipeline::EXIT_USAGE,
    error::{Class, chain},
    job::{
        descriptor::NamedScheduler,
        scheduler::Scheduler,
        workload::{Program, Workload},
    },
};
use muster_session::{
    runtime,
    session_loop::preflight::{self, Refused},
};
use muster_text::{Value, diagnostic::Diagnostic, time::format_duration, yaml};
use std::{collections::BTreeSet, fmt::Write};
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
    let planners = Connections::new(schedulers(&plan), |scheduler| scheduler.planner)?;
    let mut servers = if how == DryRun::Server { Some(Servers::ask(&plan, &runtime, terminal)?) } else { None };
    let (mut text, mut mistakes, mut refused, mut unknown) = (String::new(), Vec::new(), 0, 0);
    for case in &selection.cases {
        // Every case was rendered once already, when it was selected.
        let Some(rendered) = plan.rendered(case) else { continue };
        let named = plan.adjustments.scheduler(&case.place.partition);
        match shown(&rendered, planners.get(named).map(|planner| &**planner)) {
            Ok(shown) => text += &shown,
            Err(found) => {
                plans::add_new(&mut mistakes, plans::in_check(case, found));
                continue;
            }
        }
        match servers.as_mut().and_then(|servers| servers.answer(case, named, &rendered)) {
            Some(Answer::Accepted(answer)) => text += &answer,
            Some(Answer::Refused(answer)) => {
                refused += 1;
                text += &answer;
            }
            Some(Answer::None(why)) => {
                unknown += 1;
                let _ = writeln!(text, "# NOT VALIDATED: {why}");
            }
            None => {}
        }
        text.push('\n');
    }
    terminal.print(&text);
    terminal.diagnostics(&mistakes, &selection.sources);
    if refused > 0 {
        terminal.note(&format!("the server did not accept {refused} of {} case(s)", selection.cases.len()));
    }
    if unknown > 0 {
        terminal.note(&format!("the server gave no answer for {unknown} of {} case(s)", selection.cases.len()));
    }
    let Plan { adjustments, policy, .. } = &plan;
    let is_too_much = budget::is_exceeded(cli.rounds.budget(), &selection.cases, adjustments, *policy, terminal)?;
    let has_mistakes = !mistakes.is_empty() || refused + unknown > 0 || is_too_much;
    Ok(if has_mistakes {
        EXIT_USAGE
    } else if !plan.restored.is_empty() {
        0
    } else {
        selection.report_if_empty(terminal)
    })
}

/// The scheduler of each case.
fn schedulers(plan: &Plan) -> impl Iterator<Item = NamedScheduler> {
    plan.selection.cases.iter().map(|case| plan.adjustments.scheduler(&case.place.partition))
}

/// What is asked about cases that are not launched.
struct Servers<'a> {
    runtime: &'a Runtime,
    connections: Connections,
    /// The cases that a session would not launch, and why.
    foreseen: Refused,
    /// Partitions whose server has not answered. It is not asked again: each case would wait as long.
    silent: BTreeSet<String>,
    terminal: Terminal,
}

/// What is known of a case, as lines.
enum Answer {
    Accepted(String),
    /// It would not be launched.
    Refused(String),
    /// Why the server has not said it.
    None(String),
}

impl<'a> Servers<'a> {
    /// Asks about all cases at once what a session asks.
    fn ask(plan: &Plan, runtime: &'a Runtime, terminal: Terminal) -> anyhow::Result<Self> {
        let connections = Connections::new(schedulers(plan), |scheduler| scheduler.look)?;
        let session = LaunchFacts::rehearsal().session;
        let mut foreseen = Refused::new();
        for (own_name, scheduler) in connections.iter() {
            let cases = plan.selection.cases.iter();
            let cases = cases.filter(|case| plan.adjustments.scheduler(&case.place.partition).own_name() == own_name);
            let asked = preflight::ask(scheduler, cases, &plan.adjustments, &session);
            foreseen.extend(runtime.block_on(patience::told(terminal, || told(own_name, None, scheduler), asked)));
        }
        Ok(Self { runtime, connections, foreseen, silent: BTreeSet::new(), terminal })
    }

    /// What is known of a case. `None`: there is nobody to ask.
    fn answer(&mut self, case: &TestCase, named: NamedScheduler, rendered: &Rendered) -> Option<Answer> {
        if let Some(why) = self.foreseen.get(&case.name) {
            return Some(Answer::Refused(format!("# NOT LAUNCHED: {why}\n")));
        }
        let scheduler = self.connections.get(named).filter(|_| rendered.skip.is_none())?;
        let partition = &case.name.partition;
        if self.silent.contains(partition) {
            return Some(Answer::None("its server has not answered before".to_owned()));
        }
        let told = || told(named.name, Some(partition), &**scheduler);
        match self.runtime.block_on(patience::told(self.terminal, told, scheduler.dry_run(&rendered.workload))) {
            Ok(warnings) => {
                let lines = warnings?.into_iter().map(|warning| format!("# it warns: {warning}\n"));
                Some(Answer::Accepted(std::iter::once("# accepted by the server\n".to_owned()).chain(lines).collect()))
            }
            Err(error) if error.class == Class::Outage => {
                self.silent.insert(partition.clone());
                Some(Answer::None(chain(&error)))
            }
            Err(error) => Some(Answer::Refused(format!("# REFUSED by the server: {}\n", chain(&error)))),
        }
    }
}

/// Who does not answer, and how long that is waited for.
fn told(name: &str, partition: Option<&str>, scheduler: &dyn Scheduler) -> String {
    let partition = partition.map_or_else(String::new, |partition| format!(" (partition {partition})"));
    format!("{name}{partition}: a server that does not answer is given up after {}", format_duration(scheduler.limits().answer))
}

/// A case's script, or what its scheduler would create.
fn shown(rendered: &Rendered, planner: Option<&dyn Scheduler>) -> Result<String, Vec<Diagnostic>> {
    let Rendered { about, workload, skip, .. } = rendered;
    let mut text = format!("# {} /{}\n", workload.case, workload.case.hash);
    if let Some(reason) = skip {
        return Ok(text + &format!("# skipped: {reason}\n"));
    }
    let limit = |limit: Option<std::time::Duration>| limit.map_or_else(|| "none".to_owned(), format_duration);
    let _ = writeln!(
        text,
        "# scheduler {}, {} task(s), time_limit {}, max_pending_time {}",
        about.scheduler,
        workload.num_tasks,
        limit(workload.limits.run),
        limit(workload.limits.pending),
    );
    if let Some(staging) = &workload.staging {
        let linked: Vec<_> = staging.readonly_files.iter().map(String::as_str).collect();
        let linked = if linked.is_empty() { String::new() } else { format!(", {} linked", linked.join(", ")) };
        let _ = writeln!(text, "# stages {}{linked}", staging.folder.display());
    }
    let preview = planner.map_or(Ok(None), |planner| planner.preview(workload))?;
    Ok(text + &preview.unwrap_or_else(|| program(workload)))
}

/// What the check says of it.
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
