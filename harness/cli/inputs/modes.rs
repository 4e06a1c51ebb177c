//! `--mode`: a bundle of options from the site file, between what is typed and the environment.

use crate::{
    args::{self, Beneath, CheckCommand, Cli, Command, Mode, Origin, Parsed},
    inputs::{
        selection::{self, Site},
        settings_files,
        unanswered::{Looking, within},
    },
};
use anyhow::{Context, anyhow, bail};
use muster_core::{error::chain, job::descriptor::Schedulers, probe::EACH};
use muster_text::diagnostic::did_you_mean;
use std::{ffi::OsString, time::Duration};

/// Parses a command line, with its mode, the environment and the files of settings beneath it.
pub fn parse(argv: &[OsString], schedulers: &Schedulers, env: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Parsed> {
    let without_files = args::parse(argv, schedulers, Beneath { env, files: &[] });
    // Help needs no settings, and a kernel runs in the folder of a job.
    let is_done = match &without_files {
        Ok(parsed) => matches!(parsed.cli.command, Some(Command::Kernel { .. })),
        Err(help) => !help.use_stderr(),
    };
    if is_done {
        return without_files.map_err(Into::into);
    }
    let files = match (settings_files::read(schedulers), without_files) {
        (Ok(files), _) => files,
        (Err(mistakes), Ok(parsed))
            if parsed.cli.command.as_ref().is_some_and(|command| needed_by(command) == Needed::Nothing) =>
        {
            return Ok(Parsed { unused_files: Some(chain(&*mistakes)), ..parsed });
        }
        (Err(mistakes), _) => return Err(mistakes),
    };
    let beneath = Beneath { env, files: &files };
    let parsed = args::parse(argv, schedulers, beneath)?;
    let Some(name) = &parsed.cli.rounds.mode else { return Ok(parsed) };
    let is_typed = matches!(parsed.origins.get("mode"), Some(Origin::Flag(_)));
    let needed = match &parsed.cli.command {
        Some(command) if !is_typed => needed_by(command),
        _ => Needed::Mode,
    };
    if needed == Needed::Nothing {
        return Ok(parsed);
    }
    let is_needed = needed == Needed::Mode;
    let site = match site(&parsed.cli) {
        Err(_) if !is_needed => return Ok(parsed),
        site => site?,
    };
    let Some(mode) = site.system.modes.iter().find(|mode| mode.name == *name) else {
        if !is_needed {
            return Ok(parsed);
        }
        let names = || site.system.modes.iter().map(|mode| mode.name.as_str());
        let hint = did_you_mean(name, names()).unwrap_or_else(|| match names().next() {
            None => "write it under `modes` in its site file".to_owned(),
            Some(_) => format!("there is {}", names().collect::<Vec<_>>().join(", ")),
        });
        bail!("--mode {name}: system `{}` has no such mode: {hint}", site.system.name);
    };
    let mut words = Vec::new();
    for option in &mode.options {
        let split = split(option, env).with_context(|| format!("--mode {name}: `{option}` has a quote that does not end"))?;
        words.extend(split.into_iter().map(OsString::from));
    }
    Ok(args::parse_in_mode(argv, Mode { name, words: &words }, schedulers, beneath)?)
}

/// `doctor` does not wait for a file that does not answer.
fn site(cli: &Cli) -> anyhow::Result<Site> {
    if !matches!(cli.command, Some(Command::Doctor(_))) {
        return selection::site(&cli.files, false);
    }
    let files = cli.files.clone();
    within(EACH, move || Ok(selection::site(&files, false))).map_err(|error| {
        let path = Looking::for_longer_than(Duration::ZERO).map_or_else(String::new, |path| format!("{}: ", path.display()));
        anyhow!("{path}{error}")
    })?
}

/// What a command cannot go without, of the settings that were made for all commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needed {
    Nothing,
    /// Settings, and of the mode that they name what the system has.
    Settings,
    /// Settings, and the mode that they name.
    Mode,
}

fn needed_by(command: &Command) -> Needed {
    use Command::{Attach, Check, Completions, Config, Convert, Doctor, Ec2, Init, K8s, Kernel, Man, Night, Results, Sweep, Top};
    match command {
        Init(_) | Man | Kernel { .. } | Completions { shell: Some(_), .. } => Needed::Nothing,
        // Without paths it takes those of the settings, as lists of names do.
        Check { what: CheckCommand::Fmt(args) } if !args.paths.is_empty() => Needed::Nothing,
        Config { .. } | Night(_) | Attach { .. } | Results { .. } | Top(_) | Sweep(_) | Convert(_) | Completions { .. } => {
            Needed::Settings
        }
        Check { what: CheckCommand::New(_) } => Needed::Settings,
        Doctor(_) | K8s { .. } | Ec2 { .. } | Check { .. } => Needed::Mode,
    }
}

/// The words of a line as a shell would see them: quotes, backslashes, and variables where they are set. `None`: a quote
/// does not end.
fn split(line: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<Vec<String>> {
    let (mut words, mut word): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut chars = line.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().push(chars.next()?),
            ('$', None | Some('"')) => {
                let is_braced = chars.next_if_eq(&'{').is_some();
                let mut name = String::new();
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                if is_braced {
                    chars.next_if_eq(&'}')?;
                }
                let as_written = if is_braced { format!("${{{name}}}") } else { format!("${name}") };
                word.get_or_insert_default().push_str(&env(&name).unwrap_or(as_written));
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_split_as_a_shell_would() {
        let env = |name: &str| (name == "SCRATCH").then(|| "/my scratch".to_owned());
        let rows: [(&str, &[&str]); 7] = [
            ("-t nightly  --max-retries=1", &["-t", "nightly", "--max-retries=1"]),
            ("-n 'a b' -x \"c d\"", &["-n", "a b", "-x", "c d"]),
            (r"-n a\ b ''", &["-n", "a b", ""]),
            ("--output=$SCRATCH/out -s ${SCRATCH}", &["--output=/my scratch/out", "-s", "/my scratch"]),
            ("-E '$SCRATCH' $NOT_SET ${NEITHER}", &["-E", "$SCRATCH", "$NOT_SET", "${NEITHER}"]),
            ("", &[]),
            ("-n \"it's\"", &["-n", "it's"]),
        ];
        for (line, words) in rows {
            assert_eq!(
                split(line, &env).as_deref(),
                Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>().as_slice()),
                "{line}"
            );
        }
        assert_eq!(split("-n 'open", &env), None);
    }
}
