//! The lints: a row for each, and below the functions that look.

use super::{Lint, Report, Subject};
use crate::{
    cases::test_case::TestCase,
    files::check_file::{is_shell_line, layers},
    site::selector::{Entry, Selector},
};
use muster_text::{
    expr::{Arithmetic, Expr, ExprError},
    pattern::{self, Pattern},
    template,
    yaml::{Kind, Node},
};
use regex::Regex;
use std::{collections::BTreeSet, sync::LazyLock};

pub const LINTS: &[Lint] = &[
    Lint { name: "empty-match", summary: "A regex that matches any text, or a figure that may be empty.", look: empty_match },
    Lint {
        name: "unescaped-dot",
        summary: "A `.` between digits that matches any character, where the decimal point is meant.",
        look: unescaped_dot,
    },
    Lint {
        name: "unbounded-capture",
        summary: "A part of a regex that may match the whole log, which is slow.",
        look: unbounded_capture,
    },
    Lint {
        name: "carriage-return",
        summary: "A regex that needs a carriage return, which is a newline to patterns.",
        look: carriage_return,
    },
    Lint {
        name: "captured-text",
        summary: "Text that a pattern captured and that is compared otherwise than it looks.",
        look: captured_text,
    },
    Lint { name: "no-sanity", summary: "A check that looks at nothing in the output.", look: no_sanity },
    Lint {
        name: "shell-word",
        summary: "A `|`, `>` or `&&` in `command`, or a line of sh, which runs without a shell.",
        look: shell_word,
    },
    Lint {
        name: "moving-image",
        summary: "An image without a tag, or `latest`: what runs today is not what runs tomorrow.",
        look: moving_image,
    },
    Lint {
        name: "no-time-limit",
        summary: "A job on a cluster without a time limit: neither check nor partition has a `time_limit`.",
        look: no_time_limit,
    },
    Lint { name: "runs-nowhere", summary: "A check that no partition of the known sites takes.", look: runs_nowhere },
    Lint {
        name: "unknown-system",
        summary: "A system that no site file defines, which is right in checks that several sites share.",
        look: unknown_system,
    },
    Lint { name: "unused-reference", summary: "A reference that no case on the known sites can use.", look: unused_reference },
    Lint { name: "open-reference", summary: "A reference with two open ends: no figure can miss it.", look: open_reference },
    Lint {
        name: "unused-parameter",
        summary: "A parameter that is never read: all its values give the same run.",
        look: unused_parameter,
    },
    Lint { name: "unused-variable", summary: "A variable that is never read.", look: unused_variable },
];

/// A text with hardly anything in it, of every sort. What is found in all of them is found in any line.
const ANYTHING: [&str; 5] = ["\u{1}", "a", "0", "-", " "];

/// A regex of a check, and the performance variable that it gives the figure of.
struct Written<'a> {
    node: &'a Node,
    figure: Option<&'a Node>,
}

fn patterns<'a>(subject: &'a Subject<'_>) -> Vec<Written<'a>> {
    let items = subject.all("sanity").flat_map(Node::items);
    let claims = items.flat_map(|item| ["found", "not_found"].into_iter().filter_map(|key| item.get(key)));
    let claims = claims.map(|node| Written { node, figure: None });
    let figures = subject.all("perf_variables").flat_map(Node::entries);
    let figures = figures.filter_map(|(_, figure)| figure.get("pattern").map(|node| Written { node, figure: Some(figure) }));
    claims.chain(figures).filter(|written| written.node.text().is_some() && !written.node.has_placeholder()).collect()
}

fn empty_match(subject: &Subject<'_>, report: &mut Report) {
    for Written { node, figure } in patterns(subject) {
        let Some(Ok(pattern)) = node.text().map(Pattern::compile) else { continue };
        let tag = figure.and_then(|figure| figure.get("tag")).and_then(Node::text);
        if ANYTHING.iter().all(|text| pattern.regex().is_match(text.as_bytes())) {
            let hint = "with `*` a part may be empty, and here all of it: write `+`, or add the text around it";
            report.found("empty-match", node.span, "the pattern matches any line", hint);
        } else if figure.is_some() && pattern.groups(tag).is_ok_and(|groups| pattern.group_can_be_empty(groups.value)) {
            let hint = "an empty figure is not a number: write `+` instead of `*` in the group";
            report.found("empty-match", node.span, "the figure may be empty", hint);
        }
    }
}

