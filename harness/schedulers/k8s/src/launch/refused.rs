//! The reasons why an object was not created, and whether waiting helps.

use crate::{
    api::Resource,
    client::{ApiError, Why},
    job::Object,
    quota::{self, Decision, Refusal},
};
use muster_core::error::{Class, SchedulerError};

/// Why there is no object.
pub(super) enum Refused {
    /// A quota is full.
    NoRoom(Refusal, String),
    /// What was granted before is not granted now.
    Withdrawn(Resource, Box<ApiError>),
    /// Something else has its name.
    Taken(String),
    Failed(SchedulerError),
}

impl Refused {
    /// Of the answer to a creation that is not about its name.
    pub(super) fn of(object: &Object, error: ApiError) -> Self {
        let is_certain = match error.why() {
            Why::Withdrawn => return Self::Withdrawn(object.resource.clone(), Box::new(error)),
            why => matches!(why, Why::NotAllowed | Why::Unauthorized),
        };
        match Self::by_quota(object, error) {
            Self::Failed(error) if is_certain => Self::Failed(error.with_nothing_created()),
            refused => refused,
        }
    }

    /// Whether a quota refuses for now or for ever, or the reason is another.
    pub(super) fn by_quota(object: &Object, error: ApiError) -> Self {
        let Some(refusal) = quota::read(&error.message()) else { return Self::Failed(error.classify()) };
        match refusal.decide() {
            Decision::Wait(why) => Self::NoRoom(refusal, why),
            Decision::Never(why) => Self::never(object, &why),
        }
    }

    pub(super) fn never(object: &Object, why: &str) -> Self {
        let what = format!("create {}: {why}", object.title());
        Self::Failed(SchedulerError::plain(Class::Config, what))
    }
}
