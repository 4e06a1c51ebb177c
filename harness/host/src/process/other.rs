//! Unix without `/proc`: `ps` and `sysctl` are asked. Only its parser is tested in this repository.
//!
//! What is missing here: environments of other processes, so that a listing and a sweep find nothing, and a daemon
//! that left its process group is not found.

use super::Stat;
use std::process::{Command, Stdio};

/// What a command writes, in the C locale and UTC; empty if it cannot be run.
fn ask(program: &str, arguments: &[&str]) -> String {
    let answer = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .env("TZ", "UTC0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    answer.map(|answer| String::from_utf8_lossy(&answer.stdout).trim().to_owned()).unwrap_or_default()
}

pub(super) fn boot_id() -> String {
    match ask("sysctl", &["-n", "kern.bootsessionuuid"]) {
        id if id.is_empty() => ask("sysctl", &["-n", "kern.boottime"]),
        id => id,
    }
}

pub(super) fn pid_namespace() -> String {
    String::new()
}

pub(super) fn machine_id() -> String {
    String::new()
}

/// `None` if no process has this pid.
pub fn stat(pid: i32) -> Option<Stat> {
    parse_ps(&ask("ps", &["-o", "state=", "-o", "pgid=", "-o", "lstart=", "-p", &pid.to_string()]))
}

/// `S  501 Fri Nov 21 11:13:07 2025`: the time becomes the number 20251121111307.
fn parse_ps(line: &str) -> Option<Stat> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [state, group, _, month, day, time, year] = fields[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    Some(Stat {
        state: *state.as_bytes().first()?,
        group: group.parse().ok()?,
        start_time: format!("{year}{month:02}{day:0>2}{}", time.replace(':', "")).parse().ok()?,
    })
}

/// Every pid that we can see.
pub fn all() -> Vec<i32> {
    ask("ps", &["-A", "-o", "pid="]).lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Returns nothing: this operating system does not show the environment of processes.
pub fn environ(_pid: i32) -> Vec<u8> {
    Vec::new()
}

/// Its command line, for people.
pub fn command(pid: i32) -> String {
    ask("ps", &["-o", "args=", "-p", &pid.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_time_is_a_number_that_can_be_compared() {
        let stat = Stat { state: b'S', group: 501, start_time: 20_251_103_111_307 };
        assert_eq!(parse_ps("Ss   501 Mon Nov  3 11:13:07 2025"), Some(stat));
        assert_eq!(parse_ps(""), None);
    }
}
