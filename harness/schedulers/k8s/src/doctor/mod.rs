//! The lines of `muster doctor` for a place, from what its server has answered. Pure; `scheduler` asks.
//!
//! ```text
//! route, Contact          -contacted-> proxy, cluster, clock
//! PlacePlans, Answers     -answered->  namespace, kinds, rights, queues, quota: each with its problems, else what was looked at
//! PodShape, nodes         -room->      capacity
//! ```

mod room;

pub(crate) use room::{PodShape, capacity};

use crate::{
    api::{ClusterPlace, Quantity},
    client::{ApiError, Contact, ContextError, Route, Why},
    job::Handle,
    launch::gangs,
    plan::role::{self, Right},
    preflight::{Answers, Need, Problem, Topic, all_problems, missing_rights},
    quota::QuotaStatus,
};
use muster_core::probe::{Level, Probed, clock, named, seconds};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// What the plans of a place need there.
#[derive(Debug, Default)]
pub(crate) struct PlacePlans {
    needs: BTreeMap<Need, Vec<usize>>,
    /// All rights of the Role that `muster k8s role` prints.
    rights: BTreeSet<Right>,
    pods: BTreeMap<PodShape, Vec<usize>>,
}

impl PlacePlans {
    /// Adds the plan at a position.
    pub(crate) fn add(&mut self, at: usize, handle: &Handle) {
        self.needs.entry(Need::of(handle)).or_default().push(at);
        self.rights.extend(role::all(handle));
        for gang in handle.workload().map(gangs).unwrap_or_default() {
            self.pods.entry(PodShape::of(&gang)).or_default().push(at);
        }
    }

    pub(crate) fn needs(&self) -> &BTreeMap<Need, Vec<usize>> {
        &self.needs
    }

    pub(crate) fn rights(&self) -> &BTreeSet<Right> {
        &self.rights
    }

    /// The pods that run, each with the positions of the plans.
    pub(crate) fn pods(&self) -> &BTreeMap<PodShape, Vec<usize>> {
        &self.pods
    }
}

/// The proxy on the way to a server.
pub(crate) fn proxy(route: &Route) -> Probed {
    match &route.proxy {
        Some(proxy) => Probed::fine("proxy", format!("{proxy}, on the way to {}", route.server)),
        None => Probed::fine("proxy", format!("none on the way to {}", route.server)),
    }
}

/// The same, if nothing has come back: it may be the proxy's doing.
pub(crate) fn proxy_without_answer(route: &Route) -> Probed {
    let Some(on_the_way) = &route.proxy else { return proxy(route) };
    let hint = "look at `proxy-url` in the kubeconfig, else HTTPS_PROXY and HTTP_PROXY, and whether the proxy runs".to_owned();
    Probed::warning("proxy", format!("nothing has come through {on_the_way}, on the way to {}", route.server), Some(hint))
}

/// A server that has answered.
pub(crate) fn contacted(place: &ClusterPlace, route: &Route, contact: &Contact) -> Vec<Probed> {
    let version = format!("Kubernetes {} at {}, {place}", contact.version, route.server);
    vec![Probed::fine("cluster", version), clock(contact.ahead, "the server", "certificates and tokens")]
}

/// A server that has not answered, or not as it should.
pub(crate) fn not_contacted(place: &ClusterPlace, server: &str, error: &ApiError) -> Probed {
    let hint = match error.why() {
        Why::Unauthorized => {
            Some("its credentials are not accepted: log in again, or look at `users` in the kubeconfig".to_owned())
        }
        Why::Transient => Some(unreachable()),
        _ => None,
    };
    Probed::error("cluster", format!("{server}, {place}: {error}"), hint)
}

/// Options that lead to no server.
pub(crate) fn no_place(error: &ContextError) -> Probed {
    let hint = match error {
        ContextError::Unknown { .. } => Some(
            "correct `context` in `sched_options`, or leave it out: then the current one is used, and in a pod its own cluster",
        ),
        // These say it themselves.
        ContextError::NoCluster(_) | ContextError::NoCurrent(_) | ContextError::Kubeconfig { .. } => None,
    };
    Probed::error("cluster", error.to_string(), hint.map(str::to_owned))
}

/// A server that says nothing about a topic.
pub(crate) fn silent(topic: &'static str, place: &ClusterPlace, route: &Route, limit: Duration) -> Probed {
    let what = format!("{}, {place}: no answer within {}", route.server, seconds(limit));
    Probed::error(topic, what, Some(unreachable()))
}

/// Credentials that do not come. The server was not asked.
pub(crate) fn no_credentials(place: &ClusterPlace, route: &Route, limit: Duration) -> Probed {
    let limit = seconds(limit);
    let (what, hint) = match &route.plugin {
        Some(plugin) => (
            format!("{place}: the credential plugin `{plugin}` has given no answer within {limit}, and was ended"),
            "start it by hand: it may wait for a login, a network or a terminal",
        ),
        None => (
            format!("{place}: its credentials have not come within {limit}"),
            "look at `users` in the kubeconfig, and at the files and programs that it names",
        ),
    };
    Probed::error("cluster", what, Some(hint.to_owned()))
}

fn unreachable() -> String {
    "look at the address in the kubeconfig, the proxy, the firewall or VPN on the way, and whether the server is up".to_owned()
}

