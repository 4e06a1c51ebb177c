//! The writing side. One task owns the one connection that writes: it takes what has queued, commits it as one
//! transaction, and only then answers.
//!
//! Longer than other files: all that can be written is a method of one type, with its contract.

mod batch;
pub(crate) mod history;
mod live;
mod message;
pub(crate) mod night;
mod outage;
mod places;
mod rows;
mod session;
pub(crate) mod statements;
mod whole;

use crate::{
    Held, Location, Owner, StoreError, connect,
    write::{
        batch::Writer,
        live::{CaseKey, NewState, States},
        message::{AttemptEntry, Envelope, Handover, Hidden, IntentEntry, JobKey, Message, SessionEntry, encode_job},
        outage::Line,
    },
};
pub use live::Describe;
pub use message::Seen;
use muster_core::{
    case::{CaseName, Identifier, SessionId},
    job::{descriptor::Schedulers, scheduler::Job, workload::Limits},
    live::CaseProgress,
    night::NightSpan,
    result::{About, CaseResult, LogEnd, Purpose, Session},
    rules::Rules,
    secret::Secrets,
};
use muster_text::time::Timestamp;
pub use outage::left_behind;
use std::{sync::Arc, time::Duration};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// The most messages in one transaction.
const BATCH: usize = 256;

/// How long a message that no caller awaits may wait for others: most cases then need two transactions, not four.
const UNAWAITED: Duration = Duration::from_millis(200);

/// How long states of cases may wait for another message, with which they are written: a reader looks once a second.
const STATES_ALONE: Duration = Duration::from_secs(1);

/// The record that is written before a launch.
#[derive(Debug, Clone, Copy)]
pub struct Intent<'a> {
    pub session: &'a SessionId,
    pub name: &'a CaseName,
    /// The check's description of itself.
    pub about: &'a About,
    /// 1, 2, ... within the session.
    pub attempt: u32,
    pub purpose: Purpose,
    pub job: &'a Job,
    /// The rules by which it will be judged: the files may have changed when a session is resumed.
    pub rules: &'a Rules,
    /// The limits of its times.
    pub limits: &'a Limits,
    /// The time when its attempt began.
    pub begun: Timestamp,
    /// The identifier of an earlier plan of this attempt, of which nothing is left: this one takes its place.
    pub replaces: Option<&'a Identifier>,
}

/// The results database, open for writing. Cheap to clone; needs a tokio runtime with its clock enabled.
///
/// What is awaited is committed when it returns. What is not (`launched`, `cleaned`) is committed soon after,
/// in order; if that fails the cases concerned are still found by their labels, so it is only logged. A failed
/// transaction is rolled back and reported to all who wait for it; the store goes on.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
    hidden: Arc<Hidden>,
}

#[derive(Debug)]
struct Inner {
    database: Location,
    notes: Vec<String>,
    sender: mpsc::UnboundedSender<Envelope>,
    /// What is written with the next transaction.
    states: Arc<States>,
    line: Arc<Line>,
    /// Who waits here has not encoded anything yet: ten thousand waiting cases hold no buffers. Twice a batch, so
    /// that the next is being made while one is committed.
    turns: Semaphore,
}

impl Store {
    /// Opens the database, makes it and its folder if need be, and brings its tables up to date.
    pub async fn open(database: impl Into<Location>) -> Result<Self, StoreError> {
        let database = database.into();
        let (connection, mut notes) = connect::for_writing(&database).await?;
        let states = Arc::<States>::default();
        let mut writer = Writer::new(connection, database.clone(), Arc::clone(&states));
        notes.extend(writer.adopt().await.map_err(|cause| StoreError::Write { database: database.clone(), cause })?);
        Ok(Self::start(writer, states, database, notes))
    }

    fn start(writer: Writer, states: Arc<States>, database: Location, notes: Vec<String>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let line = Arc::clone(&writer.line);
        tokio::spawn(write(writer, receiver));
        let inner = Inner { database, notes, sender, states, line, turns: Semaphore::new(2 * BATCH) };
        Self { inner: Arc::new(inner), hidden: Arc::default() }
    }

    /// A store that writes nothing with these secrets in it: neither of jobs of these schedulers, nor of how they are judged. Of
    /// results only outputs are sealed: their sentences have none.
    #[must_use]
    pub fn hiding(self, secrets: Secrets, schedulers: Schedulers) -> Self {
        Self { hidden: Arc::new(Hidden { secrets, schedulers }), ..self }
    }

