//! The rules of `ARCHITECTURE.md` and `CONTRIBUTING.md` that the compiler cannot hold: layers of crates, directories without import
//! cycles, small directories, doc comments with a subject. Each failure names the file and line to change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use muster_layout::comments::without_subject;
use muster_layout::cycles::cycles;
use muster_layout::figures::{read_modules, upward_imports};
use muster_layout::imports::{Edges, by_directory, imports, is_root_of_directory};
use muster_layout::workspace::{packages, rust_files};

/// A crate names only crates of lower layers as dependencies. Equal numbers do not import each other.
const LAYERS: &[(&str, u32)] = &[
    ("muster-kernels", 1),
    ("muster-text", 1),
    ("muster-core", 2),
    ("muster-host", 2),
    ("muster-judge", 3),
    ("muster-stage", 3),
    ("muster-check", 4),
    ("muster-ec2", 4),
    ("muster-fake", 4),
    ("muster-k8s", 4),
    ("muster-local", 4),
    ("muster-report", 4),
    ("muster-slurm", 4),
    ("muster-store", 4),
    ("muster-answers", 5),
    ("muster-convert", 6),
    ("muster-session", 6),
    ("muster", 7),
];

/// Who names these crates as dependencies, and why no other does. The tests of a crate, and crates of `tests/`, may name any.
const ONLY_BY: &[(&str, &[&str], &str)] = &[
    ("muster-answers", &["muster", "muster-session"], "values of lower crates are what others know of answers"),
    ("muster-check", &["muster", "muster-convert", "muster-session"], "schedulers, store and reports work on values of core"),
    ("muster-convert", &["muster"], "only the command line converts"),
    ("muster-ec2", &["muster"], "a session is given its schedulers, and knows the trait alone"),
    ("muster-fake", &["muster"], "a session is given its schedulers, and knows the trait alone"),
    (
        "muster-judge",
        &["muster", "muster-answers", "muster-report", "muster-store"],
        "verdicts over nights are computed from stored figures: a session judges its own cases with core",
    ),
    ("muster-k8s", &["muster"], "a session is given its schedulers, and knows the trait alone"),
    ("muster-kernels", &["muster"], "programs of the shipped checks: no other crate needs them"),
    ("muster-local", &["muster"], "a session is given its schedulers, and knows the trait alone"),
    ("muster-report", &["muster"], "what a run says is rendered at its end: nothing else depends on how"),
    ("muster-session", &["muster"], "a session is started by the command line"),
    ("muster-slurm", &["muster"], "a session is given its schedulers, and knows the trait alone"),
    (
        "muster-stage",
        &["muster", "muster-ec2", "muster-k8s", "muster-local", "muster-slurm"],
        "who runs nothing has no stage folder",
    ),
    ("muster-store", &["muster", "muster-answers", "muster-session"], "decisions and reports work on values of core"),
];

/// Where crates are that are only tools of the tests. Nothing but a test names them.
const TOOLS: &str = "tests/";

const MOST_FILES: usize = 10;

/// The first lines of a `mod.rs`, `lib.rs` or `main.rs` give the reason why its directory holds more files.
const REASON: &str = "//! More than ten files:";

/// The doc comments in this directory are help texts: clap prints them.
const HELP: &str = "harness/cli/args";

/// What breaks a rule today: the line that the test prints for it. An entry that no longer holds fails the test, too: remove it.
const KNOWN: &[&str] = &[];

#[test]
fn a_crate_imports_lower_layers_only() {
    let layers: BTreeMap<&str, u32> = LAYERS.iter().copied().collect();
    let mut mistakes = Mistakes::default();
    for package in packages(&root()).unwrap() {
        if relative(&package.directory).starts_with(TOOLS) {
            continue;
        }
        let Some(layer) = layers.get(package.name.as_str()) else {
            mistakes.add(format!("{}: not in LAYERS", package.name), "give it a layer in tests/layout/tests/layout.rs");
            continue;
        };
        for dependency in &package.dependencies {
            if layers.get(dependency.as_str()).is_none_or(|below| below >= layer) {
                let detail = "Cargo.toml names a crate that is in no lower layer";
                mistakes.add(format!("{}: imports {dependency}", package.name), detail);
            }
            let only_by = ONLY_BY.iter().find(|(name, ..)| name == dependency);
            if let Some((_, users, reason)) = only_by.filter(|(_, users, _)| !users.contains(&&*package.name)) {
                let detail = format!("only {} may: {reason}", users.join(", "));
                mistakes.add(format!("{}: imports {dependency}", package.name), &detail);
            }
        }
    }
    mistakes.judge(": ");
}

#[test]
fn directories_have_no_import_cycles() {
    let mut mistakes = Mistakes::default();
    for package in packages(&root()).unwrap() {
        for file in &package.roots {
            let source = file.parent().unwrap();
            for (directory, edges) in by_directory(&imports(&read_modules(file).unwrap())) {
                for cycle in cycles(pairs(&edges)).iter().filter(|cycle| cycle.iter().any(|node| node.ends_with('/'))) {
                    let directory = relative(&source.join(&directory));
                    mistakes.add(format!("{directory}: import cycle"), &describe(cycle, &edges, &relative(source)));
                }
            }
        }
    }
    mistakes.judge(": import cycle");
}

