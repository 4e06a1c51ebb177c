//! Extends the selected cases to all that run: their fixtures, their dependencies, and which case needs which.
//!
//! ```text
//! checks -fork-> cases, one for each variant of their fixtures -filters-> selected -resolve-> Planned, each after its needs
//! ```
//! Rules are ReFrame's: a fixture runs where its users do and once per scope, a dependency is selected with what needs it.

use crate::{
    cases::{
        check::Check,
        parameter::{self, Setting, Variant, Wanted},
        scope,
        test_case::{LaunchFacts, Rendered, TestCase},
    },
    files::{
        check_file::{Dependency, FixtureAction, FixtureScope, How},
        needs::Fixture,
    },
    site::facts::SystemFacts,
};
use muster_core::{
    case::CaseName,
    job::outputs::{Binding, CaseInputs, CaseOutputs, Need},
};
use muster_text::{
    diagnostic::Diagnostic,
    template,
    yaml::{self, Node},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// A fixture of a case, in one variant or in several that were joined.
#[derive(Debug, Clone)]
pub struct Use {
    name: Arc<str>,
    scope: FixtureScope,
    action: FixtureAction,
    /// At the place of the case, before it is known where and how often they run.
    cases: Vec<TestCase>,
}

/// A case that will run, and what it needs.
#[derive(Debug, Clone)]
pub struct Planned {
    pub case: TestCase,
    /// The cases that must have passed before it.
    pub needs: Vec<Edge>,
}

/// A case that another one needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// Its place among all that run, before that of the one that needs it.
    pub at: usize,
    /// The name that the other case has for it.
    pub binding: Binding,
    /// It is one of several under this name.
    pub is_one_of_many: bool,
}

/// All checks, by name, with what was made of them for others.
#[derive(Debug)]
pub struct Library<'c> {
    checks: BTreeMap<&'c str, &'c Arc<Check>>,
    site: &'c SystemFacts,
    /// Checks with variables set by their users, by name and setting.
    set: HashMap<String, Arc<Check>>,
    /// Variants by check: the same ones are asked for again and again.
    variants: HashMap<String, Arc<[Arc<Variant>]>>,
}

impl<'c> Library<'c> {
    pub fn new(checks: impl Iterator<Item = &'c Arc<Check>>, site: &'c SystemFacts) -> Self {
        let checks = checks.map(|check| (&*check.name, check)).collect();
        Self { checks, site, set: HashMap::new(), variants: HashMap::new() }
    }

    /// The case once for every combination of its fixtures' variants. Where the site does not define a fact that decides on
    /// these, the case alone, and it is skipped.
    pub fn fork(&mut self, case: TestCase, diagnostics: &mut Vec<Diagnostic>) -> Vec<TestCase> {
        let check = Arc::clone(&case.check);
        if check.needs.fixtures.is_empty() {
            return vec![case];
        }
        let mut combinations: Vec<(Vec<Arc<Setting>>, Vec<Use>)> = vec![Default::default()];
        for fixture in &check.needs.fixtures {
            let mut own = Vec::new();
            let found = self.variants_of(fixture, &case, &mut own);
            if let Some(reason) = scope::reason_to_skip(&case, &own) {
                return vec![case.skipped(reason)];
            }
            diagnostics.append(&mut own);
            let Some(cases) = found else { return vec![] };
            let of = |cases| Use { name: fixture.name.clone(), scope: fixture.scope, action: fixture.action, cases };
            match fixture.action {
                FixtureAction::Join => combinations.iter_mut().for_each(|(_, uses)| uses.push(of(cases.clone()))),
                FixtureAction::Fork => {
                    let with = |(settings, uses): &(Vec<_>, Vec<_>), case: &TestCase| {
                        let settings = settings.iter().cloned().chain(case.settings_as(&fixture.name)).collect();
                        (settings, uses.iter().cloned().chain([of(vec![case.clone()])]).collect())
                    };
                    let product = |combination| cases.iter().map(move |case| with(combination, case));
                    combinations = combinations.iter().flat_map(product).collect();
                }
            }
        }
        combinations.into_iter().map(|(settings, uses)| case.using(settings, uses)).collect()
    }

