//! The messages to the writer. Their values have their stored form already: the caller encodes them, not the writer.

use crate::{Held, Owner, StoreError, read::decode::Detail, write::live::Describe};
use muster_core::{
    case::{CaseName, Identifier, SessionId},
    job::{
        descriptor::Schedulers,
        scheduler::{Job, NodeSeen},
    },
    night::NightSpan,
    result::{About, CaseResult, LogEnd, Purpose, Session},
    secret::Secrets,
};
use muster_text::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};
use tokio::sync::oneshot;

/// What is left out of the database.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    pub(crate) secrets: Secrets,
    /// They know which part of a job has to stay as it is.
    pub(crate) schedulers: Schedulers,
}

impl Hidden {
    /// A description without secrets.
    pub(crate) fn in_description(self: &Arc<Self>, describe: &Describe) -> Describe {
        if self.secrets.is_empty() {
            return Arc::clone(describe);
        }
        let (hidden, describe) = (Arc::clone(self), Arc::clone(describe));
        Arc::new(move || {
            let mut about = describe();
            about.hide(&hidden.secrets);
            about
        })
    }
}

/// A stored text. Shared, because a failed transaction is tried again and binding takes ownership.
pub(crate) type Text = Arc<str>;

/// A message and who waits for it to be committed.
pub(crate) struct Envelope {
    pub(crate) message: Message,
    pub(crate) ack: Option<oneshot::Sender<Result<(), StoreError>>>,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum Message {
    #[serde(skip)]
    Begin(Box<SessionEntry>),
    Intent(Box<IntentEntry>),
    Launched(JobKey, Text, Timestamp),
    Finished(Box<AttemptEntry>),
    Cleaned(JobKey),
    Swept(JobKey),
    /// Another process, the last, continues a session.
    #[serde(skip)]
    TakeOver(Text, Box<(Held, Owner)>),
    /// Another process holds a session for a while.
    #[serde(skip)]
    HandOver(Text, Box<Handover>),
    /// The owner of a session lives.
    #[serde(skip)]
    Beat(Text, Box<Owner>),
    /// What a session is to run, and in which night.
    #[serde(skip)]
    Plan(Text, Box<(NightSpan, Vec<CaseName>)>),
    /// What is known of the nodes of a session, and of its surroundings.
    #[serde(skip)]
    Seen(Text, Box<Seen>),
    /// States of cases wait beside the queue.
    #[serde(skip)]
    States,
    End {
        session: Text,
        owner: Box<Owner>,
        ended: Timestamp,
        interrupted: bool,
    },
    #[serde(skip)]
    Close,
}

impl Message {
    /// The session that must have been started for this to be written.
    pub(crate) fn session(&self) -> Option<&Text> {
        match self {
            Self::Intent(entry) => Some(&entry.key.session),
            Self::Finished(entry) => Some(&entry.session),
            Self::Plan(session, _) | Self::Seen(session, _) => Some(session),
            _ => None,
        }
    }

    /// The session that it is about, if it is about one.
    pub(crate) fn of_session(&self) -> Option<&Text> {
        match self {
            Self::Intent(entry) => Some(&entry.key.session),
            Self::Finished(entry) => Some(&entry.session),
            Self::Launched(key, ..) | Self::Cleaned(key) | Self::Swept(key) => Some(&key.session),
            Self::Plan(session, _)
            | Self::Seen(session, _)
            | Self::TakeOver(session, _)
            | Self::HandOver(session, _)
            | Self::Beat(session, _)
            | Self::End { session, .. } => Some(session),
            Self::Begin(_) | Self::States | Self::Close => None,
        }
    }
}

/// A scheduler's knowledge of a session's surroundings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    pub at: Timestamp,
    pub nodes: Vec<NodeSeen>,
    /// The facts of the whole session, by name: `cluster.PARTITION`.
    pub facts: BTreeMap<String, String>,
}

/// Who holds a session, and who is to hold it.
pub(crate) struct Handover {
    pub(crate) from: Owner,
    /// The heartbeat that `from` must not have changed since; `None`: any.
    pub(crate) heartbeat: Option<i64>,
    pub(crate) to: Owner,
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct JobKey {
    pub(crate) session: Text,
    pub(crate) identifier: Text,
}

impl JobKey {
    pub(crate) fn of(job: &Job) -> Self {
        Self::new(&job.session, &job.identifier)
    }

