//! Lists what was selected, without running it: `-l`, `-L`, `--list-tags`, `--describe`.

use crate::{
    RenderError,
    files::json::{map, written},
    text::style::{Paint, Tone, one_line},
};
use muster_core::{case::CaseName, result::About};
use muster_text::Value;
use serde_json::json;
use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write,
};

#[derive(Debug, Clone, PartialEq)]
pub struct ListedCase {
    pub name: CaseName,
    /// The check's description of itself.
    pub about: About,
    /// The reason why it will not run.
    pub skip: Option<String>,
    /// It runs for others only.
    pub is_fixture: bool,
    pub needs: Vec<ListedNeed>,
}

/// A case that another one needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedNeed {
    pub at: usize,
    /// The name of a fixture in the check that uses it.
    pub fixture: Option<String>,
}

/// `-l`: one line a check, in the order of selection, and beneath it what it needs. What others need is there only.
/// `-L`, detailed: a block a check, also for what others need.
pub fn checks(cases: &[ListedCase], is_detailed: bool, paint: Paint) -> String {
    let (groups, needed) = (grouped(cases), needed(cases));
    let mut text = title("List of matched checks", groups.len() * if is_detailed { 256 } else { 48 }, paint);
    for group in groups.iter().filter(|group| is_detailed || group.is_root(&needed)) {
        let first = &cases[group.first];
        push_name(&mut text, &first.name.display, first);
        push_skip(&mut text, group.skip(cases));
        text.push('\n');
        push_needs(&mut text, cases, &group.cases, Places::Left);
        if is_detailed {
            details(&mut text, &cases[group.first].about);
            let of = |part: &dyn Fn(&CaseName) -> String| unique(group.cases.iter().map(|at| part(&cases[*at].name)));
            detail(&mut text, "systems", &of(&CaseName::system_partition));
            detail(&mut text, "environments", &of(&|name| name.environ.clone()));
        }
    }
    // Fixtures are not checks that were asked for.
    let checks = groups.iter().filter(|group| !cases[group.first].is_fixture).count();
    let _ = writeln!(text, "Found {checks} check(s)");
    text
}

/// `-l=C`: one line a case. `-L=C`, detailed: a block a case, also for what others need.
pub fn cases(cases: &[ListedCase], is_detailed: bool, paint: Paint) -> String {
    let needed = needed(cases);
    let mut text = title("List of matched checks", cases.len() * if is_detailed { 256 } else { 80 }, paint);
    for (at, case) in cases.iter().enumerate().filter(|(at, _)| is_detailed || !needed[*at]) {
        push_name(&mut text, &case.name.title(), case);
        push_place(&mut text, case);
        push_skip(&mut text, case.skip.as_deref());
        text.push('\n');
        push_needs(&mut text, cases, &[at], Places::Shown);
        if is_detailed {
            details(&mut text, &case.about);
        }
    }
    let _ = writeln!(text, "Concretized {} test case(s)", cases.len());
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
pub fn describe(cases: &[ListedCase]) -> Result<String, RenderError> {
    let described: Vec<_> = grouped(cases).iter().map(|group| described(group, cases)).collect();
    written(&described)
}

fn described(group: &Group, cases: &[ListedCase]) -> Value {
    let ListedCase { name, about, is_fixture, .. } = &cases[group.first];
    let case = |at: &usize| {
        let ListedCase { name, about, skip, .. } = &cases[*at];
        let mut described = json!({
            "system": name.system,
            "partition": name.partition,
            "environ": name.environ,
            "scheduler": about.scheduler,
            "num_tasks": about.num_tasks,
            "skip": skip,
        });
        if !name.hidden.is_empty() {
            described["hidden"] = name.hidden.as_str().into();
        }
        described
    };
    let needs = group.cases.iter().flat_map(|at| &cases[*at].needs).map(|need| &*cases[need.at].name.display);
    json!({
        "name": name.display,
        "check": name.check,
        "hash": name.hash,
        "descr": about.descr,
        "file": about.file,
        "tags": about.tags,
        "maintainers": about.maintainers,
        "parameters": map(&about.parameters),
        // It runs for others only.
        "fixture": is_fixture,
        "needs": needs.collect::<BTreeSet<&str>>(),
        "cases": group.cases.iter().map(case).collect::<Vec<_>>(),
    })
}

/// A check with its parameters, and its cases, by their places in the list.
struct Group {
    first: usize,
    cases: Vec<usize>,
}

impl Group {
    /// Whether some case of it is needed by no other.
    fn is_root(&self, needed: &[bool]) -> bool {
        self.cases.iter().any(|at| !needed[*at])
    }

    /// Why none of its cases will run.
    fn skip<'a>(&self, cases: &'a [ListedCase]) -> Option<&'a str> {
        let are_all = self.cases.iter().all(|at| cases[*at].skip.is_some());
        cases[self.first].skip.as_deref().filter(|_| are_all)
    }
}

fn grouped(cases: &[ListedCase]) -> Vec<Group> {
    let mut places: HashMap<(&str, &str), usize> = HashMap::with_capacity(cases.len());
    let mut groups: Vec<Group> = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let place = *places.entry((&case.name.display, &case.name.hash)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.cases.push(at),
            None => groups.push(Group { first: at, cases: vec![at] }),
        }
    }
    groups
}

/// Which cases others need.
fn needed(cases: &[ListedCase]) -> Vec<bool> {
    let mut needed = vec![false; cases.len()];
    for need in cases.iter().flat_map(|case| &case.needs) {
        needed[need.at] = true;
    }
    needed
}

/// Whether the place of what is needed is part of its line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Places {
    Shown,
    Left,
}

/// `    ^NAME 'FIXTURE /HASH` for all that these cases need, and deeper what that needs. Below one title each line appears once.
fn push_needs(text: &mut String, cases: &[ListedCase], of: &[usize], places: Places) {
    let mut shown = BTreeSet::new();
    let needs = |at: usize, depth: usize| cases[at].needs.iter().rev().map(move |need| (need, depth));
    let mut rest: Vec<(&ListedNeed, usize)> = of.iter().rev().flat_map(|at| needs(*at, 0)).collect();
    while let Some((need, depth)) = rest.pop() {
        let case = &cases[need.at];
        // Copies stand side by side only where there is a line a case.
        let name = if places == Places::Shown { case.name.title() } else { (&*case.name.display).into() };
        let mut line = format!("{:1$}^{2}", "", 4 + 2 * depth, one_line(&name));
        if let Some(fixture) = &need.fixture {
            let _ = write!(line, " '{}", one_line(fixture));
        }
        let _ = write!(line, " /{}", one_line(&case.name.hash));
        if places == Places::Shown {
            push_place(&mut line, case);
        }
        if shown.insert(line.clone()) {
            let _ = writeln!(text, "{line}");
            rest.extend(needs(need.at, depth + 1));
        }
    }
}

fn title(title: &str, capacity: usize, paint: Paint) -> String {
    let mut text = String::with_capacity(capacity + 64);
    let _ = writeln!(text, "{}", paint.apply(Tone::Strong, format_args!("[{title}]")));
    text
}

/// `- NAME /HASH`
fn push_name(text: &mut String, name: &str, case: &ListedCase) {
    for piece in ["- ", &one_line(name), " /", &one_line(&case.name.hash)] {
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

/// ` (skip: REASON)`
fn push_skip(text: &mut String, reason: Option<&str>) {
    if let Some(reason) = reason {
        let _ = write!(text, " (skip: {})", one_line(reason));
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