    pub fn database(&self) -> &Location {
        &self.inner.database
    }

    /// Returns the notes on this database for the user, one sentence each; usually none.
    pub fn notes(&self) -> &[String] {
        &self.inner.notes
    }

    /// Sets who reports an outage to the user. Until there is one, and for all but the first, the log has it.
    pub fn tell(&self, listener: impl Fn(String) + Send + Sync + 'static) {
        self.inner.line.listen(Box::new(listener));
    }

    /// The session must end: neither a server nor a lock nor room on a disk is waited for any more. What cannot be written or kept
    /// now is refused.
    pub fn hurry(&self) {
        self.inner.line.hurry();
    }

    /// Writes down a session and who holds it.
    ///
    /// # Errors
    /// [`StoreError::AlreadyStored`] if there is a session of its id.
    pub async fn begin(&self, session: &Session, owner: &Owner) -> Result<(), StoreError> {
        let message = || Ok(Message::Begin(Box::new(SessionEntry::of(session, owner)?)));
        self.commit(message).await.map_err(|error| match error {
            StoreError::Write { cause, .. } if cause.is_duplicate() => StoreError::AlreadyStored { session: session.id.clone() },
            error => error,
        })
    }

    /// Makes `to` the owner of a session that has not ended, or that a signal has ended, unless another process was faster or its
    /// owner has shown since that it lives. Results of cases that were aborted are deleted: these cases run again.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if the session is not held any more as `from` says.
    pub async fn take_over(&self, session: &SessionId, from: &Held, to: &Owner) -> Result<(), StoreError> {
        let owners = Box::new((from.clone(), to.clone()));
        self.commit(|| Ok(Message::TakeOver(session.0.as_str().into(), owners))).await.map_err(|error| taken(session, error))
    }

    /// Makes `to` the holder of a session whose owner is gone, so that no other process takes it over meanwhile. Its end and its
    /// results stay as they are, and `give_back` follows.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if the session is not held any more as `from` says.
    pub async fn claim(&self, session: &SessionId, from: &Held, to: &Owner) -> Result<(), StoreError> {
        let Held { owner, heartbeat } = from.clone();
        self.hand_over(session, Handover { from: owner, heartbeat: Some(heartbeat), to: to.clone() }).await
    }

    /// Ends a claim of `from`: the session is again that of an owner who is gone.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if `from` does not hold it.
    pub async fn give_back(&self, session: &SessionId, from: &Owner, to: &Owner) -> Result<(), StoreError> {
        self.hand_over(session, Handover { from: from.clone(), heartbeat: None, to: to.clone() }).await
    }

    async fn hand_over(&self, session: &SessionId, handover: Handover) -> Result<(), StoreError> {
        let message = || Ok(Message::HandOver(session.0.as_str().into(), Box::new(handover)));
        self.commit(message).await.map_err(|error| taken(session, error))
    }

    /// Says that the owner of a session lives.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if `owner` does not hold it any more.
    pub async fn beat(&self, session: &SessionId, owner: &Owner) -> Result<(), StoreError> {
        let owner = Box::new(owner.clone());
        self.commit(|| Ok(Message::Beat(session.0.as_str().into(), owner))).await.map_err(|error| taken(session, error))
    }

    /// Writes down what is about to be launched.
    pub async fn intent(&self, intent: &Intent<'_>) -> Result<(), StoreError> {
        self.commit(|| Ok(Message::Intent(Box::new(IntentEntry::of(intent, &self.hidden)?)))).await
    }

    /// Queues what is known of a job after its launch.
    pub fn launched(&self, job: &Job, at: Timestamp) {
        self.queue(encode_job(job, &self.hidden).map(|text| Message::Launched(JobKey::of(job), text, at)));
    }

    /// Says how far a case is. That is written with what is committed next, and not at all if it is overtaken before. `describe` is
    /// asked for cases that have no row yet: those that were neither planned nor waited.
    pub fn progress(&self, session: &SessionId, case: &Arc<CaseName>, mut progress: CaseProgress, describe: Option<&Describe>) {
        progress.note.iter_mut().for_each(|note| self.hidden.secrets.hide(note));
        let key = CaseKey { session: session.0.as_str().into(), case: case.to_string().into() };
        let case = describe.map(|describe| (Arc::clone(case), self.hidden.in_description(describe)));
        if self.inner.states.put(key, NewState { case, progress }) {
            self.queue(Ok(Message::States));
        }
    }

