//! Decides whether the beginning of a log is proven. No I/O.
//!
//! ```text
//! container starts --(a plain read finds it empty)--> empty --(again)--> empty --(a first line)--> is it proven?
//! ```
//! A node serves the newest file of a log only, and may begin a new one every few seconds: a log whose first line comes late may have had
//! lines before it, and an empty one too. Times of containers and lines are by the clock of the node, those of answers by the server's
//! `Date`. Where the two contradict each other, answers prove nothing.
//!
//! All of that says that a node had no time to begin another file, not that none was full: a program that prints megabytes a second fills
//! one within the first second. So what comes after the first line is compared with what may have come before it, in as much time.

use crate::{api::clock, logs::container::Life};
use muster_text::time::Timestamp;
use std::time::Duration;
use tokio::time::Instant as Clock;

/// No node looks after its files more often, in seconds.
const FILE_LIVES: i64 = 3;
/// A first line that comes sooner is the first of its log, in seconds.
const EARLY: i64 = 2;
/// A program that is not kept waiting has written its first line by then. Its start is cut to a whole second.
const PROMPT: Duration = Duration::from_millis(1_200);
/// A node may have smaller files than is known: a late first line is suspect from here on.
const LEAST_FILE: u64 = 2 << 20;
/// By so much a runtime may say a start too late, on a busy node.
const UNSAID: Duration = Duration::from_secs(1);
/// The clocks of node and server may differ by this, in seconds.
const SKEW: i64 = 1;

/// What is known of one instance's log until its first line.
#[derive(Debug, Clone, Default)]
pub(in crate::logs) struct Beginning {
    pub life: Life,
    /// The time when the pod got its node, by the clock of the control plane.
    pub scheduled: Option<Timestamp>,
    /// The time when the log was last known to be empty, with nothing missing before.
    pub empty: Option<Timestamp>,
    /// The time when the last request was answered, or the one that gave the first line.
    pub answered: Option<Timestamp>,
    /// A plain read has found the log empty while the stream that is read now was open.
    pub joined: bool,
    /// The first line that a plain read in time has found.
    pub began: Option<Timestamp>,
    pub first: Option<Timestamp>,
    /// The time when a request was first answered.
    pub first_answer: Option<Timestamp>,
    /// The date of an answer, and when it came.
    dated: Option<(Timestamp, Clock)>,
    /// It was said whether it is proven, by this process or by one before.
    pub judged: bool,
    /// For how long there may have been lines before the first one, while it is not known how fast they come. Who takes the log over
    /// does not know it any more.
    unseen: Option<Duration>,
}

impl Beginning {
    /// A request is answered, at this time of the server. Returns how long after the container's start, for the first answer of all.
    pub(super) fn answered(&mut self, date: Timestamp) -> Option<Duration> {
        (self.answered, self.dated) = (Some(date), Some((date, Clock::now())));
        let is_first = self.first_answer.is_none();
        self.first_answer.get_or_insert(date);
        self.life.started.filter(|_| is_first).map(|started| date.since(started))
    }

    /// An answer of this time was an empty log.
    pub(super) fn was_empty(&mut self, date: Timestamp) -> bool {
        let in_time = self.in_time(date);
        if in_time {
            self.empty = Some(date);
        }
        in_time
    }

    /// A plain read beside a stream was answered, with this first line.
    pub(super) fn joined(&mut self, date: Timestamp, first: Option<Timestamp>) {
        match first {
            None => self.joined = self.was_empty(date),
            Some(_) if self.in_time(date) => self.began = first,
            Some(_) => {}
        }
    }

    /// The stream is not read on, and gave no whole line until now. `part`: when the line was written of which it gave the beginning.
    pub(super) fn left(&mut self, part: Option<Timestamp>) {
        if part.is_some() {
            // The log was not empty: the next stream has to begin with the same line.
            self.began = self.began.or(part.filter(|_| Self { first: part, ..self.clone() }.is_proven()));
        } else if self.joined {
            self.empty = self.dated.map(|(date, at)| date.plus(at.elapsed())).or(self.empty);
        }
        self.joined = false;
    }

    /// Can the node not have rotated lines away before the first one, or all lines?
    pub(super) fn is_proven(&self) -> bool {
        let Some(since) = self.empty.or(self.life.started) else { return false };
        let before = |limit: i64, at: Option<Timestamp>| at.is_some_and(|at| comes_within(since, at, limit));
        // A stream that has brought nothing although there was a line was served by nobody.
        let is_stale = self.first.zip(self.empty).is_some_and(|(first, empty)| first.seconds() + EARLY < empty.seconds());
        if is_stale || self.began.is_some_and(|began| self.first != Some(began)) {
            return false;
        }
        // A node's file does not change any more once its container has ended.
        let is_early = before(EARLY, self.first) || before(FILE_LIVES, self.life.ended);
        is_early || !self.node_is_ahead() && (self.began.is_some() || self.answered_in_time())
    }

    fn answered_in_time(&self) -> bool {
        let Some(answered) = self.answered else { return false };
        let is_fresh = self.joined && self.first.is_some_and(|first| comes_within(first, answered, FILE_LIVES));
        is_fresh || self.in_time(answered)
    }

