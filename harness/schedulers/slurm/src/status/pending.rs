//! The reasons why a job waits: in words, and what follows from each. Longer than other files: most of it is tables.

/// What to do about a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Wait,
    /// Nodes that it needs are away: whoever waits wants to know which.
    NodesAway,
    /// It can never start as it is.
    Never,
}

/// How a reason is compared: whole, at its beginning, or anywhere.
#[derive(Debug, Clone, Copy)]
enum Is {
    Whole(&'static str),
    Begins(&'static str),
    Holds(&'static str),
    /// Its beginning and its end.
    Frames(&'static str, &'static str),
}

/// It can never start as it is.
const NEVER: &[Is] = &[
    Is::Whole("BadConstraints"),
    Is::Whole("InvalidAccount"),
    Is::Whole("InvalidQOS"),
    Is::Whole("DependencyNeverSatisfied"),
    Is::Whole("ReservationInvalid"),
    Is::Whole("ReservationDeleted"),
    Is::Whole("JobHoldMaxRequeue"),
    Is::Whole("RequeueExitHold"),
    Is::Begins("launch failed requeued held"),
];

/// It can never start in the partition that Slurm has looked at last. Of several, another one may only be busy.
const NOT_IN_THIS_PARTITION: &[Is] = &[
    Is::Whole("PartitionTimeLimit"),
    Is::Whole("PartitionNodeLimit"),
    Is::Whole("PartitionConfig"),
    Is::Whole("AccountNotAllowed"),
    Is::Whole("QOSNotAllowed"),
    Is::Whole("QOSTimeLimit"),
    Is::Begins("QOSMin"),
    Is::Holds("PerJob"),
    Is::Frames("AssocMax", "PerNode"),
    Is::Frames("QOSMax", "PerNode"),
    Is::Whole("MaxMemPerLimit"),
    Is::Whole("RequiresReservation"),
    Is::Whole("ReqResv"),
    Is::Holds("not in group permitted to use this partition"),
];

/// Nodes that it needs are away. `ReqNodeNotAvail` also means that a node is busy, and shows while the scheduler plans: never a reason
/// to give up.
const NODES_AWAY: &[Is] = &[
    Is::Begins("ReqNodeNotAvail"),
    Is::Begins("UnavailableNodes"),
    Is::Whole("NodeDown"),
    Is::Begins("Nodes required for job are DOWN"),
    Is::Whole("PartitionDown"),
    Is::Whole("PartitionInactive"),
];

const WORDS: &[(&str, &str)] = &[
    ("None", "not looked at yet"),
    ("Priority", "others have a higher priority"),
    ("Resources", "its nodes are busy"),
    ("Licenses", "its licences are in use"),
    ("Reservation", "its reservation has not begun"),
    ("BeginTime", "it starts later"),
    ("Dependency", "it waits for another job"),
    ("Prolog", "its prologue runs"),
    ("Cleaning", "what ran before on its nodes is being cleaned up"),
    ("JobHeldUser", "its user holds it: scontrol release JOB"),
    ("JobHeldAdmin", "an administrator holds it"),
    ("PartitionDown", "its partition takes no jobs"),
    ("PartitionInactive", "its partition starts no jobs"),
    ("PartitionTimeLimit", "its time limit is above that of the partition"),
    ("PartitionNodeLimit", "it asks for more nodes, or fewer, than the partition gives"),
    ("BadConstraints", "no node can ever meet what it asks for"),
    ("ReqNodeNotAvail", "a node that it needs is away or busy"),
    ("NodeDown", "a node that it needs is down"),
    (
        "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
        "nodes that it needs are away",
    ),
    ("InvalidAccount", "its account is not valid"),
    ("InvalidQOS", "its quality of service is not valid"),
    ("AccountNotAllowed", "its account may not use the partition"),
    ("QOSNotAllowed", "its quality of service may not be used in the partition"),
    ("QOSMaxWallDurationPerJobLimit", "its time limit is above that of its quality of service"),
    ("AssocMaxWallDurationPerJobLimit", "its time limit is above that of its account"),
    ("QOSMaxJobsPerUserLimit", "its user runs as many jobs as its quality of service allows"),
    ("AssocMaxJobsLimit", "its account runs as many jobs as it may"),
    ("ReservationDeleted", "its reservation is gone"),
];

/// What to do about a reason. `several`: the job may go to one of several partitions. `never`: what a site adds to the reasons that
/// never pass.
pub(crate) fn decide(reason: &str, several: bool, never: &[String]) -> Decision {
    let first = first(reason);
    let holds = |is: &Is| match is {
        Is::Whole(name) => *name == first,
        Is::Begins(begin) => reason.starts_with(begin),
        // Some reasons are sentences.
        Is::Holds(part) => reason.contains(part),
        Is::Frames(begin, end) => first.starts_with(begin) && first.ends_with(end),
    };
    let is_sites = never.iter().any(|own| own == first || own == reason);
    if is_sites || NEVER.iter().any(holds) || !several && NOT_IN_THIS_PARTITION.iter().any(holds) {
        Decision::Never
    } else if NODES_AWAY.iter().any(holds) {
        Decision::NodesAway
    } else {
        Decision::Wait
    }
}

/// `Priority: others have a higher priority`
pub(crate) fn words(reason: &str) -> String {
    let known = WORDS.iter().find(|(name, _)| *name == reason || *name == first(reason));
    known.map_or_else(|| reason.to_owned(), |(_, words)| format!("{reason}: {words}"))
}

/// `ReqNodeNotAvail` of `ReqNodeNotAvail, UnavailableNodes:n1`
fn first(reason: &str) -> &str {
    reason.split([',', ' ', ':', '(']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_never_start_is_told_from_what_is_only_busy() {
        let rows = [
            ("BadConstraints", Decision::Never),
            ("uid 7001 not in group permitted to use this partition (closed). groups allowed: bob", Decision::Never),
            ("PartitionTimeLimit", Decision::Never),
            ("QOSMaxCpuPerJobLimit", Decision::Never),
            ("AssocMaxCpuPerJobLimit", Decision::Never),
            ("QOSMinGRES", Decision::Never),
            ("QOSMaxCpuPerNode", Decision::Never),
            ("launch failed requeued held", Decision::Never),
            ("QOSMaxJobsPerUserLimit", Decision::Wait),
            ("AssocGrpCpuLimit", Decision::Wait),
            ("JobHeldUser", Decision::Wait),
            ("ReqNodeNotAvail", Decision::NodesAway),
            ("ReqNodeNotAvail, UnavailableNodes:n1", Decision::NodesAway),
            ("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions", Decision::NodesAway),
            ("Resources", Decision::Wait),
            ("SomethingNew", Decision::Wait),
            ("", Decision::Wait),
        ];
        for (reason, decision) in rows {
            assert_eq!(decide(reason, false, &[]), decision, "{reason}");
        }
        assert_eq!(decide("Resources", true, &["Resources".to_owned()]), Decision::Never);
        for reason in NOT_IN_THIS_PARTITION.iter().filter_map(|is| if let Is::Whole(name) = is { Some(name) } else { None }) {
            assert_eq!((decide(reason, false, &[]), decide(reason, true, &[])), (Decision::Never, Decision::Wait), "{reason}");
        }
        assert_eq!(decide("BadConstraints", true, &[]), Decision::Never);
    }

    #[test]
    fn a_reason_is_shown_in_words() {
        assert_eq!(words("Resources"), "Resources: its nodes are busy");
        assert_eq!(words("ReqNodeNotAvail, Reserved"), "ReqNodeNotAvail, Reserved: a node that it needs is away or busy");
        assert_eq!(words("SomethingNew"), "SomethingNew");
    }
}
