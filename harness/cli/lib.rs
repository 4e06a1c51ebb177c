//! The command line: arguments, files, wiring and commands. It imports all other crates.
//!
//! Results go to stdout, progress and errors to stderr; no other crate prints.

#![allow(unreachable_pub, reason = "the crate exports two functions: `pub` in its modules means the crate")]

mod args;
mod commands;
mod exit;
mod inputs;
mod reports;
mod session;
mod settings;
mod terminal;
mod wiring;

use args::{CheckCommand, Cli, Command, ConfigCommand, Ec2Command, K8sCommand, Parsed};
use inputs::modes;
use muster_core::{
    decisions::pipeline::EXIT_USAGE,
    error::chain,
    job::descriptor::{Descriptor, Schedulers},
};
use muster_session::case::judging;
use std::{ffi::OsString, panic, process::ExitCode, thread};
use terminal::{
    Terminal,
    unwritten::{EXIT_UNWRITTEN, Unwritten},
};

/// The schedulers of `muster`, in the order of its documentation.
pub const SCHEDULERS: &[&Descriptor] = &[
    &muster_k8s::SCHEDULER,
    &muster_ec2::SCHEDULER,
    &muster_slurm::SCHEDULER,
    &muster_local::SCHEDULER,
    &muster_fake::SCHEDULER,
];

/// Runs a command line. `schedulers` are those that partitions may name: [`SCHEDULERS`], or more.
pub fn run(argv: &[OsString], schedulers: &'static [&'static Descriptor]) -> ExitCode {
    // Before anything else: a session waits for its judge.
    if let [_, word] = argv
        && word == wiring::JUDGE
    {
        return judging::serve();
    }
    // The kernel gives a signal to the main thread first. That one only waits: a file system that does not answer holds another.
    let run = || terminal::settled(parsed_and_run(argv, &Schedulers::new(schedulers)));
    thread::scope(|scope| match thread::Builder::new().name("muster".into()).stack_size(STACK).spawn_scoped(scope, run) {
        Ok(running) => running.join().unwrap_or_else(|panic| panic::resume_unwind(panic)),
        Err(error) => {
            eprintln!("error: no thread can be started: {error}");
            EXIT_USAGE.into()
        }
    })
}

/// That of a main thread.
const STACK: usize = 8 << 20;

fn parsed_and_run(argv: &[OsString], schedulers: &Schedulers) -> u8 {
    let command_line: Vec<String> = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let parsed = match modes::parse(argv, schedulers, &|name| std::env::var(name).ok()) {
        Ok(parsed) => parsed,
        Err(error) => return not_parsed(&error),
    };
    let aside = args::takes_stdout(&parsed.cli);
    let terminal = Terminal::new(&parsed.cli.output, matches!(aside, Ok(true)));
    if let Err(error) = aside {
        terminal.error(&error);
        return EXIT_USAGE;
    }
    terminal.log_to_stderr();
    if let Some(name) = args::variable_that_is_no_text(std::env::vars_os()) {
        terminal.error(&anyhow::anyhow!("the variable {name} is not UTF-8 text"));
        return EXIT_USAGE;
    }
    if let Some(mistakes) = &parsed.unused_files {
        terminal.note(&format!("warning: the files of settings are ignored, for this command needs none:\n{mistakes}"));
    }
    for unknown in args::unknown_variables(std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned())) {
        terminal.note(&format!("warning: {unknown}"));
    }
    for doubtful in args::doubtful_settings(&|name| std::env::var(name).ok()) {
        terminal.note(&format!("warning: {doubtful}"));
    }
    dispatch(&parsed, &command_line, terminal).unwrap_or_else(|error| {
        terminal.error(&error);
        if error.is::<Unwritten>() { EXIT_UNWRITTEN } else { EXIT_USAGE }
    })
}

/// Runs checks as the tests of a test binary: libtest's arguments select among the cases of `MUSTER_*`.
/// `program` is muster itself, which jobs find as `$MUSTER`.
pub fn tests(default_checks: &str, program: &str) -> ExitCode {
    commands::session::libtest::tests(default_checks, program)
}

/// Prints help, or why the command line was not understood. Returns the exit code.
fn not_parsed(error: &anyhow::Error) -> u8 {
    let Some(usage) = error.downcast_ref::<clap::Error>() else {
        let text = chain(error.as_ref());
        eprintln!("{}", if text.starts_with("error") || text.contains("\nerror") { text } else { format!("error: {text}") });
        return EXIT_USAGE;
    };
    // Clap prints help to stdout and mistakes to stderr, in the terminal's colours.
    let printed = usage.print();
    if usage.use_stderr() {
        return EXIT_USAGE;
    }
    terminal::take(printed);
    0
}

fn dispatch(parsed: &Parsed, command_line: &[String], terminal: Terminal) -> anyhow::Result<u8> {
    let cli: &Cli = &parsed.cli;
    settings::use_file_mode(cli, None);
    match &cli.command {
        Some(Command::Init(args)) => commands::init::init(args, &cli.files.schedulers, terminal),
        Some(Command::Doctor(args)) => commands::doctor::doctor(cli, *args, terminal),
        Some(Command::Config { what: ConfigCommand::Show }) => commands::inspect::config::show(parsed, terminal),
        Some(Command::Results { what }) => commands::inspect::results::run(cli, what, terminal),
        Some(Command::Night(args)) => commands::night::night(cli, args, terminal),
        Some(Command::Top(args)) => commands::inspect::top::top(cli, args, terminal),
        Some(Command::Attach { session }) => commands::session::attach::attach(cli, session, terminal),
        Some(Command::Sweep(args)) => commands::sweep::sweep(cli, args, terminal),
        Some(Command::K8s { what: K8sCommand::Role(args) }) => commands::k8s::role(cli, args, terminal),
        Some(Command::Ec2 { what: Ec2Command::Policy { account } }) => commands::ec2::policy(cli, account, terminal),
        Some(Command::Ec2 { what: Ec2Command::Setup { print: _ } }) => commands::ec2::setup(cli, terminal),
        Some(Command::Check { what: CheckCommand::New(args) }) => commands::check::new(args, &cli.files.schedulers, terminal),
        Some(Command::Check { what: CheckCommand::Fmt(args) }) => commands::check::fmt(cli, args, terminal),
        Some(Command::Check { what: CheckCommand::Lint(args) }) => commands::check::lint(cli, args, terminal),
        Some(Command::Completions { shell, list, .. }) => {
            commands::manual::completions::completions(cli, *shell, *list, terminal)
        }
        Some(Command::Man) => commands::manual::man::man(cli, terminal),
        Some(Command::Convert(args)) => commands::convert::convert(args, &cli.files.schedulers, terminal),
        Some(Command::Kernel { kernel }) => Ok(commands::kernel::kernel(kernel, terminal)),
        None if cli.action.run => commands::session::run::run(parsed, command_line, terminal),
        None if let (Some(how), None) = (cli.action.dry_run, &cli.action.stored.delete_stored_sessions) => {
            commands::inspect::dry_run::dry_run(cli, how, terminal)
        }
        None if let Some(file) = &cli.action.ci_generate => commands::pipeline::generate(cli, file, terminal),
        None if let Some(answer) = commands::inspect::results::reframe(cli, terminal) => answer,
        None if cli.action.any_listing() => commands::inspect::list::list(cli, terminal),
        None => anyhow::bail!("nothing to do: say -r to run, -l to list, or `muster --help`"),
    }
}