    /// Has the node had no time to begin another file before this?
    fn in_time(&self, date: Timestamp) -> bool {
        let since = match self.empty {
            Some(empty) => [Some(empty), None],
            None => [self.life.started, self.scheduled],
        };
        since.into_iter().flatten().any(|since| comes_within(since, date, FILE_LIVES))
    }

    /// An answer brings nothing that is younger than itself.
    fn node_is_ahead(&self) -> bool {
        let newest = self.first.or(self.life.ended);
        newest.zip(self.answered).is_some_and(|(newest, answered)| newest.seconds() > answered.seconds() + SKEW)
    }

    /// It is proven but for how fast its lines come. A stream that was open while the log was empty has missed none.
    pub(super) fn holds(&mut self) {
        let since = self.empty.or(self.life.started);
        // A start that is said later than the first line was written has no time before that.
        let unseen = |(first, since): (Timestamp, Timestamp)| if first < since { UNSAID } else { first.since(since) };
        self.unseen = self.first.zip(since).map(unseen).filter(|_| !self.joined);
    }

    /// The log has so many bytes, the last of this time. Whether in the time before its first line it may have filled a file of the node,
    /// at the pace of the same time after it.
    pub(super) fn may_have_filled_a_file(&mut self, bytes: u64, file: u64, last: Option<Timestamp>) -> bool {
        let (Some(unseen), Some(first)) = (self.unseen, self.first) else { return false };
        let is_later = last.is_some_and(|last| last.since(first) > unseen);
        let filled = !is_later && bytes >= if unseen < PROMPT { file } else { file.min(LEAST_FILE) };
        if filled || is_later {
            self.unseen = None;
        }
        filled
    }

    /// Why it is not proven: nothing shows that the first line that was read is the first that was written.
    pub(super) fn was_too_late(&self) -> String {
        let shown = |time: Option<Timestamp>, none: &str| time.and_then(clock::shown).unwrap_or_else(|| none.to_owned());
        format!(
            "the node may have rotated away the beginning of the log, or all of it: its container started at {}, the first answer was of {}, \
             the first line is of {}; let the script print a line at its start",
            shown(self.life.started, "a time that is not known"),
            shown(self.first_answer, "no known time"),
            shown(self.first, "no time, there is none"),
        )
    }

    /// Why it is not proven: so many bytes have come as soon after the first line as that came after the start.
    pub(super) fn was_too_fast(bytes: u64) -> String {
        format!(
            "the node may have rotated away the beginning of the log: it has {} MiB soon after its start, and a file of the node may have \
             been full before the first line that was read; let the script print a line and wait 2 s before long output",
            bytes >> 20
        )
    }
}

