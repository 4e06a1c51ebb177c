//! The names that an expression sees and their values, in layers, and for `assert` and `value` the text.

use super::{Effort, text::Text, value};
use crate::{Value, diagnostic::MissingKey};
use cel::common::{types::CelDouble, value::Val};
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

/// Names and values. A scope with a parent sees the parent's names too, its own first.
///
/// What many cases share (the facts of a partition, a site's extras) belongs into a parent: it is converted for the
/// expression language once, when first used, however many scopes have it as a parent.
#[derive(Default)]
pub struct Scope {
    parent: Option<Arc<Scope>>,
    entries: Vec<(Box<str>, Entry)>,
    text: Option<Text>,
    effort: Option<Arc<Effort>>,
}

/// The names under which an expression sees what other cases left. The texts in `NAME.CASE.outputs` are from their logs: captured.
pub(crate) const OF_OTHERS: [&str; 2] = ["fixtures", "deps"];

enum Entry {
    Json {
        value: Value,
        val: OnceLock<Box<dyn Val>>,
    },
    /// Measured figures: NaN is one of them, which JSON cannot hold.
    Figures(Box<dyn Val>),
    /// It would have a value if this key were there. Only what reads the name fails.
    Missing(MissingKey),
}

impl Scope {
    pub fn new() -> Self {
        Self::default()
    }

    /// A scope on top of another.
    pub fn under(parent: Arc<Scope>) -> Self {
        Self { parent: Some(parent), ..Self::default() }
    }

    /// Gives a name a value, in place of the one it had in this scope.
    pub fn set(&mut self, name: impl Into<Box<str>>, value: impl Into<Value>) {
        self.put(name.into(), Entry::Json { value: value.into(), val: OnceLock::new() });
    }

    /// Gives a name a map of figures, `perf["name"]`. Unlike `set` it keeps NaN and infinities.
    pub fn set_figures(&mut self, name: impl Into<Box<str>>, figures: impl IntoIterator<Item = (String, f64)>) {
        let entries = figures.into_iter().map(|(name, figure)| (name, Box::new(CelDouble::from(figure)) as Box<dyn Val>));
        self.put(name.into(), Entry::Figures(Box::new(value::map_val(entries))));
    }

    /// Gives a name no value, because this key is missing: whatever reads the name misses the key.
    pub fn set_missing(&mut self, name: impl Into<Box<str>>, key: MissingKey) {
        self.put(name.into(), Entry::Missing(key));
    }

    /// The missing key that a name needs to have a value.
    pub fn missing(&self, name: &str) -> Option<&MissingKey> {
        match self.entry(name)? {
            Entry::Missing(key) => Some(key),
            Entry::Json { .. } | Entry::Figures(_) => None,
        }
    }

    /// Lets `count`, `findall`, `extractall`, `extractsingle` and `sections` read a text.
    pub fn set_text(&mut self, text: Text) {
        self.text = Some(text);
    }

    /// Says how much each evaluation may do, here and where this scope is a parent.
    pub fn set_effort(&mut self, effort: Arc<Effort>) {
        self.effort = Some(effort);
    }

    /// Sets the same limits again, of which nothing is spent yet.
    pub fn renew_effort(&mut self) {
        self.effort = Some(Arc::new(self.effort().renewed()));
    }

    pub(crate) fn effort(&self) -> Arc<Effort> {
        self.layers().find_map(|scope| scope.effort.clone()).unwrap_or_default()
    }

    fn put(&mut self, name: Box<str>, entry: Entry) {
        if let Some((_, old)) = self.entries.iter_mut().find(|(known, _)| *known == name) {
            *old = entry;
            return;
        }
        // A scope a case has one or two names: the usual first growth to four would be most of its memory.
        self.entries.reserve_exact(1);
        self.entries.push((name, entry));
    }

    /// This scope and those below it.
    fn layers(&self) -> impl Iterator<Item = &Scope> {
        std::iter::successors(Some(self), |scope| scope.parent.as_deref())
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.layers().find_map(|scope| scope.entries.iter().find(|(known, _)| **known == *name).map(|(_, entry)| entry))
    }

    /// The value of a name. Figures have none.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self.entry(name)? {
            Entry::Json { value, .. } => Some(value),
            Entry::Figures(_) | Entry::Missing(_) => None,
        }
    }

    /// Returns whether the name has a value here.
    pub fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// All names, nearest scope first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.layers().flat_map(|scope| scope.entries.iter().map(|(name, _)| &**name))
    }

    /// The text, if this is a scope for judging.
    pub fn text(&self) -> Option<&Text> {
        self.layers().find_map(|scope| scope.text.as_ref())
    }

    /// The value in the expression language's terms, converted when first asked for.
    pub(crate) fn val(&self, name: &str) -> Option<&dyn Val> {
        match self.entry(name)? {
            Entry::Json { value, val } => {
                let made = || if OF_OTHERS.contains(&name) { value::of_others(value) } else { value::to_val(value) };
                Some(val.get_or_init(made).as_ref())
            }
            Entry::Figures(val) => Some(val.as_ref()),
            Entry::Missing(_) => None,
        }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_nearest_scope_wins_and_the_parent_is_shared() {
        let mut site = Scope::new();
        site.set("partition", json!({"cores": 128}));
        site.set("a", 1);
        let site = Arc::new(site);
        let mut one = Scope::under(Arc::clone(&site));
        one.set("a", 2);
        one.set("a", 3);
        let two = Scope::under(Arc::clone(&site));
        assert_eq!((one.get("a"), two.get("a")), (Some(&json!(3)), Some(&json!(1))));
        assert_eq!(one.names().collect::<Vec<_>>(), ["a", "partition", "a"]);
        assert!(one.get("b").is_none() && !one.has("b"));
        let of = |scope: &Scope| std::ptr::from_ref(scope.val("partition").unwrap()).cast::<()>();
        assert_eq!(of(&one), of(&two), "converted once");
    }

    #[test]
    fn a_scope_is_small_and_crosses_threads() {
        fn crosses_threads<T: Send + Sync>() {}
        crosses_threads::<Scope>();
        assert!(size_of::<Scope>() + size_of::<(Box<str>, Entry)>() < 256);
    }
}
