//! `--dry-run`: what would be launched, in full, and nothing launched.

use crate::{
    args::Cli,
    commands::list,
    selection::{self, Depth},
    terminal::Terminal,
};
use muster_core::{
    Value,
    pipeline::EXIT_USAGE,
    test_case::{LaunchFacts, Rendered, TestCase},
    time::format_duration,
    workload::Program,
    yaml,
};
use std::fmt::Write;

/// Prints every selected case's script or objects.
pub fn dry_run(cli: &Cli, terminal: Terminal) -> anyhow::Result<u8> {
    let selection = selection::select(cli, Depth::Every, terminal.live)?;
    terminal.diagnostics(&selection.diagnostics, &selection.sources);
    if selection.has_errors() {
        return Ok(EXIT_USAGE);
    }
    let facts = LaunchFacts::rehearsal();
    let mut text = String::new();
    for case in &selection.cases {
        // Every case was rendered once already, when it was selected.
        if let Ok(rendered) = case.render(&facts) {
            text += &shown(case, &rendered);
        }
    }
    terminal.print(&text);
    Ok(list::told_if_empty(&selection, terminal))
}

fn shown(case: &TestCase, rendered: &Rendered) -> String {
    let mut text = format!("# {} /{}\n", case.name, case.name.hash);
    if let Some(reason) = &rendered.skip {
        return text + &format!("# skipped: {reason}\n\n");
    }
    let workload = &rendered.workload;
    let limit = |limit: Option<std::time::Duration>| limit.map_or_else(|| "none".to_owned(), format_duration);
    let _ = writeln!(
        text,
        "# scheduler {}, {} task(s), time_limit {}, max_pending_time {}",
        case.place.partition.scheduler,
        workload.num_tasks,
        limit(workload.limits.run),
        limit(workload.limits.pending),
    );
    text + &program(&workload.program) + "\n"
}

fn program(program: &Program) -> String {
    let documents =
        |values: &[Value]| values.iter().map(|value| format!("---\n{}", yaml::to_text(value))).collect::<Vec<_>>().concat();
    match program {
        Program::Script { text, .. } => text.clone(),
        Program::Objects { manifest, patch: None, .. } => documents(manifest),
        Program::Objects { manifest, patch: Some(patch), .. } => {
            format!("{}# k8s_patch, laid over it:\n{}", documents(manifest), documents(std::slice::from_ref(patch)))
        }
        Program::Container { image, script, .. } => format!("# in a Pod of {image}\n{script}"),
        Program::Instances { config, script } => {
            format!("{}# on every instance:\n{script}", documents(std::slice::from_ref(config)))
        }
        Program::Play(play) => documents(std::slice::from_ref(play)),
    }
}
