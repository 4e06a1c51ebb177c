//! Lists the jobs in the queues with our name, for `muster sweep` and for takeovers. Jobs that have ended need no sweep.

use crate::{
    answers::{State, descriptions, jobs::time},
    plan::{Handle, NAME, Place, place_of},
    poll::Clusters,
};
use futures_util::future::join_all;
use muster_core::{
    case::{Identifier, SessionId},
    job::{
        handle::JobHandle,
        inventory::{Found, Inventory, Scope},
        scheduler::{Job, NodeSeen},
    },
};
use muster_host::clock;
use muster_text::{
    Value,
    time::{Timestamp, format_duration},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};
use tokio::time::timeout;

/// How long a session waits for the description of nodes.
const NODES_LIMIT: Duration = Duration::from_secs(4);

/// Number, state, submit time, nodes, working folder, name, comment.
const COLUMNS: &str = "%A|%T|%V|%D|%Z|%j|%k";

/// A job of ours in the queue.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    id: String,
    word: String,
    submitted: Option<Timestamp>,
    nodes: String,
    folder: String,
    name: String,
    identifier: Identifier,
    session: Option<SessionId>,
}

/// What the clusters of some partitions say of their nodes. One that does not answer in time says nothing.
pub(crate) async fn described_nodes(clusters: &Clusters, partitions: &[Value]) -> Vec<NodeSeen> {
    let places: BTreeSet<Place> = partitions.iter().map(place_of).collect();
    let look = async |place: Place| {
        let cluster = clusters.at(&place);
        timeout(NODES_LIMIT, cluster.answer("scontrol", &["-o", "show", "node"])).await.ok()?.ok()
    };
    let answers = join_all(places.into_iter().map(look)).await;
    answers.iter().flatten().flat_map(|text| descriptions::parse(text)).collect()
}

pub(crate) async fn look(clusters: &Clusters, scope: &Scope) -> Inventory {
    let mut places: BTreeSet<Place> = scope.partitions.iter().map(place_of).collect();
    let mut stored: BTreeMap<Identifier, &Job> = BTreeMap::new();
    let mut by_place: BTreeMap<Place, Vec<&Job>> = BTreeMap::new();
    for job in &scope.jobs {
        let Ok(handle) = Handle::of(job) else { continue };
        places.insert(handle.place.clone());
        stored.insert(job.identifier.clone(), job);
        by_place.entry(handle.place.clone()).or_default().push(job);
    }
    let mut inventory = Inventory::default();
    for place in places {
        match clusters.at(&place).answer("squeue", &["-h", "-a", "--me", "-t", "all", "-o", COLUMNS]).await {
            Ok(text) => {
                let listed: Vec<Listed> = text.lines().filter_map(listed).collect();
                let found: Vec<Found> = listed.iter().map(|one| found(one, &place, &stored)).collect();
                let is_there = |job: &Job| found.iter().any(|found| found.job.is_same(job));
                let absent = by_place.get(&place).into_iter().flatten().filter(|job| !is_there(job));
                inventory.absent.extend(absent.map(|job| job.id()));
                inventory.found.extend(found);
            }
            Err(error) => inventory.blind.push(error),
        }
    }
    inventory.found.sort_by(|one, other| one.job.identifier.cmp(&other.job.identifier));
    inventory
}

/// `12|RUNNING|1795331056|1|/stage|rfm-x-abcdefgh|rfm=abcdefgh rfm-session=S`
fn listed(line: &str) -> Option<Listed> {
    let fields: Vec<&str> = line.splitn(7, '|').map(str::trim).collect();
    let [id, word, submitted, nodes, folder, name, comment] = fields[..] else { return None };
    let identifier = Identifier::parse(name.strip_prefix("rfm-")?.rsplit_once('-')?.1)?;
    let session = comment.split_whitespace().find_map(|word| word.strip_prefix("rfm-session="));
    (!State::of(word).is_final()).then(|| Listed {
        id: id.to_owned(),
        word: word.to_owned(),
        submitted: time(submitted),
        nodes: nodes.to_owned(),
        folder: folder.to_owned(),
        name: name.to_owned(),
        identifier,
        session: session.map(|session| SessionId(session.to_owned())),
    })
}

fn found(listed: &Listed, place: &Place, stored: &BTreeMap<Identifier, &Job>) -> Found {
    let known =
        stored.get(&listed.identifier).filter(|job| listed.session.as_ref().is_none_or(|session| *session == job.session));
    let handle = known.and_then(|job| Handle::of(job).ok());
    let handle = Handle {
        id: Some(listed.id.clone()),
        launched: listed.submitted,
        ..handle.map_or_else(|| unknown(listed, place), |handle| (*handle).clone())
    };
    let job = match known {
        Some(job) => job.with(JobHandle::of(handle)),
        None => Job {
            identifier: listed.identifier.clone(),
            session: listed.session.clone().unwrap_or_else(|| SessionId("unknown".to_owned())),
            case: "a job that no database knows".to_owned(),
            scheduler: NAME.into(),
            stage: PathBuf::from(&listed.folder),
            handle: JobHandle::of(handle),
        },
    };
    let age = listed.submitted.map_or(Duration::ZERO, |submitted| clock::now().since(submitted));
    let age = format_duration(Duration::from_secs(age.as_secs()));
    Found {
        job,
        what: format!("job {} ({}, submitted {age} ago)", listed.id, listed.word),
        cost: (State::of(&listed.word) != State::Pending && listed.nodes != "1").then(|| format!("{} nodes", listed.nodes)),
        kept: None,
        place: place.cluster.clone().unwrap_or_default(),
        has_ended: false,
    }
}

fn unknown(listed: &Listed, place: &Place) -> Handle {
    Handle { place: place.clone(), name: listed.name.clone(), ..Handle::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_live_jobs_with_our_names_are_listed() {
        let rows = [
            ("12|RUNNING|1795331056|1|/s|rfm-x-abcdefgh|rfm=abcdefgh rfm-session=S1", Some("S1")),
            ("12|PENDING|1795331056|1|/s|rfm-a-b-abcdefgh|(null)", None),
        ];
        for (line, session) in rows {
            let listed = listed(line).unwrap();
            assert_eq!(
                (listed.identifier.as_str(), listed.session),
                ("abcdefgh", session.map(|s| SessionId(s.into()))),
                "{line}"
            );
        }
        for line in [
            "12|COMPLETED|1795331056|1|/s|rfm-x-abcdefgh|rfm-session=S1",
            "12|RUNNING|1795331056|1|/s|other|",
            "12|RUNNING|1795331056|1|/s|rfm-x-abc|",
            "",
        ] {
            assert_eq!(listed(line), None, "{line}");
        }
    }
}
