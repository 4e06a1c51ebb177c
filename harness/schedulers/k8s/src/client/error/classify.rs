//! The message and the class of every error of the API server.

use super::{ApiError, Asked, ConnectError, Refused, Why};
use muster_core::error::{Class, SchedulerError};

impl ApiError {
    /// Turns the error into one for the session: what failed, what to do, and whether to try again.
    pub fn classify(self) -> SchedulerError {
        match self {
            Self::Refused(refused) => refused.classify(),
            Self::NoAnswer { asked, why } => {
                let place = &asked.place;
                let operation = format!("{}: the API server of {place} does not answer", asked.action());
                SchedulerError::new(Class::Outage, operation, why)
            }
            Self::Connect(ConnectError::Credentials { .. }) => SchedulerError::plain(Class::Outage, self.to_string()),
            Self::UnknownKind { .. } | Self::ClusterScoped { .. } | Self::Connect(_) => {
                SchedulerError::plain(Class::Config, self.to_string())
            }
        }
    }
}

impl Refused {
    fn classify(self) -> SchedulerError {
        let (class, operation) = self.sentence();
        let class = if self.passes { Class::Outage } else { class };
        let cause = self.cause();
        let retry_after = self.retry_after;
        let error = match cause {
            Some(cause) => SchedulerError::new(class, operation, cause),
            None => SchedulerError::plain(class, operation),
        };
        SchedulerError { retry_after, ..error }
    }

    fn sentence(&self) -> (Class, String) {
        let asked = &self.asked;
        let Asked { place, .. } = asked;
        let (what, thing) = (asked.action(), asked.subject());
        match self.why() {
            Why::Unauthorized => {
                (Class::Config, format!("{what}: the API server of {place} does not accept the credentials; log in again"))
            }
            Why::NotAllowed => (
                Class::Config,
                format!("{what}: the right to do so in {place} is missing; add this rule to a Role there: {}", asked.rule()),
            ),
            Why::NoNamespace => (Class::Config, format!("{what}: there is no {place}; create it, or set `namespace`")),
            Why::NamespaceEnds => {
                (Class::Config, format!("{what}: {place} is being deleted; wait for its end, or set `namespace`"))
            }
            Why::Quota => (Class::Infra, format!("{what}: no room in {place}")),
            Why::PodSecurity => (
                Class::Config,
                format!("{what}: Pod Security of {place} forbids this pod; change its securityContext, or the namespace's level"),
            ),
            Why::Admission => (Class::Config, format!("{what}: an admission rule of {place} forbids it; change the manifest")),
            Why::NotServed => {
                let kind = asked.resource.for_kubectl();
                (Class::Config, format!("{what}: the API server of {place} does not serve {kind}; install its operator"))
            }
            Why::NotFound => (Class::Gone, format!("{what}: there is no {thing} in {place}")),
            Why::Exists => (Class::Infra, format!("{what}: there is another {thing} in {place}, and it is not this case's")),
            Why::Conflict => (Class::Infra, format!("{what}: {thing} in {place} was changed at the same time")),
            Why::Invalid => (Class::Config, format!("{what}: the API server finds the object invalid; change the manifest")),
            Why::Expired => (Class::Infra, format!("{what}: the API server of {place} has forgotten this version")),
            // `Withdrawn` is a mark that this reason never is.
            Why::Transient | Why::Withdrawn => (Class::Outage, format!("{what}: the API server of {place} cannot do it now")),
            Why::Other => (Class::Infra, format!("{what}: the API server of {place} answers HTTP {}", self.code)),
        }
    }

