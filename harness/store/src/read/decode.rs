//! Decodes rows to the types of core: the inverse of `write::message` and `write::statements`.

use crate::{Held, JobRow, Owner, sql::Row};
use muster_core::{
    case::{CaseName, Identifier, SessionId},
    job::{
        outputs::CaseOutputs,
        scheduler::{Job, NodeSeen, SectionExit},
    },
    live::{CaseProgress, CaseState, LiveCase},
    result::{CaseResult, Outcome, Session, SourceDefinition, Times},
    rules::perf::{Bounds, Measurement},
    secret::Secrets,
    usage::Usage,
};
use muster_text::{Value, time::Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sqlx::Error;
use std::borrow::Cow;

/// The part of a result that no query asks for, and that therefore has no columns.
#[derive(Serialize, Deserialize)]
pub(crate) struct Detail<'a> {
    pub(crate) warnings: Cow<'a, [String]>,
    pub(crate) nodes: Cow<'a, [String]>,
    pub(crate) exits: Cow<'a, [SectionExit]>,
    pub(crate) log_tail: Option<Cow<'a, str>>,
    pub(crate) look: Cow<'a, [String]>,
    pub(crate) delete: Cow<'a, [String]>,
    pub(crate) leftovers: Cow<'a, [String]>,
    #[serde(rename = "provides", default, skip_serializing_if = "Option::is_none")]
    pub(crate) outputs: Option<Cow<'a, CaseOutputs>>,
    /// The outputs as JSON, in which secrets are sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sealed_outputs: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) blocked_by: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Cow<'a, Usage>>,
    #[serde(default, skip_serializing_if = "is_empty")]
    pub(crate) described: Cow<'a, [NodeSeen]>,
}

fn is_empty(nodes: &[NodeSeen]) -> bool {
    nodes.is_empty()
}

impl<'a> Detail<'a> {
    pub(crate) fn of(result: &'a CaseResult) -> Self {
        Self {
            warnings: (&result.warnings).into(),
            nodes: (&result.nodes).into(),
            exits: (&result.exits).into(),
            log_tail: result.log_tail.as_deref().map(Into::into),
            look: (&result.look).into(),
            delete: (&result.delete).into(),
            leftovers: (&result.leftovers).into(),
            outputs: result.outputs.as_deref().map(Cow::Borrowed),
            sealed_outputs: None,
            blocked_by: result.blocked_by.as_deref().map(Into::into),
            usage: (!result.usage.is_empty()).then_some(Cow::Borrowed(&result.usage)),
            described: (&result.described).into(),
        }
    }
}

/// A session and who holds it.
pub(crate) fn session(row: &Row) -> Result<(Session, Held), Error> {
    let session = Session {
        id: SessionId(row.try_get("id")?),
        started: Timestamp(row.try_get("started")?),
        ended: time(row, "ended")?,
        command: json(row, "command")?,
        system: row.try_get("system")?,
        user: row.try_get("user_name")?,
        host: row.try_get("host")?,
        workdir: row.try_get::<String>("workdir")?.into(),
        version: row.try_get("version")?,
        num_cases: row.try_get("num_cases")?,
        interrupted: row.try_get("interrupted")?,
        counting: word(row, "counting")?,
        fail_on_skip: row.try_get("fail_on_skip")?,
        extras: json(row, "extras")?,
        selection: row.try_get("selection")?,
        night: row.try_get("night")?,
        facts: json(row, "facts")?,
        source: match row.try_get("source")? {
            Some(kind) => Some(SourceDefinition { kind, definition: json(row, "definition")? }),
            None => None,
        },
    };
    Ok((session, Held { owner: owner(row)?, heartbeat: row.try_get("heartbeat")? }))
}

fn owner(row: &Row) -> Result<Owner, Error> {
    Ok(Owner {
        host: row.try_get("owner_host")?,
        pid: row.try_get("owner_pid")?,
        start_time: u64::try_from(row.try_get::<i64>("owner_start_time")?).unwrap_or(0),
        boot_id: row.try_get("owner_boot_id")?,
        pid_namespace: row.try_get("owner_pid_namespace")?,
    })
}

/// An attempt's id and its result, as yet without measurements.
pub(crate) fn attempt(row: &Row, secrets: &Secrets) -> Result<(i64, CaseResult), Error> {
    let detail: Detail<'static> = json(row, "detail")?;
    let outputs = match detail.sealed_outputs {
        Some(sealed) => open(&sealed, secrets).map_err(|cause| undecoded("detail", cause))?.ok(),
        None => detail.outputs.map(Cow::into_owned),
    };
    let result = CaseResult {
        name: name(row)?,
        about: json(row, "about")?,
        identifier: row.try_get::<Option<String>>("identifier")?.as_deref().and_then(Identifier::parse),
        attempt: row.try_get("number")?,
        outcome: outcome(row)?,
        phase: word(row, "phase")?,
        cause: row.try_get("cause")?,
        warnings: detail.warnings.into_owned(),
        nodes: detail.nodes.into_owned(),
        described: detail.described.into_owned(),
        exits: detail.exits.into_owned(),
        measurements: Vec::new(),
        times: Times {
            begun: Timestamp(row.try_get("begun")?),
            launched: time(row, "launched")?,
            started: time(row, "started")?,
            ended: time(row, "ended")?,
            finished: Timestamp(row.try_get("finished")?),
        },
        folder: row.try_get::<Option<String>>("folder")?.map(Into::into),
        log_tail: detail.log_tail.map(Into::into),
        look: detail.look.into_owned(),
        delete: detail.delete.into_owned(),
        leftovers: detail.leftovers.into_owned(),
        flaky: row.try_get("flaky")?,
        quarantine: row.try_get::<Option<&str>>("quarantine")?.map(|_| json(row, "quarantine")).transpose()?,
        restored_from: row.try_get::<Option<String>>("restored_from")?.map(SessionId),
        outputs: outputs.map(Box::new),
        blocked_by: detail.blocked_by.map(Into::into),
        log: None,
        purpose: word(row, "purpose")?,
        usage: detail.usage.map(Cow::into_owned).unwrap_or_default(),
    };
    Ok((row.try_get("id")?, result))
}

