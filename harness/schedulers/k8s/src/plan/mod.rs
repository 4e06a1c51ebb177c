//! Plans a rendered case: the objects as they will be sent. Pure: what it must know of clusters is in [`Contexts`].
//!
//! ```text
//! Workload -read-> documents -k8s_patch-> -pod_patch-> -adapted-> -named, labelled-> -policy-> Handle
//!                  Pod made of image       the site's   deadlines,  one attempt's own
//!                                                       env_vars, restartPolicy
//! ```
//! The workload is a value of its own for each attempt: nothing here writes into the check's manifest.

mod adapt;
pub(crate) mod container;
mod options;
pub(crate) mod policy;
pub(crate) mod role;

use crate::{
    api::{ClusterPlace, IPU, LABEL, OBJECTS_ANNOTATION, merge_pod},
    client::Contexts,
    job::{Handle, Object},
    kind::{Kinds, ResourceName, WorkloadRules},
    manifest::{self, AttemptLabels, Document, Renames},
    plan::policy::Subject,
};
use muster_core::{
    error::chain,
    job::workload::{Program, Workload},
};
use muster_text::{
    Value,
    diagnostic::{Diagnostic, Severity},
    yaml,
};
use options::Options;
pub(crate) use options::wrong as wrong_options;
use std::{collections::BTreeSet, time::Duration};

/// The keys of a check that hold its objects, and what is laid over them.
pub(crate) const CONFIG: &str = "k8s_config";
pub(crate) const PATCH: &str = "k8s_patch";

/// How long stopped objects stay by default.
const KEEP: Duration = Duration::from_hours(24);
/// What labels, DNS and hosts take.
const NAME_MAX: usize = 63;

/// A plan, and what was done to the manifest that its author may not expect.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The objects and everything else that a launch needs.
    pub handle: Handle,
    /// One sentence each.
    pub notes: Vec<String>,
}

impl Plan {
    /// The objects as they would be sent, for people.
    pub(crate) fn preview(&self, contexts: &Contexts) -> String {
        let place = &self.handle.place;
        let context = match &place.context {
            Some(context) => format!("context {context}"),
            None if contexts.unknown => "no kubeconfig, so the context is not known".to_owned(),
            None => "in-cluster".to_owned(),
        };
        let pods = self.handle.expected_pods.map_or_else(|| "?".to_owned(), |pods| pods.to_string());
        let mut text = format!("# {context}, namespace {}, {pods} pod(s)\n", place.namespace);
        text.extend(self.notes.iter().map(|note| format!("# {note}\n")));
        text.extend(self.handle.objects.iter().map(|object| format!("---\n{}", yaml::to_text(&object.manifest))));
        text
    }
}

/// Plans the objects that a case creates.
///
/// # Errors
/// Every reason why this workload cannot run here.
pub fn plan(workload: &Workload, contexts: &Contexts) -> Result<Plan, Vec<Diagnostic>> {
    let options = Options::read(&workload.sched_options)?;
    let kinds = Kinds::known().with(&options.k8s_workloads)?;
    let (mut documents, patch) = documents(workload, &options, &kinds)?;
    let resource = options.k8s_resource.as_deref().or_else(|| usual_resource(workload, &documents));
    let main = choose_workload(&documents, resource, &kinds)?;
    if let Some(patch) = patch {
        let target = choose_patched(&documents, main, patch)?;
        documents[target].patch(patch);
    }
    patch_pods(&mut documents, &options);
    let place = place(&documents, &options, contexts)?;
    let keep = workload.keep_failed.unwrap_or(KEEP);
    let mut rules = rules(&documents[main], &options, &kinds);
    let notes = adapt::adapt(workload, &options, &kinds, &mut documents, main, &mut rules, keep)?;
    let deadline = adapt::deadline(&workload.limits, options.max_lifetime)
        .filter(|deadline| adapt::give_deadline(deadline, &mut documents, main, &kinds));
    mark(workload, &mut documents, &kinds, &place)?;
    if let Some(selector) = &mut rules.pods.selector {
        let name = documents[main].metadata("name").unwrap_or_default();
        *selector = selector.replace("{name}", name).replace("{id}", workload.identifier.as_str());
    }
    let expected_pods = manifest::pod_count(&documents[main].value, &rules).map_err(|mistake| vec![mistake])?;

    let (mut objects, main) = in_order_of_creation(documents, main, &kinds);
    name_other_objects(&mut objects, main);
    let pods = all_pods(&objects, main, expected_pods);
    let violations = options.policy.violations(Subject { place: &place, objects: &objects, pods });
    if !violations.is_empty() {
        return Err(violations);
    }
    let Options { log_rotation, log_file, .. } = options;
    let own_containers = own_containers(&objects[main].manifest);
    let handle = Handle {
        place,
        objects,
        workload: main,
        expected_pods,
        rules,
        keep_seconds: keep.as_secs(),
        deadline,
        hopeless_after: options.hopeless_after.map(|after| after.as_secs()),
        own_containers,
        log_rotation,
        log_file,
        sources: workload.staging.clone().map(muster_stage::absolute),
    };
    Ok(Plan { handle, notes })
}

