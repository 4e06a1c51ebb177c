//! The cases as the tests of a test binary, for `cargo nextest` and other tools that speak libtest.
//!
//! The arguments are libtest's, the selection is that of `MUSTER_*`. On stdout is what libtest's harness prints and nothing
//! else; mistakes in files are on stderr. Every process is a session of its own.

use crate::{
    args::{self, Beneath, ExecPolicy, Parsed, TestFormat},
    commands::session::run,
    inputs::{
        selection::{self, Depth},
        settings_files,
    },
    terminal::{self, Terminal},
    wiring,
};
use libtest_mimic::{Arguments, FormatSetting};
use muster_core::{
    decisions::pipeline::{EXIT_INTERRUPTED, EXIT_USAGE},
    job::descriptor::Schedulers,
};
use muster_session::front::libtest;
use std::{ffi::OsString, process::ExitCode};

/// What a test binary ends with when a test fails.
const FAILED: u8 = 101;

/// Runs or lists the cases that libtest's arguments ask for.
pub fn tests(default_checks: &str, program: &str) -> ExitCode {
    wiring::PROGRAM.get_or_init(|| program.into());
    let arguments = Arguments::from_args();
    let command_line: Vec<String> = std::env::args().collect();
    let mut argv: Vec<OsString> = vec!["muster".into(), "--run".into()];
    if std::env::var_os("MUSTER_CHECKPATH").is_none_or(|paths| paths.is_empty()) {
        argv.extend(["--checkpath".into(), default_checks.into()]);
    }
    let schedulers = Schedulers::new(crate::SCHEDULERS);
    let env = |name: &str| std::env::var(name).ok();
    let read = settings_files::read(&schedulers);
    let parsed = read.and_then(|files| Ok(args::parse(&argv, &schedulers, Beneath { env: &env, files: &files })?));
    let mut parsed = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return ExitCode::from(crate::not_parsed(&error)),
    };
    let cli = &mut parsed.cli;
    // libtest's printer owns stdout: with a format, the view prints nothing.
    cli.output.format = Some(match arguments.format {
        Some(FormatSetting::Json) => TestFormat::Json,
        Some(FormatSetting::Terse) => TestFormat::Terse,
        _ => TestFormat::Pretty,
    });
    if arguments.test_threads == Some(1) {
        cli.run.exec_policy = ExecPolicy::Serial;
    }
    let terminal = Terminal::new(&cli.output, false);
    terminal.log_to_stderr();
    if let Err(error) = args::takes_stdout(cli) {
        terminal.error(&error);
        return ExitCode::from(EXIT_USAGE);
    }
    cli.output.libtest = Some(arguments.clone());
    match of(&parsed, &arguments, &command_line, terminal) {
        Ok(code @ (0 | EXIT_USAGE | EXIT_INTERRUPTED)) => terminal::settled(code),
        Ok(_) => terminal::settled(FAILED),
        Err(error) => {
            terminal.error(&error);
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn of(parsed: &Parsed, arguments: &Arguments, command_line: &[String], terminal: Terminal) -> anyhow::Result<u8> {
    let depth = if arguments.list { Depth::Sample } else { Depth::Every };
    let selection = selection::select(&parsed.cli, depth, terminal.live)?;
    // As with `-l`, a check with a mistake is in no list.
    let sound = || selection.cases.iter().filter(|case| !selection.unsound.contains(&case.check.name));
    let cases = || sound().map(|case| ((*case.name).clone(), case.place.partition.scheduler.as_name()));
    // For libtest, no tests are not a failure. Files with mistakes are: a tool would take the remaining tests for all of them.
    if arguments.list || (selection.cases.is_empty() && !selection.has_errors()) {
        terminal::guarded(|| libtest::list_or_none(arguments, cases()));
        terminal.diagnostics(&selection.diagnostics, &selection.sources);
        return Ok(if selection.has_errors() { EXIT_USAGE } else { 0 });
    }
    run::selected(parsed, selection, command_line, terminal)
}
