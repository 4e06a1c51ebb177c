use super::*;
use proptest::prelude::*;
use std::io::Write as _;

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_700_000_000 * SECOND;

/// What a node keeps of one container's log.
#[derive(Debug, Clone, Default)]
struct Node {
    /// When each was written, its text.
    lines: Vec<(i64, Vec<u8>)>,
    /// The lines before this one are in a file that is not served.
    rotated: usize,
}

impl Node {
    fn reply(&self, since: Option<i64>) -> Vec<u8> {
        let mut reply = Vec::new();
        for (at, line) in &self.lines[self.rotated..] {
            if since.is_none_or(|since| *at >= since * SECOND) {
                let (minute, rest) = ((at - START).div_euclid(60 * SECOND), (at - START).rem_euclid(60 * SECOND));
                let (minute, second) = (START / SECOND / 60 % 60 + minute, START / SECOND % 60 + rest / SECOND);
                let (minute, second) = (minute + second / 60, second % 60);
                write!(reply, "2023-11-14T22:{minute:02}:{second:02}.{:09}Z ", rest % SECOND).unwrap();
                reply.extend(line);
            }
        }
        reply
    }

    fn log(&self) -> Vec<u8> {
        self.lines.iter().flat_map(|(_, line)| line.clone()).collect()
    }
}

/// A log of `lines` lines, `per_second` a second, many of them equal, some with equal times, some not text.
fn node(lines: usize, per_second: usize) -> Node {
    let line = |n: usize| {
        let at = START + i64::try_from(n / per_second).unwrap() * SECOND + i64::try_from(n % per_second / 2).unwrap() * 1_000;
        let text = match n % 7 {
            0 => b"\n".to_vec(),
            1 => b"\xff\0\r\x1b[31m\n".to_vec(),
            2 => format!("{n}\n").into_bytes(),
            _ => b"again\n".to_vec(),
        };
        (at, text)
    };
    Node { lines: (0..lines).map(line).collect(), rotated: 0 }
}

/// All that a reader output.
#[derive(Debug, Default, PartialEq)]
struct Output {
    bytes: Vec<u8>,
    gaps: Vec<String>,
}

impl Output {
    fn hear(&mut self, fed: Fed) {
        self.bytes.extend(fed.bytes);
        self.gaps.extend(fed.gaps);
    }
}

/// Reads a reply up to byte `cut`, in pieces, and is cut off.
fn read_until(reader: &mut Reader, output: &mut Output, node: &Node, cut: usize, piece: usize) {
    let reply = node.reply(reader.resume_since());
    for piece in reply[..cut.min(reply.len())].chunks(piece) {
        output.hear(reader.feed(piece));
    }
    reader.disconnect();
}

fn read_to_the_end(reader: &mut Reader, output: &mut Output, node: &Node) {
    output.hear(reader.feed(&node.reply(reader.resume_since())));
    output.hear(reader.finish());
}

fn complete(log: Vec<u8>) -> Output {
    Output { bytes: log, gaps: Vec::new() }
}

#[test]
fn what_counts_for_a_rotation_is_the_file_of_the_node() {
    let reply = b"2026-11-25T12:00:00.000000001Z ok\n2026-11-25T12:00:00.000000002Z \n";
    let mut reader = Reader::default();
    reader.feed(reply);
    let file = "2026-11-25T12:00:00.000000001Z stdout F ok\n2026-11-25T12:00:00.000000002Z stderr F \n";
    assert_eq!(reader.received, file.len() as u64);
}

#[test]
fn a_log_cut_at_any_byte_is_read_whole() {
    let node = node(200, 40);
    let (log, reply) = (node.log(), node.reply(None));
    // A reply since a second is the end of the whole one.
    let since = |since: Option<i64>| {
        let at = node.lines.iter().position(|(at, _)| since.is_none_or(|since| *at >= since * SECOND)).unwrap();
        let stamps = node.lines.len() - at;
        let bytes: usize = node.lines[at..].iter().map(|(_, line)| line.len()).sum();
        &reply[reply.len() - bytes - stamps * "2023-11-14T22:13:20.000000000Z ".len()..]
    };
    assert_eq!(since(Some(START / SECOND + 2)), node.reply(Some(START / SECOND + 2)));
    for cut in 0..=reply.len() {
        let (mut reader, mut output) = (Reader::default(), Output::default());
        for piece in reply[..cut].chunks(1_000) {
            output.hear(reader.feed(piece));
        }
        reader.disconnect();
        output.hear(reader.feed(since(reader.resume_since())));
        output.hear(reader.finish());
        assert!(output == complete(log.clone()), "cut at {cut}: {output:?}");
        assert_eq!(reader.bytes(), log.len() as u64);
    }
}

