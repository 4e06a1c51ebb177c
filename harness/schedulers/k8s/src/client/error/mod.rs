//! Errors of requests: what was asked, what the server answered, and the reason ([`Why`]).

mod classify;
pub(super) mod grants;

use crate::api::{ClusterPlace, Resource};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusCause, StatusDetails};
use kube::client::AuthError;
use muster_text::Value;
use std::{error::Error as StdError, fmt, path::PathBuf, time::Duration};

/// A request to the API server: enough for a sentence about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The verb in RBAC's words: `create`, `get`, `list`, `watch`, `patch`, `update`, `delete`.
    pub verb: &'static str,
    /// The kind of object.
    pub resource: Resource,
    /// `log`
    pub subresource: Option<&'static str>,
    /// The object's name; `None`: all objects.
    pub name: Option<String>,
    pub place: ClusterPlace,
}

impl Asked {
    /// `pods/log`, as in a Role.
    pub fn right(&self) -> String {
        let plural = self.resource.plural.clone().unwrap_or_else(|| self.resource.kind.to_lowercase());
        match self.subresource {
            Some(part) => format!("{plural}/{part}"),
            None => plural,
        }
    }

    /// The rule of a Role that allows it, in one line of YAML.
    pub fn rule(&self) -> String {
        let group = if self.resource.group.is_empty() { "\"\"" } else { &self.resource.group };
        format!("{{apiGroups: [{group}], resources: [{}], verbs: [{}]}}", self.right(), self.verb)
    }

    /// `jobs.batch rfm-x`, or `pods/log rfm-x`
    fn subject(&self) -> String {
        let mut subject = self.resource.for_kubectl();
        for (separator, part) in [('/', self.subresource), (' ', self.name.as_deref())] {
            if let Some(part) = part {
                subject.extend([separator]);
                subject += part;
            }
        }
        subject
    }

    /// `create jobs.batch rfm-x`
    fn action(&self) -> String {
        format!("{} {}", self.verb, self.subject())
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.action(), self.place)
    }
}

/// An operation on the API server that failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ApiError {
    /// It refused the request.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// It did not answer, or the answer broke off.
    #[error("{asked}: {why}")]
    NoAnswer {
        asked: Box<Asked>,
        /// `Connection refused (os error 111)`
        why: String,
    },
    /// It does not serve such a kind.
    #[error("the API server of {place} does not know {kind} ({api_version}): {hint}")]
    UnknownKind {
        /// `Job`
        kind: String,
        /// `batch/v1`
        api_version: String,
        place: ClusterPlace,
        /// The kinds or versions that it does know, or what to install.
        hint: String,
    },
    /// It has no namespace: not ours to create.
    #[error(
        "{kind} ({api_version}) belongs to the whole cluster, not to a namespace: Muster creates only what a namespace can hold"
    )]
    ClusterScoped {
        /// `Node`
        kind: String,
        /// `v1`
        api_version: String,
    },
    /// The kubeconfig leads to no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

/// The reason why there is no connection.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be read, or has no such context.
    #[error(transparent)]
    Kubeconfig(#[from] ContextError),
    /// Neither a context, nor a pod to run in.
    #[error("no context is named, and Muster does not run in a pod: {0}")]
    NotInCluster(String),
    /// There are no credentials now.
    #[error("context {context}: {why}")]
    Credentials {
        /// The context, or `in-cluster`.
        context: String,
        /// One sentence, with the program's name if it is a plugin's doing.
        why: String,
    },
    /// The context has settings that cannot be used.
    #[error("context {context} cannot be used: {why}")]
    Unusable {
        /// The context, or `in-cluster`.
        context: String,
        /// One sentence.
        why: String,
    },
}

/// The reason why there is no place to run in.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ContextError {
    /// Neither a kubeconfig nor a pod's ServiceAccount.
    #[error("no kubeconfig at {0}, and Muster does not run in a pod with a service account; set KUBECONFIG")]
    NoCluster(String),
    /// There are contexts, these, and none of them is the current one.
    #[error("the kubeconfig has no current context; write `context` in `sched_options`: {0}")]
    NoCurrent(String),
    /// A name that is in no kubeconfig.
    #[error("no context `{name}` in the kubeconfig; known: {known}")]
    Unknown {
        /// The name as written.
        name: String,
        /// The contexts that exist, the nearest name first.
        known: String,
    },
    /// A file that is not a kubeconfig. Its parser's own words are not passed on: they quote the lines, tokens and all.
    #[error("the kubeconfig {path} cannot be read: {why}")]
    Kubeconfig { path: PathBuf, why: String },
}

