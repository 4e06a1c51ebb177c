//! Requests about objects, and their answers.

use super::{
    Cluster,
    error::{ApiError, Asked},
    path,
    send::{Answer, Call},
};
use crate::api::{Resource, clock};
use http::Method;
use kube::api::{DeleteParams, Preconditions, PropagationPolicy};
use muster_text::{Value, time::Timestamp};
use serde_json::json;
use std::time::Duration;

/// Objects in one page of a list.
const PAGE: &str = "500";

const JSON: &str = "application/json";

/// The server's answer to a creation.
#[derive(Debug, Clone, PartialEq)]
pub struct Created {
    /// The object, with its uid and every default.
    pub object: Value,
    /// The server's warnings: a field that was dropped, a pod that Pod Security will refuse.
    pub warnings: Vec<String>,
}

/// What a deletion has come to so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deleted {
    /// It is gone, or was not there.
    Done,
    /// It ends: its processes have their grace, its dependents or finalizers come first. That it is gone has to be seen.
    Pending,
}

impl Deleted {
    /// The server answers with a `Status` or with the object. What has no finalizers and no grace left is not stored any more.
    fn of(answer: &Value) -> Self {
        let metadata = &answer["metadata"];
        let is_held = metadata["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
        let has_grace = metadata.get("deletionTimestamp").is_some() && metadata["deletionGracePeriodSeconds"] != 0;
        if answer["kind"] == "Status" || !(is_held || has_grace) { Self::Done } else { Self::Pending }
    }
}

/// Some objects of a kind, all from one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The objects.
    pub items: Vec<Value>,
    /// The version from which a watch continues.
    pub version: String,
}

/// An object, and how long ago it was changed by the clock of the server that keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Dated {
    /// The object.
    pub object: Value,
    /// `None`: the server gives no dates.
    pub age: Option<Duration>,
}

impl Dated {
    /// The newest of `managedFields[].time` against the date of the answer. Both have whole seconds.
    fn of(mut object: Value, now: Option<Timestamp>) -> Self {
        let fields = object["metadata"]["managedFields"].take();
        let times = fields.as_array().into_iter().flatten().filter_map(|field| clock::parse(field["time"].as_str()?));
        let changed = times.max();
        Self { age: now.zip(changed).map(|(now, changed)| now.since(changed)), object }
    }
}

/// A selection of the objects of a kind; everything `None`: all of the namespace.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'a> {
    /// `rfm=abcdefgh`
    pub labels: Option<&'a str>,
    /// `involvedObject.uid=...`
    pub fields: Option<&'a str>,
}

impl Cluster {
    /// Creates an object, or with `dry_run` only asks whether it could be.
    ///
    /// # Errors
    /// See `Why`; `Exists` also when a former answer was lost.
    pub async fn create(&self, resource: &Resource, object: &Value, dry_run: bool) -> Result<Created, ApiError> {
        let resource = self.resolve(resource).await?;
        let kind = if dry_run { "dry-run" } else { "create" };
        let name = object["metadata"]["name"].as_str();
        let options = path::query(&[("fieldValidation", Some("Warn")), ("dryRun", dry_run.then_some("All"))]);
        let path = path::objects(&resource, &self.place.namespace, None, None) + &options;
        let body = Some((JSON, object.to_string().into_bytes()));
        let call = Call { kind, asked: self.asked("create", &resource, name), method: Method::POST, path, body };
        // The semaphore is never closed: without a permit it would only be less polite.
        let _turn = self.creates.acquire().await.ok();
        let answer = self.send(&call).await?;
        self.warn(&call, &answer.warnings);
        Ok(Created { object: answer.json(&call)?, warnings: answer.warnings })
    }

    /// One object as it is now.
    pub async fn get(&self, resource: &Resource, name: &str) -> Result<Value, ApiError> {
        let (call, _) = self.call("get", Method::GET, resource, Some(name)).await?;
        self.send(&call).await?.json(&call)
    }

    /// Objects of a kind, in as many pages as it takes.
    pub async fn list(&self, resource: &Resource, which: Selection<'_>) -> Result<Listed, ApiError> {
        let (items, version, _) = self.pages(resource, which, Answer::json, Some).await?;
        Ok(Listed { items, version })
    }

