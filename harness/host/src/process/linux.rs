//! Linux: everything is a file under `/proc`.

use super::Stat;
use std::{fs, io::Read};

pub(super) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

pub(super) fn pid_namespace() -> String {
    fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Empty where nothing has numbered it, as in many containers.
pub(super) fn machine_id() -> String {
    fs::read_to_string("/etc/machine-id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// `None` if no process has this pid.
pub fn stat(pid: i32) -> Option<Stat> {
    let mut buffer = [0_u8; 1024];
    let read = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut buffer).ok()?;
    parse_stat(&buffer[..read])
}

/// The second field is the command in parentheses and may itself hold blanks and parentheses: count from its end.
fn parse_stat(line: &[u8]) -> Option<Stat> {
    let after = line.iter().rposition(|&b| b == b')')? + 2;
    let fields: Vec<&str> = std::str::from_utf8(line.get(after..)?).ok()?.split(' ').collect();
    Some(Stat {
        state: *fields.first()?.as_bytes().first()?,
        group: fields.get(2)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

/// Every pid that we can see.
pub fn all() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The environment that a process was started with, `NAME=VALUE` and NUL; empty for another user's process.
pub fn environ(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

/// Its command line, for people.
pub fn command(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).trim_end_matches('\0').replace('\0', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_parentheses_and_blanks_does_not_shift_the_fields() {
        let line = b"42 (a ) R (b) S 1 40 42 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 987654 10 20 30";
        assert_eq!(parse_stat(line), Some(Stat { state: b'S', group: 40, start_time: 987_654 }));
        assert_eq!(parse_stat(b"42 (sh"), None);
    }
}