#[test]
fn a_log_taken_over_at_any_line_is_read_whole() {
    let node = node(60, 20);
    let log = node.log();
    for cut in 0..=node.reply(None).len() {
        let (mut reader, mut output, mut last) = (Reader::default(), Output::default(), None);
        let fed = reader.feed(&node.reply(None)[..cut]);
        last = fed.last.or(last);
        output.hear(fed);
        let mut successor = Reader::resume(reader.bytes(), last);
        read_until(&mut successor, &mut output, &node, cut, 5);
        read_to_the_end(&mut successor, &mut output, &node);
        assert!(output == complete(log.clone()), "taken over after {cut}: {output:?}");
    }
}

#[test]
fn a_log_too_long_to_be_read_again_is_taken_over_by_time() {
    let mut node = node(60, 20);
    // The last line that is kept is the only one of its time.
    node.lines[28].0 -= 1_000;
    let (mut reader, mut output) = (Reader::resume(10 << 20, Some(Timestamp(micros(node.lines[29].0)))), Output::default());
    assert_eq!(reader.resume_since(), Some(1_700_000_001));
    read_until(&mut reader, &mut output, &node, 120, 7);
    assert_eq!(reader.resume_since(), Some(1_700_000_001), "nothing new had come");
    read_until(&mut reader, &mut output, &node, 900, 7);
    read_to_the_end(&mut reader, &mut output, &node);
    let rest = node.lines[30..].iter().flat_map(|(_, line)| line.clone()).collect();
    assert!(output == complete(rest), "{output:?}");
}

/// How many lines of that time are kept nobody knows.
#[test]
fn a_log_that_is_taken_over_between_lines_of_one_time_has_a_gap() {
    let mut node = node(60, 20);
    node.lines[30].0 = node.lines[29].0;
    let (mut reader, mut output) = (Reader::resume(10 << 20, Some(Timestamp(micros(node.lines[29].0)))), Output::default());
    read_to_the_end(&mut reader, &mut output, &node);
    assert_eq!(output.gaps.len(), 1, "{output:?}");
}

#[test]
fn a_rotation_that_loses_lines_is_a_gap() {
    let mut whole = node(40, 10);
    for (n, (at, _)) in whole.lines.iter_mut().enumerate() {
        // With equal times, it is unknown which of two equal lines was rotated away.
        *at += i64::try_from(n).unwrap();
    }
    for read in 0..=40 {
        for rotated in 0..=40 {
            let mut node = whole.clone();
            let seen = Node { lines: node.lines[..read].to_vec(), rotated: 0 };
            let (mut reader, mut output) = (Reader::default(), Output::default());
            read_until(&mut reader, &mut output, &seen, usize::MAX, 100);
            node.rotated = rotated;
            read_to_the_end(&mut reader, &mut output, &node);
            let lost = rotated > read && read > 0;
            if lost {
                assert!(!output.gaps.is_empty(), "{read} read, {rotated} rotated");
            }
            if rotated < read {
                assert!(output == complete(whole.log()), "{read} read, {rotated} rotated, nothing was lost: {output:?}");
            }
            let rest: Vec<u8> = node.lines[rotated.max(read)..].iter().flat_map(|(_, line)| line.clone()).collect();
            assert_eq!(output.bytes, [seen.log(), rest].concat(), "{read} read, {rotated} rotated");
        }
    }
}

#[test]
fn the_loss_by_a_rotation_is_reported_in_one_sentence() {
    let mut node = node(40, 10);
    let (mut reader, mut output) = (Reader::default(), Output::default());
    read_until(&mut reader, &mut output, &node, 400, 100);
    node.rotated = 30;
    read_to_the_end(&mut reader, &mut output, &node);
    insta::assert_snapshot!(output.gaps.join("\n"), @"lines after byte 54 may be missing: the node rotated the log while it was not being read");
}

#[test]
fn a_taken_over_log_that_was_rotated_has_a_gap() {
    for (bytes, rotated) in [(100, 30), (10 << 20, 30), (100_000, 0)] {
        let mut node = node(60, 20);
        let (mut reader, mut output) = (Reader::resume(bytes, Some(Timestamp(micros(node.lines[9].0)))), Output::default());
        node.rotated = rotated;
        read_to_the_end(&mut reader, &mut output, &node);
        assert_eq!(output.gaps.len(), 1, "{bytes} {rotated}: {output:?}");
    }
}