fn unescaped_dot(subject: &Subject<'_>, report: &mut Report) {
    static DOT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(\\d|\[0-9\])[+*?]{0,2}\.(\\d|\[0-9\])").ok());
    for Written { node, .. } in patterns(subject) {
        let text = node.text().unwrap_or_default();
        if DOT.as_ref().is_some_and(|dot| dot.is_match(text)) {
            let hint = "write `\\.` for the decimal point";
            report.found("unescaped-dot", node.span, "the `.` between the digits matches any character", hint);
        }
    }
}

fn unbounded_capture(subject: &Subject<'_>, report: &mut Report) {
    for Written { node, .. } in patterns(subject) {
        if node.text().and_then(pattern::lint).is_some() {
            let hint = "bound it, as in `[\\s\\S]{0,500}?`, or keep to one line";
            report.found("unbounded-capture", node.span, "a part of the pattern may match the whole log", hint);
        }
    }
}

fn carriage_return(subject: &Subject<'_>, report: &mut Report) {
    let outputs = subject.all("outputs").flat_map(Node::entries).map(|(_, node)| node);
    let outputs = outputs.filter(|node| !node.has_placeholder());
    let whole = patterns(subject).into_iter().map(|written| written.node).chain(outputs);
    let whole = whole.filter(|node| node.text().is_some_and(pattern::needs_return)).map(|node| node.span);
    let parts = expressions(subject).flat_map(|(node, expression)| {
        let place = |part: &ExprError| template::mistake(part, node).span.unwrap_or(node.span);
        expression.needs_return().iter().map(place).collect::<Vec<_>>()
    });
    for span in whole.chain(parts) {
        let hint = "`\\r\\n` and `\\r` of a log are `\\n` to patterns: write `\\n`, or `$` for the end of a line";
        report.found("carriage-return", span, pattern::NEVER_MATCHES, hint);
    }
}

fn captured_text(subject: &Subject<'_>, report: &mut Report) {
    for (node, expression) in expressions(subject) {
        for doubt in expression.doubtful() {
            let place = template::mistake(&doubt, node);
            report.found(
                "captured-text",
                place.span.unwrap_or(node.span),
                doubt.message,
                doubt.hint.as_deref().unwrap_or_default(),
            );
        }
    }
}

/// The expressions that judge, as far as they are sound.
fn expressions<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = (&'s Node, Expr)> {
    let asserts = subject.all("sanity").flat_map(Node::items).filter_map(|item| item.get("assert"));
    let values = subject.all("perf_variables").flat_map(Node::entries).filter_map(|(_, figure)| figure.get("value"));
    asserts.chain(values).filter_map(|node| Some((node, Expr::compile(node.text()?, Arithmetic::Doubles).ok()?)))
}

/// What a shell would make something of. Alone in a list of arguments it is a file name to a program.
const OPERATORS: [&str; 9] = ["|", "||", "&", "&&", ";", ">", ">>", "<", "2>&1"];

fn no_sanity(subject: &Subject<'_>, report: &mut Report) {
    let is_claim = |item: &Node| ["found", "not_found", "assert"].iter().any(|key| item.get(key).is_some());
    let is_any = |item: &Node| item.get("exit").and_then(Node::text) == Some("any");
    let looks = subject.all("sanity").any(|sanity| sanity.items().iter().any(is_claim) || sanity.has_placeholder());
    let measures = subject.all("perf_variables").any(|figures| !figures.entries().is_empty());
    let Some(sanity) = subject.tree().get("sanity").filter(|_| !looks && !measures) else { return };
    let message = if sanity.items().iter().any(is_any) {
        "this check passes whatever its job does"
    } else {
        "this check looks at the exit status alone"
    };
    report.found("no-sanity", sanity.span.head(), message, "write what the output must contain: `- found: a line of a good run`");
}

