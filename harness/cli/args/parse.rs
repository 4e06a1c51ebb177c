//! From the words of the command line and the variables of the environment to settings, each with its origin.

use crate::args::{Cli, FileSetting, foreign};
use clap::{
    Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches, Id,
    builder::{PossibleValue, PossibleValuesParser},
    error::{ContextKind, ContextValue},
    parser::ValueSource,
};
use muster_core::job::descriptor::Schedulers;
use muster_store::Location;
use std::{collections::BTreeMap, ffi::OsString};

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
            Err(error) => return Err(foreign::explained(&command, error)),
        },
        matches => matches?,
    };
    let mut cli = Cli::from_arg_matches(&matches)?;
    cli.files.schedulers = schedulers.clone();
    let is_typed = matches!(origins.get("db"), Some(Origin::Flag(_)));
    if is_typed && cli.run.db.as_ref().is_some_and(Location::has_password) {
        return Err(command.clone().error(clap::error::ErrorKind::InvalidValue, PASSWORD_IS_TYPED));
    }
    Ok(Parsed { cli, origins, unused_files: None })
}

/// The command line of a process can be read by every user of its machine.
const PASSWORD_IS_TYPED: &str = "the URL of --db contains a password, which other users can read on a command line: put the URL into \
                                 MUSTER_DB, or the password into ~/.pgpass or the file that `?passfile=` names";

