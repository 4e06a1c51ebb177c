//! Watches: the events of one kind, as they happen, and bookmarks while nothing does.

use super::serve::Pieces;
use crate::{
    request::{
        path::{Query, Target},
        selector::Selector,
        status::No,
    },
    world::World,
};
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until};

/// A quiet watch gets bookmarks.
const BOOKMARK: Duration = Duration::from_secs(10);

/// One open watch.
struct Watching {
    world: Arc<World>,
    group: String,
    plural: String,
    namespace: Option<String>,
    selector: Selector,
    version: u64,
    until: Instant,
    changed: tokio::sync::watch::Receiver<u64>,
    initial: Option<Bytes>,
}

/// A watch from a version on; without one it begins with all that is there.
pub(crate) fn open(world: &Arc<World>, target: &Target, query: &Query, selector: Selector) -> Result<Pieces, No> {
    if query.is("sendInitialEvents") {
        let why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        return Err(No::new(
            422,
            "Invalid",
            format!("ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: {why}"),
        ));
    }
    let changed = world.changed.subscribe();
    let asked: u64 = query.get("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(0);
    let seconds = query.get("timeoutSeconds").and_then(|text| text.parse().ok()).unwrap_or(1_800);
    let (version, initial) = if asked == 0 {
        let state = world.state();
        let mut text = Vec::new();
        for (_, object) in state.store.list(&target.group, &target.plural, target.namespace.as_deref()) {
            if selector.takes(object) {
                say(&mut text, "ADDED", object);
            }
        }
        (state.store.version, Some(Bytes::from(text)).filter(|text| !text.is_empty()))
    } else {
        (asked, None)
    };
    let watching = Watching {
        world: Arc::clone(world),
        group: target.group.clone(),
        plural: target.plural.clone(),
        namespace: target.namespace.clone(),
        selector,
        version,
        until: Instant::now() + Duration::from_secs(seconds),
        changed,
        initial,
    };
    let pieces = stream::unfold(Some(watching), |watching| async { watching?.next().await });
    Ok(Box::pin(pieces))
}

impl Watching {
    /// The next events, until its time is over.
    async fn next(mut self) -> Option<(Bytes, Option<Self>)> {
        if let Some(initial) = self.initial.take() {
            return Some((initial, Some(self)));
        }
        let bookmark = Instant::now() + BOOKMARK;
        loop {
            self.changed.borrow_and_update();
            match self.read() {
                Ok(text) if !text.is_empty() => return Some((Bytes::from(text), Some(self))),
                Ok(_) => {}
                Err(no) => {
                    let mut text = Vec::new();
                    say(&mut text, "ERROR", &no.body());
                    return Some((Bytes::from(text), None));
                }
            }
            let now = Instant::now();
            if now >= self.until {
                return None;
            }
            if now >= bookmark {
                let kind = self.plural.clone();
                let mut text = Vec::new();
                say(&mut text, "BOOKMARK", &json!({"kind": kind, "metadata": {"resourceVersion": self.version.to_string()}}));
                return Some((Bytes::from(text), Some(self)));
            }
            tokio::select! {
                changed = self.changed.changed() => changed.ok()?,
                () = sleep_until(self.until.min(bookmark)) => {}
            }
        }
    }

    fn read(&mut self) -> Result<Vec<u8>, No> {
        let mut text = Vec::new();
        let state = self.world.state();
        let mut version = self.version;
        for event in state.store.after(self.version)? {
            version = event.version;
            let ours = event.key.is(&self.group, &self.plural)
                && self.namespace.as_ref().is_none_or(|namespace| event.key.namespace == *namespace);
            if let Some((what, object)) = event.seen_by(&self.selector).filter(|_| ours) {
                say(&mut text, what, object);
            }
        }
        drop(state);
        self.version = version;
        Ok(text)
    }
}

fn say(text: &mut Vec<u8>, what: &str, object: &Value) {
    text.extend(format!("{{\"type\":\"{what}\",\"object\":{object}}}\n").into_bytes());
}
