//! `muster k8s`: what the selected checks need of a cluster.

use crate::{
    args::{Cli, RoleArgs},
    inputs::selection::{self, Depth},
    terminal::Terminal,
    wiring::plans,
};
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments};
use muster_core::{decisions::pipeline::EXIT_USAGE, job::workload::Workload};
use muster_k8s::{Contexts, Extent, Handle, binding, roles};
use muster_text::yaml;
use std::collections::BTreeSet;

/// Prints the least Roles with which the selected cases run.
pub fn role(cli: &Cli, args: &RoleArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let selection = selection::select(cli, Depth::Every, terminal.live)?;
    terminal.diagnostics(&selection.diagnostics, &selection.sources);
    if selection.has_errors() {
        return Ok(EXIT_USAGE);
    }
    let is_ours = |case: &&TestCase| muster_k8s::is_kubernetes(case.place.partition.scheduler.descriptor());
    let cases: Vec<TestCase> = selection.cases.iter().filter(is_ours).cloned().collect();
    let contexts = Contexts::to_plan_with()?;
    let plan = |_: &TestCase, workload: &Workload| Ok(muster_k8s::plan(workload, &contexts)?.handle);
    let (mut handles, mistakes) = plans::plans(&cases, &Adjustments::default(), plan);
    terminal.diagnostics(&mistakes, &selection.sources);
    if !mistakes.is_empty() {
        return Ok(EXIT_USAGE);
    }
    if handles.is_empty() && !selection.cases.is_empty() {
        anyhow::bail!("none of the {} selected case(s) runs on Kubernetes: choose a system with --system", selection.cases.len());
    }
    if let Some(namespace) = &args.namespace {
        for handle in &mut handles {
            handle.place.namespace.clone_from(namespace);
        }
    }
    terminal.print(&text(&handles, args));
    Ok(selection.report_if_empty(terminal))
}

fn text(handles: &[Handle], args: &RoleArgs) -> String {
    let mut text = format!(
        "# The least permissions with which the {} selected case(s) run, made by `muster k8s role`: for `kubectl apply -f -`.\n",
        handles.len()
    );
    let extent = if args.required_only { Extent::Required } else { Extent::Full };
    if extent == Extent::Full {
        text += "# `--required-only` leaves out what cases run without:\n\
                 # - resourcequotas, workloads, jobs, events (not where a container has a probe or a hook): why a case waits\n\
                 # - create pods, where a Job or the like creates them: Muster checks beforehand whether they would be admitted\n\
                 # - list: `muster sweep` finds what a killed session left\n";
    }
    let roles = roles(handles, extent);
    let namespaces: BTreeSet<&str> = handles.iter().map(|handle| handle.place.namespace.as_str()).collect();
    let bindings = namespaces.into_iter().map(|namespace| binding(namespace, &args.service_account));
    text.extend(roles.into_iter().chain(bindings).map(|object| format!("---\n{}", yaml::to_text(&object))));
    text
}
