//! Tells the refusals of sbatch apart by its messages.
//!
//! Only a refusal that is known proves that no job exists. The texts of the controller are those of Slurm's own table of errors
//! (`slurm_errno.c`); those before it was asked are of sbatch's options and its script.

use crate::command::Answer;
use regex::Regex;

/// Why sbatch has not submitted a job.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is a limit on jobs, which passes.
    NoRoom,
    /// The controller was not reached, or could not take any job: that passes, too.
    Away,
    /// Nothing that is known: the job may exist.
    Lost,
    /// It does not believe who asks.
    Identity,
    /// This can never be submitted.
    Mistake,
}

const FULL: &[&str] = &[
    "MaxSubmitJob",
    "GrpSubmitJobs",
    "MaxJobCount limit reached",
    "temporarily unable to accept job",
    "job queue full",
    "Rate limit exceeded",
    "RPC rate limited",
];

/// The request may have been taken, whatever else the text says: its answer did not come, or could not be read.
const TAKEN: &[&str] = &[
    "receive failure",
    "send failure",
    "shutdown failure",
    "timed out reading",
    "timed out writing",
    "RESPONSE_",
    "auth_g_verify",
    "decode failed",
    "slurm_unpack_received_msg",
];
/// sbatch asks again by itself after this.
const ASKS_AGAIN: &str = "retrying";
/// The end of ssh whose connection did not come about, or broke.
const SSH: i32 = 255;

const IDENTITY: &[&str] = &[
    "authentication",
    "If munged is up",
    "Authentication credential expired",
    "Munge encode failed",
    "Cannot unpack credential",
    "Invalid job credential",
];

const AWAY: &[&str] = &[
    "(connect failure)",
    "Connection refused",
    "Connection timed out",
    "Could not establish a configuration source",
    "I/O error writing script/environment",
    "System submissions disabled",
];

/// How the controller begins what it says of a request that it does not take.
const REFUSED: &[&str] = &[
    "Access denied to requested",
    "Access/permission denied",
    "Burst Buffer ",
    "CPU count specification",
    "Cannot request more threads",
    "Circular job dependency",
    "Duplicate generic resource",
    "Environment is missing",
    "Exceeded maximum node limit",
    "Immediate execution impossible",
    "Incompatible versions of client and server",
    "Insufficient ",
    "Invalid ",
    "Job --batch option",
    "Job can not start",
    "Job cannot be submitted without",
    "Job dependency problem",
    "Job script not specified",
    "Job size specification",
    "Job violates accounting/QOS policy",
    "Licenses currently unavailable",
    "Memory ",
    "More processors requested",
    "Multiple ",
    "No eligible clusters",
    "No partition specified",
    "No suitable topology",
    "Node count specification",
    "Only batch jobs",
    "Partition in DOWN state",
    "Pathname of a file",
    "Preemption is required",
    "Requested ",
    "Required ",
    "Requires more ports",
    "RestrictedCoresPerGPU",
    "Task ",
    "Unable to resolve ",
    "User's group not permitted",
    "X11 forwarding",
];

/// What sbatch says of its options and of the script, before it asks.
const UNREAD: &[&str] = &[
    "ambiguous",
    "can not be",
    "cannot be",
    "cli_filter plugin terminated",
    "conflict",
    "contains DOS line breaks",
    "contains NULL",
    "does not look like a batch script",
    "invalid",
    "is empty",
    "must be",
    "mutually exclusive",
    "not permitted",
    "not supported",
    "requires an argument",
    "unable to open file",
    "unrecognized",
];

/// How a line of it begins.
const SAYS: &[&str] = &["sbatch: error: ", "sbatch: unrecognized ", "sbatch: invalid ", "sbatch: option ", "sbatch: ambiguous "];

pub(super) fn classify(answer: &Answer, resubmit: &[String]) -> Refusal {
    let complaint = answer.complaint();
    let has = |signs: &[&str]| signs.iter().any(|sign| complaint.contains(sign));
    let again = resubmit.iter().filter_map(|text| Regex::new(text).ok()).any(|regex| regex.is_match(&complaint));
    let is_full = complaint.split("; ").any(|line| !line.contains(ASKS_AGAIN) && FULL.iter().any(|sign| line.contains(sign)));
    let is_broken = answer.status == Some(SSH) && !complaint.contains("connect to host");
    if answer.status.is_none() || is_broken || has(TAKEN) {
        Refusal::Lost
    } else if again || is_full {
        Refusal::NoRoom
    } else if has(IDENTITY) {
        Refusal::Identity
    } else if has(AWAY) {
        Refusal::Away
    } else if is_refusal(&complaint) {
        Refusal::Mistake
    } else {
        Refusal::Lost
    }
}

