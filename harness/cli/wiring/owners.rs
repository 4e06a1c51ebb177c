//! Whether sessions live, as far as it can be found out from here: what `muster_core::decisions::liveness` decides on is looked at, again and
//! again if need be.

use crate::{args::Cli, inputs::selection, terminal::Terminal};
use anyhow::anyhow;
use muster_core::{
    case::SessionId,
    decisions::{
        liveness::{LastSign, Life, Pulse, Sign, Signs, life},
        pipeline::EXIT_INTERRUPTED,
    },
    error::chain,
    job::scheduler::Job,
};
use muster_host::file_limit;
use muster_host::owner;
use muster_k8s::{ClusterPlace, Contexts, Kubernetes, LeaseSeen};
use muster_session::{front::signals::Signals, heartbeat};
use muster_store::{Held, Reader, SessionRow, SessionState};
use muster_text::time::format_duration;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};

/// How often is looked again, at most.
const POLL: Duration = Duration::from_secs(5);
/// How often a person is told that it goes on.
const TELL: Duration = Duration::from_mins(1);
/// A cluster that does not answer has no say.
const ANSWER: Duration = Duration::from_secs(15);

/// The clusters that jobs are on, and those of the system's partitions; `None`: there are none.
pub fn clusters(cli: &Cli, jobs: &[&Job]) -> anyhow::Result<Option<Arc<Kubernetes>>> {
    let jobs: Vec<&Job> = jobs.iter().copied().filter(|job| job.scheduler.is_kubernetes()).collect();
    let options = partitions(cli);
    if jobs.is_empty() && options.is_empty() {
        return Ok(None);
    }
    let contexts = Contexts::load()?;
    let place = |(context, namespace): &Options| contexts.place(context.as_deref(), namespace.as_deref());
    let places: Vec<ClusterPlace> = options.iter().map(place).collect::<Result<_, _>>()?;
    let kubernetes = Kubernetes::new(contexts).within_open_files(file_limit::raise()).with_pulse(heartbeat::pulse());
    Ok(Some(Arc::new(kubernetes.in_places(places).around(jobs))))
}

/// The same for who only asks for Leases: a kubeconfig that is no good, or is not there, hides them.
pub fn clusters_that_answer(cli: &Cli, jobs: &[&Job]) -> Option<Arc<Kubernetes>> {
    clusters(cli, jobs).unwrap_or_else(|error| {
        tracing::debug!(error = %format!("{error:#}"), "no Lease is looked for");
        None
    })
}

/// Context and namespace.
type Options = (Option<String>, Option<String>);

/// Context and namespace of the system's partitions on Kubernetes. A system that is not known is no reason to look at nothing.
fn partitions(cli: &Cli) -> BTreeSet<Options> {
    let site = selection::site(&cli.files.config_file, &cli.files.checkpath, cli.files.system.as_deref(), false);
    let Ok(site) = site else { return BTreeSet::new() };
    let on_kubernetes = site.system.partitions.iter().filter(|partition| partition.scheduler.is_kubernetes());
    let text = |options: &muster_text::Value, key: &str| options[key].as_str().map(str::to_owned);
    on_kubernetes
        .map(|partition| (text(&partition.sched_options, "context"), text(&partition.sched_options, "namespace")))
        .collect()
}

/// How long somebody waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Not at all.
    Now,
    /// Unless a server dates a sign within the limit: until they have been watched for long enough.
    Undated,
    /// Until it is certain.
    Sure,
}

impl Patience {
    fn waits_for(self, life: Life) -> Option<Duration> {
        match life {
            Life::Silent { left, last } if self == Self::Sure || (self == Self::Undated && last != LastSign::Recent) => {
                Some(left)
            }
            _ => None,
        }
    }
}

/// Where signs of life are looked for.
pub struct Lives<'a> {
    pub reader: Option<&'a Reader>,
    pub kubernetes: Option<&'a Kubernetes>,
    pub terminal: Terminal,
}

/// What was found out about a session.
pub struct Finding {
    pub life: Life,
    /// Its Leases as they were seen first: they have not changed since, if it is dead.
    pub leases: BTreeMap<ClusterPlace, LeaseSeen>,
    /// Who held it in the database then.
    held: Option<Held>,
}

