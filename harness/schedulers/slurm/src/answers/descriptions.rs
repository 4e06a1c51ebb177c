//! Reads `scontrol -o show node`: the facts of nodes that may explain a change of their figures.

use muster_core::job::scheduler::NodeSeen;
use std::collections::BTreeMap;

/// The nodes of an answer, one a line.
pub(crate) fn parse(text: &str) -> Vec<NodeSeen> {
    text.lines().filter_map(description).collect()
}

/// The names of facts, and the keys whose values they are.
const FACTS: [(&str, &str); 6] = [
    ("slurm", "Version"),
    ("features", "ActiveFeatures"),
    ("gres", "Gres"),
    ("cpus", "CPUTot"),
    ("threads_per_core", "ThreadsPerCore"),
    ("memory", "RealMemory"),
];

/// `NodeName=n1 Arch=x86_64 .. Gres=gpu:a100:4(S:0-1) .. Version=24.11.5 OS=Linux 6.1.0-13-amd64 #1 SMP .. RealMemory=1000 ..`
fn description(line: &str) -> Option<NodeSeen> {
    let value = |key: &str| {
        let mut words = line.split_whitespace().filter_map(|word| word.split_once('='));
        words.find(|(known, _)| *known == key).map(|(_, value)| value).filter(|value| !["", "(null)", "N/A"].contains(value))
    };
    let mut facts: BTreeMap<String, String> =
        FACTS.iter().filter_map(|(name, key)| Some(((*name).to_owned(), value(key)?.to_owned()))).collect();
    // The name of the system is a word of its own before its release.
    let release = line.split_once(" OS=").and_then(|(_, os)| os.split_whitespace().nth(1)).filter(|word| !word.contains('='));
    facts.extend(release.map(|release| ("kernel".to_owned(), release.to_owned())));
    Some(NodeSeen {
        name: value("NodeName")?.to_owned(),
        // Of a machine in a cloud; others have none that Slurm knows.
        uid: value("InstanceId").unwrap_or_default().to_owned(),
        class: value("Gres").map(|gres| gres.split('(').next().unwrap_or_default().to_owned()).unwrap_or_default(),
        facts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_described_by_its_system_and_its_hardware() {
        let text = "NodeName=n1 Arch=x86_64 CoresPerSocket=2 CPUAlloc=0 CPUEfctv=4 CPUTot=4 CPULoad=0.10 AvailableFeatures=a,b \
                    ActiveFeatures=a Gres=gpu:a100:4(S:0-1) NodeAddr=n1 NodeHostName=n1 Version=24.11.5 \
                    OS=Linux 6.1.0-13-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.55-1 (2023-09-29) RealMemory=7900 AllocMem=0 \
                    Sockets=1 Boards=1 State=IDLE ThreadsPerCore=2 TmpDisk=0 Partitions=main InstanceId=(null) Reason=a = b\n\
                    NodeName=n2 Arch=x86_64 Gres=(null) State=DOWN ThreadsPerCore=1 InstanceId=i-7\n\nunknown\n";
        let [first, second] = parse(text).try_into().unwrap();
        let facts: Vec<String> = first.facts.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let expected = [
            "cpus=4",
            "features=a",
            "gres=gpu:a100:4(S:0-1)",
            "kernel=6.1.0-13-amd64",
            "memory=7900",
            "slurm=24.11.5",
            "threads_per_core=2",
        ];
        assert_eq!(facts, expected);
        assert_eq!((first.name.as_str(), first.uid.as_str(), first.class.as_str()), ("n1", "", "gpu:a100:4"));
        assert_eq!((second.name.as_str(), second.uid.as_str(), second.facts.len()), ("n2", "i-7", 1));
    }
}