    /// The cases that a fixture of a case may be, at the place of that case. `None` after a mistake.
    fn variants_of(&mut self, fixture: &Fixture, user: &TestCase, diagnostics: &mut Vec<Diagnostic>) -> Option<Vec<TestCase>> {
        // A missing check is reported already.
        let target = Arc::clone(self.checks.get(fixture.check.as_str())?);
        let (wanted, set) = with(fixture, &target, user, diagnostics)?;
        let check = self.with_variables(&target, &set);
        let mut cases = Vec::new();
        for variant in self.variants(&check, diagnostics).iter().filter(|variant| wanted.iter().all(|want| want.admits(variant)))
        {
            if let Some(case) = check.fixture_case(variant.clone(), &user.place, self.site, diagnostics) {
                cases.extend(self.fork(case, diagnostics));
            }
        }
        if cases.is_empty() {
            let texts = |want: &Wanted| want.values.iter().filter_map(Node::text).collect::<Vec<_>>().join("|");
            let wanted: Vec<String> = wanted.iter().map(|want| format!("{}={}", want.name, texts(want))).collect();
            let message = if wanted.is_empty() {
                format!("fixture `{}` of `{}` has no case", fixture.name, user.check.name)
            } else {
                format!("no variant of `{}` has {}", check.name, wanted.join(", "))
            };
            let hint = format!("look at the parameters of `{}`, at its `exclude` and `when`", check.name);
            diagnostics.push(Diagnostic::error(fixture.check.span, message).hint(hint));
            return None;
        }
        Some(cases)
    }

    fn with_variables(&mut self, target: &Arc<Check>, set: &[Arc<Setting>]) -> Arc<Check> {
        if set.is_empty() {
            return Arc::clone(target);
        }
        let key = key(&target.name, set);
        Arc::clone(self.set.entry(key).or_insert_with(|| Arc::new(target.with_variables(set))))
    }

    fn variants(&mut self, check: &Arc<Check>, diagnostics: &mut Vec<Diagnostic>) -> Arc<[Arc<Variant>]> {
        let key = key(&check.name, &check.set);
        let variants = || check.variants(self.site, diagnostics).into_iter().map(Arc::new).collect();
        Arc::clone(self.variants.entry(key).or_insert_with(variants))
    }
}

fn key(name: &str, set: &[Arc<Setting>]) -> String {
    set.iter().fold(name.to_owned(), |key, setting| format!("{key} {}={}", setting.name, setting.text))
}