#[test]
fn what_has_no_time_is_no_output() {
    let (mut reader, mut output) = (Reader::default(), Output::default());
    let mut reply = node(3, 3).reply(None);
    reply.extend(b"unable to retrieve container logs for containerd://3f2\n\n");
    reply.extend(vec![b'x'; 3 << 20]);
    reply.extend(b"\nfailed to create fsnotify watcher: too many open files");
    for piece in reply.chunks(4096) {
        output.hear(reader.feed(piece));
    }
    reader.disconnect();
    read_to_the_end(&mut reader, &mut output, &node(3, 3));
    assert!(output == complete(node(3, 3).log()), "{output:?}");
    let notes = reader.take_notes();
    assert_eq!(notes[0], "unable to retrieve container logs for containerd://3f2");
    assert_eq!(notes[1], "x".repeat(NOTE));
    assert_eq!(notes[2], "failed to create fsnotify watcher: too many open files");
}

#[test]
fn a_last_line_needs_no_newline() {
    let mut node = node(10, 10);
    node.lines.push((START + SECOND, b"done".to_vec()));
    let (mut reader, mut output) = (Reader::default(), Output::default());
    read_until(&mut reader, &mut output, &node, usize::MAX, 10);
    assert!(!output.bytes.ends_with(b"done"), "it may still grow");
    read_to_the_end(&mut reader, &mut output, &node);
    assert!(output == complete(node.log()), "{output:?}");
}

#[test]
fn an_empty_log_is_complete() {
    let (mut reader, mut output) = (Reader::default(), Output::default());
    read_until(&mut reader, &mut output, &Node::default(), 0, 1);
    assert_eq!(reader.resume_since(), None);
    read_to_the_end(&mut reader, &mut output, &Node::default());
    assert_eq!(output, Output::default());
}

#[test]
fn a_huge_line_is_passed_on_in_pieces_and_resumed_within() {
    let mut node = node(5, 5);
    let huge: Vec<u8> = (0..5_000_000_u32).map(|n| b"0123456789abcdef"[(n / 7 % 16) as usize]).chain(*b"\n").collect();
    node.lines.push((START + 10_000, huge));
    node.lines.push((START + 11_000, b"after\n".to_vec()));
    let log = node.log();
    let (mut reader, mut output) = (Reader::default(), Output::default());
    let mut largest = 0;
    for cut in [300, 900_000, 1_100_000, 1_050_000, 2_500_000, 500_000, 5_000_100, usize::MAX] {
        let reply = node.reply(reader.resume_since());
        for piece in reply[..cut.min(reply.len())].chunks(8192) {
            let fed = reader.feed(piece);
            largest = largest.max(fed.bytes.len());
            output.hear(fed);
        }
        reader.disconnect();
    }
    assert!(output.bytes.len() > 5_000_000);
    read_to_the_end(&mut reader, &mut output, &node);
    assert!(output == complete(log), "{:?} {} bytes", output.gaps, output.bytes.len());
    assert!(largest <= LONG + 8192, "{largest}");
}

#[test]
fn a_huge_line_taken_over_in_its_middle_is_whole() {
    let mut node = node(5, 5);
    node.lines.push((START + 10_000, vec![b'y'; 3_000_000]));
    node.lines[5].1.push(b'\n');
    let (mut reader, mut output) = (Reader::default(), Output::default());
    let fed = reader.feed(&node.reply(None)[..2_000_000]);
    let mut successor = Reader::resume(reader.bytes(), fed.last);
    output.hear(fed);
    read_until(&mut successor, &mut output, &node, 2_500_000, 4096);
    read_to_the_end(&mut successor, &mut output, &node);
    assert!(output == complete(node.log()), "{:?} {} bytes", output.gaps, output.bytes.len());
}

#[test]
fn a_clock_that_goes_back_loses_nothing_once_it_was_seen() {
    let mut node = node(30, 10);
    for (at, _) in &mut node.lines[15..] {
        *at -= 100 * SECOND;
    }
    let log = node.log();
    let seen = Node { lines: node.lines[..16].to_vec(), rotated: 0 }.reply(None).len();
    for cut in seen..node.reply(None).len() {
        let (mut reader, mut output) = (Reader::default(), Output::default());
        read_until(&mut reader, &mut output, &node, cut, 64);
        read_until(&mut reader, &mut output, &node, cut / 2, 64);
        read_to_the_end(&mut reader, &mut output, &node);
        assert!(output == complete(log.clone()), "cut at {cut}: {output:?}");
    }
}

