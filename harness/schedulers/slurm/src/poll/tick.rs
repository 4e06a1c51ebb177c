//! One look at the queue.

use super::{
    Cluster, Tracked,
    reading::read_each,
    tracked::{Known, Memory},
};
use crate::{
    answers::{
        State,
        jobs::{QUEUE, RECORDS, Record, Row, queue, records, shown},
        nodes::Node,
    },
    files::{self, ExitFile},
    log_tail::LogTail,
    plan::Handle,
    status::{Decision, Facts, Verdict, decide, judge, words},
};
use muster_core::{
    decisions::backoff::Backoff,
    error::{Class, SchedulerError, chain},
    job::scheduler::JobStatus,
};
use muster_host::clock;
use muster_text::time::{Date, Timestamp, format_duration};
use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};
use tokio::time::Instant;

/// What can never run is given up after so many looks that say so.
const CERTAIN: u32 = 2;
/// The accounting hears of an end a moment later; only then the controller is asked, which does not know who cancelled a job.
const PATIENCE: u32 = 2;
/// The pauses between questions how a job ended.
const QUESTIONS: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_mins(1) };
/// The accounting has a default window that begins at midnight.
const WINDOW: Duration = Duration::from_hours(24);

/// What a look has shown.
pub(super) struct Looked {
    pub took: Duration,
    pub changed: bool,
    pub all_wait: bool,
    /// Somebody is asked again then.
    pub next_question: Option<Duration>,
}

/// The jobs of one look, by number and by name.
struct Queue {
    by_id: HashMap<String, Row>,
    by_name: HashMap<String, Vec<String>>,
}

impl Queue {
    fn of(rows: Vec<Row>) -> Self {
        let (mut by_id, mut by_name) = (HashMap::new(), HashMap::<String, Vec<String>>::new());
        for row in rows.into_iter().filter(|row| row.name.starts_with("rfm-")) {
            by_name.entry(row.name.clone()).or_default().push(row.id.clone());
            by_id.insert(row.id.clone(), row);
        }
        Self { by_id, by_name }
    }

    /// The row of a job, and other jobs of its name. `runner`: which of them runs.
    ///
    /// The name alone tells that a row is of this job: it ends in random letters. Times do not: clocks differ.
    fn find(&self, handle: &Handle, runner: Option<&str>) -> (Option<&Row>, Vec<String>) {
        let ids = self.by_name.get(&handle.name).map(Vec::as_slice).unwrap_or_default();
        let rows: Vec<&Row> = ids.iter().filter_map(|id| self.by_id.get(id)).collect();
        let wanted = runner.or(handle.id.as_deref());
        let row = rows.iter().find(|row| Some(row.id.as_str()) == wanted);
        let row = row.or_else(|| {
            if handle.id.is_none() { rows.iter().filter(|row| !row.was_refused()).min_by_key(|row| row.submitted) } else { None }
        });
        let row = row.copied();
        let others = rows.iter().filter(|other| Some(&other.id) != row.map(|row| &row.id) && !other.state.is_final());
        (row, others.map(|row| row.id.clone()).collect())
    }
}

impl Cluster {
    /// Looks once, and tells what is new.
    pub(super) async fn tick(&self) -> Result<Looked, ()> {
        let started = Instant::now();
        let answer = self.answer("squeue", &["-h", "-a", "--me", "-t", "all", "-o", QUEUE]).await;
        let took = started.elapsed();
        let queue = match answer {
            Ok(text) => Queue::of(queue(&text)),
            Err(error) => {
                self.set_outage(Some(chain(&error)));
                return Err(());
            }
        };
        self.set_outage(None);
        let jobs = self.active();
        self.read_files(&jobs, &queue).await;
        let mut looked = Looked { took, changed: false, all_wait: true, next_question: None };
        let mut questions = Vec::new();
        for job in &jobs {
            let (changed, asks) = self.judge(job, &queue).await;
            looked.changed |= changed;
            looked.all_wait &= matches!(job.known().status, None | Some(JobStatus::NotSeen | JobStatus::Pending { .. }));
            if asks {
                questions.push(Arc::clone(job));
            }
        }
        let due: Vec<_> = questions.iter().filter(|job| job.memory.lock().is_due()).cloned().collect();
        if !due.is_empty() {
            self.ask_how_they_ended(&due).await;
            for job in &due {
                looked.changed |= self.judge(job, &queue).await.0;
            }
        }
        let next = questions.iter().filter(|job| !job.is_over()).filter_map(|job| job.memory.lock().ask_at).min();
        looked.next_question = next.map(|at| at.saturating_duration_since(Instant::now()));
        Ok(looked)
    }

