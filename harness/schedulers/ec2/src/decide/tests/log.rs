//! Tests of logs that are put together from pieces.

use crate::decide::log::{Part, Tail, assemble, read_console};
use base64::{Engine, prelude::BASE64_STANDARD};
use std::{collections::BTreeMap, fmt::Write};

/// A log of 400 bytes that differ from their neighbours.
fn whole() -> Vec<u8> {
    (0..400u32).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect()
}

/// What the agent writes of a log, from an offset.
fn console(log: &[u8], from: usize) -> String {
    let mut text = format!("[    1.0] booting\nrfm-log aotugiob 0 exit=3 total={} from={from}\n", log.len());
    for (number, line) in log[from..].chunks(57).enumerate() {
        let _ = writeln!(text, "[  5.{number}] eth0: rfm-log aotugiob 0 {number} {}", BASE64_STANDARD.encode(line));
    }
    text
}

/// The bytes that the parts stand for, a lost one as `?`. A segment has 100 bytes.
fn text_of(parts: &[Part], log: &[u8], segments: &BTreeMap<u32, u64>) -> (Vec<u8>, u64) {
    let (mut text, mut lost) = (Vec::new(), 0);
    for part in parts {
        match part {
            Part::Segment { number, from } => {
                let start = *number as usize * 100;
                text.extend(&log[start + usize::try_from(*from).unwrap()..start + usize::try_from(segments[number]).unwrap()]);
            }
            Part::Console(bytes) => text.extend(bytes),
            Part::Lost(bytes) => lost += bytes,
        }
    }
    (text, lost)
}

/// The segments that S3 has; how long the log is, if the agent said so; from where the console has it; how much is lost.
type Row<'a> = (&'a [(u32, u64)], Option<u64>, Option<usize>, u64);

#[test]
fn a_log_is_put_together_without_a_byte_twice_and_what_is_missing_is_counted() {
    let log = whole();
    let tail = |from| read_console(&console(&log, from), "aotugiob", 0);
    let all = [(0, 100), (1, 100), (2, 100), (3, 100)];
    let rows: [Row<'_>; 11] = [
        (&all, Some(400), None, 0),
        (&all, None, None, 0),
        (&[], Some(0), None, 0),
        (&[], None, None, 0),
        (&[], None, Some(0), 0),
        (&all[..2], Some(400), None, 200),
        (&all[..2], None, Some(200), 0),
        (&all[..2], None, Some(50), 0),
        (&all[..2], Some(400), Some(250), 50),
        (&[(0, 100), (1, 100), (2, 30)], None, Some(210), 0),
        (&[(0, 100), (2, 100), (3, 100)], Some(400), None, 100),
    ];
    for (segments, total, from, expected) in rows {
        let segments: BTreeMap<u32, u64> = segments.iter().copied().collect();
        let parts = assemble(100, &segments, total, from.and_then(tail).as_ref());
        let (text, lost) = text_of(&parts, &log, &segments);
        assert_eq!(lost, expected, "{segments:?} {from:?}: {parts:?}");
        if lost == 0 && (total == Some(400) || from.is_some()) {
            assert_eq!(text, log, "{segments:?} {from:?}");
        } else if total.is_some() {
            assert_eq!(text.len() as u64 + lost, total.unwrap(), "{segments:?} {from:?}");
        }
    }
}

#[test]
fn a_damaged_line_of_a_console_loses_its_own_bytes_alone() {
    let log = whole();
    let damaged = console(&log, 0).replace(&BASE64_STANDARD.encode(&log[57..114]), "!damaged!");
    let parts = assemble(100, &BTreeMap::new(), None, read_console(&damaged, "aotugiob", 0).as_ref());
    let kinds: Vec<String> = parts.iter().map(|part| format!("{part:?}")[..4].to_owned()).collect();
    assert_eq!(kinds[..3], ["Cons", "Lost", "Cons"]);
    assert_eq!(parts[1], Part::Lost(57));
    assert_eq!(text_of(&parts, &log, &BTreeMap::new()).0.len(), 400 - 57);
}

#[test]
fn a_tail_whose_beginning_the_console_has_lost_is_read_from_its_end() {
    let log = whole();
    let text = console(&log, 0) + "rfm-log aotugiob 0 exit=3 total=400 from=0 end\nrfm-log";
    assert_eq!(read_console(&text, "aotugiob", 0), read_console(&console(&log, 0), "aotugiob", 0));
    // Within the second piece.
    let cut = &text[text.find("aotugiob 0 1 ").unwrap()..];
    let tail = read_console(cut, "aotugiob", 0).unwrap();
    assert_eq!((tail.exit, tail.total, tail.pieces.keys().next()), (3, 400, Some(&114)));
    let parts = assemble(100, &BTreeMap::new(), None, Some(&tail));
    assert_eq!((&parts[0], text_of(&parts, &log, &BTreeMap::new()).0), (&Part::Lost(114), log[114..].to_vec()));
}

#[test]
fn the_console_of_another_job_or_rank_and_an_older_tail_are_not_taken() {
    let log = whole();
    assert_eq!(read_console(&console(&log, 0), "aotugiob", 1), None);
    assert_eq!(read_console(&console(&log, 0), "abcdefgh", 0), None);
    assert_eq!(read_console("", "aotugiob", 0), None);
    let twice = console(b"older", 0) + &console(&log, 350);
    let tail = read_console(&twice, "aotugiob", 0).unwrap();
    assert_eq!(tail, Tail { exit: 3, total: 400, pieces: BTreeMap::from([(350, log[350..].to_vec())]) });
}
