//! ReFrame's checks and site configurations, written in Python, and Anubis' benchmark descriptors as Muster's YAML.
//!
//! ```text
//! Python -python-> tree -world-> classes -reading, interp-> Value: a constant, or how Muster computes it
//!   -check, judged, settle-> keys and entries of `when` -extends-> bases -emit-> YAML          and a list of refusals
//! YAML -loaded-> what Muster's own loader takes of it
//! ```
//! The converter runs nothing and guesses nothing: what it does not understand is refused with its line, and whatever
//! depends on that is left out. It reads no files either; [`Manifests`] hands it what a check would open.

mod anubis;
mod build;
mod check;
mod extends;
mod interp;
mod judged;
mod loaded;
mod pattern;
mod python;
mod reading;
mod report;
mod settle;
mod site;
pub mod stored;
mod value;
mod world;
mod yaml;

pub use interp::Manifests;
pub use report::{Level, Refusal};

use check::{Document, Purpose};
use interp::{Interp, shortened};
use loaded::Step;
use muster_check::files::load;
use muster_core::job::descriptor::Schedulers;
use std::{collections::BTreeMap, path::Path};
use world::{File, World};

/// A file of Python.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// Its path, as it is named in refusals.
    pub path: String,
    /// Its text.
    pub text: String,
    /// A folder `src` lies beside it.
    pub has_src: bool,
    /// The folder that its YAML goes to.
    pub folder: String,
    /// The way from there to its own folder; empty: they are one.
    pub way: String,
}

/// A file of YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The file it came from.
    pub source: String,
    /// The file's name: `triad.check.yaml`.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The number of checks in it; none for a site.
    pub checks: usize,
}

/// The result of a conversion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversion {
    /// The files to write.
    pub outputs: Vec<Output>,
    /// The parts of the sources that could not be carried over, in the order of the lines.
    pub refusals: Vec<Refusal>,
}

/// Converts files that belong together: classes may derive from classes of other files. Partitions of other `schedulers` are left
/// out, and so is what theirs do not take.
pub fn convert(sources: &[Source], manifests: &dyn Manifests, schedulers: &Schedulers) -> Conversion {
    let mut world = World { keys: schedulers.own_keys().clone(), ..World::default() };
    let mut refusals = Vec::new();
    for source in sources.iter().filter(|source| !is_yaml(&source.path) && !anubis::is_descriptor(&source.path)) {
        let module = python::parse(&source.text);
        let mut file = File::new(source.path.clone(), &source.text, module, source.has_src);
        file.checks = load::normal(&Path::new(&source.folder).join(file.checks_name()));
        file.way.clone_from(&source.way);
        refusals.extend(
            file.module.errors.iter().map(|(line, why)| refused(&file, *line, format!("this is no Python: {why}"), None)),
        );
        world.files.push(file);
    }
    globals(&mut world, manifests, &mut refusals);
    let (mut documents, mut wanted) = (Vec::new(), Vec::new());
    for (at, file) in world.files.iter().enumerate() {
        for class in file.classes.iter().filter(|class| reading::is_listed(class)) {
            let id = (at, class.name.clone());
            match reading::read(&world, &id, manifests) {
                Ok(mut reading) => {
                    documents.push(check::document(&mut reading, Purpose::Test));
                    refusals.append(&mut reading.interp.refusals);
                    wanted.extend(fixture_classes(&reading));
                }
                Err(base) => refusals.push(unknown_base(&world, &base)),
            }
        }
    }
    while let Some(id) = wanted.pop() {
        if documents.iter().any(|known: &Document| known.id == id) {
            continue;
        }
        match reading::read(&world, &id, manifests) {
            Ok(mut reading) => {
                documents.push(check::document(&mut reading, Purpose::Fixture));
                refusals.append(&mut reading.interp.refusals);
                wanted.extend(fixture_classes(&reading));
            }
            Err(base) => refusals.push(unknown_base(&world, &base)),
        }
    }
    let listed: Vec<value::ClassId> = documents.iter().map(|document| document.id.clone()).collect();
    let mut loadable = |documents| loadable(&world, documents, manifests, schedulers, &mut refusals);
    // Before and after: what is taken out of a check must not come back from its base.
    let whole = loadable(extends::and_bases(&world, documents, manifests));
    let documents = loadable(extends::over_bases(&world, &whole, &listed));
    let mut outputs = Vec::new();
    for (at, file) in world.files.iter().enumerate() {
        let config = file.globals.get("site_configuration").filter(|config| matches!(config, value::Value::Dict(_)));
        let sites =
            config.map(|config| site::sites(config, schedulers, site::assigned(file), file, &mut refusals)).unwrap_or_default();
        outputs.extend(sites.iter().map(|site| site_output(&file.path, site)));
        outputs.extend(check_output(file, documents.iter().filter(|document| document.id.0 == at)));
    }
    for source in sources.iter().filter(|source| is_yaml(&source.path)) {
        outputs.extend(yaml_sites(source, schedulers, &mut refusals));
    }
    let descriptors = sources.iter().filter(|source| anubis::is_descriptor(&source.path));
    outputs.extend(descriptors.filter_map(|source| anubis::convert(source, &mut refusals)));
    refusals.sort_by(|left, right| {
        (&left.file, left.line, left.level, &left.why).cmp(&(&right.file, right.line, right.level, &right.why))
    });
    refusals.dedup();
    Conversion { outputs, refusals }
}

/// The classes of a test's fixtures.
fn fixture_classes(reading: &reading::Reading) -> Vec<value::ClassId> {
    reading.interp.test.fixtures.iter().map(|(_, class, _)| class.clone()).collect()
}

