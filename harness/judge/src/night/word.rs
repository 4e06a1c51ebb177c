//! The words of verdicts.

use muster_text::words;

words! {
    /// The verdict on a metric.
    pub enum Word {
        Steady = "steady",
        Regressed = "regressed",
        Improved = "improved",
        /// It changed, and its variable says no direction.
        Changed = "changed",
        /// A change that is a line rather than a step.
        Drifting = "drifting",
        /// It is back at its level before a change.
        Recovered = "recovered",
        TooFewNights = "too few nights",
        TooNoisy = "too noisy",
        NotMeasured = "not measured",
        /// A person has said that its new level is fine.
        Accepted = "accepted",
        /// It changed, which is known, and not counted.
        Known = "known",
    }
}