/// A measurement and the id of its attempt.
pub(crate) fn measurement(row: &Row) -> Result<(i64, Measurement), Error> {
    let bounds = match row.try_get("reference")? {
        Some(reference) => Some(Bounds { reference, lower: row.try_get("lower")?, upper: row.try_get("upper")? }),
        None => None,
    };
    let measurement = Measurement {
        variable: row.try_get("variable")?,
        key: row.try_get("key")?,
        section: row.try_get("section")?,
        node: row.try_get("node")?,
        value: row.try_get::<Option<f64>>("value")?.unwrap_or(f64::NAN),
        unit: row.try_get("unit")?,
        bounds,
        verdict: variant(row, "verdict", "reason")?,
        direction: row.try_get::<Option<&str>>("direction")?.map(|_| word(row, "direction")).transpose()?,
    };
    Ok((row.try_get("attempt")?, measurement))
}

pub(crate) fn job(row: &Row, secrets: &Secrets) -> Result<JobRow, Error> {
    Ok(JobRow {
        name: name(row)?,
        about: json(row, "about")?,
        attempt: row.try_get("attempt")?,
        purpose: word(row, "purpose")?,
        job: launched_or_planned(row)?,
        state: word(row, "state")?,
        rules: open(row.try_get("rules")?, secrets).map_err(|cause| undecoded("rules", cause))?,
        limits: row.try_get::<Option<&str>>("limits")?.map(|_| json(row, "limits")).transpose()?,
        begun: time(row, "begun")?,
        launched_at: time(row, "launched_at")?,
        swept: row.try_get("swept")?,
    })
}

/// The number of a change, and the case as it is since.
pub(crate) fn live(row: &Row) -> Result<(i64, LiveCase), Error> {
    let given = |column: &str| Ok::<_, Error>(row.try_get::<Option<&str>>(column)?.is_some());
    let state = word(row, "state")?;
    let progress = CaseProgress {
        attempt: row.try_get("attempt")?,
        state,
        since: Timestamp(row.try_get("since")?),
        note: row.try_get("note")?,
        nodes: if given("nodes")? { json(row, "nodes")? } else { Vec::new() },
    };
    // An attempt that a takeover repeats has a result until it has another.
    let has_ended = state == CaseState::Ended && given("outcome")?;
    let outcome = if has_ended { Some(variant(row, "outcome", "reason")?) } else { None };
    let cause = if has_ended { row.try_get("cause")? } else { None };
    let quarantine = if has_ended && given("quarantine")? { Some(json(row, "quarantine")?) } else { None };
    Ok((row.try_get("change")?, LiveCase { name: name(row)?, progress, outcome, cause, quarantine }))
}

/// How an attempt ended.
pub(crate) fn outcome(row: &Row) -> Result<Outcome, Error> {
    variant(row, "outcome", "reason")
}

/// A job, as launched if that is known, else as planned.
pub(crate) fn launched_or_planned(row: &Row) -> Result<Job, Error> {
    let launched: Option<&str> = row.try_get("launched")?;
    json(row, if launched.is_some() { "launched" } else { "plan" })
}

pub(crate) fn name(row: &Row) -> Result<CaseName, Error> {
    Ok(CaseName {
        display: row.try_get("display")?,
        check: row.try_get("check_name")?,
        hash: row.try_get("hash")?,
        system: row.try_get("system")?,
        partition: row.try_get("partition")?,
        environ: row.try_get("environ")?,
        hidden: row.try_get("hidden")?,
    })
}

fn time(row: &Row, column: &str) -> Result<Option<Timestamp>, Error> {
    Ok(row.try_get::<Option<i64>>(column)?.map(Timestamp))
}

pub(crate) fn json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, Error> {
    serde_json::from_str(row.try_get(column)?).map_err(|cause| undecoded(column, cause))
}

/// What was sealed, or the name of a secret in it that is not known, or has another value.
fn open<T: DeserializeOwned>(sealed: &str, secrets: &Secrets) -> Result<Result<T, String>, serde_json::Error> {
    match secrets.open(sealed) {
        Ok(text) => serde_json::from_str(&text).map(Ok),
        Err(secret) => Ok(Err(secret)),
    }
}

/// An enum by its word, as serde names it.
pub(crate) fn word<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, Error> {
    T::deserialize(Value::from(row.try_get::<&str>(column)?)).map_err(|cause| undecoded(column, cause))
}

/// An enum by its word and what is in its brace: `fail` and `sanity`.
pub(crate) fn variant<T: DeserializeOwned>(row: &Row, column: &str, inner: &str) -> Result<T, Error> {
    let outer: &str = row.try_get(column)?;
    let value = match row.try_get::<Option<&str>>(inner)? {
        None => Value::from(outer),
        Some(inner) => Value::Object([(outer.to_owned(), Value::from(inner))].into_iter().collect()),
    };
    T::deserialize(value).map_err(|cause| undecoded(column, cause))
}

fn undecoded(column: &str, cause: serde_json::Error) -> Error {
    Error::ColumnDecode { index: column.to_owned(), source: cause.into() }
}
