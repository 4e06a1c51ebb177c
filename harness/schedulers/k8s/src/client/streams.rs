//! Answers that do not end by themselves: the log of a container and a watch. One attempt each; the reader opens the next.

use super::{
    Cluster,
    error::{ApiError, Asked, Refused, root_cause, status},
    path,
    send::{Call, date},
    slim,
};
use crate::api::{Resource, clock};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use http::Method;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Pod;
use kube::client::Body;
use memchr::memchr;
use muster_text::{
    Value,
    time::{Timestamp, format_duration},
};
use serde::{Deserialize, Deserializer};
use std::{io, time::Duration};
use tokio::time::timeout;

/// The server ends a watch after this time; kept below what load balancers allow an idle connection.
const WATCH_SECONDS: &str = "290";

/// A part of the log of one container. Every line carries its time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogQuery {
    /// The container's name.
    pub container: String,
    /// Stay and read on.
    pub follow: bool,
    /// The second of the oldest line: the kubelet cuts the time to whole seconds.
    pub since: Option<Timestamp>,
    /// The log of the container's life before this one.
    pub previous: bool,
    /// The most bytes.
    pub limit_bytes: Option<u64>,
}

/// An object that a watch can show.
pub trait Watched: Sized + Send + 'static {
    /// Reads one without `managedFields`.
    fn read<'de, D: Deserializer<'de>>(text: D) -> Result<Self, D::Error>;
    /// `metadata.uid`.
    fn uid(&self) -> Option<&str>;
    /// `metadata.resourceVersion`.
    fn version(&self) -> Option<&str>;
    /// One of `metadata.labels`.
    fn label(&self, key: &str) -> Option<&str>;
}

impl Watched for Pod {
    fn read<'de, D: Deserializer<'de>>(text: D) -> Result<Self, D::Error> {
        slim::pod(text)
    }

    fn uid(&self) -> Option<&str> {
        self.metadata.uid.as_deref()
    }

    fn version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }
}

impl Watched for Value {
    fn read<'de, D: Deserializer<'de>>(text: D) -> Result<Self, D::Error> {
        slim::object(text)
    }

    fn uid(&self) -> Option<&str> {
        self["metadata"]["uid"].as_str()
    }

    fn version(&self) -> Option<&str> {
        self["metadata"]["resourceVersion"].as_str()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self["metadata"]["labels"][key].as_str()
    }
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchEvent<T> {
    /// It is new or different: as it is now.
    Applied(T),
    /// It is gone: as it was last.
    Deleted(T),
    /// Nothing of ours happened up to this version.
    Bookmark(String),
}

/// The server writes the type first, so that an object is read at once and as what it is.
#[derive(Deserialize)]
#[serde(tag = "type", content = "object", rename_all = "UPPERCASE", bound = "T: Watched")]
enum Line<T> {
    #[serde(alias = "MODIFIED", deserialize_with = "T::read")]
    Added(T),
    #[serde(deserialize_with = "T::read")]
    Deleted(T),
    #[serde(deserialize_with = "slim::object")]
    Bookmark(Value),
    Error(Value),
}

impl Cluster {
    /// The log of one container, byte for byte, each line after its time, and what time it was at the server when it answered.
    ///
    /// The server answers a follow of an empty log with the first byte of it: that is waited for without a limit.
    ///
    /// # Errors
    /// Why there is none; an answer that breaks off ends in an `io::Error`.
    pub async fn log(
        &self,
        pod: &str,
        query: &LogQuery,
    ) -> Result<(Timestamp, impl Stream<Item = io::Result<Bytes>> + Send + Unpin + use<>), ApiError> {
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
        let asked = Asked { subresource: Some("log"), ..self.asked("get", &resource, Some(pod)) };
        let call = Call { kind: "log", asked, method: Method::GET, path, body: None };
        let limit = (!query.follow || query.since.is_some()).then_some(self.timeouts.answer);
        let answer = self.open(&call, limit).await?;
        let date = date(answer.headers()).unwrap_or_else(|| self.clock.now());
        Ok((date, pieces(answer.into_body())))
    }

