//! Distinguishes a missing right from a server that has not loaded its rules yet.
//!
//! ```text
//!                              granted before, or the server has just failed or come back
//! 401, 403, 404 of a kind ---> yes: it may pass, for a minute        no: final
//!                              (a creation: as long as `gate` says)
//! ```
//! An API server that starts answers 403 until its caches are full, and 401 or 404 to some. A `RoleBinding` that is replaced is
//! absent for a moment. Neither says anything about a request that the server has granted before.

use super::{ApiError, Asked, Refused, Why};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::time::Instant;

/// A refusal that lasts longer is final.
pub(crate) const REFUSAL_LIMIT: Duration = Duration::from_mins(1);

/// Verb and resource: RBAC grants no less.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Right {
    /// To be known at all.
    Credentials,
    /// `create jobs.batch`
    Rule(&'static str, String),
}

/// What one server has granted and refused in one namespace.
#[derive(Debug, Default)]
pub(in crate::client) struct Grants {
    granted: BTreeSet<Right>,
    /// Refused for good before anything else failed: no part of the account's Role.
    denied: BTreeSet<Right>,
    /// Since when, and when last.
    refused: BTreeMap<Right, (Instant, Instant)>,
    /// When the server last failed to answer, or refused what it had granted.
    unsettled: Option<Instant>,
}

/// Whether a refusal may pass by itself.
fn may_pass(was_granted: bool, is_unsettled: bool, refused_for: Duration) -> bool {
    (was_granted || is_unsettled) && refused_for < REFUSAL_LIMIT
}

impl Grants {
    /// Takes note of an answer, and marks a refusal that may pass.
    pub(in crate::client) fn judge<T>(
        &mut self,
        asked: &Asked,
        answer: Result<T, ApiError>,
        now: Instant,
    ) -> Result<T, ApiError> {
        let mut error = match answer {
            Ok(answer) => {
                self.grant(asked);
                return Ok(answer);
            }
            Err(error) => error,
        };
        match &mut error {
            ApiError::NoAnswer { .. } => self.unsettled = Some(now),
            ApiError::Refused(refused) if refused.code >= 500 => self.unsettled = Some(now),
            ApiError::Refused(refused) => {
                if let Some(right) = right_of(refused) {
                    refused.passes = self.refuse(right, asked.verb == "create", now);
                }
            }
            _ => {}
        }
        Err(error)
    }

    fn grant(&mut self, asked: &Asked) {
        for right in [Right::Credentials, rule(asked)] {
            self.refused.remove(&right);
            self.denied.remove(&right);
            self.granted.insert(right);
        }
    }

    /// Whether the refusal may pass. A creation may for ever: the gate of launches says for how long a case is tried.
    fn refuse(&mut self, right: Right, is_creation: bool, now: Instant) -> bool {
        let recent = |then: &Instant| now.duration_since(*then) < REFUSAL_LIMIT;
        let is_unsettled = self.unsettled.as_ref().is_some_and(recent) && !self.denied.contains(&right);
        let since = self.refused.get(&right).filter(|(_, last)| recent(last)).map_or(now, |(since, _)| *since);
        self.refused.insert(right.clone(), (since, now));
        let was_granted = self.granted.contains(&right);
        let refused_for = if is_creation { Duration::ZERO } else { now.duration_since(since) };
        let passes = may_pass(was_granted, is_unsettled, refused_for);
        if was_granted && passes {
            self.unsettled = Some(now);
        }
        if !was_granted && !passes {
            self.denied.insert(right);
        }
        passes
    }
}

fn rule(asked: &Asked) -> Right {
    // RBAC knows no versions, but a server may serve one and not another.
    Right::Rule(asked.verb, format!("{} {}", asked.right(), asked.resource.api_version()))
}

