//! Expands a check to its cases: decides what can be decided before a partition is chosen, and where each variant may run.

use super::Check;
use crate::{
    cases::{
        parameter::{self, Variant},
        test_case::TestCase,
        when,
    },
    files::check_file::CheckFile,
    site::{
        System,
        facts::{Place, SystemFacts},
        selector::Selector,
    },
};
use muster_text::{
    decode::{Keyed, MoreKeys, Placeholders},
    diagnostic::{Diagnostic, nearest},
    template,
    yaml::Node,
};
use std::sync::Arc;

const VALID_SYSTEMS: &str = "valid_systems";
/// The names that are known before a partition is chosen.
const EARLY_KEYS: [&str; 4] = ["name", VALID_SYSTEMS, "valid_prog_environs", "tags"];

/// The facts of a variant that are known before a partition is chosen.
#[derive(Debug, Clone)]
pub struct Early {
    valid_systems: Selector,
    valid_environs: Selector,
    /// `tags`
    pub tags: Vec<String>,
}

impl Check {
    /// Its variants on a system, without those that are excluded.
    pub(crate) fn variants(&self, site: &SystemFacts, diagnostics: &mut Vec<Diagnostic>) -> Vec<Variant> {
        let mut variants = parameter::expand(&self.parameters, &site.scope, &self.cache, diagnostics);
        variants.retain(|variant| !self.exclude.iter().any(|entry| entry.iter().all(|wanted| wanted.admits(variant))));
        variants
    }

    /// A variant as a fixture of a case at this place, wherever the check itself may run. `None`: an entry of `when` takes it
    /// out.
    pub(crate) fn fixture_case(
        self: &Arc<Self>,
        variant: Arc<Variant>,
        place: &Arc<Place>,
        site: &SystemFacts,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<TestCase> {
        let applied = self.early(&variant, site, diagnostics)?;
        let early = self.early_settings(&variant, &applied, site, diagnostics)?;
        Some(TestCase::new(self.clone(), variant, place.clone(), early))
    }

    /// All cases on a system, before any filter.
    pub fn cases(self: &Arc<Self>, site: &SystemFacts, diagnostics: &mut Vec<Diagnostic>) -> Vec<TestCase> {
        let variants = self.variants(site, diagnostics);
        let mut cases = Vec::new();
        for variant in variants {
            let Some(applied) = self.early(&variant, site, diagnostics) else { continue };
            let layer = self.layer(&applied);
            if layer.tree.get(VALID_SYSTEMS).is_none() {
                if !is_mistyped(&layer.tree) {
                    diagnostics.push(
                        Diagnostic::error(self.span, "`valid_systems` is missing")
                            .hint("write valid_systems: [\"*\"], or name systems, partitions and features"),
                    );
                }
                break;
            }
            let Some(early) = self.early_settings(&variant, &applied, site, diagnostics) else { continue };
            let variant = Arc::new(variant);
            for place in site.places.iter().filter(|place| early.admits(&site.system, place)) {
                cases.push(TestCase::new(self.clone(), variant.clone(), place.clone(), early.clone()));
            }
        }
        cases
    }

    /// The early entries that hold for a variant; `None` if one of them takes it off the list.
    fn early(&self, variant: &Variant, site: &SystemFacts, diagnostics: &mut Vec<Diagnostic>) -> Option<Vec<usize>> {
        let mut applied = Vec::new();
        for &index in &self.early_rules {
            let rule = &self.rules[index];
            let condition = &rule.condition;
            if !condition.admits_variant(variant) || !condition.admits_system(&site.system.name) {
                continue;
            }
            let scope = || variant.scope(&site.scope);
            if condition.expression.is_some() && condition.admits_scope(&scope(), diagnostics) != Some(true) {
                continue;
            }
            if let Some(reason) = &rule.skip {
                // A reason that becomes null does not skip the case.
                if !reason.has_placeholder() {
                    return None;
                }
                template::render(reason, &scope(), &self.cache, diagnostics).map_or(Some(()), |_| None)?;
            }
            applied.push(index);
        }
        Some(applied)
    }

    fn early_settings(
        &self,
        variant: &Variant,
        applied: &[usize],
        site: &SystemFacts,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Arc<Early>> {
        let layer = self.layer(applied);
        if let Some(early) = layer.early.get() {
            return Some(early.clone());
        }
        diagnostics.extend(layer.diagnostics.iter().cloned());
        let keys = layer.tree.only(&EARLY_KEYS);
        let is_fixed = !keys.has_placeholder_within();
        let rendered = template::render(&keys, &variant.scope(&site.scope), &self.cache, diagnostics)?;
        let early = Arc::new(Early::read(&rendered, site, diagnostics));
        if is_fixed { Some(layer.early.get_or_init(|| early).clone()) } else { Some(early) }
    }
}

impl Early {
    fn read(rendered: &Node, site: &SystemFacts, diagnostics: &mut Vec<Diagnostic>) -> Self {
        let file = CheckFile::of(rendered, &MoreKeys::default(), Placeholders::Refuse, diagnostics);
        let mut selector = |key: &str| rendered.get(key).map_or_else(Selector::any, |node| when::selector(node, diagnostics));
        let (valid_systems, valid_environs) = (selector("valid_systems"), selector("valid_prog_environs"));
        if let Some(systems) = rendered.get("valid_systems") {
            site.known.check_names(systems, diagnostics);
        }
        let tags = file.and_then(|file| file.tags).map(|tags| tags.0).unwrap_or_default();
        Self { valid_systems, valid_environs, tags }
    }

    fn admits(&self, system: &System, place: &Place) -> bool {
        self.valid_systems.admits(system, &place.partition) && self.valid_environs.admits_environment(&place.environ)
    }
}

/// Whether a key is `valid_systems` with a slip: that it is unknown was reported, with what was meant.
fn is_mistyped(tree: &Node) -> bool {
    let known = || CheckFile::TABLE.keys.iter().map(|key| key.name);
    let unknown = tree.entries().iter().filter_map(|(key, _)| key.text()).filter(|key| !known().any(|name| name == *key));
    unknown.into_iter().any(|key| nearest(key, known()) == Some(VALID_SYSTEMS))
}
