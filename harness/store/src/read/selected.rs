//! The sessions that a question is about.

use crate::{
    Reader, StoreError,
    read::{decode, nights::CLOCKS_DIFFER},
    sql::{Row, query},
};
use muster_core::{
    case::{CaseName, SessionId},
    night::Night,
    query::spec::{Filters, Range},
    result::{About, Outcome, Session},
};
use muster_text::time::Timestamp;
use sqlx::AssertSqlSafe;
use std::{fmt::Write, sync::Arc};

/// A session, as far as questions need it.
#[derive(Debug, Clone, PartialEq)]
pub struct Selected {
    pub(crate) number: i64,
    pub session: Session,
    /// `None`: an older muster has stored it, and no rebuild has placed it yet.
    pub night: Option<Night>,
}

/// A case of a session with its last outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedCase {
    /// The place of its session in the list that was asked about.
    pub session: usize,
    pub name: CaseName,
    pub tags: Vec<String>,
    /// `None`: it has no result.
    pub outcome: Option<Outcome>,
}

fn selected(row: &Row) -> Result<Selected, sqlx::Error> {
    let (session, _) = decode::session(row)?;
    Ok(Selected { number: row.try_get("number")?, session, night: row.try_get("night")? })
}

/// The sessions of a range.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    pub sessions: Vec<Selected>,
    /// The sessions that are left out because their rows make no sense, each with the reason.
    pub unread: Vec<(SessionId, String)>,
}

impl Reader {
    /// Finds the sessions of a range, the newest first; `now` decides which night is the last. Ids that begin with one of its texts count, each once.
    ///
    /// # Errors
    /// [`StoreError::NoSession`] or [`StoreError::ManySessions`] for a text that begins none, or several.
    pub async fn select(&self, range: &Range, now: Timestamp, limit: u32) -> Result<Found, StoreError> {
        let mut found: Vec<Selected> = Vec::new();
        for id in &range.ids {
            let one = self.by_id(id).await?;
            if range.holds(one.session.started, one.night) && found.iter().all(|known| known.number != one.number) {
                found.push(one);
            }
        }
        if !range.ids.is_empty() {
            found.sort_by_key(|one| std::cmp::Reverse((one.session.started, one.number)));
            return Ok(Found { sessions: found, unread: Vec::new() });
        }
        let nights = match (range.is_last_night, range.nights) {
            (true, _) => match self.last_night(now).await? {
                Some(night) => Some((night, night)),
                None => return Ok(Found::default()),
            },
            (false, nights) => nights,
        };
        let text = sessions_text(nights, range.started, limit);
        self.readable(&text).await
    }

    async fn readable(&self, text: &str) -> Result<Found, StoreError> {
        let text: Arc<str> = text.into();
        let row = |row: &Row| match selected(row) {
            Ok(selected) => Ok(Ok(selected)),
            Err(error @ sqlx::Error::ColumnDecode { .. }) => Ok(Err((row.try_get::<String>("id")?, error.to_string()))),
            Err(error) => Err(error),
        };
        let mut found = Found::default();
        for one in self.all("sessions", || query(AssertSqlSafe(Arc::clone(&text))), row).await? {
            match one {
                Ok(one) => found.sessions.push(one),
                Err((id, why)) => found.unread.push((SessionId(id), why)),
            }
        }
        found.unread.sort();
        Ok(found)
    }

    /// The last night in which a session has started. One that is dated in the future does not decide it.
    async fn last_night(&self, now: Timestamp) -> Result<Option<Night>, StoreError> {
        let statement = || query(LAST_NIGHT).bind(now.0.saturating_add(CLOCKS_DIFFER));
        Ok(self.all("the last night", statement, |row| row.try_get(0)).await?.pop())
    }

    /// Returns the times when the first and the last session started; `None`: there is none.
    pub async fn extent(&self) -> Result<Option<(Timestamp, Timestamp)>, StoreError> {
        let end = |order: &str| format!("SELECT started FROM session ORDER BY started {order} LIMIT 1");
        let mut ends = Vec::new();
        for text in [end("ASC"), end("DESC")] {
            let statement = || query(AssertSqlSafe(text.clone()));
            ends.extend(self.all("sessions", statement, |row| row.try_get("started").map(Timestamp)).await?);
        }
        Ok(ends.first().copied().zip(ends.last().copied()))
    }

