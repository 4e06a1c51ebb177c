//! Trees made of parts of trees: the rest is shared, not copied.

use super::{Kind, Node};

impl Node {
    /// The mapping without these keys, and without their `key+`. Anything else as it is.
    #[must_use]
    pub fn without(&self, keys: &[&str]) -> Self {
        self.keep(|name| !keys.contains(&name.trim_end_matches('+')))
    }

    /// The mapping with these keys only. Anything else as it is.
    #[must_use]
    pub fn only(&self, keys: &[&str]) -> Self {
        self.keep(|name| keys.contains(&name))
    }

    fn keep(&self, wanted: impl Fn(&str) -> bool) -> Self {
        let Kind::Map(entries) = &*self.kind else { return self.clone() };
        let stays = |(key, _): &&(Node, Node)| key.text().is_none_or(&wanted);
        if entries.iter().all(|entry| stays(&entry)) {
            return self.clone();
        }
        let kept = entries.iter().filter(stays).cloned().collect();
        Self { via: self.via, ..Self::new(self.span, Kind::Map(kept)) }
    }

    /// Whether a placeholder is in this tree, in keys or values.
    pub fn has_placeholder_within(&self) -> bool {
        match &*self.kind {
            Kind::Scalar { .. } => self.has_placeholder(),
            Kind::Seq(items) => items.iter().any(Self::has_placeholder_within),
            Kind::Map(entries) => entries.iter().any(|(key, value)| key.has_placeholder() || value.has_placeholder_within()),
            Kind::Bad => false,
        }
    }
}
