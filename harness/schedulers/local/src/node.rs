//! What distinguishes this machine from another one that had its name.

use muster_core::job::scheduler::NodeSeen;
use std::{collections::BTreeMap, fs};

pub(crate) fn this(host: &str) -> NodeSeen {
    let uid = fs::read_to_string("/etc/machine-id").map(|id| id.trim().to_owned()).unwrap_or_default();
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let facts = BTreeMap::from([("kernel".to_owned(), kernel)]);
    NodeSeen { name: host.to_owned(), uid, class: String::new(), facts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_says_its_name_and_its_kernel() {
        let node = this("login1");
        assert_eq!((node.name.as_str(), node.facts.len()), ("login1", 1));
        assert!(!node.facts["kernel"].is_empty());
    }
}
