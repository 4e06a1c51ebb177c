//! `muster k8s`: what the selected checks need of a cluster, and how their plans are made for looking at.

use crate::{
    args::{Cli, RoleArgs},
    commands::inspect::list,
    inputs::selection::{self, Depth},
    settings::Setting,
    terminal::Terminal,
};
use muster_check::{cases::test_case::TestCase, site::Partition};
use muster_core::{decisions::pipeline::EXIT_USAGE, job::workload::Workload};
use muster_k8s::{ContextError, Contexts, Extent, Handle, Plan, binding, roles};
use muster_text::{Value, diagnostic::Diagnostic, yaml};
use std::{collections::BTreeSet, num::NonZero, panic::resume_unwind, thread};

/// Mistakes that are told at once.
const MANY: usize = 100;

/// Prints the least Roles with which the selected cases run.
pub fn role(cli: &Cli, args: &RoleArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let selection = selection::select(cli, Depth::Every, terminal.live)?;
    terminal.diagnostics(&selection.diagnostics, &selection.sources);
    if selection.has_errors() {
        return Ok(EXIT_USAGE);
    }
    let (mut handles, mistakes) = plans(&selection.cases, &contexts()?, |plan| plan.handle);
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
    Ok(list::told_if_empty(&selection, terminal))
}

fn text(handles: &[Handle], args: &RoleArgs) -> String {
    let mut text = format!(
        "# The least rights with which the {} selected case(s) run, made by `muster k8s role`: for `kubectl apply -f -`.\n",
        handles.len()
    );
    let extent = if args.required_only { Extent::Required } else { Extent::Full };
    if extent == Extent::Full {
        text += "# Not needed to run, and left out by `--required-only`: rights that tell why a case waits (events, resourcequotas,\n\
                 # workloads, jobs), ask beforehand whether its pods would be let in (create pods, where a Job or the like makes\n\
                 # them), and show `muster sweep` what a killed session left (list).\n";
    }
    let roles = roles(handles, extent);
    let namespaces: BTreeSet<&str> = handles.iter().map(|handle| handle.place.namespace.as_str()).collect();
    let bindings = namespaces.into_iter().map(|namespace| binding(namespace, &args.service_account));
    text.extend(roles.into_iter().chain(bindings).map(|object| format!("---\n{}", yaml::to_text(&object))));
    text
}

/// What is wrong with the plans of the cases on Kubernetes: told before any case is launched.
///
/// # Errors
/// A kubeconfig that cannot be read.
pub fn mistakes(cases: &[TestCase]) -> Result<Vec<Diagnostic>, ContextError> {
    if !cases.iter().any(|case| case.place.partition.scheduler.is_kubernetes()) {
        return Ok(Vec::new());
    }
    Ok(plans(cases, &contexts()?, |_| ()).1)
}

/// The plans of the cases on Kubernetes, or what is wanted of them, and every reason why there is none. On all processors: there
/// may be ten thousand.
fn plans<T: Send>(cases: &[TestCase], contexts: &Contexts, wanted: impl Fn(Plan) -> T + Sync) -> (Vec<T>, Vec<Diagnostic>) {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let share = cases.len().div_ceil(processors).max(1);
    let shares: Vec<_> = thread::scope(|scope| {
        let begun: Vec<_> = cases.chunks(share).map(|share| scope.spawn(|| plans_of(share, contexts, &wanted))).collect();
        begun.into_iter().map(|share| share.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let (mut all, mut mistakes) = (Vec::new(), Vec::new());
    for (plans, found) in shares {
        all.extend(plans);
        add_new(&mut mistakes, found);
    }
    (all, mistakes)
}

fn plans_of<T>(cases: &[TestCase], contexts: &Contexts, wanted: impl Fn(Plan) -> T) -> (Vec<T>, Vec<Diagnostic>) {
    let (mut plans, mut mistakes) = (Vec::new(), Vec::new());
    for case in cases.iter().filter(|case| case.place.partition.scheduler.is_kubernetes()) {
        // Every case was rendered once already, when it was selected.
        let Some(rendered) = case.render(&case.rehearsal()).ok().filter(|rendered| rendered.skip.is_none()) else { continue };
        match planned(case, &rendered.workload, contexts) {
            Ok(plan) => plans.push(wanted(plan)),
            Err(found) => add_new(&mut mistakes, found),
        }
        // Whoever reads so many does not read more.
        if mistakes.len() > MANY {
            break;
        }
    }
    (plans, mistakes)
}

/// Where checks on a partition run that do not say so themselves, and who does: its options, written at `site`, else the cluster's.
pub fn settings(partition: &Partition, contexts: &Result<Contexts, ContextError>, site: &str) -> Vec<Setting> {
    let option = |key: &str| partition.sched_options.get(key).and_then(Value::as_str);
    let (context, namespace) = (option("context"), option("namespace"));
    let setting =
        |name: &str, value: &str, source: &str| Setting { name: name.into(), value: value.into(), source: source.into() };
    let found = contexts.as_ref().map_err(ToString::to_string);
    let place = found.and_then(|contexts| {
        let place = contexts.place(context, namespace).map_err(|error| error.to_string())?;
        Ok((contexts, place))
    });
    let (contexts, place) = match place {
        Ok(place) => place,
        Err(why) => return vec![setting("context", context.unwrap_or("-"), &why)],
    };
    let of_context = place.context.as_ref().and_then(|context| contexts.named.get(context)).is_some_and(Option::is_some);
    let context_source = match (&place.context, context) {
        (_, Some(_)) => site,
        (Some(_), None) => "the kubeconfig's current context",
        (None, None) if contexts.unknown => "no kubeconfig",
        (None, None) => "the pod's service account",
    };
    let namespace_source = match namespace {
        Some(_) => site,
        None if of_context => "the context's",
        None if place.context.is_none() && contexts.in_cluster.is_some() => "the pod's service account",
        None => "default",
    };
    let name = place.context.as_deref().unwrap_or(if contexts.unknown { "-" } else { "in-cluster" });
    vec![setting("context", name, context_source), setting("namespace", &place.namespace, namespace_source)]
}

/// The contexts to plan with. Where there is no cluster at all everything goes, for nothing is launched.
///
/// # Errors
/// A kubeconfig that cannot be read.
pub fn contexts() -> Result<Contexts, ContextError> {
    let contexts = Contexts::load()?;
    Ok(if contexts.is_empty() { Contexts::unknown() } else { contexts })
}

/// A case's plan; its mistakes are the check's.
///
/// # Errors
/// Every reason why it cannot run there.
pub fn planned(case: &TestCase, workload: &Workload, contexts: &Contexts) -> Result<Plan, Vec<Diagnostic>> {
    let place = |mistake: Diagnostic| Diagnostic { span: mistake.span.or(Some(case.check.span)), ..mistake };
    muster_k8s::plan(workload, contexts).map_err(|mistakes| mistakes.into_iter().map(place).collect())
}

/// Adds what was not told before: the cases of one check make the same mistakes.
pub fn add_new(told: &mut Vec<Diagnostic>, found: Vec<Diagnostic>) {
    for mistake in found {
        if !told.contains(&mistake) {
            told.push(mistake);
        }
    }
}
