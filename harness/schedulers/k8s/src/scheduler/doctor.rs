//! The questions of `muster doctor` about the places of a partition. A place that does not answer the first is asked nothing more.

use super::Kubernetes;
use crate::{
    api::{ClusterPlace, Resource},
    client::{self, ApiError, Selection, Why},
    doctor::{self, PlacePlans},
    plan, preflight,
};
use futures_util::future::join_all;
use muster_core::{
    case::SessionId,
    error::{SchedulerError, chain},
    job::inventory::Examined,
    probe::{self, Probe, Probed, named},
};
use muster_text::Value;
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};
use tokio::{task::yield_now, time::timeout};

/// What is known after the first question.
#[derive(Default)]
struct Places {
    /// Of the cases.
    names: Vec<String>,
    /// Those that have answered.
    reached: Vec<(ClusterPlace, PlacePlans)>,
}

impl Kubernetes {
    pub(super) fn questions<'a>(&'a self, examined: Examined<'a>) -> Vec<Probe<'a>> {
        let places = Arc::new(Mutex::new(Arc::new(Places::default())));
        let (first, second, third) = (Arc::clone(&places), Arc::clone(&places), places);
        vec![
            Probe::new("cluster", async move {
                let (found, reached) = self.contact_places(examined).await;
                *first.lock() = Arc::new(reached);
                found
            }),
            Probe::new("rights and quotas", async move {
                let places = Arc::clone(&second.lock());
                let asked = places.reached.iter().map(|(place, plans)| self.ask_place(place, plans, &places.names));
                join_all(asked).await.concat()
            }),
            Probe::new("capacity", async move {
                let places = Arc::clone(&third.lock());
                let asked = places.reached.iter().map(|(place, plans)| self.ask_nodes(place, plans, &places.names));
                join_all(asked).await.concat()
            }),
        ]
    }

    /// Plans the workloads, and looks who answers in their places.
    async fn contact_places(&self, examined: Examined<'_>) -> (Vec<Probed>, Places) {
        let (mut names, mut places) = (Vec::new(), BTreeMap::<ClusterPlace, PlacePlans>::new());
        let mut mistakes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, workload) in examined.workloads.all().enumerate() {
            match plan::plan(&workload, &self.contexts) {
                Ok(plan) => places.entry(plan.handle.place.clone()).or_default().add(at, &plan.handle),
                Err(found) => {
                    for mistake in found {
                        mistakes.entry(mistake.message).or_default().push(at);
                    }
                }
            }
            names.push(workload.case.display);
            // Other partitions are asked meanwhile.
            yield_now().await;
        }
        let mut nowhere = None;
        if places.is_empty() {
            let text = |key: &str| examined.options[key].as_str();
            match self.contexts.place(text("context"), text("namespace")) {
                Ok(place) => drop(places.insert(place, PlacePlans::default())),
                Err(error) => {
                    // Its cases say the same.
                    mistakes.remove(&error.to_string());
                    nowhere = Some(doctor::no_place(&error));
                }
            }
        }
        let mistake =
            |(what, cases): (String, Vec<usize>)| Probed::error("cases", format!("{}: {what}", named(&names, &cases)), None);
        let mut found: Vec<Probed> = mistakes.into_iter().map(mistake).chain(nowhere).collect();
        let mut reached = Vec::new();
        let contacts = join_all(places.keys().map(|place| self.contact(place))).await;
        for ((said, has_answered), (place, plans)) in contacts.into_iter().zip(places) {
            found.extend(said);
            if has_answered {
                reached.push((place, plans));
            }
        }
        (found, Places { names, reached })
    }

    /// What a place says of itself, and whether it answers.
    async fn contact(&self, place: &ClusterPlace) -> (Vec<Probed>, bool) {
        let unusable = |error: String| (vec![Probed::error("cluster", error, None)], false);
        let route = match client::route(place).await {
            Ok(route) => route,
            Err(error) => return unusable(chain(&error)),
        };
        let cluster = match self.cluster(place).await {
            Ok(cluster) => cluster,
            Err(error) => return unusable(chain(&error)),
        };
        let proxy = doctor::proxy(&route);
        match timeout(probe::PART, cluster.contact()).await {
            Ok(Ok(contact)) => {
                let said = doctor::contacted(place, &route, &contact);
                (said.into_iter().chain([proxy]).collect(), true)
            }
            Ok(Err(error)) => (vec![doctor::not_contacted(place, &route.server, &error), proxy], false),
            Err(_) => (vec![doctor::silent(place, &route.server, probe::PART), proxy], false),
        }
    }

    /// Namespace, kinds, rights, queues and quotas.
    async fn ask_place(&self, place: &ClusterPlace, plans: &PlacePlans, names: &[String]) -> Vec<Probed> {
        let asked = async {
            let shared = self.shared(place, &SessionId("doctor".to_owned())).await?;
            let answers = preflight::answers(&shared, plans.needs(), plans.rights()).await.map_err(ApiError::classify)?;
            Ok::<_, SchedulerError>(answers)
        };
        match asked.await {
            Ok(answers) => doctor::answered(place, plans, names, &answers),
            Err(error) => vec![Probed::error("rights", format!("{place}: {}", chain(&error)), None)],
        }
    }

    async fn ask_nodes(&self, place: &ClusterPlace, plans: &PlacePlans, names: &[String]) -> Vec<Probed> {
        if plans.pods().is_empty() {
            return Vec::new();
        }
        let nodes = async {
            let cluster = self.cluster(place).await?;
            let listed = cluster.list(&Resource::of("v1", "Node"), Selection::default()).await;
            match listed {
                Ok(listed) => Ok(Some(listed.items)),
                Err(error) if error.why() == Why::NotAllowed => Ok(None),
                Err(error) => Err(error.classify()),
            }
        };
        let nodes: Result<Option<Vec<Value>>, SchedulerError> = nodes.await;
        match nodes {
            Ok(Some(nodes)) => plans.pods().iter().map(|(shape, plans)| doctor::capacity(shape, &nodes, names, plans)).collect(),
            Ok(None) => {
                let hint = "grant `list nodes` in a ClusterRole, or leave it to the launch";
                vec![Probed::warning("capacity", "not looked at: nodes may not be listed", Some(hint.to_owned()))]
            }
            Err(error) => vec![Probed::warning("capacity", format!("{place}: {}", chain(&error)), None)],
        }
    }
}
