//! `--max-cost`: what a run may cost, known before anything is launched.

use crate::{terminal::Terminal, wiring::Connections};
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments};
use muster_core::{
    decisions::{
        budget::{Budget, why_refused},
        rounds::Policy,
    },
    usage::Total,
};

/// Returns whether a run may cost more than it is allowed to, and prints it; the cost that it may have is printed in any case.
pub fn is_exceeded(
    budget: Option<Budget>,
    cases: &[TestCase],
    adjustments: &Adjustments,
    policy: Policy,
    terminal: Terminal,
) -> anyhow::Result<bool> {
    let Some(budget) = budget else { return Ok(false) };
    let (total, most_attempts) = most(cases, adjustments, policy)?;
    if let Some(why) = why_refused(budget, &total) {
        terminal.error(&anyhow::anyhow!(why));
        return Ok(true);
    }
    if !total.is_empty() {
        let attempts = if most_attempts > 1 { format!(", with up to {most_attempts} attempts of a case") } else { String::new() };
        terminal.note(&format!("at most this run uses {total}{attempts}"));
    }
    Ok(false)
}

/// What all attempts of all cases may use at most, and the most attempts of one.
fn most(cases: &[TestCase], adjustments: &Adjustments, policy: Policy) -> anyhow::Result<(Total, u32)> {
    let scheduler = |case: &TestCase| adjustments.scheduler(&case.place.partition);
    let planners = Connections::new(cases.iter().map(scheduler), |scheduler| scheduler.planner)?;
    let (mut total, mut most_attempts) = (Total::default(), 0);
    for case in cases {
        let Some(planner) = planners.get(scheduler(case)) else { continue };
        let Some(rendered) = adjustments.rehearsed(case).filter(|rendered| rendered.skip.is_none()) else { continue };
        let attempts = policy.most_attempts(rendered.about.on_disruption).unwrap_or(u32::MAX);
        total.add(&planner.most_usage(&rendered.workload).times(attempts));
        most_attempts = most_attempts.max(attempts);
    }
    Ok((total, most_attempts))
}
