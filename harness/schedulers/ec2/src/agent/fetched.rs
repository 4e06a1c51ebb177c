//! The files of data sets, as an agent is told of them.

use crate::config::Digest;
use std::fmt::Write as _;

/// A file that every instance fetches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetched {
    /// The path on the instances, or the folder that it is unpacked into.
    pub path: String,
    pub unpack: bool,
    pub check: Check,
    pub bucket: String,
    pub key: String,
    /// Its bytes.
    pub size: u64,
}

/// By what an agent verifies a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Check {
    Digest(Digest),
    /// S3 verifies its answers itself; what may be missing is the end.
    Size(u64),
}

impl Fetched {
    /// What it takes of a volume.
    pub(crate) fn room(&self) -> u64 {
        // An archive and what is in it are there at the same time.
        if self.unpack { self.size.saturating_mul(2) } else { self.size }
    }
}

/// The lines of the list, in the order of the addresses.
pub(crate) fn lines(files: &[Fetched], addresses: &[String]) -> String {
    let mut lines = String::new();
    for (Fetched { path, unpack, check, .. }, address) in files.iter().zip(addresses) {
        let check = match check {
            Check::Digest(digest) => digest.to_string(),
            Check::Size(size) => format!("size:{size}"),
        };
        let _ = writeln!(lines, "* DATA {path} {check} {} {address}", u8::from(*unpack));
    }
    lines
}

/// Bytes a second of a file that takes long, and does not hang. The timer of an instance waits for so much.
const SLOWEST: u64 = 20 << 20;

/// Seconds that an instance may take for them. Unpacking an archive takes its time, too.
pub(crate) fn seconds(files: &[Fetched]) -> u64 {
    files.iter().fold(0u64, |sum, file| sum.saturating_add(file.room())).div_ceil(SLOWEST)
}

/// GiB that a root volume needs for them, with a tenth more.
pub(crate) fn room_gib(files: &[Fetched]) -> u32 {
    let bytes = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.room()));
    let gib = bytes.div_ceil(1 << 30);
    u32::try_from(gib.saturating_mul(11).div_ceil(10)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size: u64, unpack: bool) -> Fetched {
        let check = Check::Size(size);
        Fetched { path: "x".to_owned(), unpack, check, bucket: "b".to_owned(), key: "k".to_owned(), size }
    }

    #[test]
    fn a_volume_has_room_for_data_and_for_what_is_unpacked() {
        const GIB: u64 = 1 << 30;
        let rows = [
            (vec![], 0),
            (vec![file(1, false)], 2),
            (vec![file(10 * GIB, false)], 11),
            (vec![file(10 * GIB, true)], 22),
            (vec![file(GIB, false), file(GIB, true)], 4),
            (vec![file(u64::MAX, true)], u32::MAX),
        ];
        for (files, gib) in rows {
            assert_eq!(room_gib(&files), gib, "{files:?}");
        }
    }

    #[test]
    fn an_instance_has_more_time_the_more_it_fetches() {
        assert_eq!(seconds(&[]), 0);
        assert_eq!(seconds(&[file(1, false)]), 1);
        assert_eq!(seconds(&[file(20 << 30, false), file(10 << 30, true)]), 2048);
    }

    #[test]
    fn a_line_says_where_a_file_goes_and_what_it_has_to_be() {
        let sum = Fetched { check: Check::Digest(Digest::Md5("0f".repeat(16))), unpack: true, ..file(3, true) };
        let lines = lines(&[file(3, false), sum], &["u1".to_owned(), "u2".to_owned()]);
        assert_eq!(lines, "* DATA x size:3 0 u1\n* DATA x md5:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f 1 u2\n");
    }
}
