//! The questions of `muster doctor` about the places of a partition. A place that does not answer the first is asked nothing more.
//! Each has a limit of its own: one that says nothing takes away no finding of another.

use super::Kubernetes;
use crate::{
    api::{ClusterPlace, Resource},
    client::{self, ApiError, Route, Selection, Why},
    doctor::{self, PlacePlans},
    plan, preflight,
};
use futures_util::future::join_all;
use muster_core::{
    case::SessionId,
    error::{SchedulerError, chain},
    job::inventory::Examined,
    probe::{self, Level, Probe, Probed, named},
};
use muster_text::Value;
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};
use tokio::{
    task::yield_now,
    time::{Instant, timeout, timeout_at},
};

/// What is known after the first question.
#[derive(Default)]
struct Places {
    /// Of the cases.
    names: Vec<String>,
    /// Those that have answered.
    reached: Vec<Reached>,
}

struct Reached {
    place: ClusterPlace,
    plans: PlacePlans,
    route: Route,
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
                let asked = places.reached.iter().map(async |at| {
                    let answer = timeout(probe::PART, self.ask_place(&at.place, &at.plans, &places.names)).await;
                    answer.unwrap_or_else(|_| vec![doctor::silent("rights", &at.place, &at.route, probe::PART)])
                });
                join_all(asked).await.concat()
            }),
            Probe::new("capacity", async move {
                let places = Arc::clone(&third.lock());
                let asked = places.reached.iter().map(async |at| {
                    let answer = timeout(probe::PART, self.ask_nodes(&at.place, &at.plans, &places.names)).await;
                    let silent = || doctor::silent("capacity", &at.place, &at.route, probe::PART).at_most(Level::Warning);
                    answer.unwrap_or_else(|_| vec![silent()])
                });
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
        for ((said, route), (place, plans)) in contacts.into_iter().zip(places) {
            found.extend(said);
            reached.extend(route.map(|route| Reached { place, plans, route }));
        }
        (found, Places { names, reached })
    }

    /// What a place says of itself, and how it was reached; `None`: it was not.
    async fn contact(&self, place: &ClusterPlace) -> (Vec<Probed>, Option<Route>) {
        let unusable = |error: String| (vec![Probed::error("cluster", error, None)], None);
        let route = match client::route(place).await {
            Ok(route) => route,
            Err(error) => return unusable(chain(&error)),
        };
        let cluster = match self.cluster(place).await {
            Ok(cluster) => cluster,
            Err(error) => return unusable(chain(&error)),
        };
        let by = Instant::now() + probe::PART;
        match timeout_at(by, cluster.log_in()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return unusable(chain(&error)),
            Err(_) => return (vec![doctor::no_credentials(place, &route, probe::PART)], None),
        }
        match timeout_at(by, cluster.contact()).await {
            Ok(Ok(contact)) => {
                let said = doctor::contacted(place, &route, &contact);
                (said.into_iter().chain([doctor::proxy(&route)]).collect(), Some(route))
            }
            Ok(Err(error)) => {
                let proxy = if error.is_silence() { doctor::proxy_without_answer(&route) } else { doctor::proxy(&route) };
                (vec![doctor::not_contacted(place, &route.server, &error), proxy], None)
            }
            Err(_) => {
                let silent = doctor::silent("cluster", place, &route, probe::PART);
                (vec![silent, doctor::proxy_without_answer(&route)], None)
            }
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