/// Whether the request was not taken, for what it is.
fn is_refusal(complaint: &str) -> bool {
    let heads = ["Batch job submission failed: ", "allocation failure: "];
    if let Some((_, said)) = heads.iter().find_map(|head| complaint.rsplit_once(head)) {
        return REFUSED.iter().any(|text| said.starts_with(text));
    }
    // Wrappers print lines of their own, and plugins print through sbatch what is no error.
    let is_of_sbatch = |line: &&str| SAYS.iter().any(|head| line.starts_with(head));
    let mut said = complaint.split("; ").filter(is_of_sbatch).map(str::to_lowercase);
    said.any(|line| UNREAD.iter().any(|sign| line.contains(sign)))
}

/// The number of the job that was submitted: `12`, or `12;CLUSTER`, on a line by itself.
pub(super) fn submitted(stdout: &str) -> Option<&str> {
    let number = |line: &'_ str| -> Option<usize> {
        let id = line.split(';').next()?;
        (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())).then_some(id.len())
    };
    stdout.lines().rev().map(str::trim).find_map(|line| Some(&line[..number(line)?]))
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
    use std::time::Duration;

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
            ("sbatch: error: Batch job submission failed: I/O error writing script/environment to file", Refusal::Away),
            ("ssh: connect to host login port 22: Connection refused", Refusal::Away),
            ("sbatch: error: Batch job submission failed: Unable to contact slurm controller (receive failure)", Refusal::Lost),
            ("sbatch: error: Batch job submission failed: Connection timed out reading", Refusal::Lost),
            ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", Refusal::Lost),
            ("sbatch: error: Batch job submission failed: Message receive failure", Refusal::Lost),
            ("sbatch: error: Batch job submission failed: Unspecified error", Refusal::Lost),
            ("sbatch: error: Batch job submission failed: Slurm backup controller in standby mode", Refusal::Lost),
            ("sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received", Refusal::Lost),
            ("client_loop: send disconnect: Broken pipe", Refusal::Lost),
            ("Connection to login closed by remote host.", Refusal::Lost),
            ("exit status 1", Refusal::Lost),
            ("sbatch: error: a new text of a new version", Refusal::Lost),
            ("sbatch: error: Batch job submission failed: Protocol authentication error", Refusal::Identity),
            (
                "sbatch: error: invalid partition specified: gpuu; sbatch: error: Batch job submission failed: Invalid partition name specified",
                Refusal::Mistake,
            ),
            ("sbatch: error: Batch job submission failed: Requested node configuration is not available", Refusal::Mistake),
            ("allocation failure: Requested node configuration is not available", Refusal::Mistake),
            ("sbatch: unrecognized option '--nodez=2'; Try \"sbatch --help\" for more information", Refusal::Mistake),
            ("sbatch: error: Invalid --begin specification", Refusal::Mistake),
            ("welcome to login1; sbatch: error: Invalid --begin specification", Refusal::Mistake),
            ("sbatch: lua: partition gpu is empty now; Connection to login closed", Refusal::Lost),
            (
                "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying; sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
                Refusal::Lost,
            ),
            (
                "sbatch: error: Munge decode failed: Failed to connect; sbatch: error: Batch job submission failed: Protocol authentication error",
                Refusal::Lost,
            ),
            ("sbatch: error: plugin: try later", Refusal::NoRoom),
        ];
        let said = |complaint: &str, status| Answer {
            status,
            stdout: String::new(),
            stderr: complaint.replace("; ", "\n"),
            took: Duration::ZERO,
        };
        for (complaint, refusal) in rows {
            assert_eq!(classify(&said(complaint, Some(1)), &["try later".to_owned()]), refusal, "{complaint}");
        }
        // Killed after it has said something.
        assert_eq!(classify(&said("sbatch: error: Invalid --begin specification", None), &[]), Refusal::Lost);
        // The connection was there.
        assert_eq!(classify(&said("client_loop: send disconnect: Connection timed out", Some(255)), &[]), Refusal::Lost);
        assert_eq!(classify(&said("ssh: connect to host login: Connection timed out", Some(255)), &[]), Refusal::Away);
    }

    #[test]
    fn a_number_on_a_line_by_itself_is_that_of_the_job() {
        let rows = [
            ("12\n", Some("12")),
            ("12;cluster\n", Some("12")),
            ("12\na wrapper's own words\n", Some("12")),
            ("", None),
            ("your job of 2 nodes\n", None),
        ];
        for (stdout, id) in rows {
            assert_eq!(submitted(stdout), id, "{stdout:?}");
        }
    }
}
