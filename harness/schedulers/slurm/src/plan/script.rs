//! The text of `rfm_job.sh`: options of sbatch, a guard, and what the check runs.
//!
//! ```text
//! #SBATCH --job-name=rfm-nbody-aotugiob ..    options, one a line: the same file can be submitted by hand
//! if [ "$1" != rfm_part ]; then               what follows is for the outer shell
//! cd STAGE || exit 97                         newer Slurm falls back to another folder
//! [ ! -e rfm_job.cancelled ] || ..            a cleanup came first: a launch whose answer was lost does nothing
//! ( set -C; echo .. > rfm_job.id ) || ..      of two jobs of one attempt one runs; the other says why it does not
//! [ .. RESTART_COUNT .. ] || { rm ..; dd ..}  a job that Slurm may start again leaves nothing of an earlier start to judge
//! ...                                         what the check runs, as on every machine
//! echo .. > rfm_job.exit.tmp && mv ..         the first source of how it ended: it needs no accounting
//! ```

use super::{
    access::{self, Access},
    options::{Flag, Options},
};
use crate::files::{self, framing};
use muster_core::job::{
    stage_folder::{EXIT_FILE, FAULT_FILE, LOG_FILE, OUTER},
    workload::Workload,
};
use muster_text::{
    Value,
    diagnostic::{Diagnostic, did_you_mean},
    shell,
};
use std::fmt::Write;

/// See [`Descriptor::keep_status`](muster_core::job::descriptor::Descriptor::keep_status): status, bytes of the log, time,
/// how often Slurm has started the job again, whether the script was signalled, nodes.
pub(crate) const KEEP_STATUS: &str = "echo \"$rfm_status $(wc -c < rfm_job.out) $(date +%s) ${SLURM_RESTART_COUNT:-0} ${rfm_signal:-0} $SLURM_JOB_NODELIST\" > rfm_job.exit.tmp \
&& mv rfm_job.exit.tmp rfm_job.exit\n";

/// The resource of ReFrame's that stands for GPUs.
const GPU: &str = "_rfm_gpu";
/// Slurm stores no more of it.
const COMMENT: usize = 1024;

/// The options of a job, in order.
#[derive(Debug, Default)]
pub(crate) struct Header {
    flags: Vec<Flag>,
    verbatim: Vec<String>,
    /// What the nodes must have, of all layers. Slurm takes no parentheses within others.
    constraints: Vec<String>,
}

impl Header {
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.flags.iter().find(|(known, _)| known == name)?.1.as_deref()
    }

    /// A later layer replaces an earlier one, but features add up, and so do nodes to leave out.
    fn set(&mut self, (name, mut value): Flag) {
        if let ("constraint", Some(constraint)) = (name.as_str(), &value) {
            if !self.constraints.contains(constraint) {
                self.constraints.push(constraint.clone());
            }
            value = Some(match &self.constraints[..] {
                [only] => only.clone(),
                all => all.iter().map(|one| factor(one)).collect::<Vec<_>>().join("&"),
            });
        }
        let Some(known) = self.flags.iter_mut().find(|(known, _)| *known == name) else {
            self.flags.push((name, value));
            return;
        };
        known.1 = match (name.as_str(), known.1.take(), value) {
            ("exclude", Some(known), Some(value)) => Some(format!("{known},{value}")),
            (_, _, value) => value,
        };
    }

    fn set_to(&mut self, name: &str, value: &(impl ToString + ?Sized)) {
        self.set((name.to_owned(), Some(value.to_string())));
    }

    fn add(&mut self, access: Access) {
        access.flags.into_iter().for_each(|flag| self.set(flag));
        self.verbatim.extend(access.verbatim);
    }
}

/// A constraint as a part of another. Slurm takes no parentheses within parentheses, and none around counts: only `|` needs them.
fn factor(constraint: &str) -> String {
    let mut depth = 0_u32;
    let has_choice = constraint.chars().any(|letter| {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == '|' && depth == 0
    });
    if has_choice { format!("({constraint})") } else { constraint.to_owned() }
}

