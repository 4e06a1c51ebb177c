//! Creates the objects of a job: what the workload refers to first, the workload last. Objects whose answer was lost are found again.
//!
//! ```text
//! an earlier launch had no answer: GET the workload -- ours ---------------------------------> Launched
//! queue: another case waits before this one for the same resource ------------------------> NotNow
//! preflight (only where there are quotas, and not for a single Pod):
//!     pod templates with dryRun=All -- quota is full --> NotNow     never fits, forbidden --> Config
//! create each object -- 409 --> GET: ours (labels rfm, rfm-session) -> its uid;  another's --> Taken
//!                    '- quota is full --> what was created is deleted --> NotNow
//! ```
//! One attempt; the session repeats it. If an object fails, those before it stay for `cleanup`.

mod preflight;
mod sources;

pub(crate) use preflight::{Gang, dry_run, gangs};

use crate::{
    api::{Quantity, Resource},
    client::{ApiError, Why},
    job::{Handle, Object, is_of},
    manifest::pod_templates,
    quota::{self, Decision, Demand, Refusal},
    session::{
        SharedState,
        gate::{self, AfterRefusal},
    },
};
use kube::api::PropagationPolicy;
use muster_core::{
    error::{Class, SchedulerError},
    job::{
        handle::JobHandle,
        scheduler::{Job, Launch},
    },
};
use muster_text::Value;
use std::time::Duration;
use tokio::time::timeout;

/// The session gives up after a minute, the default of `CallLimits::launch`. An answer before that can give the reason.
const LAUNCH_LIMIT: Duration = Duration::from_secs(55);

/// One attempt.
pub(crate) async fn launch(shared: &SharedState, job: &Job, handle: Handle) -> Result<Launch, SchedulerError> {
    let attempt = Attempt { shared, job, handle };
    let silent = || SchedulerError::plain(Class::Outage, format!("launch: no answer within {} s", LAUNCH_LIMIT.as_secs()));
    let answer = timeout(LAUNCH_LIMIT, attempt.run()).await.unwrap_or_else(|_| Err(silent()));
    if !matches!(answer, Ok(Launch::NotNow { .. })) {
        shared.leave_queue(&job.identifier);
    }
    match &answer {
        Ok(Launch::NotNow { .. }) => {}
        Ok(_) => shared.set_unanswered(&job.identifier, false),
        Err(error) => shared.set_unanswered(&job.identifier, !error.nothing_created || shared.is_unanswered(&job.identifier)),
    }
    if !matches!(answer, Ok(Launch::Launched(_))) {
        shared.release(&job.identifier);
    }
    answer
}

struct Attempt<'a> {
    shared: &'a SharedState,
    job: &'a Job,
    handle: Handle,
}

/// Why there is no object.
enum Refused {
    /// A quota is full.
    NoRoom(Refusal, String),
    /// What was granted before is not granted now.
    Withdrawn(Resource, Box<ApiError>),
    /// Something else has its name.
    Taken(String),
    Failed(SchedulerError),
}