#[test]
fn a_part_of_a_time_is_not_taken_for_a_text() {
    let mut reader = Reader::default();
    reader.feed(b"2023-11-1");
    reader.disconnect();
    assert!(reader.take_notes().is_empty());
}

#[test]
fn the_first_and_the_last_time_are_reported() {
    let text = b"2023-11-14T22:13:20Z x\n2023-11-14T22:13:21Z x\n2023-11-14T22:13:22Z x\n";
    let fed = Reader::default().feed(text);
    assert_eq!((fed.first, fed.last), (Some(Timestamp(1_700_000_000_000_000)), Some(Timestamp(1_700_000_002_000_000))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_log_cut_many_times_is_read_whole(
        steps in prop::collection::vec((0_i64..400_000_000, "(a|b|\\PC{0,9})"), 1..120),
        cuts in prop::collection::vec((0_usize..3_000, 1_usize..200, 1_usize..40), 0..12),
    ) {
        let mut at = START;
        // One in four has the time of the one before; one is stamped a little too late.
        let lines = steps.into_iter().map(|(step, text)| {
            at += if step % 4 == 0 { 0 } else { step };
            (at - if step % 5 == 0 { 40_000_000 } else { 0 }, format!("{}\n", text.replace('\n', "")).into_bytes())
        });
        let whole = Node { lines: lines.collect(), rotated: 0 };
        let (mut reader, mut output) = (Reader::default(), Output::default());
        let mut written = 0;
        for (cut, piece, more) in cuts {
            // The log grows meanwhile.
            written = (written + more).min(whole.lines.len());
            let node = Node { lines: whole.lines[..written].to_vec(), rotated: 0 };
            read_until(&mut reader, &mut output, &node, cut, piece);
        }
        read_to_the_end(&mut reader, &mut output, &whole);
        prop_assert_eq!(output, complete(whole.log()));
    }

    #[test]
    fn no_loss_is_silent(
        lines in 1_usize..80,
        per_second in 1_usize..30,
        cuts in prop::collection::vec((0_usize..3_000, 0_usize..30, 0_usize..30), 1..8),
    ) {
        let mut whole = node(lines, per_second);
        // Two lines of one nanosecond and one text cannot be told apart, should the file end between them.
        (0..).zip(&mut whole.lines).for_each(|(n, (at, _))| *at += n);
        let (mut reader, mut output) = (Reader::default(), Output::default());
        let (mut written, mut rotated) = (0, 0);
        // What went before the first read cannot be known to be missing: rotation needs 10 MiB, and reading begins with the container.
        let mut has_output = false;
        for (cut, more, gone) in cuts {
            written = (written + more).min(lines);
            rotated = (rotated + gone).min(written);
            let node = Node { lines: whole.lines[..written].to_vec(), rotated };
            read_until(&mut reader, &mut output, &node, cut, 50);
            has_output |= rotated == 0 && reader.bytes() > 0;
        }
        read_to_the_end(&mut reader, &mut output, &Node { rotated, ..whole.clone() });
        if has_output && output.bytes != whole.log() {
            prop_assert!(!output.gaps.is_empty(), "{:?}", output);
        }
    }
}

#[test]
fn a_hole_in_the_times_of_a_stream_may_hide_a_file_unless_nothing_was_written_meanwhile() {
    // waited for the second line, its distance in time, doubt; all in milliseconds
    let rows = [
        (Some(0), 1_900, false),
        (Some(0), 3_000, true),
        (Some(900), 3_000, true),
        (Some(2_900), 3_000, false),
        (Some(60_000), 60_000, false),
        (None, 60_000, false),
    ];
    for (waited, hole, doubt) in rows {
        let node = Node { lines: vec![(START, b"one\n".into()), (START + hole * SECOND / 1_000, b"two\n".into())], rotated: 0 };
        let reply = node.reply(None);
        let (one, two) = reply.split_at(reply.iter().position(|byte| *byte == b'\n').unwrap() + 1);
        let mut reader = Reader::default();
        reader.arrives(waited.map(|_| Duration::ZERO));
        reader.feed(one);
        reader.arrives(waited.map(Duration::from_millis));
        reader.feed(two);
        assert_eq!(reader.may_have_skipped, doubt, "{waited:?} {hole}");
    }
}