fn shell_word(subject: &Subject<'_>, report: &mut Report) {
    for program in layers(subject.tree()).filter_map(|layer| layer.get("command")?.items().first()) {
        if let Some(line) = program.text().filter(|text| is_shell_line(text) && !program.has_placeholder()) {
            let message = format!("`{line}` is the name of a program here: `command` runs without a shell");
            report.found("shell-word", program.span, message, "write `executable`, or an item for each argument");
        }
    }
    for item in subject.all("command").flat_map(Node::items) {
        if let Some(word) = item.text().filter(|word| OPERATORS.contains(word)) {
            let message = format!("`{word}` is an argument like any other here: `command` runs without a shell");
            report.found("shell-word", item.span, message, "write `executable`, or command: [sh, -c, \"..\"]");
        }
    }
}

fn moving_image(subject: &Subject<'_>, report: &mut Report) {
    let own = subject.all("image");
    let inline = subject.manifests.schedulers.own_keys().iter().flat_map(|key| subject.all(key.name).collect::<Vec<_>>());
    let mut images: Vec<&Node> = own.collect();
    inline.chain(subject.manifests.of(subject.tree())).for_each(|node| within(node, &mut images));
    for image in images.into_iter().filter(|image| !image.has_placeholder() && !image.is_null()) {
        if let Some(moves) = image.text().and_then(moves) {
            let hint = "name a version, or a digest: image:1.2 or image@sha256:..";
            report.found("moving-image", image.span, moves, hint);
        }
    }
}

/// The images of containers, wherever they are in a manifest.
fn within<'a>(node: &'a Node, images: &mut Vec<&'a Node>) {
    for (key, value) in node.entries() {
        if key.text() == Some("image") && value.text().is_some() {
            images.push(value);
        }
        within(value, images);
    }
    node.items().iter().for_each(|item| within(item, images));
}

/// Why an image is not the same every time.
fn moves(image: &str) -> Option<&'static str> {
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.split_once(':') {
        _ if last.contains('@') => None,
        None => Some("an image without a tag is `latest`, which changes over time"),
        Some((_, "latest")) => Some("`latest` changes over time"),
        Some(_) => None,
    }
}

fn no_time_limit(subject: &Subject<'_>, report: &mut Report) {
    // A null sets no limit on purpose.
    let sets_limit = layers(subject.tree()).any(|layer| layer.get("time_limit").is_some());
    let endless = subject
        .cases
        .iter()
        .map(|case| &case.place)
        .find(|place| place.partition.scheduler.is_cluster && place.partition.time_limit.is_none());
    if let Some(place) = endless.filter(|_| !sets_limit) {
        let message = format!("this job has no time limit on {}:{}", place.system.name, place.partition.name);
        report.found("no-time-limit", subject.check.span, message, "write `time_limit: 30m`, or null if that is intended");
    }
}

fn runs_nowhere(subject: &Subject<'_>, report: &mut Report) {
    // Without `valid_systems` it runs where those run that use it, otherwise that is reported already.
    if subject.sites.is_some() && subject.cases.is_empty() && subject.check.runs_by_itself() {
        let place = subject.tree().get("valid_systems").map_or(subject.check.span, |node| node.span);
        let hint = "look at the features and names of the site files, or give the right ones with -C";
        report.found("runs-nowhere", place, "no partition of the known sites takes this check", hint);
    }
}

fn unknown_system(subject: &Subject<'_>, report: &mut Report) {
    let Some(sites) = subject.sites else { return };
    let rules = ["when", "reference"].into_iter().flat_map(|key| subject.all(key)).flat_map(Node::items);
    let of_rules = rules.filter_map(|rule| rule.get("system"));
    for node in subject.all("valid_systems").chain(of_rules).flat_map(Node::one_or_many) {
        let Some(Ok(entry)) = node.text().filter(|_| !node.has_placeholder()).map(Entry::parse) else { continue };
        for (message, hint) in entry.names().filter_map(|(system, _)| sites.unknown_system(system?)) {
            report.found("unknown-system", node.span, message, &hint);
        }
    }
}

