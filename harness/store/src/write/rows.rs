//! The rows of one transaction, sorted by kind so that rows of a kind go in one statement. The order of kinds is the order of a job's
//! life, so no sender's order is lost.
//!
//! Longer than other files: what one transaction writes, of each kind, is beside the order in which it does.

use crate::{
    Owner,
    error::SqlError,
    read::decode,
    sql::{self, Connection, Dialect, Statement, dialect::NUMBERS, query},
    write::{
        live::{CaseKey, LiveRow, NewState},
        message::{AttemptEntry, CaseEntry, Hidden, IntentEntry, JobKey, Message, Text},
        session,
        statements::{Row, Statements},
    },
};
use muster_core::{
    night::Night,
    result::{Counting, Session},
    rules::perf::Measurement,
};
use muster_text::time::Timestamp;
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

/// The sessions that this writer has started or taken over, until they end.
pub(crate) type Sessions = HashMap<Text, SessionCases>;

#[derive(Default)]
pub(crate) struct SessionCases {
    pub(crate) number: i64,
    pub(crate) cases: HashMap<Text, KnownCase>,
    pub(crate) system: String,
    /// `None`: it is in no night.
    pub(crate) night: Option<Night>,
    pub(crate) counting: Counting,
}

impl SessionCases {
    /// The cases that a session has already.
    pub(crate) async fn of(connection: &mut Connection, number: i64) -> Result<Self, sqlx::Error> {
        let rows = query(r#"SELECT * FROM "case" WHERE session = $1"#).bind(number).fetch_all(connection).await?;
        let case = |row| {
            let known = KnownCase { id: sql::Row::try_get(row, "id")?, about: digest(sql::Row::try_get(row, "about")?) };
            Ok((Text::from(decode::name(row)?.to_string()), known))
        };
        let cases = rows.iter().map(case).collect::<Result<_, sqlx::Error>>()?;
        let row = query("SELECT * FROM session WHERE number = $1").bind(number).fetch_one(connection).await?;
        let (Session { system, night, counting, .. }, _) = decode::session(&row)?;
        Ok(Self { number, cases, system, night, counting })
    }
}

/// A case that has a row.
#[derive(Clone, Copy)]
pub(crate) struct KnownCase {
    pub(crate) id: i64,
    /// A digest of the description in that row.
    pub(crate) about: u64,
}

fn digest(about: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    about.hash(&mut hasher);
    hasher.finish()
}

/// The highest numbers given out. No other process gives out any of those that follow: in SQLite because this transaction holds the
/// write lock, in PostgreSQL because they are from a range that this writer has taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids {
    case: i64,
    attempt: i64,
    /// How many more this writer may give out, of each; `None`: as many as it likes.
    left: Option<i64>,
    /// Of the changes of each session.
    changes: HashMap<i64, i64>,
}

impl Ids {
    /// The numbers of the next transaction, after one that has left `self`.
    pub(crate) async fn next(
        &self,
        connection: &mut Connection,
        messages: &[&Message],
        states: &[(CaseKey, NewState)],
        sessions: &Sessions,
    ) -> Result<Self, sqlx::Error> {
        if states.is_empty() && messages.iter().all(|message| message.session().is_none()) {
            return Ok(self.clone());
        }
        let most = i64::try_from(messages.len() + states.len()).unwrap_or(i64::MAX);
        let mut next = match connection.dialect() {
            Dialect::Sqlite => Self::highest(connection).await?,
            Dialect::Postgres if self.left.is_some_and(|left| left >= most) => self.clone(),
            Dialect::Postgres => Self::range(connection).await?,
        };
        next.left = next.left.map(|left| left - most);
        let changes = &mut next.changes;
        changes.clear();
        let of_states = states.iter().map(|(key, _)| &key.session);
        let concerned: HashSet<&Text> = messages.iter().filter_map(|message| message.of_session()).chain(of_states).collect();
        for SessionCases { number, .. } in concerned.into_iter().filter_map(|session| sessions.get(session)) {
            let last = query("SELECT coalesce(max(change), 0) FROM live WHERE session = $1").bind(number);
            changes.insert(*number, last.fetch_scalar(connection).await?);
        }
        Ok(next)
    }