    fn new(session: &SessionId, identifier: &Identifier) -> Self {
        Self { session: session.0.as_str().into(), identifier: identifier.as_str().into() }
    }
}

pub(crate) struct SessionEntry {
    pub(crate) session: Session,
    pub(crate) command: Text,
    pub(crate) extras: Text,
    pub(crate) facts: Text,
    pub(crate) owner: Owner,
}

impl SessionEntry {
    pub(crate) fn of(session: &Session, owner: &Owner) -> Result<Self, StoreError> {
        let command = encode("command line", &session.id, &session.command)?;
        let extras = encode("session extras", &session.id, &session.extras)?;
        let facts = encode("session facts", &session.id, &session.facts)?;
        Ok(Self { session: session.clone(), command, extras, facts, owner: owner.clone() })
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct CaseEntry {
    /// What makes it one case of its session: the name as displayed, with its place.
    pub(crate) key: Text,
    pub(crate) name: CaseName,
    pub(crate) about: Text,
}

impl CaseEntry {
    pub(crate) fn of(name: &CaseName, about: &About, hidden: &Hidden) -> Result<Self, StoreError> {
        let mut about = Cow::Borrowed(about);
        if !hidden.secrets.is_empty() {
            about.to_mut().hide(&hidden.secrets);
        }
        let about = encode("description", name, &about)?;
        Ok(Self { key: name.to_string().into(), name: name.clone(), about })
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct IntentEntry {
    pub(crate) key: JobKey,
    pub(crate) case: CaseEntry,
    pub(crate) attempt: u32,
    /// A spool of an older muster has none.
    #[serde(default)]
    pub(crate) purpose: Purpose,
    pub(crate) stage: Text,
    pub(crate) plan: Text,
    pub(crate) rules: Text,
    pub(crate) limits: Text,
    pub(crate) begun: Timestamp,
    /// The row that goes.
    pub(crate) replaces: Option<JobKey>,
}

impl IntentEntry {
    pub(crate) fn of(intent: &crate::Intent<'_>, hidden: &Hidden) -> Result<Self, StoreError> {
        Ok(Self {
            key: JobKey::new(intent.session, &intent.job.identifier),
            case: CaseEntry::of(intent.name, intent.about, hidden)?,
            attempt: intent.attempt,
            purpose: intent.purpose,
            // For people and queries; what has to be exact is in the job.
            stage: intent.job.stage.to_string_lossy().into(),
            plan: encode_job(intent.job, hidden)?,
            rules: seal("judging rules", intent.name, intent.rules, hidden)?,
            limits: encode("limits", intent.name, intent.limits)?,
            begun: intent.begun,
            replaces: intent.replaces.map(|identifier| JobKey::new(intent.session, identifier)),
        })
    }
}

/// A row of `attempt` with its rows of `measurement`.
#[derive(Serialize, Deserialize)]
pub(crate) struct AttemptEntry {
    pub(crate) session: Text,
    pub(crate) case: CaseEntry,
    /// The job it ends, if there was one.
    pub(crate) job: Option<JobKey>,
    pub(crate) result: CaseResult,
    pub(crate) detail: Text,
    pub(crate) quarantine: Option<Text>,
    /// The end of its log, if it did not pass.
    pub(crate) log: Option<Box<LogEnd>>,
}

impl AttemptEntry {
    pub(crate) fn of(
        session: &SessionId,
        result: &CaseResult,
        log: Option<Box<LogEnd>>,
        hidden: &Hidden,
    ) -> Result<Self, StoreError> {
        let name = &result.name;
        let mut detail = Detail::of(result);
        if !hidden.secrets.is_empty() {
            // Other cases need them as they are.
            let outputs = detail.outputs.take();
            detail.sealed_outputs =
                outputs.map(|outputs| seal("outputs", name, &outputs, hidden)).transpose()?.map(|text| text.to_string().into());
        }
        Ok(Self {
            session: session.0.as_str().into(),
            case: CaseEntry::of(name, &result.about, hidden)?,
            job: result.identifier.as_ref().map(|identifier| JobKey::new(session, identifier)),
            detail: encode("result", name, &detail)?,
            quarantine: result.quarantine.as_ref().map(|quarantine| encode("quarantine", name, quarantine)).transpose()?,
            // What is stored of its outputs is in `detail`, where secrets are sealed.
            result: CaseResult { outputs: None, ..result.clone() },
            log,
        })
    }
}

pub(crate) fn encode_job(job: &Job, hidden: &Hidden) -> Result<Text, StoreError> {
    if hidden.secrets.is_empty() {
        return encode("job", &job.case, job);
    }
    encode("job", &job.case, &job.without(&hidden.secrets, &hidden.schedulers))
}

/// What whoever continues the session has to read as it is: secrets are sealed.
fn seal(what: &'static str, of: &impl ToString, value: &impl Serialize, hidden: &Hidden) -> Result<Text, StoreError> {
    let text = encode(what, of, value)?;
    Ok(if hidden.secrets.is_empty() { text } else { hidden.secrets.seal(&text).into() })
}

pub(crate) fn encode(what: &'static str, of: &impl ToString, value: &impl Serialize) -> Result<Text, StoreError> {
    match serde_json::to_string(value) {
        Ok(text) => Ok(text.into()),
        Err(cause) => Err(StoreError::Encode { what, of: of.to_string(), cause }),
    }
}