    /// Reads what the scripts have left, of jobs that may have ended.
    async fn read_files(&self, jobs: &[Arc<Tracked>], queue: &Queue) {
        let may_have_ended = |job: &&Arc<Tracked>| {
            let handle = job.handle();
            let (row, _) = queue.find(&handle, None);
            job.has_exit_hint() || row.is_none_or(|row| row.state == State::Completing || row.state.is_final()) || handle.doubtful
        };
        let jobs: Vec<Arc<Tracked>> =
            jobs.iter().filter(may_have_ended).filter(|job| !job.memory.lock().has_all_files()).cloned().collect();
        let read = |stage: &Path| (ExitFile::read(stage), LogTail::read(stage), files::runner(stage));
        for (job, (exit, log_tail, runner)) in read_each(&jobs, read).await {
            if exit.is_some() {
                job.hint();
            }
            if let Some((id, since)) = runner {
                job.set_id(&id);
                job.memory.lock().runner = since;
            }
            let mut memory = job.memory.lock();
            if memory.log_tail.bytes != log_tail.bytes {
                memory.log_since = Instant::now();
            }
            (memory.exit, memory.log_tail) = (exit, log_tail);
        }
    }

    /// Whether something is new, and whether somebody has to say how it ended.
    async fn judge(&self, job: &Tracked, queue: &Queue) -> (bool, bool) {
        let handle = job.handle();
        let (row, others) = queue.find(&handle, None);
        if let Some(row) = row.filter(|_| handle.id.is_none()) {
            job.set_id(&row.id);
        }
        let handle = job.handle();
        let (verdict, waits) = {
            let mut memory = job.memory.lock();
            memory.others = others;
            memory.saw(row);
            let verdict = judge(&memory.facts(&handle, job, row, self.known_config().accounting));
            let waits = matches!(verdict, Verdict::Waits).then(|| row.map(|row| row.reason.clone()).unwrap_or_default());
            (verdict, waits)
        };
        let status = |status, over| Known { status: Some(status), failure: None, over };
        let known = match verdict {
            Verdict::Status(new, over) => status(new, over),
            Verdict::Same => return (job.stop_clock(), false),
            Verdict::Ask => return (job.stop_clock(), true),
            Verdict::Failed(class, why) => Known { failure: Some((class, why)), over: true, ..job.known() },
            Verdict::Waits => {
                let reason = waits.unwrap_or_default();
                let (history, looks) = job.memory.lock().waits(&reason);
                let several = handle.partition.as_ref().is_some_and(|names| names.contains(','));
                match decide(&reason, several, &handle.policy.never) {
                    Decision::Never if looks >= CERTAIN => {
                        let why =
                            format!("job {} can never start: {}", row.map_or("", |row| &row.id), self.never(&handle, &reason));
                        Known { failure: Some((Class::Config, why)), ..job.known() }
                    }
                    Decision::NodesAway => {
                        let away = self.away(handle.partition.as_deref()).await;
                        status(JobStatus::Pending { why: format!("{}{away}{history}", words(&reason)) }, false)
                    }
                    _ => status(JobStatus::Pending { why: words(&reason) + &history }, false),
                }
            }
        };
        (job.tell(known), false)
    }

