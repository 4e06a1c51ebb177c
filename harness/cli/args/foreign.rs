//! Options that are not known where they stand: ReFrame's, with what to use instead, and filters behind a command.

use clap::{
    Command,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Option, and what does its work here.
const INSTEAD: &[(&str, &str)] = &[
    ("--compress-report", "the report is written as it is: gzip it after the run"),
    ("--cpu-only", "write `-E '!(\"gpu\" in tags)'`, or select by tag"),
    ("--gpu-only", "select by tag: `-t gpu`"),
    ("--describe-stored-testcases", "write `--describe-stored-sessions QUERY`: its reports have every case"),
    ("--detect-host-topology", "a `local` partition detects its processor by itself: `muster config show`"),
    ("--disable-hook", "there are no hooks: `-S CHECK.KEY=VALUE` overrides what an entry of `when` sets"),
    ("--dont-restage", "every attempt has a stage folder of its own: `--keep-stage-files` keeps it"),
    ("--save-log-files", "messages go to standard error: redirect it"),
    ("--flex-alloc-nodes", "say in the check how many tasks it needs: `num_tasks`"),
    ("--flex-alloc-strict", "say in the check how many tasks it needs: `num_tasks`"),
    ("--launcher", "the check's own command line starts the ranks"),
    ("--load-module", "write `modules: NAME` in the site file or the check"),
    ("-m", "write `modules: NAME` in the site file or the check"),
    ("--module", "write `modules: NAME` in the site file or the check"),
    ("--module-mappings", "write it in `prepare_cmds` of the partition: `module load NAME`"),
    ("-M", "write it in `prepare_cmds` of the partition: `module load NAME`"),
    ("--map-module", "write it in `prepare_cmds` of the partition: `module load NAME`"),
    ("--module-path", "write it in `prepare_cmds` of the partition: `module use PATH`"),
    ("--unload-module", "write it in `prepare_cmds` of the partition: `module unload NAME`"),
    ("-u", "write it in `prepare_cmds` of the partition: `module unload NAME`"),
    ("--purge-env", "write it in `prepare_cmds` of the partition: `module purge`; jobs inherit only `pass_env`"),
    ("--non-default-craype", "write it in `prepare_cmds` of the partition"),
    ("--maintainer", "write `-E '\"NAME\" in maintainers'`"),
    ("--param-values-delim", "values are separated by commas; quote a value that contains one"),
    ("--show-config", "write `muster config show`"),
    ("--skip-prgenv-check", "set the key instead: `-S 'valid_prog_environs=[\"*\"]'`"),
    ("--skip-system-check", "set the key instead: `-S 'valid_systems=[\"*\"]'`"),
    ("--table-format-delim", "write `--performance-report=csv` (RFC 4180) and convert that"),
    ("--timestamp", "write `--prefix DIR`, with a folder for each session"),
    ("--warn-as-error", "warnings of checks come with `--format json` of `muster check lint`"),
];

/// What stands below the help of a command that examines the selected cases (`after_help` in `commands.rs`).
const FILTERED: &str = "Filters stand before the command";

/// The same mistake in our words, if the unknown option is one of ReFrame's; with a tip, if it is a filter of ours.
pub fn explained(command: &Command, mut error: clap::Error) -> clap::Error {
    if let Some((option, words)) = unknown(&error).and_then(instead) {
        let message = format!("`{option}` is ReFrame's: {words}");
        return command.clone().error(ErrorKind::UnknownArgument, message);
    }
    if let Some(tip) = misplaced(command, &error) {
        // A near name would be another option.
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Where a filter belongs that stands behind its command.
fn misplaced(command: &Command, error: &clap::Error) -> Option<String> {
    let option = unknown(error)?;
    let bare = option.split('=').next().unwrap_or(option);
    let is_called = |arg: &clap::Arg| {
        let long = arg.get_long().is_some_and(|long| bare.strip_prefix("--") == Some(long));
        long || arg.get_short().is_some_and(|short| bare.strip_prefix('-') == Some(&short.to_string()))
    };
    let is_filter = command.get_arguments().any(|arg| arg.get_help_heading() == Some("Filters") && is_called(arg));
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return None };
    let usage = usage.to_string();
    // The program may have another name.
    let words = filtered(command, "").into_iter().find(|words| is_filter && usage.contains(&format!("{words} ")))?;
    Some(format!("filters stand before the command: muster {bare} ..{words}"))
}

/// The words of the commands below that examine the selected cases.
fn filtered(command: &Command, above: &str) -> Vec<String> {
    let of_one = |below: &Command| {
        let words = format!("{above} {}", below.get_name());
        let is_filtered = below.get_after_help().is_some_and(|text| text.to_string().starts_with(FILTERED));
        let all = filtered(below, &words);
        is_filtered.then_some(words).into_iter().chain(all).collect::<Vec<_>>()
    };
    command.get_subcommands().flat_map(of_one).collect()
}

fn unknown(error: &clap::Error) -> Option<&str> {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) => Some(option),
        _ => None,
    }
}

