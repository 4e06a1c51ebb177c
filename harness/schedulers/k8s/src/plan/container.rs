//! Makes a Pod of one container from `image` and the command or script of the check.

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
}

/// The manifest that a person would have written.
pub(super) fn pod(check: &str, parts: &Parts<'_>) -> Value {
    let mut container = json!({ "name": "main", "image": parts.image });
    if let Some(argv) = parts.command {
        container["command"] = argv.iter().map(|word| verbatim(word)).collect();
        let env = parts.env_vars.iter().map(|(name, value)| json!({ "name": name, "value": verbatim(value) }));
        container["env"] = env.collect();
    } else {
        // The script exports its variables itself: a `$PATH` in one is the shell's, not a text.
        container["command"] = json!(["/bin/sh", "-c", verbatim(parts.script)]);
    }
    if let Some(resources) = parts.resources {
        container["resources"] = resources.clone();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "generateName": format!("{}-", name_of(check)) },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "containers": [container],
        },
    })
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
