//! A case: a check, one point of its parameters, a partition and an environment. What becomes of it at launch is in
//! `render`.

use crate::{
    cases::{
        check::{Check, Early},
        dependencies::Use,
        parameter::{Setting, Variant},
    },
    site::facts::Place,
};
use muster_core::{
    case::{CaseHash, CaseName, Identifier, SessionId},
    job::{
        outputs::{CaseInputs, Need},
        workload::Workload,
    },
    night::FigureRules,
    result::About,
    rules::Rules,
};
use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

/// Check x variant x partition x environment. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct TestCase {
    pub name: Arc<CaseName>,
    pub check: Arc<Check>,
    pub variant: Arc<Variant>,
    /// The partition and environment in which it runs.
    pub place: Arc<Place>,
    early: Arc<Early>,
    hash: CaseHash,
    /// The fixtures it uses, in which variants.
    uses: Option<Arc<[Use]>>,
    /// The cases that must have passed before it.
    needs: Option<Arc<[Need]>>,
    /// The other files that hold what those are made of.
    other_files: Option<Arc<[Arc<str>]>>,
    /// Stand-ins for what those will leave.
    rehearsal: Option<Arc<LaunchFacts>>,
    /// What distinguishes it from other instances of the same check, if it is a fixture.
    scope: Option<Arc<str>>,
    /// The node that it is to run on; `None`: wherever the scheduler likes.
    pub(crate) node: Option<Arc<str>>,
    /// Why it will not run, if that shows before it can be rendered.
    pub(crate) skip: Option<Arc<str>>,
}

/// The facts that are known only when a case is launched.
#[derive(Debug, Clone)]
pub struct LaunchFacts {
    /// The attempt's mark.
    pub identifier: Identifier,
    pub session: SessionId,
    pub stage: PathBuf,
    /// The outputs of the cases that it needs.
    pub inputs: CaseInputs,
}

impl LaunchFacts {
    /// Stand-ins, for looking at a case without launching it.
    pub fn rehearsal() -> Self {
        Self {
            identifier: Identifier::from_letters([0; 8]),
            session: SessionId("rehearsal".to_owned()),
            stage: PathBuf::from("stage"),
            inputs: CaseInputs::default(),
        }
    }

    /// Returns whether these are stand-ins, with which nothing is launched.
    pub fn is_rehearsal(&self) -> bool {
        self.identifier == Identifier::from_letters([0; 8])
    }
}

/// A case with nothing left to fill in.
#[derive(Debug, Clone)]
pub struct Rendered {
    pub workload: Workload,
    pub rules: Rules,
    /// The check's description of itself.
    pub about: About,
    /// The reason why it is not run (a `when` rule, a fact that is missing).
    pub skip: Option<String>,
}

impl TestCase {
    pub(crate) fn new(check: Arc<Check>, variant: Arc<Variant>, place: Arc<Place>, early: Arc<Early>) -> Self {
        Self::of(check, variant, place, early, None)
    }

    fn of(check: Arc<Check>, variant: Arc<Variant>, place: Arc<Place>, early: Arc<Early>, scope: Option<Arc<str>>) -> Self {
        let mut display = variant.display(&check.name);
        for setting in &check.set {
            display.extend([" %", &setting.name, "=", &setting.text]);
        }
        if let Some(scope) = &scope {
            display.extend([" ~", scope]);
        }
        let settings = variant.settings.iter().chain(&check.set).map(|setting| (&*setting.name, &*setting.text));
        let hash = CaseHash::of(&check.name, settings.chain(scope.as_deref().map(|scope| ("~", scope))));
        let name = CaseName {
            display,
            check: check.name.to_string(),
            hash: hash.short(),
            system: place.system.name.clone(),
            partition: place.partition.name.clone(),
            environ: place.environ.name.clone(),
            hidden: String::new(),
        };
        Self {
            name: Arc::new(name),
            check,
            variant,
            place,
            early,
            hash,
            uses: None,
            needs: None,
            other_files: None,
            rehearsal: None,
            scope,
            node: None,
            skip: None,
        }
    }

    /// The same case with fixtures, whose values it carries in its name.
    pub(crate) fn using(&self, settings: Vec<Arc<Setting>>, uses: Vec<Use>) -> Self {
        let variant = if settings.is_empty() {
            self.variant.clone()
        } else {
            Arc::new(Variant { settings: self.variant.settings.iter().cloned().chain(settings).collect() })
        };
        let case = Self::of(self.check.clone(), variant, self.place.clone(), self.early.clone(), self.scope.clone());
        Self { uses: Some(uses.into()), ..case }
    }

    /// The same case, which will not run.
    pub(crate) fn skipped(self, reason: String) -> Self {
        Self { skip: Some(reason.into()), ..self }
    }

    /// The same case as a fixture of this scope.
    pub(crate) fn as_fixture(&self, scope: &str) -> Self {
        let (check, variant, place) = (self.check.clone(), self.variant.clone(), self.place.clone());
        let case = Self::of(check, variant, place, self.early.clone(), Some(scope.into()));
        Self { uses: self.uses.clone(), skip: self.skip.clone(), ..case }
    }

