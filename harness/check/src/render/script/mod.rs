//! The job script: what a check runs, as one POSIX sh text that keeps its exit status.
//!
//! ```text
//! #!/bin/sh
//! if [ "$1" != rfm_part ]; then
//! trap rfm_signal=1 TERM ..    the outer shell outlives the signal that ends the job, and remembers it ...
//! trap : USR1 USR2
//! /bin/sh "$0" rfm_part
//! rfm_status=$?                ... and keeps its status where a later harness finds it
//! echo "$rfm_status" > rfm_job.exit
//! exit "$rfm_status"
//! fi
//! shift
//! kill() { .. }                `-$$` is the group of the outer shell, too
//! {                            read to its end before any of it runs: a here-document that nothing ends is a mistake
//! :
//! ulimit -s unlimited          the check's part, in a process of its own: what it does to `$$` it does to itself
//! rfm_load module load gcc     what is prepared, in layers: commands, modules, variables; see [`Preparation`]
//! export OMP_NUM_THREADS="8"
//! ./bench -n 4
//! }
//! ```
//! In a container there is only the check's part: what starts it has its own outer shell.
//!
//! Two things differ from ReFrame. A bare `"` in a variable's value is escaped, so that the value is what was written.
//! And a non-zero status of the executable stays the status of the job when `postrun_cmds` follow it: there, a
//! successful `rm` hides a benchmark that crashed. The status of the last postrun command counts when the executable
//! itself succeeded.
//!
//! The status file is not written aside and renamed: `mv` would be a second process for every case. One line of at
//! most four bytes is one write; `read_status` of the core takes a line without its newline for a file not yet written.
//!
//! Where a module does not load or what runs containers is not there, the program never starts: `rfm_fault` reports why, in
//! the log and in `FAULT_FILE` (in a container: where Kubernetes reads the last words of one), and ends the part.
//!
//! Not done here: writing or running the script, and any judgement of what it runs. A command that is not valid sh
//! makes the script invalid; the shell reports it in the log.

use crate::site::modules::{Module, ModulesSystem};
use muster_core::job::stage_folder::{KEEP_STATUS, OUTER};
use muster_text::shell;
use std::fmt::Write;

/// How the check's part begins. Its shell leads no group of processes, so `kill -- -$$` is meant for the group that it is in.
const PART: &str = "kill() { for rfm_arg do shift; [ \"$rfm_arg\" != \"-$$\" ] || rfm_arg=0; set -- \"$@\" \"$rfm_arg\"; done; command kill \"$@\"; }\n{\n:\n";

/// A layer of preparation before a program: of a partition, an environment or the check. Later layers may
/// use what earlier ones set, and within a layer variables what its modules set: ReFrame's order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Preparation<'a> {
    /// Commands, verbatim.
    pub prepare_cmds: &'a [String],
    /// Modules to load.
    pub modules: &'a [Module],
    /// `export NAME="VALUE"`. See [`Script::render`] for what is live in a value.
    pub exports: &'a [(String, String)],
}

/// The parts of a job script, in the order in which they run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Script<'a> {
    /// The program that loads modules here; `None`: not set.
    pub modules_system: Option<ModulesSystem>,
    /// The partition's, the environment's, the container platform's and the check's.
    pub preparations: &'a [Preparation<'a>],
    /// A program without which the job cannot start: what runs containers.
    pub requires: Option<&'a str>,
    /// The check's commands before the executable, verbatim.
    pub prerun_cmds: &'a [String],
    /// The executable, verbatim: the shell expands it.
    pub executable: Option<&'a str>,
    /// Its options, joined with blanks, verbatim: the shell expands them.
    pub executable_opts: &'a [String],
    /// Instead of the executable: an argv, every word passed as it is.
    pub command: Option<&'a [String]>,
    /// The word with which `command` may begin: the words of `${{ launcher }}`, which the shell expands. Empty: none.
    pub launcher: &'a str,
    /// The check's commands after the executable, verbatim.
    pub postrun_cmds: &'a [String],
    /// The command that keeps the exit status, `$rfm_status`; `None`: [`KEEP_STATUS`].
    pub keep_status: Option<&'a str>,
    /// It runs in a container: whose exit status is known, and whose folder may not be written to.
    pub in_container: bool,
}

