//! Finds jobs that can never run, before anything is launched: Slurm accepts a time limit above that of the partition, and the
//! job then waits without end.

use crate::{
    answers::settings::Partition,
    plan::{Handle, Place},
    poll::Clusters,
};
use muster_core::{
    error::{Class, SchedulerError},
    job::scheduler::{Finding, Job},
};
use muster_text::diagnostic::did_you_mean;
use std::{collections::BTreeMap, sync::Arc};

/// What was found, each with the positions of the workloads that it ends.
pub(crate) async fn findings(clusters: &Clusters, jobs: Vec<Option<Job>>) -> Result<Vec<Finding>, SchedulerError> {
    let mut places: BTreeMap<Place, Vec<(usize, Arc<Handle>)>> = BTreeMap::new();
    for (at, job) in jobs.iter().enumerate() {
        // What cannot be planned is told with its case.
        let Some(handle) = job.as_ref().and_then(|job| Handle::of(job).ok()) else { continue };
        places.entry(handle.place.clone()).or_default().push((at, handle));
    }
    let mut findings: BTreeMap<String, Finding> = BTreeMap::new();
    for (place, handles) in places {
        let cluster = clusters.at(&place);
        let partitions = match cluster.partitions().await {
            Ok(partitions) => partitions,
            Err(error) if error.class == Class::Config => {
                let workloads = handles.iter().map(|(at, _)| *at).collect();
                let hint = Some("load the module that has Slurm's commands, or run Muster on a login node".to_owned());
                findings.insert(error.operation.clone(), Finding { workloads, what: error.operation, hint });
                continue;
            }
            // It passes: the launch waits for it.
            Err(_) => continue,
        };
        for (at, handle) in handles {
            let Some((what, hint)) = wrong(&handle, partitions) else { continue };
            let finding = findings.entry(what.clone()).or_insert_with(|| Finding { workloads: Vec::new(), what, hint });
            finding.workloads.push(at);
        }
    }
    Ok(findings.into_values().collect())
}

/// Why no partition that it names can ever run it.
fn wrong(handle: &Handle, partitions: &[Partition]) -> Option<(String, Option<String>)> {
    let Some(names) = &handle.partition else {
        let usual = partitions.iter().find(|partition| partition.is_default)?;
        return limits(handle, usual);
    };
    let mut why = Vec::new();
    for name in names.split(',').map(str::trim) {
        let found = match partitions.iter().find(|partition| partition.name == name) {
            // Hidden partitions are listed to those who may use them.
            None if partitions.is_empty() => None,
            None => {
                let names = partitions.iter().map(|partition| partition.name.as_str());
                let all = || format!("there are {}", partitions.iter().map(|one| &*one.name).collect::<Vec<_>>().join(", "));
                Some((format!("Slurm has no partition {name}"), Some(did_you_mean(name, names).unwrap_or_else(all))))
            }
            Some(partition) => limits(handle, partition),
        };
        why.push(found?);
    }
    why.into_iter().next()
}

fn limits(handle: &Handle, partition: &Partition) -> Option<(String, Option<String>)> {
    let name = &partition.name;
    // A quality of service may be above the limits of a partition: if it is not, the job says why it waits.
    let is_above = partition.has_qos || handle.script.contains("\n#SBATCH --qos=");
    if !is_above
        && let (Some(minutes), Some(most)) = (handle.minutes, partition.max_time)
        && minutes > most
    {
        let what = format!("`time_limit` is {minutes} min in whole minutes, and partition {name} allows {most} min");
        return Some((what, Some("lower it, or take another partition".to_owned())));
    }
    if let (Some(nodes), most) = (handle.nodes, partition.max_nodes.filter(|_| !is_above).unwrap_or(u64::MAX)) {
        let there = u64::try_from(partition.nodes.len()).unwrap_or(u64::MAX);
        let most = if there == 0 { most } else { most.min(there) };
        if nodes > most {
            return Some((format!("the job asks for {nodes} nodes, and partition {name} gives {most}"), None));
        }
    }
    matches!(&*partition.state, "DOWN" | "INACTIVE" | "DRAIN").then(|| (format!("partition {name} is {}", partition.state), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(name: &str, max_time: Option<u64>, max_nodes: Option<u64>, state: &str) -> Partition {
        let nodes = vec!["n1".to_owned(), "n2".to_owned(), "n3".to_owned()];
        Partition {
            name: name.to_owned(),
            is_default: name == "main",
            state: state.to_owned(),
            max_time,
            max_nodes,
            nodes,
            ..Partition::default()
        }
    }

    #[test]
    fn what_would_wait_for_ever_is_found() {
        let partitions = [
            partition("main", Some(60), None, "UP"),
            partition("short", Some(1), Some(1), "UP"),
            partition("down", None, None, "DOWN"),
        ];
        let rows = [
            (None, Some(60), None, None),
            (None, Some(61), None, Some("`time_limit` is 61 min in whole minutes, and partition main allows 60 min")),
            (Some("short"), Some(10), None, Some("`time_limit` is 10 min in whole minutes, and partition short allows 1 min")),
            (Some("short,main"), Some(11), None, None),
            (Some("short"), None, Some(2), Some("the job asks for 2 nodes, and partition short gives 1")),
            (Some("main"), None, Some(9), Some("the job asks for 9 nodes, and partition main gives 3")),
            (Some("down"), None, None, Some("partition down is DOWN")),
            (Some("mian"), None, None, Some("Slurm has no partition mian")),
        ];
        for (name, minutes, nodes, expected) in rows {
            let handle = Handle { partition: name.map(str::to_owned), minutes, nodes, ..Handle::default() };
            assert_eq!(wrong(&handle, &partitions).map(|(what, _)| what).as_deref(), expected, "{name:?} {minutes:?} {nodes:?}");
        }
        let long = Handle { partition: Some("short".to_owned()), minutes: Some(11), nodes: Some(2), ..Handle::default() };
        let asks = Handle { script: "#!/bin/sh\n#SBATCH --qos=long\n".to_owned(), ..long.clone() };
        assert_eq!(wrong(&asks, &partitions), None, "its quality of service may be above both limits");
        let has = partitions.map(|partition| Partition { has_qos: true, ..partition });
        assert_eq!(wrong(&long, &has), None, "and so may that of the partition");
    }
}