/// Why this machine does not reach the cluster that a workload is for. That is no mistake of a file: it ends the cases for this
/// cluster when they are planned, and no others.
pub(crate) fn out_of_reach(workload: &Workload, contexts: &Contexts) -> Option<Diagnostic> {
    let options = Options::read(&workload.sched_options).ok()?;
    let error = contexts.place(options.context.as_deref(), None).err()?;
    Some(Diagnostic { severity: Severity::Warning, ..Diagnostic::general(chain(&error)) })
}

/// Applies the site's patch to every pod.
fn patch_pods(documents: &mut [Document], options: &Options) {
    let Some(patch) = &options.pod_patch else { return };
    for document in documents {
        manifest::each_pod(&mut document.value, &mut |pod| merge_pod(pod, patch));
    }
}

/// The rules of the workload's kind; where they do not name the containers that decide, the options may.
fn rules(workload: &Document, options: &Options, kinds: &Kinds) -> WorkloadRules {
    let mut rules = kinds.rules(&workload.resource).clone();
    if rules.primary_containers.is_empty() {
        rules.primary_containers.clone_from(&options.primary_containers);
    }
    rules
}

/// The documents of a program, and the patch for them.
fn documents<'w>(
    workload: &'w Workload,
    options: &Options,
    kinds: &Kinds,
) -> Result<(Vec<Document>, Option<&'w Value>), Vec<Diagnostic>> {
    let patch = workload.own.get(PATCH);
    let manifest = workload.own.get(CONFIG).and_then(Value::as_array);
    match (&workload.program, manifest) {
        (Program::Own { .. }, Some(manifest)) => Ok((manifest::read(manifest, kinds)?, patch)),
        (Program::Container { image, command, script, env_vars }, _) => {
            let parts = container::Parts {
                image,
                command: command.as_deref(),
                script,
                env_vars,
                resources: options.resources.as_ref(),
                has_sources: workload.staging.is_some(),
            };
            let check = &*workload.case.check;
            let sources = workload.staging.as_ref().map(|_| container::sources(check));
            let documents: Vec<Value> = sources.into_iter().chain([container::pod(check, &parts)]).collect();
            Ok((manifest::read(&documents, kinds)?, patch))
        }
        _ => {
            let message = format!("`{}` has nothing that runs on Kubernetes", workload.case.check);
            Err(vec![Diagnostic::general(message).hint("give it a `k8s_config`, or an `image`")])
        }
    }
}

/// The usual resource of a partition: on one for IPUs the workload is the `IPUJob`, whatever else is in the manifest.
fn usual_resource(workload: &Workload, documents: &[Document]) -> Option<&'static str> {
    let has_ipu_job = || documents.iter().any(|document| document.resource.kind == "IPUJob");
    (*workload.scheduler == *IPU && has_ipu_job()).then_some("ipujob")
}

/// Where it runs. A manifest may say its namespace where neither check nor site does; it may not say another.
fn place(documents: &[Document], options: &Options, contexts: &Contexts) -> Result<ClusterPlace, Vec<Diagnostic>> {
    let written = documents.iter().find_map(|document| document.metadata("namespace"));
    let namespace = options.namespace.as_deref().or(written);
    let place = contexts.place(options.context.as_deref(), namespace);
    let place = place.map_err(|error| vec![Diagnostic::general(chain(&error))])?;
    let elsewhere = documents.iter().filter_map(|document| {
        let written = document.metadata("namespace").filter(|written| *written != place.namespace)?;
        let message = format!("{document} is for the namespace `{written}`, and this case runs in `{}`", place.namespace);
        Some(
            Diagnostic::general(message)
                .hint("leave `metadata.namespace` out of the manifest, or write `namespace` in the check"),
        )
    });
    let elsewhere: Vec<Diagnostic> = elsewhere.collect();
    if elsewhere.is_empty() { Ok(place) } else { Err(elsewhere) }
}