impl Attempt<'_> {
    async fn run(mut self) -> Result<Launch, SchedulerError> {
        for object in &self.handle.objects {
            // Before anything exists, and before a watch is opened for a kind that the server does not know.
            self.shared.cluster.resolve(&object.resource).await.map_err(|error| {
                let error = error.classify();
                if self.shared.is_unanswered(&self.job.identifier) { error } else { error.with_nothing_created() }
            })?;
        }
        if self.shared.is_unanswered(&self.job.identifier) && self.find_again().await? {
            self.shared.observe(self.job, &self.handle);
            self.shared.lease.hold();
            return Ok(self.launched());
        }
        if let Some(why) = self.shared.gate_closed(self.job, &self.handle) {
            return Ok(Launch::NotNow { why, retry_after: gate::LOOK, created: None });
        }
        if let Some((before, resource)) = self.shared.blocked_by(self.job, || self.demand()) {
            return Ok(self.not_now(format!("{before} is before it in the queue for {resource}")));
        }
        sources::fill(&mut self.handle, &self.job.stage).await?;
        if let Err(refused) = self.preflight().await {
            return self.answer(refused).map_err(SchedulerError::with_nothing_created);
        }
        self.shared.watch.register(&self.job.identifier, &self.handle);
        self.shared.lease.hold();
        for place in 0..self.handle.objects.len() {
            match self.create(&self.handle.objects[place]).await {
                Ok(uid) => self.handle.objects[place].uid = Some(uid),
                Err(refused) => {
                    let mut answer = self.answer(refused);
                    if let Ok(Launch::NotNow { created, .. }) = &mut answer
                        && let Err(error) = self.undo(&self.handle.objects[..place]).await
                    {
                        tracing::debug!(error = %error, "what was created before a quota refused is left to the cleanup");
                        *created = Some(Box::new(self.job.with(JobHandle::of(self.handle.clone()))));
                    }
                    return answer
                        .map_err(|error| SchedulerError { nothing_created: error.nothing_created && place == 0, ..error });
                }
            }
        }
        self.shared.launched(self.job, &self.handle);
        Ok(self.launched())
    }

    /// What is kept of it from now on.
    fn launched(mut self) -> Launch {
        sources::empty(&mut self.handle);
        Launch::Launched(self.job.with(JobHandle::of(self.handle.without_data_of_secrets())))
    }

    /// Looks for a workload that was created without an answer. To create it once more would be refused: it may fill a quota by
    /// itself. The workload is the last object, so those before it were created, too.
    async fn find_again(&mut self) -> Result<bool, SchedulerError> {
        let Some(workload) = self.handle.workload() else { return Ok(false) };
        let Some(found) = self.own(workload).await? else { return Ok(false) };
        for place in 0..self.handle.objects.len() {
            self.handle.objects[place].uid =
                if place == self.handle.workload { Some(found.clone()) } else { self.own(&self.handle.objects[place]).await? };
        }
        Ok(true)
    }

    /// The uid of an object, if it is there and ours.
    async fn own(&self, object: &Object) -> Result<Option<String>, SchedulerError> {
        match self.shared.cluster.get(&object.resource, &object.name).await {
            Ok(there) => {
                Ok((is_of(self.job, &there) && there["metadata"].get("deletionTimestamp").is_none()).then(|| uid(&there)))
            }
            Err(error) if error.is_gone() || error.why() == Why::NotAllowed => Ok(None),
            Err(error) => Err(error.classify()),
        }
    }

    /// What it wants of the namespace's quotas.
    fn demand(&self) -> Demand {
        let Some(workload) = self.handle.workload() else { return Demand::new() };
        let mut demand = Demand::new();
        for (template, _) in pod_templates(&workload.manifest) {
            demand.extend(quota::demand(&template["spec"]));
        }
        demand.insert(format!("count/{}", workload.resource.for_kubectl()), Quantity::whole(1));
        demand
    }

    async fn create(&self, object: &Object) -> Result<String, Refused> {
        match self.shared.cluster.create(&object.resource, &object.manifest, false).await {
            Ok(created) => Ok(uid(&created.object)),
            Err(error) if error.why() == Why::Exists => self.found(object).await,
            Err(error) if error.why() == Why::Withdrawn => Err(Refused::Withdrawn(object.resource.clone(), Box::new(error))),
            Err(error) if matches!(error.why(), Why::NotAllowed | Why::Unauthorized) => match refused(object, error) {
                Refused::Failed(error) => Err(Refused::Failed(error.with_nothing_created())),
                refused => Err(refused),
            },
            Err(error) => Err(refused(object, error)),
        }
    }

    /// Something has its name: what we created, and never heard of, or something else.
    async fn found(&self, object: &Object) -> Result<String, Refused> {
        let there = match self.shared.cluster.get(&object.resource, &object.name).await {
            Ok(there) => there,
            Err(error) => return Err(Refused::Failed(error.classify())),
        };
        if !is_of(self.job, &there) {
            return Err(Refused::Taken(format!("{} in {}", object.title(), self.handle.place)));
        }
        if there["metadata"].get("deletionTimestamp").is_some() {
            let what = format!("create {}: its predecessor is still being deleted", object.title());
            return Err(Refused::Failed(SchedulerError::plain(Class::Infra, what)));
        }
        Ok(uid(&there))
    }

    /// Deletes the objects that were created before a quota refused: a waiting case holds nothing.
    async fn undo(&self, created: &[Object]) -> Result<(), ApiError> {
        for object in created.iter().rev() {
            let deleted =
                self.shared.cluster.delete(&object.resource, &object.name, object.uid.as_deref(), PropagationPolicy::Background);
            deleted.await?;
        }
        Ok(())
    }

    fn answer(&self, refused: Refused) -> Result<Launch, SchedulerError> {
        match refused {
            Refused::NoRoom(refusal, why) => {
                self.shared.watch.forget(&self.job.identifier);
                self.shared.refused(self.job, &refusal);
                Ok(self.not_now(why))
            }
            Refused::Withdrawn(kind, error) => {
                self.shared.watch.forget(&self.job.identifier);
                let why = format!("launches wait: {error}");
                match self.shared.withdrawn(self.job, &kind, &why) {
                    AfterRefusal::Retry => Ok(Launch::NotNow { why, retry_after: gate::LOOK, created: None }),
                    AfterRefusal::Fail => Err(error.for_good().classify().with_nothing_created()),
                }
            }
            Refused::Taken(by) => Ok(Launch::Taken { by }),
            Refused::Failed(error) => Err(error),
        }
    }

    fn not_now(&self, why: String) -> Launch {
        Launch::NotNow { why, retry_after: self.shared.retry_after(&self.job.identifier), created: None }
    }
}