impl Script<'_> {
    /// The text of `rfm_job.sh`.
    ///
    /// In a variable's value only `$` is live: `$VAR`, `${VAR}`, `$((1 + 2))` and `$(command)` expand, within the last two
    /// everything is the shell's. `\$` is a dollar sign; quotes, back-ticks and other backslashes are literal.
    ///
    /// # Errors
    /// A lower-case fragment: a NUL byte, a name or a value that `export` does not take, two programs.
    pub fn render(&self) -> Result<String, String> {
        self.refuse_nul()?;
        let mut text = self.head() + PART;
        self.push_preparations(&mut text)?;
        for line in self.prerun_cmds {
            push_line(&mut text, line);
        }
        if let Some(program) = self.program()? {
            push_line(&mut text, &program);
        }
        if !self.postrun_cmds.is_empty() {
            text.push_str("rfm_status=$?\n");
            for line in self.postrun_cmds {
                push_line(&mut text, line);
            }
            text.push_str("rfm_post=$?\nexit \"$((rfm_status ? rfm_status : rfm_post))\"\n");
        }
        text.push_str("}\n");
        Ok(text)
    }

    /// The outer shell. What it traps, the process that it starts does not.
    fn head(&self) -> String {
        if self.in_container {
            return "#!/bin/sh\n".to_owned();
        }
        let keep_status = self.keep_status.unwrap_or(KEEP_STATUS);
        format!(
            "#!/bin/sh\n{OUTER}trap rfm_signal=1 TERM INT HUP\ntrap : USR1 USR2\n/bin/sh \"$0\" rfm_part\nrfm_status=$?\n\
             {keep_status}exit \"$rfm_status\"\nfi\nshift\n"
        )
    }

    fn push_preparations(&self, text: &mut String) -> Result<(), String> {
        let has_modules = self.preparations.iter().any(|layer| !layer.modules.is_empty());
        // A machine that has modules has them for all its commands; few images have any.
        let system = self.modules_system.filter(|_| has_modules || !self.in_container);
        text.push_str(&system.map(ModulesSystem::init).unwrap_or_default());
        let loads = has_modules && system.is_some_and(|system| system != ModulesSystem::Nomod);
        if loads || self.requires.is_some() {
            text.push_str(if self.in_container { FAULT_IN_CONTAINER } else { FAULT });
        }
        if loads {
            text.push_str(&system.map(ModulesSystem::loader).unwrap_or_default());
        }
        for layer in self.preparations {
            for line in layer.prepare_cmds {
                push_line(text, line);
            }
            for module in layer.modules {
                text.push_str(&system.map(|system| system.load(module)).unwrap_or_default());
            }
            for (name, value) in layer.exports {
                text.push_str(&export(name, value)?);
            }
        }
        if let Some(program) = self.requires {
            let _ = writeln!(
                text,
                "command -v {program} > /dev/null || rfm_fault \"{program} is not installed on $(uname -n): it is what runs the container\""
            );
        }
        Ok(())
    }

    fn program(&self) -> Result<Option<String>, String> {
        let executable = self.executable.map(|executable| {
            let words: Vec<&str> = [executable].into_iter().chain(self.executable_opts.iter().map(String::as_str)).collect();
            words.join(" ")
        });
        match (executable, self.command) {
            (Some(_), Some(_)) => Err("`command` and `executable` cannot both be set".to_owned()),
            (Some(line), None) => Ok(Some(line)),
            (None, Some(argv)) => {
                let after = argv.split_first().filter(|(first, _)| **first == self.launcher).map(|(_, rest)| rest);
                let words = after.unwrap_or(argv).iter().map(|word| shell::quote(word));
                let launcher = after.map(|_| self.launcher.to_owned()).filter(|launcher| !launcher.is_empty());
                Ok(Some(launcher.into_iter().chain(words).collect::<Vec<_>>().join(" ")))
            }
            (None, None) => Ok(None),
        }
    }

    fn refuse_nul(&self) -> Result<(), String> {
        let own = [
            ("prerun_cmds", self.prerun_cmds),
            ("executable_opts", self.executable_opts),
            ("command", self.command.unwrap_or_default()),
            ("postrun_cmds", self.postrun_cmds),
        ];
        let lists = self.preparations.iter().map(|layer| ("prepare_cmds", layer.prepare_cmds)).chain(own);
        let in_lists =
            lists.flat_map(|(key, lines)| lines.iter().enumerate().map(move |(i, line)| (format!("{key}[{i}]"), line.as_str())));
        let exports = self.preparations.iter().flat_map(|layer| layer.exports);
        let in_exports = exports.map(|(name, value)| (format!("env_vars.{name}"), value.as_str()));
        let modules = self.preparations.iter().flat_map(|layer| layer.modules);
        let in_modules = modules.flat_map(|module| {
            [Some(module.name.as_str()), module.path.as_deref()].map(|text| ("modules".to_owned(), text.unwrap_or_default()))
        });
        let in_executable = self.executable.into_iter().map(|line| ("executable".to_owned(), line));
        match in_exports.chain(in_modules).chain(in_executable).chain(in_lists).find(|(_, text)| text.contains('\0')) {
            Some((place, _)) => Err(format!("{place} contains a NUL byte")),
            None => Ok(()),
        }
    }
}

