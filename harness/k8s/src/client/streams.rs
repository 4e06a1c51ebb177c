//! Answers that do not end by themselves: a container's log and a watch. One attempt each; whoever reads opens again.

use super::{
    Cluster,
    connect::root_cause,
    count::RequestKind,
    error::{ApiError, Refused, Status},
    path,
    send::Call,
    slim,
};
use crate::{clock, handle::Resource};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use http::Method;
use http_body_util::BodyExt;
use kube::client::Body;
use memchr::memchr;
use muster_core::{Value, time::Timestamp};
use serde::Deserialize;
use std::io;

/// The server ends a watch after this time; kept below what load balancers allow an idle connection.
const WATCH_SECONDS: &str = "290";

/// Which part of which log. Every line carries its time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogQuery {
    /// Which container.
    pub container: String,
    /// Stay and read on.
    pub follow: bool,
    /// Only lines of this second and later: the kubelet cuts it to whole seconds.
    pub since: Option<Timestamp>,
    /// The log of the container's life before this one.
    pub previous: bool,
    /// At most so many bytes.
    pub limit_bytes: Option<u64>,
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchEvent {
    /// It is new or different: as it is now.
    Applied(Value),
    /// It is gone: as it was last.
    Deleted(Value),
    /// Nothing of ours happened up to this version.
    Bookmark(String),
}

#[derive(Deserialize)]
struct Line {
    r#type: String,
    #[serde(deserialize_with = "slim::object")]
    object: Value,
}

impl Cluster {
    /// The log of one container, byte for byte, each line behind its time.
    ///
    /// # Errors
    /// Why there is none; an answer that breaks off ends in an `io::Error`.
    pub async fn log(
        &self,
        pod: &str,
        query: &LogQuery,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + Unpin + use<>, ApiError> {
        let resource = self.resolve(&Resource::of("v1", "Pod")).await?;
        let since = query.since.and_then(clock::rfc3339);
        let limit = query.limit_bytes.map(|bytes| bytes.to_string());
        let flag = |set: bool| set.then_some("true");
        let options = path::query(&[
            ("container", Some(&query.container)),
            ("timestamps", Some("true")),
            ("follow", flag(query.follow)),
            ("previous", flag(query.previous)),
            ("sinceTime", since.as_deref()),
            ("limitBytes", limit.as_deref()),
        ]);
        let path = path::objects(&resource, &self.place.namespace, Some(pod), Some("log")) + &options;
        let asked = super::Asked { subresource: Some("log"), ..self.asked("get", &resource, Some(pod)) };
        let call = Call { kind: RequestKind::Log, asked, method: Method::GET, path, body: None };
        Ok(pieces(self.open(&call).await?.into_body()))
    }

    /// Changes of all objects of a kind that carry the labels, from a version on.
    ///
    /// # Errors
    /// Why there is no watch; within the stream, why it ended other than by its time.
    pub async fn watch(
        &self,
        resource: &Resource,
        selector: Option<&str>,
        version: &str,
    ) -> Result<impl Stream<Item = Result<WatchEvent, ApiError>> + Send + Unpin + use<>, ApiError> {
        let resource = self.resolve(resource).await?;
        let options = path::query(&[
            ("watch", Some("true")),
            ("allowWatchBookmarks", Some("true")),
            ("timeoutSeconds", Some(WATCH_SECONDS)),
            ("labelSelector", selector),
            ("resourceVersion", Some(version)),
        ]);
        let path = path::objects(&resource, &self.place.namespace, None, None) + &options;
        let asked = self.asked("watch", &resource, None);
        let call = Call { kind: RequestKind::Watch, asked, method: Method::GET, path, body: None };
        let body = self.open(&call).await?.into_body();
        Ok(events(pieces(body), call))
    }
}

/// The data of a body, as it comes.
fn pieces(body: Body) -> impl Stream<Item = io::Result<Bytes>> + Send + Unpin + use<> {
    body.into_data_stream().map(|piece| piece.map_err(|error| io::Error::other(root_cause(&error))))
}

struct Lines<S> {
    pieces: S,
    rest: BytesMut,
    call: Call,
}

/// One JSON object a line.
fn events<S>(pieces: S, call: Call) -> impl Stream<Item = Result<WatchEvent, ApiError>> + Send + Unpin
where
    S: Stream<Item = io::Result<Bytes>> + Send + Unpin,
{
    let lines = Lines { pieces, rest: BytesMut::new(), call };
    Box::pin(stream::unfold(lines, |mut lines| async move {
        loop {
            if let Some(end) = memchr(b'\n', &lines.rest) {
                let line = lines.rest.split_to(end + 1);
                let event = read(&line, &lines.call);
                return Some((event, lines));
            }
            match lines.pieces.next().await? {
                Ok(piece) => lines.rest.extend_from_slice(&piece),
                Err(error) => {
                    let error = lines.call.no_answer(error.to_string());
                    return Some((Err(error), lines));
                }
            }
        }
    }))
}

fn read(line: &[u8], call: &Call) -> Result<WatchEvent, ApiError> {
    let broken = |why: String| call.no_answer(format!("the watch says something that is no event: {why}"));
    let Line { r#type, object } = serde_json::from_slice(line).map_err(|error| broken(error.to_string()))?;
    match r#type.as_str() {
        "ADDED" | "MODIFIED" => Ok(WatchEvent::Applied(object)),
        "DELETED" => Ok(WatchEvent::Deleted(object)),
        "BOOKMARK" => Ok(WatchEvent::Bookmark(object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())),
        "ERROR" => {
            let status: Status = serde_json::from_value(object).map_err(|error| broken(error.to_string()))?;
            let code = status.code;
            Err(Refused::of(call.asked.clone(), code, status, None).into())
        }
        other => Err(broken(format!("type {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        client::error::{Asked, Why},
        handle::ClusterPlace,
    };

    fn call() -> Call {
        let place = ClusterPlace { context: None, namespace: "n".into() };
        let asked = Asked { verb: "watch", resource: Resource::of("v1", "Pod"), subresource: None, name: None, place };
        Call { kind: RequestKind::Watch, asked, method: Method::GET, path: String::new(), body: None }
    }

    #[tokio::test]
    async fn a_watch_is_the_same_however_its_bytes_are_cut() {
        let text = concat!(
            r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#,
            "\n",
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}"#,
            "\n",
            r#"{"type":"DELETED","object":{"metadata":{"name":"a"}}}"#,
            "\n",
        );
        for size in 1..text.len() {
            let pieces = text.as_bytes().chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece)));
            let events: Vec<WatchEvent> = events(stream::iter(pieces), call()).map(Result::unwrap).collect().await;
            let object = serde_json::json!({"metadata": {"name": "a"}});
            let expected = [WatchEvent::Applied(object.clone()), WatchEvent::Bookmark("7".into()), WatchEvent::Deleted(object)];
            assert_eq!(events, expected, "pieces of {size} bytes");
        }
    }

    #[test]
    fn an_old_version_is_told_from_a_broken_stream() {
        let expired = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        assert_eq!(read(expired, &call()).unwrap_err().why(), Why::Expired);
        assert_eq!(read(b"{\"type\":", &call()).unwrap_err().why(), Why::Transient);
    }
}