    /// Writes down what a session that has begun is to run, and in which night. Figures are part of the history of a night.
    pub async fn plan(&self, session: &SessionId, night: &NightSpan, cases: Vec<CaseName>) -> Result<(), StoreError> {
        self.commit(|| Ok(Message::Plan(session.0.as_str().into(), Box::new((night.clone(), cases))))).await
    }

    /// Writes down what is known of the surroundings of a session. Nodes are described before the first case that runs on them ends,
    /// or it is known by their names alone.
    pub async fn seen(&self, session: &SessionId, mut seen: Seen) -> Result<(), StoreError> {
        let secrets = &self.hidden.secrets;
        let of_nodes = seen.nodes.iter_mut().flat_map(|node| node.facts.values_mut());
        seen.facts.values_mut().chain(of_nodes).for_each(|text| secrets.hide(text));
        self.commit(|| Ok(Message::Seen(session.0.as_str().into(), Box::new(seen)))).await
    }

    /// Writes down how an attempt ended.
    pub async fn finished(&self, session: &SessionId, result: &CaseResult) -> Result<(), StoreError> {
        self.finished_with(session, result, None).await
    }

    /// Stores a finished attempt with the end of its log.
    pub async fn finished_with(
        &self,
        session: &SessionId,
        result: &CaseResult,
        log: Option<Box<LogEnd>>,
    ) -> Result<(), StoreError> {
        self.commit(|| Ok(Message::Finished(Box::new(AttemptEntry::of(session, result, log, &self.hidden)?)))).await
    }

    /// Queues that nothing of a job is left, in whatever session it was launched.
    pub fn cleaned(&self, job: &Job) {
        self.queue(Ok(Message::Cleaned(JobKey::of(job))));
    }

    /// Writes down that `muster sweep` is about to remove a job that has no result.
    pub async fn swept(&self, job: &Job) -> Result<(), StoreError> {
        self.commit(|| Ok(Message::Swept(JobKey::of(job)))).await
    }

    /// Writes down the end of a session.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if `owner` does not hold it any more.
    pub async fn end(&self, session: &SessionId, owner: &Owner, ended: Timestamp, interrupted: bool) -> Result<(), StoreError> {
        let message =
            || Ok(Message::End { session: session.0.as_str().into(), owner: Box::new(owner.clone()), ended, interrupted });
        self.commit(message).await.map_err(|error| taken(session, error))
    }

    /// Commits what has queued, folds the journal into the file and closes it. Whatever is written later, through
    /// any clone, fails with [`StoreError::Closed`].
    pub async fn close(&self) -> Result<(), StoreError> {
        self.commit(|| Ok(Message::Close)).await
    }

    async fn commit(&self, message: impl FnOnce() -> Result<Message, StoreError>) -> Result<(), StoreError> {
        let _turn = self.inner.turns.acquire().await.map_err(|_| self.closed())?;
        let message = message()?;
        let (ack, answer) = oneshot::channel();
        self.inner.sender.send(Envelope { message, ack: Some(ack) }).map_err(|_| self.closed())?;
        answer.await.unwrap_or_else(|_| Err(self.closed()))
    }

    fn queue(&self, message: Result<Message, StoreError>) {
        let sent = message.and_then(|message| self.inner.sender.send(Envelope { message, ack: None }).map_err(|_| self.closed()));
        if let Err(error) = sent {
            tracing::warn!(error = &error as &dyn std::error::Error, "not stored");
        }
    }

    fn closed(&self) -> StoreError {
        StoreError::Closed { database: self.inner.database.clone() }
    }
}

/// Writes what processes of this machine that are gone have kept for a database, while its server was away or its file was locked.
/// Returns what the user should know of it.
pub async fn recover(database: &Location) -> Result<Vec<String>, StoreError> {
    if !outage::may_have_left(database) {
        return Ok(Vec::new());
    }
    let store = Store::open(database).await?;
    store.close().await?;
    Ok(store.notes().to_vec())
}

/// No row is another owner's.
fn taken(session: &SessionId, error: StoreError) -> StoreError {
    match error {
        StoreError::Write { cause, .. } if cause.is_no_row() => StoreError::Taken { session: session.clone() },
        error => error,
    }
}