/// A refusal.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    pub asked: Asked,
    /// The HTTP status.
    pub code: u16,
    /// `AlreadyExists`
    pub reason: String,
    /// The server's words.
    pub message: String,
    /// `details.causes`: which field, and what of it.
    pub causes: Vec<StatusCause>,
    /// `details.kind`: what was not found, what is there already.
    pub about: Option<String>,
    /// The time to wait before the next request, from the header `Retry-After` or the details.
    pub retry_after: Option<Duration>,
    /// It may pass by itself: such a request was granted before, or the server has just failed.
    pub passes: bool,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.message.as_str(), self.reason.as_str()) {
            ("", "") => write!(f, "{}: HTTP {}", self.asked, self.code),
            ("", reason) => write!(f, "{}: {reason} (HTTP {})", self.asked, self.code),
            (message, _) => f.write_str(message),
        }
    }
}

impl Refused {
    /// From the body of an answer, which is text where a proxy has answered.
    pub(super) fn new(asked: Asked, code: u16, body: &[u8], retry_after: Option<Duration>) -> Self {
        let text = || {
            let text = String::from_utf8_lossy(body);
            let line: String = text.lines().next().unwrap_or_default().chars().take(300).collect();
            Status { message: Some(line.trim().to_owned()), ..Status::default() }
        };
        let object = serde_json::from_slice(body).ok().filter(Value::is_object);
        let status = object.map_or_else(text, |object| status(&object));
        Self::of(asked, code, status, retry_after)
    }

    pub(super) fn of(asked: Asked, code: u16, status: Status, retry_after: Option<Duration>) -> Self {
        let details = status.details.unwrap_or_default();
        let seconds = details.retry_after_seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
        Self {
            asked,
            code,
            reason: status.reason.unwrap_or_default(),
            message: status.message.unwrap_or_default(),
            causes: details.causes.unwrap_or_default(),
            about: details.kind,
            retry_after: retry_after.or(seconds.map(Duration::from_secs)),
            passes: false,
        }
    }
}

/// A `Status` field by field: a gateway before the server may write one with fields of other types.
pub(super) fn status(object: &Value) -> Status {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let details = &object["details"];
    let causes = details["causes"].as_array().into_iter().flatten();
    let cause = |cause: &Value| StatusCause {
        field: text(&cause["field"]),
        message: text(&cause["message"]),
        reason: text(&cause["reason"]),
    };
    Status {
        code: object["code"].as_i64().and_then(|code| i32::try_from(code).ok()),
        reason: text(&object["reason"]),
        message: text(&object["message"]),
        details: Some(StatusDetails {
            kind: text(&details["kind"]),
            causes: Some(causes.map(cause).collect()),
            retry_after_seconds: details["retryAfterSeconds"].as_i64().and_then(|seconds| i32::try_from(seconds).ok()),
            ..StatusDetails::default()
        }),
        ..Status::default()
    }
}

/// The reason why a request failed, as far as it decides what happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The credentials are not accepted.
    Unauthorized,
    /// RBAC: a rule is missing.
    NotAllowed,
    /// There is no such namespace.
    NoNamespace,
    /// The namespace is being deleted.
    NamespaceEnds,
    /// A quota is full, or can never fit: the directory `quota` decides which.
    Quota,
    /// Pod Security forbids such a pod.
    PodSecurity,
    /// Another admission rule forbids it: a `LimitRange`, a webhook, a policy.
    Admission,
    /// There is no such object.
    NotFound,
    /// The server has no such kind of object, or does not know it yet.
    NotServed,
    /// There is an object of this name already.
    Exists,
    /// The object was changed, or has another uid.
    Conflict,
    /// The object is wrong.
    Invalid,
    /// Our version is too old: list again.
    Expired,
    /// Refused as `Unauthorized`, `NotAllowed`, `NoNamespace` or `NotServed`, which may pass within a minute.
    Withdrawn,
    /// It will pass: the server is busy, restarting, or not to be reached.
    Transient,
    /// Anything else.
    Other,
}

