//! A case: a check, one point of its parameters, a partition and an environment. What becomes of it at launch is in
//! `render`.

use crate::{
    Value,
    case::{CaseName, Identifier, SessionId},
    check::{Check, Early},
    diagnostic::Diagnostic,
    expr::Scope,
    fixture::Given,
    parameter::Variant,
    render,
    result::About,
    rules::Rules,
    site::{Environment, Partition, System},
    workload::Workload,
};
use std::{path::PathBuf, sync::Arc};

/// Check x variant x partition x environment. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct TestCase {
    /// Its name.
    pub name: Arc<CaseName>,
    /// Its test definition.
    pub check: Arc<Check>,
    /// Its parameters.
    pub variant: Arc<Variant>,
    /// Where it runs, in which setting.
    pub place: Arc<Place>,
    early: Arc<Early>,
}

/// A partition with one of its environments, and what expressions see of them.
#[derive(Debug)]
pub struct Place {
    /// The system.
    pub system: Arc<System>,
    /// Its part.
    pub partition: Arc<Partition>,
    /// The setting.
    pub environ: Arc<Environment>,
    /// `system`, `partition`, `environ` and `scheduler` in expressions.
    pub scope: Arc<Scope>,
}

/// What is known only when a case is launched.
#[derive(Debug, Clone)]
pub struct LaunchFacts {
    /// The attempt's mark.
    pub identifier: Identifier,
    /// The invocation.
    pub session: SessionId,
    /// The attempt's folder.
    pub stage: PathBuf,
    /// What the cases before it have left for it.
    pub given: Given,
}

impl LaunchFacts {
    /// Stand-ins, for looking at a case without launching it.
    pub fn rehearsal() -> Self {
        Self {
            identifier: Identifier::from_letters([0; 8]),
            session: SessionId("rehearsal".to_owned()),
            stage: PathBuf::from("stage"),
            given: Given::default(),
        }
    }
}

/// A case with nothing left to fill in.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// What runs.
    pub workload: Workload,
    /// How it is judged.
    pub rules: Rules,
    /// What the check says of itself.
    pub about: About,
    /// Not to be run, and why (a `when` rule, a fact that is missing).
    pub skip: Option<String>,
}

impl TestCase {
    pub(crate) fn new(check: Arc<Check>, variant: Arc<Variant>, place: Arc<Place>, early: Arc<Early>) -> Self {
        let name = CaseName {
            display: variant.display(&check.name),
            check: check.name.to_string(),
            hash: variant.hash(&check.name).short(),
            system: place.system.name.clone(),
            partition: place.partition.name.clone(),
            environ: place.environ.name.clone(),
            hidden: String::new(),
        };
        Self { name: Arc::new(name), check, variant, place, early }
    }

    /// Its tags.
    pub fn tags(&self) -> &[String] {
        &self.early.tags
    }

    /// What can be said of it without rendering.
    pub fn about(&self) -> About {
        let settings = self.variant.settings.iter();
        About {
            descr: String::new(),
            tags: self.tags().to_vec(),
            maintainers: Vec::new(),
            file: self.check.path.to_string(),
            parameters: settings.map(|setting| (setting.name.to_string(), setting.text.to_string())).collect(),
            scheduler: self.place.partition.scheduler,
            num_tasks: 1,
            on_disruption: None,
        }
    }

    /// A copy that is another case of the session, with the same history: `%.repeat_no=1`.
    #[must_use]
    pub fn copy(&self, hidden: &str) -> Self {
        let blank = if self.name.hidden.is_empty() { "" } else { " " };
        let hidden = format!("{}{blank}{hidden}", self.name.hidden);
        Self { name: Arc::new(CaseName { hidden, ..(*self.name).clone() }), ..self.clone() }
    }

    /// The key of its folders: the check and sixteen hex digits of its hash, and what is hidden in its name.
    pub fn folder(&self) -> String {
        let folder = format!("{}_{}", self.check.name, self.variant.hash(&self.check.name).long());
        let hidden = self.name.hidden.split(' ').filter(|word| !word.is_empty());
        hidden.fold(folder, |folder, word| folder + "-" + &word.trim_start_matches("%.").replace('=', "_"))
    }

    /// Fills in every placeholder.
    ///
    /// # Errors
    /// Every mistake that only shows with these values.
    pub fn render(&self, facts: &LaunchFacts) -> Result<Rendered, Vec<Diagnostic>> {
        render::render(self, facts)
    }
}

impl Place {
    pub(crate) fn new(system: &Arc<System>, partition: &Arc<Partition>, environ: &Arc<Environment>, parent: &Arc<Scope>) -> Self {
        let mut scope = Scope::under(parent.clone());
        scope.set("partition", partition_value(partition));
        scope.set("environ", environ_value(environ));
        scope.set("scheduler", partition.scheduler.as_str());
        Self { system: system.clone(), partition: partition.clone(), environ: environ.clone(), scope: Arc::new(scope) }
    }
}

fn partition_value(partition: &Partition) -> Value {
    let device = |device: &crate::site::Device| {
        let facts = [
            ("arch", device.arch.clone().map(Value::from)),
            ("model", device.model.clone().map(Value::from)),
            ("num_devices", device.num_devices.map(Value::from)),
        ];
        facts.into_iter().filter_map(|(key, fact)| fact.map(|fact| (key.to_owned(), fact))).collect::<serde_json::Map<_, _>>()
    };
    let devices: serde_json::Map<_, _> = partition.devices.iter().map(|d| (d.kind.clone(), Value::Object(device(d)))).collect();
    serde_json::json!({
        "name": partition.name,
        "descr": partition.descr,
        "scheduler": partition.scheduler.as_str(),
        "max_jobs": partition.max_jobs,
        "features": partition.features,
        "extras": partition.extras,
        "processor": partition.processor,
        "devices": devices,
    })
}

fn environ_value(environ: &Environment) -> Value {
    serde_json::json!({ "name": environ.name, "features": environ.features, "extras": environ.extras })
}
