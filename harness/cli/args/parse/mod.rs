//! From the words of the command line and the variables of the environment to settings, each with its origin.

mod help;
mod variables;

pub use help::definition;
pub(super) use variables::SETTINGS;
pub use variables::{doubtful_settings, listed, unknown_variables, variable, variable_that_is_no_text};

use crate::args::{Cli, FileSetting, foreign};
use clap::{
    Arg, ArgMatches, FromArgMatches, Id,
    error::{ContextKind, ContextValue},
    parser::ValueSource,
};
use muster_core::job::descriptor::Schedulers;
use muster_report::secret::masked_setting;
use muster_store::Location;
use std::{collections::BTreeMap, ffi::OsString, fmt};
use variables::from_environment;

/// Where a setting's value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Flag(String),
    Environment(String),
    /// From the mode that the site file has under this name.
    Mode(String),
    /// From a file of settings, at this place.
    File(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "flag {flag}"),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::Mode(mode) => write!(f, "mode {mode}"),
            Self::File(place) => f.write_str(place),
        }
    }
}

/// The settings as parsed, and where each comes from, by long flag.
pub struct Parsed {
    pub cli: Cli,
    /// Sources by long flag.
    pub origins: BTreeMap<String, Origin>,
    /// What is wrong in files of settings, of a command that goes without them.
    pub unused_files: Option<String>,
}

/// Words that a mode puts before those that are typed.
#[derive(Debug, Clone, Copy)]
pub struct Mode<'a> {
    pub name: &'a str,
    pub words: &'a [OsString],
}

/// What lies beneath the command line: the environment, and beneath that the files of settings.
#[derive(Clone, Copy)]
pub struct Beneath<'a> {
    pub env: &'a dyn Fn(&str) -> Option<String>,
    pub files: &'a [FileSetting],
}

/// Parses the command line.
///
/// # Errors
/// Clap's own, with its exit code and text.
pub fn parse(argv: &[OsString], schedulers: &Schedulers, beneath: Beneath<'_>) -> Result<Parsed, clap::Error> {
    parse_in_mode(argv, Mode { name: "", words: &[] }, schedulers, beneath)
}

/// The same with a mode between the two.
///
/// # Errors
/// Clap's own; a mode that holds what no mode may.
pub fn parse_in_mode(
    argv: &[OsString],
    mode: Mode<'_>,
    schedulers: &Schedulers,
    Beneath { env, files }: Beneath<'_>,
) -> Result<Parsed, clap::Error> {
    let command = definition(schedulers);
    let in_mode = typed_in(&command, mode)?;
    let typed = command.clone().ignore_errors(true).try_get_matches_from(argv).ok();
    let is_typed = |arg: &Arg| {
        // A global flag may stand before or after the subcommand.
        let mut levels = std::iter::successors(typed.as_ref(), |matches| matches.subcommand().map(|(_, inner)| inner));
        levels.any(|matches| is_set(matches, arg))
    };
    let actions = actions(&command);
    let action_typed = command.get_arguments().any(|arg| actions.contains(&arg.get_id()) && is_typed(arg))
        || typed.as_ref().is_some_and(|matches| matches.subcommand_name().is_some());
    let (mut extra, mut origins) = (Vec::new(), BTreeMap::new());
    for arg in command.get_arguments() {
        let Some(long) = arg.get_long().filter(|long| !matches!(*long, "help" | "version")) else { continue };
        if is_typed(arg) {
            origins.insert(long.to_owned(), Origin::Flag(format!("--{long}")));
            continue;
        }
        if in_mode.contains(&long) {
            origins.insert(long.to_owned(), Origin::Mode(mode.name.to_owned()));
            continue;
        }
        let name = variable(long);
        let of_file = files.iter().find(|setting| setting.long == long);
        let Some(value) = env(&name) else {
            if let Some(setting) = of_file {
                origins.insert(long.to_owned(), Origin::File(setting.place.clone()));
                extra.extend(setting.words.iter().cloned());
            }
            continue;
        };
        if actions.contains(&arg.get_id()) && action_typed {
            continue;
        }
        let words = from_environment(arg, long, &name, &value)
            .map_err(|message| command.clone().error(clap::error::ErrorKind::InvalidValue, message))?;
        if !words.is_empty() || of_file.is_some() {
            origins.insert(long.to_owned(), Origin::Environment(name));
            extra.extend(words);
        }
    }
    // Before the flags. A mistake is that of a variable, unless it remains without the variables.
    let with = |extra: &[OsString]| {
        let (program, rest) = argv.split_at(1.min(argv.len()));
        let program = program.first().cloned().unwrap_or_else(|| "muster".into());
        let all =
            std::iter::once(program).chain(extra.iter().cloned()).chain(mode.words.iter().cloned()).chain(rest.iter().cloned());
        command.clone().try_get_matches_from(all)
    };
    let matches = match with(&extra) {
        // The usage of a mistake lists what is typed: not the flags of variables and files.
        Err(error) if error.use_stderr() => match with(&[]) {
            Ok(_) => return Err(of_its_source(&command, &origins, env, error)),
            Err(error) => return Err(foreign::explained(&command, without_secret(&command, error))),
        },
        matches => matches?,
    };
    let mut cli = Cli::from_arg_matches(&matches)?;
    cli.files.schedulers = schedulers.clone();
    cli.rounds.settle(&mut origins);
    let is_typed = |long: &str| matches!(origins.get(long), Some(Origin::Flag(_)));
    cli.files.is_system_typed = is_typed("system");
    if is_typed("db") && cli.run.db.as_ref().is_some_and(Location::has_password) {
        return Err(command.clone().error(clap::error::ErrorKind::InvalidValue, PASSWORD_IS_TYPED));
    }
    Ok(Parsed { cli, origins, unused_files: None })
}