/// The writer task: ends at `Close`, or when the last `Store` is gone.
async fn write(mut writer: Writer, mut receiver: mpsc::UnboundedReceiver<Envelope>) {
    let mut envelopes = Vec::with_capacity(BATCH);
    let (line, mut is_hurried) = (Arc::clone(&writer.line), false);
    let mut has_states = false;
    loop {
        let open = tokio::select! {
            () = line.hurried(), if !is_hurried => {
                writer.release().await;
                is_hurried = true;
                continue;
            }
            open = next_batch(&mut receiver, &mut envelopes, has_states) => open,
            connection = writer.returned() => {
                writer.go_on(connection).await;
                has_states = false;
                continue;
            }
        };
        let close = envelopes.iter().position(|envelope| matches!(envelope.message, Message::Close));
        let close = close.and_then(|at| envelopes.drain(at..).next());
        has_states = writer.commit(&mut envelopes).await;
        if close.is_some() || !open {
            receiver.close();
            let closed = writer.close().await;
            if let Some(ack) = close.and_then(|envelope| envelope.ack) {
                let _ = ack.send(closed);
            }
            return;
        }
    }
}

/// Takes what has queued; if no caller awaits any of it, also what comes within a moment. Waits for nothing if there are states left
/// to write. False when no more can come.
async fn next_batch(receiver: &mut mpsc::UnboundedReceiver<Envelope>, envelopes: &mut Vec<Envelope>, has_states: bool) -> bool {
    if has_states {
        while envelopes.len() < BATCH
            && let Ok(envelope) = receiver.try_recv()
        {
            envelopes.push(envelope);
        }
        return true;
    }
    // There may be some of a call that was given up.
    let mut open = !envelopes.is_empty() || receiver.recv_many(envelopes, BATCH).await > 0;
    let started = tokio::time::Instant::now();
    while open && envelopes.len() < BATCH && envelopes.iter().all(|envelope| envelope.ack.is_none()) {
        let only_states = envelopes.iter().all(|envelope| matches!(envelope.message, Message::States));
        let deadline = started + if only_states { STATES_ALONE } else { UNAWAITED };
        let more = receiver.recv_many(envelopes, BATCH - envelopes.len());
        match tokio::time::timeout_at(deadline, more).await {
            Ok(count) => open = count > 0,
            Err(_) => break,
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;
    use muster_core::{
        error::chain,
        result::{Counting, Outcome, Phase, Times},
    };
    use std::path::PathBuf;
    use tempfile::TempDir;

    /// A store whose connection has been told something first.
    async fn store(folder: &TempDir, pragma: &'static str) -> Store {
        let database = Location::from(folder.path().join("results.db"));
        let (mut connection, notes) = connect::for_writing(&database).await.unwrap();
        connection.script(pragma).await.unwrap();
        let states = Arc::<States>::default();
        Store::start(Writer::new(connection, database.clone(), Arc::clone(&states)), states, database, notes)
    }

    pub(super) fn session() -> Session {
        let [system, user, host, version] = ["", "", "", ""].map(str::to_owned);
        let (id, started, command, workdir) = (SessionId("a".into()), Timestamp(1), vec![], PathBuf::new());
        let (ended, num_cases, interrupted) = (None, 1, false);
        let (counting, extras, selection) = (Counting::Last, vec![], String::new());
        Session {
            id,
            started,
            ended,
            command,
            system,
            user,
            host,
            workdir,
            version,
            num_cases,
            interrupted,
            counting,
            extras,
            selection,
            ..Session::default()
        }
    }

    pub(super) fn owner() -> Owner {
        Owner { host: String::new(), pid: 1, start_time: 0, boot_id: String::new(), pid_namespace: String::new() }
    }

    pub(super) fn skipped(display: &str, warning: &str) -> CaseResult {
        let [check, hash, system, partition, environ] = ["", "", "", "", ""].map(str::to_owned);
        let about = serde_json::json!({"descr": "", "tags": [], "maintainers": [], "file": "", "parameters": [],
            "scheduler": "fake", "num_tasks": 1});
        CaseResult {
            name: CaseName { display: display.to_owned(), check, hash, system, partition, environ, hidden: String::new() },
            about: serde_json::from_value(about).unwrap(),
            identifier: None,
            attempt: 1,
            outcome: Outcome::Skip,
            phase: Phase::Plan,
            cause: None,
            warnings: vec![warning.to_owned()],
            nodes: vec![],
            exits: vec![],
            measurements: vec![],
            times: Times::default(),
            folder: None,
            log_tail: None,
            look: vec![],
            delete: vec![],
            leftovers: vec![],
            flaky: false,
            quarantine: None,
            restored_from: None,
            outputs: None,
            ..CaseResult::default()
        }
    }

    #[tokio::test]
    async fn a_full_disk_is_reported_to_all_who_wait_and_the_store_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, "PRAGMA max_page_count = 66").await;
        let session = session();
        store.begin(&session, &owner()).await.unwrap();
        let large: Vec<_> = (0..3).map(|number| skipped(&number.to_string(), &"x".repeat(100_000))).collect();
        let finished = |result| store.finished(&session.id, result);
        let outcomes = tokio::join!(finished(&large[0]), finished(&large[1]), finished(&large[2]));
        for outcome in [outcomes.0, outcomes.1, outcomes.2] {
            let error = chain(&outcome.unwrap_err());
            assert!(error.ends_with("results.db: database or disk is full (code 13)"), "{error}");
        }
        let small = skipped("4", "");
        store.finished(&session.id, &small).await.unwrap();
        store.end(&session.id, &owner(), Timestamp(2), true).await.unwrap();
        store.close().await.unwrap();
        let reader = Reader::open(store.database()).await.unwrap();
        assert_eq!(reader.results(&session.id).await.unwrap(), [small]);
    }

    #[tokio::test]
    async fn a_state_that_cannot_be_stored_keeps_no_result_out() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, "CREATE TRIGGER no BEFORE INSERT ON live BEGIN SELECT RAISE(ABORT, 'no'); END").await;
        let session = session();
        store.begin(&session, &owner()).await.unwrap();
        let result = skipped("1", "");
        let describe: Describe = Arc::new(About::default);
        store.progress(&session.id, &Arc::new(result.name.clone()), CaseProgress::default(), Some(&describe));
        store.finished(&session.id, &result).await.unwrap();
        store.close().await.unwrap();
        assert_eq!(Reader::open(store.database()).await.unwrap().results(&session.id).await.unwrap(), [result]);
    }

    #[tokio::test]
    async fn a_lock_held_too_long_is_reported_and_the_store_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, "PRAGMA busy_timeout = 50").await;
        let (mut other, _) = connect::for_writing(store.database()).await.unwrap();
        other.begin().await.unwrap();
        let error = chain(&store.begin(&session(), &owner()).await.unwrap_err());
        let why = "results.db: database is locked (code 5): another process, perhaps a stopped one, is writing to it; let it go \
                   on or end it (`fuser` names it), or choose another database with --db";
        assert!(error.ends_with(why), "{error}");
        other.rollback().await.unwrap();
        store.begin(&session(), &owner()).await.unwrap();
    }

    #[tokio::test]
    async fn a_session_that_runs_loses_no_result_to_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, "PRAGMA busy_timeout = 20").await;
        let session = session();
        store.begin(&session, &owner()).await.unwrap();
        let (mut other, _) = connect::for_writing(store.database()).await.unwrap();
        other.begin().await.unwrap();
        let result = skipped("1", "");
        let unlock = async {
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            other.rollback().await.unwrap();
        };
        let (finished, ()) = tokio::join!(store.finished(&session.id, &result), unlock);
        finished.unwrap();
        store.close().await.unwrap();
        assert_eq!(Reader::open(folder.path().join("results.db")).await.unwrap().results(&session.id).await.unwrap(), [result]);
    }

    #[tokio::test]
    async fn a_full_disk_is_waited_for_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, "PRAGMA max_page_count = 66").await;
        let session = session();
        store.begin(&session, &owner()).await.unwrap();
        let told = Arc::new(std::sync::Mutex::new(Vec::new()));
        let all = Arc::clone(&told);
        store.tell(move |text| all.lock().unwrap().push(text));
        store.finished(&session.id, &skipped("1", &"x".repeat(300_000))).await.unwrap_err();
        let told = told.lock().unwrap().join("\n");
        assert!(told.ends_with("results.db has no room on its disk; waiting, at most 10s"), "{told}");
    }
}
