//! The script of a pod, in one line: `wait 200ms; run 1s; log hello; lines 100 5ms; exit 1 OOMKilled`.
//!
//! ```text
//! wait D            stays as it is for that long               log TEXT     one line of the first container
//! unschedulable T   Pending, PodScheduled=False with this text log@C TEXT   of container C
//! waiting R [T]     Pending, every container waits for R       lines N [D]  N numbered lines, one every D
//! run [D]           Running, and for that long                 restart [N]  every container ends with N and lives again
//! exit N [R]        every container ends with N                fail R [T]   Failed with this reason of the pod
//! exit@C N          only C ends                                hang         nothing more happens by itself
//! ```

use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Wait(Duration),
    Unschedulable(String),
    Waiting { reason: String, message: String },
    Run,
    Log { container: Option<String>, text: String },
    Lines { count: u64, every: Duration },
    Exit { container: Option<String>, code: i64, reason: Option<String> },
    Restart(i64),
    Fail { reason: String, message: String },
    Hang,
}

pub(crate) const DEFAULT: &str = "run; log hello; exit 0";

/// Reads a script.
///
/// # Errors
/// The step that makes no sense.
pub(crate) fn parse(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for step in text.split(';').map(str::trim).filter(|step| !step.is_empty()) {
        let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
        let (word, container) = word.split_once('@').map_or((word, None), |(word, container)| (word, Some(container.to_owned())));
        let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
        let wrong = || format!("`{step}` is no step of a pod's script");
        let number = |text: &str, default: i64| if text.is_empty() { Some(default) } else { text.parse().ok() };
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let step = match word {
            "wait" => Step::Wait(duration(first).ok_or_else(wrong)?),
            "unschedulable" => Step::Unschedulable(rest.to_owned()),
            "waiting" => Step::Waiting { reason: first.to_owned(), message: second.to_owned() },
            "run" if rest.is_empty() => Step::Run,
            "run" => {
                steps.push(Step::Run);
                Step::Wait(duration(first).ok_or_else(wrong)?)
            }
            "log" => Step::Log { container, text: format!("{rest}\n") },
            "lines" => Step::Lines {
                count: first.parse().map_err(|_| wrong())?,
                every: if second.is_empty() { Duration::ZERO } else { duration(second).ok_or_else(wrong)? },
            },
            "exit" => Step::Exit { container, code: number(first, 0).ok_or_else(wrong)?, reason: some(second) },
            "restart" => Step::Restart(number(first, 1).ok_or_else(wrong)?),
            "fail" => Step::Fail { reason: first.to_owned(), message: second.to_owned() },
            "hang" => Step::Hang,
            _ => return Err(wrong()),
        };
        steps.push(step);
    }
    Ok(steps)
}

fn duration(text: &str) -> Option<Duration> {
    match text.strip_suffix("ms") {
        Some(milliseconds) => milliseconds.parse().ok().map(Duration::from_millis),
        None => text.strip_suffix('s')?.parse().ok().map(Duration::from_secs_f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_step_by_step() {
        let steps =
            parse("waiting ErrImagePull no such image; run 1.5s; log@side a b; lines 3 5ms; exit 137 OOMKilled; hang").unwrap();
        insta::assert_debug_snapshot!(steps);
        for wrong in ["sleep 3", "run long", "lines many", "exit x"] {
            assert_eq!(parse(wrong), Err(format!("`{wrong}` is no step of a pod's script")));
        }
    }
}
