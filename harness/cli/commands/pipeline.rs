//! `--ci-generate`: the selection as a pipeline for GitLab.

use crate::{
    args::{Cli, is_dash},
    inputs::selection::{self, Depth, Selection},
    reports::files::rerun_options,
    terminal::{self, Terminal, unwritten::Written},
};
use muster_core::decisions::pipeline::EXIT_USAGE;
use muster_host::replace::replace_shared;
use muster_report::{
    gitlab::{self, Planned},
    secret::{masked_setting, secret_of},
};
use std::path::Path;

/// Writes the pipeline. Mistakes in the files end with 2, and nothing is written.
pub fn generate(cli: &Cli, file: &Path, terminal: Terminal) -> anyhow::Result<u8> {
    let selection = selection::select(cli, Depth::Every, terminal.live)?;
    terminal.diagnostics(&selection.diagnostics, &selection.sources);
    if selection.has_errors() {
        terminal.note("no pipeline was written");
        return Ok(EXIT_USAGE);
    }
    if selection.cases.is_empty() {
        return Ok(selection.report_if_empty(terminal));
    }
    let set = cli.files.setvar.iter().map(|set| ("-S", "MUSTER_SETVAR", set.clone()));
    let options = cli.rounds.job_option.iter().map(|option| ("-J", "MUSTER_JOB_OPTION", option.to_string()));
    if let Some((flag, variable, setting)) = set.chain(options).find(|(.., setting)| secret_of(setting).is_some()) {
        anyhow::bail!(
            "{flag} {} has a secret, which would be in the pipeline: set it as a variable of the CI system instead ({variable})",
            masked_setting(&setting)
        );
    }
    let text = match cli.action.ci_shards {
        Some(count) => gitlab::of_shards(count, &selecting_options(cli))?,
        None => gitlab::of_cases(&planned(&selection), &rerun_options(cli))?,
    };
    if is_dash(file) {
        terminal::print_file(&text);
        return Ok(0);
    }
    replace_shared(file, ".part", text).or_unwritten("the pipeline", file)?;
    terminal.print(&format!("Pipeline: {}\n", file.display()));
    Ok(0)
}

/// The options that make the same selection again.
fn selecting_options(cli: &Cli) -> Vec<String> {
    let mut options = rerun_options(cli);
    let mut all = |flag: &str, values: &[String]| {
        options.extend(values.iter().flat_map(|value| [flag.to_owned(), value.clone()]));
    };
    let paths: Vec<_> = cli.files.checkpath.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    all("-c", &paths);
    all("--system", cli.files.system.as_slice());
    let filter = &cli.filter;
    all("-n", &filter.name);
    all("-x", &filter.exclude);
    all("-t", &filter.tag);
    all("-T", &filter.exclude_tag);
    all("-E", &filter.filter_expr);
    all("-p", &filter.prgenv);
    options
}

/// The cases that are jobs, and which of them each job follows. A fixture is none: a job brings its own along.
fn planned(selection: &Selection) -> Vec<Planned<'_>> {
    let is_job = |at: &usize| !selection.cases[*at].is_fixture();
    let jobs: Vec<usize> = (0..selection.cases.len()).filter(is_job).collect();
    let place = |at: usize| jobs.binary_search(&at).ok();
    let planned = |&at: &usize| {
        let case = &selection.cases[at];
        let needs = selection.needs[at].iter().filter_map(|edge| place(edge.at)).collect();
        Planned { name: &case.name, files: case.files().collect(), needs }
    };
    jobs.iter().map(planned).collect()
}
