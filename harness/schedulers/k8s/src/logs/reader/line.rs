//! One line as the API sends it with `timestamps=true`: a time, a blank, the bytes that the container wrote.

/// What identifies a line among those of its second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    /// The time when the node received it, in nanoseconds since the epoch.
    pub at: i64,
    /// The hash of its bytes.
    pub hash: u64,
}

/// FNV-1a: a line's hash must not depend on the pieces in which it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hash(u64);

impl Hash {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(0xcbf2_9ce4_8422_2325).and(bytes)
    }

    #[must_use]
    pub(super) fn and(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)))
    }

    pub(super) fn value(self) -> u64 {
        self.0
    }
}

/// The longest timestamp: `2006-01-02T15:04:05.000000000+02:00`.
const LONGEST: usize = 35;
const PER_SECOND: i64 = 1_000_000_000;

/// Splits a line into its time and the rest. `None`: no container wrote this, it is the node's own text about an error.
pub(super) fn split(line: &[u8]) -> Option<(i64, &[u8])> {
    let blank = line.iter().take(LONGEST + 1).position(|byte| *byte == b' ')?;
    Some((nanoseconds(&line[..blank])?, &line[blank + 1..]))
}

/// RFC 3339, read by hand: this is done for every line of every log.
fn nanoseconds(time: &[u8]) -> Option<i64> {
    let number = |from: usize, to: usize| {
        let digits = time.get(from..to)?;
        let digit = |sum: i64, byte: &u8| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0'));
        digits.iter().try_fold(0, digit)
    };
    if ![(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')].iter().all(|(at, mark)| time.get(*at) == Some(mark)) {
        return None;
    }
    let fraction = time.get(19..)?.strip_prefix(b".").unwrap_or_default();
    let fraction = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let zone = if fraction == 0 { 19 } else { 20 + fraction };
    let east = match time.get(zone..)? {
        b"Z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let minutes = number(zone + 1, zone + 3)? * 60 + number(zone + 4, zone + 6)?;
            if *sign == b'+' { minutes } else { -minutes }
        }
        _ => return None,
    };
    let nanoseconds = number(20, zone.max(20))? * 10_i64.pow(9_u32.checked_sub(u32::try_from(fraction).ok()?)?);
    let days = days(number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let seconds = ((days * 24 + number(11, 13)?) * 60 + number(14, 16)? - east) * 60 + number(17, 19)?;
    seconds.checked_mul(PER_SECOND)?.checked_add(nanoseconds)
}

/// Days since the epoch; a year begins in March here, so that its leap day is its last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let month = (month + 9) % 12;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (month * 153 + 2) / 5 + day - 719_469
}

/// May this be the beginning of a line with a time?
pub(super) fn may_begin(text: &[u8]) -> bool {
    text.first().is_none_or(u8::is_ascii_digit)
}

/// The second in which a moment lies.
pub(super) fn second(nanoseconds: i64) -> i64 {
    nanoseconds.div_euclid(PER_SECOND)
}

/// The beginning of a second.
pub(super) fn start_of(second: i64) -> i64 {
    second.saturating_mul(PER_SECOND)
}

/// As the store keeps it.
pub(super) fn micros(nanoseconds: i64) -> i64 {
    nanoseconds.div_euclid(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_time_and_bytes() {
        let at = 1_700_000_000_123_456_789;
        let rows: [(&[u8], _); 13] = [
            (b"2023-11-14T22:13:20.123456789Z a b\n", Some((at, &b"a b\n"[..]))),
            (b"2023-11-14T23:13:20.123456789+01:00 a b\n", Some((at, &b"a b\n"[..]))),
            (b"2023-11-14T17:43:20.123456789-04:30 a b\n", Some((at, &b"a b\n"[..]))),
            (b"2023-11-14T22:13:20.1234567890Z a b\n", None),
            (b"2023-11-14T22:1x:20.123456789Z a b\n", None),
            (b"2023-11-14T22:13:20Z \n", Some((at - 123_456_789, &b"\n"[..]))),
            (b"2023-11-14T22:13:20.5Z \xff\0\r\n", Some((at + 376_543_211, &b"\xff\0\r\n"[..]))),
            (b"2023-11-14T22:13:20.123456789Z", None),
            (b"unable to retrieve container logs for containerd://abc\n", None),
            (b"2023-11-14 it was\n", None),
            (b" \n", None),
            (b"\n", None),
            (b"", None),
        ];
        for (line, expected) in rows {
            assert_eq!(split(line), expected, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn a_time_is_read_as_jiff_reads_it() {
        let day = 86_400 * PER_SECOND;
        for step in 0..40_000 {
            let at = jiff::Timestamp::from_nanosecond(i128::from(step * day / 3 + 17 + step)).unwrap();
            let time = format!("{at:.9}");
            assert_eq!(nanoseconds(time.as_bytes()).map(i128::from), Some(at.as_nanosecond()), "{time}");
        }
    }

    #[test]
    fn a_hash_does_not_depend_on_the_pieces() {
        let whole = Hash::of(b"some bytes");
        for cut in 0..10 {
            assert_eq!(Hash::of(&b"some bytes"[..cut]).and(&b"some bytes"[cut..]), whole);
        }
        assert_ne!(whole, Hash::of(b"other bytes"));
    }

    #[test]
    fn moments_before_the_epoch_have_their_second_too() {
        assert_eq!([second(-1), second(0), second(1_999_999_999)], [-1, 0, 1]);
        assert_eq!([micros(-1), micros(1_999)], [-1, 1]);
    }
}