/// The right that a refusal denies; `None`: it is about the object, not about who asks.
fn right_of(refused: &Refused) -> Option<Right> {
    match refused.why() {
        Why::Unauthorized => Some(Right::Credentials),
        Why::NotAllowed | Why::NoNamespace | Why::NotServed => Some(rule(&refused.asked)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{ClusterPlace, Resource};

    fn asked(verb: &'static str, kind: &str, name: Option<&str>) -> Asked {
        let place = ClusterPlace { context: None, namespace: "n".into() };
        Asked { verb, resource: Resource::of("v1", kind), subresource: None, name: name.map(str::to_owned), place }
    }

    fn answer(asked: &Asked, code: u16) -> Result<(), ApiError> {
        let message = match code {
            200 => return Ok(()),
            0 => return Err(ApiError::NoAnswer { asked: Box::new(asked.clone()), why: "connection refused".into() }),
            403 => r#"pods is forbidden: User "u" cannot list resource "pods" in API group """#,
            404 => "404 page not found",
            _ => "",
        };
        Err(Refused::new(asked.clone(), code, message.as_bytes(), None).into())
    }

    #[test]
    fn a_refusal_passes_for_a_minute_where_something_speaks_for_it() {
        let rows = [
            (false, false, 0, false),
            (true, false, 0, true),
            (true, false, 59, true),
            (true, false, 60, false),
            (false, true, 0, true),
            (false, true, 60, false),
            (true, true, 60, false),
        ];
        for (was_granted, is_unsettled, seconds, passes) in rows {
            let refused_for = Duration::from_secs(seconds);
            assert_eq!(may_pass(was_granted, is_unsettled, refused_for), passes, "{was_granted} {is_unsettled} {seconds}");
        }
    }

    #[test]
    fn what_was_granted_before_is_refused_for_good_after_a_minute() {
        // At this second: what was asked, the answer, and whether the refusal may pass.
        type Row = (u64, (&'static str, &'static str), u16, bool);
        let rows: [&[Row]; 10] = [
            // Nothing was granted.
            &[(0, ("list", "Pod"), 403, false), (9, ("list", "Pod"), 403, false)],
            &[(0, ("list", "Pod"), 401, false)],
            // Granted before, refused for a minute, granted again, refused again.
            &[(0, ("list", "Pod"), 200, false), (9, ("list", "Pod"), 403, true), (68, ("list", "Pod"), 403, true)],
            &[
                (0, ("list", "Pod"), 200, false),
                (9, ("list", "Pod"), 403, true),
                (50, ("list", "Pod"), 403, true),
                (69, ("list", "Pod"), 403, false),
            ],
            &[(0, ("list", "Pod"), 200, false), (9, ("list", "Pod"), 403, true), (200, ("list", "Pod"), 403, true)],
            &[
                (0, ("create", "Pod"), 200, false),
                (9, ("create", "Pod"), 403, true),
                (50, ("create", "Pod"), 401, true),
                (69, ("create", "Pod"), 403, true),
            ],
            // Another right proves nothing, unless the server has failed or refuses what it granted.
            &[(0, ("list", "Pod"), 200, false), (9, ("create", "Pod"), 403, false)],
            &[(0, ("list", "Pod"), 200, false), (9, ("list", "Pod"), 403, true), (10, ("create", "Pod"), 403, true)],
            &[
                (0, ("list", "Pod"), 0, false),
                (9, ("create", "Pod"), 403, true),
                (30, ("list", "Pod"), 404, true),
                (69, ("list", "Secret"), 403, false),
            ],
            // What was denied before the server failed is denied after it.
            &[(0, ("list", "Event"), 403, false), (1, ("list", "Pod"), 0, false), (2, ("list", "Event"), 403, false)],
        ];
        let start = Instant::now();
        for row in rows {
            let mut grants = Grants::default();
            for (second, (verb, kind), code, passes) in row {
                let asked = asked(verb, kind, None);
                let judged = grants.judge(&asked, answer(&asked, *code), start + Duration::from_secs(*second));
                let marked = judged.is_err_and(|error| error.why() == Why::Withdrawn);
                assert_eq!(marked, *passes, "at {second}: {row:?}");
            }
        }
    }

    #[test]
    fn an_object_that_is_not_there_is_no_refusal() {
        let mut grants = Grants::default();
        let asked = asked("get", "Pod", Some("x"));
        let missing = || Refused::new(asked.clone(), 404, br#"{"code": 404, "message": "pods \"x\" not found"}"#, None).into();
        let now = Instant::now();
        assert!(grants.judge(&asked, Ok(()), now).is_ok());
        let judged: Result<(), ApiError> = grants.judge(&asked, Err(missing()), now);
        assert!(judged.is_err_and(|error| error.is_gone()));
    }
}