    async fn by_id(&self, id: &str) -> Result<Selected, StoreError> {
        if id == "latest" {
            let newest = self.selected("SELECT * FROM session ORDER BY started DESC, number DESC LIMIT 1", None).await?.pop();
            return newest.ok_or_else(|| StoreError::NoSession { prefix: id.to_owned() });
        }
        if let Some(one) = self.selected("SELECT * FROM session WHERE id = $1", Some(id)).await?.pop() {
            return Ok(one);
        }
        let text = "SELECT * FROM session WHERE substr(id, 1, length($1)) = $1 ORDER BY started DESC LIMIT 6";
        let mut found = self.selected(text, Some(id)).await?;
        match found.pop() {
            None => Err(StoreError::NoSession { prefix: id.to_owned() }),
            Some(one) if found.is_empty() => Ok(one),
            Some(one) => {
                let matches = found.into_iter().chain([one]).map(|one| one.session.id).collect();
                Err(StoreError::ManySessions { prefix: id.to_owned(), matches })
            }
        }
    }

    async fn selected(&self, text: &str, bound: Option<&str>) -> Result<Vec<Selected>, StoreError> {
        let text: Arc<str> = text.into();
        let statement = || {
            let statement = query(AssertSqlSafe(Arc::clone(&text)));
            match bound {
                Some(bound) => statement.bind(bound.to_owned()),
                None => statement,
            }
        };
        self.all("sessions", statement, selected).await
    }

    /// Every case that is stored, with its tags; once for each description that it has had.
    pub async fn known_cases(&self) -> Result<Vec<(CaseName, Vec<String>)>, StoreError> {
        let text =
            r#"SELECT DISTINCT display, check_name, '' AS hash, system, partition, environ, '' AS hidden, about FROM "case""#;
        let names = self.names().await?;
        let row = |row: &Row| Ok((names.in_history(&decode::name(row)?), decode::json::<About>(row, "about")?.tags));
        self.all("cases", || query(text), row).await
    }

    /// The cases of sessions that filters admit, each with its last outcome.
    pub async fn cases(&self, sessions: &[Selected], filters: &Filters) -> Result<Vec<SelectedCase>, StoreError> {
        let names = self.names().await?;
        let mut cases = Vec::new();
        for (chunk, part) in sessions.chunks(IN_LIST).enumerate() {
            let text: Arc<str> = outcomes_text(part).into();
            let statement = || query(AssertSqlSafe(Arc::clone(&text)));
            let row = |row: &Row| {
                let name = decode::name(row)?;
                let about: About = decode::json(row, "about")?;
                let number: i64 = row.try_get("session")?;
                let session = part.iter().position(|session| session.number == number).unwrap_or_default() + chunk * IN_LIST;
                let has_ended = row.try_get::<Option<&str>>("outcome")?.is_some();
                let outcome = if has_ended { Some(decode::variant(row, "outcome", "reason")?) } else { None };
                Ok(SelectedCase { session, name, tags: about.tags, outcome })
            };
            let found = self.all("cases", statement, row).await?;
            cases.extend(found.into_iter().filter(|case: &SelectedCase| names.are_admitted(filters, &case.name, &case.tags)));
        }
        Ok(cases)
    }
}

/// By the index of nights, from its end.
pub(super) const LAST_NIGHT: &str =
    "SELECT night FROM session WHERE night IS NOT NULL AND started <= $1 ORDER BY night DESC LIMIT 1";

/// The sessions of nights, or else of a period, the newest first.
pub(super) fn sessions_text(nights: Option<(Night, Night)>, started: Option<(Timestamp, Timestamp)>, limit: u32) -> String {
    let condition = match (nights, started) {
        (Some((first, last)), _) => format!("WHERE night BETWEEN {} AND {}", first.days(), last.days()),
        (None, Some((from, until))) => format!("WHERE started >= {} AND started < {}", from.0, until.0),
        (None, None) => String::new(),
    };
    format!("SELECT * FROM session {condition} ORDER BY started DESC, number DESC LIMIT {limit}")
}

/// The cases of sessions, each with its last outcome.
pub(super) fn outcomes_text(sessions: &[Selected]) -> String {
    format!(
        r#"SELECT c.session, c.display, c.check_name, c.hash, c.system, c.partition, c.environ, c.hidden, c.about,
        a.outcome, a.reason FROM "case" c LEFT JOIN attempt a ON a."case" = c.id
        AND a.number = (SELECT max(number) FROM attempt WHERE "case" = c.id)
        WHERE c.session IN ({}) ORDER BY c.session, c.id"#,
        list(sessions.iter().map(|session| session.number))
    )
}

/// So many numbers are in one list of a statement.
pub(super) const IN_LIST: usize = 500;

/// Numbers as a list of SQL.
pub(super) fn list(numbers: impl Iterator<Item = i64>) -> String {
    let mut text = String::new();
    for number in numbers {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{number}");
    }
    text
}

/// The id of a session.
impl AsRef<SessionId> for Selected {
    fn as_ref(&self) -> &SessionId {
        &self.session.id
    }
}
