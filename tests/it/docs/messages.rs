//! docs/troubleshooting.md against the source: each message of the page is one of the program, and each message of the files and of
//! the calls below is on the page.

use crate::walked::page;
use std::{collections::BTreeSet, fs, path::Path};

/// Files whose messages ask the user for something: all of them are on the page.
const WHOLE: [&str; 23] = [
    "harness/store/src/error.rs",
    "harness/schedulers/k8s/src/client/error/classify.rs",
    "harness/schedulers/k8s/src/client/error/mod.rs",
    "harness/schedulers/k8s/src/logs/section/last.rs",
    "harness/schedulers/slurm/src/preflight.rs",
    "harness/schedulers/k8s/src/cleanup/messages.rs",
    "harness/schedulers/stage/src/log.rs",
    "harness/schedulers/slurm/src/doctor.rs",
    "harness/schedulers/ec2/src/preflight/wrong.rs",
    "harness/schedulers/ec2/src/decide/offer.rs",
    "harness/schedulers/ec2/src/decide/status.rs",
    "harness/schedulers/ec2/src/resolve.rs",
    "harness/schedulers/ec2/src/launch/objects.rs",
    "harness/schedulers/ec2/src/data.rs",
    "harness/schedulers/ec2/src/outputs.rs",
    "harness/schedulers/ec2/src/logs.rs",
    "harness/schedulers/ec2/src/cleanup.rs",
    "harness/cli/commands/doctor/machine.rs",
    "harness/cli/commands/doctor/ask.rs",
    "harness/cli/commands/session/attach.rs",
    "harness/cli/commands/session/distribute.rs",
    "harness/session/src/ownership/takeover.rs",
    "harness/cli/wiring/owners.rs",
];

/// Texts in those files that are no messages, or that ask for nothing.
const OTHERS: [&str; 53] = [
    "scontrol, sinfo or sbatch",
    // Reasons of `expect`, and a command.
    "a bundle is packed again where there is no capacity",
    "its files are fetched",
    "the time of kept instances was not extended: that of their launch holds",
    "it could not be noted that instances are kept: a sweep takes them for running ones",
    "ssh -i … …@…",
    // Mistakes of Muster itself.
    "store the … of …",
    "the results database … is closed",
    "session … was not started in this store",
    // The answer of a server that another attempt may change, or a part of a sentence.
    "; the node answered with no line of it",
    "…: there is no … in …",
    "…: there is another … in …, and it is not this case's",
    "…: … in … was changed at the same time",
    "…: the API server of … has forgotten this version",
    "…: the API server of … cannot do it now",
    "…: the API server of … answers HTTP …",
    "{apiGroups: […], resources: […], verbs: […]}",
    "…: … (HTTP …)",
    "status unknown for quota",
    "not yet ready to handle request",
    "could not find the requested resource",
    "it cannot be known whether the node has rotated the log",
    "the reply broke off",
    // On EC2: what an operation was, what is left to the launch, commands and parts of sentences.
    "a preflight leaves this to the launch",
    "… in …: ……",
    "make the user data",
    "look for data sets",
    "the files of a case did not come back",
    "fetch the files of a job",
    "unpack the files of …",
    "a log is read later",
    "ec2 delete-volume --volume-id …",
    "s3 rm --recursive …",
    "s3 rm --recursive … --exclude '*' --include … --include …",
    "what may hold secrets in …",
    "aws ssm start-session… --target …",
    "look for the instances",
    "ec2 delete-security-group --group-id …",
    "ec2 describe-security-groups --filters Name=group-name,Values=…",
    "ec2 delete-placement-group --group-name …",
    "… has ended with …",
    // What is in order, or a part of a sentence of `muster doctor`.
    "of an unknown version",
    "off: how a job has ended is read from its exit file, and from squeue",
    "; the first that does not: …",
    "…, not made yet",
    // What goes on.
    "…: waiting for an answer about …, … at most",
    "session …: of … case(s) … have ended, … are continued, and … start now",
    "no Lease is seen",
    " of process … on …",
    "warning: --distribute leaves out … more nodes",
    ", its node … has not released it",
    "--distribute on partition …",
    ", held by its finalizers …",
];

/// Where every message of [`CALLS`] is on the page. What `muster convert` cannot convert has its line and a hint instead.
const CRATES: [&str; 5] =
    ["harness/answers/src/", "harness/cli/", "harness/session/src/", "harness/host/src/", "harness/convert/src/stored/"];

