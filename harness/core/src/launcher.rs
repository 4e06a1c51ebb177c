//! The command line that starts the tasks of a job: it stands before `executable`.
//!
//! ```text
//! nothing is said      the usual one of the scheduler
//! mpirun               a name that the scheduler knows, with its command
//! mpirun -np {num_tasks} -bind-to core, /opt/run     a command of the site, with the names of values in braces
//! ```

use muster_text::diagnostic::{Diagnostic, did_you_mean};

/// The values of a job that a command may name.
pub const VALUES: [&str; 7] = [
    "num_tasks",
    "num_nodes",
    "num_tasks_per_node",
    "num_tasks_per_socket",
    "num_tasks_per_core",
    "num_cpus_per_task",
    "num_gpus_per_node",
];

/// The launchers of a scheduler.
///
/// In a command, `{name}` is a value of the job, as `{num_tasks}`. A part in brackets is left out if one of its values is not set; only
/// commands of the table have such parts, for brackets mean something to a shell.
#[derive(Debug, Clone, Copy)]
pub struct Launchers {
    /// The command line where neither partition nor check names a launcher.
    pub usual: &'static str,
    /// Names, each with its command line.
    pub named: &'static [(&'static str, &'static str)],
}

impl Launchers {
    /// It starts the program itself. What `launcher` says reaches it as the value of any shared key.
    pub const NONE: Self = Self { usual: "", named: &[] };

    /// Returns the words before `executable`; empty if there are none. `value` knows the values of the job.
    ///
    /// # Errors
    /// There is no such launcher, or no such value, or a value that it needs is not set.
    pub fn line(&self, launcher: Option<&str>, value: impl Fn(&str) -> Option<String>) -> Result<String, Diagnostic> {
        let Some(launcher) = launcher.map(str::trim).filter(|_| !self.named.is_empty()) else {
            return fill(self.usual, true, &value);
        };
        if let Some((_, command)) = self.named.iter().find(|(name, _)| *name == launcher) {
            return fill(command, true, &value);
        }
        if !launcher.is_empty() && launcher.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
            let names: Vec<&str> = self.named.iter().map(|(name, _)| *name).collect();
            let list = || format!("known are {}; write another program with its path or its options", names.join(", "));
            let hint = did_you_mean(launcher, names.iter().copied()).unwrap_or_else(list);
            return Err(Diagnostic::general(format!("there is no launcher `{launcher}`")).hint(hint));
        }
        fill(launcher, false, &value)
    }
}

fn fill(command: &str, has_parts: bool, value: &impl Fn(&str) -> Option<String>) -> Result<String, Diagnostic> {
    let (mut line, mut rest) = (String::new(), command);
    let mark = if has_parts { ['{', '['] } else { ['{', '{'] };
    while let Some(at) = rest.find(mark) {
        line.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some((part, after)) = rest.strip_prefix('[').and_then(|part| part.split_once(']')) {
            line.push_str(&fill(part, false, value).unwrap_or_default());
            rest = after;
            continue;
        }
        let name = rest[1..].split_once('}').map(|(name, _)| name).filter(|name| is_name(name) && !line.ends_with('$'));
        let Some(name) = name else {
            line.push_str(&rest[..1]);
            rest = &rest[1..];
            continue;
        };
        if !VALUES.contains(&name) {
            let message = format!("`launcher` names `{name}`, which is no value of a job");
            let hint = did_you_mean(name, VALUES).unwrap_or_else(|| format!("known are {}", VALUES.join(", ")));
            return Err(Diagnostic::general(message).hint(hint));
        }
        let Some(value) = value(name) else {
            let message = format!("`launcher` needs `{name}`, which is not set");
            return Err(Diagnostic::general(message).hint(format!("set `{name}`, or write `launcher` without it")));
        };
        line.push_str(&value);
        rest = &rest[name.len() + 2..];
    }
    line.push_str(rest);
    Ok(line.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAUNCHERS: Launchers = Launchers {
        usual: "start --hard",
        named: &[("start", "start"), ("many", "many -n {num_tasks} [-N {num_tasks_per_node}] -x"), ("none", "")],
    };

    fn line(launcher: Option<&str>, per_node: Option<&str>) -> Result<String, String> {
        let value = |name: &str| match name {
            "num_tasks" => Some("8".to_owned()),
            "num_tasks_per_node" => per_node.map(str::to_owned),
            _ => None,
        };
        LAUNCHERS.line(launcher, value).map_err(|mistake| mistake.message)
    }

    #[test]
    fn a_launcher_is_a_name_of_the_scheduler_or_a_command_with_values() {
        let rows = [
            (None, None, Ok("start --hard")),
            (Some("start"), None, Ok("start")),
            (Some("none"), None, Ok("")),
            (Some("many"), None, Ok("many -n 8 -x")),
            (Some("many"), Some("4"), Ok("many -n 8 -N 4 -x")),
            (Some("/opt/run"), None, Ok("/opt/run")),
            (Some("run -n {num_tasks}"), None, Ok("run -n 8")),
            (Some("run ${HOME} [a] {}"), None, Ok("run ${HOME} [a] {}")),
            (Some("run {num_tasks_per_node}"), None, Err("`launcher` needs `num_tasks_per_node`, which is not set")),
            (Some("run {num_taks}"), None, Err("`launcher` names `num_taks`, which is no value of a job")),
            (Some("strat"), None, Err("there is no launcher `strat`")),
        ];
        for (launcher, per_node, expected) in rows {
            assert_eq!(line(launcher, per_node), expected.map(str::to_owned).map_err(str::to_owned), "{launcher:?} {per_node:?}");
        }
    }
}
