//! Pages that tests follow from the first line to the last, each in one folder, as a reader would.
//!
//! ```text
//! ```yaml, ```sh, .. whose first line is `# FILE`   the file: a name with an ending and no blank
//! ```sh                                             each line is run; it ends with 0, or as `# exit N` behind it says
//! ```text                                           what the lines before it printed, in this order; `…` stands for anything
//! ```

use std::path::Path;

/// What a page says, in its order.
#[derive(Debug)]
pub(crate) enum Step {
    Write { path: String, text: String },
    Run { line: String, code: i32 },
    Printed(String),
}

/// The text of a page.
pub(crate) fn page(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The steps of a page, or of a part of it.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks.flat_map(|block| of_block(block.split_once('\n').map_or((block, ""), |(kind, text)| (kind, text)))).collect()
}

fn of_block((kind, text): (&str, &str)) -> Vec<Step> {
    let first = text.lines().next().unwrap_or_default();
    let file = first.strip_prefix("# ").filter(|name| name.contains('.') && !name.contains([' ', '`']));
    match (kind, file) {
        (_, Some(path)) => vec![Step::Write { path: path.to_owned(), text: format!("{text}\n") }],
        ("sh", None) => {
            let lines = text.replace("\\\n", " ");
            let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            lines.map(|line| Step::Run { line: line.to_owned(), code: code_of(line) }).collect()
        }
        ("text", None) => vec![Step::Printed(text.to_owned())],
        _ => Vec::new(),
    }
}

/// The exit code that a line announces.
fn code_of(line: &str) -> i32 {
    line.split_once("# exit ").map_or(0, |(_, code)| code.split_whitespace().next().unwrap_or_default().parse().expect("a code"))
}

/// Whether a line has the parts of another, in their order.
fn fits(shown: &str, printed: &str) -> bool {
    let mut rest = printed.trim_end();
    let mut parts = shown.trim_end().split('…');
    let Some(first) = parts.next() else { return false };
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    let mut is_open = false;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        is_open = part.is_empty();
    }
    is_open || rest.is_empty()
}

/// The first line of a block that was not printed after those before it.
pub(crate) fn missing<'t>(shown: &'t str, printed: &str) -> Option<&'t str> {
    let mut lines = printed.lines();
    shown.lines().filter(|line| !matches!(line.trim(), "" | "…")).find(|shown| !lines.any(|printed| fits(shown, printed)))
}

/// The part of a page from one heading to the next of this level.
pub(crate) fn part<'p>(page: &'p str, heading: &str) -> &'p str {
    let level = format!("\n{} ", heading.split(' ').next().unwrap_or_default());
    let (_, after) = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no heading `{heading}`"));
    after.find(&level).map_or(after, |end| &after[..=end])
}
