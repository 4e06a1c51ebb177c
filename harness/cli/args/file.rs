//! A file of settings: keys are the long flags, without actions. Pure; `inputs::settings_files` says which files.

use crate::args::parse::{SETTINGS, actions};
use clap::{
    Arg, ArgAction,
    error::{ContextKind, ErrorKind},
};
use muster_text::{
    diagnostic::{self, Diagnostic, FileId, Sources},
    yaml::{self, Kind, Node},
};
use std::ffi::OsString;

/// A flag as a file sets it.
#[derive(Debug, Clone)]
pub struct FileSetting {
    pub long: String,
    /// What it would be on the command line. Empty: the flag is switched off.
    pub words: Vec<OsString>,
    /// `muster.yaml:3:1`
    pub place: String,
}

/// Reads a file of settings.
///
/// # Errors
/// All mistakes, with their places.
pub fn settings(command: &clap::Command, path: &str, text: &str, color: bool) -> Result<Vec<FileSetting>, String> {
    let mut sources = Sources::default();
    let file: FileId = sources.add(path, text);
    let parsed = yaml::parse(file, text);
    let (mut found, mut mistakes) = (Vec::new(), parsed.diagnostics);
    let mut documents = parsed.documents.iter().filter(|document| !document.is_null());
    if let Some(document) = documents.next() {
        // What cannot be read was reported.
        if !matches!(&*document.kind, Kind::Map(_)) && mistakes.is_empty() {
            let message = format!("settings are a mapping, found {}", document.what());
            mistakes.push(Diagnostic::error(document.place(), message).hint("write `max-retries: 2`, for instance"));
        }
        for (key, value) in document.entries() {
            match setting(command, key, value) {
                Ok((long, words)) => {
                    let place = sources.position(key.span).map(|(path, line, column)| format!("{path}:{line}:{column}"));
                    found.push(FileSetting { long, words, place: place.unwrap_or_default() });
                }
                Err(mistake) => mistakes.push(mistake),
            }
        }
    }
    if let Some(second) = documents.next() {
        mistakes.push(
            Diagnostic::error(second.place(), "a file of settings is one document").hint("remove the line `---` before it"),
        );
    }
    if mistakes.is_empty() { Ok(found) } else { Err(diagnostic::render(&mistakes, &sources, color).trim_end().to_owned()) }
}

fn setting(command: &clap::Command, key: &Node, value: &Node) -> Result<(String, Vec<OsString>), Diagnostic> {
    let name = key.text().unwrap_or_default();
    let wrong = |message: String| Diagnostic::error(key.span, message);
    let all = || command.get_arguments().filter_map(Arg::get_long).filter(|long| !matches!(*long, "help" | "version"));
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(name)).filter(|_| all().any(|long| long == name));
    let Some(arg) = arg else {
        let hint = "keys are the long flags of `muster --help`, without dashes";
        return Err(wrong(format!("unknown setting `{name}`")).did_you_mean(name, all(), Some(hint)));
    };
    // What belongs to an action means nothing without it.
    if actions(command).contains(&arg.get_id()) || arg.get_help_heading() == Some("Actions") {
        return Err(wrong(format!("`{name}` is an action: a file of settings has none")));
    }
    let words = words(arg, name, value)?;
    match not_taken(command, name, &words) {
        Some((what, possible)) => {
            let mistake = Diagnostic::error(value.place(), what);
            Err(if possible.is_empty() { mistake } else { mistake.hint(possible) })
        }
        None => Ok((name.to_owned(), words)),
    }
}

/// Why the command line would not take a value, and what it would take.
fn not_taken(command: &clap::Command, long: &str, words: &[OsString]) -> Option<(String, String)> {
    let all = std::iter::once(OsString::from("muster")).chain(words.iter().cloned());
    let error = command.clone().try_get_matches_from(all).err()?;
    // What is missing beside it is not its mistake.
    if !matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) {
        return None;
    }
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let shown = error.get(ContextKind::InvalidArg).map_or_else(String::new, |shown| format!("'{shown}'"));
    let possible = text.lines().find_map(|line| Some(line.trim().strip_prefix("[possible values: ")?.trim_end_matches(']')));
    Some((
        first.replace(&shown, &format!("`{long}`")),
        possible.map_or_else(String::new, |values| format!("write one of {values}")),
    ))
}

/// The words of a flag.
fn words(arg: &Arg, long: &str, value: &Node) -> Result<Vec<OsString>, Diagnostic> {
    let wrong = |message: String| Diagnostic::error(value.place(), message);
    let text = |node: &Node| match (&*node.kind, node.what()) {
        (Kind::Scalar { text, .. }, "text" | "a number") => {
            in_home(arg, text).ok_or_else(|| Diagnostic::error(node.place(), "`~` is the home folder: HOME is not set"))
        }
        (_, what) => Err(Diagnostic::error(node.place(), format!("`{long}` takes text or a number, found {what}"))),
    };
    let word = |text: String| OsString::from(format!("--{long}={text}"));
    match arg.get_action() {
        ArgAction::SetTrue => match value.text() {
            Some("true") => Ok(vec![format!("--{long}").into()]),
            Some("false") => Ok(vec![]),
            _ => Err(wrong(format!("`{long}` is true or false, found {}", value.what()))),
        },
        ArgAction::Count => {
            let count: Option<usize> = value.text().and_then(|text| text.parse().ok());
            let found = || value.plain().map_or_else(|| value.what().to_owned(), |text| format!("`{text}`"));
            let count = count.ok_or_else(|| wrong(format!("`{long}` counts from 0, found {}", found())))?;
            Ok(vec![format!("--{long}").into(); count.min(5)])
        }
        ArgAction::Append => {
            let is_named = SETTINGS.contains(&long) || long == "session-extras";
            match &*value.kind {
                Kind::Map(entries) if is_named => {
                    let pair = |(key, value): &(Node, Node)| {
                        let text = text(value)?;
                        if arg.get_value_delimiter().is_some_and(|delimiter| text.contains(delimiter)) {
                            return Err(wrong(format!("`{long}` takes no value with a comma, which divides its items")));
                        }
                        Ok(word(format!("{}={text}", key.text().unwrap_or_default())))
                    };
                    entries.iter().map(pair).collect()
                }
                _ => value.one_or_many().iter().map(|item| text(item).map(word)).collect(),
            }
        }
        _ => Ok(vec![word(text(value)?)]),
    }
}

