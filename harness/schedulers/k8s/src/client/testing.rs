//! A connection to a server that is a function: for tests of what follows from answers.

use super::{
    Cluster,
    error::{ApiError, Asked, Refused, Why},
};
use crate::api::{ClusterPlace, Resource};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use muster_text::Value;
use serde_json::json;
use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

/// What it answers.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    code: u16,
    header: Option<(&'static str, &'static str)>,
    body: String,
    /// A watch: the body does not end.
    stays: bool,
    /// Nothing comes.
    silent: bool,
}

impl Reply {
    pub(crate) fn json(body: &Value) -> Self {
        Self { code: 200, header: None, body: body.to_string(), stays: false, silent: false }
    }

    pub(crate) fn refusal(code: u16, reason: &str, message: &str) -> Self {
        let status = json!({"kind": "Status", "code": code, "reason": reason, "message": message});
        Self { code, ..Self::json(&status) }
    }

    /// No answer ever.
    pub(crate) fn silence() -> Self {
        Self { silent: true, ..Self::json(&Value::Null) }
    }

    /// Events of a watch, one a line.
    pub(crate) fn events(events: &[Value], stays: bool) -> Self {
        let body = events.iter().flat_map(|event| [event.to_string(), "\n".to_owned()]).collect();
        Self { code: 200, header: None, body, stays, silent: false }
    }

    pub(crate) fn list(version: &str, items: &[Value]) -> Self {
        Self::json(&json!({"metadata": {"resourceVersion": version}, "items": items}))
    }

    pub(crate) fn header(self, name: &'static str, value: &'static str) -> Self {
        Self { header: Some((name, value)), ..self }
    }

    fn response(self) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let text = stream::iter([Ok(http_body::Frame::data(Bytes::from(self.body)))]);
        let body = if self.stays {
            StreamBody::new(text.chain(stream::pending())).boxed_unsync()
        } else {
            StreamBody::new(text).boxed_unsync()
        };
        let mut response = Response::builder().status(self.code);
        if let Some((name, value)) = self.header {
            response = response.header(name, value);
        }
        response.body(body).unwrap()
    }
}

/// Everything that was asked, in order: `GET /api/v1/namespaces/n/pods?..`.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<Vec<String>>>);

impl Requests {
    /// Method and path, without the query.
    pub(crate) fn paths(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines.iter().map(|line| line.split('?').next().unwrap_or_default().replace("/namespaces/n", "")).collect()
    }

    pub(crate) fn full(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

pub(crate) fn place() -> ClusterPlace {
    ClusterPlace { context: None, namespace: "n".into() }
}

/// A list of pods that was refused for this reason.
pub(crate) fn refused(why: Why) -> ApiError {
    let asked = Asked { verb: "list", resource: Resource::of("v1", "Pod"), subresource: None, name: None, place: place() };
    let cannot = r#"pods is forbidden: User "u" cannot list resource "pods" in API group """#;
    let (code, message) = match why {
        Why::Invalid => (400, "unable to parse requirement"),
        Why::Unauthorized => (401, "Unauthorized"),
        Why::NotAllowed | Why::Withdrawn => (403, cannot),
        Why::NotServed => (404, "404 page not found"),
        Why::Expired => (410, "too old resource version"),
        Why::Transient => (503, "restarting"),
        other => panic!("no list is refused for {other:?}"),
    };
    let refused = Refused::new(asked, code, message.as_bytes(), None);
    Refused { passes: why == Why::Withdrawn, ..refused }.into()
}

/// The function is given `METHOD path?query` and the body that was sent.
pub(crate) fn cluster(answer: impl FnMut(&str, &Value) -> Reply + Send + 'static) -> (Arc<Cluster>, Requests) {
    let requests = Requests::default();
    let (log, answer) = (requests.clone(), Arc::new(Mutex::new(answer)));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (log, answer) = (log.clone(), Arc::clone(&answer));
        async move {
            let line = format!("{} {}", request.method(), request.uri());
            let sent = request.into_body().collect_bytes().await.unwrap_or_default();
            log.0.lock().unwrap().push(line.clone());
            let reply = (answer.lock().unwrap())(&line, &serde_json::from_slice(&sent).unwrap_or_default());
            if reply.silent {
                return std::future::pending().await;
            }
            Ok::<_, Infallible>(reply.response())
        }
    });
    (Cluster::new(place(), Some(kube::Client::new(service, "n")), Arc::default()), requests)
}