impl Lives<'_> {
    /// Looks, and waits as long as `patience` says. Of sessions that the database does not know, the Leases alone are looked at.
    pub async fn of(
        &self,
        sessions: impl IntoIterator<Item = (SessionId, Option<Held>)>,
        patience: Patience,
    ) -> BTreeMap<SessionId, Finding> {
        let begun = Instant::now();
        let mut findings = BTreeMap::new();
        for (session, held) in sessions {
            let mut finding = Finding { life: Life::Unknown, leases: BTreeMap::new(), held };
            finding.life = life(&self.signs(&session, &mut finding, Duration::ZERO).await);
            findings.insert(session, finding);
        }
        let (mut told, mut signals): (Option<Instant>, Option<Signals>) = (None, None);
        loop {
            let waiting: Vec<(&SessionId, Duration)> =
                findings.iter().filter_map(|(session, finding)| Some((session, patience.waits_for(finding.life)?))).collect();
            let Some(left) = waiting.iter().map(|(_, left)| *left).max() else { return findings };
            if signals.is_none() {
                signals = Signals::listen().ok();
            }
            if told.is_none_or(|told| told.elapsed() >= TELL) {
                for (session, left) in &waiting {
                    self.terminal.note(&progress(session, findings[*session].held.as_ref(), *left, told.is_some()));
                }
                told = Some(Instant::now());
            }
            pause(POLL.min(left / 8).max(Duration::from_millis(100)), &mut signals, self.terminal).await;
            for (session, finding) in &mut findings {
                if patience.waits_for(finding.life).is_some() {
                    finding.life = life(&self.signs(session, finding, begun.elapsed()).await);
                }
            }
        }
    }

    /// What can be seen of a session now, by one who first saw it as `first` so long ago.
    async fn signs(&self, session: &SessionId, first: &mut Finding, watched: Duration) -> Signs {
        let process = first.held.as_ref().and_then(|held| owner::is_alive(&held.owner));
        if process.is_some() {
            // For who takes the session over: a dead owner's Lease may be as fresh as can be.
            if watched.is_zero() {
                self.leases(session, first, watched).await;
            }
            return Signs { process, ..Signs::default() };
        }
        let leases = self.leases(session, first, watched).await;
        let Pulse { limit, .. } = heartbeat::pulse();
        let heartbeat = match (self.reader, &first.held) {
            (Some(reader), Some(held)) => {
                let changed = matches!(reader.held(session).await, Ok(now) if now.as_ref() != Some(held));
                Some(Sign { limit, age: None, watched, changed })
            }
            _ => None,
        };
        Signs { process, leases, heartbeat }
    }

    async fn leases(&self, session: &SessionId, first: &mut Finding, watched: Duration) -> Vec<Sign> {
        let Some(kubernetes) = self.kubernetes else { return Vec::new() };
        let mut signs = Vec::new();
        for place in kubernetes.places() {
            match timeout(ANSWER, kubernetes.lease(&place, session)).await {
                Ok(Ok(Some(seen))) => {
                    let before = first.leases.entry(place).or_insert_with(|| seen.clone());
                    signs.push(seen.sign(before, watched));
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => tracing::debug!(%place, error = chain(&error), "no Lease is seen"),
                Err(_) => tracing::debug!(%place, "no Lease is seen: no answer"),
            }
        }
        signs
    }

    /// The Leases of a session that is certainly dead, for who takes it over; `None`: it lives.
    pub async fn of_the_dead(&self, row: &SessionRow) -> Option<BTreeMap<ClusterPlace, LeaseSeen>> {
        let session = (row.session.id.clone(), Some(row.held.clone()));
        let findings = self.of([session], Patience::Sure).await;
        findings.into_values().next().filter(|finding| finding.life == Life::Dead).map(|finding| finding.leases)
    }

    /// Puts the state of sessions right of which it could not be told at once, as far as it can be now.
    pub async fn settle(&self, rows: &mut [SessionRow]) {
        let unknown = rows.iter().filter(|row| row.state == SessionState::Unknown);
        let unknown: Vec<_> = unknown.map(|row| (row.session.id.clone(), Some(row.held.clone()))).collect();
        let findings = self.of(unknown, Patience::Now).await;
        for row in rows {
            row.state = match findings.get(&row.session.id).map(|finding| finding.life) {
                Some(Life::Alive | Life::Silent { last: LastSign::Recent, .. }) => SessionState::Running,
                // Whoever takes it over makes sure; here it is only shown.
                Some(Life::Dead | Life::Silent { last: LastSign::Expired, .. }) => SessionState::Interrupted,
                Some(Life::Silent { .. } | Life::Unknown) | None => row.state,
            };
        }
    }
}

/// Why a session is not taken over.
pub fn still_runs(row: &SessionRow) -> anyhow::Error {
    let owner = &row.held.owner;
    anyhow!("session {} is still running, as process {} on {}: end that first, or wait", row.session.id, owner.pid, owner.host)
}

fn progress(session: &SessionId, held: Option<&Held>, left: Duration, again: bool) -> String {
    // A fraction of a second says nothing.
    let left = format_duration(Duration::from_secs(left.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)));
    if again {
        return format!("session {session}: still no sign of life; it counts as dead in {left}");
    }
    let owner = held.map_or_else(String::new, |held| format!(" of process {} on {}", held.owner.pid, held.owner.host));
    format!("session {session}: waiting for a sign of life{owner}; without one it counts as dead in {left} (Ctrl-C leaves)")
}

/// Waits, unless a signal ends the process: the first process of a container ignores what it does not listen to.
async fn pause(length: Duration, signals: &mut Option<Signals>, terminal: Terminal) {
    let Some(signals) = signals else {
        sleep(length).await;
        return;
    };
    tokio::select! {
        () = sleep(length) => {}
        name = signals.next() => {
            terminal.note(&format!("interrupted by {name}: nothing was changed"));
            std::process::exit(EXIT_INTERRUPTED.into());
        }
    }
}
