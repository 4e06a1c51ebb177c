//! What was selected, without running it: `-l`, `-L`, `--list-tags`, `--describe`.

use crate::{
    RenderError,
    json::{as_map, written},
    style::{Paint, Tone, one_line},
};
use muster_core::{case::CaseName, result::About};
use serde::Serialize;
use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write,
};

/// A selected case.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedCase {
    /// Its name.
    pub name: CaseName,
    /// What its check says of itself.
    pub about: About,
}

/// `-l`: one line a check, in the order of selection.
pub fn checks(cases: &[ListedCase], paint: Paint) -> String {
    let groups = grouped(cases);
    let mut text = title("List of matched checks", groups.len() * 48, paint);
    for group in &groups {
        push_title(&mut text, group.first);
        text.push('\n');
    }
    found(&mut text, groups.len());
    text
}

/// `-l=C`: one line a case.
pub fn cases(cases: &[ListedCase], paint: Paint) -> String {
    let mut text = title("List of matched checks", cases.len() * 80, paint);
    for case in cases {
        push_title(&mut text, case);
        push_place(&mut text, case);
        text.push('\n');
    }
    concretized(&mut text, cases.len());
    text
}

/// `-L`: a block a check.
pub fn checks_detailed(cases: &[ListedCase], paint: Paint) -> String {
    let groups = grouped(cases);
    let mut text = title("List of matched checks", groups.len() * 256, paint);
    for group in &groups {
        push_title(&mut text, group.first);
        text.push('\n');
        details(&mut text, &group.first.about);
        let of = |part: &dyn Fn(&CaseName) -> String| unique(group.cases.iter().map(|case| part(&case.name)));
        detail(&mut text, "systems", &of(&CaseName::system_partition));
        detail(&mut text, "environments", &of(&|name| name.environ.clone()));
    }
    found(&mut text, groups.len());
    text
}

/// `-L=C`: a block a case.
pub fn cases_detailed(cases: &[ListedCase], paint: Paint) -> String {
    let mut text = title("List of matched checks", cases.len() * 256, paint);
    for case in cases {
        push_title(&mut text, case);
        push_place(&mut text, case);
        text.push('\n');
        details(&mut text, &case.about);
    }
    concretized(&mut text, cases.len());
    text
}

/// `--list-tags`: every tag of the selection once.
pub fn tags(cases: &[ListedCase], paint: Paint) -> String {
    let tags: BTreeSet<&str> = cases.iter().flat_map(|case| case.about.tags.iter().map(String::as_str)).collect();
    let mut text = title("List of unique tags", tags.len() * 16, paint);
    for tag in &tags {
        let _ = writeln!(text, "- {}", one_line(tag));
    }
    let _ = writeln!(text, "Found {} tag(s)", tags.len());
    text
}

/// `--describe`: the checks with their cases as JSON.
///
/// # Errors
/// Data without a JSON form.
pub fn describe(cases: &[ListedCase]) -> Result<String, RenderError> {
    let described: Vec<_> = grouped(cases).iter().map(Described::of).collect();
    written(&described)
}

#[derive(Serialize)]
struct Described<'a> {
    name: &'a str,
    check: &'a str,
    hash: &'a str,
    descr: &'a str,
    file: &'a str,
    tags: &'a [String],
    maintainers: &'a [String],
    #[serde(serialize_with = "as_map")]
    parameters: &'a [(String, String)],
    cases: Vec<DescribedCase<'a>>,
}

#[derive(Serialize)]
struct DescribedCase<'a> {
    system: &'a str,
    partition: &'a str,
    environ: &'a str,
    scheduler: &'static str,
    num_tasks: u32,
}

impl<'a> Described<'a> {
    fn of(group: &Group<'a>) -> Self {
        let ListedCase { name, about } = group.first;
        let case = |case: &&'a ListedCase| DescribedCase {
            system: &case.name.system,
            partition: &case.name.partition,
            environ: &case.name.environ,
            scheduler: case.about.scheduler.as_str(),
            num_tasks: case.about.num_tasks,
        };
        Self {
            name: &name.display,
            check: &name.check,
            hash: &name.hash,
            descr: &about.descr,
            file: &about.file,
            tags: &about.tags,
            maintainers: &about.maintainers,
            parameters: &about.parameters,
            cases: group.cases.iter().map(case).collect(),
        }
    }
}

/// A check with its parameters, and its cases.
struct Group<'a> {
    first: &'a ListedCase,
    cases: Vec<&'a ListedCase>,
}

fn grouped(cases: &[ListedCase]) -> Vec<Group<'_>> {
    let mut places: HashMap<(&str, &str), usize> = HashMap::with_capacity(cases.len());
    let mut groups: Vec<Group<'_>> = Vec::new();
    for case in cases {
        let place = *places.entry((&case.name.display, &case.name.hash)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.cases.push(case),
            None => groups.push(Group { first: case, cases: vec![case] }),
        }
    }
    groups
}

fn title(title: &str, capacity: usize, paint: Paint) -> String {
    let mut text = String::with_capacity(capacity + 64);
    let _ = writeln!(text, "{}", paint.apply(Tone::Strong, format_args!("[{title}]")));
    text
}

/// `- NAME /HASH`
fn push_title(text: &mut String, case: &ListedCase) {
    for piece in ["- ", &one_line(&case.name.display), " /", &one_line(&case.name.hash)] {
        text.push_str(piece);
    }
}

/// ` @SYSTEM:PARTITION+ENVIRONMENT`
fn push_place(text: &mut String, case: &ListedCase) {
    let CaseName { system, partition, environ, .. } = &case.name;
    for piece in [" @", &one_line(system), ":", &one_line(partition), "+", &one_line(environ)] {
        text.push_str(piece);
    }
}

fn details(text: &mut String, about: &About) {
    let parameters: Vec<_> = about.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    detail(text, "description", &about.descr);
    detail(text, "file", &about.file);
    detail(text, "tags", &about.tags.join(", "));
    detail(text, "maintainers", &about.maintainers.join(", "));
    detail(text, "parameters", &parameters.join(", "));
    detail(text, "scheduler", &format!("{}, {} task(s)", about.scheduler, about.num_tasks));
}

fn detail(text: &mut String, label: &str, value: &str) {
    if !value.is_empty() {
        let _ = writeln!(text, "    {:<14}{}", format!("{label}:"), one_line(value));
    }
}

fn unique(values: impl Iterator<Item = String>) -> String {
    let mut seen = BTreeSet::new();
    values.filter(|value| seen.insert(value.clone())).collect::<Vec<_>>().join(", ")
}

fn found(text: &mut String, checks: usize) {
    let _ = writeln!(text, "Found {checks} check(s)");
}

fn concretized(text: &mut String, cases: usize) {
    let _ = writeln!(text, "Concretized {cases} test case(s)");
}