/// Whether a quota refuses for now or for ever, or the reason is another.
fn refused(object: &Object, error: ApiError) -> Refused {
    let Some(refusal) = quota::read(&error.message()) else { return Refused::Failed(error.classify()) };
    match refusal.decide() {
        Decision::Wait(why) => Refused::NoRoom(refusal, why),
        Decision::Never(why) => never(object, &why),
    }
}

fn never(object: &Object, why: &str) -> Refused {
    let what = format!("create {}: {why}", object.title());
    Refused::Failed(SchedulerError::plain(Class::Config, what))
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::NAME;
    use crate::{
        client::testing::{self, Reply, Requests},
        job::Seen,
        kind::WorkloadRules,
    };
    use muster_core::{
        case::{Identifier, SessionId},
        error::chain,
    };
    use serde_json::json;
    use std::sync::Arc;

    const FULL: &str = "pods \"x\" is forbidden: exceeded quota: compute, requested: requests.cpu=2, used: requests.cpu=3, limited: requests.cpu=4";

    fn object(api_version: &str, kind: &str, name: &str, spec: &Value) -> Object {
        let labels = json!({"rfm": "abcdefgh"});
        let manifest = json!({"kind": kind, "metadata": {"name": name, "labels": labels}, "spec": spec});
        Object { resource: Resource::of(api_version, kind), name: name.into(), manifest, uid: None }
    }

    fn pod() -> Object {
        object("v1", "Pod", "rfm-x", &containers())
    }

    fn containers() -> Value {
        json!({"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]})
    }

    fn config() -> Object {
        object("v1", "ConfigMap", "rfm-c", &json!({}))
    }

    fn gang(replicas: u32) -> Object {
        let template = json!({"metadata": {"labels": {"rfm": "abcdefgh"}}, "spec": containers()});
        object("kubeflow.org/v2beta1", "MPIJob", "rfm-x", &json!({"replicas": replicas, "template": template}))
    }

    fn job(letter: char) -> Job {
        Job {
            identifier: Identifier::parse(&letter.to_string().repeat(8)).unwrap(),
            session: SessionId("s".into()),
            case: format!("case {letter}"),
            scheduler: NAME.into(),
            stage: "stage".into(),
            handle: JobHandle::default(),
        }
    }

    fn ours() -> Job {
        Job { identifier: Identifier::parse("abcdefgh").unwrap(), ..job('a') }
    }

    fn handle(objects: Vec<Object>) -> Handle {
        let (workload, rules) = (objects.len() - 1, WorkloadRules::default());
        Handle { place: testing::place(), objects, workload, expected_pods: None, rules, keep_seconds: 0, ..Handle::default() }
    }

    /// A shared whose server answers the watches, the Lease and the kinds itself, and everything else with `answer`.
    fn shared(mut answer: impl FnMut(&str) -> Reply + Send + 'static) -> (SharedState, Requests) {
        let (cluster, requests) = testing::cluster(move |line, _| match line {
            line if line.contains("watch=true") => Reply::events(&[], true),
            line if line.contains("leases") => Reply::json(&json!({})),
            "GET /apis/kubeflow.org/v2beta1" => {
                Reply::json(&json!({"resources": [{"name": "mpijobs", "kind": "MPIJob", "namespaced": true}]}))
            }
            line if line.contains("labelSelector=rfm-session") => Reply::list("1", &[]),
            line => answer(line),
        });
        (
            SharedState::new(cluster, &SessionId("s".into()), muster_core::decisions::liveness::HeartbeatTiming::default()),
            requests,
        )
    }

    fn there(label: &str, session: &str) -> Reply {
        let labels = json!({"rfm": label, "rfm-session": session});
        Reply::json(&json!({"metadata": {"name": "rfm-x", "uid": "u-1", "labels": labels}}))
    }

    /// What was asked beside watches and Leases.
    fn asked(requests: &Requests) -> Vec<String> {
        let lines = requests.full();
        let shared = |line: &String| {
            line.contains("leases") || line.contains("rfm-session") || line.contains("/apis/kubeflow.org/v2beta1")
        };
        lines
            .into_iter()
            .filter(|line| !shared(line) || line.starts_with("POST /api/v1"))
            .map(|line| line.replace("/api/v1/namespaces/n/", ""))
            .collect()
    }

    fn uids(launched: &Launch) -> Vec<Option<String>> {
        let Launch::Launched(job) = launched else { return Vec::new() };
        Handle::of(job).unwrap().objects.iter().map(|object| object.uid.clone()).collect()
    }

    #[tokio::test]
    async fn helpers_come_first_and_every_uid_is_kept() {
        let (shared, requests) = shared(|line| match line {
            line if line.starts_with("GET") => Reply::list("1", &[]),
            line if line.contains("configmaps") => Reply::json(&json!({"metadata": {"uid": "u-c"}})),
            _ => Reply::json(&json!({"metadata": {"uid": "u-p"}})),
        });
        let launched = launch(&shared, &ours(), handle(vec![config(), pod()])).await.unwrap();
        assert_eq!(uids(&launched), [Some("u-c".into()), Some("u-p".into())]);
        let expected = ["GET resourcequotas?limit=500", "POST configmaps?fieldValidation=Warn", "POST pods?fieldValidation=Warn"];
        assert_eq!(asked(&requests), expected);
    }

    #[tokio::test]
    async fn what_a_secret_holds_is_sent_and_is_not_in_what_is_stored_of_the_launch() {
        let secret = || {
            let mut secret = object("v1", "Secret", "rfm-s", &json!({}));
            secret.manifest["stringData"] = json!({"token": "hunter2"});
            secret.manifest["data"] = json!({"key": "aHVudGVyMg=="});
            secret
        };
        let (first, requests) = shared(|line| match line {
            line if line.starts_with("GET") => Reply::list("1", &[]),
            _ => Reply::json(&json!({"metadata": {"uid": "u"}})),
        });
        let created = launch(&first, &ours(), handle(vec![secret(), pod()])).await.unwrap();
        assert_eq!(asked(&requests)[1..], ["POST secrets?fieldValidation=Warn", "POST pods?fieldValidation=Warn"]);
        // One that an earlier launch has created without an answer.
        let (again, _) = shared(|line| match line {
            line if line.starts_with("GET") => there("abcdefgh", "s"),
            _ => Reply::refusal(403, "Forbidden", FULL),
        });
        again.set_unanswered(&ours().identifier, true);
        let found = launch(&again, &ours(), handle(vec![secret(), pod()])).await.unwrap();
        for launched in [created, found] {
            let Launch::Launched(job) = launched else { panic!("{launched:?}") };
            let stored = &Handle::of(&job).unwrap().objects[0];
            assert_eq!(
                (&stored.manifest["stringData"], &stored.manifest["data"]),
                (&json!({"token": "***"}), &json!({"key": "***"}))
            );
            assert!(stored.uid.is_some() && stored.manifest["metadata"]["name"] == "rfm-s", "{stored:?}");
        }
    }

    #[tokio::test]
    async fn what_a_lost_answer_created_is_found_again_and_what_is_anothers_is_not_taken() {
        let exists = || Reply::refusal(409, "AlreadyExists", "pods \"rfm-x\" already exists");
        let answer = |label: &'static str, session: &'static str| {
            move |line: &str| if line.starts_with("POST") { exists() } else { there(label, session) }
        };
        let (mine, _) = shared(answer("abcdefgh", "s"));
        assert_eq!(uids(&launch(&mine, &ours(), handle(vec![pod()])).await.unwrap()), [Some("u-1".into())]);
        // One whose identifier is ours by chance, and one that only has the name.
        let mut said = Vec::new();
        for (label, session) in [("abcdefgh", "another"), ("zzzzzzzz", "s")] {
            let (anothers, requests) = shared(answer(label, session));
            let answer = launch(&anothers, &ours(), handle(vec![pod()])).await.unwrap();
            let Launch::Taken { by } = answer else { panic!("{answer:?}") };
            said.push(by);
            assert_eq!(asked(&requests), ["POST pods?fieldValidation=Warn", "GET pods/rfm-x"], "it is left alone");
        }
        assert_eq!(said[0], said[1]);
        insta::assert_snapshot!(said[0], @"pod rfm-x in namespace n");
    }

    /// The quota is full because of the very pod that was created.
    #[tokio::test]
    async fn what_may_have_been_created_is_looked_for_before_a_quota_can_refuse_it() {
        let (shared, requests) = shared(|line| match line {
            "GET /api/v1/namespaces/n/pods/rfm-x" => there("abcdefgh", "s"),
            line if line.starts_with("GET") => Reply::refusal(404, "NotFound", "no such object"),
            _ => Reply::refusal(403, "Forbidden", FULL),
        });
        shared.set_unanswered(&ours().identifier, true);
        let launched = launch(&shared, &ours(), handle(vec![config(), pod()])).await.unwrap();
        assert_eq!(uids(&launched), [None, Some("u-1".into())]);
        assert_eq!(asked(&requests), ["GET pods/rfm-x", "GET configmaps/rfm-c"]);
        // What is there no longer is created.
        let Launch::NotNow { .. } = launch(&shared, &job('b'), handle(vec![pod()])).await.unwrap() else { panic!() };
        assert_eq!(asked(&requests).last().map(String::as_str), Some("POST pods?fieldValidation=Warn"));
    }

    /// The connection is lost after the pod was created.
    #[tokio::test(start_paused = true)]
    async fn a_launch_without_an_answer_is_looked_for_by_the_next_one() {
        let is_back = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let back = Arc::clone(&is_back);
        let (shared, _) = shared(move |line| match line {
            line if line.starts_with("GET") => there("abcdefgh", "s"),
            _ if back.load(std::sync::atomic::Ordering::Relaxed) => Reply::refusal(403, "Forbidden", FULL),
            _ => Reply::refusal(504, "Timeout", "no answer"),
        });
        launch(&shared, &ours(), handle(vec![pod()])).await.unwrap_err();
        is_back.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(uids(&launch(&shared, &ours(), handle(vec![pod()])).await.unwrap()), [Some("u-1".into())]);
        assert!(!shared.is_unanswered(&ours().identifier));
    }

    /// After a takeover a job of the same name is removed and created again, and the watch is late.
    #[tokio::test]
    async fn what_the_watch_still_shows_of_a_predecessor_is_not_the_job() {
        let pod_of = |uid: &str| json!({"metadata": {"name": "rfm-x", "uid": uid, "resourceVersion": "1", "labels": {"rfm": "abcdefgh", "rfm-session": "s"}}});
        let (seen, late) = tokio::sync::watch::channel(false);
        let (cluster, _) = testing::cluster(move |line, _| match line {
            line if line.contains("watch=true") => {
                seen.send_replace(true);
                Reply::events(&[json!({"type": "DELETED", "object": pod_of("old")})], true)
            }
            line if line.contains("labelSelector=rfm-session") => Reply::list("1", &[pod_of("old")]),
            line if line.contains("leases") => Reply::json(&json!({})),
            _ => Reply::json(&pod_of("new")),
        });
        let timing = muster_core::decisions::liveness::HeartbeatTiming::default();
        let shared = SharedState::new(cluster, &SessionId("s".into()), timing);
        let Launch::Launched(launched) = launch(&shared, &ours(), handle(vec![pod()])).await.unwrap() else { panic!() };
        let mut observed = shared.observe(&launched, &Handle::of(&launched).unwrap());
        let mut late = late;
        late.wait_for(|seen| *seen).await.unwrap();
        for _ in 0..20 {
            let now = Arc::clone(&observed.borrow_and_update());
            assert!(matches!(now.workload, Seen::NotYet) && now.pods.is_empty(), "{now:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_case_without_quota_waits_in_the_queue_and_those_after_it_do_not_ask() {
        let (shared, requests) = shared(|_| Reply::refusal(403, "Forbidden", FULL));
        let Launch::NotNow { why, retry_after, .. } = launch(&shared, &job('a'), handle(vec![pod()])).await.unwrap() else {
            panic!()
        };
        insta::assert_snapshot!(why, @"quota compute: requests.cpu requested 2, used 3, limited 4");
        assert_eq!(retry_after, Duration::from_secs(1));
        let Launch::NotNow { why, .. } = launch(&shared, &job('b'), handle(vec![pod()])).await.unwrap() else { panic!() };
        insta::assert_snapshot!(why, @"case a is before it in the queue for requests.cpu");
        assert_eq!(asked(&requests), ["POST pods?fieldValidation=Warn"]);
    }

    #[tokio::test]
    async fn who_waits_for_room_holds_nothing() {
        let (shared, requests) = shared(|line| match line {
            line if line.starts_with("GET") => Reply::list("1", &[]),
            line if line.contains("pods") => Reply::refusal(403, "Forbidden", FULL),
            _ => Reply::json(&json!({"metadata": {"uid": "u-c"}})),
        });
        let launched = launch(&shared, &ours(), handle(vec![config(), pod()])).await.unwrap();
        assert!(matches!(launched, Launch::NotNow { .. }), "{launched:?}");
        assert_eq!(asked(&requests).last().map(String::as_str), Some("DELETE configmaps/rfm-c"));
    }

    #[tokio::test]
    async fn a_gang_that_can_never_stand_together_is_refused_before_it_exists() {
        let quota = json!({"metadata": {"name": "compute"}, "status": {"hard": {"requests.cpu": "4"}}});
        let (shared, requests) = shared(move |line| match line {
            line if line.starts_with("GET") => Reply::list("1", std::slice::from_ref(&quota)),
            _ => Reply::json(&json!({"metadata": {"uid": "u"}})),
        });
        let error = launch(&shared, &ours(), handle(vec![gang(3)])).await.unwrap_err();
        assert_eq!(error.class, Class::Config);
        insta::assert_snapshot!(chain(&error), @"create mpijob.kubeflow.org rfm-x: 3 pods of 2 each: requests.cpu requested 6, but quota compute has 4 at all: ask for less, or have the quota raised");
        assert_eq!(asked(&requests), ["GET resourcequotas?limit=500"]);
        let launched = launch(&shared, &ours(), handle(vec![gang(2)])).await.unwrap();
        assert!(matches!(launched, Launch::Launched(_)));
        assert!(asked(&requests).contains(&"POST pods?fieldValidation=Warn&dryRun=All".to_owned()), "{:?}", asked(&requests));
    }
}