    /// The server's words; of an invalid object one line a field.
    fn cause(&self) -> Option<String> {
        if self.why() == Why::Invalid && !self.causes.is_empty() {
            let fields = self.causes.iter().map(|cause| {
                let message = cause.message.as_deref().unwrap_or_default();
                match cause.field.as_deref().unwrap_or_default() {
                    "" => message.to_owned(),
                    field => format!("{field}: {message}"),
                }
            });
            return Some(fields.collect::<Vec<_>>().join("; "));
        }
        (!self.message.is_empty()).then(|| self.message.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{ClusterPlace, Resource};
    use muster_core::error::chain;
    use std::{fmt::Write, time::Duration};

    fn asked(verb: &'static str) -> Asked {
        let resource = Resource { plural: Some("jobs".into()), ..Resource::of("batch/v1", "Job") };
        let place = ClusterPlace { context: Some("eidf".into()), namespace: "n".into() };
        Asked { verb, resource, subresource: None, name: Some("rfm-x".into()), place }
    }

    fn refused(code: u16, reason: &str, message: &str) -> Refused {
        let body = serde_json::json!({"kind": "Status", "code": code, "reason": reason, "message": message}).to_string();
        Refused::new(asked("create"), code, body.as_bytes(), None)
    }

    #[test]
    fn every_refusal_has_its_reason_and_its_sentence() {
        let rows = [
            (401, "Unauthorized", "Unauthorized", Why::Unauthorized),
            (
                403,
                "Forbidden",
                "jobs.batch is forbidden: User \"u\" cannot create resource \"jobs\" in API group \"batch\" in the namespace \"n\"",
                Why::NotAllowed,
            ),
            (
                403,
                "Forbidden",
                "pods \"x\" is forbidden: exceeded quota: compute, requested: requests.cpu=2, used: requests.cpu=3, limited: requests.cpu=4",
                Why::Quota,
            ),
            (403, "Forbidden", "pods \"x\" is forbidden: failed quota: compute: must specify limits.cpu for: c1", Why::Admission),
            (403, "Forbidden", "pods \"x\" is forbidden: status unknown for quota: compute, resources: pods", Why::Transient),
            (
                403,
                "Forbidden",
                "pods \"x\" is forbidden: error looking up service account n/default: serviceaccount \"default\" not found",
                Why::Transient,
            ),
            (
                403,
                "Forbidden",
                "pods \"x\" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi",
                Why::Admission,
            ),
            (
                403,
                "Forbidden",
                "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": privileged (container \"c\" must not set it)",
                Why::PodSecurity,
            ),
            (
                403,
                "Forbidden",
                "jobs.batch \"x\" is forbidden: unable to create new content in namespace n because it is being terminated",
                Why::NamespaceEnds,
            ),
            (400, "BadRequest", "admission webhook \"w\" denied the request: no", Why::Admission),
            (
                500,
                "InternalError",
                "Internal error occurred: failed calling webhook \"w\": no endpoints available",
                Why::Transient,
            ),
            (404, "NotFound", "namespaces \"n\" not found", Why::NoNamespace),
            (404, "NotFound", "jobs.batch \"rfm-x\" not found", Why::NotFound),
            (409, "AlreadyExists", "jobs.batch \"rfm-x\" already exists", Why::Exists),
            (
                409,
                "Conflict",
                "Operation cannot be fulfilled on resourcequotas \"q\": the object has been modified",
                Why::Transient,
            ),
            (409, "Conflict", "Precondition failed: UID in precondition: a, UID in object meta: b", Why::Conflict),
            (410, "Expired", "too old resource version: 1 (9)", Why::Expired),
            (422, "Invalid", "Job.batch \"rfm-x\" is invalid", Why::Invalid),
            (429, "TooManyRequests", "too many requests, please try again later", Why::Transient),
            (500, "InternalError", "etcdserver: leader changed", Why::Transient),
            (503, "ServiceUnavailable", "apiserver is shutting down", Why::Transient),
            (418, "", "", Why::Other),
        ];
        let mut text = String::new();
        for (code, reason, message, why) in rows {
            let refused = refused(code, reason, message);
            assert_eq!(refused.why(), why, "{message}");
            let error = refused.classify();
            let _ = writeln!(text, "{:?}: {}", error.class, chain(&error));
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn an_invalid_object_is_reported_field_by_field() {
        let body = r#"{"code": 422, "reason": "Invalid", "message": "long", "details": {"causes": [
            {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.template.spec.containers[0].image"},
            {"reason": "FieldValueInvalid", "message": "Invalid value: -1", "field": "spec.completions"}]}}"#;
        let error = Refused::new(asked("create"), 422, body.as_bytes(), None).classify();
        insta::assert_snapshot!(chain(&error), @"create jobs.batch rfm-x: the API server finds the object invalid; change the manifest: spec.template.spec.containers[0].image: Required value; spec.completions: Invalid value: -1");
    }

    #[test]
    fn the_time_to_come_back_is_taken_from_header_or_details() {
        let body = br#"{"code": 429, "details": {"retryAfterSeconds": 7}}"#;
        let from = |header: Option<u64>| Refused::new(asked("get"), 429, body, header.map(Duration::from_secs)).retry_after;
        assert_eq!((from(None), from(Some(3))), (Some(Duration::from_secs(7)), Some(Duration::from_secs(3))));
    }

    #[test]
    fn a_refusal_that_a_gateway_has_written_anew_is_classified_by_its_message() {
        let message = r#"pods is forbidden: User \"u\" cannot create resource \"pods\" in API group \"\" in the namespace \"n\""#;
        for more in
            [r#""status": 403, "error": "Forbidden""#, r#""details": []"#, r#""details": {"causes": [{"reason": null}, 1]}"#]
        {
            let body = format!(r#"{{"message": "{message}", {more}}}"#);
            assert_eq!(Refused::new(asked("create"), 403, body.as_bytes(), None).why(), Why::NotAllowed, "{more}");
        }
    }

    #[test]
    fn the_plain_text_of_a_proxy_is_reported_in_one_line() {
        let refused = Refused::new(asked("get"), 502, b"<html>Bad Gateway\n<p>more", None);
        assert_eq!((refused.why(), refused.message.as_str()), (Why::Transient, "<html>Bad Gateway"));
    }

    #[test]
    fn no_answer_is_an_outage_and_no_such_kind_is_configuration() {
        let place = asked("get").place;
        let silent = ApiError::NoAnswer { asked: Box::new(asked("get")), why: "Connection refused (os error 111)".into() };
        let unknown = ApiError::UnknownKind {
            kind: "IPUJob".into(),
            api_version: "graphcore.ai/v1".into(),
            place,
            hint: "it knows graphcore.ai/v1alpha1".into(),
        };
        let (silent, unknown) = (silent.classify(), unknown.classify());
        assert_eq!((silent.class, unknown.class), (Class::Outage, Class::Config));
        insta::assert_snapshot!(chain(&silent), @"get jobs.batch rfm-x: the API server of namespace n (context eidf) does not answer: Connection refused (os error 111)");
        insta::assert_snapshot!(chain(&unknown), @"the API server of namespace n (context eidf) does not know IPUJob (graphcore.ai/v1): it knows graphcore.ai/v1alpha1");
    }
}
