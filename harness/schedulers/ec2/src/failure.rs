//! What follows from a call that gave no answer.

use crate::cloud::{CloudError, Kind};
use muster_core::error::{Class, SchedulerError};

/// The error of a call that launches: what EC2 refuses cannot work, and what it does not answer may pass.
pub(crate) fn of_launch(error: CloudError, operation: &str) -> SchedulerError {
    let class = match &error {
        CloudError::Refused { status, .. } if *status >= 500 => Class::Outage,
        CloudError::Refused { .. } if error.kind() == Kind::Throttled => Class::Outage,
        CloudError::Refused { .. } | CloudError::NoCredentials { .. } | CloudError::NoRegion(_) => Class::Config,
        CloudError::Unreached { .. } => Class::Outage,
        CloudError::Unread { .. } => Class::Infra,
    };
    SchedulerError::new(class, operation, error)
}

/// The error of a call for what runs already. It was allowed before, so that it passes by itself.
pub(crate) fn of_running(error: CloudError, operation: &str) -> SchedulerError {
    SchedulerError::new(Class::Outage, operation, error)
}
