//! The requests of a preflight, for one place.

use super::{Answers, Need, Topic, findings};
use crate::{
    api::Resource,
    client::{ApiError, Cluster, Why},
    plan::role::Right,
    session::{Age, SharedState},
};
use futures_util::future::join_all;
use muster_core::job::scheduler::Finding;
use muster_text::Value;
use std::collections::{BTreeMap, BTreeSet};

/// As many rights are asked about one by one, where the server does not list them all.
const SINGLY: usize = 32;

/// What is wrong in the place of `shared`.
///
/// # Errors
/// The server does not answer, or accepts no credentials.
pub(crate) async fn ask(shared: &SharedState, needs: &BTreeMap<Need, Vec<usize>>) -> Result<Vec<Finding>, ApiError> {
    Ok(findings(shared.cluster.place(), needs, &answers(shared, needs, &BTreeSet::new()).await?))
}

/// What the server says about the needs, and of `more` rights.
///
/// # Errors
/// As for [`ask`].
pub(crate) async fn answers(
    shared: &SharedState,
    needs: &BTreeMap<Need, Vec<usize>>,
    more: &BTreeSet<Right>,
) -> Result<Answers, ApiError> {
    let cluster = &*shared.cluster;
    let mut answers = Answers::default();
    let plurals = kinds(cluster, needs, &mut answers).await?;
    let served = |right: &Right| plurals.get(&(right.group.clone(), right.plural.clone())).cloned();
    let needed: BTreeSet<Right> = needs.keys().flat_map(Need::rights).collect();
    // Those first without which nothing runs: so many are asked about.
    let rights: Vec<&Right> = needed.iter().chain(more.difference(&needed)).collect();
    let denied = denied(cluster, &rights, |right| served(right).unwrap_or_else(|| right.plural.clone())).await;
    answers.denied = answers.said(Topic::Rights, denied)?.unwrap_or_default();
    let has_namespace = cluster.has_namespace().await;
    answers.no_namespace = answers.said(Topic::Namespace, has_namespace)? == Some(false);
    if !answers.no_namespace {
        let quotas = shared.quotas(Age::Any).await;
        match answers.said(Topic::Quota, quotas)? {
            Some(Some(quotas)) => answers.quotas.clone_from(&quotas),
            Some(None) => drop(answers.unasked.insert(Topic::Quota, "the right to list resourcequotas is missing".to_owned())),
            None => {}
        }
        queues(cluster, needs, &mut answers).await?;
    }
    Ok(answers)
}

/// Notes the kinds that the server does not have. Returns the plurals of the others, by group and probable plural.
async fn kinds(
    cluster: &Cluster,
    needs: &BTreeMap<Need, Vec<usize>>,
    answers: &mut Answers,
) -> Result<BTreeMap<(String, String), String>, ApiError> {
    let mut plurals = BTreeMap::new();
    for kind in needs.keys().flat_map(Need::kinds).collect::<BTreeSet<_>>() {
        match cluster.resolve(&kind).await {
            Ok(served) => {
                let probable = crate::kind::Kinds::known().plural(&kind);
                plurals.extend(served.plural.map(|plural| ((kind.group.clone(), probable), plural)));
            }
            Err(error @ (ApiError::UnknownKind { .. } | ApiError::ClusterScoped { .. })) => {
                answers.unknown_kinds.insert(kind, error.to_string());
            }
            Err(error) => drop(answers.said::<()>(Topic::Kinds, Err(error))?),
        }
    }
    Ok(plurals)
}

/// The rights that the account does not have: by one review of all its rules. What these do not grant is asked singly, for another
/// authorizer than RBAC may grant it.
async fn denied(cluster: &Cluster, rights: &[&Right], plural: impl Fn(&Right) -> String) -> Result<BTreeSet<Right>, ApiError> {
    let rules = cluster.rules().await?;
    let doubtful = rights.iter().filter(|right| !rules.grant(&right.group, &plural(right), right.verb)).take(SINGLY);
    let ask = async |right: &&Right| match cluster.may(&right.group, &plural(right), right.verb).await {
        Ok(may) => Ok((!may).then(|| (*right).clone())),
        Err(error) if is_no_answer(&error) => Err(error),
        Err(error) => {
            tracing::debug!(%error, "a preflight leaves this right to the launch");
            Ok(None)
        }
    };
    let asked: Vec<Result<Option<Right>, ApiError>> = join_all(doubtful.map(ask)).await;
    asked.into_iter().filter_map(Result::transpose).collect()
}

/// Notes the queues that are not there, and those that admit nothing.
async fn queues(cluster: &Cluster, needs: &BTreeMap<Need, Vec<usize>>, answers: &mut Answers) -> Result<(), ApiError> {
    let queues: BTreeSet<&String> = needs.keys().filter_map(|need| need.queue.as_ref()).collect();
    if queues.is_empty() {
        return Ok(());
    }
    // A cluster without Kueue ignores the label.
    let version = cluster.preferred_version("kueue.x-k8s.io").await;
    let Some(version) = answers.said(Topic::Queues, version)?.flatten() else { return Ok(()) };
    let resource =
        Resource { plural: Some("localqueues".into()), ..Resource::of(&format!("kueue.x-k8s.io/{version}"), "LocalQueue") };
    for queue in queues {
        match cluster.get(&resource, queue).await {
            Err(error) if error.why() == Why::NotFound => drop(answers.missing_queues.insert(queue.clone())),
            answer => {
                let stopped = answers.said(Topic::Queues, answer)?.and_then(|queue| stopped(&queue));
                answers.stopped_queues.extend(stopped.map(|why| (queue.clone(), why)));
            }
        }
    }
    Ok(())
}

/// Why a queue admits nothing now.
fn stopped(queue: &Value) -> Option<String> {
    let conditions = queue["status"]["conditions"].as_array()?;
    let active = conditions.iter().find(|condition| condition["type"] == "Active" && condition["status"] == "False")?;
    let text = |key: &str| active[key].as_str().filter(|text| !text.is_empty());
    Some(text("message").or_else(|| text("reason")).unwrap_or("it is not active").to_owned())
}

/// The server is not there, or accepts no credentials.
fn is_no_answer(error: &ApiError) -> bool {
    error.why().passes() || error.why() == Why::Unauthorized
}

impl Answers {
    /// The answer; `None`: the server answers, but not this, which is noted.
    fn said<T>(&mut self, topic: Topic, answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if is_no_answer(&error) => Err(error),
            Err(error) => {
                tracing::debug!(%error, "a preflight leaves this to the launch");
                self.unasked.insert(topic, error.to_string());
                Ok(None)
            }
        }
    }
}