/// The command line of a process can be read by every user of its machine.
const PASSWORD_IS_TYPED: &str = "the URL of --db contains a password, which other users can read on a command line: put the URL into \
                                 MUSTER_DB, or the password into ~/.pgpass or the file that `?passfile=` names";

/// The arguments of which one says what to do.
pub(super) fn actions(command: &clap::Command) -> Vec<&Id> {
    let listed = command.get_groups().filter(|group| group.get_id() == "action").flat_map(clap::ArgGroup::get_args);
    // It goes together with one of them.
    let with_another = command.get_arguments().map(Arg::get_id).filter(|id| *id == "dry_run");
    listed.chain(with_another).collect()
}

/// Whether an argument is on the command line.
fn is_set(matches: &ArgMatches, arg: &Arg) -> bool {
    let id = arg.get_id().as_str();
    matches!(matches.try_contains_id(id), Ok(true)) && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// What a mode must not contain besides actions: these say where the mode is.
const NOT_IN_A_MODE: [&str; 3] = ["mode", "system", "config-file"];

/// The long flags that a mode's words set.
fn typed_in<'c>(command: &'c clap::Command, mode: Mode<'_>) -> Result<Vec<&'c str>, clap::Error> {
    if mode.words.is_empty() {
        return Ok(Vec::new());
    }
    let refuse = |what: &str| {
        let message = format!(
            "the mode `{}` contains {what}: a mode has options, but no action, --mode, --system or --config-file",
            mode.name
        );
        command.clone().error(clap::error::ErrorKind::InvalidValue, message)
    };
    let program = OsString::from("muster");
    let matches = command.clone().try_get_matches_from(std::iter::once(&program).chain(mode.words)).map_err(|error| {
        let text = error.to_string();
        let first = text.trim_start_matches("error: ").lines().next().unwrap_or_default();
        command.clone().error(clap::error::ErrorKind::InvalidValue, format!("the mode `{}`: {first}", mode.name))
    })?;
    if let Some(name) = matches.subcommand_name() {
        return Err(refuse(&format!("the command {name}")));
    }
    let actions = actions(command);
    let mut flags = Vec::new();
    for arg in command.get_arguments().filter(|arg| is_set(&matches, arg)) {
        let Some(long) = arg.get_long() else { continue };
        if actions.contains(&arg.get_id()) || NOT_IN_A_MODE.contains(&long) {
            return Err(refuse(&format!("--{long}")));
        }
        flags.push(long);
    }
    Ok(flags)
}

/// Names the variable, or the place in a file: clap only knows the flag.
fn of_its_source(
    command: &clap::Command,
    origins: &BTreeMap<String, Origin>,
    env: &dyn Fn(&str) -> Option<String>,
    error: clap::Error,
) -> clap::Error {
    let text = said(&error);
    // `--maxfail <N>` of a wrong value; other mistakes only show the flag in their text.
    let named = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(shown)) => shown.strip_prefix("--").and_then(|shown| shown.split([' ', '=', '[']).next()),
        _ => None,
    };
    let is_wrong = |long: &str| named.map_or_else(|| text.contains(&format!("--{long}")), |named| named == long);
    let wrong = origins.iter().filter(|(long, _)| is_wrong(long)).find_map(|(long, origin)| match origin {
        Origin::Environment(name) => Some((long, Some(name), String::new())),
        Origin::File(place) => Some((long, None, place.clone())),
        Origin::Flag(_) | Origin::Mode(_) => None,
    });
    let invalid = |message: &str| command.clone().error(clap::error::ErrorKind::InvalidValue, message);
    let source = match wrong {
        None => return error,
        // What is wrong may be the rest of a secret.
        Some((long, Some(name), _)) if SETTINGS.contains(&&**long) || long == "session-extras" => {
            return invalid(&format!("{name}: an item of it is not what --{long} takes"));
        }
        Some((_, Some(name), _)) => format!("{name}={}", muster_store::masked(&env(name).unwrap_or_default())),
        Some((_, None, place)) => place,
    };
    let first = text.trim_start_matches("error: ").lines().next().unwrap_or_default();
    let values = text.lines().find(|line| line.contains("[possible values:")).unwrap_or_default();
    invalid(format!("{source}: {first} {}", values.trim()).trim_end())
}