/// The options of a workload: what Muster sets, the shape, what the site asks of all, resources, `sched_options`.
pub(super) fn header(
    workload: &Workload,
    options: &Options,
    name: &str,
    minutes: Option<u64>,
) -> Result<Header, Vec<Diagnostic>> {
    let mut header = Header::default();
    let stage = workload.stage.to_string_lossy();
    header.set_to("job-name", name);
    header.set_to("comment", &format!("rfm={} rfm-session={}", workload.identifier, workload.session));
    header.set_to("chdir", &stage);
    header.set_to("output", &format!("{}/{LOG_FILE}", stage.replace('%', "%%")));
    header.set_to("open-mode", "append");
    header.set((if options.policy.requeue { "requeue" } else { "no-requeue" }.to_owned(), None));
    if let Some(minutes) = minutes {
        header.set_to("time", &minutes);
    }
    shape(&mut header, workload, options.use_nodes_option);
    let shared = |key: &str| workload.shared.get(key).unwrap_or(&Value::Null);
    header.add(access::read("access", texts(shared("access")))?);
    header.add(access::read("resources", resources(workload)?.iter().map(String::as_str))?);
    options.flags.iter().cloned().for_each(|flag| header.set(flag));
    header.verbatim.extend(options.verbatim.iter().cloned());
    if let Some(node) = &options.node {
        header.set_to("nodelist", node);
        header.set_to("nodes", &1);
    }
    if header.value("comment").is_some_and(|comment| comment.len() > COMMENT) {
        let mistake = Diagnostic::general(format!("`comment` has more than {COMMENT} bytes, and Slurm takes no more"));
        return Err(vec![mistake.hint("write a shorter one")]);
    }
    Ok(header)
}

/// How many of what: the keys of a check that several schedulers have.
fn shape(header: &mut Header, workload: &Workload, uses_nodes: bool) {
    let number = |key: &str| workload.shared.get(key).and_then(Value::as_u64);
    header.set_to("ntasks", &workload.num_tasks);
    if let Some(per_node) = number("num_tasks_per_node") {
        header.set_to("ntasks-per-node", &per_node);
        if uses_nodes {
            header.set_to("nodes", &u64::from(workload.num_tasks).div_ceil(per_node.max(1)));
        }
    }
    if let Some(nodes) = number("num_nodes") {
        header.set_to("nodes", &nodes);
    }
    let counts = [
        ("num_tasks_per_socket", "ntasks-per-socket"),
        ("num_tasks_per_core", "ntasks-per-core"),
        ("num_cpus_per_task", "cpus-per-task"),
    ];
    for (key, option) in counts {
        if let Some(count) = number(key) {
            header.set_to(option, &count);
        }
    }
    if let Some(gpus) = number("num_gpus_per_node").filter(|gpus| *gpus > 0 && resource(workload, GPU).is_none()) {
        header.set_to("gpus-per-node", &gpus);
    }
    if workload.shared.get("exclusive_access").and_then(Value::as_bool) == Some(true) {
        header.set(("exclusive".to_owned(), None));
    }
    if let Some(uses) = workload.shared.get("use_multithreading").and_then(Value::as_bool) {
        header.set_to("hint", &if uses { "multithread" } else { "nomultithread" });
    }
}

/// The options of a resource of the partition.
fn resource<'a>(workload: &'a Workload, name: &str) -> Option<&'a Value> {
    let all = workload.shared.get("resources")?.as_array()?;
    Some(&all.iter().find(|resource| resource["name"] == name)?["options"])
}

