//! Applies the command line to the selected cases: their share, copies, order and changes.

use crate::{args::Cli, commands::session::distribute, inputs::rehearse, terminal::Terminal};
use muster_check::{
    cases::test_case::TestCase,
    selection::{adjust::Adjustments, order::Order},
};
use muster_core::{
    case::{CaseName, SessionId},
    job::descriptor::NamedScheduler,
};
use std::collections::HashMap;
use tokio::runtime::Runtime;

/// Returns the changes of the command line to every case.
pub fn adjustments(cli: &Cli) -> anyhow::Result<Adjustments> {
    Ok(Adjustments {
        skip_sanity: cli.rounds.skip_sanity_check,
        skip_performance: cli.rounds.skip_performance_check,
        sched_options: cli.rounds.job_option.clone(),
        rehearsal: cli.rounds.rehearse.as_deref().map(|path| rehearse::rehearsal(path, &cli.files.schedulers)).transpose()?,
    })
}

/// The partitions of cases, each with its scheduler; in a rehearsal all have the same.
pub fn partitions(cases: &[TestCase], adjustments: &Adjustments) -> Vec<(String, NamedScheduler)> {
    let of = |case: &TestCase| (case.place.partition.name.clone(), adjustments.scheduler(&case.place.partition));
    cases.iter().map(of).collect()
}

/// This invocation's share of the cases, with their copies, in order.
pub fn arrange(
    cli: &Cli,
    mut cases: Vec<TestCase>,
    adjustments: &Adjustments,
    session: &SessionId,
    runtime: &Runtime,
    terminal: Terminal,
) -> anyhow::Result<Vec<TestCase>> {
    if let Some(shard) = cli.rounds.shard {
        let names: Vec<_> = cases.iter().map(|case| &*case.name).collect();
        let mut takes = shard.takes(&names, &together(&cases)).into_iter();
        cases.retain(|_| takes.next().unwrap_or(false));
    }
    if let Some(wanted) = &cli.rounds.distribute {
        cases = distribute::distributed(&cases, wanted, &cli.files.schedulers, adjustments, runtime, terminal)?;
    }
    if let Some(copies) = cli.rounds.repeat {
        cases = distribute::repeated(&cases, copies);
    }
    if let Some(order) = cli.rounds.exec_order {
        Order::from(order).sort(&mut cases, &session.0);
    }
    Ok(cases)
}

/// Pairs of positions, of a case and of one that it needs: a share holds both or neither.
fn together(cases: &[TestCase]) -> Vec<(usize, usize)> {
    let places: HashMap<&CaseName, usize> = cases.iter().enumerate().map(|(at, case)| (&*case.name, at)).collect();
    let of = |(at, case): (usize, &TestCase)| {
        let needs = case.needs().iter().filter_map(|need| places.get(&*need.case));
        needs.map(|need| (at, *need)).collect::<Vec<_>>()
    };
    cases.iter().enumerate().flat_map(of).collect()
}