/// Makes every document this attempt's own: its name, its labels, its references to the others.
fn mark(workload: &Workload, documents: &mut [Document], kinds: &Kinds, place: &ClusterPlace) -> Result<(), Vec<Diagnostic>> {
    let rules: Vec<&WorkloadRules> = documents.iter().map(|document| kinds.rules(&document.resource)).collect();
    let mark = AttemptLabels { id: workload.identifier.as_str(), session: &workload.session.0 };
    let (mut renames, mut mistakes, mut names) = (Renames::default(), Vec::new(), Vec::new());
    for (document, rules) in documents.iter().zip(&rules) {
        match new_name(document, mark, rules.name_max.unwrap_or(NAME_MAX), &mut renames) {
            Ok(name) => names.push(name),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    for ((document, rules), name) in documents.iter_mut().zip(&rules).zip(names) {
        mark.label_all(&mut document.value, &rules.metadata_paths, rules.name_max.unwrap_or(NAME_MAX));
        document.call(&name, &place.namespace);
        renames.apply(&mut document.value);
    }
    narrow_services(documents, mark.id);
    Ok(())
}

fn new_name(document: &Document, mark: AttemptLabels<'_>, max: usize, renames: &mut Renames) -> Result<String, Diagnostic> {
    let kind = &document.resource.kind;
    let (name, generate_name) = (document.metadata("name"), document.metadata("generateName"));
    let Some(mut new) = mark.renamed(name, generate_name, max) else {
        let message = format!("{document} has neither a `name` nor a `generateName`");
        return Err(Diagnostic::general(message).hint("write `metadata: { generateName: NAME- }`"));
    };
    if let Some(name) = name
        && renames.is_known(kind, name)
    {
        return Err(Diagnostic::general(format!("the manifest has {document} twice")).hint("give one of them another name"));
    }
    // Long names may differ only in the letters that were left out, and generated ones not at all.
    let stem = document.written_name().unwrap_or_default().trim_end_matches('-');
    let mut number = 2;
    while renames.is_taken(kind, &new) {
        new = manifest::shortened(stem, &format!("-{number}-{}", mark.id), max);
        number += 1;
    }
    renames.add(kind, name.unwrap_or_default(), &new);
    Ok(new)
}

/// A Service that selects pods of this manifest selects those of this attempt only: another attempt's look alike.
fn narrow_services(documents: &mut [Document], id: &str) {
    let is_service = |document: &Document| document.resource.group.is_empty() && document.resource.kind == "Service";
    if !documents.iter().any(is_service) {
        return;
    }
    let mut labels = Vec::new();
    for document in documents.iter() {
        for (pod, _) in manifest::pod_templates(&document.value) {
            labels.extend(manifest::at(pod, "metadata.labels").and_then(Value::as_object).cloned());
        }
    }
    for service in documents.iter_mut().filter(|document| is_service(document)) {
        let Some(selector) = manifest::at(&service.value, "spec.selector").and_then(Value::as_object) else { continue };
        let selects =
            |labels: &serde_json::Map<String, Value>| selector.iter().all(|(key, value)| labels.get(key) == Some(value));
        if !selector.is_empty() && labels.iter().any(selects) {
            manifest::set(&mut service.value, &format!("spec.selector.{LABEL}"), id.into());
        }
    }
}

/// The names of the main containers in the workload's pods.
fn own_containers(workload: &Value) -> Vec<String> {
    let mut names = BTreeSet::new();
    for (pod, _) in manifest::pod_templates(workload) {
        let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
        names.extend(containers.filter_map(|container| container["name"].as_str()).map(str::to_owned));
    }
    names.into_iter().collect()
}

/// The pods of the workload and of the other objects.
fn all_pods(objects: &[Object], main: usize, of_workload: Option<u32>) -> u32 {
    let mut all = of_workload.unwrap_or(0);
    for (_, object) in objects.iter().enumerate().filter(|(index, _)| *index != main) {
        let pods = manifest::pod_templates(&object.manifest).into_iter();
        all = pods.fold(all, |all, (_, count)| all.saturating_add(count));
    }
    all
}

/// Helpers first, the workload last: what it refers to is there when it starts.
fn in_order_of_creation(documents: Vec<Document>, main: usize, kinds: &Kinds) -> (Vec<Object>, usize) {
    let rank = |index: usize, document: &Document| match kinds.find(&document.resource) {
        _ if index == main => 2,
        Some(kind) if kind.helper => 0,
        _ => 1,
    };
    let mut ranked: Vec<_> =
        documents.into_iter().enumerate().map(|(index, document)| (rank(index, &document), document)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    let objects: Vec<Object> = ranked.into_iter().map(|(_, document)| document.into_object()).collect();
    let workload = objects.len().saturating_sub(1);
    (objects, workload)
}

/// The workload says what was created beside it: who may not list Secrets finds them by name.
fn name_other_objects(objects: &mut [Object], main: usize) {
    let beside = objects.iter().enumerate().filter(|(index, _)| *index != main);
    let names = beside.map(|(_, object)| object.named()).collect::<Vec<_>>().join(",");
    if let (false, Some(workload)) = (names.is_empty(), objects.get_mut(main)) {
        workload.manifest["metadata"]["annotations"][OBJECTS_ANNOTATION] = names.into();
    }
}

/// The document that `k8s_resource` names, else the only one that is not a helper.
fn choose_workload(documents: &[Document], resource: Option<&str>, kinds: &Kinds) -> Result<usize, Vec<Diagnostic>> {
    let is_helper = |document: &Document| kinds.find(&document.resource).is_some_and(|kind| kind.helper);
    let name = resource.map(ResourceName::parse);
    let fits = |document: &Document| match &name {
        None => !is_helper(document),
        Some(name) => {
            name.means(&document.resource, kinds) && document.written_name().is_none_or(|written| name.means_object(written))
        }
    };
    let fitting: Vec<usize> = (0..documents.len()).filter(|index| fits(&documents[*index])).collect();
    let wrong = |message: String, hint: &str| Err(vec![Diagnostic::general(message).hint(hint)]);
    match (&fitting[..], resource) {
        ([only], _) => Ok(*only),
        ([], Some(resource)) => wrong(
            format!("`k8s_resource: {resource}` is none of the manifest's objects: {}", listed(documents)),
            "name the kind that ends: its kind, plural or short name, with its group if need be",
        ),
        ([], None) => wrong(
            format!("nothing in the manifest ends by itself: {}", listed(documents)),
            "add the workload, or name one of these with `k8s_resource` and a rule in `k8s_workloads`",
        ),
        (several, _) => {
            let several: Vec<Document> = several.iter().map(|index| documents[*index].clone()).collect();
            let message = format!("the manifest has several workloads: {}", listed(&several));
            wrong(message, "name with `k8s_resource` the one whose end is the case's: `job`, or `pod/NAME`")
        }
    }
}

/// The document that a patch is for: the one of its `kind` (and `metadata.name`), if it says one, else the workload.
fn choose_patched(documents: &[Document], workload: usize, patch: &Value) -> Result<usize, Vec<Diagnostic>> {
    let Some(kind) = patch.get("kind").and_then(Value::as_str) else { return Ok(workload) };
    let api_version = patch.get("apiVersion").and_then(Value::as_str);
    let is_meant = |document: &Document| {
        document.resource.kind == kind && api_version.is_none_or(|version| version == document.resource.api_version())
    };
    let mut meant: Vec<usize> = (0..documents.len()).filter(|index| is_meant(&documents[*index])).collect();
    if meant.len() > 1
        && let Some(name) = patch.pointer("/metadata/name").and_then(Value::as_str)
    {
        meant.retain(|index| documents[*index].metadata("name") == Some(name));
    }
    match &meant[..] {
        [only] => Ok(*only),
        [] => {
            let message = format!("`k8s_patch` is for a {kind} that is not in the manifest: {}", listed(documents));
            Err(vec![
                Diagnostic::general(message)
                    .hint("name the `kind` and `metadata.name` of one of these, or leave `kind` out for the workload"),
            ])
        }
        _ => {
            let meant: Vec<Document> = meant.iter().map(|index| documents[*index].clone()).collect();
            let message = format!("`k8s_patch` may be for any of {}", listed(&meant));
            Err(vec![Diagnostic::general(message).hint("write the `metadata.name` of the one it is for")])
        }
    }
}

fn listed(documents: &[Document]) -> String {
    documents.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
