//! Tests of what stays and what goes by itself.

use crate::decide::{
    seen::{Member, Said},
    stay::{ends_itself, kept},
};
use std::collections::BTreeSet;

fn member(rank: u32, said: Option<(&str, Option<i32>)>) -> Member {
    let read = |(state, exit): (&str, Option<i32>)| -> Said {
        serde_json::from_value(serde_json::json!({ "state": state, "exit": exit, "started": null, "t": 0 })).unwrap()
    };
    Member { rank, id: format!("i-{rank}"), said: said.map(read), ..Member::default() }
}

#[test]
fn a_script_that_failed_or_was_lost_keeps_its_instance_and_nothing_else_does() {
    let rows: [(&str, Option<i32>, bool); 11] = [
        ("booted", None, false),
        ("ready", None, false),
        ("running", None, false),
        ("sending", Some(7), false),
        ("done", Some(0), false),
        ("done", Some(7), true),
        ("timeout", Some(124), true),
        ("rebooted", Some(125), true),
        ("full", Some(1), false),
        ("failed", Some(125), false),
        ("stopped", Some(125), false),
    ];
    let live = BTreeSet::from(["i-0", "i-1", "i-2"]);
    for (state, exit, stays) in rows {
        let one = [member(0, Some((state, exit)))];
        assert_eq!(kept(60, &one, &live).len(), usize::from(stays), "{state} {exit:?}");
        assert!(kept(0, &one, &live).is_empty() && kept(60, &one, &BTreeSet::new()).is_empty(), "{state} {exit:?}");
    }
    assert!(kept(60, &[], &live).is_empty() && kept(60, &[member(0, None)], &live).is_empty());
}

#[test]
fn of_several_the_first_stays_with_those_that_failed_if_it_has_failed() {
    let (live, done) = (BTreeSet::from(["i-0", "i-1", "i-2"]), |exit| Some(("done", Some(exit))));
    let of = |exits: [i32; 3]| kept(60, &[0, 1, 2].map(|rank| member(rank, done(exits[rank as usize]))), &live);
    assert_eq!(of([7, 0, 3]), ["i-0", "i-2"]);
    assert_eq!(of([7, 0, 0]), ["i-0"]);
    assert!(of([0, 0, 3]).is_empty());
}

#[test]
fn what_has_passed_ends_by_itself_and_what_failed_where_nothing_is_kept() {
    let said = |exits: &[Option<i32>]| -> Vec<Member> {
        (0..).zip(exits).map(|(rank, exit)| member(rank, exit.map(|exit| ("done", Some(exit))))).collect()
    };
    for (exits, keep, expected) in [
        (&[][..], 0, false),
        (&[Some(0)], 60, true),
        (&[Some(7)], 60, false),
        (&[Some(7)], 0, true),
        (&[Some(0), None], 60, false),
        (&[Some(0), Some(0)], 60, true),
        (&[Some(0), Some(7)], 60, false),
    ] {
        assert_eq!(ends_itself(keep, &said(exits)), expected, "{exits:?} {keep}");
    }
}