/// Less than so many seconds later. Starts and dates are cut to whole seconds.
fn comes_within(since: Timestamp, at: Timestamp, limit: i64) -> bool {
    (-SKEW..limit).contains(&(at.seconds() - since.seconds()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_000;

    fn at(tenths: i64) -> Timestamp {
        Timestamp(START * 1_000_000 + tenths * 100_000)
    }

    /// A container that started at 0, in tenths of a second.
    fn started() -> Beginning {
        Beginning { life: Life { started: Some(at(0)), ended: None }, ..Beginning::default() }
    }

    #[test]
    fn a_beginning_is_proven_by_an_early_line_an_early_answer_or_a_short_life() {
        // first line, its answer, the container's end, proven; in tenths of a second after the start
        let rows = [
            // The first line is early, however late it is read.
            (Some(0), Some(0), None, true),
            (Some(19), Some(900), None, true),
            (Some(20), Some(900), None, false),
            (Some(-10), Some(900), None, true),
            (Some(-30), Some(900), None, false),
            // The answer is early.
            (Some(25), Some(20), None, true),
            (Some(25), Some(29), None, true),
            (Some(25), Some(30), None, false),
            (None, Some(29), None, true),
            (None, Some(30), None, false),
            (None, None, None, false),
            // The container ran briefly.
            (Some(25), Some(900), Some(29), true),
            (None, Some(900), Some(29), true),
            (None, None, Some(29), true),
            (Some(25), Some(900), Some(30), false),
            (None, Some(900), Some(30), false),
            // The node's clock is ahead of the server's, or was set back.
            (Some(100), Some(20), None, false),
            (None, Some(20), Some(100), false),
            (None, Some(-50), None, false),
            (None, Some(900), Some(-50), false),
        ];
        for (first, answered, ended, proven) in rows {
            let life = Life { ended: ended.map(at), ..started().life };
            let beginning = Beginning { life, first: first.map(at), answered: answered.map(at), ..started() };
            assert_eq!(beginning.is_proven(), proven, "{first:?} {answered:?} {ended:?}");
        }
        assert!(!Beginning { first: Some(at(0)), ..Beginning::default() }.is_proven(), "it is not known when it started");
    }

    #[test]
    fn a_log_that_was_empty_is_proven_if_the_reads_go_on_from_there() {
        // last known empty, seen so beside this stream, first line, its answer, the container's end, proven
        let rows = [
            (20, true, Some(600), Some(610), None, true),
            // The stream was served late, or by nobody.
            (20, true, Some(600), Some(640), None, false),
            (600, true, Some(100), Some(600), None, false),
            // Nobody knows what came between two streams.
            (20, false, Some(600), Some(610), None, false),
            (20, false, Some(39), Some(900), None, true),
            (600, false, Some(625), Some(629), None, true),
            (600, false, None, Some(640), None, false),
            (600, false, None, Some(640), Some(620), true),
            (600, false, None, Some(640), Some(600), true),
            (600, true, Some(700), Some(650), None, false),
        ];
        for (empty, joined, first, answered, ended, proven) in rows {
            let life = Life { ended: ended.map(at), ..started().life };
            let (first, answered) = (first.map(at), answered.map(at));
            let beginning = Beginning { life, empty: Some(at(empty)), joined, first, answered, ..started() };
            assert_eq!(beginning.is_proven(), proven, "{empty} {joined} {first:?} {answered:?} {ended:?}");
        }
    }

    #[test]
    fn a_plain_read_in_time_tells_how_the_log_begins() {
        // its answer, its first line, then the first line of the stream at 60.0 s, proven
        let rows = [(20, None, 600, true), (30, None, 600, false), (20, Some(10), 10, true), (20, Some(10), 15, false)];
        for (date, began, first, proven) in rows {
            let mut beginning = started();
            beginning.joined(at(date), began.map(at));
            beginning.answered(at(600));
            beginning.first = Some(at(first));
            assert_eq!(beginning.is_proven(), proven, "{date} {began:?} {first}");
        }
    }

    #[test]
    fn a_node_whose_clock_is_behind_is_known_by_when_the_pod_got_it() {
        for (scheduled, proven) in [(None, false), (Some(585), true), (Some(570), false)] {
            let beginning = Beginning { scheduled: scheduled.map(at), answered: Some(at(600)), ..started() };
            assert_eq!(beginning.is_proven(), proven, "{scheduled:?}");
        }
    }

    #[test]
    fn a_log_that_fills_a_file_in_the_time_before_its_first_line_is_not_proven() {
        const FILE: u64 = 9_216;
        // first line, then KiB at a tenth of a second; a file has so many KiB; whether one may have been full before
        type Row<'a> = (i64, &'a [(u64, i64)], u64, bool);
        let rows: [Row<'_>; 11] = [
            // Its start is said late.
            (-1, &[(5_000, 5), (9_216, 8)], FILE, true),
            (15, &[(100, 16), (2_048, 30)], FILE, true),
            (15, &[(2_047, 30), (9_000, 31)], FILE, false),
            // Prompt: by default a file has more.
            (11, &[(5_000, 15), (9_000, 22)], FILE, false),
            (11, &[(5_000, 15), (9_216, 22)], FILE, true),
            (5, &[(9_216, 10)], FILE, true),
            (5, &[(9_216, 11)], FILE, false),
            (19, &[(10, 900), (99_000, 901)], FILE, false),
            // Files are smaller than by default.
            (11, &[(1_000, 15), (1_800, 22)], 1_800, true),
            (11, &[(1_799, 22), (9_216, 23)], 1_800, false),
            (15, &[(1_000, 30)], 900, true),
        ];
        for (first, pieces, file, expected) in rows {
            let mut beginning = Beginning { first: Some(at(first)), ..started() };
            beginning.holds();
            let filled: Vec<bool> = pieces
                .iter()
                .map(|(kib, time)| beginning.may_have_filled_a_file(kib << 10, file << 10, Some(at(*time))))
                .collect();
            assert_eq!(filled.contains(&true), expected, "{first} {pieces:?}");
            assert!(!expected || !beginning.may_have_filled_a_file(u64::MAX, 0, Some(at(first))), "it is said once");
        }
        // The beginning of a line came, and then the stream broke: another line is no proof.
        for (second, expected) in [(200, true), (210, false)] {
            let mut cut = Beginning { joined: true, empty: Some(at(190)), answered: Some(at(201)), ..started() };
            cut.left(Some(at(200)));
            (cut.first, cut.answered) = (Some(at(second)), Some(at(212)));
            assert_eq!(cut.is_proven(), expected, "{second}");
        }
        let mut open = Beginning { joined: true, first: Some(at(600)), ..started() };
        open.holds();
        assert!(!open.may_have_filled_a_file(u64::MAX, 0, None), "nothing came before");
    }

    #[test]
    fn the_reason_has_the_times() {
        let late = Beginning { first: Some(at(300)), first_answer: Some(at(310)), ..started() };
        insta::assert_snapshot!(late.was_too_late(), @"the node may have rotated away the beginning of the log, or all of it: its container started at 1970-01-01T00:16:40Z, the first answer was of 1970-01-01T00:17:11Z, the first line is of 1970-01-01T00:17:10Z; let the script print a line at its start");
        insta::assert_snapshot!(Beginning::default().was_too_late(), @"the node may have rotated away the beginning of the log, or all of it: its container started at a time that is not known, the first answer was of no known time, the first line is of no time, there is none; let the script print a line at its start");
    }
}
