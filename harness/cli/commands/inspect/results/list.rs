//! `muster results list`: the stored sessions.

use super::{questions::filters, resolve_states};
use crate::{
    args::{Cli, ListArgs, OutputFormat, TableFormat},
    terminal::Terminal,
    wiring::database::Question,
};
use anyhow::bail;
use muster_answers::{
    Asked,
    sessions::{self, Listed},
};
use muster_core::{
    job::{status::Disruption, workload::Clock},
    query::spec::Selection,
    result::{Failure, Fault, Invalid, Outcome},
};
use muster_host::{clock, owner};
use muster_report::{
    Results,
    results::{self, ListedSession},
};
use muster_session::runtime;
use muster_store::{Found, SessionRow};
use muster_text::{decode::Words as _, diagnostic::did_you_mean};
use std::collections::BTreeSet;

/// So many cases are counted at once, or those of one session: all of them are in memory.
const CASES: u32 = 2_000;

pub fn list(cli: &Cli, args: &ListArgs, terminal: Terminal) -> anyhow::Result<u8> {
    args.outcome.iter().try_for_each(|outcome| is_known(outcome))?;
    let selection = Selection::parse(args.selection.as_deref().unwrap_or_default())?.and(&filters(cli, &args.filters)?);
    list_some(cli, &selection, Listed { limit: args.limit, outcomes: &args.outcome }, args.format, terminal)
}

/// `--list-stored-sessions`: every session of a selection.
pub fn list_selected(cli: &Cli, selection: &Selection, terminal: Terminal) -> anyhow::Result<u8> {
    let format = match cli.output.table_format {
        Some(TableFormat::Csv) => OutputFormat::Csv,
        Some(TableFormat::Pretty | TableFormat::Plain) | None => OutputFormat::Table,
    };
    list_some(cli, selection, Listed { limit: u32::MAX, outcomes: &[] }, format, terminal)
}

/// At most so many, and only those with one of these outcomes.
fn list_some(
    cli: &Cli,
    selection: &Selection,
    Listed { limit, outcomes }: Listed<'_>,
    format: OutputFormat,
    terminal: Terminal,
) -> anyhow::Result<u8> {
    let sessions = runtime::build()?.block_on(async {
        let question = Question::open(cli, terminal).await?;
        let asked = question.asked();
        // One more than asked for: whether the list is cut.
        let rows = selected(cli, &asked, selection, Listed { limit: limit.saturating_add(1), outcomes }, terminal).await?;
        if rows.is_empty() {
            asked.are_known(&selection.filters).await?;
        }
        let mut counted = Vec::with_capacity(rows.len());
        for part in parts(&rows) {
            let ids: Vec<_> = part.iter().map(|row| row.session.id.clone()).collect();
            let results = asked.reader.outcomes_of(&ids).await?;
            let counts = |row: &SessionRow| {
                let cases = results.get(&row.session.id).map_or(&[][..], Vec::as_slice);
                (row.clone(), Results::new(&row.session, cases).counts())
            };
            counted.extend(part.iter().map(counts));
        }
        anyhow::Ok(counted)
    })?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let listed: Vec<ListedSession<'_>> = sessions
        .iter()
        .take(limit)
        .map(|(row, counts)| ListedSession { session: &row.session, state: row.state, counts: counts.clone() })
        .collect();
    let is_cut = sessions.len() > limit;
    match format {
        OutputFormat::Table if listed.is_empty() && !is_cut => {
            terminal.print(results::nothing(outcomes.is_empty() && selection.is_everything()));
        }
        OutputFormat::Table => terminal.print(&results::list(&listed, is_cut, clock::now(), &terminal.screen())),
        OutputFormat::Json => terminal.print(&results::list_as_json(&listed)?),
        OutputFormat::Csv => terminal.print(&results::list_as_csv(&listed)?),
    }
    if is_cut && format != OutputFormat::Table {
        terminal.note(&format!("note: only the newest {limit} session(s): there are more, `-N all` lists them"));
    }
    Ok(0)
}

/// The sessions, in parts whose cases are counted at once.
fn parts(mut rows: &[SessionRow]) -> Vec<&[SessionRow]> {
    let mut parts = Vec::new();
    while !rows.is_empty() {
        let mut cases = 0_u32;
        let fits = |row: &&SessionRow| {
            cases = cases.saturating_add(row.session.num_cases);
            cases <= CASES
        };
        let (part, rest) = rows.split_at(rows.iter().take_while(fits).count().max(1));
        parts.push(part);
        rows = rest;
    }
    parts
}

