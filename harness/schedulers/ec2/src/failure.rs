//! The errors of calls that gave no answer.

use crate::cloud::{CloudError, Kind};
use muster_core::error::{Class, SchedulerError};

/// The error of a call that launches: what EC2 refuses cannot work, and what it does not answer may pass.
pub(crate) fn of_launch(error: CloudError, operation: &str) -> SchedulerError {
    let class = match &error {
        error if may_pass(error) => Class::Outage,
        CloudError::Unread { .. } => Class::Infra,
        _ => Class::Config,
    };
    SchedulerError::new(class, operation, error)
}

/// Whether the same call may be answered later.
pub(crate) fn may_pass(error: &CloudError) -> bool {
    match error {
        CloudError::Refused { status, .. } => *status >= 500 || error.kind() == Kind::Throttled,
        CloudError::Unreached { .. } | CloudError::CredentialsLost(_) => true,
        CloudError::Unread { .. } | CloudError::NoCredentials(_) | CloudError::NoRegion(_) => false,
    }
}

/// The error of a call for what runs already. It was allowed before, so that it passes by itself.
pub(crate) fn of_running(error: CloudError, operation: &str) -> SchedulerError {
    SchedulerError::new(Class::Outage, operation, error)
}