    /// Returns what `read` takes from each object of a kind: of large objects no more than a page is in memory.
    pub async fn list_of<T>(&self, resource: &Resource, read: impl Fn(Value) -> Option<T>) -> Result<Vec<T>, ApiError> {
        self.pages(resource, Selection::default(), Answer::json, read).await.map(|(items, ..)| items)
    }

    /// Returns a selection of few objects, each with its age, and the server's time.
    pub async fn list_dated(
        &self,
        resource: &Resource,
        which: Selection<'_>,
    ) -> Result<(Vec<Dated>, Option<Timestamp>), ApiError> {
        let (items, _, now) = self.pages(resource, which, Answer::whole, Some).await?;
        Ok((items.into_iter().map(|item| Dated::of(item, now)).collect(), now))
    }

    /// One object as it is now, with its age.
    pub async fn get_dated(&self, resource: &Resource, name: &str) -> Result<Dated, ApiError> {
        let (call, _) = self.call("get", Method::GET, resource, Some(name)).await?;
        let answer = self.send(&call).await?;
        Ok(Dated::of(answer.whole(&call)?, answer.date))
    }

    /// The objects of all pages with their version, and the date of the first page: all pages show the objects of that moment. A page
    /// that arrives minutes later must not make a Lease look old.
    async fn pages<T>(
        &self,
        resource: &Resource,
        which: Selection<'_>,
        read: fn(&Answer, &Call) -> Result<Value, ApiError>,
        keep: impl Fn(Value) -> Option<T>,
    ) -> Result<(Vec<T>, String, Option<Timestamp>), ApiError> {
        let (mut call, resource) = self.call("list", Method::GET, resource, None).await?;
        let base = path::objects(&resource, &self.place.namespace, None, None);
        let (mut all, mut next, mut date) = (Vec::new(), None::<String>, None);
        loop {
            let options = [
                ("labelSelector", which.labels),
                ("fieldSelector", which.fields),
                ("limit", Some(PAGE)),
                ("continue", next.as_deref()),
            ];
            call.path = base.clone() + &path::query(&options);
            let answer = self.send(&call).await?;
            date = if next.is_none() { answer.date } else { date };
            let mut page = read(&answer, &call)?;
            if let Value::Array(items) = page["items"].take() {
                all.extend(items.into_iter().filter_map(&keep));
            }
            let text = |key: &str| page["metadata"][key].as_str().unwrap_or_default().to_owned();
            next = Some(text("continue")).filter(|next| !next.is_empty());
            if next.is_none() {
                return Ok((all, text("resourceVersion"), date));
            }
        }
    }

    /// Changes an object by a merge patch (RFC 7386): maps merge, null deletes.
    pub async fn patch(&self, resource: &Resource, name: &str, patch: &Value) -> Result<Value, ApiError> {
        let (mut call, _) = self.call("patch", Method::PATCH, resource, Some(name)).await?;
        call.body = Some(("application/merge-patch+json", patch.to_string().into_bytes()));
        self.send(&call).await?.json(&call)
    }

    /// Replaces an object, if it still is the version that `object` says.
    pub async fn replace(&self, resource: &Resource, name: &str, object: &Value) -> Result<Value, ApiError> {
        let (mut call, _) = self.call("update", Method::PUT, resource, Some(name)).await?;
        call.body = Some((JSON, object.to_string().into_bytes()));
        self.send(&call).await?.json(&call)
    }

