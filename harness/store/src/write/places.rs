//! Writes where an attempt ran and what it said last: rows of `section`, `member` and `attempt_log`.

use crate::{
    sql::{Connection, Dialect, Statement},
    write::{
        history::{self, Known},
        message::AttemptEntry,
        statements::ForRows,
    },
};
use muster_core::{
    job::scheduler::{Exit, SectionExit},
    result::{CaseResult, LogEnd, Times},
};
use muster_text::time::Timestamp;
use sqlx::Error;

/// The statements for them.
pub(crate) struct Places {
    section: ForRows,
    member: ForRows,
    log: ForRows,
}

/// A row of `section`.
struct Section<'m> {
    attempt: i64,
    position: i64,
    exit: &'m SectionExit,
    node: Option<i64>,
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
}

impl Places {
    pub(crate) fn new(dialect: Dialect) -> Self {
        let section = ["attempt", "position", "name", "uid", "node", "image", "exit_code", "signal", "started", "ended"];
        Self {
            section: ForRows::insert(dialect, "section", &section, ""),
            member: ForRows::insert(dialect, "member", &["attempt", "rank", "node"], ""),
            log: ForRows::insert(dialect, "attempt_log", &["attempt", "bytes", "tail"], ""),
        }
    }

    /// Writes the places of attempts.
    pub(crate) async fn write(
        &self,
        connection: &mut Connection,
        known: &mut Known,
        attempts: &[(i64, &AttemptEntry)],
    ) -> Result<(), Error> {
        let (mut sections, mut members, mut logs) = (Vec::new(), Vec::new(), Vec::new());
        for (attempt, entry) in attempts {
            let result = &entry.result;
            let nodes = nodes(connection, known, result).await?;
            members.extend((0..).zip(&nodes).map(|(rank, (_, node))| (*attempt, rank, *node)));
            let sections_here = (0..).zip(&result.exits).map(|(position, exit)| {
                let node = exit.node.as_deref().and_then(|name| nodes.iter().find(|(known, _)| *known == name));
                let (started, ended) = times(exit, &result.times, result.exits.len() == 1);
                Section { attempt: *attempt, position, exit, node: node.map(|(_, node)| *node), started, ended }
            });
            sections.extend(sections_here);
            logs.extend(entry.log.as_deref().map(|log| (*attempt, log)));
        }
        self.section.execute(connection, &sections, bind_section).await?;
        let member =
            |statement: Statement, (attempt, rank, node): &(i64, i64, i64)| statement.bind(attempt).bind(rank).bind(node);
        self.member.execute(connection, &members, member).await?;
        self.log.execute(connection, &logs, bind_log).await.map(drop)
    }
}

/// The nodes of an attempt, each once, in the order of its tasks.
async fn nodes<'m>(connection: &mut Connection, known: &mut Known, result: &'m CaseResult) -> Result<Vec<(&'m str, i64)>, Error> {
    let mut names: Vec<&str> = Vec::new();
    let of_sections = result.exits.iter().filter_map(|exit| exit.node.as_deref());
    for name in result.nodes.iter().map(String::as_str).chain(of_sections) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    history::nodes(connection, known, &result.name.system, names.into_iter(), result.times.finished).await
}

/// When a section ran. The times of the job are those of its only section.
fn times(exit: &SectionExit, job: &Times, is_only: bool) -> (Option<Timestamp>, Option<Timestamp>) {
    let of_job = |at: Option<Timestamp>| at.filter(|_| is_only);
    (exit.started.or_else(|| of_job(job.started)), exit.ended.or_else(|| of_job(job.ended)))
}

fn bind_section(statement: Statement, Section { attempt, position, exit, node, started, ended }: &Section<'_>) -> Statement {
    // `UID/CONTAINER` where a pod has several containers.
    let uid = exit.section_id.as_deref().and_then(|id| id.split('/').next()).map(str::to_owned);
    let (code, signal) = match exit.exit {
        Exit::Code(code) => (Some(i64::from(code)), None),
        Exit::Signal(signal) => (None, Some(i64::from(signal))),
        // A status of 0 would be read again as a success.
        Exit::NoSuccess | Exit::Unknown => (None, None),
    };
    let statement = statement.bind(attempt).bind(position).bind(exit.section.clone()).bind(uid).bind(*node);
    let statement = statement.bind(exit.image.clone()).bind(code).bind(signal);
    statement.bind(started.map(|at| at.0)).bind(ended.map(|at| at.0))
}

fn bind_log(statement: Statement, (attempt, log): &(i64, &LogEnd)) -> Statement {
    statement.bind(attempt).bind(i64::try_from(log.bytes).unwrap_or(i64::MAX)).bind(log.tail.clone())
}