/// Files right below the root of a crate count as directories do: each is a part of what the head of its `lib.rs` lists.
#[test]
fn modules_right_below_the_root_of_a_crate_have_no_import_cycles() {
    let mut mistakes = Mistakes::default();
    for package in packages(&root()).unwrap() {
        for (from, to) in upward_imports(&package).unwrap() {
            let detail = "a part of an import cycle: move what it needs into a module that imports neither";
            mistakes.add(format!("{}: upward import of {to} in {from}", package.name), detail);
        }
    }
    mistakes.judge(": upward import ");
}

#[test]
fn a_directory_has_at_most_ten_files_or_a_reason() {
    let mut mistakes = Mistakes::default();
    for (directory, files) in rust_files(&root()).unwrap() {
        let mut roots = files.iter().filter(|file| is_root_of_directory(file));
        let has_reason = |file: &String| {
            let text = std::fs::read_to_string(directory.join(file)).unwrap();
            text.lines().take(20).any(|line| line.starts_with(REASON))
        };
        if files.len() > MOST_FILES && !roots.any(has_reason) {
            let detail = format!("{} files; group them, or give the reason in its mod.rs: `{REASON} ..`", files.len());
            mistakes.add(format!("{}: more than ten files", relative(&directory)), &detail);
        }
    }
    mistakes.judge(": more than ten files");
}

#[test]
fn a_module_with_children_is_a_mod_rs() {
    let mut mistakes = Mistakes::default();
    let directories = rust_files(&root()).unwrap();
    for (directory, files) in &directories {
        for file in files.iter().map(|file| directory.join(file)) {
            if directories.contains_key(&file.with_extension("")) {
                mistakes.add(format!("{}: beside its directory", relative(&file)), "move it into the directory, as mod.rs");
            }
        }
    }
    mistakes.judge(": beside its directory");
}

#[test]
fn a_public_doc_comment_has_a_subject() {
    let mut mistakes = Mistakes::default();
    for package in packages(&root()).unwrap() {
        let sources: BTreeSet<&Path> = package.roots.iter().filter_map(|file| file.parent()).collect();
        let directories = sources.into_iter().flat_map(|source| rust_files(source).unwrap());
        for (directory, files) in directories.filter(|(directory, _)| !relative(directory).starts_with(HELP)) {
            for file in files.iter().map(|file| directory.join(file)) {
                for (line, comment) in without_subject(&std::fs::read_to_string(&file).unwrap()).unwrap() {
                    mistakes.add(format!("{}:{line}: no subject", relative(&file)), &comment);
                }
            }
        }
    }
    mistakes.judge(": no subject");
}

/// What was found, each with the details that help to mend it.
#[derive(Default)]
struct Mistakes(BTreeMap<String, String>);

impl Mistakes {
    fn add(&mut self, mistake: String, detail: &str) {
        let all = self.0.entry(mistake).or_default();
        let _ = writeln!(all, "  {}", detail.trim_end().replace('\n', "\n  "));
    }

    /// Fails for each mistake that `KNOWN` does not list, and for each entry with `mark` that is none any more.
    fn judge(&self, mark: &str) {
        let new: String =
            self.0.iter().filter(|(name, _)| !KNOWN.contains(&name.as_str())).fold(String::new(), |mut all, (name, detail)| {
                let _ = write!(all, "{name}\n{detail}");
                all
            });
        assert!(new.is_empty(), "the layout of the code base (ARCHITECTURE.md) does not hold:\n\n{new}");
        let marked = KNOWN.iter().filter(|name| name.contains(mark) && (mark != ": " || name.contains(": imports ")));
        let mended: Vec<_> = marked.filter(|name| !self.0.contains_key(**name)).collect();
        assert!(mended.is_empty(), "mended: remove these from KNOWN in tests/layout/tests/layout.rs: {mended:#?}");
    }
}

fn pairs(edges: &Edges) -> impl Iterator<Item = (&str, &str)> + Clone {
    edges.keys().map(|(from, to)| (from.as_str(), to.as_str()))
}

/// The edges of a cycle, that of the fewest imports first: it is likely the one to turn round.
fn describe(cycle: &BTreeSet<&str>, edges: &Edges, source: &str) -> String {
    let within = edges.iter().filter(|((from, to), _)| cycle.contains(from.as_str()) && cycle.contains(to.as_str()));
    let mut within: Vec<_> = within.collect();
    within.sort_by_key(|(_, imports)| imports.len());
    let mut text = format!("{}\n", cycle.iter().copied().collect::<Vec<_>>().join(" "));
    for ((from, to), imports) in within {
        let _ = writeln!(text, "{from} -> {to}");
        for import in imports {
            let (file, target) = (import.from.display(), import.to.display());
            let _ = writeln!(text, "    {source}/{file}:{} imports {} ({target})", import.line, import.path);
        }
    }
    text
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the tests run in a checkout")
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
