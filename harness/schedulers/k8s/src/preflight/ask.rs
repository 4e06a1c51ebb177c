//! The requests of a preflight, for one place.

use super::{Answers, Need, findings};
use crate::{
    api::Resource,
    client::{ApiError, Cluster, Why},
    plan::role::Right,
    session::{Age, SharedState},
};
use futures_util::future::join_all;
use muster_core::job::scheduler::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// As many rights are asked about one by one, where the server does not list them all.
const SINGLY: usize = 32;

/// What is wrong in the place of `shared`.
///
/// # Errors
/// The server does not answer, or accepts no credentials.
pub(crate) async fn ask(shared: &SharedState, needs: &BTreeMap<Need, Vec<usize>>) -> Result<Vec<Finding>, ApiError> {
    let cluster = &*shared.cluster;
    let mut answers = Answers::default();
    let plurals = kinds(cluster, needs, &mut answers).await?;
    let served = |right: &Right| plurals.get(&(right.group.clone(), right.plural.clone())).cloned();
    let rights: BTreeSet<Right> = needs.keys().flat_map(Need::rights).collect();
    let denied = denied(cluster, &rights, |right| served(right).unwrap_or_else(|| right.plural.clone())).await?;
    answers.denied = denied;
    answers.no_namespace = unless_refused(cluster.has_namespace().await)? == Some(false);
    if !answers.no_namespace {
        answers.quotas =
            unless_refused(shared.quotas(Age::Any).await)?.flatten().map(|quotas| (*quotas).clone()).unwrap_or_default();
        answers.missing_queues = missing_queues(cluster, needs).await?;
    }
    Ok(findings(cluster.place(), needs, &answers))
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
            Err(error) => drop(unless_refused::<()>(Err(error))?),
        }
    }
    Ok(plurals)
}

/// The rights that the account does not have: by one review of all its rules. What these do not grant is asked singly, for another
/// authorizer than RBAC may grant it.
async fn denied(
    cluster: &Cluster,
    rights: &BTreeSet<Right>,
    plural: impl Fn(&Right) -> String,
) -> Result<BTreeSet<Right>, ApiError> {
    let Some(rules) = unless_refused(cluster.rules().await)? else { return Ok(BTreeSet::new()) };
    let doubtful = rights.iter().filter(|right| !rules.grant(&right.group, &plural(right), right.verb)).take(SINGLY);
    let ask = async |right: &Right| {
        let may = unless_refused(cluster.may(&right.group, &plural(right), right.verb).await)?;
        Ok((may == Some(false)).then(|| right.clone()))
    };
    let asked: Vec<Result<Option<Right>, ApiError>> = join_all(doubtful.map(ask)).await;
    asked.into_iter().filter_map(Result::transpose).collect()
}

async fn missing_queues(cluster: &Cluster, needs: &BTreeMap<Need, Vec<usize>>) -> Result<BTreeSet<String>, ApiError> {
    let queues: BTreeSet<&String> = needs.keys().filter_map(|need| need.queue.as_ref()).collect();
    let mut missing = BTreeSet::new();
    if queues.is_empty() {
        return Ok(missing);
    }
    // A cluster without Kueue ignores the label.
    let version = unless_refused(cluster.preferred_version("kueue.x-k8s.io").await)?.flatten();
    let Some(version) = version else { return Ok(missing) };
    let resource =
        Resource { plural: Some("localqueues".into()), ..Resource::of(&format!("kueue.x-k8s.io/{version}"), "LocalQueue") };
    for queue in queues {
        match cluster.get(&resource, queue).await {
            Err(error) if error.why() == Why::NotFound => drop(missing.insert(queue.clone())),
            answer => drop(unless_refused(answer)?),
        }
    }
    Ok(missing)
}

/// The answer; `None`: the server answers, but not this.
fn unless_refused<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.why().passes() || error.why() == Why::Unauthorized => Err(error),
        Err(error) => {
            tracing::debug!(%error, "a preflight leaves this to the launch");
            Ok(None)
        }
    }
}