/// What a server has said of what the plans need. `names`: of the cases.
pub(crate) fn answered(place: &ClusterPlace, plans: &PlacePlans, names: &[String], answers: &Answers) -> Vec<Probed> {
    if answers.no_namespace() {
        let missing = Problem::no_namespace(place);
        return vec![Probed::error(word(Topic::Namespace), missing.what, missing.hint)];
    }
    let problems = all_problems(place, &plans.needs, answers);
    let of = |topic: Topic| {
        let own = problems.iter().filter(move |(problem, _)| problem.topic == topic);
        own.map(move |(Problem { what, hint, .. }, plans)| {
            Probed::error(word(topic), format!("{}: {what}", named(names, plans)), hint.clone())
        })
    };
    let mut found = vec![namespace(place, answers)];
    for topic in [Topic::Kinds, Topic::Rights, Topic::Queues, Topic::Quota] {
        let mut own: Vec<Probed> = of(topic).collect();
        match topic {
            Topic::Rights => own.extend(only_explain(place, plans, answers)),
            Topic::Queues => own.extend(answers.stopped_queues().map(|(queue, why)| {
                let hint = "its cases wait: ask who runs the queue".to_owned();
                Probed::warning(word(topic), format!("LocalQueue {queue} admits nothing now: {why}"), Some(hint))
            })),
            Topic::Quota => own.extend(full_quotas(names, plans, answers)),
            Topic::Kinds | Topic::Namespace => {}
        }
        if let Some(why) = answers.unasked(topic) {
            own.push(Probed::warning(
                word(topic),
                format!("not looked at: {why}"),
                Some("grant it, or leave it to the launch".into()),
            ));
        }
        if own.iter().all(|probed| probed.level == Level::Fine) {
            own.extend(in_order(topic, plans, answers).map(|what| Probed::fine(word(topic), what)));
        }
        found.extend(own);
    }
    found
}

fn word(topic: Topic) -> &'static str {
    match topic {
        Topic::Kinds => "kinds",
        Topic::Namespace => "namespace",
        Topic::Rights => "rights",
        Topic::Quota => "quota",
        Topic::Queues => "queues",
    }
}

fn namespace(place: &ClusterPlace, answers: &Answers) -> Probed {
    match answers.unasked(Topic::Namespace) {
        // The least Role has no right to it, and other answers show that it is there.
        Some(_) => Probed::fine("namespace", format!("{} (it may not be looked at)", place.namespace)),
        None => Probed::fine("namespace", place.namespace.clone()),
    }
}

/// Rights that are missing and without which cases run all the same.
fn only_explain(place: &ClusterPlace, plans: &PlacePlans, answers: &Answers) -> Option<Probed> {
    let needed: BTreeSet<Right> = plans.needs.keys().flat_map(Need::rights).collect();
    let missing: Vec<&Right> = plans.rights.iter().filter(|right| answers.is_denied(right) && !needed.contains(*right)).collect();
    let (what, hint) = (!missing.is_empty()).then(|| missing_rights(place, missing))?;
    Some(Probed::warning(
        word(Topic::Rights),
        format!("{what}: cases run, and less is known of why they wait or what is left"),
        Some(hint),
    ))
}

/// Quotas that are too full for some pods now.
fn full_quotas(names: &[String], plans: &PlacePlans, answers: &Answers) -> Vec<Probed> {
    let mut full: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (need, plans) in &plans.needs {
        for why in need.waits_for(answers) {
            full.entry(why).or_default().extend(plans);
        }
    }
    let hint = || Some("its cases wait until others end: see `kubectl describe resourcequota`".to_owned());
    let line = |(why, plans): (String, Vec<usize>)| Probed::warning("quota", format!("{}: {why}", named(names, &plans)), hint());
    full.into_iter().map(line).collect()
}

/// What was looked at and is in order; `None`: nothing was.
fn in_order(topic: Topic, plans: &PlacePlans, answers: &Answers) -> Option<String> {
    let needs = &plans.needs;
    let listed = |items: BTreeSet<String>| (!items.is_empty()).then(|| items.into_iter().collect::<Vec<_>>().join(", "));
    match topic {
        Topic::Kinds => {
            let kinds = needs.keys().flat_map(Need::kinds);
            listed(kinds.map(|kind| format!("{} ({})", kind.kind, kind.api_version())).collect())
        }
        Topic::Rights if needs.is_empty() => None,
        Topic::Rights => Some(format!("all {} that `muster k8s role` lists", plans.rights.len())),
        Topic::Queues => listed(needs.keys().filter_map(Need::queue).map(|queue| format!("LocalQueue {queue}")).collect()),
        Topic::Quota => {
            let quotas = answers.quotas().filter_map(QuotaStatus::of);
            let used = |quota: QuotaStatus<'_>| {
                let of = |(resource, hard): (&String, &Quantity)| {
                    let used = quota.used.get(resource).copied().unwrap_or(Quantity::ZERO);
                    format!("{resource} {used} of {hard}")
                };
                format!("{}: {}", quota.name, quota.hard.iter().map(of).collect::<Vec<_>>().join(", "))
            };
            listed(quotas.map(used).collect()).or_else(|| Some("none in this namespace".to_owned()))
        }
        Topic::Namespace => None,
    }
}

#[cfg(test)]
mod tests;