/// `~/` of a path, which no shell has replaced. `None`: nothing says where the home folder is.
fn in_home(arg: &Arg, text: &str) -> Option<String> {
    let is_path = arg.get_value_names().is_some_and(|names| {
        // `FILE|URL` is one name.
        names.iter().flat_map(|name| name.split('|')).any(|name| matches!(name, "PATH" | "DIR" | "FILE"))
    });
    match text.strip_prefix("~/").filter(|_| is_path) {
        Some(rest) => std::env::var("HOME").ok().map(|home| format!("{home}/{rest}")),
        None => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::definition;
    use muster_core::job::descriptor::Schedulers;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let settings = settings(&definition(&Schedulers::default()), "muster.yaml", text, false)?;
        let line = |setting: FileSetting| {
            let words: Vec<String> = setting.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            format!("{} {}", setting.place, words.join(" ")).trim_end().to_owned()
        };
        Ok(settings.into_iter().map(line).collect())
    }

    #[test]
    fn each_form_of_a_value_becomes_the_words_of_its_flag() {
        let rows = [
            ("max-retries: 2", "--max-retries=2"),
            ("nocolor: true", "--nocolor"),
            ("nocolor: false", ""),
            ("verbose: 2", "--verbose --verbose"),
            ("tag: gpu", "--tag=gpu"),
            ("tag: [gpu, '!slow']", "--tag=gpu --tag=!slow"),
            ("setvar: { n: 16, copy.tool: dd }", "--setvar=n=16 --setvar=copy.tool=dd"),
            ("setvar: [n=1]", "--setvar=n=1"),
            ("session-extras: { night: 'yes' }", "--session-extras=night=yes"),
            ("performance-report: csv", "--performance-report=csv"),
            ("duration: 1h30m", "--duration=1h30m"),
        ];
        for (text, words) in rows {
            assert_eq!(read(text), Ok(vec![format!("muster.yaml:1:1 {words}").trim_end().to_owned()]), "{text}");
        }
        assert_eq!(read("# nothing\n"), Ok(vec![]));
    }

    #[test]
    fn the_home_folder_stands_for_its_sign_in_every_path() {
        let home = std::env::var("HOME").expect("a home");
        for long in ["prefix", "stage", "report-file", "db", "checkpath", "config-file"] {
            let words = Ok(vec![format!("muster.yaml:1:1 --{long}={home}/x")]);
            assert_eq!(read(&format!("{long}: ~/x")), words, "{long}");
        }
        assert_eq!(read("tag: ~/x"), Ok(vec!["muster.yaml:1:1 --tag=~/x".to_owned()]));
    }

    #[test]
    fn what_is_no_yaml_is_one_mistake() {
        for text in ["checkpath: checks/\n system: loc", "a: [1", "a: b: c", "a: 'b", "a:\n\tb: c"] {
            let said = read(text).expect_err(text);
            assert!(said.ends_with("error: 1 mistake in 1 file"), "{said}");
            assert!(!said.contains("settings are a mapping"), "{said}");
        }
    }

    #[test]
    fn a_value_that_the_flag_does_not_take_is_shown_in_its_line() {
        let said = |text: &str| read(text).expect_err(text);
        insta::assert_snapshot!(said("nocolor: true\nmax-retries: lots\ntable-format: wide\nsetvar: { n: 1 }\n"));
        assert!(said("shard: 5/4").contains("for `shard`"), "{}", said("shard: 5/4"));
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let first = |text: &str| read(text).expect_err(text).lines().next().unwrap_or_default().to_owned();
        let rows = [
            ("max-retrys: 2", "error: unknown setting `max-retrys`"),
            ("run: true", "error: `run` is an action: a file of settings has none"),
            ("ci-generate: x", "error: `ci-generate` is an action: a file of settings has none"),
            ("ci-shards: 4", "error: `ci-shards` is an action: a file of settings has none"),
            ("help: true", "error: unknown setting `help`"),
            ("nocolor: maybe", "error: `nocolor` is true or false, found text"),
            ("verbose: much", "error: `verbose` counts from 0, found `much`"),
            ("verbose: -1", "error: `verbose` counts from 0, found `-1`"),
            ("verbose: [1]", "error: `verbose` counts from 0, found a list"),
            ("tag: a\n---\ntag: b", "error: a file of settings is one document"),
            ("performance-report: true", "error: `performance-report` takes text or a number, found a boolean"),
            ("session-extras: { note: 'a,b' }", "error: `session-extras` takes no value with a comma, which divides its items"),
            ("tag: { a: b }", "error: `tag` takes text or a number, found a mapping"),
            ("[a]", "error: settings are a mapping, found a list"),
        ];
        for (text, expected) in rows {
            assert_eq!(first(text), expected, "{text}");
        }
        assert!(read("max-retrys: 2").expect_err("wrong").contains("did you mean `max-retries`?"));
    }
}