/// The names at the top of each file, imported files first.
fn globals(world: &mut World, manifests: &dyn Manifests, refusals: &mut Vec<Refusal>) {
    let mut order: Vec<usize> = Vec::new();
    for at in 0..world.files.len() {
        imported_first(world, at, &mut order, 0);
    }
    for at in order {
        let mut interp = Interp::new(world, at, manifests);
        let body = world.files[at].module.body.clone();
        interp.top(&body, false);
        let (found, globals) = (std::mem::take(&mut interp.refusals), std::mem::take(&mut interp.state.locals));
        refusals.extend(found);
        world.files[at].globals.extend(globals);
    }
}

fn imported_first(world: &World, at: usize, order: &mut Vec<usize>, depth: usize) {
    if order.contains(&at) || depth > world.files.len() {
        return;
    }
    for full in world.files[at].imports.values() {
        if let Some((file, _)) = world.resolve(full)
            && file != at
        {
            imported_first(world, file, order, depth + 1);
        }
    }
    if !order.contains(&at) {
        order.push(at);
    }
}

fn unknown_base(world: &World, base: &world::UnknownBase) -> Refusal {
    let why = format!("the base `{}` is not among the files, so the test is not known", base.name);
    refused(&world.files[base.file], base.line, why, Some("convert its file together with this one".to_owned()))
}

fn refused(file: &File, line: u32, why: String, instead: Option<String>) -> Refusal {
    Refusal { file: file.path.clone(), line, level: Level::Refused, what: shortened(file.line(line)), why, instead }
}

/// Checks as far as the loader takes them.
fn loadable(
    world: &World,
    documents: Vec<Document>,
    manifests: &dyn Manifests,
    schedulers: &Schedulers,
    refusals: &mut Vec<Refusal>,
) -> Vec<Document> {
    let mut by_file: Vec<Vec<Document>> = world.files.iter().map(|_| vec![]).collect();
    for document in documents {
        by_file[document.id.0].push(document);
    }
    let texts = world.files.iter().zip(&by_file).map(|(file, own)| (file.checks.clone(), checks_text(own)));
    let written: BTreeMap<String, String> = texts.collect();
    for (file, own) in world.files.iter().zip(&mut by_file) {
        loop {
            let misfits = loaded::in_checks((&file.checks, &checks_text(&*own)), &written, manifests, schedulers);
            if misfits.is_empty() {
                break;
            }
            for misfits in misfits.chunk_by(|one, other| one.document == other.document) {
                let document = &mut own[misfits[0].document];
                for misfit in misfits {
                    let (file, line) = document.place_of(&misfit.unit, &misfit.path);
                    // The line may be one of a base.
                    let why = match &misfit.unit[..] {
                        [] => misfit.why.replace("all of it", &format!("all of `{}`", document.name)),
                        _ => misfit.why.clone(),
                    };
                    let refusal = refused(&world.files[file], line, why, misfit.instead.clone());
                    document.comments.push(check::comment(&refusal));
                    refusals.push(refusal);
                }
                let units: Vec<&[Step]> = misfits.iter().map(|misfit| &*misfit.unit).collect();
                if !loaded::take_out(&mut document.entries, &units) {
                    own.remove(misfits[0].document);
                }
            }
        }
    }
    by_file.into_iter().flatten().collect()
}

/// The checks of a file, if it has any.
fn check_output<'d>(file: &File, own: impl Iterator<Item = &'d Document> + Clone) -> Option<Output> {
    let is_listed = |document: &&Document| !document.entries.iter().any(|(key, _)| key == "abstract");
    let checks = own.clone().filter(is_listed).count();
    let text = checks_text(own);
    (!text.is_empty()).then(|| Output { source: file.path.clone(), name: file.checks_name(), text, checks })
}

fn checks_text<'d>(documents: impl IntoIterator<Item = &'d Document>) -> String {
    let text = |document: &Document| yaml::emit::document("ReFrame", &document.comments, &document.entries);
    documents.into_iter().map(text).collect::<Vec<_>>().join("---\n")
}

fn site_output(source: &str, site: &site::Site) -> Output {
    let text = yaml::emit::document("ReFrame", &[], &site.entries);
    Output { source: source.to_owned(), name: format!("{}.yaml", site.name), text, checks: 0 }
}

fn is_yaml(path: &str) -> bool {
    [".yaml", ".yml"].iter().any(|extension| path.ends_with(extension))
}

/// ReFrame's configurations may be YAML too, with Jinja in them.
fn yaml_sites(source: &Source, schedulers: &Schedulers, refusals: &mut Vec<Refusal>) -> Vec<Output> {
    let file = File::new(source.path.clone(), &source.text, python::Module::default(), false);
    let mut refuse = |line: u32, why: &str, instead: &str| {
        let what = shortened(file.line(line));
        let (why, instead) = (why.to_owned(), Some(instead.to_owned()));
        refusals.push(Refusal { file: source.path.clone(), line, level: Level::Refused, what, why, instead });
    };
    let jinja = source.text.lines().position(|line| line.contains("{{") || line.contains("{%"));
    if let Some(at) = jinja {
        let line = u32::try_from(at + 1).unwrap_or(u32::MAX);
        refuse(line, "Jinja is computed while ReFrame loads it", "write the values out");
        return vec![];
    }
    let Some(tree) = yaml::tree(&source.text) else {
        refuse(1, "this is no YAML", "correct it first");
        return vec![];
    };
    let place = site::Place::Yaml(&tree, &source.text);
    site::sites(&yaml::of(&tree), schedulers, Some(place), &file, refusals)
        .iter()
        .map(|site| site_output(&source.path, site))
        .collect()
}
