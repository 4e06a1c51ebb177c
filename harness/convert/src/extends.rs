//! Bases become abstract checks: what a derived check shares with its base is left out of it.
//!
//! Every check is made whole first; then what `extends` would give it anyway is taken away. So a check means the same
//! with its base and without, and one that cannot be written as a change of its base stays whole.

use crate::{
    check::{self, Document, Purpose},
    interp::Manifests,
    reading::read,
    value::{ClassId, Value},
    world::{Root, World},
};

/// Mappings whose entries null takes back.
const TAKEN_BACK: [&str; 4] = ["variables", "env_vars", "perf_variables", "reference"];
/// Keys that are a check's own.
const OWN: [&str; 3] = ["name", "abstract", "extends"];

/// Checks and what they derive from.
pub(crate) fn and_bases(world: &World, documents: Vec<Document>, manifests: &dyn Manifests) -> Vec<Document> {
    let mut all = documents;
    let mut wanted: Vec<ClassId> = all.iter().filter_map(|document| parent(world, &document.id)).collect();
    while let Some(id) = wanted.pop() {
        if all.iter().any(|known| known.id == id) {
            continue;
        }
        let Ok(mut reading) = read(world, &id, manifests) else { continue };
        let mut base = check::document(&mut reading, Purpose::Base);
        base.entries.insert(1, ("abstract".to_owned(), Value::Bool(true)));
        wanted.extend(parent(world, &id));
        all.push(base);
    }
    all
}

/// The `listed` checks without what their bases give them, and these; a base stands before what derives from it.
pub(crate) fn over_bases(world: &World, all: &[Document], listed: &[ClassId]) -> Vec<Document> {
    let derived: Vec<(Document, Option<ClassId>)> = all.iter().map(|document| over_base(world, all, document)).collect();
    // A base that nothing extends says nothing.
    let is_used = |document: &Document| listed.contains(&document.id) || chain_uses(&derived, listed, &document.id);
    let mut kept: Vec<Document> =
        derived.iter().map(|(document, _)| document).filter(|document| is_used(document)).cloned().collect();
    let line = |document: &Document| world.class(&document.id).map_or(0, |class| class.line);
    kept.sort_by_key(|document| (document.id.0, line(document)));
    kept
}

/// Whether a listed check extends it, directly or not.
fn chain_uses(derived: &[(Document, Option<ClassId>)], listed: &[ClassId], id: &ClassId) -> bool {
    let heirs = derived.iter().filter(|(_, base)| base.as_ref() == Some(id)).map(|(document, _)| &document.id);
    heirs.clone().any(|heir| listed.contains(heir) || chain_uses(derived, listed, heir))
}

/// The class that a check is derived from: the first of its bases that is a test.
fn parent(world: &World, id: &ClassId) -> Option<ClassId> {
    let class = world.class(id)?;
    class
        .bases
        .iter()
        .filter_map(|base| world.class_named(id.0, base))
        .find(|base| base != id && world.lineage(base).is_ok_and(|(_, root)| root != Root::None))
}

/// The check without what its base gives it, and that base.
fn over_base(world: &World, all: &[Document], document: &Document) -> (Document, Option<ClassId>) {
    let whole = || (document.clone(), None);
    let Some(base) = parent(world, &document.id).and_then(|id| all.iter().find(|known| known.id == id)) else { return whole() };
    let Some(name) = reference(world, document, base) else { return whole() };
    let own = |entries: &[(String, Value)]| -> Vec<(String, Value)> {
        entries.iter().filter(|(key, _)| !OWN.contains(&key.as_str())).cloned().collect()
    };
    let (above, full) = (own(&base.entries), own(&document.entries));
    let Some(rest) = change(&above, &full) else { return whole() };
    // A base that gives next to nothing is only in the way.
    if rest.len() + 1 >= full.len() {
        return whole();
    }
    let mut entries = vec![("name".to_owned(), Value::text(&*document.name)), ("extends".to_owned(), Value::Str(name))];
    if document.entries.iter().any(|(key, _)| key == "abstract") {
        entries.push(("abstract".to_owned(), Value::Bool(true)));
    }
    entries.extend(rest);
    let comments = document.comments.iter().filter(|comment| !base.comments.contains(comment)).cloned().collect();
    (Document { comments, entries, ..document.clone() }, Some(base.id.clone()))
}

/// `#base`, or `base.check.yaml#base` of the same folder.
fn reference(world: &World, document: &Document, base: &Document) -> Option<String> {
    if document.id.0 == base.id.0 {
        return Some(format!("#{}", base.name));
    }
    let (here, there) = (&world.files[document.id.0], &world.files[base.id.0]);
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    (folder(&here.path) == folder(&there.path)).then(|| format!("{}.check.yaml#{}", there.stem(), base.name))
}

/// What has to be laid over the base.
fn change(base: &[(String, Value)], full: &[(String, Value)]) -> Option<Vec<(String, Value)>> {
    if base.iter().any(|(key, _)| !full.iter().any(|(known, _)| known == key)) {
        return None;
    }
    let mut rest = Vec::new();
    for (key, value) in full {
        let above = base.iter().find(|(known, _)| known == key).map(|(_, value)| value);
        match (above, value) {
            (Some(above), value) if above == value => {}
            (Some(Value::Dict(above)), Value::Dict(entries)) => {
                let entries = change_of_map(key, above, entries)?;
                rest.push((key.clone(), Value::Dict(entries)));
            }
            (Some(Value::List(above)), Value::List(items)) if !above.is_empty() && items.starts_with(above) => {
                rest.push((format!("{key}+"), Value::List(items[above.len()..].to_vec())));
            }
            _ => rest.push((key.clone(), value.clone())),
        }
    }
    Some(rest)
}

fn change_of_map(key: &str, base: &[(Value, Value)], full: &[(Value, Value)]) -> Option<Vec<(Value, Value)>> {
    let at = |map: &[(Value, Value)], name: &Value| map.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    // The order of parameters is that of the names of cases.
    if key == "parameters" && full.iter().zip(base).any(|((name, _), (above, _))| name != above) {
        return None;
    }
    let mut rest = Vec::new();
    for (name, value) in full {
        match (at(base, name), value) {
            (Some(above), value) if above == *value => {}
            (Some(Value::Dict(above)), Value::Dict(entries)) => {
                rest.push((name.clone(), Value::Dict(change_of_map("", &above, entries)?)));
            }
            _ => rest.push((name.clone(), value.clone())),
        }
    }
    for (name, _) in base.iter().filter(|(name, _)| at(full, name).is_none()) {
        if !TAKEN_BACK.contains(&key) {
            return None;
        }
        rest.push((name.clone(), Value::None));
    }
    Some(rest)
}
