//! The identity of this machine, which distinguishes it from another one that had its name.

use muster_core::job::scheduler::NodeSeen;
use std::fs;

pub(crate) fn this(host: &str) -> NodeSeen {
    let uid = fs::read_to_string("/etc/machine-id").map(|id| id.trim().to_owned()).unwrap_or_default();
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let os = fs::read_to_string("/etc/os-release").ok().as_deref().and_then(os).map(str::to_owned);
    let driver = fs::read_to_string("/sys/module/nvidia/version").ok().map(|version| version.trim().to_owned());
    let facts = [("kernel", Some(kernel)), ("os", os), ("driver", driver)];
    let facts = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    NodeSeen { name: host.to_owned(), uid, class: String::new(), facts }
}

/// `PRETTY_NAME="Debian GNU/Linux 13 (trixie)"`
fn os(release: &str) -> Option<&str> {
    release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).map(|name| name.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_says_its_name_and_its_kernel() {
        let node = this("login1");
        assert_eq!(node.name, "login1");
        assert!(!node.facts["kernel"].is_empty());
        assert_eq!(os("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n"), Some("Debian GNU/Linux 13 (trixie)"));
        assert_eq!(os("ID=debian\n"), None);
    }
}