/// What makes a message, or says in which context an error was found.
const CALLS: [&str; 19] = [
    "bail!(",
    "anyhow!(",
    "ensure!(",
    "eprintln!(",
    "#[error(",
    ".context(",
    ".with_context(",
    ".map_err(",
    ".ok_or(",
    ".ok_or_else(",
    ".note(",
    ".error(",
    "Err(",
    "io::Error::new(",
    "End::infra(",
    "nknown(format!(",
    "return format!(",
    ".push(",
    "writeln!(",
];

/// What a message may begin with.
const LEVELS: [&str; 3] = ["error:", "warning:", "note:"];

/// Texts in those calls that are no messages, or that ask for nothing.
const OTHERS_OF_CALLS: [&str; 24] = [
    // Mistakes in files of settings: they have their line, and say what to write.
    "`~` is the home folder: HOME is not set",
    "`…` counts from 0, found …",
    "write `max-retries: 2`, for instance",
    "a file of settings is one document",
    "remove the line `---` before it",
    "`…` is an action: a file of settings has none",
    "`…` takes text or a number, found …",
    "`…` is true or false, found …",
    "`…` takes no value with a comma, which divides its items",
    // Mistakes of Muster itself.
    "there is no scheduler",
    "no scheduler follows a scenario",
    "the engine ended without a result for this case",
    // What was done, or a part of a sentence.
    "partition … runs on `…`",
    "; did you mean …?",
    // What goes on.
    "… of … nights are written",
    "wrote …: a check file in the same folder reads its part with\n…",
    "…: … case(s) are restored, … run",
    "at most this run uses ……",
    "only `…` is shown; it was judged together with the other partitions",
    // Counts, and parts of files.
    "… job(s) would be removed",
    "… (beyond the limit)",
    "# scheduler …, … task(s), time_limit …, max_pending_time …",
    "  - name: …\n    scheduler: …\n    environs: [default]",
    "      # …: NAME    # of the kubeconfig; without it the current one, and in a pod its own cluster",
];

/// A file of the program.
struct Source {
    path: String,
    /// All texts in it.
    texts: Vec<String>,
    /// Those in [`CALLS`].
    said: Vec<String>,
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("harness")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.extend((!["tests", "examples", "target"].contains(&&*name)).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests.rs" && name != "testing.rs" {
                let path = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).expect("below the root").to_string_lossy().into_owned();
                let text = page(&path);
                let code = code(text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default());
                found.push(Source { path, texts: texts(&code), said: said(&code) });
            }
        }
    }
    found
}

/// Rust source without comments.
fn code(source: &str) -> String {
    let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    code.join("\n").replace("'\"'", "")
}

/// The string literals of code, with `…` for what is filled in.
fn texts(code: &str) -> Vec<String> {
    let (mut all, mut rest) = (Vec::new(), code);
    while let Some(at) = rest.find('"') {
        let is_raw = rest[..at].ends_with("r#");
        let (text, after) = literal(&rest[at + 1..], is_raw);
        all.push(with_gaps(&text));
        rest = after;
    }
    all
}

/// The string literals within [`CALLS`].
fn said(code: &str) -> Vec<String> {
    let starts = CALLS.iter().flat_map(|call| code.match_indices(call).map(|(at, call)| at + call.len()));
    starts.flat_map(|start| texts(&code[start..start + inside(&code[start..])])).collect()
}

/// How long it is until the bracket before `code` closes.
fn inside(code: &str) -> usize {
    let (mut rest, mut depth) = (code, 1);
    while let Some(at) = rest.find(['(', ')', '"']) {
        let is_raw = rest[..at].ends_with("r#");
        let found = rest.as_bytes()[at];
        rest = if found == b'"' { literal(&rest[at + 1..], is_raw).1 } else { &rest[at + 1..] };
        match found {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    code.len() - rest.len()
}

/// A literal from its first character on, and what follows it.
fn literal(source: &str, is_raw: bool) -> (String, &str) {
    let (mut text, mut chars) = (String::new(), source.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' if !is_raw || source[at..].starts_with("\"#") => return (text, &source[at + 1..]),
            '\\' if !is_raw => match chars.next() {
                Some((_, '\n')) => {
                    let skipped = source[at + 2..].len() - source[at + 2..].trim_start().len();
                    for _ in source[at + 2..at + 2 + skipped].chars() {
                        chars.next();
                    }
                }
                Some((_, 'n')) => text.push('\n'),
                Some((_, other)) => text.push(other),
                None => break,
            },
            other => text.push(other),
        }
    }
    (text, "")
}

/// `{name}` becomes `…`, `{{` a brace.
fn with_gaps(text: &str) -> String {
    let (mut shown, mut chars) = (String::new(), text.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '{' if chars.next_if_eq(&'{').is_some() => shown.push('{'),
            '}' if chars.next_if_eq(&'}').is_some() => shown.push('}'),
            '{' => {
                chars.by_ref().find(|c| *c == '}');
                shown.push('…');
            }
            other => shown.push(other),
        }
    }
    shown
}