    /// Asks for an object's deletion, with `uid` only if it is still this very object.
    ///
    /// # Errors
    /// `Conflict` when another object has its name now.
    pub(crate) async fn delete(
        &self,
        resource: &Resource,
        name: &str,
        uid: Option<&str>,
        propagation: PropagationPolicy,
    ) -> Result<Deleted, ApiError> {
        let only = uid.map(|uid| Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() });
        self.delete_if(resource, name, only, propagation).await
    }

    /// Asks for an object's deletion, if it still is of this version.
    ///
    /// # Errors
    /// `Conflict` when it was changed since.
    pub(crate) async fn delete_version(&self, resource: &Resource, name: &str, version: &str) -> Result<Deleted, ApiError> {
        let only = Preconditions { resource_version: Some(version.to_owned()), ..Preconditions::default() };
        self.delete_if(resource, name, Some(only), PropagationPolicy::Background).await
    }

    async fn delete_if(
        &self,
        resource: &Resource,
        name: &str,
        preconditions: Option<Preconditions>,
        propagation: PropagationPolicy,
    ) -> Result<Deleted, ApiError> {
        let (mut call, _) = self.call("delete", Method::DELETE, resource, Some(name)).await?;
        // Always given: by default the API leaves a Job's pods.
        let options = DeleteParams { propagation_policy: Some(propagation), preconditions, ..DeleteParams::default() };
        call.body = Some((JSON, json!(options).to_string().into_bytes()));
        match self.send(&call).await {
            Ok(answer) => Ok(Deleted::of(&answer.json(&call)?)),
            Err(error) if error.is_gone() => Ok(Deleted::Done),
            Err(error) => Err(error),
        }
    }

    async fn call(
        &self,
        verb: &'static str,
        method: Method,
        resource: &Resource,
        name: Option<&str>,
    ) -> Result<(Call, Resource), ApiError> {
        let resource = self.resolve(resource).await?;
        let path = path::objects(&resource, &self.place.namespace, name, None);
        Ok((Call { kind: verb, asked: self.asked(verb, &resource, name), method, path, body: None }, resource))
    }

    pub(super) fn asked(&self, verb: &'static str, resource: &Resource, name: Option<&str>) -> Asked {
        let (resource, name, place) = (resource.clone(), name.map(str::to_owned), self.place.clone());
        Asked { verb, resource, subresource: None, name, place }
    }

    /// Each text once: a namespace that warns of every pod says so a thousand times.
    fn warn(&self, call: &Call, warnings: &[String]) {
        for warning in warnings {
            if self.warned.lock().insert(warning.clone()) {
                tracing::warn!(request = %call.asked, warning, "the API server warns");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{
        Why,
        testing::{self, Reply},
    };

    fn pod() -> Resource {
        Resource::of("v1", "Pod")
    }

    #[tokio::test(start_paused = true)]
    async fn what_passes_is_tried_again_when_the_server_says() {
        let mut times = 0;
        let (cluster, requests) = testing::cluster(move |_, _| {
            times += 1;
            match times {
                1 => Reply::refusal(429, "TooManyRequests", "busy").header("Retry-After", "5"),
                2 => Reply::refusal(500, "InternalError", "etcdserver: leader changed"),
                _ => Reply::json(&json!({"metadata": {"name": "x"}})),
            }
        });
        let started = tokio::time::Instant::now();
        cluster.get(&pod(), "x").await.unwrap();
        assert_eq!((requests.paths().len(), cluster.requests().of("get")), (3, 3));
        assert!(started.elapsed() >= std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_an_answer_is_sent_again_after_half_a_minute() {
        let mut times = 0;
        let (cluster, requests) = testing::cluster(move |_, _| {
            times += 1;
            if times == 1 { Reply::silence() } else { Reply::json(&json!({"metadata": {"name": "x"}})) }
        });
        let started = tokio::time::Instant::now();
        cluster.get(&pod(), "x").await.unwrap();
        assert_eq!((requests.paths().len(), started.elapsed().as_secs()), (2, 30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stays_away_is_given_up_within_the_time_of_a_launch() {
        let (cluster, _) = testing::cluster(|_, _| Reply::refusal(503, "ServiceUnavailable", "down"));
        let started = tokio::time::Instant::now();
        let error = cluster.create(&pod(), &json!({}), false).await.unwrap_err();
        assert_eq!(error.why(), Why::Transient);
        assert!(started.elapsed() <= std::time::Duration::from_secs(40), "{:?}", started.elapsed());
    }

    #[tokio::test]
    async fn a_list_is_read_page_by_page() {
        let (cluster, requests) = testing::cluster(|line, _| {
            let (next, item) = if line.contains("continue=more") { ("", 2) } else { ("more", 1) };
            Reply::json(&json!({"metadata": {"resourceVersion": "9", "continue": next}, "items": [item]}))
        });
        let listed = cluster.list(&pod(), Selection { labels: Some("rfm=x"), fields: None }).await.unwrap();
        assert_eq!(listed, Listed { items: vec![json!(1), json!(2)], version: "9".into() });
        let expected = [
            "GET /api/v1/namespaces/n/pods?labelSelector=rfm%3Dx&limit=500",
            "GET /api/v1/namespaces/n/pods?labelSelector=rfm%3Dx&limit=500&continue=more",
        ];
        assert_eq!(requests.full(), expected);
    }

    #[tokio::test]
    async fn the_age_of_an_object_is_that_at_the_first_page() {
        let (cluster, _) = testing::cluster(|line, _| {
            let last = line.contains("continue=more");
            let (next, date) =
                if last { ("", "Thu, 01 Jan 2026 00:30:00 GMT") } else { ("more", "Thu, 01 Jan 2026 00:01:00 GMT") };
            let item = json!({"metadata": {"managedFields": [{"time": "2026-01-01T00:00:00Z"}]}});
            Reply::json(&json!({"metadata": {"continue": next}, "items": [item]})).header("Date", date)
        });
        let (listed, now) = cluster.list_dated(&pod(), Selection::default()).await.unwrap();
        let ages: Vec<_> = listed.iter().map(|dated| dated.age).collect();
        assert_eq!(ages, [Some(Duration::from_mins(1)); 2]);
        assert_eq!(now.map(|now| now.since(clock::parse("2026-01-01T00:00:00Z").unwrap())), Some(Duration::from_mins(1)));
    }

    #[tokio::test]
    async fn a_kind_that_is_not_in_the_table_is_asked_for_once() {
        let (cluster, requests) = testing::cluster(|line, _| match line {
            "GET /apis/graphcore.ai/v1alpha1" => {
                Reply::json(&json!({"resources": [{"name": "ipujobs", "kind": "IPUJob", "namespaced": true}]}))
            }
            "GET /apis/graphcore.ai" => Reply::json(&json!({"versions": [{"groupVersion": "graphcore.ai/v1alpha1"}]})),
            "GET /apis/graphcore.ai/v2" => Reply::refusal(404, "NotFound", "the server could not find the requested resource"),
            _ => Reply::json(&json!({})),
        });
        let resource = Resource::of("graphcore.ai/v1alpha1", "IPUJob");
        cluster.get(&resource, "x").await.unwrap();
        cluster.get(&resource, "x").await.unwrap();
        let wrong = cluster.get(&Resource::of("graphcore.ai/v1alpha1", "IpuJob"), "x").await.unwrap_err();
        let version = cluster.get(&Resource::of("graphcore.ai/v2", "IPUJob"), "x").await.unwrap_err();
        insta::assert_snapshot!(wrong, @"the API server of namespace n does not know IpuJob (graphcore.ai/v1alpha1): did you mean `IPUJob`?");
        insta::assert_snapshot!(version, @"the API server of namespace n does not know IPUJob (graphcore.ai/v2): it serves graphcore.ai/v1alpha1");
        assert_eq!(cluster.requests().of("discovery"), 3, "{:?}", requests.paths());
    }

    #[test]
    fn a_deletion_is_done_when_nothing_holds_the_object() {
        let ends = "2026-01-01T00:00:00Z";
        let rows = [
            (json!({"kind": "Status", "status": "Success"}), Deleted::Done),
            (json!({"kind": "Pod", "metadata": {"name": "x"}}), Deleted::Done),
            (json!({"kind": "Pod", "metadata": {"deletionTimestamp": ends, "deletionGracePeriodSeconds": 0}}), Deleted::Done),
            (json!({"kind": "Pod", "metadata": {"deletionTimestamp": ends, "deletionGracePeriodSeconds": 30}}), Deleted::Pending),
            (
                json!({"kind": "Job", "metadata": {"deletionTimestamp": ends, "deletionGracePeriodSeconds": 0, "finalizers": ["foregroundDeletion"]}}),
                Deleted::Pending,
            ),
        ];
        for (answer, expected) in rows {
            assert_eq!(Deleted::of(&answer), expected, "{answer}");
        }
    }
}