/// The meaning of `with`: wanted values of parameters, and variables to set.
fn with(
    fixture: &Fixture,
    target: &Check,
    user: &TestCase,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(Vec<Wanted>, Vec<Arc<Setting>>)> {
    let has_placeholder = fixture.with.iter().any(|(_, value)| value.has_placeholder_within());
    let scope = if has_placeholder { Some(scope::scope_of(user, diagnostics)?) } else { None };
    let (mut wanted, mut set, before) = (Vec::new(), Vec::new(), diagnostics.len());
    for (name, value) in &fixture.with {
        let rendered = match &scope {
            Some(scope) => template::render(value, scope, &user.check.cache, diagnostics),
            None => Some(value.clone()),
        };
        let Some(rendered) = rendered.filter(|value| !value.is_null()) else { continue };
        if target.is_parameter(name) {
            wanted.push(Wanted { name: name.value.clone(), values: rendered.one_or_many().to_vec() });
        } else if target.is_variable(name) {
            match yaml::to_parameter_value(&rendered) {
                Ok(value) => {
                    let text = parameter::display(&value).unwrap_or_else(|| value.to_string()).into();
                    set.push(Arc::new(Setting { name: name.value.as_str().into(), value, text }));
                }
                Err(mut mistakes) => diagnostics.append(&mut mistakes),
            }
        } else {
            let message = format!("`{}` has neither a parameter nor a variable `{}`", target.name, name.value);
            let declared = target.declared_names();
            let diagnostic = Diagnostic::error(name.span, message);
            diagnostics.push(diagnostic.did_you_mean(name, declared.iter().map(String::as_str), None));
        }
    }
    (diagnostics.len() == before).then_some((wanted, set))
}

/// The selected cases and all that they need, each after what it needs, otherwise in their order.
pub fn resolve(selected: Vec<TestCase>, all: &[TestCase], diagnostics: &mut Vec<Diagnostic>) -> Vec<Planned> {
    let mut resolving = Resolving {
        all,
        indices: HashMap::new(),
        planned: Vec::with_capacity(selected.len()),
        known: HashMap::with_capacity(selected.len()),
        unmatched: BTreeSet::new(),
        diagnostics,
    };
    for case in selected {
        let key = case.name.to_string();
        resolving.visit(key, case);
    }
    resolving.planned
}

struct Resolving<'a> {
    /// Every case that could be selected.
    all: &'a [TestCase],
    /// The cases of a check by the values of the parameters that it shares with another one, by both names.
    indices: HashMap<(Arc<str>, Arc<str>), Index>,
    planned: Vec<Planned>,
    /// Where a case is planned; a fixture by its name and scope, wherever it runs.
    known: HashMap<String, usize>,
    /// Dependencies without a case that were reported.
    unmatched: BTreeSet<muster_text::diagnostic::Span>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

/// The names of shared parameters, and the cases by their values.
struct Index {
    shared: Vec<Arc<str>>,
    cases: HashMap<Vec<Arc<str>>, Vec<usize>>,
}

impl Resolving<'_> {
    fn visit(&mut self, key: String, case: TestCase) -> usize {
        if let Some(at) = self.known.get(&key) {
            return *at;
        }
        let mut needs = Vec::new();
        for used in case.uses() {
            for fixture in &used.cases {
                let instance = fixture.as_fixture(&scope_text(used.scope, &case));
                let key =
                    if used.scope == FixtureScope::Test { instance.name.to_string() } else { instance.name.display.clone() };
                let at = self.visit(key, instance);
                needs.push(Edge {
                    at,
                    binding: Binding::Fixture(used.name.clone()),
                    is_one_of_many: used.action == FixtureAction::Join,
                });
            }
        }
        for dependency in &case.check.needs.depends_on {
            let targets = self.targets(&case, dependency);
            let is_one_of_many = targets.len() > 1;
            for target in targets {
                let target = self.all[target].clone();
                let binding = Binding::Check(target.check.name.clone());
                let at = self.visit(target.name.to_string(), target);
                needs.push(Edge { at, binding, is_one_of_many });
            }
        }
        self.check_stagedirs(&case, &needs);
        self.planned.push(Planned { case, needs });
        self.known.insert(key, self.planned.len() - 1);
        self.planned.len() - 1
    }

    /// The cases of a check that a case depends on: those with equal values of shared parameters, at the places that `how`
    /// admits.
    fn targets(&mut self, case: &TestCase, dependency: &Dependency) -> Vec<usize> {
        let name: Arc<str> = dependency.check.as_str().into();
        let all = self.all;
        let index = self.indices.entry((case.check.name.clone(), name)).or_insert_with(|| Index::of(all, case, dependency));
        let values: Vec<Arc<str>> =
            index.shared.iter().filter_map(|name| case.variant.get(name).map(|setting| setting.text.clone())).collect();
        let here = &case.name;
        let admits = |there: &CaseName| match dependency.how {
            How::Fully => true,
            How::ByPart => here.partition == there.partition,
            How::ByEnv => here.environ == there.environ,
            How::ByCase => here.partition == there.partition && here.environ == there.environ,
        };
        let equal = index.cases.get(&values).map(Vec::as_slice).unwrap_or_default();
        let targets: Vec<usize> = equal.iter().copied().filter(|at| admits(&all[*at].name)).collect();
        if targets.is_empty() && self.unmatched.insert(dependency.check.span) {
            let message = format!("`{}` depends on no case of `{}`", case.name, dependency.check.value);
            let hint = "none has the same values of the parameters that both have, on the same partition and in the same \
                        environment: it runs without; `how` can pair them otherwise";
            self.diagnostics.push(Diagnostic::warning(dependency.check.span, message).hint(hint));
        }
        targets
    }

    /// Reports reads of the folder of a case on another machine.
    fn check_stagedirs(&mut self, case: &TestCase, needs: &[Edge]) {
        for (span, whose) in &case.check.needs.stagedirs {
            let edges = needs.iter().filter(|edge| edge.binding.to_string() == *whose);
            let cases = edges.map(|edge| &self.planned[edge.at].case).chain([case]);
            let mut schedulers = cases.map(|case| case.place.partition.scheduler);
            let Some(scheduler) = schedulers.find(|scheduler| !scheduler.shares_files()) else { continue };
            let message =
                format!("`{whose}.stagedir` needs one file system, which jobs of `{scheduler}` do not share with others");
            let known = |known: &Diagnostic| known.span == Some(*span) && known.message == message;
            if !self.diagnostics.iter().any(known) {
                let hint = format!("hand it over in what the job prints: `outputs` there, `{whose}.outputs.NAME` here");
                self.diagnostics.push(Diagnostic::error(*span, message).hint(hint));
            }
        }
    }
}

