//! `muster ec2`: what the selected checks need of an account of AWS.

use crate::{
    args::Cli,
    inputs::selection::{self, Depth},
    terminal::Terminal,
    wiring::plans,
};
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments};
use muster_core::{decisions::pipeline::EXIT_USAGE, job::workload::Workload};
use muster_ec2::Plan;

/// Prints the least rights with which the selected cases run.
pub fn policy(cli: &Cli, account: &str, terminal: Terminal) -> anyhow::Result<u8> {
    print(cli, terminal, |plans| format!("{:#}\n", muster_ec2::policy(plans, account)))
}

/// Prints the commands that prepare the account.
pub fn setup(cli: &Cli, terminal: Terminal) -> anyhow::Result<u8> {
    print(cli, terminal, muster_ec2::setup)
}

fn print(cli: &Cli, terminal: Terminal, text: impl FnOnce(&[Plan]) -> String) -> anyhow::Result<u8> {
    let selection = selection::select(cli, Depth::Every, terminal.live)?;
    terminal.diagnostics(&selection.diagnostics, &selection.sources);
    if selection.has_errors() {
        return Ok(EXIT_USAGE);
    }
    let is_ours = |case: &&TestCase| muster_ec2::is_ec2(case.place.partition.scheduler.descriptor());
    let cases: Vec<TestCase> = selection.cases.iter().filter(is_ours).cloned().collect();
    let plan = |_: &TestCase, workload: &Workload| muster_ec2::plan(workload);
    let (planned, mistakes) = plans::plans(&cases, &Adjustments::default(), plan);
    terminal.diagnostics(&mistakes, &selection.sources);
    if !mistakes.is_empty() {
        return Ok(EXIT_USAGE);
    }
    if planned.is_empty() && !selection.cases.is_empty() {
        anyhow::bail!("none of the {} selected case(s) runs on EC2: choose a system with --system", selection.cases.len());
    }
    terminal.print(&text(&planned));
    Ok(selection.report_if_empty(terminal))
}