/// The arguments of which one says what to do.
pub(super) fn actions(command: &clap::Command) -> Vec<&Id> {
    command.get_groups().filter(|group| group.get_id() == "action").flat_map(clap::ArgGroup::get_args).collect()
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
        command.clone().error(clap::error::ErrorKind::InvalidValue, format!("the mode {}: {first}", mode.name))
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
    let text = error.to_string();
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

/// The global flags that mean something to a command: the others are not in its help.
const OF_COMMANDS: &[(&[&str], &[&str])] = &[
    (&["init"], &["nocolor"]),
    (&["doctor"], &["checkpath", "config_file", "system", "prefix", "stage", "output", "db", "nocolor"]),
    (&["config"], &["checkpath", "config_file", "system", "prefix", "stage", "output", "db", "file_mode"]),
    (&["results"], &["db", "file_mode", "nocolor"]),
    (&["results", "demo"], &["file_mode", "nocolor"]),
    (&["results", "list"], &["db", "nocolor"]),
    (&["results", "causes"], &["db", "nocolor"]),
    (&["results", "compare"], &["db", "nocolor"]),
    (&["results", "history"], &["db", "nocolor"]),
    (&["results", "export"], &["db"]),
    (&["results", "import"], &["checkpath", "config_file", "db", "file_mode"]),
    (&["results", "suggest-references"], &["db", "file_mode", "nocolor"]),
    (&["results", "rebuild"], &["checkpath", "config_file", "db", "file_mode", "nocolor"]),
    (&["results", "annotate"], &["system", "db", "file_mode", "nocolor"]),
    (
        &["results", "show"],
        &[
            "db",
            "file_mode",
            "nocolor",
            "report_html",
            "report_junit",
            "report_markdown",
            "report_templates",
            "perflogdir",
            "failure_stats",
        ],
    ),
    (
        &["attach"],
        &[
            "db",
            "file_mode",
            "verbose",
            "quiet",
            "nocolor",
            "report_html",
            "report_junit",
            "report_markdown",
            "report_templates",
            "perflogdir",
            "failure_stats",
        ],
    ),
    (&["night"], &["checkpath", "config_file", "system", "db", "nocolor"]),
    (&["top"], &["db", "nocolor"]),
    (&["sweep"], &["checkpath", "config_file", "system", "db", "file_mode", "nocolor"]),
    (&["k8s"], &["checkpath", "config_file", "system"]),
    (&["ec2"], &["checkpath", "config_file", "system"]),
    (&["check"], &[]),
    (&["check", "fmt"], &["checkpath", "nocolor"]),
    (&["check", "lint"], &["checkpath", "config_file", "nocolor"]),
    (&["completions"], &[]),
    (&["man"], &[]),
    (&["convert"], &["output"]),
    (&["kernel"], &[]),
];

/// What `-h` shows: a page. `--help` has the rest.
const ON_THE_PAGE: [&str; 16] = [
    "run",
    "list",
    "list_detailed",
    "dry_run",
    "checkpath",
    "config_file",
    "system",
    "setvar",
    "name",
    "tag",
    "max_retries",
    "distribute",
    "performance_report",
    "verbose",
    "help",
    "version",
];

/// The definition, with the flags that mean nothing to a command left out of its help.
pub fn definition(schedulers: &Schedulers) -> clap::Command {
    // The last value wins: what is typed comes after the mode.
    let all = Cli::command().args_override_self(true);
    let globals: Vec<Arg> = all.get_arguments().filter(|arg| arg.is_global_set() && arg.get_id() != "help").cloned().collect();
    let names: Vec<PossibleValue> =
        schedulers.named().map(|scheduler| PossibleValue::new(scheduler.name).help(scheduler.descr)).collect();
    let here = schedulers.named().find(|scheduler| scheduler.is_here).map(|scheduler| scheduler.name);
    let of_scheduler = |arg: Arg| arg.value_parser(PossibleValuesParser::new(names)).required(false).default_values(here);
    let of_new = |new: clap::Command| new.mut_arg("scheduler", of_scheduler);
    let all = all.mut_subcommand("check", |check| check.mut_subcommand("new", of_new));
    let all = OF_COMMANDS.iter().fold(all, |all, (path, kept)| {
        // A command's own argument of the same name stands in for the global one, and is handed down.
        below(all, path, &mut |command| {
            let has = |id: &Id| command.get_arguments().any(|arg| arg.get_id() == id);
            let missing: Vec<&Arg> = globals.iter().filter(|arg| !has(arg.get_id())).collect();
            command.args(missing.into_iter().map(|arg| arg.clone().hide(!kept.contains(&arg.get_id().as_str()))))
        })
    });
    all.mut_args(|arg| {
        let is_on_the_page = ON_THE_PAGE.contains(&arg.get_id().as_str());
        arg.hide_short_help(!is_on_the_page)
    })
}

/// Changes the command that a path leads to.
fn below(command: clap::Command, path: &[&str], change: &mut dyn FnMut(clap::Command) -> clap::Command) -> clap::Command {
    match path {
        [] => change(command),
        [name, rest @ ..] => command.mut_subcommand(*name, |command| below(command, rest, change)),
    }
}

/// Reports variables that look like settings and are not: a typing mistake would go unnoticed.
pub fn unknown_variables(names: impl Iterator<Item = String>) -> Vec<String> {
    let command = Cli::command();
    let known: Vec<String> = command.get_arguments().filter_map(Arg::get_long).map(variable).collect();
    let is_known = |name: &String| known.contains(name) || OTHERS.iter().any(|other| name.starts_with(other));
    let unknown = names.filter(|name| name.starts_with("MUSTER_") && !is_known(name));
    let sentence = |name: String| match muster_text::diagnostic::nearest(&name, known.iter().map(String::as_str)) {
        Some(near) => format!("unknown variable {name}: did you mean {near}?"),
        None => format!("unknown variable {name}"),
    };
    unknown.map(sentence).collect()
}

/// Variables that are not flags: the log filter, and those of the tests, the gate and the benchmarks of this repository.
const OTHERS: [&str; 9] = [
    "MUSTER_LOG",
    "MUSTER_UPDATE",
    "MUSTER_CI_",
    "MUSTER_BENCH",
    "MUSTER_CLUSTER",
    "MUSTER_EC2",
    "MUSTER_POSTGRES",
    "MUSTER_SLURM",
    "MUSTER_TEST_KUBECONFIG",
];

/// The first variable of ours that nothing would be read from.
pub fn variable_that_is_no_text(mut variables: impl Iterator<Item = (OsString, OsString)>) -> Option<String> {
    variables.find_map(|(name, value)| {
        let is_wrong = name.as_encoded_bytes().starts_with(b"MUSTER_") && (name.to_str().is_none() || value.to_str().is_none());
        is_wrong.then(|| name.to_string_lossy().into_owned())
    })
}

/// `exec-policy` is `MUSTER_EXEC_POLICY`.
pub fn variable(long: &str) -> String {
    format!("MUSTER_{}", long.to_uppercase().replace('-', "_"))
}

/// Flags whose values may have commas.
pub(super) const SETTINGS: [&str; 3] = ["setvar", "parameterize", "job-option"];

/// The items of a list in a variable: settings are one a line, anything else is separated by commas.
pub fn listed<'a>(long: &str, value: &'a str) -> impl Iterator<Item = &'a str> {
    let separator = if SETTINGS.contains(&long) { '\n' } else { ',' };
    value.split(separator).map(|item| item.trim_end_matches('\r')).filter(|item| !item.is_empty())
}

