//! What sbatch's complaints mean.

use crate::poll::is_outage;
use regex::Regex;

/// Why sbatch has not submitted a job.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is a limit on jobs, which passes.
    NoRoom,
    /// The controller was not reached.
    Away,
    /// It was reached, and did not answer.
    Lost,
    /// It does not believe who asks.
    Identity,
    /// This can never be submitted.
    Mistake,
}

pub(super) fn classify(complaint: &str, resubmit: &[String]) -> Refusal {
    const FULL: [&str; 6] = [
        "MaxSubmitJob",
        "GrpSubmitJobs",
        "temporarily unable to accept job",
        "job queue full",
        "Rate limit exceeded",
        "RPC rate limited",
    ];
    const IDENTITY: [&str; 4] = ["authentication", "If munged is up", "Invalid authentication", "Munge encode failed"];
    const AWAY: [&str; 4] = ["Unable to contact", "connect failure", "Connection refused", "Connection timed out"];
    let has = |signs: &[&str]| signs.iter().any(|sign| complaint.contains(sign));
    let again = resubmit.iter().filter_map(|text| Regex::new(text).ok()).any(|regex| regex.is_match(complaint));
    if again || has(&FULL) {
        Refusal::NoRoom
    } else if has(&IDENTITY) {
        Refusal::Identity
    } else if has(&AWAY) {
        Refusal::Away
    } else if is_outage(complaint) {
        Refusal::Lost
    } else {
        Refusal::Mistake
    }
}

/// Without what every line begins with.
pub(super) fn shortened(complaint: &str) -> String {
    const HEADS: [&str; 4] = ["sbatch: error: ", "Batch job submission failed: ", "sbatch: ", "allocation failure: "];
    HEADS.iter().fold(complaint.to_owned(), |text, head| text.replace(head, ""))
}

/// What sbatch says of an option, and the options that it may mean.
const MEANT: [(&str, &[&str]); 9] = [
    ("partition", &["partition", "account"]),
    ("account", &["account", "partition"]),
    ("qos", &["qos"]),
    ("feature", &["constraint"]),
    ("reservation", &["reservation"]),
    ("license", &["licenses"]),
    ("node name", &["nodelist", "exclude"]),
    ("generic resource", &["gres", "gpus", "gpus-per-node"]),
    (
        "node configuration",
        &[
            "nodelist",
            "exclude",
            "nodes",
            "ntasks-per-node",
            "cpus-per-task",
            "mem",
            "mem-per-cpu",
            "constraint",
            "gres",
            "partition",
        ],
    ),
];

/// The complaint with the options of the script that it is about: `Invalid qos specification (--qos=hihg)`.
pub(super) fn with_options(complaint: &str, script: &str) -> String {
    let text = complaint.to_lowercase();
    let Some((_, names)) = MEANT.iter().find(|(words, _)| text.contains(words)) else { return complaint.to_owned() };
    let options = script.lines().filter_map(|line| line.strip_prefix("#SBATCH "));
    let is_meant = |option: &&str| names.iter().any(|name| option.split('=').next() == Some(&format!("--{name}")));
    let meant: Vec<&str> = options.filter(is_meant).collect();
    if meant.is_empty() { complaint.to_owned() } else { format!("{complaint} ({})", meant.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_the_options_that_it_is_about() {
        let script = "#!/bin/sh\n#SBATCH --job-name=rfm-qos\n#SBATCH --qos=hihg\n#SBATCH --constraint=samll\n#SBATCH --nodes=2\n\
                      #SBATCH --exclusive\n#SBATCH --nodelist=n1\necho --qos=no\n";
        let rows = [
            ("Invalid qos specification", "Invalid qos specification (--qos=hihg)"),
            ("Invalid feature specification", "Invalid feature specification (--constraint=samll)"),
            (
                "Requested node configuration is not available",
                "Requested node configuration is not available (--constraint=samll --nodes=2 --nodelist=n1)",
            ),
            ("Invalid license specification", "Invalid license specification"),
            ("Invalid --begin specification", "Invalid --begin specification"),
        ];
        for (complaint, expected) in rows {
            assert_eq!(with_options(complaint, script), expected);
        }
    }

    #[test]
    fn what_sbatch_says_decides_whether_a_job_may_exist() {
        let rows = [
            (
                "sbatch: error: QOSMaxSubmitJobPerUserLimit; sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
                Refusal::NoRoom,
            ),
            (
                "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)",
                Refusal::Mistake,
            ),
            ("sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)", Refusal::Away),
            ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", Refusal::Lost),
            ("sbatch: error: Batch job submission failed: Protocol authentication error", Refusal::Identity),
            (
                "sbatch: error: invalid partition specified: gpuu; sbatch: error: Batch job submission failed: Invalid partition name specified",
                Refusal::Mistake,
            ),
            ("sbatch: error: plugin: try later", Refusal::NoRoom),
        ];
        for (complaint, refusal) in rows {
            assert_eq!(classify(complaint, &["try later".to_owned()]), refusal, "{complaint}");
        }
    }
}