/// The options of all resources that the check names, with its values in them. One that the partition does not have adds nothing: a
/// check for many sites names all that it needs anywhere. But a name that is nearly one of the partition's is a slip.
fn resources(workload: &Workload) -> Result<Vec<String>, Vec<Diagnostic>> {
    let (mut options, mut wrong, mut slips) = (Vec::new(), Vec::new(), Vec::new());
    let mut fill = |name: &str, values: &dyn Fn(&str) -> Option<String>| {
        for option in resource(workload, name).map(texts).into_iter().flatten() {
            match filled(option, values) {
                Ok(option) => options.push(option),
                Err(missing) => {
                    let message = format!("the resource `{name}` needs `{missing}`, which `extra_resources` does not give");
                    let hint = format!(
                        "write `extra_resources: {{ {name}: {{ {missing}: .. }} }}`, or mend `{{{missing}}}` in `resources` of the site file"
                    );
                    wrong.push(Diagnostic::general(message).hint(hint));
                }
            }
        }
    };
    if let Some(gpus) = workload.shared.get("num_gpus_per_node").and_then(Value::as_u64).filter(|gpus| *gpus > 0) {
        fill(GPU, &|name| (name == "num_gpus_per_node").then(|| gpus.to_string()));
    }
    let all = workload.shared.get("resources").and_then(Value::as_array).into_iter().flatten();
    let known: Vec<&str> = all.filter_map(|resource| resource["name"].as_str()).collect();
    let asked = || workload.shared.get("extra_resources").and_then(Value::as_object).into_iter().flatten();
    for (name, _) in asked().filter(|(name, _)| !known.contains(&name.as_str())) {
        // `ipu` is no slip of `gpu`, nor is a name of which the check has the near one, too.
        let near = known.iter().copied().filter(|near| near.chars().next() == name.chars().next());
        let near = near.filter(|near| asked().all(|(other, _)| other != near));
        if let Some(hint) = did_you_mean(name, near) {
            slips.push(Diagnostic::general(format!("`extra_resources`: the partition has no resource `{name}`")).hint(hint));
        }
    }
    for (name, values) in asked() {
        fill(name, &|key| match &values[key] {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        });
    }
    wrong.append(&mut slips);
    if wrong.is_empty() { Ok(options) } else { Err(wrong) }
}

/// An option with its values, or the name of the one that is missing.
fn filled(option: &str, values: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut text, mut rest) = (String::new(), option);
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        text.push_str(before);
        text.push_str(&values(name).ok_or(name)?);
        rest = after;
    }
    Ok(text + rest)
}

/// One text, or a list of them.
pub(super) fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let one = std::slice::from_ref(value);
    value.as_array().map_or(one, Vec::as_slice).iter().filter_map(Value::as_str)
}

/// The whole script. `text` is what the check runs, with its own first line.
pub(super) fn script(header: &Header, workload: &Workload, text: &str) -> String {
    let mut script = String::from("#!/bin/sh\n");
    for (name, value) in &header.flags {
        let _ = match value {
            Some(value) => writeln!(script, "#SBATCH --{name}={}", quoted(value)),
            None => writeln!(script, "#SBATCH --{name}"),
        };
    }
    for option in &header.verbatim {
        let _ = match option.split_once('=') {
            Some((name, value)) => writeln!(script, "#SBATCH {name}={}", quoted(value)),
            None => writeln!(script, "#SBATCH {option}"),
        };
    }
    let text = text.strip_prefix("#!/bin/sh\n").unwrap_or(text);
    let (outer, text) = text.strip_prefix(OUTER).map_or(("", text), |text| (OUTER, text));
    script.push_str(outer);
    let _ = writeln!(script, "cd {} || exit 97", shell::quote(&workload.stage.to_string_lossy()));
    // Not into the log: that is of the job which runs.
    let (cancelled, id, skipped) = (files::CANCELLED, files::ID, files::SKIPPED);
    let _ = writeln!(
        script,
        "[ ! -e {cancelled} ] || {{ echo 'nothing ran: remove {cancelled} to run it by hand' > {skipped}; exit 0; }}"
    );
    let _ = writeln!(
        script,
        "( set -C; echo \"$SLURM_JOB_ID\" > {id} ) 2> /dev/null || [ \"$(cat {id})\" = \"$SLURM_JOB_ID\" ] || {{ \
         echo \"nothing ran: job $(cat {id}) has the folder; remove {id} to run another by hand\" > {skipped}; exit 0; }}"
    );
    if header.flags.iter().any(|(name, _)| name == "requeue") {
        // The node writes at the end of the log, wherever that is.
        let begins = framing(&workload.identifier).len();
        let _ = writeln!(
            script,
            "[ \"${{SLURM_RESTART_COUNT:-0}}\" -eq 0 ] || {{ rm -f {EXIT_FILE} {FAULT_FILE}; \
             dd if=/dev/null of={LOG_FILE} bs=1 seek={begins} 2> /dev/null; }}"
        );
    }
    // Newer versions of srun pass over what sbatch was asked for.
    script.push_str("[ -z \"$SLURM_CPUS_PER_TASK\" ] || export SRUN_CPUS_PER_TASK=\"$SLURM_CPUS_PER_TASK\"\n");
    script.push_str(text);
    script.shrink_to_fit();
    script
}

/// A value as sbatch reads it in a script.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-+=:,./@%*[]()&|!".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}