    async fn highest(connection: &mut Connection) -> Result<Self, sqlx::Error> {
        let last = r#"SELECT coalesce((SELECT max(id) FROM "case"), 0), coalesce((SELECT max(id) FROM attempt), 0)"#;
        let row = query(last).fetch_one(connection).await?;
        Ok(Self { case: row.try_get(0)?, attempt: row.try_get(1)?, ..Self::default() })
    }

    /// A range that no other writer has. Of each table the same: a number names a row of one table only.
    async fn range(connection: &mut Connection) -> Result<Self, sqlx::Error> {
        let before = query("SELECT nextval('numbers')").fetch_scalar(connection).await?;
        Ok(Self { case: before, attempt: before, left: Some(NUMBERS), changes: HashMap::new() })
    }

    /// The number of this transaction within a session.
    fn change(&self, session: i64) -> i64 {
        self.changes.get(&session).copied().unwrap_or_default() + 1
    }
}

/// The rows of one transaction, by kind.
#[derive(Default)]
pub(crate) struct Rows<'m> {
    cases: Vec<(i64, i64, Cow<'m, CaseEntry>)>,
    intents: Vec<Row<'m, IntentEntry>>,
    launched: Vec<(&'m JobKey, &'m Text, Timestamp)>,
    pub(crate) attempts: Vec<Row<'m, AttemptEntry>>,
    measurements: Vec<Row<'m, Measurement>>,
    ended: Vec<&'m JobKey>,
    cleaned: Vec<&'m JobKey>,
    swept: Vec<&'m JobKey>,
    ends: Vec<(&'m Text, &'m Owner, Timestamp, bool)>,
    /// Descriptions that differ from those in the rows of their cases.
    abouts: BTreeMap<i64, Text>,
    /// The states of cases, each with the number of its session.
    live: BTreeMap<i64, (i64, LiveRow)>,
    /// What is known of cases after this transaction, and was not before.
    pub(crate) learned: HashMap<CaseKey, KnownCase>,
    /// The numbers that are given out after it.
    pub(crate) last: Ids,
}

