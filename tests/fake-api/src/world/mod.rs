//! The whole state of a fake cluster, and the verbs of its API on it.
//!
//! ```text
//! serve -create, change, delete-> World (one lock) -version-> watches
//!                                   '-> pods (a task each), jobs (one task for all), quotas, dependents
//! ```

pub(crate) mod jobs;
pub(crate) mod kinds;
pub(crate) mod logs;
mod pods;
mod quantity;
mod quota;
pub(crate) mod script;
pub(crate) mod store;

use crate::{Request, fault::Fault, request::status::No};
use jiff::{SignedDuration, Timestamp};
use kinds::Kinds;
use logs::Logs;
use script::Step;
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use store::{Key, Store};
use tokio::{
    runtime::Handle,
    sync::{Notify, broadcast, mpsc, watch},
};

/// A fake cluster.
#[derive(Debug)]
pub(crate) struct World {
    state: Mutex<State>,
    /// The latest version.
    pub changed: watch::Sender<u64>,
    /// Streams whose path and query contain this break.
    pub cuts: broadcast::Sender<String>,
    /// Jobs to be looked at.
    pub jobs: mpsc::UnboundedSender<Key>,
    runtime: Handle,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub store: Store,
    pub kinds: Kinds,
    pub logs: Logs,
    pub faults: Vec<Fault>,
    pub requests: Vec<Request>,
    /// Verb and resource.
    pub denied: BTreeSet<(String, String)>,
    /// Requests must carry it.
    pub token: Option<String>,
    /// Seconds that the dates of its answers are ahead.
    pub clock_ahead: i64,
    /// The scripts of pods whose name contains the text; the last that fits.
    pub scripts: Vec<(String, Vec<Step>)>,
    /// Pods that live, by uid: they are notified when something changed them.
    pub alive: HashMap<String, Arc<Notify>>,
}

/// How an object is deleted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deletion {
    pub propagation: Option<String>,
    pub uid: Option<String>,
    pub grace: Option<i64>,
}

