//! The questions of `muster doctor`: whether the controller answers and what it is, which partitions take jobs, and what `preflight`
//! finds. A cluster that does not answer the first is asked nothing more.

use crate::{
    answers::{
        nodes::Node,
        settings::{About, Partition, about, config},
    },
    plan::{Handle, Place, partition_of, place_of, planned},
    poll::{Cluster, Clusters},
};
use futures_util::future::join_all;
use muster_core::{
    error::{Class, SchedulerError, chain},
    job::inventory::Examined,
    probe::{self, Probe, Probed},
};
use muster_host::clock;
use muster_text::time::Timestamp;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::time::{Instant, timeout, timeout_at};

/// The clusters that have answered.
type Reached = BTreeMap<Place, Known>;

/// What is known of a cluster.
#[derive(Debug, Clone, Default)]
struct Known {
    /// The partitions that jobs name: none is the default one.
    named: BTreeSet<Option<String>>,
    has_accounting: bool,
    /// No job is selected: the site names them. What jobs name, `cases` looks for.
    is_of_site: bool,
}

/// `preflight`: what that finds, if it is asked.
pub(crate) fn questions<'a>(
    clusters: &'a Clusters,
    examined: Examined<'a>,
    preflight: impl Future<Output = Vec<Probed>> + Send + 'a,
) -> Vec<Probe<'a>> {
    let reached = Arc::new(Mutex::new(Reached::new()));
    let [first, second, third, fourth] = [(); 4].map(|()| Arc::clone(&reached));
    vec![
        Probe::new("slurmctld", async move {
            let (found, reached) = contact(clusters, examined).await;
            *first.lock() = reached;
            found
        }),
        Probe::new("accounting", async move {
            let reached = second.lock().clone();
            let asked = reached.into_iter().map(|(place, known)| async move { accounting(&clusters.at(&place), &known).await });
            join_all(asked).await
        }),
        Probe::new("partitions", async move {
            let reached = third.lock().clone();
            let asked = reached.into_iter().map(|(place, known)| async move { partitions(&clusters.at(&place), &known).await });
            join_all(asked).await.concat()
        }),
        Probe::new("cases", async move {
            let has_answered = !fourth.lock().is_empty();
            if !has_answered {
                return Vec::new();
            }
            let hint = "start them by hand: `scontrol show partition`, `sinfo`, `sbatch --test-only`";
            let silent = || Probed::error("cases", chain(&silent("scontrol, sinfo or sbatch")), Some(hint.to_owned()));
            timeout(probe::PART, preflight).await.unwrap_or_else(|_| vec![silent()])
        }),
    ]
}

/// Which clusters the jobs are for, and what these say of themselves. Without a job it is the one that the site names.
async fn contact(clusters: &Clusters, examined: Examined<'_>) -> (Vec<Probed>, Reached) {
    let mut places = Reached::new();
    for job in examined.workloads.all().filter_map(|workload| planned(&workload).ok()) {
        if let Ok(handle) = Handle::of(&job) {
            places.entry(handle.place.clone()).or_default().named.insert(handle.partition.clone());
        }
    }
    if places.is_empty() {
        let named = BTreeSet::from([partition_of(examined.options, examined.shared)]);
        places.insert(place_of(examined.options), Known { named, is_of_site: true, ..Known::default() });
    }
    let (mut found, mut reached) = (Vec::new(), Reached::new());
    let asked = places.into_iter().map(|(place, known)| async move {
        let answer = timeout(probe::PART, clusters.at(&place).answer("scontrol", &["show", "config"])).await;
        (place, known, answer.unwrap_or_else(|_| Err(silent("scontrol show config"))))
    });
    for (place, known, answer) in join_all(asked).await {
        match answer {
            Ok(text) => {
                let about = about(&text);
                found.push(Probed::fine("slurmctld", title(&about)));
                found.push(skew(about.now, clock::now()));
                reached.insert(place, Known { has_accounting: config(&text).accounting, ..known });
            }
            Err(error) => found.push(away(&error)),
        }
    }
    (found, reached)
}

/// A command that was ended before its own limit.
fn silent(command: &str) -> SchedulerError {
    SchedulerError::plain(Class::Outage, format!("`{command}` has not answered for {}", probe::seconds(probe::PART)))
}

fn title(About { version, cluster, .. }: &About) -> String {
    let version = version.as_deref().unwrap_or("of an unknown version");
    let cluster = cluster.as_ref().map_or_else(String::new, |cluster| format!(", cluster {cluster}"));
    format!("Slurm {version}{cluster}")
}

fn away(error: &SchedulerError) -> Probed {
    let what = chain(error);
    let hint = match error.class {
        // Its cases do not wait: they end as `error{config}`.
        _ if what.contains("Could not establish a configuration source") => {
            "this host has no slurm.conf: set SLURM_CONF, or run Muster on a login node"
        }
        Class::Config => "load the module that has Slurm's commands, or run Muster on a login node",
        _ => "ask `scontrol ping`; sessions wait for it, and start nothing",
    };
    Probed::error("slurmctld", what, Some(hint.to_owned()))
}

fn skew(there: Option<Timestamp>, here: Timestamp) -> Probed {
    let ahead = there.map(|there| there.0.saturating_sub(here.0) / 1_000_000);
    probe::clock(ahead, "slurmctld", "credentials")
}