impl<'m> Rows<'m> {
    pub(crate) fn sort(messages: &[&'m Message], states: &[(CaseKey, NewState)], sessions: &Sessions, mut last: Ids) -> Self {
        let mut rows = Self::default();
        for message in messages {
            match message {
                Message::Intent(entry) => {
                    let case = Cow::Borrowed(&entry.case);
                    if let Some((session, case)) = rows.case(&entry.key.session, case, sessions, &mut last) {
                        rows.intents.push((session, case, entry));
                    }
                }
                Message::Launched(key, job, at) => rows.launched.push((key, job, *at)),
                Message::Finished(entry) => {
                    if let Some(case) = rows.case(&entry.session, Cow::Borrowed(&entry.case), sessions, &mut last) {
                        rows.finished(entry, case, &mut last);
                    }
                }
                Message::Cleaned(key) => rows.cleaned.push(key),
                Message::Swept(key) => rows.swept.push(key),
                Message::End { session, owner, ended, interrupted } => rows.ends.push((session, owner, *ended, *interrupted)),
                // Written before these rows, or not at all.
                Message::Begin(_)
                | Message::TakeOver(..)
                | Message::HandOver(..)
                | Message::Beat(..)
                | Message::Plan(..)
                | Message::Seen(..)
                | Message::States
                | Message::Close => {}
            }
        }
        for (key, state) in states {
            rows.state(key, state, sessions, &mut last);
        }
        rows.drop_outdated();
        rows.last = last;
        rows
    }

    fn finished(&mut self, entry: &'m AttemptEntry, (session, case): (i64, i64), last: &mut Ids) {
        last.attempt += 1;
        self.attempts.push((last.attempt, case, entry));
        self.measurements.extend((0..).zip(&entry.result.measurements).map(|(at, m)| (last.attempt, at, m)));
        self.ended.extend(&entry.job);
        self.live.insert(case, (session, LiveRow::ended(&entry.result, last.change(session))));
    }

    /// The state of a case, unless that attempt has its result by now.
    fn state(&mut self, key: &CaseKey, new: &NewState, sessions: &Sessions, last: &mut Ids) {
        let Some((session, case)) = self.case_in_state(key, new, sessions, last) else { return };
        if self.live.get(&case).is_none_or(|(_, row)| !row.is_end_of(&new.progress)) {
            let row = LiveRow { change: last.change(session), progress: new.progress.clone() };
            self.live.insert(case, (session, row));
        }
    }

    fn case_in_state(&mut self, key: &CaseKey, new: &NewState, sessions: &Sessions, last: &mut Ids) -> Option<(i64, i64)> {
        let SessionCases { number, cases, .. } = sessions.get(&key.session)?;
        if let Some(known) = cases.get(&key.case).or_else(|| self.learned.get(key)) {
            return Some((*number, known.id));
        }
        let (name, describe) = new.case.as_ref()?;
        let entry = CaseEntry::of(name, &describe(), &Hidden::default()).ok()?;
        self.case(&key.session, Cow::Owned(entry), sessions, last)
    }

    /// Leaves out what a later message of the same transaction makes useless: most cases are over soon.
    fn drop_outdated(&mut self) {
        let cleaned: HashSet<_> = self.cleaned.iter().copied().collect();
        self.launched.retain(|(key, ..)| !cleaned.contains(key));
        self.ended.retain(|key| !cleaned.contains(key));
        // An update from a list with a job twice would take either.
        keep_last(&mut self.launched, |(key, ..)| key);
    }

    /// The numbers of a case's session and of itself.
    fn case(&mut self, session: &Text, entry: Cow<'m, CaseEntry>, sessions: &Sessions, last: &mut Ids) -> Option<(i64, i64)> {
        let SessionCases { number, cases, .. } = sessions.get(session)?;
        let key = CaseKey { session: Arc::clone(session), case: Arc::clone(&entry.key) };
        let about = digest(&entry.about);
        let known = self.learned.get(&key).or_else(|| cases.get(&key.case)).copied();
        let id = match known {
            Some(known) if known.about == about => return Some((*number, known.id)),
            Some(known) => {
                self.abouts.insert(known.id, Arc::clone(&entry.about));
                known.id
            }
            None => {
                last.case += 1;
                self.cases.push((last.case, *number, entry));
                last.case
            }
        };
        self.learned.insert(key, KnownCase { id, about });
        Some((*number, id))
    }

    pub(crate) async fn write(&self, connection: &mut Connection, statements: &Statements) -> Result<(), SqlError> {
        let cases: Vec<_> = self.cases.iter().map(|(id, session, entry)| (*id, *session, &**entry)).collect();
        statements.case.execute(connection, &cases).await?;
        let abouts: Vec<_> = self.abouts.iter().collect();
        statements
            .about
            .execute(connection, &abouts, |statement, (id, about)| statement.bind(**id).bind(Arc::clone(about)))
            .await?;
        statements.intent.execute(connection, &self.intents).await?;
        for (session, _, entry) in &self.intents {
            let Some(old) = &entry.replaces else { continue };
            let delete = query("DELETE FROM job WHERE session = $1 AND identifier = $2");
            delete.bind(*session).bind(Arc::clone(&old.identifier)).execute(connection).await?;
        }
        statements.launched.execute(connection, &self.launched, bind_launched).await?;
        statements.attempt.execute(connection, &self.attempts).await?;
        statements.measurement.execute(connection, &self.measurements).await?;
        statements.ended.execute(connection, &self.ended, |statement, key| bind_job(statement, key)).await?;
        // What is removed soon is marked before its state says so.
        statements.swept.execute(connection, &self.swept, |statement, key| bind_job(statement, key)).await?;
        statements.cleaned.execute(connection, &self.cleaned, |statement, key| bind_job(statement, key)).await?;
        self.write_live(connection, statements).await?;
        for (session, owner, ended, interrupted) in &self.ends {
            session::end(session, owner, *ended, *interrupted).build().fetch_one(connection).await?;
        }
        Ok(())
    }
}

impl Rows<'_> {
    /// Writes the states. They are only shown: no result waits for one that cannot be written.
    async fn write_live(&self, connection: &mut Connection, statements: &Statements) -> Result<(), SqlError> {
        let live: Vec<_> = self.live.iter().map(|(case, (session, row))| (*case, *session, row)).collect();
        if live.is_empty() {
            return Ok(());
        }
        connection.begin_part().await?;
        match statements.live.execute(connection, &live).await.map_err(SqlError::from) {
            Err(error) if error.is_about_a_row() => {
                tracing::warn!(error = &error as &dyn std::error::Error, "states of cases are not stored");
                Ok(connection.undo_part().await?)
            }
            written => written,
        }
    }
}