impl Index {
    fn of(all: &[TestCase], case: &TestCase, dependency: &Dependency) -> Self {
        let targets = all.iter().enumerate().filter(|(_, target)| *target.check.name == *dependency.check.value);
        let mut shared: Option<Vec<Arc<str>>> = None;
        let mut cases: HashMap<Vec<Arc<str>>, Vec<usize>> = HashMap::new();
        for (at, target) in targets {
            let shared = shared.get_or_insert_with(|| {
                let own = case.check.parameters.iter().map(|parameter| parameter.name.clone());
                own.filter(|name| target.check.is_parameter(name)).collect()
            });
            let text = |name: &Arc<str>| target.variant.get(name).map(|setting| setting.text.clone());
            cases.entry(shared.iter().filter_map(text).collect()).or_default().push(at);
        }
        Self { shared: shared.unwrap_or_default(), cases }
    }
}

/// What distinguishes the instances of a fixture, as ReFrame writes it after `~`.
fn scope_text(scope: FixtureScope, user: &TestCase) -> String {
    let name = &user.name;
    match scope {
        FixtureScope::Session => name.system.clone(),
        FixtureScope::Partition => name.system_partition(),
        FixtureScope::Environment => name.place(),
        FixtureScope::Test => format!("{}_{}", name.check, name.hash),
    }
}

impl Edge {
    /// The need, by the name of the needed case.
    pub fn need(&self, case: Arc<CaseName>) -> Need {
        Need { case, binding: self.binding.clone(), is_one_of_many: self.is_one_of_many }
    }
}

/// Returns for each case whether others need it.
pub fn needed(all: &[Planned]) -> Vec<bool> {
    let mut needed = vec![false; all.len()];
    for edge in all.iter().flat_map(|planned| &planned.needs) {
        needed[edge.at] = true;
    }
    needed
}

/// Stand-ins for what cases leave, so that those that need it can be looked at without running anything.
#[derive(Debug, Default)]
pub struct Rehearsal {
    left: HashMap<usize, CaseOutputs>,
}

impl Rehearsal {
    /// Returns the facts for a launch of a case. `None`: something it needs cannot be launched, which was reported.
    pub fn facts(&self, all: &[Planned], at: usize, is_needed: bool) -> Option<LaunchFacts> {
        let mut facts = LaunchFacts::rehearsal();
        let planned = &all[at];
        if is_needed {
            // Others read where it is.
            facts.stage = facts.stage.join(planned.case.folder());
        }
        facts.inputs = CaseInputs { is_needed, ..CaseInputs::default() };
        for edge in &planned.needs {
            facts.inputs.add(&edge.need(all[edge.at].case.name.clone()), self.left.get(&edge.at)?);
        }
        Some(facts)
    }

    /// Records what a case that others need leaves.
    pub fn leaves(&mut self, at: usize, rendered: &Rendered) {
        let Some(planned) = rendered.rules.planned_outputs.as_ref() else { return };
        let check = &rendered.workload.case.check;
        let outputs = planned.outputs.keys().map(|name| (name.clone(), format!("<{name} of {check}>")));
        let outputs = CaseOutputs {
            stage: rendered.workload.stage.clone(),
            values: planned.values.clone(),
            outputs: outputs.collect(),
            teardown: None,
        };
        self.left.insert(at, outputs);
    }
}