async fn accounting(cluster: &Cluster, known: &Known) -> Probed {
    if !known.has_accounting {
        return Probed::fine("accounting", "off: how a job has ended is read from its exit file, and from squeue");
    }
    // Of no job: whether it answers.
    let answer = cluster.answer("sacct", &["-n", "-X", "-P", "-o", "JobID", "--name", "rfm-doctor"]);
    let why = match timeout(probe::PART, answer).await {
        Ok(Ok(_)) => return Probed::fine("accounting", "sacct answers"),
        Ok(Err(error)) => chain(&error),
        Err(_) => format!("sacct has not answered for {}", probe::seconds(probe::PART)),
    };
    let hint = "cases run, and less is known of jobs that leave no exit file: look at slurmdbd";
    Probed::warning("accounting", why, Some(hint.to_owned()))
}

/// The partitions that jobs name; those of the site if there is no job.
async fn partitions(cluster: &Cluster, known: &Known) -> Vec<Probed> {
    let names = &known.named;
    let by = Instant::now() + probe::PART;
    let hint = Some("ask `scontrol ping`, and start it by hand".to_owned());
    let all = match timeout_at(by, cluster.partitions()).await.unwrap_or_else(|_| Err(silent("scontrol show partition"))) {
        Ok(all) => all,
        Err(error) => return vec![Probed::error("partitions", chain(&error), hint)],
    };
    let is_named = |partition: &Partition| {
        let is = |name: &Option<String>| match name {
            // Jobs name several, of which one takes them.
            Some(names) => names.split(',').any(|name| name.trim() == partition.name),
            None => partition.is_default,
        };
        names.iter().any(is)
    };
    let mut found = Vec::new();
    for partition in all.iter().filter(|partition| is_named(partition)) {
        let nodes = timeout_at(by, cluster.nodes(Some(&partition.name))).await;
        found.push(match nodes.unwrap_or_else(|_| Err(silent("sinfo"))) {
            Ok(nodes) => takes_jobs(partition, &nodes),
            Err(error) => Probed::warning("partition", format!("{}: {}", partition.name, chain(&error)), None),
        });
    }
    let all_named = names.iter().flatten().flat_map(|names| names.split(',')).map(str::trim);
    for missing in all_named.filter(|name| known.is_of_site && !all.iter().any(|partition| partition.name == *name)) {
        let hint = Some("correct `access` or `options` in the site file; `sinfo -s` lists the partitions".to_owned());
        found.push(Probed::error("partition", format!("{missing} is not there, or you may not use it"), hint));
    }
    if found.is_empty() && names.contains(&None) {
        let all: Vec<&str> = all.iter().map(|partition| &*partition.name).collect();
        let what = format!("the site names none, and the cluster has no default one; you may use: {}", all.join(", "));
        found.push(Probed::warning("partitions", what, Some("name one in the site file, with `access`".to_owned())));
    }
    found
}

/// Whether a partition takes jobs now, and on how many nodes.
fn takes_jobs(partition: &Partition, nodes: &[Node]) -> Probed {
    let available = nodes.iter().filter(|node| node.is_available(false)).count();
    let what = format!("{} is {}, {available} of {} node(s) take jobs", partition.name, partition.state, nodes.len());
    let away = nodes.iter().find(|node| !node.is_available(false)).map(Node::line);
    let hint = |what: &str| {
        let first = away.as_ref().map_or_else(String::new, |line| format!("; the first that does not: {line}"));
        Some(format!("{what}{first}"))
    };
    match (&*partition.state, available) {
        ("UP", 1..) => Probed::fine("partition", what),
        ("UP", 0) => Probed::warning("partition", what, hint("its cases wait for a node: see `sinfo -R`")),
        _ => Probed::error("partition", what, hint("take another partition, or ask when it is up")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::nodes;

    fn line(probed: &Probed) -> String {
        let hint = probed.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
        format!("{} {}: {}{hint}", probed.level, probed.topic, probed.what)
    }

    #[test]
    fn a_partition_takes_jobs_if_it_is_up_and_has_a_node() {
        let said = |state: &str, nodes: &str| {
            let partition = Partition { name: "main".into(), state: state.into(), ..Partition::default() };
            line(&takes_jobs(&partition, &nodes::parse(nodes)))
        };
        let (good, bad) = ("n1|idle|a|main|none|\n", "n2|idle+drain|a|main|bad gpu|\n");
        let rows = [
            ("UP", format!("{good}{bad}"), "ok partition: main is UP, 1 of 2 node(s) take jobs"),
            (
                "UP",
                bad.to_owned(),
                "warning partition: main is UP, 0 of 1 node(s) take jobs (its cases wait for a node: see `sinfo -R`; the first that does not: n2 idle+drain (bad gpu))",
            ),
            (
                "DOWN",
                good.to_owned(),
                "error partition: main is DOWN, 1 of 1 node(s) take jobs (take another partition, or ask when it is up)",
            ),
        ];
        for (state, nodes, expected) in rows {
            assert_eq!(said(state, &nodes), expected);
        }
    }

    #[test]
    fn a_controller_that_is_away_says_what_to_do() {
        let away = |class, what: &str| line(&away(&SchedulerError::plain(class, what)));
        assert_eq!(
            away(Class::Config, "scontrol is not on the PATH: module load slurm?"),
            "error slurmctld: scontrol is not on the PATH: module load slurm? (load the module that has Slurm's commands, or run Muster on a login node)"
        );
        assert_eq!(
            away(Class::Outage, "scontrol: Unable to contact slurm controller"),
            "error slurmctld: scontrol: Unable to contact slurm controller (ask `scontrol ping`; sessions wait for it, and start nothing)"
        );
        let unconfigured = "scontrol: fatal: Could not establish a configuration source";
        assert_eq!(
            away(Class::Outage, unconfigured),
            format!(
                "error slurmctld: {unconfigured} (this host has no slurm.conf: set SLURM_CONF, or run Muster on a login node)"
            )
        );
    }
}
