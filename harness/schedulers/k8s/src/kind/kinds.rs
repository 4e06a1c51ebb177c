//! The table of kinds, with the entries of a site and a check merged into it.

use super::WorkloadRules;
use crate::api::{Resource, merge};
use muster_text::{
    Value,
    diagnostic::Diagnostic,
    expr::{Arithmetic, Expr},
};
use serde::Deserialize;
use std::{borrow::Cow, collections::BTreeSet, sync::LazyLock};

/// What is shipped.
const TABLE: &str = include_str!("table.yaml");

static KNOWN: LazyLock<Kinds> = LazyLock::new(|| Kinds { kinds: read_table(TABLE).unwrap_or_default() });

/// Of a kind of which nothing is known.
static GENERIC: LazyLock<WorkloadRules> = LazyLock::new(WorkloadRules::default);

/// All that is known of kinds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kinds {
    kinds: Vec<(Value, Kind)>,
}

/// What is known of one kind before anything of it exists.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Kind {
    #[serde(rename = "match")]
    matches: Match,
    /// `ipujobs`
    pub plural: Option<String>,
    /// `po`
    pub short_names: Vec<String>,
    /// Comes before the workload and is none itself.
    pub helper: bool,
    /// Belongs to the cluster, not to a namespace.
    pub cluster_scoped: bool,
    /// The path of its own time limit, in seconds from its start; without one its pod templates get it; `none`: they do not.
    pub deadline: Option<String>,
    /// The path of the time for which it stays when it is over.
    pub ttl: Option<String>,
    /// The path of the field that holds it back.
    pub suspend: Option<String>,
    #[serde(skip)]
    rules: WorkloadRules,
    /// Everything else: its rules as they are written, until they are read.
    #[serde(flatten)]
    written: serde_json::Map<String, Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Match {
    #[serde(default)]
    group: String,
    kind: String,
}

impl Kinds {
    /// The shipped table.
    pub(crate) fn known() -> &'static Self {
        &KNOWN
    }

    /// The table with more entries merged into it, later over earlier. Their expressions are compiled, so that a mistake shows before
    /// anything is launched.
    ///
    /// # Errors
    /// Every mistake in `entries`, by its place in `k8s_workloads`.
    pub(crate) fn with(&self, entries: &[Value]) -> Result<Cow<'_, Self>, Vec<Diagnostic>> {
        if entries.is_empty() {
            return Ok(Cow::Borrowed(self));
        }
        let mut kinds = self.clone();
        let mut mistakes = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            if let Err(mistake) = kinds.merge_entry(entry) {
                mistakes.push(Diagnostic { message: format!("k8s_workloads[{index}]: {}", mistake.message), ..mistake });
            }
        }
        if mistakes.is_empty() { Ok(Cow::Owned(kinds)) } else { Err(mistakes) }
    }

    fn merge_entry(&mut self, entry: &Value) -> Result<(), Diagnostic> {
        let matches = entry.get("match").ok_or_else(|| Diagnostic::general("it has no `match`"))?;
        let matches: Match = serde_json::from_value(matches.clone()).map_err(|error| {
            Diagnostic::general(format!("`match`: {error}")).hint("write `match: { group: graphcore.ai, kind: IPUJob }`")
        })?;
        let place = self.kinds.iter().position(|(_, kind)| kind.is(&matches.group, &matches.kind));
        let mut merged = place.map_or_else(|| Value::Object(serde_json::Map::new()), |place| self.kinds[place].0.clone());
        // Field by field: half of one way to stop and half of another would be neither.
        for (key, value) in entry.as_object().into_iter().flatten() {
            match key.as_str() {
                "pods" => merge(&mut merged, &serde_json::json!({ "pods": value })),
                key => merged[key] = value.clone(),
            }
        }
        if let Value::Object(merged) = &mut merged {
            merged.retain(|_, value| !value.is_null());
        }
        let kind = Kind::read(&merged)?;
        compile(&kind.rules)?;
        match place {
            Some(place) => self.kinds[place] = (merged, kind),
            None => self.kinds.push((merged, kind)),
        }
        Ok(())
    }

    /// What is known of a resource.
    pub(crate) fn find(&self, resource: &Resource) -> Option<&Kind> {
        self.kinds.iter().map(|(_, kind)| kind).find(|kind| kind.is(&resource.group, &resource.kind))
    }

    /// The plural of a resource: the API's, if it is known.
    pub(crate) fn plural(&self, resource: &Resource) -> String {
        let known = || self.find(resource).and_then(|kind| kind.plural.clone());
        resource.plural.clone().or_else(known).unwrap_or_else(|| resource.probable_plural())
    }

    /// Group and kind of everything in the table that a namespace can hold.
    pub(crate) fn namespaced(&self) -> impl Iterator<Item = (&str, &str)> {
        let kinds = self.kinds.iter().map(|(_, kind)| kind).filter(|kind| !kind.cluster_scoped);
        kinds.map(|kind| (kind.matches.group.as_str(), kind.matches.kind.as_str()))
    }

    /// The rules of a resource; the generic ones if nothing is known of it.
    pub(crate) fn rules(&self, resource: &Resource) -> &WorkloadRules {
        self.find(resource).map_or(&GENERIC, |kind| &kind.rules)
    }
}