impl Why {
    /// Returns whether the same request may succeed later without any change. A new reason has to be decided here: no `_` arm.
    pub fn passes(self) -> bool {
        match self {
            Self::Transient | Self::Withdrawn => true,
            Self::Unauthorized
            | Self::NotAllowed
            | Self::NoNamespace
            | Self::NamespaceEnds
            | Self::Quota
            | Self::PodSecurity
            | Self::Admission
            | Self::NotFound
            | Self::NotServed
            | Self::Exists
            | Self::Conflict
            | Self::Invalid
            | Self::Expired
            | Self::Other => false,
        }
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        Self::Refused(Box::new(refused))
    }
}

impl ApiError {
    /// The reason.
    pub fn why(&self) -> Why {
        match self {
            Self::Refused(refused) if refused.passes => Why::Withdrawn,
            Self::Refused(refused) => refused.why(),
            Self::NoAnswer { .. } | Self::Connect(ConnectError::Credentials { .. }) => Why::Transient,
            Self::UnknownKind { .. } | Self::ClusterScoped { .. } | Self::Connect(_) => Why::Other,
        }
    }

    /// Nothing came back.
    pub(crate) fn is_silence(&self) -> bool {
        matches!(self, Self::NoAnswer { .. })
    }

    /// Returns whether there is no such object.
    pub fn is_gone(&self) -> bool {
        matches!(self.why(), Why::NotFound | Why::NotServed | Why::NoNamespace)
    }

    /// Returns the time to wait before the next request, if the server gave one.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refused) => refused.retry_after,
            _ => None,
        }
    }

    /// The error as a final one.
    #[must_use]
    pub fn for_good(self) -> Self {
        match self {
            Self::Refused(refused) => Refused { passes: false, ..*refused }.into(),
            other => other,
        }
    }

    /// The server's own words.
    pub fn message(&self) -> String {
        match self {
            Self::Refused(refused) => refused.message.clone(),
            other => other.to_string(),
        }
    }
}

impl Refused {
    /// The reason: by status first, then by the words that the API server has used for years.
    pub fn why(&self) -> Why {
        let says = |words: &str| self.message.contains(words);
        match self.code {
            401 => Why::Unauthorized,
            403 if says("exceeded quota: ") => Why::Quota,
            // A quota, or a namespace's default account, that its controller has not seen yet.
            403 if says("status unknown for quota") || says("serviceaccount \"default\" not found") => Why::Transient,
            // An admission rule of a server that has just started.
            403 if says("not yet ready to handle request") => Why::Transient,
            403 if self.causes.iter().any(|cause| cause.reason.as_deref() == Some("NamespaceTerminating"))
                || says("is being terminated") =>
            {
                Why::NamespaceEnds
            }
            403 if says(" cannot ") && (says(" resource \"") || says(" path \"")) => Why::NotAllowed,
            403 if says("violates PodSecurity") => Why::PodSecurity,
            403 => Why::Admission,
            404 if self.about.as_deref() == Some("namespaces") || says("namespaces \"") => Why::NoNamespace,
            404 if self.asked.name.is_none() || says("could not find the requested resource") || says("page not found") => {
                Why::NotServed
            }
            404 => Why::NotFound,
            409 if self.reason == "AlreadyExists" => Why::Exists,
            // Two creations that count against one quota at the same moment.
            409 if says("resourcequotas") => Why::Transient,
            409 => Why::Conflict,
            410 => Why::Expired,
            400 if says("admission webhook") => Why::Admission,
            400 | 413 | 422 => Why::Invalid,
            408 | 429 | 500 | 502..=504 => match self.reason.as_str() {
                "Expired" | "Gone" => Why::Expired,
                _ => Why::Transient,
            },
            _ if says("admission webhook") => Why::Admission,
            _ => Why::Other,
        }
    }
}

/// The innermost cause, for kube's texts repeat what they wrap; and nothing that a credential plugin has printed.
pub(super) fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let mut innermost = error;
    loop {
        if let Some(AuthError::AuthExecRun { cmd, out }) = innermost.downcast_ref::<AuthError>() {
            return format!("the credential plugin `{}` failed: {}", program(cmd), out.status);
        }
        match innermost.source() {
            Some(source) => innermost = source,
            None => return innermost.to_string(),
        }
    }
}

/// Arguments may hold secrets.
fn program(command: &str) -> &str {
    command.split_whitespace().next().unwrap_or(command).trim_matches('"')
}
