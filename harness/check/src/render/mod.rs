//! Renders a case: what it runs and how it is judged, with nothing left to fill in.
//!
//! ```text
//! when: which entries hold -> Layer -> variables -> tree without placeholders -> CheckFile -> Workload, Rules, About
//! ```

pub mod container;
pub(crate) mod launcher;
pub mod program;
pub mod references;
pub mod scheduler_keys;
pub mod script;

use crate::{
    cases::{
        check::Layer,
        scope::{base_scope, missing_fact_reason, overlaid, reason_to_skip},
        test_case::{LaunchFacts, Rendered, TestCase},
    },
    files::{check_file::CheckFile, settings, staging},
};
use muster_core::{
    fact::Fact,
    job::{
        outputs::PlannedOutputs,
        workload::{Limits, Program, Workload},
    },
    result::About,
    rules::{LogLimit, Rules},
};
use muster_text::{
    Value,
    decode::{Limit, Placeholders},
    diagnostic::{Diagnostic, MissingKey},
    expr::Scope,
    template,
    yaml::Node,
};
use serde_json::Map;
use std::sync::Arc;

impl TestCase {
    /// Fills in every placeholder.
    ///
    /// # Errors
    /// Every mistake that only shows with these values.
    pub fn render(&self, facts: &LaunchFacts) -> Result<Rendered, Vec<Diagnostic>> {
        let mut diagnostics = Vec::new();
        let rendered = match &self.skip {
            Some(reason) => Some(skipped(self, facts, reason.to_string())),
            None => attempt(self, facts, &mut diagnostics),
        };
        match rendered {
            Some(rendered) if diagnostics.is_empty() => Ok(rendered),
            _ => match reason_to_skip(self, &diagnostics) {
                Some(reason) => Ok(skipped(self, facts, reason)),
                // Beside a mistake, a missing fact is not one.
                None => Err(diagnostics
                    .into_iter()
                    .filter(|diagnostic| Fact::only_missing(std::slice::from_ref(diagnostic)).is_none())
                    .collect()),
            },
        }
    }
}

fn attempt(case: &TestCase, facts: &LaunchFacts, diagnostics: &mut Vec<Diagnostic>) -> Option<Rendered> {
    let base = Arc::new(base_scope(case, facts));
    let (layer, skip) = overlaid(case, &base, diagnostics)?;
    if let Some(reason) = skip {
        return Some(skipped(case, facts, reason));
    }
    let mut scope = Scope::under(base);
    layer.variables.evaluate(&mut scope, &case.check.cache, diagnostics)?;
    let launcher = launcher::define(case, &layer, &mut scope, diagnostics)?;
    let (tree, file) = settings_of(case, &layer, &scope, diagnostics)?;
    if let Some(reason) = program::missing_site_setting(case, &tree, &file) {
        return Some(skipped(case, facts, reason));
    }

    let partition = &case.place.partition;
    let program = program::program(case, &tree, &file, (&scope, &launcher), diagnostics);
    let rows = references::rows(case, &layer.reference_conditions, &file, &scope, diagnostics);
    let rules = settings::rules(&file, rows, &scope, diagnostics);
    let num_tasks = num_tasks(case, &tree, &scope, diagnostics);
    let own = program.as_ref().and_then(|_| program::own_values(case, &tree, &scope, diagnostics));
    let sched_options = scheduler_keys::sched_options(case, &tree, diagnostics);
    let shared = scheduler_keys::shared(case, &tree, diagnostics);
    let origin = staging::Origin {
        path: &case.check.path,
        scheduler: partition.scheduler,
        known: &case.check.manifests,
        limit: Limit::over(file.stage_limit, partition.stage_limit),
    };
    let staging = staging::of(&origin, &tree, &file, diagnostics);
    staging::check_kept(partition.scheduler, &file, diagnostics);
    let workload = Workload {
        identifier: facts.identifier.clone(),
        session: facts.session.clone(),
        case: (*case.name).clone(),
        stage: facts.stage.clone(),
        staging,
        keep_files: file.keep_files.iter().flat_map(|globs| globs.iter()).map(|glob| glob.value.clone()).collect(),
        program: program?,
        scheduler: partition.scheduler.as_name(),
        own: own?,
        shared,
        num_tasks,
        sched_options,
        limits: Limits {
            pending: Limit::over(file.max_pending_time, partition.max_pending_time),
            run: Limit::over(file.time_limit, partition.time_limit),
            judge: file.judge_limit.unwrap_or(Limits::JUDGE),
        },
        keep_failed: file.keep_failed,
    };
    let planned_outputs = planned_outputs(case, &layer, (&tree, &file), &scope, (&workload, facts.inputs.is_needed), diagnostics);
    let rules = Rules { planned_outputs, log_limit: log_limit(&file, partition), ..rules? };
    let about = About { night: settings::night(&file, &case.check.figures, diagnostics), ..about(case, &file, num_tasks) };
    if let Some(fact) = unjudgeable(&rules, &scope).filter(|_| diagnostics.is_empty()) {
        return Some(skipped(case, facts, missing_fact_reason(case, &fact)));
    }
    Some(Rendered { workload, rules, about, skip: None })
}

fn log_limit(file: &CheckFile, partition: &crate::site::Partition) -> Option<LogLimit> {
    let bytes = Limit::over(file.max_log, partition.max_log)?;
    Some(LogLimit { bytes, action: file.max_log_action.unwrap_or(partition.max_log_action) })
}

