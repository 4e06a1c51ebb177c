//! `--restore-session`: the results of an earlier session, among which a new one runs the rest.
//!
//! What a killed session left running is ended first: two runs of one case at the same time would measure each other.

use crate::{
    args::Cli,
    session_loop::relaunch::Known,
    settings::{self, Places},
    terminal::Terminal,
    wiring::{
        self, database,
        owners::{self, Owners},
    },
};
use muster_check::cases::test_case::TestCase;
use muster_core::{
    case::{CaseName, SessionId},
    decisions::rounds::{self, Restored},
    result::{CaseResult, Session},
};
use muster_store::{Reader, SessionState, Store, StoreError};
use std::{collections::BTreeMap, sync::Arc};
use tokio::runtime::Runtime;

/// So many restored results are written at once: the store commits what has queued.
const AT_ONCE: usize = 256;

/// Divides the selected cases into those that run and those whose results are taken over.
pub fn restore(
    cli: &Cli,
    named: &str,
    cases: &mut Vec<TestCase>,
    runtime: &Runtime,
    terminal: Terminal,
) -> anyhow::Result<Vec<CaseResult>> {
    let selected: Vec<&CaseName> = cases.iter().map(|case| &*case.name).collect();
    let mut taken: BTreeMap<CaseName, CaseResult> = BTreeMap::new();
    let mut again = None;
    for named in named.split(',') {
        let Restored { again: runs, results } = runtime.block_on(one(cli, named, &selected, terminal))?;
        for result in results {
            taken.insert(result.name.clone(), result);
        }
        // What any of the sessions can give, need not run.
        again = Some(match again {
            None => runs,
            Some(before) => runs.intersection(&before).cloned().collect(),
        });
    }
    let mut again = again.unwrap_or_default();
    let run = cases.iter().filter(|case| again.contains(&*case.name)).map(|case| (&*case.name, case.needs()));
    again.extend(Known::new(cases, taken.values()).to_relaunch(&run.collect()));
    taken.retain(|name, _| !again.contains(name));
    cases.retain(|case| again.contains(&case.name));
    terminal.note(&format!("{} case(s) are restored, {} run", taken.len(), cases.len()));
    Ok(taken.into_values().collect())
}

async fn one(cli: &Cli, named: &str, selected: &[&CaseName], terminal: Terminal) -> anyhow::Result<Restored> {
    let reader = Reader::open(Places::of(cli).database).await?;
    let row = database::session_named(&reader, named).await?;
    let id = &row.session.id;
    if row.state != SessionState::Ended {
        let left = reader.unfinished(id).await?;
        let kubernetes = owners::clusters_that_answer(cli, &left.iter().map(|row| &row.job).collect::<Vec<_>>());
        let owners = Owners { reader: Some(&reader), kubernetes: kubernetes.as_deref(), terminal };
        owners.leases_if_owner_is_gone(&row).await.ok_or_else(|| owners::still_runs(&row))?;
        end_what_runs(cli, &reader, id, terminal).await?;
    }
    let results = reader.results(id).await?;
    Ok(rounds::restore(selected, &row.session, &results, cli.rounds.failed))
}

/// Ends the jobs of a session whose process is gone, its teardowns included.
async fn end_what_runs(cli: &Cli, reader: &Reader, session: &SessionId, terminal: Terminal) -> anyhow::Result<()> {
    let mut left = reader.unfinished(session).await?;
    left.extend(reader.teardowns(session).await?);
    if left.iter().all(|row| wiring::dies_with_the_harness(row.job.scheduler)) {
        return Ok(());
    }
    let wired = wiring::schedulers(left.iter().map(|row| (row.name.partition.clone(), row.job.scheduler)))?;
    let store = Store::open(reader.path()).await?;
    for (row, why) in wired.end(&left, &store).await {
        let sweep = settings::on_this_database(cli, "sweep");
        terminal.note(&format!("warning: {} of session {session} may still run: {why}; try `{sweep}`", row.name));
    }
    store.close().await?;
    wired.close().await;
    Ok(())
}

/// Stores restored results as this session's: its report is one for the whole, today and when it is shown again.
pub async fn store_restored(store: &Store, session: &Session, restored: &[Arc<CaseResult>]) -> Result<(), StoreError> {
    for some in restored.chunks(AT_ONCE) {
        let mut written = tokio::task::JoinSet::new();
        for result in some {
            let (store, session, result) = (store.clone(), session.id.clone(), Arc::clone(result));
            written.spawn(async move { store.finished(&session, &result).await });
        }
        while let Some(written) = written.join_next().await {
            written.unwrap_or(Ok(()))?;
        }
    }
    Ok(())
}