    /// Why it can never start, with the numbers.
    fn never(&self, handle: &Handle, reason: &str) -> String {
        let partition = self.known_partition(handle.partition.as_deref());
        let numbers = partition.and_then(|partition| match reason {
            "PartitionTimeLimit" => {
                let (asked, most) = (handle.minutes?, partition.max_time?);
                Some(format!("; it asks for {asked} min, and {} allows {most} min", partition.name))
            }
            "PartitionNodeLimit" => {
                let (asked, most) = (handle.nodes?, partition.max_nodes?);
                Some(format!("; it asks for {asked} nodes, and {} allows {most}", partition.name))
            }
            _ => None,
        });
        words(reason) + &numbers.unwrap_or_default()
    }

    /// The nodes that take no jobs, with why: `: n1 down (bad disk)`.
    async fn away(&self, partition: Option<&str>) -> String {
        const MOST: usize = 3;
        let Ok(nodes) = self.nodes(partition).await else { return String::new() };
        let away: Vec<String> = nodes.iter().filter(|node| !node.is_available(false)).map(Node::line).collect();
        let more = away.len().saturating_sub(MOST);
        match &away[..] {
            [] => String::new(),
            some if more == 0 => format!(": {}", some.join(", ")),
            some => format!(": {} and {more} more", some[..MOST].join(", ")),
        }
    }

    /// Asks the accounting, or the controller where there is none, or it has not heard of it yet.
    async fn ask_how_they_ended(&self, jobs: &[Arc<Tracked>]) {
        let mut answered: Vec<Record> = Vec::new();
        if self.known_config().accounting {
            let ids: Vec<String> = jobs.iter().filter_map(|job| job.handle().id.clone()).collect();
            let names: Vec<String> = jobs
                .iter()
                .map(|job| job.handle())
                .filter(|handle| handle.id.is_none())
                .map(|handle| handle.name.clone())
                .collect();
            for (option, values) in [("-j", ids), ("--name", names)] {
                if !values.is_empty()
                    && let Ok(found) = self.records(option, &values.join(","), jobs).await
                {
                    answered.extend(found);
                }
            }
        }
        for job in jobs {
            let handle = job.handle();
            let is_it = |record: &&Record| record.name == handle.name && handle.id.as_ref().is_none_or(|id| *id == record.id);
            let mut record = answered.iter().find(is_it).filter(|record| record.state.is_final()).cloned();
            let asks_controller = {
                let memory = job.memory.lock();
                let is_away = !self.known_config().accounting || memory.asked >= PATIENCE;
                // The accounting does not know that a job has ended by itself because it was about to be preempted.
                record.as_ref().map_or(is_away, |record| memory.log_tail.was_ended && !record.state.is_taken_away())
            };
            if let (true, Some(id)) = (asks_controller, &handle.id) {
                // It remembers what it has listed.
                let shown = self.answer("scontrol", &["-o", "show", "job", id]).await.ok().and_then(|text| shown(&text));
                let shown = shown.filter(|shown| shown.name == handle.name && shown.state.is_final());
                let knows_more = |shown: &Record| record.is_none() || shown.state.is_taken_away();
                record = shown.filter(knows_more).or(record);
            }
            if let Some(record) = &mut record
                && let Some(uid) = record.word.strip_prefix("CANCELLED by ")
            {
                record.by = Some(self.users.name(uid).await);
            }
            let mut memory = job.memory.lock();
            memory.asked += 1;
            memory.ask_at = Some(Instant::now() + QUESTIONS.after(memory.asked));
            memory.record = record.or(memory.record.take());
            drop(memory);
            if let Some(id) = job.memory.lock().record.as_ref().map(|record| record.id.clone()) {
                job.set_id(&id);
            }
        }
    }

