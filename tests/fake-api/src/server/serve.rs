//! HTTP around the world: one request in, one answer or stream out, with whatever is to go wrong.

use super::watch;
use crate::{
    Request,
    fault::{self, Effect},
    request::{
        patch,
        path::{Query, Target},
        selector::Selector,
        status::No,
    },
    world::{
        Deletion, World,
        logs::{self, Ask},
        store::Key,
        uid,
    },
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, future, stream};
use http::{Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use serde_json::{Value, json};
use std::{io, sync::Arc, time::Duration};
use tokio::time::sleep;

type Body = UnsyncBoxBody<Bytes, io::Error>;
pub(crate) type Pieces = std::pin::Pin<Box<dyn Stream<Item = Bytes> + Send>>;

const FLUSH: Duration = Duration::from_millis(10);

/// What a request leads to.
enum Reply {
    Object(StatusCode, Value),
    Text(StatusCode, String),
    Stream(&'static str, Pieces),
}

impl From<No> for Reply {
    fn from(no: No) -> Self {
        Self::Object(no.code(), no.body())
    }
}

/// Answers one request. An error is a connection that breaks.
pub(crate) async fn answer(world: Arc<World>, request: http::Request<Incoming>) -> Result<Response<Body>, io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let target = head.uri.to_string();
    let method = head.method.as_str().to_owned();
    let effect = {
        let mut state = world.state();
        let agent = head.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let seen = Request { method: method.clone(), path: path.to_owned(), query: query.to_owned(), agent: agent.to_owned() };
        state.requests.push(seen);
        fault::strike(&mut state.faults, &method, &target)
    };
    let mut cut = None;
    match effect {
        Some(Effect::Refuse(no)) => return Ok(respond(&world, &target, retry(&no), no.into(), None)),
        Some(Effect::Text(text)) => return Ok(respond(&world, &target, None, Reply::Text(StatusCode::OK, text), None)),
        Some(Effect::StreamError(no)) => {
            let event = json!({"type": "ERROR", "object": no.body()}).to_string() + "\n";
            let pieces = stream::once(future::ready(Bytes::from(event)));
            return Ok(respond(&world, &target, None, Reply::Stream("application/json", Box::pin(pieces)), None));
        }
        Some(Effect::Cut { after, clean }) => cut = Some((after, clean)),
        Some(Effect::Late(by)) => sleep(by).await,
        Some(Effect::Swallow) => {
            let _ = reply(&world, &head, &body);
            return Err(io::Error::other("the answer is swallowed"));
        }
        None => {}
    }
    let reply = match reply(&world, &head, &body).unwrap_or_else(Reply::from) {
        Reply::Stream(media, pieces) if target.contains("/log?") => Reply::Stream(media, begun(&world, &target, pieces).await?),
        reply => reply,
    };
    Ok(respond(&world, &target, None, reply, cut))
}

/// As a real server does, a log is answered with its first byte, or at its end.
async fn begun(world: &World, target: &str, pieces: Pieces) -> io::Result<Pieces> {
    let mut cuts = world.cuts.subscribe();
    let mut pieces = Box::pin(pieces.peekable());
    loop {
        tokio::select! {
            biased;
            cut = cuts.recv() => match cut {
                Ok(part) if !target.contains(&part) => {}
                Ok(_) | Err(_) => return Err(io::Error::other("the stream is cut")),
            },
            _ = pieces.as_mut().peek() => return Ok(pieces),
        }
    }
}

fn http_date(time: Timestamp) -> Option<header::HeaderValue> {
    rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&time).ok()?.parse().ok()
}

fn retry(no: &No) -> Option<String> {
    no.retry_after.map(|seconds| seconds.to_string())
}

fn respond(world: &World, target: &str, retry_after: Option<String>, reply: Reply, cut: Option<(usize, bool)>) -> Response<Body> {
    let (status, media, pieces): (_, _, Pieces) = match reply {
        Reply::Object(status, object) => {
            (status, "application/json", Box::pin(stream::once(future::ready(Bytes::from(object.to_string())))))
        }
        Reply::Text(status, text) => (status, "text/plain", Box::pin(stream::once(future::ready(Bytes::from(text))))),
        Reply::Stream(media, pieces) => (StatusCode::OK, media, pieces),
    };
    let pieces = breakable(world, target.to_owned(), pieces, cut);
    let body = StreamBody::new(pieces.map(|piece| piece.map(Frame::data)));
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media));
    let ahead = world.state().clock_ahead;
    let date = Timestamp::now().checked_add(SignedDuration::from_secs(ahead)).ok().and_then(http_date);
    if let Some(date) = date.filter(|_| ahead != 0) {
        response.headers_mut().insert(header::DATE, date);
    }
    if let Some(seconds) = retry_after.and_then(|seconds| seconds.parse().ok()) {
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    response
}