    /// Changes of all objects of a kind that carry the labels, from a version on.
    ///
    /// # Errors
    /// Why there is no watch; within the stream, why it ended other than by its time.
    pub async fn watch<T: Watched>(
        &self,
        resource: &Resource,
        selector: Option<&str>,
        version: &str,
    ) -> Result<impl Stream<Item = Result<WatchEvent<T>, ApiError>> + Send + Unpin + use<T>, ApiError> {
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
        let call = Call { kind: "watch", asked, method: Method::GET, path, body: None };
        let body = self.open(&call, Some(self.timeouts.answer)).await?.into_body();
        Ok(events(pieces(body), call, self.timeouts.silence))
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
    silence: Duration,
}

/// One JSON object a line.
fn events<T, S>(pieces: S, call: Call, silence: Duration) -> impl Stream<Item = Result<WatchEvent<T>, ApiError>> + Send + Unpin
where
    T: Watched,
    S: Stream<Item = io::Result<Bytes>> + Send + Unpin,
{
    let lines = Lines { pieces, rest: BytesMut::new(), call, silence };
    Box::pin(stream::unfold(lines, |mut lines| async move {
        loop {
            if let Some(end) = memchr(b'\n', &lines.rest) {
                let line = lines.rest.split_to(end + 1);
                let event = read(&line, &lines.call);
                return Some((event, lines));
            }
            let piece = if let Ok(piece) = timeout(lines.silence, lines.pieces.next()).await {
                piece?
            } else {
                let limit = format_duration(lines.silence);
                Err(io::Error::other(format!("neither an event nor a bookmark for {limit}")))
            };
            match piece {
                Ok(piece) => lines.rest.extend_from_slice(&piece),
                Err(error) => {
                    let error = lines.call.no_answer(error.to_string());
                    return Some((Err(error), lines));
                }
            }
        }
    }))
}

fn read<T: Watched>(line: &[u8], call: &Call) -> Result<WatchEvent<T>, ApiError> {
    let broken = |error| call.no_answer(format!("the watch returned an invalid event: {error}"));
    match serde_json::from_slice(line).or_else(|error| passed_over(line, error)).map_err(broken)? {
        Line::Added(object) => Ok(WatchEvent::Applied(object)),
        Line::Deleted(object) => Ok(WatchEvent::Deleted(object)),
        Line::Bookmark(object) => Ok(WatchEvent::Bookmark(object.version().unwrap_or_default().to_owned())),
        Line::Error(object) => {
            let status = status(&object);
            // Without a code it is not the API server's answer: the watch is opened again.
            let Some(code) = status.code.and_then(|code| u16::try_from(code).ok()) else {
                return Err(call.no_answer("the watch returned an error without a code"));
            };
            Err(Refused::of(call.asked.clone(), code, status, None).into())
        }
    }
}

/// An object that is not what it should be is skipped, and does not end the watch.
fn passed_over<T: Watched>(line: &[u8], error: serde_json::Error) -> serde_json::Result<Line<T>> {
    match serde_json::from_slice(line) {
        Ok(Line::Added(object) | Line::Deleted(object)) => {
            tracing::warn!(%error, "a watched object cannot be read");
            Ok(Line::Bookmark(object))
        }
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::ClusterPlace,
        client::{Timeouts, Why, error::Asked},
    };

    fn call() -> Call {
        let place = ClusterPlace { context: None, namespace: "n".into() };
        let asked = Asked { verb: "watch", resource: Resource::of("v1", "Pod"), subresource: None, name: None, place };
        Call { kind: "watch", asked, method: Method::GET, path: String::new(), body: None }
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
            let events: Vec<WatchEvent<Value>> =
                events(stream::iter(pieces), call(), Timeouts::default().silence).map(Result::unwrap).collect().await;
            let object = serde_json::json!({"metadata": {"name": "a"}});
            let expected = [WatchEvent::Applied(object.clone()), WatchEvent::Bookmark("7".into()), WatchEvent::Deleted(object)];
            assert_eq!(events, expected, "pieces of {size} bytes");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_is_dead_after_three_minutes_without_event_or_bookmark() {
        let bookmark = Bytes::from_static(b"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}\n");
        let every_minute = stream::iter(0..10).then(move |_| {
            let bookmark = bookmark.clone();
            async move {
                tokio::time::sleep(Duration::from_mins(1)).await;
                Ok(bookmark)
            }
        });
        let pieces = Box::pin(every_minute.chain(stream::pending()));
        let started = tokio::time::Instant::now();
        let mut events = events::<Value, _>(pieces, call(), Timeouts::default().silence);
        for _ in 0..10 {
            assert!(events.next().await.unwrap().is_ok());
        }
        let error = events.next().await.unwrap().unwrap_err();
        assert_eq!((error.why(), started.elapsed().as_secs()), (Why::Transient, 13 * 60));
        insta::assert_snapshot!(error, @"watch pod in namespace n: neither an event nor a bookmark for 3m");
    }

    #[test]
    fn an_old_version_is_distinguished_from_a_broken_stream() {
        let expired = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        assert_eq!(read::<Pod>(expired, &call()).unwrap_err().why(), Why::Expired);
        assert_eq!(read::<Pod>(b"{\"type\":", &call()).unwrap_err().why(), Why::Transient);
        assert_eq!(read::<Pod>(br#"{"type":"NEWS","object":{}}"#, &call()).unwrap_err().why(), Why::Transient);
        for object in [r#"{"code":"500"}"#, "\"gone\"", "null"] {
            let error = format!(r#"{{"type":"ERROR","object":{object}}}"#);
            assert_eq!(read::<Pod>(error.as_bytes(), &call()).unwrap_err().why(), Why::Transient, "{object}");
        }
    }

    #[test]
    fn an_object_that_cannot_be_read_is_passed_over() {
        let strange = br#"{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"8"},"spec":"strange"}}"#;
        assert_eq!(read::<Pod>(strange, &call()).unwrap(), WatchEvent::Bookmark("8".into()));
    }

    #[test]
    fn a_bookmark_is_no_pod() {
        // As a real server sends it: a pod without anything that a pod must have.
        let bookmark = br#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7",
            "creationTimestamp":null},"spec":{"containers":null},"status":{}}}"#;
        assert_eq!(read::<Pod>(bookmark, &call()).unwrap(), WatchEvent::Bookmark("7".into()));
    }
}