fn bind_job(statement: Statement, key: &JobKey) -> Statement {
    statement.bind(Arc::clone(&key.session)).bind(Arc::clone(&key.identifier))
}

fn bind_launched(statement: Statement, (key, text, at): &(&JobKey, &Text, Timestamp)) -> Statement {
    bind_job(statement, key).bind(Arc::clone(text)).bind(at.0)
}

fn keep_last<'m, T>(rows: &mut Vec<T>, key: impl Fn(&T) -> &'m JobKey) {
    let mut seen = HashSet::new();
    rows.reverse();
    rows.retain(|row| seen.insert(key(row)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::{live::Describe, tests::skipped};
    use muster_core::{
        case::CaseName,
        live::{CaseProgress, CaseState},
        result::{About, Purpose},
    };

    fn key(identifier: &str) -> JobKey {
        JobKey { session: "s".into(), identifier: identifier.into() }
    }

    fn case(display: &str) -> CaseEntry {
        let [check, hash, system, partition, environ] = ["", "", "", "", ""].map(str::to_owned);
        let name = CaseName { display: display.into(), check, hash, system, partition, environ, hidden: String::new() };
        CaseEntry { key: display.into(), name, about: "{}".into() }
    }

    fn intent(identifier: &str, display: &str) -> Message {
        let [stage, plan, rules, limits] = ["", "{}", "{}", "{}"].map(Into::into);
        let (key, case, begun) = (key(identifier), case(display), Timestamp(1));
        let entry =
            IntentEntry { key, case, attempt: 1, purpose: Purpose::Run, stage, plan, rules, limits, begun, replaces: None };
        Message::Intent(Box::new(entry))
    }

    fn finished(identifier: &str, display: &str) -> Message {
        Message::Finished(Box::new(AttemptEntry {
            session: "s".into(),
            case: case(display),
            job: Some(key(identifier)),
            result: skipped(display, ""),
            detail: "{}".into(),
            quarantine: None,
            log: None,
        }))
    }

    fn sessions() -> Sessions {
        let cases = HashMap::from([("old".into(), KnownCase { id: 3, about: digest("{}") })]);
        HashMap::from([("s".into(), SessionCases { number: 9, cases, ..SessionCases::default() })])
    }

    fn sorted(messages: &[Message]) -> Rows<'_> {
        sorted_with(messages, &[])
    }

    fn sorted_with<'m>(messages: &'m [Message], states: &[(CaseKey, NewState)]) -> Rows<'m> {
        let messages: Vec<_> = messages.iter().collect();
        Rows::sort(&messages, states, &sessions(), Ids { case: 40, attempt: 70, left: None, changes: HashMap::from([(9, 5)]) })
    }

    fn state(display: &str, attempt: u32, state: CaseState) -> (CaseKey, NewState) {
        let case = case(display);
        let key = CaseKey { session: "s".into(), case: case.key };
        let describe: Describe = Arc::new(|| About { descr: "before it is planned".into(), ..About::default() });
        let progress = CaseProgress { attempt, state, ..CaseProgress::default() };
        (key, NewState { case: Some((Arc::new(CaseName { display: display.into(), ..case.name }), describe)), progress })
    }

    #[test]
    fn a_state_is_written_unless_the_same_transaction_has_the_result_of_its_attempt() {
        use CaseState::{Ended, Running, Waiting};
        let rows = [
            ("other", state("old", 1, Waiting), &[(3, Waiting, 1)][..]),
            ("old", state("old", 1, Running), &[(3, Ended, 1)]),
            ("old", state("old", 2, Waiting), &[(3, Waiting, 2)]),
        ];
        for (finishes, state, expected) in rows {
            let messages = [finished("a", finishes)];
            let rows = sorted_with(&messages, &[state]);
            let written = |(case, (session, row)): (&i64, &(i64, LiveRow))| {
                assert_eq!((*session, row.change), (9, 6));
                (*case, row.progress.state, row.progress.attempt)
            };
            let written: Vec<_> = rows.live.iter().map(written).filter(|(case, ..)| *case == 3).collect();
            assert_eq!(written, expected, "{finishes}");
        }
    }

    #[test]
    fn a_case_that_waits_has_a_row_whose_description_is_replaced_when_it_is_planned() {
        let (key, new) = state("new", 1, CaseState::Waiting);
        let states = [(key, new)];
        let rows = sorted_with(&[], &states);
        assert_eq!(rows.cases.len(), 1);
        assert!(rows.cases[0].2.about.contains("before it is planned"));
        assert!(rows.abouts.is_empty());
        let messages = [intent("a", "old")];
        assert!(sorted(&messages).abouts.is_empty(), "the same description is not written again");
        let mut planned = case("old");
        planned.about = "{\"descr\":\"planned\"}".into();
        let Message::Intent(entry) = intent("a", "old") else { panic!("an intent") };
        let messages = [Message::Intent(Box::new(IntentEntry { case: planned, ..*entry }))];
        assert_eq!(sorted(&messages).abouts.into_keys().collect::<Vec<_>>(), [3]);
    }

    fn names(keys: &[&JobKey]) -> Vec<String> {
        keys.iter().map(|key| key.identifier.to_string()).collect()
    }

    #[test]
    fn a_case_gets_one_row_however_often_it_is_attempted() {
        let messages = [intent("a", "new"), finished("a", "new"), intent("b", "new"), intent("c", "old")];
        let rows = sorted(&messages);
        let cases: Vec<_> = rows.cases.iter().map(|(id, session, entry)| (*id, *session, &*entry.key)).collect();
        assert_eq!(cases, [(41, 9, "new")]);
        let intents: Vec<_> = rows.intents.iter().map(|(_, case, entry)| (*case, &*entry.key.identifier)).collect();
        assert_eq!(intents, [(41, "a"), (41, "b"), (3, "c")]);
        assert_eq!(rows.attempts.iter().map(|(id, case, _)| (*id, *case)).collect::<Vec<_>>(), [(71, 41)]);
    }

    #[test]
    fn of_several_launches_of_a_job_the_last_is_written() {
        let launched = |identifier, text: &str| Message::Launched(key(identifier), text.into(), Timestamp(2));
        let messages = [launched("a", "1"), launched("b", "2"), launched("a", "3")];
        let rows = sorted(&messages);
        let mut texts: Vec<_> = rows.launched.iter().map(|(key, text, _)| (&*key.identifier, &***text)).collect();
        texts.sort_unstable();
        assert_eq!(texts, [("a", "3"), ("b", "2")]);
    }

    #[test]
    fn what_is_over_in_the_same_transaction_is_written_as_over() {
        let launched = |identifier| Message::Launched(key(identifier), "{}".into(), Timestamp(2));
        let messages = [
            launched("runs"),
            launched("kept"),
            launched("gone"),
            finished("kept", "old"),
            Message::Cleaned(key("gone")),
            finished("gone", "old"),
        ];
        let rows = sorted(&messages);
        let mut launched: Vec<_> = rows.launched.iter().map(|(key, ..)| &*key.identifier).collect();
        launched.sort_unstable();
        assert_eq!(launched, ["kept", "runs"]);
        assert_eq!(names(&rows.ended), ["kept"]);
        assert_eq!(names(&rows.cleaned), ["gone"]);
    }
}