/// The pieces until somebody cuts, or until so many bytes.
fn breakable(
    world: &World,
    target: String,
    pieces: Pieces,
    cut: Option<(usize, bool)>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let cuts = world.cuts.subscribe();
    let (left, clean) = cut.unwrap_or((usize::MAX, true));
    stream::unfold(Some((pieces, cuts, target, left)), move |state| async move {
        let (mut pieces, mut cuts, target, left) = state?;
        let broken = || Some((Err(io::Error::other("the stream is cut")), None));
        if left == 0 {
            if clean {
                return None;
            }
            // What was written before has to leave first.
            sleep(FLUSH).await;
            return broken();
        }
        loop {
            tokio::select! {
                biased;
                cut = cuts.recv() => match cut {
                    Ok(part) if target.contains(&part) => return broken(),
                    Ok(_) => {}
                    Err(_) => return broken(),
                },
                piece = pieces.next() => {
                    let mut piece = piece?;
                    piece.truncate(left);
                    let left = left - piece.len();
                    return Some((Ok(piece), Some((pieces, cuts, target, left))));
                }
            }
        }
    })
}

/// Longer than a function should be: it is the table of all verbs.
fn reply(world: &Arc<World>, head: &Parts, body: &Bytes) -> Result<Reply, No> {
    let path = head.uri.path();
    let query = Query::of(head.uri.query().unwrap_or_default());
    authenticate(world, head)?;
    if let Some(found) = world.state().kinds.discover(path) {
        return Ok(Reply::Object(StatusCode::OK, found));
    }
    let unknown = || No::new(404, "NotFound", "the server could not find the requested resource");
    let target = Target::of(path).ok_or_else(unknown)?;
    let verb = target.verb(&head.method, &query);
    authorize(world, &target, verb)?;
    if target.group == "authorization.k8s.io" {
        let asked = parse(body)?;
        let answer = if target.plural == "selfsubjectrulesreviews" { rules(world, asked) } else { review(world, &asked) };
        return Ok(Reply::Object(StatusCode::CREATED, answer));
    }
    let (api_version, kind) = {
        let state = world.state();
        let kind = state.kinds.find(&target.group, &target.version, &target.plural).ok_or_else(unknown)?;
        (kind.api_version(), kind.name.clone())
    };
    let key = Key {
        group: target.group.clone(),
        plural: target.plural.clone(),
        namespace: target.namespace.clone().unwrap_or_default(),
        name: target.name.clone().unwrap_or_default(),
    };
    let missing = || No::not_found(&key.qualified(), &key.name);
    let dry_run = query.get("dryRun").is_some();
    let object = match verb {
        "watch" => {
            return watch::open(world, &target, &query, selector(&query)).map(|pieces| Reply::Stream("application/json", pieces));
        }
        "list" => list(world, &target, &query, (&api_version, &kind)),
        "get" if target.subresource.as_deref() == Some("log") => return log(world, &key, &query),
        "get" => (**world.state().store.get(&key).ok_or_else(missing)?).clone(),
        "create" => {
            let mut object = parse(body)?;
            object["apiVersion"] = json!(api_version);
            object["kind"] = json!(kind);
            return Ok(Reply::Object(StatusCode::CREATED, world.create(&key, object, dry_run)?));
        }
        "update" => {
            let new = parse(body)?;
            world.change(&key, |object| replace(object, new)).ok_or_else(missing)??
        }
        "patch" => {
            let media = head.headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
            let change = parse(body)?;
            let by_operations = media.contains("json-patch");
            let apply = |object: &mut Value| {
                if by_operations {
                    return patch::json(object, &change);
                }
                patch::merge(object, &change);
                Ok(())
            };
            world.change(&key, apply).ok_or_else(missing)??
        }
        _ => {
            let options = if body.is_empty() { json!({}) } else { parse(body)? };
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let how = Deletion {
                propagation: text(&options["propagationPolicy"]).or_else(|| query.get("propagationPolicy").map(str::to_owned)),
                uid: text(&options["preconditions"]["uid"]),
                grace: options["gracePeriodSeconds"].as_i64(),
            };
            if target.name.is_none() { delete_all(world, &target, &query, &how) } else { world.delete(&key, &how)? }
        }
    };
    Ok(Reply::Object(StatusCode::OK, object))
}

fn parse(body: &Bytes) -> Result<Value, No> {
    serde_json::from_slice(body)
        .map_err(|error| No::new(400, "BadRequest", format!("the object provided is unrecognized: {error}")))
}

fn authenticate(world: &World, head: &Parts) -> Result<(), No> {
    let sent = head
        .headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    match &world.state().token {
        Some(token) if sent != Some(token) => Err(No::new(401, "Unauthorized", "Unauthorized")),
        _ => Ok(()),
    }
}

fn authorize(world: &World, target: &Target, verb: &str) -> Result<(), No> {
    if !world.state().denied.contains(&(verb.to_owned(), target.right())) {
        return Ok(());
    }
    let (what, right, group) = (target.qualified(), target.right(), &target.group);
    let name = target.name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
    let place = target.namespace.as_ref().map(|namespace| format!(" in the namespace \"{namespace}\"")).unwrap_or_default();
    let why = format!("User \"fake\" cannot {verb} resource \"{right}\" in API group \"{group}\"{place}");
    Err(No::new(403, "Forbidden", format!("{what}{name} is forbidden: {why}")))
}

