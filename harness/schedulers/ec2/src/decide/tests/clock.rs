//! Times of an instance whose clock is wrong.

use crate::decide::{clock::behind, seen::Said};
use muster_text::time::Timestamp;

fn said(t: i64) -> Said {
    let text = format!(r#"{{"state":"running","exit":null,"started":{},"ended":{t},"t":{t}}}"#, t - 60);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn what_an_instance_is_behind_is_what_s3_says_and_small_differences_change_nothing() {
    for (t, written, known, expected) in [
        (1000, None, 0, 0),
        (1000, None, 40, 40),
        (1000, Some(1000), 0, 0),
        (1000, Some(1005), 0, 0),
        (1000, Some(1006), 0, 6),
        (1000, Some(1040), 0, 40),
        (1000, Some(1042), 40, 40),
        (11_800, Some(1000), 0, -10_800),
        // Somebody has set its clock.
        (1000, Some(1001), 40, 1),
    ] {
        assert_eq!(behind(&said(t), written.map(Timestamp::of_seconds), known), expected, "{t} {written:?} {known}");
    }
}

#[test]
fn all_times_are_by_the_same_clock() {
    let Said { started, ended, t, .. } = said(1000).by_clock(-40);
    assert_eq!((started, ended, t), (Some(900), Some(960), 960));
}