/// What a case leaves for others: nothing if there are none, and nothing runs when they are over.
fn planned_outputs(
    case: &TestCase,
    layer: &Layer,
    (tree, file): (&Node, &CheckFile),
    scope: &Scope,
    (workload, is_needed): (&Workload, bool),
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Box<PlannedOutputs>> {
    let teardown_cmds = file.teardown_cmds.as_ref().filter(|commands| !commands.is_empty());
    if !is_needed && teardown_cmds.is_none() {
        return None;
    }
    let names = case.variant.settings.iter().map(|setting| &*setting.name).chain(layer.variables.names());
    // Any of its variables may be read by others.
    let missing = layer.variables.names().filter(|_| is_needed).filter_map(|name| scope.missing(name));
    diagnostics.extend(missing.map(|key| missing_for_others(case, key)));
    let values = names.filter_map(|name| Some((name.to_owned(), scope.get(name)?.clone()))).collect();
    let outputs = file.outputs.iter().flat_map(|outputs| outputs.iter());
    let outputs = outputs.map(|(name, pattern)| (name.value.clone(), pattern.value.clone())).collect();
    let teardown = teardown_cmds.and_then(|commands| {
        let program = program::teardown(case, (tree, file), scope, commands, &workload.stage, diagnostics)?;
        Some(Box::new(Workload { program, own: Map::new(), num_tasks: 1, staging: None, ..workload.clone() }))
    });
    Some(Box::new(PlannedOutputs { values, outputs, teardown }))
}

fn missing_for_others(case: &TestCase, key: &MissingKey) -> Diagnostic {
    let message = format!("there is no `{}`, which a variable needs that others may read", key.path.join("."));
    Diagnostic { missing: Some(Box::new(key.clone())), ..Diagnostic::error(case.check.span, message) }
}

/// The settings of a case; shared by all cases of a layer that has no placeholder in them. `None` after any mistake in
/// them, which are reported once for each layer.
fn settings_of(
    case: &TestCase,
    layer: &Layer,
    scope: &Scope,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(Node, Arc<CheckFile>)> {
    let decode = |tree: &Node, diagnostics: &mut Vec<Diagnostic>| {
        let before = diagnostics.len();
        CheckFile::of(tree, case.check.manifests.schedulers.own_keys(), Placeholders::Refuse, diagnostics)
            .filter(|_| diagnostics.len() == before)
            .map(Arc::new)
    };
    if layer.is_fixed() {
        let file = layer.fixed.get_or_init(|| decode(&layer.tree, diagnostics)).clone()?;
        return Some((layer.tree.clone(), file));
    }
    let before = diagnostics.len();
    let tree = template::render(&layer.tree, scope, &case.check.cache, diagnostics)?;
    let file = decode(&tree, diagnostics)?;
    // What could not be filled in would only be missed again.
    (diagnostics.len() == before).then_some((tree, file))
}

/// A wrong value of the key is reported when it is decoded; that of a parameter of this name is reported here.
fn num_tasks(case: &TestCase, tree: &Node, scope: &Scope, diagnostics: &mut Vec<Diagnostic>) -> u32 {
    let value = scope.get("num_tasks");
    let count = value.and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok()).filter(|count| *count > 0);
    if count.is_none() && tree.get("num_tasks").is_none_or(Node::is_null) {
        let parameter = case.check.parameters.iter().find(|parameter| &*parameter.name == "num_tasks");
        let span = parameter.map_or(tree.span, |parameter| parameter.span);
        diagnostics.push(Diagnostic::error(span, "`num_tasks` must be a whole number above 0"));
    }
    count.unwrap_or(1)
}

fn about(case: &TestCase, file: &CheckFile, num_tasks: u32) -> About {
    About {
        descr: file.descr.clone().unwrap_or_default(),
        maintainers: file.maintainers.as_ref().map(|names| names.0.clone()).unwrap_or_default(),
        num_tasks,
        on_disruption: file.on_disruption.or(case.place.partition.on_disruption),
        ..case.about()
    }
}

/// A case that will not run.
fn skipped(case: &TestCase, facts: &LaunchFacts, reason: String) -> Rendered {
    Rendered {
        workload: Workload {
            identifier: facts.identifier.clone(),
            session: facts.session.clone(),
            case: (*case.name).clone(),
            stage: facts.stage.clone(),
            staging: None,
            keep_files: Vec::new(),
            program: Program::Own { env_vars: Vec::new() },
            scheduler: case.place.partition.scheduler.as_name(),
            own: Map::new(),
            shared: Map::new(),
            num_tasks: 1,
            sched_options: Value::Null,
            limits: Limits { pending: None, run: None, judge: Limits::JUDGE },
            keep_failed: None,
        },
        rules: Rules::default(),
        about: About { descr: description(case, facts).unwrap_or_default(), ..case.about() },
        skip: Some(reason),
    }
}

/// What a case that will not run is about, as far as that is known: its mistakes are nobody's.
fn description(case: &TestCase, facts: &LaunchFacts) -> Option<String> {
    let mut ignored = Vec::new();
    let base = Arc::new(base_scope(case, facts));
    let (layer, _) = overlaid(case, &base, &mut ignored)?;
    let mut scope = Scope::under(base);
    let descr = layer.tree.get("descr")?;
    layer.variables.evaluate(&mut scope, &case.check.cache, &mut ignored);
    Some(template::render(descr, &scope, &case.check.cache, &mut ignored)?.text()?.to_owned())
}

/// A fact that an `assert` or a `value` needs whatever the job prints. What it needs only perhaps shows when the case is
/// judged. A variable that may be missing may need what is missing.
fn unjudgeable(rules: &Rules, scope: &Scope) -> Option<Fact> {
    let may_be_missing = |name: &str| name == "partition" || scope.missing(name).is_some();
    let needed = rules.expressions().filter(|(_, is_optional)| !is_optional);
    needed
        .filter_map(|(expression, _)| expression.certainly_missing(scope, &may_be_missing))
        .find_map(|missing| Fact::of(&missing))
}