fn unused_reference(subject: &Subject<'_>, report: &mut Report) {
    const NAME: &str = "unused-reference";
    let Some(reference) = subject.tree().get("reference").filter(|_| subject.sites.is_some() && !subject.cases.is_empty()) else {
        return;
    };
    let mut record = |node: &Node, is_used: bool| {
        if is_used {
            report.fine(NAME, node.span.head());
        } else {
            let hint = "compare it with `valid_systems`, the parameters and the site files";
            report.found(NAME, node.span.head(), "no case on the known sites can use this reference", hint);
        }
    };
    for (scope, _) in reference.entries() {
        let Some(Ok(entry)) = scope.text().map(Entry::parse) else { continue };
        let selector = Selector::of(vec![entry]);
        let admits = |case: &&TestCase| selector.admits(&case.place.system, &case.place.partition);
        record(scope, subject.cases.iter().any(|case| admits(&case)));
    }
    let layer = subject.check.layer(&[]);
    for (rule, condition) in reference.items().iter().zip(&layer.reference_conditions) {
        let is_used = subject.cases.iter().any(|case| {
            let place = &case.place;
            condition.admits_place(&place.system, &place.partition, &place.environ) && condition.admits_variant(&case.variant)
        });
        record(rule, is_used);
    }
}

fn open_reference(subject: &Subject<'_>, report: &mut Report) {
    if subject.all("require_reference").any(|node| node.text() == Some("true")) {
        return;
    }
    for reference in subject.all("reference") {
        let scopes = reference.entries().iter().map(|(_, values)| values);
        let rules = reference.items().iter().filter_map(|rule| rule.get("values"));
        for (_, value) in scopes.chain(rules).flat_map(Node::entries) {
            if is_open(value) {
                let hint = "a figure without a reference is kept and shown all the same: leave it out, or give it a bound";
                report.found("open-reference", value.span, "a reference with two open ends judges nothing", hint);
            }
        }
    }
}

fn is_open(reference: &Node) -> bool {
    match &*reference.kind {
        Kind::Seq(items) => items.len() >= 3 && items[1].is_null() && items[2].is_null(),
        Kind::Map(_) => {
            let is_open = |key: &str| reference.get(key).is_none_or(Node::is_null);
            reference.get("value").is_some() && ["lower", "upper", "warn"].into_iter().all(is_open)
        }
        _ => false,
    }
}

/// Every name that the check or one of its manifests reads.
fn read(subject: &Subject<'_>) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = subject.manifests.of(subject.tree()).flat_map(template::names).collect();
    names.extend(template::names(subject.tree()));
    names.extend(template::names_in_expressions(subject.tree()));
    let selectors = ["when", "reference"].into_iter().filter_map(|key| subject.tree().get(key)).flat_map(Node::items);
    for (name, _) in selectors.filter_map(|entry| entry.get("with")).flat_map(Node::entries) {
        names.extend(name.text().map(str::to_owned));
    }
    // The job gets it even if no placeholder reads it.
    names.insert("num_tasks".to_owned());
    names
}

fn unused_parameter(subject: &Subject<'_>, report: &mut Report) {
    let hint = "read it with ${{ }}; to repeat a check, use `--repeat`";
    unused(subject, "parameters", "unused-parameter", hint, report);
}

fn unused_variable(subject: &Subject<'_>, report: &mut Report) {
    unused(subject, "variables", "unused-variable", "read it with ${{ }}, or leave it out", report);
}

fn unused(subject: &Subject<'_>, key: &str, lint: &'static str, hint: &str, report: &mut Report) {
    // Cases of checks that depend on each other are paired by their parameters.
    let is_paired = subject.is_relied_on || subject.tree().get("depends_on").is_some();
    let read = read(subject);
    for (name, value) in subject.all(key).flat_map(Node::entries).filter(|(_, value)| !value.is_null()) {
        let Some(text) = name.text() else { continue };
        let sets = key == "parameters" && subject.sets_key(text);
        if read.contains(text) || sets || is_paired || value.is_bad() {
            report.fine(lint, name.span);
        } else {
            report.found(lint, name.span, format!("`{text}` is never read"), hint);
        }
    }
}