    /// What the accounting says of jobs.
    pub(crate) async fn records(&self, option: &str, values: &str, jobs: &[Arc<Tracked>]) -> Result<Vec<Record>, SchedulerError> {
        let launched = jobs.iter().filter_map(|job| job.handle().launched).min().unwrap_or_else(clock::now);
        self.records_since(option, values, launched).await
    }

    /// The same of any time.
    pub(crate) async fn records_since(
        &self,
        option: &str,
        values: &str,
        launched: Timestamp,
    ) -> Result<Vec<Record>, SchedulerError> {
        let day = Date::of(before(launched, WINDOW)).to_string();
        let text = self.answer("sacct", &["-n", "-P", "-X", "-S", &day, option, values, "-o", RECORDS]).await?;
        Ok(records(&text))
    }
}

fn before(at: Timestamp, by: Duration) -> Timestamp {
    Timestamp(at.0.saturating_sub(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
}

impl Memory {
    /// What its script has left was read, with the log to the end that the script has seen.
    fn has_all_files(&self) -> bool {
        self.exit.as_ref().is_some_and(|exit| exit.has_log_of(self.log_tail.bytes))
    }

    fn is_due(&self) -> bool {
        self.ask_at.is_none_or(|at| Instant::now() >= at)
    }

    /// What a look shows.
    fn saw(&mut self, row: Option<&Row>) {
        let now = Instant::now();
        match row {
            Some(row) => {
                let was = self.last.as_ref().map(|last| last.state);
                let completes = row.state == State::Completing;
                self.completing_since = completes.then(|| self.completing_since.unwrap_or(now));
                if completes {
                    self.over_since = None;
                } else if !row.state.is_final() {
                    (self.over_since, self.ask_at, self.asked, self.record) = (None, None, 0, None);
                    // A file of an earlier start: Slurm has started the job again.
                    (self.exit, self.log_tail) = (None, LogTail::default());
                } else if was != Some(row.state) || self.over_since.is_none() {
                    self.over_since = Some(now);
                }
                match (row.state == State::Suspended, self.suspended_since) {
                    (true, None) => self.suspended_since = Some(now),
                    (false, Some(since)) => {
                        self.suspended += now - since;
                        self.suspended_since = None;
                    }
                    _ => {}
                }
                self.last = Some(row.clone());
            }
            None => _ = self.over_since.get_or_insert(now),
        }
    }

    fn facts<'a>(&'a self, handle: &'a Handle, job: &'a Tracked, row: Option<&'a Row>, accounting: bool) -> Facts<'a> {
        let now = clock::now();
        // Of a job that another process has launched, its own time counts.
        let age = handle.launched.map_or_else(|| self.since.elapsed(), |launched| now.since(launched));
        Facts {
            handle,
            stage: job.stage(),
            row,
            last: self.last.as_ref(),
            record: self.record.as_ref(),
            exit: self.exit.as_ref(),
            is_ending: job.is_ending(),
            log_tail: &self.log_tail,
            log_still_for: self.log_since.elapsed(),
            runner: self.runner,
            age,
            over_for: self.over_since.map_or(Duration::ZERO, |since| since.elapsed()),
            completing_for: self.completing_since.map_or(Duration::ZERO, |since| since.elapsed()),
            accounting,
            suspended: self.suspended,
            now,
        }
    }

    /// What it waited for before, and for how many looks the reason is the same.
    fn waits(&mut self, reason: &str) -> (String, u32) {
        let now = Instant::now();
        if self.reasons.last().is_none_or(|(last, _)| last != reason) {
            self.reasons.push((reason.to_owned(), now));
            self.looks = 0;
        }
        self.looks += 1;
        let before = self.reasons.windows(2).rev().find(|two| !matches!(&*two[0].0, "None" | ""));
        let history = before.map_or_else(String::new, |two| {
            let ((what, since), (_, until)) = (&two[0], &two[1]);
            format!(" (before: {what} for {})", format_duration(Duration::from_secs((*until - *since).as_secs())))
        });
        (history, self.looks)
    }
}
