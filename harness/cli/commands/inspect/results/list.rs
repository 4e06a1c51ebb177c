//! `muster results list`: the stored sessions.

use super::resolve_states;
use crate::{args::Cli, settings::Places, terminal::Terminal};
use muster_host::{clock, owner};
use muster_report::{
    Results,
    results::{self, ListedSession},
};
use muster_session::runtime;
use muster_store::Reader;

pub fn list(cli: &Cli, limit: u32, terminal: Terminal) -> anyhow::Result<u8> {
    let sessions = runtime::build()?.block_on(async {
        let reader = Reader::open(Places::of(cli).database).await?;
        let mut sessions = Vec::new();
        let mut rows = reader.sessions(limit, &owner::is_alive).await?;
        resolve_states(cli, &reader, &mut rows, terminal).await?;
        for row in rows {
            let results = reader.results(&row.session.id).await?;
            sessions.push((row, results));
        }
        anyhow::Ok(sessions)
    })?;
    let listed: Vec<ListedSession<'_>> = sessions
        .iter()
        .map(|(row, cases)| ListedSession {
            session: &row.session,
            state: row.state,
            counts: Results::new(&row.session, cases).counts(),
        })
        .collect();
    terminal.print(&results::list(&listed, clock::now(), &terminal.screen()));
    Ok(0)
}
