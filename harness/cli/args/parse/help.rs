//! The definition of the command line, and which flags its pages of help show.

use crate::args::Cli;
use clap::{
    Arg, CommandFactory, Id,
    builder::{PossibleValue, PossibleValuesParser},
};
use muster_core::job::descriptor::Schedulers;

/// Where checks and systems are.
const SITE: &[&str] = &["checkpath", "config_file", "system"];
/// Where reports go.
const REPORTS: &[&str] = &["report_html", "report_junit", "report_markdown", "report_templates", "perflogdir"];

/// The global flags that mean something to a command: the others are not in its help.
const OF_COMMANDS: &[(&[&str], &[&[&str]])] = &[
    (&["init"], &[&["nocolor"]]),
    (&["doctor"], &[SITE, REPORTS, &["prefix", "stage", "output", "db", "nocolor"]]),
    (&["config"], &[SITE, &["prefix", "stage", "output", "db", "file_mode"]]),
    (&["results"], &[&["db", "file_mode", "nocolor"]]),
    (&["results", "demo"], &[&["file_mode", "nocolor"]]),
    (&["results", "list"], &[&["system", "db", "nocolor"]]),
    (&["results", "causes"], &[&["system", "db", "nocolor"]]),
    (&["results", "compare"], &[&["system", "db", "nocolor"]]),
    (&["results", "history"], &[&["system", "db", "nocolor"]]),
    (&["results", "export"], &[&["system", "db"]]),
    (&["results", "import"], &[&["checkpath", "config_file", "db", "file_mode"]]),
    (&["results", "suggest-references"], &[&["system", "db", "file_mode", "nocolor"]]),
    (&["results", "rebuild"], &[&["checkpath", "config_file", "db", "file_mode", "nocolor"]]),
    (&["results", "annotate"], &[&["system", "db", "file_mode", "nocolor"]]),
    (&["results", "show"], &[REPORTS, &["system", "db", "file_mode", "nocolor", "failure_stats"]]),
    (&["attach"], &[REPORTS, &["db", "file_mode", "verbose", "quiet", "nocolor", "failure_stats"]]),
    (&["night"], &[SITE, &["db", "nocolor"]]),
    (&["top"], &[&["db", "nocolor"]]),
    (&["sweep"], &[SITE, &["db", "file_mode", "nocolor"]]),
    (&["k8s"], &[SITE]),
    (&["ec2"], &[SITE]),
    (&["check"], &[]),
    (&["check", "fmt"], &[&["checkpath", "nocolor"]]),
    (&["check", "lint"], &[&["checkpath", "config_file", "nocolor"]]),
    (&["completions"], &[]),
    (&["man"], &[]),
    (&["convert"], &[&["output"]]),
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
            command.args(missing.into_iter().map(|arg| arg.clone().hide(!kept.concat().contains(&arg.get_id().as_str()))))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse::tests::parsed;

    #[test]
    fn the_definition_is_sound() {
        definition(&Schedulers::default()).debug_assert();
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
            ["--limit", "--outcome", "--name", "--tag", "--partition", "--on", "--format", "--system", "--db", "--nocolor"]
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
}