/// `SelfSubjectRulesReview`: everything; where something is denied, each right has to be asked about.
fn rules(world: &World, mut asked: Value) -> Value {
    let is_all = world.state().denied.is_empty();
    let all = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    asked["status"] =
        json!({"resourceRules": if is_all { all } else { json!([]) }, "nonResourceRules": [], "incomplete": !is_all});
    asked
}

/// `SelfSubjectAccessReview`
fn review(world: &World, asked: &Value) -> Value {
    let wanted = &asked["spec"]["resourceAttributes"];
    let text = |field: &str| wanted[field].as_str().unwrap_or_default();
    let right = if text("subresource").is_empty() {
        text("resource").to_owned()
    } else {
        format!("{}/{}", text("resource"), text("subresource"))
    };
    let allowed = !world.state().denied.contains(&(text("verb").to_owned(), right));
    let mut answer = asked.clone();
    answer["status"] = json!({"allowed": allowed});
    answer
}

fn replace(object: &mut Value, mut new: Value) -> Result<(), No> {
    let (old, sent) = (&object["metadata"], &new["metadata"]);
    if !sent["resourceVersion"].is_null() && sent["resourceVersion"] != old["resourceVersion"] {
        let name = old["name"].as_str().unwrap_or_default();
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(No::new(409, "Conflict", format!("Operation cannot be fulfilled on \"{name}\": {why}")));
    }
    for field in ["uid", "creationTimestamp", "resourceVersion"] {
        let value = object["metadata"][field].clone();
        new["metadata"][field] = value;
    }
    *object = new;
    Ok(())
}

fn selector(query: &Query) -> Selector {
    let own = |key: &str| query.get(key).map(str::to_owned);
    Selector { labels: own("labelSelector"), fields: own("fieldSelector") }
}

/// A page of a list. The token is the place where the next begins, as of whatever moment that is asked.
fn list(world: &World, target: &Target, query: &Query, (api_version, kind): (&str, &str)) -> Value {
    let state = world.state();
    let selector = selector(query);
    let number = |key: &str| query.get(key).and_then(|text| text.parse::<usize>().ok());
    let limit = number("limit").unwrap_or(usize::MAX);
    let from = number("continue").unwrap_or(0);
    let all: Vec<&Arc<Value>> = state
        .store
        .list(&target.group, &target.plural, target.namespace.as_deref())
        .map(|(_, object)| object)
        .filter(|object| selector.takes(object))
        .collect();
    let items: Vec<&Value> = all.iter().skip(from).take(limit).map(|object| &***object).collect();
    let mut meta = json!({"resourceVersion": state.store.version.to_string()});
    let next = from.saturating_add(items.len());
    if next < all.len() {
        meta["continue"] = json!(next.to_string());
        meta["remainingItemCount"] = json!(all.len() - next);
    }
    json!({"kind": format!("{kind}List"), "apiVersion": api_version, "metadata": meta, "items": items})
}

fn delete_all(world: &World, target: &Target, query: &Query, how: &Deletion) -> Value {
    let selector = selector(query);
    let keys: Vec<Key> = {
        let state = world.state();
        let all = state.store.list(&target.group, &target.plural, target.namespace.as_deref());
        all.filter(|(_, object)| selector.takes(object)).map(|(key, _)| key.clone()).collect()
    };
    for key in keys {
        let _ = world.delete(&key, how);
    }
    json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})
}

fn log(world: &World, key: &Key, query: &Query) -> Result<Reply, No> {
    let state = world.state();
    let pod = state.store.get(key).ok_or_else(|| No::not_found("pods", &key.name))?;
    let own: Vec<String> = crate::world::containers(pod);
    let name = &key.name;
    let container = match query.get("container") {
        Some(container) => container.to_owned(),
        None if own.len() == 1 => own[0].clone(),
        None => {
            let choice = own.join(" ");
            let text = format!("a container name must be specified for pod {name}, choose one of: [{choice}]");
            return Err(No::new(400, "BadRequest", text));
        }
    };
    if !own.contains(&container) {
        return Err(No::new(400, "BadRequest", format!("container {container} is not valid for pod {name}")));
    }
    let previous = query.is("previous");
    let why = || {
        let text = if previous {
            format!("previous terminated container \"{container}\" in pod \"{name}\" not found")
        } else {
            format!("container \"{container}\" in pod \"{name}\" is waiting to start: ContainerCreating")
        };
        No::new(400, "BadRequest", text)
    };
    let log = state.logs.get(uid(pod), &container, previous).ok_or_else(why)?;
    let since: Option<Timestamp> = query.get("sinceTime").and_then(|time| time.parse().ok());
    // To whole seconds, as the server does on its way to the kubelet.
    let since = since.and_then(|since| Timestamp::from_second(since.as_second()).ok());
    let ask = Ask { follow: query.is("follow"), timestamps: query.is("timestamps"), since };
    let limit = query.get("limitBytes").and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
    let pieces = logs::stream(log, ask).scan(limit, |left, mut piece| {
        piece.truncate(*left);
        *left -= piece.len();
        future::ready((!piece.is_empty()).then_some(piece))
    });
    Ok(Reply::Stream("text/plain", Box::pin(pieces)))
}