/// Whether a text has the parts of a message in their order.
fn has(text: &str, message: &str) -> bool {
    let mut rest = text;
    message.split('…').map(|part| part.trim_matches('`')).all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// The messages of the page: what stands in code spans in the first cell of its tables.
fn messages(page: &str) -> Vec<String> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| spans(row.trim_start_matches("| ").split(" | ").next().unwrap_or_default())).collect()
}

/// The code spans of a text, in one or two backticks.
fn spans(cell: &str) -> Vec<String> {
    let (mut all, mut rest) = (Vec::new(), cell);
    while let Some(at) = rest.find('`') {
        let fence = if rest[at..].starts_with("``") { "``" } else { "`" };
        let Some((span, after)) = rest[at + fence.len()..].split_once(fence) else { break };
        all.push(span.trim().replace("\\|", "|"));
        rest = after;
    }
    all
}

#[test]
fn each_message_of_the_page_is_one_of_the_program() {
    let sources = sources();
    let messages = messages(&page("docs/troubleshooting.md"));
    assert!(messages.len() >= 150, "{} messages", messages.len());
    let is_known = |message: &&String| sources.iter().any(|source| source.texts.iter().any(|text| has(text, message)));
    let unknown: Vec<&String> = messages.iter().filter(|message| !is_known(message)).collect();
    assert!(unknown.is_empty(), "no message of the program:\n{unknown:#?}");
}

#[test]
fn each_message_of_the_files_that_ask_for_something_is_on_the_page() {
    let messages = messages(&page("docs/troubleshooting.md"));
    let sources = sources();
    let mut missing = Vec::new();
    for file in WHOLE {
        let source = sources.iter().find(|source| source.path == file).unwrap_or_else(|| panic!("no file {file}"));
        let sentences = source.texts.iter().filter(|text| text.split_whitespace().filter(|word| word.len() > 1).count() >= 4);
        let is_there = |text: &&String| OTHERS.contains(&text.as_str()) || messages.iter().any(|message| has(text, message));
        missing.extend(sentences.filter(|text| !is_there(text)).map(|text| format!("{file}: {text}")));
    }
    assert!(missing.is_empty(), "not on the page:\n{missing:#?}");
}

#[test]
fn each_message_of_the_command_line_is_on_the_page() {
    let messages = messages(&page("docs/troubleshooting.md"));
    let is_word = |word: &&str| word.matches(|c: char| c.is_ascii_alphabetic()).count() > 1 && !LEVELS.contains(word);
    let is_other = |text: &str| OTHERS.contains(&text) || OTHERS_OF_CALLS.contains(&text);
    let is_there = |text: &&String| is_other(text) || messages.iter().any(|message| has(text, message));
    let (mut found, mut missing) = (BTreeSet::new(), Vec::new());
    for source in sources().iter().filter(|source| CRATES.iter().any(|folder| source.path.starts_with(folder))) {
        let sentences = source.said.iter().filter(|text| text.split_whitespace().filter(is_word).count() >= 3);
        found.extend(sentences.clone().cloned());
        missing.extend(sentences.filter(|text| !is_there(text)).map(|text| format!("{}: {text}", source.path)));
    }
    assert!(missing.is_empty(), "not on the page:\n{missing:#?}");
    assert!(found.len() > 180, "{} messages", found.len());
    let unused: Vec<&&str> = OTHERS_OF_CALLS.iter().filter(|text| !found.contains(**text)).collect();
    assert!(unused.is_empty(), "no text of a call:\n{unused:#?}");
}
