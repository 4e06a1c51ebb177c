//! Reads the settings of a cluster: `scontrol show config`, `scontrol -o show partition`.

use muster_text::{node_list::expand, time::Timestamp};
use std::{collections::BTreeMap, time::Duration};

/// What is read of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    /// sacct can answer.
    pub accounting: bool,
    /// The time for which the controller remembers a job that has ended.
    pub min_job_age: Duration,
    /// The time between TERM and KILL.
    pub kill_wait: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { accounting: true, min_job_age: Duration::from_mins(5), kill_wait: Duration::from_secs(30) }
    }
}

/// `MinJobAge               = 300 sec`
pub(crate) fn config(text: &str) -> Config {
    let value = |key| value(text, key);
    let seconds = |key| Some(Duration::from_secs(value(key)?.split_whitespace().next()?.parse().ok()?));
    let usual = Config::default();
    Config {
        accounting: value("AccountingStorageType").is_none_or(|kind| !kind.ends_with("none") && kind != "(null)"),
        min_job_age: seconds("MinJobAge").unwrap_or(usual.min_job_age),
        kill_wait: seconds("KillWait").unwrap_or(usual.kill_wait),
    }
}

/// What a cluster says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct About {
    pub version: Option<String>,
    pub cluster: Option<String>,
    /// The time at the controller.
    pub now: Option<Timestamp>,
}

/// `Configuration data as of 1795331057`, `SLURM_VERSION = 24.11.5`, `ClusterName = main`
pub(crate) fn about(text: &str) -> About {
    let seconds = text.lines().find_map(|line| line.strip_prefix("Configuration data as of ")?.trim().parse::<i64>().ok());
    About {
        version: value(text, "SLURM_VERSION").map(str::to_owned),
        cluster: value(text, "ClusterName").map(str::to_owned),
        now: seconds.map(|seconds| Timestamp(seconds.saturating_mul(1_000_000))),
    }
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.trim(), value.trim())).find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// A partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Partition {
    pub name: String,
    pub is_default: bool,
    pub state: String,
    /// The longest time limit, in minutes; `None`: no limit.
    pub max_time: Option<u64>,
    /// `None`: no limit.
    pub max_nodes: Option<u64>,
    pub nodes: Vec<String>,
    /// It has a quality of service of its own.
    pub has_qos: bool,
}

/// `PartitionName=main AllowGroups=ALL .. MaxTime=01:00:00 .. Nodes=n[1-3] .. State=UP`, one a line.
pub(crate) fn partitions(text: &str) -> Vec<Partition> {
    text.lines().filter_map(partition).collect()
}

fn partition(line: &str) -> Option<Partition> {
    let words: BTreeMap<&str, &str> = line.split_whitespace().filter_map(|word| word.split_once('=')).collect();
    let value = |key: &str| words.get(key).copied().unwrap_or_default();
    Some(Partition {
        name: (*words.get("PartitionName")?).to_owned(),
        is_default: value("Default") == "YES",
        state: value("State").to_owned(),
        max_time: minutes(value("MaxTime")),
        max_nodes: value("MaxNodes").parse().ok(),
        nodes: expand(value("Nodes")),
        has_qos: !["", "N/A"].contains(&value("QoS")),
    })
}

/// `1-02:03:04`, `02:03:04`, `30`; none for `UNLIMITED`.
fn minutes(text: &str) -> Option<u64> {
    let (days, clock) = text.split_once('-').map_or((Some(0), text), |(days, clock)| (days.parse::<u64>().ok(), clock));
    let parts: Vec<u64> = clock.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let seconds = match parts[..] {
        [minutes] => minutes * 60,
        [minutes, seconds] => minutes * 60 + seconds,
        [hours, minutes, seconds] => hours * 3600 + minutes * 60 + seconds,
        _ => return None,
    };
    Some((days? * 86_400 + seconds) / 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_says_whether_there_is_accounting() {
        let text = |kind: &str| {
            format!(
                "Configuration data as of 1\nAccountingStorageType   = {kind}\nKillWait                = 2 sec\nMinJobAge               = 2 sec\n"
            )
        };
        let rows = [("accounting_storage/slurmdbd", true), ("accounting_storage/none", false), ("(null)", false)];
        for (kind, accounting) in rows {
            let two = Duration::from_secs(2);
            assert_eq!(config(&text(kind)), Config { accounting, min_job_age: two, kill_wait: two }, "{kind}");
        }
        assert_eq!(config(""), Config::default());
    }

    #[test]
    fn the_configuration_says_which_cluster_it_is_and_what_time() {
        let text = "Configuration data as of 1795331057\nClusterName             = main\nSLURM_VERSION           = 24.11.5\n";
        let (version, cluster) = (Some("24.11.5".to_owned()), Some("main".to_owned()));
        assert_eq!(about(text), About { version, cluster, now: Some(Timestamp(1_795_331_057_000_000)) });
        assert_eq!(about("Configuration data as of 2026-11-25T08:00:00\n"), About::default());
    }

    #[test]
    fn a_partition_has_its_limits() {
        let line =
            "PartitionName=short AllowGroups=ALL Default=NO MaxNodes=1 MaxTime=00:01:00 Nodes=n[1-2] State=UP TotalCPUs=4\n";
        let read = partitions(line);
        assert_eq!((read[0].max_time, read[0].max_nodes, read[0].nodes.len(), &*read[0].state), (Some(1), Some(1), 2, "UP"));
        let rows =
            [("UNLIMITED", None), ("1-02:03:04", Some(1563)), ("02:03:04", Some(123)), ("60", Some(60)), ("1:30", Some(1))];
        for (text, expected) in rows {
            assert_eq!(minutes(text), expected, "{text}");
        }
        let with = |qos: &str| partitions(&format!("PartitionName=x QoS={qos}\n"))[0].has_qos;
        assert_eq!((with("N/A"), with("long")), (false, true));
        assert_eq!(partitions("PartitionName=x MaxNodes=UNLIMITED MaxTime=UNLIMITED Default=YES\n")[0].max_nodes, None);
    }
}
