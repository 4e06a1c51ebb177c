//! Tests of the jobs that a capacity block takes.

use crate::{
    cloud::Reservation,
    decide::block::{Block, block},
    plan::Lifetime,
};
use muster_text::time::Timestamp;

const NOW: i64 = 1_796_000_000;

fn at(minutes: i64) -> Timestamp {
    Timestamp::of_seconds(NOW + minutes * 60)
}

/// What a block that lasts from one minute to another says to a job of 20 minutes.
fn said(state: &str, starts: i64, ends: i64) -> Block {
    let reservation = Reservation {
        id: "cr-1".into(),
        state: state.into(),
        zone: "eu-west-1a".into(),
        starts: Some(at(starts)),
        ends: Some(at(ends)),
    };
    block(&reservation, Lifetime { limit: 1200, keep: 0, boot: 600, fetch: 0 }, at(0))
}

#[test]
fn a_job_runs_in_a_block_that_is_not_reclaimed_before_its_limit() {
    assert_eq!(said("active", -60, 50), Block::Open);
    assert_eq!(said("scheduled", 30, 80), Block::NotYet(at(30)));
    let never = [said("active", -60, 49), said("scheduled", 30, 79), said("expired", -60, -1), said("payment-failed", 30, 90)];
    let why: Vec<String> = never.map(|never| if let Block::Never(why) = never { why } else { format!("{never:?}") }).to_vec();
    insta::assert_snapshot!(why.join("\n"), @"
    `time_limit` 20m ends after the capacity block cr-1 is reclaimed (2026-11-30 01:12 UTC, 30m before its end)
    `time_limit` 20m ends after the capacity block cr-1 is reclaimed (2026-11-30 01:42 UTC, 30m before its end)
    the capacity block cr-1 is expired
    the capacity block cr-1 is payment-failed
    ");
}