impl Kind {
    fn is(&self, group: &str, kind: &str) -> bool {
        self.matches.group == group && self.matches.kind == kind
    }

    fn read(entry: &Value) -> Result<Self, Diagnostic> {
        let mut kind = Self::deserialize(entry).map_err(|error| Diagnostic::general(error.to_string()))?;
        kind.rules = serde_json::from_value(Value::Object(std::mem::take(&mut kind.written))).map_err(|error| {
            let known = "write match, plural, short_names, helper, cluster_scoped, deadline, ttl, suspend or a rule";
            Diagnostic::general(error.to_string()).hint(known)
        })?;
        Ok(kind)
    }
}

fn compile(rules: &WorkloadRules) -> Result<(), Diagnostic> {
    let all = ["self", "pods", "conditions"];
    let rows = [
        ("succeeded", rules.succeeded.as_deref(), &all[..]),
        ("failed", rules.failed.as_deref(), &all[..]),
        ("pods.expect", rules.pods.expect.as_deref(), &all[..1]),
    ];
    for (key, text, names) in rows {
        let Some(text) = text else { continue };
        let expression = Expr::compile(text, Arithmetic::Exact);
        let mistake = match &expression {
            Err(error) => Some(error.clone()),
            Ok(expression) => {
                let known: BTreeSet<&str> = names.iter().copied().collect();
                expression.unknown_names(&known).into_iter().next().or_else(|| expression.text_call())
            }
        };
        if let Some(error) = mistake {
            let part = text.get(error.at.clone()).filter(|part| !part.is_empty() && *part != text);
            let place = part.map_or_else(String::new, |part| format!(" at `{part}`"));
            return Err(Diagnostic { hint: error.hint, ..Diagnostic::general(format!("`{key}`{place}: {}", error.message)) });
        }
    }
    Ok(())
}

