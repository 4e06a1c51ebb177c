//! The decisions of a case's life, as functions of what is known: limits, cancelling, keep or delete, exit codes.
//! No clock runs here; the caller says how much time has passed.

use crate::{
    job::{
        scheduler::{Disposition, Ending, JobStatus},
        workload::{Clock, Limits},
    },
    result::{CaseResult, Grade, Outcome},
};
use std::time::Duration;

/// The times that a case has been waiting and running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Elapsed {
    /// The time since the launch, while nothing ran.
    pub pending: Duration,
    /// The time since the first task ran.
    pub running: Duration,
    /// The time since the first [`Step::Overdue`]. `None`: no limit has passed unseen.
    pub overdue: Option<Duration>,
}

/// The signs beside the status and the times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signs {
    /// The scheduler does not answer: the status is an old one.
    pub is_away: bool,
    /// The attempt is asked to stop.
    pub stop: Option<Stop>,
}

/// The reason why an attempt stops that would go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The session is cancelled.
    Cancelled,
    /// A limit of its times is reached.
    Limit(Clock),
    /// A rule has seen enough. The log until then is judged for display.
    Rule {
        /// The name of the rule, as in the outcome.
        name: String,
        /// The values that it has seen, in one sentence.
        why: String,
    },
    /// Another attempt counts in its place; which one, in one sentence.
    Superseded(String),
}

/// The detail of the outcome of an attempt that another one replaces.
pub const SUPERSEDED: &str = "superseded";

impl Stop {
    /// Returns whether the log of what is stopped is judged for display.
    pub fn is_shown(&self) -> bool {
        matches!(self, Self::Rule { .. })
    }
}

/// An operation is tried again for this long while the other side cannot be reached.
pub const OUTAGE_LIMIT: Duration = Duration::from_mins(5);

/// The next step with a launched job.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Wait for a change, but look again after this time at the latest; `None`: no limit is near.
    Wait {
        /// The time until a limit is reached.
        recheck_in: Option<Duration>,
    },
    /// It ended by itself: judge it.
    Judge(Ending),
    /// A limit has passed, but the scheduler does not answer: the job may have ended in time. Wait for news of it.
    Overdue,
    /// It has to end now.
    Stop(Stop),
    /// It no longer exists.
    Lost { outcome: Outcome, cause: String },
}

/// Decides on a launched job. What ended by itself is judged even when the session is being cancelled. What ended unseen, after a limit
/// had passed, is judged if it ended in time: the job's own times tell.
pub fn next_step(status: &JobStatus, elapsed: Elapsed, limits: &Limits, signs: Signs) -> Step {
    let (clock, spent) = match (status, signs.stop) {
        (JobStatus::Ended(ending), _) => return ended(ending, limits.run.filter(|_| elapsed.overdue.is_some())),
        (JobStatus::Gone { why, cause }, _) => return Step::Lost { outcome: Outcome::Disrupted(*why), cause: cause.clone() },
        (_, Some(stop)) => return Step::Stop(stop),
        (JobStatus::Running { has_ended: true, .. }, None) => return Step::Wait { recheck_in: None },
        (JobStatus::Running { .. }, None) => (Clock::Run, elapsed.running),
        (JobStatus::NotSeen | JobStatus::Pending { .. }, None) => (Clock::Pending, elapsed.pending),
    };
    let Some(limit) = limits.of(clock) else { return Step::Wait { recheck_in: None } };
    match limit.checked_sub(spent).filter(|left| !left.is_zero()) {
        Some(left) => Step::Wait { recheck_in: Some(left) },
        None if signs.is_away && elapsed.overdue.unwrap_or_default() < OUTAGE_LIMIT => Step::Overdue,
        None => Step::Stop(Stop::Limit(clock)),
    }
}

