//! All objects, and what happened to them, in the order of resource versions.

use crate::request::{selector::Selector, status::No};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

/// Older events are forgotten, as a watch cache does: who asks for them gets 410.
const REMEMBERED: usize = 50_000;

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub group: String,
    pub plural: String,
    /// Empty for what belongs to the whole cluster.
    pub namespace: String,
    pub name: String,
}

/// One change of one object.
#[derive(Debug)]
pub(crate) struct Event {
    pub version: u64,
    pub key: Key,
    pub before: Option<Arc<Value>>,
    /// `None`: it was deleted.
    pub after: Option<Arc<Value>>,
    /// It is sent with the version of its end.
    pub last: Option<Arc<Value>>,
}

#[derive(Debug, Default)]
pub(crate) struct Store {
    pub version: u64,
    uids: u64,
    objects: BTreeMap<Key, Arc<Value>>,
    events: VecDeque<Arc<Event>>,
    /// Events up to this version are forgotten.
    forgotten: u64,
    /// Dependents by their owner's uid.
    owned: HashMap<String, BTreeSet<Key>>,
}

impl Key {
    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    /// `pods`, `jobs.batch`
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }
}

impl Store {
    pub(crate) fn uid(&mut self) -> String {
        self.uids += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.uids)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// All of a kind, of one namespace or of all, in the order of their names.
    pub(crate) fn list<'a>(
        &'a self,
        group: &'a str,
        plural: &'a str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        let text = str::to_owned;
        let first =
            Key { group: text(group), plural: text(plural), namespace: text(namespace.unwrap_or_default()), name: String::new() };
        let within = move |key: &Key| key.is(group, plural) && namespace.is_none_or(|namespace| key.namespace == namespace);
        self.objects.range(first..).take_while(move |(key, _)| within(key))
    }

    /// Stores an object as it is now.
    pub(crate) fn put(&mut self, key: Key, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let after = Arc::new(object);
        let before = self.objects.insert(key.clone(), Arc::clone(&after));
        for owner in before.iter().flat_map(|before| owners(before)) {
            self.disown(owner, &key);
        }
        for owner in owners(&after) {
            self.owned.entry(owner.to_owned()).or_default().insert(key.clone());
        }
        self.happened(Event { version: self.version, key, before, after: Some(Arc::clone(&after)), last: None });
        after
    }

    /// Removes an object.
    pub(crate) fn take(&mut self, key: &Key) -> Option<Arc<Value>> {
        let before = self.objects.remove(key)?;
        for owner in owners(&before) {
            self.disown(owner, key);
        }
        self.version += 1;
        let mut last = (*before).clone();
        last["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let (key, last) = (key.clone(), Some(Arc::new(last)));
        self.happened(Event { version: self.version, key, before: Some(Arc::clone(&before)), after: None, last });
        Some(before)
    }

    pub(crate) fn dependents(&self, uid: &str) -> Vec<Key> {
        self.owned.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Forgets all that happened so far, as compaction does.
    pub(crate) fn compact(&mut self) {
        self.events.clear();
        self.forgotten = self.version;
    }

    /// What happened after a version.
    pub(crate) fn after(&self, version: u64) -> Result<impl Iterator<Item = &Arc<Event>>, No> {
        if version < self.forgotten {
            return Err(No::expired(version, self.forgotten));
        }
        // Every version has one event.
        let known = usize::try_from(version - self.forgotten).unwrap_or(usize::MAX);
        Ok(self.events.iter().skip(known))
    }

    fn disown(&mut self, owner: &str, key: &Key) {
        if let Some(owned) = self.owned.get_mut(owner) {
            owned.remove(key);
            if owned.is_empty() {
                self.owned.remove(owner);
            }
        }
    }

    fn happened(&mut self, event: Event) {
        self.events.push_back(Arc::new(event));
        if self.events.len() > REMEMBERED {
            self.events.pop_front();
            self.forgotten += 1;
        }
    }
}

impl Event {
    /// As somebody sees it who watches only what a selector takes.
    pub(crate) fn seen_by(&self, selector: &Selector) -> Option<(&'static str, &Value)> {
        let takes = |object: &Option<Arc<Value>>| object.as_ref().is_some_and(|object| selector.takes(object));
        match (takes(&self.before), takes(&self.after)) {
            (false, false) => None,
            (false, true) => Some(("ADDED", self.after.as_deref()?)),
            (true, true) => Some(("MODIFIED", self.after.as_deref()?)),
            (true, false) => Some(("DELETED", self.last.as_deref().or(self.after.as_deref())?)),
        }
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten().filter_map(|owner| owner["uid"].as_str())
}