/// Reports variables that may have several settings in one line: before, a comma divided them, and now it is part of a value.
pub fn doubtful_settings(env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let of = |long: &&str| {
        let name = variable(long);
        let doubtful =
            listed(long, &env(&name)?).filter(|line| has_another(line)).find_map(|line| line.split_once('='))?.0.to_owned();
        // Not more of the line: it may be a secret.
        Some(format!("{name}: the value of `{doubtful}` has `,NAME=` in it, and is one value: several settings are one a line"))
    };
    SETTINGS.iter().filter_map(of).collect()
}

/// Whether a setting is followed by what looks like another one: `a=1,b=2`.
fn has_another(line: &str) -> bool {
    let is_name = |text: &str| {
        let mut chars = text.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
    };
    line.split(',').skip(1).any(|item| item.split_once('=').is_some_and(|(name, _)| is_name(name.trim())))
}

/// What one variable would be on the command line.
fn from_environment(arg: &Arg, long: &str, name: &str, value: &str) -> Result<Vec<OsString>, String> {
    let flag = || OsString::from(format!("--{long}"));
    match arg.get_action() {
        ArgAction::SetTrue => match value {
            "" | "0" | "false" | "no" => Ok(vec![]),
            "1" | "true" | "yes" => Ok(vec![flag()]),
            _ => Err(format!("{name}={value} is neither 1 nor 0")),
        },
        ArgAction::Count => {
            let count: usize = value.parse().map_err(|_| format!("{name}={value} is not a number"))?;
            Ok(vec![flag(); count.min(5)])
        }
        // It may be the rest of a secret: it is not printed.
        ArgAction::Append if SETTINGS.contains(&long) && listed(long, value).any(|item| !item.contains('=')) => {
            Err(format!("{name}: a line of it is not NAME=VALUE; it has one setting a line"))
        }
        ArgAction::Append => Ok(listed(long, value).map(|item| format!("--{long}={item}").into()).collect()),
        _ if value.is_empty() => Ok(vec![]),
        _ => Ok(vec![format!("--{long}={value}").into()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{ExecPolicy, Listing};

    fn parsed(argv: &[&str], env: &[(&str, &str)]) -> Result<Parsed, String> {
        let argv: Vec<OsString> = std::iter::once("muster").chain(argv.iter().copied()).map(OsString::from).collect();
        let env: BTreeMap<_, _> = env.iter().copied().collect();
        let env = |name: &str| env.get(name).map(|value| (*value).to_owned());
        parse(&argv, &Schedulers::default(), Beneath { env: &env, files: &[] }).map_err(|error| error.to_string())
    }

    #[test]
    fn the_definition_is_sound() {
        definition(&Schedulers::default()).debug_assert();
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
    fn several_settings_in_one_line_of_a_variable_are_doubted() {
        let rows = [
            ("MUSTER_SETVAR", "api_token=a,b=c", Some("api_token")),
            ("MUSTER_SETVAR", "n=1\nm=1,2", None),
            ("MUSTER_SETVAR", "flags=-O2,-Wl,-z=now", None),
            ("MUSTER_JOB_OPTION", "namespace=x,labels.team=hpc", Some("namespace")),
            ("MUSTER_PARAMETERIZE", "n=1,2,m=3", Some("n")),
            ("MUSTER_TAG", "a=1,b=2", None),
        ];
        for (variable, value, doubtful) in rows {
            let said = doubtful_settings(&|name| (name == variable).then(|| value.to_owned()));
            let expected = doubtful.map(|name| {
                format!("{variable}: the value of `{name}` has `,NAME=` in it, and is one value: several settings are one a line")
            });
            assert_eq!(said, Vec::from_iter(expected), "{variable}={value}");
        }
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
    fn a_variable_that_is_not_a_setting_is_reported() {
        let names = ["MUSTER_TGA", "MUSTER_LOG", "MUSTER_TAG", "HOME", "MUSTER_XYZZY"];
        assert_eq!(
            unknown_variables(names.into_iter().map(str::to_owned)),
            ["unknown variable MUSTER_TGA: did you mean MUSTER_TAG?", "unknown variable MUSTER_XYZZY"]
        );
        // What the gate sets for the tests is set for the program, too.
        let gate = include_str!("../../../.ci/run").split(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_');
        let of_gate: Vec<String> = gate.filter(|word| word.starts_with("MUSTER_")).map(str::to_owned).collect();
        assert!(of_gate.len() > 3, "{of_gate:?}");
        assert_eq!(unknown_variables(of_gate.into_iter()), [""; 0]);
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
        error: the mode nightly: unexpected argument '--no-such-flag' found
        ");
    }

    #[test]
    fn the_help_of_a_command_shows_what_matters_to_it() {
        let flags = |words: &[&str]| -> Vec<String> {
            let help = parsed(&[words, &["--help"]].concat(), &[]).err().unwrap_or_default();
            let flags = help.lines().filter_map(|line| line.trim_start().split(", ").find(|word| word.starts_with("--")));
            let flags = flags.map(|flag| flag.split([' ', '.', '=', '[']).next().unwrap_or_default().to_owned());
            flags.filter(|flag| flag != "--help").collect()
        };
        assert_eq!(
            flags(&["results", "list"]),
            ["--limit", "--outcome", "--name", "--tag", "--partition", "--on", "--db", "--nocolor"]
        );
        assert_eq!(flags(&["check", "new"]), ["--scheduler"]);
        assert_eq!(flags(&["check", "lint"]), ["--allow", "--format", "--explain", "--checkpath", "--config-file", "--nocolor"]);
        assert!(flags(&["results", "show"]).contains(&"--report-html".to_owned()));
    }

    #[test]
    fn the_short_help_is_a_page_and_the_long_one_has_every_flag() {
        let short = parsed(&["-h"], &[]).err().unwrap_or_default();
        assert!(short.lines().count() <= 50, "{} lines:\n{short}", short.lines().count());
        assert!(short.lines().all(|line| line.chars().count() <= 80), "{short}");
        let long = parsed(&["--help"], &[]).err().unwrap_or_default();
        for arg in definition(&Schedulers::default()).get_arguments() {
            let flag = format!("--{}", arg.get_long().unwrap_or_default());
            assert!(long.contains(&flag), "{flag}");
            // What is on the page exists.
            assert_eq!(
                short.contains(&format!("{flag} "))
                    || short.contains(&format!("{flag}["))
                    || short.contains(&format!("{flag}...")),
                ON_THE_PAGE.contains(&arg.get_id().as_str()),
                "{flag}\n{short}"
            );
        }
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