const FAULT: &str = "rfm_stage=$PWD
rfm_fault() {
printf '%s\\n' \"$1\" > \"$rfm_stage/rfm_job.fault\"
printf '%s\\n' \"$1\" >&2
exit 1
}
";
const FAULT_IN_CONTAINER: &str = "rfm_fault() {
{ printf '%s' \"$1\" > /dev/termination-log; } 2> /dev/null
printf '%s\\n' \"$1\" >&2
exit 1
}
";

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    if !line.ends_with('\n') {
        text.push('\n');
    }
}

/// `export NAME="VALUE"` and a newline.
fn export(name: &str, value: &str) -> Result<String, String> {
    let is_name =
        name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.is_empty() && !name.as_bytes()[0].is_ascii_digit();
    if !is_name {
        return Err(format!("`{name}` is not a variable's name: use letters, digits and _, no digit first"));
    }
    // The closing quote would be swallowed and with it the rest of the script.
    let unclosed = |open: &str| format!("the value of {name} has `{open}` that nothing closes; write \\$ for a dollar sign");
    let mut line = String::new();
    let _ = write!(line, "export {name}=\"");
    let mut rest = value;
    while let Some(at) = rest.find(['"', '`', '\\', '$']) {
        line.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = if rest.starts_with("$(") {
            let end = closing(rest, 1).ok_or_else(|| unclosed("$("))?;
            line.push_str(&rest[..end]);
            end
        } else if rest.starts_with("${") {
            // The braces need no look inside: an escaped quote in them is literal as it is outside.
            if !rest.contains('}') {
                return Err(unclosed("${"));
            }
            line.push_str("${");
            2
        } else if rest.starts_with("\\$") {
            line.push_str("\\$");
            2
        } else {
            if !rest.starts_with('$') {
                line.push('\\');
            }
            line.push_str(&rest[..1]);
            1
        };
        rest = &rest[taken..];
    }
    line.push_str(rest);
    line.push_str("\"\n");
    Ok(line)
}

/// The index after the parenthesis that closes the one at `open`. Quoted text and escaped characters do not count.
fn closing(text: &str, open: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut at, mut in_double) = (0_usize, open, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' => in_double = !in_double,
            b'\'' if !in_double => at += 1 + text.get(at + 1..)?.find('\'')?,
            b'$' if in_double && bytes.get(at + 1) == Some(&b'(') => at = closing(text, at + 1)? - 1,
            b'(' if !in_double => depth += 1,
            b')' if !in_double => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests;