    /// Its parameters and what is set of it, as a case shows them that uses it under this name.
    pub(crate) fn settings_as(&self, name: &str) -> impl Iterator<Item = Arc<Setting>> {
        let settings = self.variant.settings.iter().chain(&self.check.set);
        settings.map(move |setting| Arc::new(Setting { name: format!("{name}.{}", setting.name).into(), ..(**setting).clone() }))
    }

    pub(crate) fn uses(&self) -> &[Use] {
        self.uses.as_deref().unwrap_or_default()
    }

    /// The case after those that must have passed before it, with stand-ins for what they will leave.
    #[must_use]
    pub fn after(self, needs: Vec<Need>, rehearsal: Option<LaunchFacts>) -> Self {
        Self { needs: (!needs.is_empty()).then(|| needs.into()), rehearsal: rehearsal.map(Arc::new), ..self }
    }

    /// The case, with the other files that its needs are written in.
    #[must_use]
    pub fn with_other_files(self, files: Vec<Arc<str>>) -> Self {
        Self { other_files: (!files.is_empty()).then(|| files.into()), ..self }
    }

    /// The files that are named to run it alone: its own, and those that hold what it needs.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        [&self.check.path].into_iter().chain(self.other_files.as_deref().unwrap_or_default()).map(|file| &**file)
    }

    /// Returns stand-ins for all that only a launch shows, so that the case can be looked at without one.
    pub fn rehearsal(&self) -> LaunchFacts {
        self.rehearsal.as_deref().cloned().unwrap_or_else(LaunchFacts::rehearsal)
    }

    /// The cases that must have passed before it.
    pub fn needs(&self) -> &[Need] {
        self.needs.as_deref().unwrap_or_default()
    }

    /// Returns whether it runs for others only.
    pub fn is_fixture(&self) -> bool {
        self.scope.is_some()
    }

    /// The cases of which there is one however often their users are copied: fixtures, and what these depend on.
    pub fn once(cases: &[Self]) -> HashSet<Arc<CaseName>> {
        let needs: HashMap<&CaseName, &[Need]> = cases.iter().map(|case| (&*case.name, case.needs())).collect();
        let mut once: HashSet<Arc<CaseName>> = HashSet::new();
        let mut found: Vec<&Arc<CaseName>> = cases.iter().filter(|case| case.is_fixture()).map(|case| &case.name).collect();
        while let Some(name) = found.pop() {
            if once.insert(Arc::clone(name)) {
                found.extend(needs.get(&**name).into_iter().flat_map(|needs| needs.iter()).map(|need| &need.case));
            }
        }
        once
    }

    pub fn tags(&self) -> &[String] {
        &self.early.tags
    }

    /// Returns the description as far as it is known without rendering.
    pub fn about(&self) -> About {
        let settings = self.variant.settings.iter().chain(&self.check.set);
        About {
            descr: String::new(),
            tags: self.tags().to_vec(),
            maintainers: Vec::new(),
            file: self.check.path.to_string(),
            other_files: self.files().skip(1).map(str::to_owned).collect(),
            parameters: settings.map(|setting| (setting.name.to_string(), setting.text.to_string())).collect(),
            scheduler: self.place.partition.scheduler.as_name(),
            num_tasks: 1,
            on_disruption: None,
            check_hash: self.check.hashes.check.clone(),
            manifest_hash: self.check.hashes.manifest.clone(),
            night: FigureRules::default(),
        }
    }

    /// A copy that is another case of the session, with the same history: `%.repeat_no=1`. What is there `once` serves all
    /// copies, of everything else that it needs there is a copy too.
    #[must_use]
    pub fn copy(&self, hidden: &str, once: &HashSet<Arc<CaseName>>) -> Self {
        let blank = if self.name.hidden.is_empty() { "" } else { " " };
        let hidden = format!("{}{blank}{hidden}", self.name.hidden);
        let hide = |name: &CaseName| Arc::new(CaseName { hidden: hidden.clone(), ..name.clone() });
        let copied = |need: &Need| {
            let case = if once.contains(&need.case) { Arc::clone(&need.case) } else { hide(&need.case) };
            Need { case, ..need.clone() }
        };
        let needs = self.needs.as_ref().map(|needs| needs.iter().map(copied).collect());
        Self { name: hide(&self.name), needs, ..self.clone() }
    }

    /// A copy for one node: `--distribute`.
    #[must_use]
    pub fn on(&self, node: &str, once: &HashSet<Arc<CaseName>>) -> Self {
        Self { node: Some(node.into()), ..self.copy(&format!("%.nid={node}"), once) }
    }

    /// The key of its folders: the check and sixteen hex digits of its hash, and what is hidden in its name.
    pub fn folder(&self) -> String {
        let folder = format!("{}_{}", self.check.name, self.hash.long());
        let hidden = self.name.hidden.split(' ').filter(|word| !word.is_empty());
        hidden.fold(folder, |folder, word| folder + "-" + &word.trim_start_matches("%.").replace('=', "_"))
    }
}