fn instead(option: &str) -> Option<&'static (&'static str, &'static str)> {
    let bare = option.split('=').next().unwrap_or(option);
    INSTEAD.iter().find(|(name, _)| *name == bare)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use crate::args::{Beneath, parse};
    use clap::CommandFactory;
    use muster_core::job::descriptor::Schedulers;

    fn reported(argv: &[&str]) -> String {
        let argv: Vec<_> = std::iter::once("muster").chain(argv.iter().copied()).map(Into::into).collect();
        parse(&argv, &Schedulers::default(), Beneath { env: &|_| None, files: &[] })
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn an_option_of_reframe_is_refused_with_what_to_use_instead() {
        let first = |argv: &[&str]| reported(argv).lines().next().unwrap_or_default().to_owned();
        insta::assert_snapshot!(first(&["--show-config"]), @"error: `--show-config` is ReFrame's: write `muster config show`");
        insta::assert_snapshot!(first(&["--module-path=x", "-r"]), @"error: `--module-path` is ReFrame's: write it in `prepare_cmds` of the partition: `module use PATH`");
        insta::assert_snapshot!(first(&["-r", "-M", "q:r"]), @"error: `-M` is ReFrame's: write it in `prepare_cmds` of the partition: `module load NAME`");
        assert!(first(&["--nonsense"]).starts_with("error: unexpected argument '--nonsense'"));
    }

    #[test]
    fn a_filter_behind_a_command_that_takes_filters_has_a_tip() {
        let tip = |argv: &[&str]| reported(argv).lines().find(|line| line.contains("tip:")).map(|line| line.trim().to_owned());
        let said = |words: &str| Some(format!("tip: filters stand before the command: {words}"));
        assert_eq!(tip(&["doctor", "-n", "dot"]), said("muster -n .. doctor"));
        assert_eq!(tip(&["k8s", "role", "--tag=nightly"]), said("muster --tag .. k8s role"));
        assert_eq!(tip(&["ec2", "policy", "-n", "x"]), said("muster -n .. ec2 policy"));
        assert_eq!(tip(&["ec2", "policy", "--tag", "x"]), said("muster --tag .. ec2 policy"));
        assert_eq!((tip(&["sweep", "-n", "dot"]), tip(&["doctor", "--nonsense"])), (None, None));
    }

    #[test]
    fn a_program_of_another_name_has_the_same_tips() {
        let argv = ["night-watch", "doctor", "-n", "dot"].map(std::ffi::OsString::from);
        let error = parse(&argv, &Schedulers::default(), Beneath { env: &|_| None, files: &[] }).err().expect("wrong");
        assert!(error.to_string().contains("filters stand before the command"), "{error}");
    }

    #[test]
    fn no_option_of_ours_is_called_foreign() {
        let command = Cli::command();
        for (option, _) in INSTEAD {
            let ours = command.get_arguments().any(|arg| {
                arg.get_long().is_some_and(|long| format!("--{long}") == *option)
                    || arg.get_short().is_some_and(|short| format!("-{short}") == *option)
            });
            assert!(!ours, "{option}");
        }
    }
}
