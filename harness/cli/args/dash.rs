//! `-` in the place of a file: standard output for one that is written, standard input for one that is read.

use crate::args::Cli;
use anyhow::bail;
use std::path::Path;

/// Whether a path stands for a standard stream.
pub fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The flags whose file is standard output. What is usually printed there goes to standard error then.
fn on_stdout(cli: &Cli) -> Vec<&'static str> {
    let reports = cli.reports.files().map(|(_, flag, file)| (flag, file));
    let others = [("--report-file", &cli.output.report_file), ("--ci-generate", &cli.action.ci_generate)];
    let files = others.into_iter().chain(reports);
    files.filter(|(_, file)| file.as_deref().is_some_and(is_dash)).map(|(flag, _)| flag).collect()
}

fn on_stdin(cli: &Cli) -> Vec<&'static str> {
    let quarantines = cli.rounds.quarantine.iter().map(|path| ("--quarantine", path));
    let files = quarantines.chain(cli.rounds.rehearse.iter().map(|path| ("--rehearse", path)));
    files.filter(|(_, path)| is_dash(path)).map(|(flag, _)| flag).collect()
}

/// Whether a report takes standard output.
///
/// # Errors
/// Two flags want the same stream.
pub fn takes_stdout(cli: &Cli) -> anyhow::Result<bool> {
    let (mut writers, readers) = (on_stdout(cli), on_stdin(cli));
    let is_wanted = !writers.is_empty();
    if is_wanted && cli.output.format.is_some() {
        writers.push("--format");
    }
    if let [one, other, ..] = writers[..] {
        bail!("{one} and {other} both write to standard output: give one of them a file");
    }
    if let [one, other, ..] = readers[..] {
        bail!("{one} and {other} both read standard input: give one of them a file");
    }
    Ok(is_wanted)
}
