//! What a scheduler could not do, in the classes that decide what happens next.

use std::{error::Error, time::Duration};

/// What to do about a failed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The request can never work: `error{config}`, no retry.
    Config,
    /// The machinery between us and the job failed: retried, then `error{infra}`.
    Infra,
    /// The other side cannot be reached, takes no credentials, or refuses what it granted before: it passes by itself, but takes its
    /// time. A launch is tried again for five minutes, then `error{infra}`; what runs is waited for until its own limit.
    Outage,
    /// The thing is not there any more.
    Gone,
    /// This scheduler cannot do that.
    Unsupported,
}

/// A failed operation on a scheduler. The cause is a `source`, never repeated in the text.
#[derive(Debug, thiserror::Error)]
#[error("{operation}")]
pub struct SchedulerError {
    /// The operation and its object, a lower-case fragment: `spawn /bin/sh in stage/x`.
    pub operation: String,
    /// What to do about it.
    pub class: Class,
    /// When the other side asked us to come back.
    pub retry_after: Option<Duration>,
    /// It is certain that nothing was created: there is nothing to clean up after this launch.
    pub made_nothing: bool,
    /// Why.
    #[source]
    pub cause: Option<Box<dyn Error + Send + Sync>>,
}

impl SchedulerError {
    /// An error of a class, with its cause.
    pub fn new(class: Class, operation: impl Into<String>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { operation: operation.into(), class, retry_after: None, made_nothing: false, cause: Some(cause.into()) }
    }

    /// An error of a class that needs no cause.
    pub fn plain(class: Class, operation: impl Into<String>) -> Self {
        Self { operation: operation.into(), class, retry_after: None, made_nothing: false, cause: None }
    }

    /// The same, of a launch that has certainly created nothing.
    #[must_use]
    pub fn before_anything(self) -> Self {
        Self { made_nothing: true, ..self }
    }
}

/// Writes an error and its sources in one line, `: ` between them.
pub fn chain(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        line.push_str(": ");
        line.push_str(&cause.to_string());
        source = cause.source();
    }
    line
}
