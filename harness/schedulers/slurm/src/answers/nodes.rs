//! Reads what sinfo says of nodes.

/// `sinfo -h -N -O ..`: the columns that are read.
pub(crate) const COLUMNS: &str = "NodeList:|,StateComplete:|,Features_act:|,PartitionName:|,Reason:|";

/// A node of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub name: String,
    /// `mixed`, and what else holds: `drain`.
    pub base: String,
    pub flags: Vec<String>,
    pub features: Vec<String>,
    /// The reason why it is away, as an administrator wrote it.
    pub reason: Option<String>,
}

/// Flags of a node that takes no jobs.
const AWAY: &[&str] =
    &["drain", "down", "not_responding", "fail", "maintenance", "powering_down", "reboot", "reboot_issued", "reboot_requested"];
/// States of a node that takes jobs.
const AVAILABLE: &[&str] = &["idle", "mixed", "allocated", "completing", "planned"];

impl Node {
    /// `n1|mixed+drain|big|main|bad gpu, see #12|`
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(5, '|').map(str::trim);
        let (name, state) = (fields.next()?, fields.next()?.to_lowercase());
        let (features, _partition, reason) = (fields.next()?, fields.next()?, fields.next()?);
        let mut words = state.trim_end_matches(|c: char| "*~#!%$@^-".contains(c)).split('+').map(str::to_owned);
        let base = words.next()?;
        let mut flags: Vec<String> = words.collect();
        if state.ends_with('*') {
            flags.push("not_responding".to_owned());
        }
        let features = features.split([',', '&', '|']).filter(|feature| !feature.is_empty() && *feature != "(null)");
        let reason = reason.trim_end_matches('|').trim();
        Some(Self {
            name: name.to_owned(),
            base,
            flags,
            features: features.map(str::to_owned).collect(),
            reason: (!reason.is_empty() && reason != "none").then(|| reason.to_owned()),
        })
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|known| known == flag)
    }

    /// Whether it takes jobs. `in_reservation`: those of our own reservation, where maintenance is the point of it.
    pub(crate) fn is_available(&self, in_reservation: bool) -> bool {
        let is_away = |flag: &&&str| self.has(flag) && !(in_reservation && **flag == "maintenance");
        let is_free = AVAILABLE.contains(&self.base.as_str()) || in_reservation && self.base == "maint";
        is_free && AWAY.iter().find(is_away).is_none() && (in_reservation || !self.has("reserved"))
    }

    /// Whether it is in a state, as a user names it: a base, a flag, `idle*` for exactly that.
    pub(crate) fn is_in(&self, state: &str) -> bool {
        let same = |known: &str| known == state || short(known) == state;
        match state.strip_suffix('*') {
            Some(exactly) => (self.base == exactly || short(&self.base) == exactly) && self.flags.is_empty(),
            // As sinfo calls them: nothing runs there any more, or something still does.
            None if state == "drained" => self.has("drain") && !self.is_busy(),
            None if state == "draining" => self.has("drain") && self.is_busy(),
            None => same(&self.base) || self.flags.iter().any(|flag| same(flag)),
        }
    }

    fn is_busy(&self) -> bool {
        ["allocated", "mixed", "completing"].contains(&self.base.as_str()) || self.has("completing")
    }

    /// `n1 mixed+drain (bad gpu)`
    pub(crate) fn line(&self) -> String {
        let state = std::iter::once(&self.base).chain(&self.flags).map(String::as_str).collect::<Vec<_>>().join("+");
        let reason = self.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
        format!("{} {state}{reason}", self.name)
    }
}

/// The short names of sinfo.
fn short(state: &str) -> &str {
    match state {
        "allocated" => "alloc",
        "mixed" => "mix",
        "completing" => "comp",
        "maintenance" => "maint",
        "reserved" => "resv",
        other => other,
    }
}

/// The nodes of an answer, each once.
pub(crate) fn parse(text: &str) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for node in text.lines().filter_map(Node::parse) {
        if nodes.iter().all(|known| known.name != node.name) {
            nodes.push(node);
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_takes_jobs_unless_something_speaks_against_it() {
        let rows = [
            ("n1|idle|big|main|none|", true, "n1 idle"),
            ("n2|mixed|small|main|none|", true, "n2 mixed"),
            ("n3|mixed+drain|big|main|bad gpu, see #12|", false, "n3 mixed+drain (bad gpu, see #12)"),
            ("n4|down|(null)|main|Not responding|", false, "n4 down (Not responding)"),
            ("n5|idle+reserved|a,b|main|none|", false, "n5 idle+reserved"),
            ("n6|idle+cloud+powered_down|a|main|none|", true, "n6 idle+cloud+powered_down"),
            ("n7|allocated+planned|a|main|none|", true, "n7 allocated+planned"),
        ];
        for (line, available, shown) in rows {
            let node = Node::parse(line).unwrap();
            assert_eq!((node.is_available(false), node.line()), (available, shown.to_owned()), "{line}");
        }
        assert!(Node::parse("n5|idle+reserved+maintenance|a|main|none|").unwrap().is_available(true));
        assert_eq!(Node::parse("n5|idle|a,b|main|none|").unwrap().features, ["a", "b"]);
    }

    #[test]
    fn a_state_is_a_base_or_a_flag_and_with_a_star_the_whole() {
        let node = Node::parse("n1|idle+drain|big|main|r|").unwrap();
        let rows = [("idle", true), ("drain", true), ("idle*", false), ("mixed", false), ("down", false), ("fail", false)];
        for (state, is) in rows {
            assert_eq!(node.is_in(state), is, "{state}");
        }
        assert!(node.is_in("drained") && !node.is_in("draining"));
        assert!(Node::parse("n1|mixed|big|main|r|").unwrap().is_in("mix"));
        let busy = Node::parse("n1|mixed+drain|big|main|r|").unwrap();
        assert!(busy.is_in("draining") && busy.is_in("drain") && !busy.is_in("drained"));
    }

    #[test]
    fn a_node_of_several_partitions_counts_once() {
        assert_eq!(parse("n1|idle|a|main|none|\nn1|idle|a|low|none|\nn2|idle|a|main|none|\n").len(), 2);
    }
}