/// What is wrong, without the value of what has the name of a secret: the mistake may be a character before it.
fn said(error: &clap::Error) -> String {
    let text = error.to_string();
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else { return text };
    text.replace(value, &masked_setting(value))
}

fn without_secret(command: &clap::Command, error: clap::Error) -> clap::Error {
    let text = said(&error);
    if text == error.to_string() {
        return error;
    }
    let first = text.trim_start_matches("error: ").lines().next().unwrap_or_default();
    command.clone().error(error.kind(), first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{ExecPolicy, Listing};

    pub(super) fn parsed(argv: &[&str], env: &[(&str, &str)]) -> Result<Parsed, String> {
        let argv: Vec<OsString> = std::iter::once("muster").chain(argv.iter().copied()).map(OsString::from).collect();
        let env: BTreeMap<_, _> = env.iter().copied().collect();
        let env = |name: &str| env.get(name).map(|value| (*value).to_owned());
        parse(&argv, &Schedulers::default(), Beneath { env: &env, files: &[] }).map_err(|error| error.to_string())
    }

    #[test]
    fn a_flag_outranks_the_environment() {
        let run =
            parsed(&["-r", "--maxfail", "2"], &[("MUSTER_MAXFAIL", "5"), ("MUSTER_EXEC_POLICY", "serial")]).expect("parses");
        assert_eq!((run.cli.run.maxfail, run.cli.run.exec_policy), (Some(2), ExecPolicy::Serial));
        assert_eq!(run.origins["maxfail"], Origin::Flag("--maxfail".into()));
        assert_eq!(run.origins["exec-policy"], Origin::Environment("MUSTER_EXEC_POLICY".into()));
    }

    #[test]
    fn lists_in_the_environment_are_split_at_commas() {
        let list =
            parsed(&["-l"], &[("MUSTER_TAG", "gpu,slow"), ("MUSTER_VERBOSE", "2"), ("MUSTER_NOCOLOR", "1")]).expect("parses");
        assert_eq!(
            (list.cli.filter.tag, list.cli.output.verbose, list.cli.output.nocolor),
            (vec!["gpu".into(), "slow".into()], 2, true)
        );
    }

    #[test]
    fn settings_in_the_environment_are_one_a_line_and_their_values_keep_their_commas() {
        let list =
            parsed(&["-l"], &[("MUSTER_SETVAR", "api_token=a,b\nn=1\n"), ("MUSTER_PARAMETERIZE", "m=1,2")]).expect("parses");
        assert_eq!(list.cli.files.setvar, ["api_token=a,b", "n=1"]);
        assert_eq!(list.cli.files.parameterize, ["m=1,2"]);
        let error = parsed(&["-l"], &[("MUSTER_SETVAR", "api_token=a\nrest")]).err().unwrap_or_default();
        assert!(error.contains("MUSTER_SETVAR: a line of it is not NAME=VALUE; it has one setting a line"), "{error}");
        assert!(!error.contains("rest"), "{error}");
    }

    #[test]
    fn an_action_on_the_command_line_replaces_one_from_the_environment() {
        let list = parsed(&["-l"], &[("MUSTER_RUN", "1")]).expect("parses");
        assert_eq!((list.cli.action.run, list.cli.action.list), (false, Some(Listing::T)));
        assert!(parsed(&[], &[("MUSTER_RUN", "1")]).expect("parses").cli.action.run);
    }

    #[test]
    fn a_mistake_in_a_variable_names_the_variable() {
        let wrong = |env: &[(&str, &str)]| parsed(&["-l"], env).err().unwrap_or_default();
        let text = wrong(&[("MUSTER_MAXFAIL", "abc"), ("MUSTER_TAG", "a")]);
        assert!(text.starts_with("error: MUSTER_MAXFAIL=abc: invalid value 'abc' for '--maxfail <N>'"), "{text}");
        let text = wrong(&[("MUSTER_EXEC_POLICY", "slow")]);
        assert!(text.contains("MUSTER_EXEC_POLICY=slow") && text.contains("serial, async"), "{text}");
        let text = parsed(&["-c", "x"], &[("MUSTER_LIST", "C"), ("MUSTER_LIST_DETAILED", "zz")]).err().unwrap_or_default();
        assert!(text.starts_with("error: MUSTER_LIST_DETAILED=zz: invalid value 'zz'"), "{text}");
        assert!(wrong(&[("MUSTER_NOCOLOR", "maybe")]).contains("MUSTER_NOCOLOR=maybe is neither 1 nor 0"));
    }

    #[test]
    fn an_optional_value_may_stand_behind_a_blank_as_in_reframe() {
        for argv in [["-l", "C"], ["--list", "C"], ["-lC", "-R"], ["-l=C", "-R"]] {
            assert_eq!(parsed(&argv, &[]).expect("parses").cli.action.list, Some(Listing::C), "{argv:?}");
        }
        assert_eq!(parsed(&["-l", "-R"], &[]).expect("parses").cli.action.list, Some(Listing::T));
    }

    fn in_mode(words: &[&str], argv: &[&str], env: &[(&str, &str)]) -> Result<Parsed, String> {
        let argv: Vec<OsString> = std::iter::once("muster").chain(argv.iter().copied()).map(OsString::from).collect();
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let env: BTreeMap<_, _> = env.iter().copied().collect();
        let mode = Mode { name: "nightly", words: &words };
        let env = |name: &str| env.get(name).map(|value| (*value).to_owned());
        parse_in_mode(&argv, mode, &Schedulers::default(), Beneath { env: &env, files: &[] }).map_err(|error| error.to_string())
    }

    #[test]
    fn a_mode_lies_between_what_is_typed_and_the_environment() {
        let words = ["--max-retries=2", "-t", "slow", "--maxfail", "9"];
        let run = in_mode(&words, &["-r", "--maxfail", "3", "-t", "gpu"], &[("MUSTER_MAX_RETRIES", "7"), ("MUSTER_TAG", "cpu")]);
        let run = run.expect("parses");
        assert_eq!((run.cli.run.maxfail, run.cli.rounds.max_retries), (Some(3), 2));
        assert_eq!(run.cli.filter.tag, ["slow", "gpu"]);
        assert_eq!(run.origins["max-retries"], Origin::Mode("nightly".into()));
        assert_eq!(run.origins["maxfail"], Origin::Flag("--maxfail".into()));
    }

    #[test]
    fn a_mode_is_no_action_and_does_not_say_where_it_is() {
        let said =
            |words: &[&str]| in_mode(words, &["-l"], &[]).err().unwrap_or_default().lines().next().unwrap_or_default().to_owned();
        let said = [&["-r"][..], &["--system", "x"], &["--mode=y"], &["sweep"], &["--no-such-flag"]].map(said).join("\n");
        insta::assert_snapshot!(said, @"
        error: the mode `nightly` contains --run: a mode has options, but no action, --mode, --system or --config-file
        error: the mode `nightly` contains --system: a mode has options, but no action, --mode, --system or --config-file
        error: the mode `nightly` contains --mode: a mode has options, but no action, --mode, --system or --config-file
        error: the mode `nightly` contains the command sweep: a mode has options, but no action, --mode, --system or --config-file
        error: the mode `nightly`: unexpected argument '--no-such-flag' found
        ");
    }

    #[test]
    fn the_usage_of_a_mistake_lists_what_is_typed_and_no_variable() {
        let text = parsed(&["--nope"], &[("MUSTER_TAG", "gpu")]).err().unwrap_or_default();
        assert!(text.starts_with("error: unexpected argument '--nope' found") && !text.contains("--tag"), "{text}");
    }

    #[test]
    fn two_actions_are_refused() {
        assert!(parsed(&["-r", "-l"], &[]).is_err());
    }

    #[test]
    fn reframes_letters_mean_what_they_mean_there() {
        let run = parsed(
            &[
                "-C", "site", "-c", "checks", "-R", "-n", "a", "-n", "!b", "-x", "c", "-t", "d", "-T", "e", "-E", "true", "-p",
                "f", "-S", "x=1", "-P", "y=1,2", "-s", "st", "-o", "out", "-vv", "-q", "-r",
            ],
            &[],
        )
        .expect("parses");
        assert_eq!(run.cli.filter.name, ["a", "!b"]);
        assert_eq!((run.cli.run.stage, run.cli.run.output), (Some("st".into()), Some("out".into())));
    }

    #[test]
    fn global_flags_stand_on_either_side_of_a_command() {
        for argv in [["--db", "x.db", "sweep"], ["sweep", "--db", "x.db"]] {
            assert_eq!(parsed(&argv, &[("MUSTER_DB", "env.db")]).expect("parses").cli.run.db, Some("x.db".into()), "{argv:?}");
        }
    }
}
