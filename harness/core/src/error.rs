//! The errors of schedulers, in the classes that decide what happens next.

use std::{error::Error, time::Duration};

/// The class of a failed operation: the session's reaction to it.
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
    /// The object no longer exists.
    Gone,
    /// The scheduler does not support the operation.
    Unsupported,
}

/// A failed operation on a scheduler. The cause is a `source`, never repeated in the text.
#[derive(Debug, thiserror::Error)]
#[error("{operation}")]
pub struct SchedulerError {
    /// The operation and its object, a lower-case fragment: `spawn /bin/sh in stage/x`.
    pub operation: String,
    pub class: Class,
    /// The delay that the server asks for.
    pub retry_after: Option<Duration>,
    /// It is certain that nothing was created: there is nothing to clean up after this launch.
    pub nothing_created: bool,
    #[source]
    pub cause: Option<Box<dyn Error + Send + Sync>>,
}

impl SchedulerError {
    /// An error with a cause.
    pub fn new(class: Class, operation: impl Into<String>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { operation: operation.into(), class, retry_after: None, nothing_created: false, cause: Some(cause.into()) }
    }

    /// An error without a cause.
    pub fn plain(class: Class, operation: impl Into<String>) -> Self {
        Self { operation: operation.into(), class, retry_after: None, nothing_created: false, cause: None }
    }

    /// Marks the error of a launch that certainly created nothing.
    #[must_use]
    pub fn with_nothing_created(self) -> Self {
        Self { nothing_created: true, ..self }
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