impl World {
    pub(crate) fn new(jobs: mpsc::UnboundedSender<Key>) -> Arc<Self> {
        let world = Self {
            state: Mutex::default(),
            changed: watch::Sender::new(0),
            cuts: broadcast::Sender::new(64),
            jobs,
            runtime: Handle::current(),
        };
        Arc::new(world)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates an object, whatever its kind.
    pub(crate) fn create(self: &Arc<Self>, key: &Key, mut object: Value, dry_run: bool) -> Result<Value, No> {
        let mut state = self.state();
        let mut key = key.clone();
        let meta = &mut object["metadata"];
        if let Some(prefix) = meta["generateName"].as_str().filter(|_| meta["name"].is_null()) {
            let suffix = state.store.version;
            meta["name"] = json!(format!("{prefix}{}", letters(suffix)));
        }
        meta["name"].as_str().unwrap_or_default().clone_into(&mut key.name);
        state.may_create(&key, &object)?;
        let uid = state.store.uid();
        let meta = &mut object["metadata"];
        meta["uid"] = json!(uid);
        meta["creationTimestamp"] = json!(now());
        if !key.namespace.is_empty() {
            meta["namespace"] = json!(key.namespace);
        }
        if meta["generation"].is_null() {
            meta["generation"] = json!(1);
        }
        if key.is("", "pods") {
            default_pod(&mut object);
        }
        if dry_run {
            return Ok(object);
        }
        let stored = state.store.put(key.clone(), object);
        if key.is("", "pods") {
            let steps = state.script_of(&stored);
            let poke = Arc::new(Notify::new());
            state.alive.insert(uid, Arc::clone(&poke));
            self.runtime.spawn(pods::live(Arc::clone(self), key.clone(), steps, poke));
        }
        self.settled(state, &key);
        Ok((*stored).clone())
    }

    /// Stores an object from a test as it is, quotas and controllers left out.
    pub(crate) fn insert(&self, key: &Key, mut object: Value) {
        let mut state = self.state();
        let uid = state.store.uid();
        let meta = &mut object["metadata"];
        meta["uid"] = json!(uid);
        meta["creationTimestamp"] = json!(now());
        state.store.put(key.clone(), object);
        self.changed.send_replace(state.store.version);
    }

    /// Changes an object; `None`: it is not there.
    pub(crate) fn change(&self, key: &Key, change: impl FnOnce(&mut Value) -> Result<(), No>) -> Option<Result<Value, No>> {
        let mut state = self.state();
        let before = Arc::clone(state.store.get(key)?);
        let mut object = (*before).clone();
        if let Err(no) = change(&mut object) {
            return Some(Err(no));
        }
        if object == *before {
            return Some(Ok(object));
        }
        if object["spec"] != before["spec"] {
            object["metadata"]["generation"] = json!(before["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
        }
        let meta = &object["metadata"];
        let over =
            !meta["deletionTimestamp"].is_null() && finalizers(&object).is_empty() && !state.alive.contains_key(uid(&object));
        let stored = state.store.put(key.clone(), object);
        if over {
            self.remove(&mut state, key);
        }
        if let Some(poke) = state.alive.get(uid(&stored)) {
            poke.notify_one();
        }
        self.settled(state, key);
        Some(Ok((*stored).clone()))
    }

    /// Deletes an object as the API does: dependents, finalizers and a pod's processes have their say.
    pub(crate) fn delete(&self, key: &Key, how: &Deletion) -> Result<Value, No> {
        let mut state = self.state();
        let object = Arc::clone(state.store.get(key).ok_or_else(|| No::not_found(&key.qualified(), &key.name))?);
        if let Some(wanted) = how.uid.as_deref().filter(|wanted| *wanted != uid(&object)) {
            let (what, name, has) = (key.qualified(), &key.name, uid(&object));
            let why = format!("the UID in the precondition ({wanted}) does not match the UID in record ({has})");
            let text = format!(
                "Operation cannot be fulfilled on {what} \"{name}\": {why}. The object might have been deleted and then recreated"
            );
            return Err(No::new(409, "Conflict", text));
        }
        let default = if key.is("batch", "jobs") { "Orphan" } else { "Background" };
        let deleted = self.delete_one(&mut state, key, how.propagation.as_deref().unwrap_or(default), how.grace);
        self.settled(state, key);
        Ok(deleted)
    }

    fn delete_one(&self, state: &mut State, key: &Key, propagation: &str, grace: Option<i64>) -> Value {
        let Some(object) = state.store.get(key).map(Arc::clone) else { return Value::Null };
        let mut object = (*object).clone();
        let dependents = state.store.dependents(uid(&object));
        if propagation == "Orphan" {
            let owner = uid(&object).to_owned();
            for dependent in dependents {
                state.orphan(&dependent, &owner);
            }
        } else if propagation == "Foreground" && !dependents.is_empty() {
            mark(&mut object, None);
            let mut finalizers = finalizers(&object);
            finalizers.push("foregroundDeletion".to_owned());
            object["metadata"]["finalizers"] = json!(finalizers);
            state.store.put(key.clone(), object.clone());
            for dependent in dependents {
                self.delete_one(state, &dependent, "Foreground", None);
            }
            return object;
        }
        let poke = state.alive.get(uid(&object)).map(Arc::clone).filter(|_| grace != Some(0));
        if poke.is_none() && finalizers(&object).is_empty() {
            self.remove(state, key);
            return object;
        }
        if object["metadata"]["deletionTimestamp"].is_null() {
            mark(&mut object, poke.as_ref().map(|_| grace.unwrap_or(30)));
            state.store.put(key.clone(), object.clone());
        }
        if let Some(poke) = poke {
            poke.notify_one();
        }
        object
    }

    /// A pod's processes have ended after its deletion.
    pub(crate) fn pod_is_over(&self, key: &Key, uid: &str) {
        let mut state = self.state();
        state.alive.remove(uid);
        let there = state.store.get(key).filter(|object| self::uid(object) == uid).map(Arc::clone);
        if there.is_some_and(|object| !object["metadata"]["deletionTimestamp"].is_null() && finalizers(&object).is_empty()) {
            self.remove(&mut state, key);
        }
        self.settled(state, key);
    }

    /// It is gone; so are its logs, and its dependents will be.
    fn remove(&self, state: &mut State, key: &Key) {
        let Some(object) = state.store.take(key) else { return };
        if let Some(poke) = state.alive.remove(uid(&object)) {
            poke.notify_one();
        }
        if key.is("", "pods") {
            state.logs.remove(uid(&object), &containers(&object));
        }
        for dependent in state.store.dependents(uid(&object)) {
            self.delete_one(state, &dependent, "Background", None);
        }
        for owner in object["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
            self.dependent_is_gone(state, key, owner);
        }
    }

    /// An owner that was deleted in the foreground goes with its last dependent.
    fn dependent_is_gone(&self, state: &mut State, key: &Key, owner: &Value) {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let Some(kind) = state.kinds.named(text("apiVersion"), text("kind")).cloned() else { return };
        let owner =
            Key { group: kind.group, plural: kind.plural, namespace: key.namespace.clone(), name: text("name").to_owned() };
        let Some(object) = state.store.get(&owner).map(Arc::clone) else { return };
        if owner.is("batch", "jobs") {
            let _ = self.jobs.send(owner.clone());
        }
        let mut left = finalizers(&object);
        if left.iter().any(|name| name == "foregroundDeletion") && state.store.dependents(uid(&object)).is_empty() {
            left.retain(|name| name != "foregroundDeletion");
            if left.is_empty() {
                return self.remove(state, &owner);
            }
            let mut object = (*object).clone();
            object["metadata"]["finalizers"] = json!(left);
            state.store.put(owner, object);
        }
    }

    /// What follows from a change of this object.
    fn settled(&self, mut state: MutexGuard<'_, State>, key: &Key) {
        for (name, quota) in quota::settle(&state.store, &key.namespace) {
            let namespace = key.namespace.clone();
            state.store.put(Key { group: String::new(), plural: "resourcequotas".into(), namespace, name }, quota);
        }
        if key.is("batch", "jobs") {
            let _ = self.jobs.send(key.clone());
        } else if key.is("", "pods") {
            let job = state.store.get(key).and_then(|pod| pod["metadata"]["labels"]["job-name"].as_str().map(str::to_owned));
            if let Some(name) = job {
                let namespace = key.namespace.clone();
                let _ = self.jobs.send(Key { group: "batch".into(), plural: "jobs".into(), namespace, name });
            }
        }
        let version = state.store.version;
        drop(state);
        self.changed.send_replace(version);
    }
}

impl State {
    fn may_create(&self, key: &Key, object: &Value) -> Result<(), No> {
        if !key.namespace.is_empty() {
            let namespace =
                Key { group: String::new(), plural: "namespaces".into(), namespace: String::new(), name: key.namespace.clone() };
            let namespace = self.store.get(&namespace).ok_or_else(|| No::not_found("namespaces", &key.namespace))?;
            if !namespace["metadata"]["deletionTimestamp"].is_null() {
                let (what, name, namespace) = (key.qualified(), &key.name, &key.namespace);
                let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
                return Err(No::new(403, "Forbidden", format!("{what} \"{name}\" is forbidden: {why}")));
            }
        }
        if key.name.is_empty() {
            return Err(No::new(422, "Invalid", "metadata.name: Required value: name or generateName is required"));
        }
        if self.store.get(key).is_some() {
            return Err(No::new(409, "AlreadyExists", format!("{} \"{}\" already exists", key.qualified(), key.name)));
        }
        if key.is("", "pods") && object["spec"]["containers"].as_array().is_none_or(Vec::is_empty) {
            return Err(No::new(422, "Invalid", format!("Pod \"{}\" is invalid: spec.containers: Required value", key.name)));
        }
        quota::admit(&self.store, &key.namespace, &key.group, &key.plural, object)
    }

    fn script_of(&self, pod: &Value) -> Vec<Step> {
        let meta = &pod["metadata"];
        let name = meta["name"].as_str().unwrap_or_default();
        let reported = meta["annotations"]["fake-api/script"].as_str().and_then(|text| script::parse(text).ok());
        let by_name = || self.scripts.iter().rev().find(|(part, _)| name.contains(part.as_str())).map(|(_, steps)| steps.clone());
        reported.or_else(by_name).or_else(|| script::parse(script::DEFAULT).ok()).unwrap_or_default()
    }

    fn orphan(&mut self, key: &Key, owner: &str) {
        let Some(object) = self.store.get(key) else { return };
        let mut object = (**object).clone();
        if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|reference| reference["uid"] != owner);
        }
        self.store.put(key.clone(), object);
    }
}

pub(crate) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

pub(crate) fn now() -> String {
    format!("{:.0}", Timestamp::now())
}

/// The names of all containers, init containers first.
pub(crate) fn containers(pod: &Value) -> Vec<String> {
    let of = |field: &str| pod["spec"][field].as_array().into_iter().flatten();
    let all = of("initContainers").chain(of("containers"));
    all.filter_map(|container| container["name"].as_str().map(str::to_owned)).collect()
}

fn finalizers(object: &Value) -> Vec<String> {
    let all = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    all.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn mark(object: &mut Value, grace: Option<i64>) {
    let end = Timestamp::now() + SignedDuration::from_secs(grace.unwrap_or(0));
    object["metadata"]["deletionTimestamp"] = json!(format!("{end:.0}"));
    object["metadata"]["deletionGracePeriodSeconds"] = json!(grace.unwrap_or(0));
}

fn default_pod(pod: &mut Value) {
    let spec = &mut pod["spec"];
    for (field, value) in [("restartPolicy", "Always"), ("dnsPolicy", "ClusterFirst"), ("schedulerName", "default-scheduler")] {
        if spec[field].is_null() {
            spec[field] = json!(value);
        }
    }
    pod["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"});
}

/// As the server makes a name unique: five letters and digits.
fn letters(mut number: u64) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let letter = |_| {
        let at = number % ALPHABET.len() as u64;
        number /= ALPHABET.len() as u64;
        char::from(ALPHABET[usize::try_from(at).unwrap_or(0)])
    };
    (0..5).map(letter).collect()
}