fn read_table(text: &str) -> Result<Vec<(Value, Kind)>, Diagnostic> {
    let entries: Vec<Value> = serde_yaml::from_str(text).map_err(|error| Diagnostic::general(error.to_string()))?;
    entries.into_iter().map(|entry| Kind::read(&entry).map(|kind| (entry, kind))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resource(api_version: &str, kind: &str) -> Resource {
        Resource::of(api_version, kind)
    }

    #[test]
    fn the_shipped_table_is_read_and_every_expression_in_it_compiles() {
        let table = read_table(TABLE).expect("the table is YAML");
        assert!(table.len() > 40, "{}", table.len());
        for (entry, kind) in &table {
            compile(&kind.rules).unwrap_or_else(|mistake| panic!("{entry}: {}", mistake.message));
            assert!(kind.plural.is_some(), "{entry}");
        }
        let mut names: Vec<_> = table.iter().map(|(_, kind)| (&kind.matches.group, &kind.matches.kind)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), table.len(), "one entry a kind");
    }

    /// What the rules of a kind say: `Some(true)` it has succeeded, `Some(false)` it has failed, `None` neither.
    fn state(api_version: &str, kind: &str, object: Value, pods: Value, conditions: &[&str]) -> Option<bool> {
        let rules = Kinds::known().rules(&resource(api_version, kind));
        let mut scope = muster_text::expr::Scope::new();
        scope.set("self", object);
        scope.set("pods", pods);
        scope.set("conditions", json!(conditions));
        let holds = |rule: Option<String>| {
            let rule = Expr::compile(&rule.expect("a rule"), Arithmetic::Exact).expect("it compiles");
            rule.eval_bool(&scope)
                .unwrap_or_else(|error| panic!("{kind}: {} at {:?}", error.message, rule.text().get(error.at.clone())))
        };
        let (succeeded, failed) = (holds(rules.succeeded.clone()), holds(rules.failed.clone()));
        assert!(!(succeeded && failed), "{kind} has both succeeded and failed");
        (succeeded || failed).then_some(succeeded)
    }

    #[test]
    fn the_shipped_rules_tell_how_each_kind_ended_and_bear_with_a_missing_status() {
        let rows = [
            ("jobset.x-k8s.io/v1alpha2", "JobSet", "Completed", "Failed"),
            ("kubeflow.org/v1", "PyTorchJob", "Succeeded", "Failed"),
            ("kubeflow.org/v1", "TFJob", "Succeeded", "Failed"),
            ("kubeflow.org/v1", "JAXJob", "Succeeded", "Failed"),
            ("kubeflow.org/v2beta1", "MPIJob", "Succeeded", "Failed"),
            ("trainer.kubeflow.org/v1alpha1", "TrainJob", "Complete", "Failed"),
        ];
        for (api_version, kind, good, bad) in rows {
            let of = |conditions: &[&str]| state(api_version, kind, json!({}), json!([]), conditions);
            assert_eq!((of(&[]), of(&["Created", good]), of(&["Created", bad])), (None, Some(true), Some(false)), "{kind}");
        }
        let rows = [
            (
                "ray.io/v1",
                "RayJob",
                json!({ "jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED" }),
                json!({ "jobDeploymentStatus": "Failed" }),
            ),
            (
                "batch.volcano.sh/v1alpha1",
                "Job",
                json!({ "state": { "phase": "Completed" } }),
                json!({ "state": { "phase": "Aborted" } }),
            ),
            (
                "sparkoperator.k8s.io/v1beta2",
                "SparkApplication",
                json!({ "applicationState": { "state": "COMPLETED" } }),
                json!({ "applicationState": { "state": "SUBMISSION_FAILED" } }),
            ),
            ("argoproj.io/v1alpha1", "Workflow", json!({ "phase": "Succeeded" }), json!({ "phase": "Error" })),
            ("workload.codeflare.dev/v1beta2", "AppWrapper", json!({ "phase": "Succeeded" }), json!({ "phase": "Failed" })),
        ];
        for (api_version, kind, good, bad) in rows {
            let of = |object: Value| state(api_version, kind, object, json!([]), &[]);
            let with = |status: Value| json!({ "status": status });
            assert_eq!((of(json!({})), of(with(json!({})))), (None, None), "{kind}");
            assert_eq!((of(with(good)), of(with(bad))), (Some(true), Some(false)), "{kind}");
        }
    }

    #[test]
    fn a_leader_worker_set_ends_as_its_leaders_did() {
        let pod = |index: &str, state: Value| json!({ "metadata": { "labels": { "leaderworkerset.sigs.k8s.io/worker-index": index } }, "status": { "containerStatuses": [state] } });
        let ended = |exit: i64| json!({ "state": { "terminated": { "exitCode": exit } } });
        let restarted = |exit: i64| json!({ "state": { "running": {} }, "lastState": { "terminated": { "exitCode": exit } } });
        let running = || json!({ "state": { "running": {} } });
        let rows = [
            (json!([]), None),
            (json!([{ "metadata": {} }]), None),
            (json!([pod("0", running()), pod("1", ended(1))]), None),
            (json!([pod("0", ended(0)), pod("1", running())]), Some(true)),
            (json!([pod("0", restarted(0))]), Some(true)),
            (json!([pod("0", ended(0)), pod("0", running())]), None),
            (json!([pod("0", ended(3))]), Some(false)),
            (json!([pod("0", restarted(137))]), Some(false)),
            (json!([pod("0", ended(0)), pod("0", ended(3))]), Some(false)),
        ];
        let set = |spec: Value, pods: &Value| {
            state("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", json!({ "spec": spec }), pods.clone(), &[])
        };
        for (pods, expected) in rows {
            assert_eq!(set(json!({}), &pods), expected, "{pods}");
        }
        let two = json!({ "replicas": 2 });
        assert_eq!(set(two.clone(), &json!([pod("0", ended(0)), pod("1", ended(0))])), None, "its second leader comes late");
        assert_eq!(set(two.clone(), &json!([pod("0", ended(0)), pod("0", restarted(0))])), Some(true));
        assert_eq!(set(two, &json!([pod("0", ended(3))])), Some(false));
        assert_eq!(set(json!({ "replicas": 0 }), &json!([])), None);
    }

    /// A kind that comes to one of these lists wants a test whose last member comes late.
    #[test]
    fn few_kinds_end_as_their_pods_do() {
        let table = read_table(TABLE).expect("the table is YAML");
        let by_pods = |rule: &Option<String>| rule.as_ref().is_some_and(|rule| rule.contains("pods"));
        let named = |wanted: &dyn Fn(&Kind) -> bool| {
            let kinds = table.iter().map(|(_, kind)| kind).filter(|kind| !kind.helper && !kind.cluster_scoped && wanted(kind));
            kinds.map(|kind| kind.matches.kind.clone()).collect::<Vec<_>>()
        };
        assert_eq!(named(&|kind| by_pods(&kind.rules.succeeded)), ["LeaderWorkerSet"]);
        assert_eq!(named(&|kind| kind.rules.succeeded.is_none()), ["Pod", "Job", "IPUJob"]);
    }

    #[test]
    fn a_kind_of_another_group_is_another_kind() {
        let kinds = Kinds::known();
        assert_eq!(kinds.rules(&resource("batch/v1", "Job")).succeeded, None);
        let volcano = kinds.rules(&resource("batch.volcano.sh/v1alpha1", "Job"));
        assert_eq!(volcano.succeeded.as_deref(), Some("get(self, 'status', 'state', 'phase', '') == 'Completed'"));
        assert_eq!(kinds.rules(&resource("example.org/v1", "Job")), &*GENERIC);
    }

    #[test]
    fn a_users_rule_overrides_field_by_field() {
        let kinds = Kinds::known()
            .with(&[
                json!({ "match": { "group": "graphcore.ai", "kind": "IPUJob" }, "succeeded": "size(pods) == 1", "pods": { "selector": "rfm={id}" } }),
                json!({ "match": { "group": "graphcore.ai", "kind": "IPUJob" }, "name_max": 30, "roles": [{ "name": "worker", "selector": "role=worker" }] }),
            ])
            .expect("good rules");
        let rules = kinds.rules(&resource("graphcore.ai/v1alpha1", "IPUJob"));
        assert_eq!((rules.succeeded.as_deref(), rules.name_max), (Some("size(pods) == 1"), Some(30)));
        assert_eq!(rules.pods.selector.as_deref(), Some("rfm={id}"));
        assert!(rules.pods.expect.is_some(), "the table's own");
        assert_eq!(rules.roles.iter().map(|role| role.name.as_str()).collect::<Vec<_>>(), ["worker"]);
        assert_eq!(Kinds::known().rules(&resource("graphcore.ai/v1alpha1", "IPUJob")).name_max, Some(36));
    }

    #[test]
    fn a_mistake_in_a_rule_is_reported_with_its_place() {
        let rows = [
            json!({ "succeeded": "true" }),
            json!({ "match": { "kinds": "X" } }),
            json!({ "match": { "kind": "X" }, "suceeded": "true" }),
            json!({ "match": { "kind": "X" }, "succeeded": "pods.all(p, p.status.phase ==" }),
            json!({ "match": { "kind": "X" }, "failed": "'Failed' in condition" }),
            json!({ "match": { "kind": "X" }, "pods": { "expect": "size(pods)" } }),
            json!({ "match": { "kind": "X" }, "succeeded": "count('done') > 0" }),
            json!({ "match": { "kind": "X" }, "stop": "suspend" }),
        ];
        let mistakes = Kinds::known().with(&rows).expect_err("all of them are wrong");
        let lines: Vec<String> = mistakes.iter().map(|mistake| mistake.message.clone()).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