/// Decides on a job that has ended. `limit`: how long it may have run by its own times, where nobody has stopped it at its limit.
fn ended(ending: &Ending, limit: Option<Duration>) -> Step {
    let lost =
        |outcome: Outcome, why: &str| Step::Lost { outcome, cause: ending.cause.clone().unwrap_or_else(|| why.to_owned()) };
    match (ending.limit, ending.disruption) {
        (Some(clock), _) => lost(Outcome::Timeout(clock), "the scheduler ended the job at its limit"),
        (None, Some(why)) => lost(Outcome::Disrupted(why), "the job was ended by the site"),
        (None, None) if limit.is_some_and(|limit| ending.ended.since(ending.started) > limit) => {
            Step::Stop(Stop::Limit(Clock::Run))
        }
        (None, None) => Step::Judge(ending.clone()),
    }
}

/// Keep or delete: what passed or was cancelled goes, what failed stays to be looked at.
pub fn cleanup_after(outcome: &Outcome) -> Disposition {
    match outcome.row().grade {
        Grade::Good | Grade::Odd => Disposition::Delete,
        Grade::Bad => Disposition::Stop,
    }
}

/// The exit code of bad usage, bad files or an empty selection.
pub const EXIT_USAGE: u8 = 2;
/// The exit code after any interrupt.
pub const EXIT_INTERRUPTED: u8 = 130;
/// The exit code of a session in which a case was not let run, and of a process that has lost its session to another.
pub const EXIT_LOST: u8 = 3;

/// The effect of the skipped cases of a session on its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Skips {
    #[default]
    Accepted,
    /// There are cases, and every one was skipped.
    NothingRan,
    /// `--fail-on-skip`, and a case was skipped.
    Refused,
}

/// Decides the effect of skipped cases. Of each case: its outcome, and whether it is in quarantine. Nothing has run where every
/// case was skipped, whether it counts or not.
pub fn skips<'a>(cases: impl IntoIterator<Item = (&'a Outcome, bool)>, fail_on_skip: bool) -> Skips {
    let (mut is_empty, mut has_run, mut counts) = (true, false, false);
    for (outcome, is_quarantined) in cases {
        is_empty = false;
        has_run |= *outcome != Outcome::Skip;
        counts |= *outcome == Outcome::Skip && !is_quarantined;
    }
    match (is_empty || has_run, fail_on_skip && counts) {
        (false, _) => Skips::NothingRan,
        (true, true) => Skips::Refused,
        (true, false) => Skips::Accepted,
    }
}

/// Returns whether a case is one of those that fail a session by being skipped.
pub fn fails(case: &CaseResult, skips: Skips) -> bool {
    case.outcome == Outcome::Skip
        && match skips {
            Skips::Accepted => false,
            Skips::NothingRan => true,
            Skips::Refused => case.quarantine.is_none(),
        }
}

