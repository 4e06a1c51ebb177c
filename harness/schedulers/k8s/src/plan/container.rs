//! Makes a Pod of one container from `image` and the command or script of the check, and a ConfigMap for its `sourcesdir`.
//!
//! A ConfigMap's files are read only, and what a job builds lies beside its sources: the container copies them into a folder of its
//! own first. `launch::sources` fills the ConfigMap.

use muster_text::Value;
use serde_json::json;

/// As long as a local job has. The shell as the container's first process hears no TERM, and nothing would be gained by more.
const GRACE_SECONDS: u32 = 2;

/// What it is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) image: &'a str,
    /// An argv; `None`: the script.
    pub(super) command: Option<&'a [String]>,
    pub(super) script: &'a str,
    pub(super) env_vars: &'a [(String, String)],
    pub(super) resources: Option<&'a Value>,
    /// Whether files are sent with it.
    pub(super) has_sources: bool,
}

/// The volume of the ConfigMap.
pub(crate) const SOURCES: &str = "rfm-sources";

/// Where it is mounted, and where the container works. The second is ReFrame's name for the stage folder in a container.
const SOURCES_PATH: &str = "/rfm_sources";
const WORK_PATH: &str = "/rfm_workdir";

/// Copies the files: what begins with two dots is the kubelet's.
const COPY: &str = "for f in /rfm_sources/* /rfm_sources/.[!.]*; do [ ! -e \"$f\" ] || cp -RL \"$f\" . || exit; done";

/// The container's first process: it outlives a signal, and what the script does to `$$` it does to itself.
const OUTER: &str = "trap : TERM INT HUP USR1 USR2; /bin/sh -c \"$0\"; exit \"$?\"";

/// The manifest that a person would have written.
pub(super) fn pod(check: &str, parts: &Parts<'_>) -> Value {
    let mut container = json!({ "name": "main", "image": parts.image });
    if let Some(argv) = parts.command {
        let copy = format!("{COPY}\nexec \"$@\"");
        let before = if parts.has_sources { vec!["/bin/sh", "-c", &copy, "sh"] } else { vec![] };
        container["command"] = before.into_iter().chain(argv.iter().map(String::as_str)).map(verbatim).collect();
        let env = parts.env_vars.iter().map(|(name, value)| json!({ "name": name, "value": verbatim(value) }));
        container["env"] = env.collect();
    } else {
        // The script exports its variables itself: a `$PATH` in one is the shell's, not a text.
        let before = if parts.has_sources { format!("{COPY}\n") } else { String::new() };
        container["command"] = json!(["/bin/sh", "-c", verbatim(OUTER), verbatim(&format!("{before}{}", parts.script))]);
    }
    if let Some(resources) = parts.resources {
        container["resources"] = resources.clone();
    }
    if parts.has_sources {
        container["workingDir"] = WORK_PATH.into();
        container["volumeMounts"] = json!([
            { "name": SOURCES, "mountPath": SOURCES_PATH, "readOnly": true },
            { "name": "rfm-workdir", "mountPath": WORK_PATH },
        ]);
    }
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "generateName": format!("{}-", name_of(check)) },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "containers": [container],
        },
    });
    if parts.has_sources {
        pod["spec"]["volumes"] = json!([
            { "name": SOURCES, "configMap": { "name": sources_name(check) } },
            { "name": "rfm-workdir", "emptyDir": {} },
        ]);
    }
    pod
}

/// The ConfigMap for the files, which are not known yet.
pub(super) fn sources(check: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": sources_name(check) }, "immutable": true })
}

fn sources_name(check: &str) -> String {
    format!("{}-sources", name_of(check))
}

/// Kubernetes reads `$(NAME)` as a variable and `$$` as one `$`, in command, arguments and environment alike.
fn verbatim(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        written.push(letter);
        if letter == '$' && matches!(letters.peek(), Some('$' | '(')) {
            written.push('$');
        }
    }
    written
}

/// A check's name as Kubernetes takes names.
fn name_of(check: &str) -> String {
    let letters = check.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' });
    let name: String = letters.collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "check".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kubelet makes of a text, by the rules of its expansion.
    fn expanded(text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out += &rest[..at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                out.push('$');
                rest = after;
            } else if let Some(end) = rest.strip_prefix('(').and_then(|name| name.find(')')) {
                out += "EXPANDED";
                rest = &rest[end + 2..];
            } else {
                out.push('$');
            }
        }
        out + rest
    }

    #[test]
    fn a_dollar_sign_arrives_in_the_container_as_it_was_written() {
        for text in ["echo $HOME", "echo $(hostname)", "kill $$", "$$$(x)$", "$", "$$", "a$$b", "$(", "${x:-$(y)}"] {
            assert_eq!(expanded(&verbatim(text)), text);
        }
        assert_eq!(verbatim("echo $HOME"), "echo $HOME");
    }

    #[test]
    fn a_checks_name_becomes_a_pods_name() {
        for (check, name) in [("nbody", "nbody"), ("IOR_write", "ior-write"), ("_x.1_", "x-1"), ("__", "check")] {
            assert_eq!(name_of(check), name);
        }
    }
}