/// The sessions of a selection with their states, the newest first.
pub(super) fn rows(cli: &Cli, selection: &Selection, listed: Listed<'_>, terminal: Terminal) -> anyhow::Result<Vec<SessionRow>> {
    runtime::build()?.block_on(async {
        let question = Question::open(cli, terminal).await?;
        selected(cli, &question.asked(), selection, listed, terminal).await
    })
}

async fn selected(
    cli: &Cli,
    asked: &Asked<'_>,
    selection: &Selection,
    listed: Listed<'_>,
    terminal: Terminal,
) -> anyhow::Result<Vec<SessionRow>> {
    let Found { sessions, unread } = sessions::list(asked, selection, listed).await?;
    let ids: Vec<_> = sessions.into_iter().map(|one| one.session.id).collect();
    let mut rows = asked.reader.sessions_of(&ids, &owner::is_alive).await?;
    resolve_states(cli, asked.reader, &mut rows, terminal).await?;
    for (session, why) in unread {
        terminal.note(&format!("warning: session {session} cannot be read and is left out: {why}"));
    }
    Ok(rows)
}

/// Checks that an outcome may be called so.
fn is_known(wanted: &str) -> anyhow::Result<()> {
    // Which rules stop cases is not known.
    let of_rule = Outcome::Stopped(String::new());
    let outcomes: Vec<Outcome> = [Outcome::Pass, Outcome::Skip, Outcome::Xfail, Outcome::Xpass, Outcome::Abort]
        .into_iter()
        .chain(Failure::WORDS.iter().map(|(_, word)| Outcome::Fail(*word)))
        .chain(Invalid::WORDS.iter().map(|(_, word)| Outcome::Invalid(*word)))
        .chain(Clock::WORDS.iter().map(|(_, word)| Outcome::Timeout(*word)))
        .chain(Disruption::WORDS.iter().map(|(_, word)| Outcome::Disrupted(*word)))
        .chain(Fault::WORDS.iter().map(|(_, word)| Outcome::Error(*word)))
        .collect();
    let words: BTreeSet<&str> = outcomes.iter().chain([&of_rule]).map(|outcome| outcome.row().word).chain(["failed"]).collect();
    let whole: Vec<String> = outcomes.iter().map(ToString::to_string).collect();
    if words.contains(wanted) || whole.iter().any(|outcome| outcome == wanted) || wanted.starts_with("stopped{") {
        return Ok(());
    }
    let near = did_you_mean(wanted, words.iter().copied().chain(whole.iter().map(String::as_str)));
    let near = near.unwrap_or_else(|| format!("there are {}", words.into_iter().collect::<Vec<_>>().join(", ")));
    bail!("no outcome is called `{wanted}`: {near}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::result::{Session, SessionState};
    use muster_store::Held;

    #[test]
    fn cases_are_counted_some_thousands_at_once_and_no_session_is_left_out() {
        let row = |num_cases| SessionRow {
            session: Session { num_cases, ..Session::default() },
            held: Held { owner: owner::this_owner(), heartbeat: 0 },
            state: SessionState::Ended,
        };
        let rows = [0, 1_999, 1, 1, 50_000, u32::MAX, 7].map(row);
        let sizes = |rows: &[SessionRow]| parts(rows).iter().map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&rows), [3, 1, 1, 1, 1]);
        assert!(sizes(&[]).is_empty());
    }

    #[test]
    fn an_outcome_that_there_is_not_is_refused_with_the_nearest() {
        for known in ["fail", "failed", "fail{sanity}", "timeout{pending}", "stopped", "stopped{too long}", "xpass"] {
            assert!(is_known(known).is_ok(), "{known}");
        }
        let why = ["fial", "fail{sanitiy}", "nothing"].map(|wanted| is_known(wanted).unwrap_err().to_string());
        insta::assert_snapshot!(why.join("\n"), @"
        no outcome is called `fial`: did you mean `fail`?
        no outcome is called `fail{sanitiy}`: did you mean `fail{sanity}`?
        no outcome is called `nothing`: there are abort, disrupted, error, fail, failed, invalid, pass, skip, stopped, timeout, xfail, xpass
        ");
    }
}