/// The exit code of a session: 130 after an interrupt, else 1 if a case judged badly, else 3 if one was not let run, if nothing
/// ran or a skip is refused, else 0. Of each case: its outcome, and whether it is in quarantine, where it does not count.
pub fn exit_code<'a>(cases: impl IntoIterator<Item = (&'a Outcome, bool)>, skips: Skips, interrupted: bool) -> u8 {
    if interrupted {
        return EXIT_INTERRUPTED;
    }
    let lost = if skips == Skips::Accepted { 0 } else { EXIT_LOST };
    let counting = cases.into_iter().filter(|(_, is_quarantined)| !is_quarantined);
    // 1 outranks 3: a judged failure is the stronger news.
    counting.map(|(outcome, _)| outcome.row().exit_code).fold(lost, |worst, code| match (worst, code) {
        (1, _) | (_, 1) => 1,
        (worst, code) => worst.max(code),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        job::scheduler::Disruption,
        result::{Failure, Fault},
    };
    use muster_text::time::Timestamp;

    const SECOND: Duration = Duration::from_secs(1);

    fn limits(pending: Option<u64>, run: Option<u64>) -> Limits {
        let seconds = |n: Option<u64>| n.map(Duration::from_secs);
        Limits { pending: seconds(pending), run: seconds(run), judge: SECOND }
    }

    fn running() -> JobStatus {
        JobStatus::Running { since: Timestamp(0), nodes: vec![], partly_ended: None, has_ended: false }
    }

    fn ending(disruption: Option<Disruption>) -> Ending {
        Ending { ended: Timestamp(1), disruption, ..Ending::default() }
    }

    #[test]
    fn each_clock_ends_only_its_own_phase() {
        let elapsed = Elapsed { pending: 5 * SECOND, running: 5 * SECOND, overdue: None };
        let pending = JobStatus::Pending { why: "quota".into() };
        let over = JobStatus::Running { since: Timestamp(0), nodes: vec![], partly_ended: None, has_ended: true };
        let rows = [
            (&pending, limits(Some(3), Some(9)), Step::Stop(Stop::Limit(Clock::Pending))),
            (&pending, limits(Some(9), Some(3)), Step::Wait { recheck_in: Some(4 * SECOND) }),
            (&pending, limits(None, Some(3)), Step::Wait { recheck_in: None }),
            (&running(), limits(Some(3), Some(9)), Step::Wait { recheck_in: Some(4 * SECOND) }),
            (&running(), limits(Some(9), Some(5)), Step::Stop(Stop::Limit(Clock::Run))),
            (&over, limits(Some(9), Some(5)), Step::Wait { recheck_in: None }),
            (&JobStatus::NotSeen, limits(Some(5), None), Step::Stop(Stop::Limit(Clock::Pending))),
        ];
        for (status, limits, step) in rows {
            assert_eq!(next_step(status, elapsed, &limits, Signs::default()), step, "{status:?} {limits:?}");
        }
    }

    #[test]
    fn what_ended_by_itself_is_judged_even_when_it_is_asked_to_stop() {
        let status = JobStatus::Ended(ending(None));
        let over = JobStatus::Running { since: Timestamp(0), nodes: vec![], partly_ended: None, has_ended: true };
        let rule = Stop::Rule { name: "flat".into(), why: "5 points without a change".into() };
        for stop in [Stop::Cancelled, rule, Stop::Superseded("trial 7 has a value".into())] {
            let signs = Signs { stop: Some(stop.clone()), is_away: true };
            let step = |status| next_step(status, Elapsed::default(), &limits(None, None), signs.clone());
            assert_eq!(step(&status), Step::Judge(ending(None)));
            for status in [&running(), &over, &JobStatus::NotSeen] {
                assert_eq!(step(status), Step::Stop(stop.clone()), "{status:?}");
            }
        }
    }

    #[test]
    fn a_limit_that_passes_while_the_scheduler_is_away_is_judged_by_the_times_of_the_job() {
        let ran = |seconds: i64| JobStatus::Ended(Ending { ended: Timestamp::of_seconds(seconds), ..ending(None) });
        let judged = |seconds: i64| Step::Judge(Ending { ended: Timestamp::of_seconds(seconds), ..ending(None) });
        let (just, long) = (Some(Duration::ZERO), Some(OUTAGE_LIMIT));
        // The status, since when a limit has passed, whether the scheduler is away, what follows.
        let rows = [
            (running(), None, false, Step::Stop(Stop::Limit(Clock::Run))),
            (running(), None, true, Step::Overdue),
            (running(), just, true, Step::Overdue),
            (running(), just, false, Step::Stop(Stop::Limit(Clock::Run))),
            (running(), long, true, Step::Stop(Stop::Limit(Clock::Run))),
            (JobStatus::NotSeen, None, true, Step::Overdue),
            (JobStatus::NotSeen, long, true, Step::Stop(Stop::Limit(Clock::Pending))),
            (ran(9), just, false, judged(9)),
            (ran(10), just, false, Step::Stop(Stop::Limit(Clock::Run))),
            (ran(10), long, true, Step::Stop(Stop::Limit(Clock::Run))),
            (ran(10), None, false, judged(10)),
        ];
        for (status, overdue, is_away, step) in rows {
            let elapsed = Elapsed { pending: 10 * SECOND, running: 10 * SECOND, overdue };
            let signs = Signs { is_away, stop: None };
            assert_eq!(next_step(&status, elapsed, &limits(Some(9), Some(9)), signs), step, "{status:?} {overdue:?} {is_away}");
        }
        // Without a limit nothing is overdue.
        let elapsed = Elapsed { running: 10 * SECOND, overdue: just, ..Elapsed::default() };
        assert_eq!(next_step(&ran(10), elapsed, &limits(Some(9), None), Signs::default()), judged(10));
    }

    #[test]
    fn a_disrupted_job_is_not_judged() {
        let status = JobStatus::Ended(ending(Some(Disruption::Evicted)));
        let step = next_step(&status, Elapsed::default(), &limits(None, None), Signs::default());
        assert!(matches!(step, Step::Lost { outcome: Outcome::Disrupted(Disruption::Evicted), .. }), "{step:?}");
    }

    #[test]
    fn what_the_scheduler_ended_at_our_limit_has_timed_out_whatever_its_exits_are() {
        let ending = Ending { limit: Some(Clock::Run), ..ending(Some(Disruption::Node)) };
        let step = next_step(&JobStatus::Ended(ending), Elapsed::default(), &limits(None, None), Signs::default());
        assert!(matches!(step, Step::Lost { outcome: Outcome::Timeout(Clock::Run), .. }), "{step:?}");
    }

    #[test]
    fn exit_codes_follow_the_table() {
        let fail = Outcome::Fail(Failure::Sanity);
        let infra = Outcome::Error(Fault::Infra);
        let (pass, skip) = (Outcome::Pass, Outcome::Skip);
        // The outcomes, whether a signal came, and the exit codes without and with `--fail-on-skip`.
        let rows: [(&[&Outcome], bool, [u8; 2]); 13] = [
            (&[&pass, &skip, &Outcome::Xfail], false, [0, 3]),
            (&[&pass, &Outcome::Xfail], false, [0, 0]),
            (&[&pass, &fail, &infra], false, [1, 1]),
            (&[&infra, &fail], false, [1, 1]),
            (&[&infra, &pass], false, [3, 3]),
            (&[&Outcome::Xpass], false, [1, 1]),
            (&[&pass], true, [130, 130]),
            (&[], false, [0, 0]),
            (&[&skip, &skip], false, [3, 3]),
            (&[&skip, &Outcome::Xfail], false, [0, 3]),
            (&[&skip, &Outcome::Stopped(String::new())], false, [0, 3]),
            (&[&skip, &fail], false, [1, 1]),
            (&[&skip], true, [130, 130]),
        ];
        for (outcomes, interrupted, codes) in rows {
            let cases = || outcomes.iter().map(|outcome| (*outcome, false));
            let code = |refused| exit_code(cases(), skips(cases(), refused), interrupted);
            assert_eq!([false, true].map(code), codes, "{outcomes:?}");
        }
    }

    #[test]
    fn in_quarantine_a_case_runs_and_a_skip_does_not_count() {
        type Row<'a> = (&'a [(&'a Outcome, bool)], [Skips; 2], [u8; 2]);
        let fail = Outcome::Fail(Failure::Sanity);
        let rows: [Row<'_>; 4] = [
            (&[(&fail, true), (&Outcome::Skip, false)], [Skips::Accepted, Skips::Refused], [0, 3]),
            (&[(&Outcome::Pass, false), (&Outcome::Skip, true)], [Skips::Accepted; 2], [0, 0]),
            (&[(&Outcome::Skip, true)], [Skips::NothingRan; 2], [3, 3]),
            (&[(&fail, true)], [Skips::Accepted; 2], [0, 0]),
        ];
        for (cases, meant, codes) in rows {
            let skips = [false, true].map(|refused| skips(cases.iter().copied(), refused));
            assert_eq!(skips, meant, "{cases:?}");
            assert_eq!(skips.map(|skips| exit_code(cases.iter().copied(), skips, false)), codes, "{cases:?}");
        }
    }
}
