//! The processor of this machine, in the words of a partition's `processor`.
//!
//! Linux says it in `/sys/devices/system/cpu` and, where a container hides that, in `/proc/cpuinfo`; macOS is asked
//! with `sysctl`. What cannot be seen, or is not the same for all cores (`num_cpus_per_core` of a processor with two
//! kinds of cores), is left out: a case that needs it is skipped and says so, which is better than a guess.
//!
//! Not done here: the microarchitecture. `arch` is the platform's (`x86_64`, `aarch64`), where ReFrame asks a data base
//! for `zen3`; a site that selects by it writes it into its site file. All CPUs of the machine count, also those that
//! an affinity mask or a quota keeps from this process: figures are compared with references of machines.

use muster_text::Value;
use std::collections::BTreeMap;

/// Returns the facts of the site file, completed with those that are detected. Reads a few files for every CPU, so call it once
/// for an invocation, and only if a `local` partition is in use.
pub fn complete(stated: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let mut facts = platform::detect().into_map();
    facts.extend(stated.clone());
    facts
}

/// What is known of the processor.
#[derive(Debug, Default, PartialEq)]
struct Processor {
    platform: String,
    model: Option<String>,
    num_cpus: Option<u64>,
    num_cores: Option<u64>,
    num_sockets: Option<u64>,
}

impl Processor {
    fn into_map(self) -> BTreeMap<String, Value> {
        // The kernel of macOS has a name of its own for what others call aarch64.
        let arch = if self.platform == "arm64" { "aarch64".to_owned() } else { self.platform.clone() };
        let counts = [
            ("num_cpus", self.num_cpus),
            ("num_cores", self.num_cores),
            ("num_sockets", self.num_sockets),
            ("num_cpus_per_core", per(self.num_cpus, self.num_cores)),
            ("num_cpus_per_socket", per(self.num_cpus, self.num_sockets)),
        ];
        let texts = [("arch", Some(arch)), ("platform", Some(self.platform)), ("model", self.model)];
        let counts = counts.into_iter().filter_map(|(key, count)| Some((key, Value::from(count?))));
        let texts = texts.into_iter().filter_map(|(key, text)| Some((key, Value::from(text.filter(|text| !text.is_empty())?))));
        texts.chain(counts).map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// `None` unless all have the same number.
fn per(all: Option<u64>, groups: Option<u64>) -> Option<u64> {
    let (all, groups) = (all?, groups.filter(|groups| *groups > 0)?);
    all.is_multiple_of(groups).then_some(all / groups)
}

fn machine() -> String {
    rustix::system::uname().machine().to_string_lossy().into_owned()
}

#[cfg(target_os = "linux")]
use linux as platform;

#[cfg(target_os = "linux")]
mod linux {
    use super::{Processor, machine};
    use std::{collections::BTreeSet, fs, path::Path};

    pub(super) fn detect() -> Processor {
        read(Path::new("/"), machine())
    }

    /// `root` is `/`, but in tests.
    pub(super) fn read(root: &Path, platform: String) -> Processor {
        let cpuinfo = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
        let seen = from_cpuinfo(&cpuinfo, platform);
        let cpus = root.join("sys/devices/system/cpu");
        let online = fs::read_to_string(cpus.join("online")).map(|list| ids(&list)).unwrap_or_default();
        let topology = |id: &u64, file: &str| fs::read_to_string(cpus.join(format!("cpu{id}/topology/{file}"))).ok();
        let cores = distinct(online.iter().filter_map(|id| topology(id, "thread_siblings_list")));
        let sockets = distinct(online.iter().filter_map(|id| topology(id, "physical_package_id")));
        Processor {
            num_cpus: if online.is_empty() { seen.num_cpus } else { Some(online.len() as u64) },
            num_cores: cores.or(seen.num_cores),
            num_sockets: sockets.or(seen.num_sockets),
            ..seen
        }
    }

    /// The number of different values.
    fn distinct<T: Ord>(values: impl IntoIterator<Item = T>) -> Option<u64> {
        let number = values.into_iter().collect::<BTreeSet<T>>().len() as u64;
        (number > 0).then_some(number)
    }

    /// `0-3,8,10-11`
    fn ids(list: &str) -> Vec<u64> {
        let range = |part: &str| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            Some(low.parse().ok()?..=high.parse().ok()?)
        };
        list.trim().split(',').filter_map(range).flatten().collect()
    }

    fn from_cpuinfo(text: &str, platform: String) -> Processor {
        let fields: Vec<(&str, &str)> =
            text.lines().filter_map(|line| line.split_once(':')).map(|(key, value)| (key.trim(), value.trim())).collect();
        let all = |key: &'static str| fields.iter().filter(move |(name, _)| *name == key).map(|(_, value)| *value);
        let first_number = |key| all(key).next().and_then(|value| value.parse::<u64>().ok());
        let sockets = distinct(all("physical id"));
        Processor {
            platform,
            // x86, arm (32 bit) and others; mips; power.
            model: ["model name", "cpu model", "cpu"].into_iter().find_map(|key| all(key).next()).map(str::to_owned),
            num_cpus: Some(all("processor").count() as u64).filter(|count| *count > 0),
            num_cores: sockets.zip(first_number("cpu cores")).map(|(sockets, cores)| sockets * cores),
            num_sockets: sockets,
        }
    }
}

#[cfg(target_os = "macos")]
use macos as platform;

#[cfg(target_os = "macos")]
mod macos {
    use super::{Processor, machine};
    use std::process::Command;

    pub(super) fn detect() -> Processor {
        let ask = |name: &str| {
            let answer = Command::new("/usr/sbin/sysctl").args(["-n", name]).output().ok()?;
            Some(String::from_utf8_lossy(&answer.stdout).trim().to_owned()).filter(|text| !text.is_empty())
        };
        let number = |name| ask(name)?.parse().ok();
        Processor {
            platform: machine(),
            model: ask("machdep.cpu.brand_string"),
            num_cpus: number("hw.logicalcpu"),
            num_cores: number("hw.physicalcpu"),
            num_sockets: number("hw.packages"),
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod platform {
    use super::{Processor, machine};

    pub(super) fn detect() -> Processor {
        let cpus = std::thread::available_parallelism().ok().and_then(|cpus| u64::try_from(cpus.get()).ok());
        Processor { platform: machine(), num_cpus: cpus, ..Processor::default() }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    /// One CPU in a tree like `/sys`: its number, its core's siblings, its package.
    fn add_cpu(root: &Path, (id, siblings, package): (u64, &str, &str)) {
        let folder = root.join(format!("sys/devices/system/cpu/cpu{id}/topology"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("thread_siblings_list"), siblings).unwrap();
        fs::write(folder.join("physical_package_id"), package).unwrap();
    }

    fn facts(online: Option<&str>, cpus: &[(u64, &str, &str)], cpuinfo: &str) -> String {
        let root = tempfile::tempdir().unwrap();
        for folder in ["proc", "sys/devices/system/cpu"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        if let Some(online) = online {
            fs::write(root.path().join("sys/devices/system/cpu/online"), online).unwrap();
        }
        for &cpu in cpus {
            add_cpu(root.path(), cpu);
        }
        fs::write(root.path().join("proc/cpuinfo"), cpuinfo).unwrap();
        serde_json::to_string(&linux::read(root.path(), "x86_64".into()).into_map()).unwrap()
    }

    #[test]
    fn two_sockets_with_two_threads_a_core_are_counted() {
        let cpus = [(0, "0,4", "0"), (1, "1,5", "0"), (2, "2,6", "1"), (3, "3,7", "1"), (4, "0,4", "0"), (5, "1,5", "0")];
        let cpus = [&cpus[..], &[(6, "2,6", "1"), (7, "3,7", "1")]].concat();
        insta::assert_snapshot!(facts(Some("0-7\n"), &cpus, "model name\t: Fast CPU @ 3 GHz: yes\n"), @r#"{"arch":"x86_64","model":"Fast CPU @ 3 GHz: yes","num_cores":4,"num_cpus":8,"num_cpus_per_core":2,"num_cpus_per_socket":4,"num_sockets":2,"platform":"x86_64"}"#);
    }

    #[test]
    fn cores_of_two_kinds_leave_the_threads_per_core_out() {
        let cpus = [(0, "0-1", "0"), (1, "0-1", "0"), (2, "2", "0")];
        insta::assert_snapshot!(facts(Some("0-2"), &cpus, ""), @r#"{"arch":"x86_64","num_cores":2,"num_cpus":3,"num_cpus_per_socket":3,"num_sockets":1,"platform":"x86_64"}"#);
    }

    #[test]
    fn without_sys_the_text_of_the_kernel_has_to_do() {
        let cpu =
            |id: u32, socket: u32| format!("processor\t: {id}\nmodel name\t: Fast\nphysical id\t: {socket}\ncpu cores\t: 2\n\n");
        let text = (0..8).map(|id| cpu(id, id / 4)).collect::<Vec<_>>().concat();
        insta::assert_snapshot!(facts(None, &[], &text), @r#"{"arch":"x86_64","model":"Fast","num_cores":4,"num_cpus":8,"num_cpus_per_core":2,"num_cpus_per_socket":4,"num_sockets":2,"platform":"x86_64"}"#);
        insta::assert_snapshot!(facts(None, &[], "processor\t: 0\nBogoMIPS\t: 50.00\nCPU part\t: 0xd0c\n"), @r#"{"arch":"x86_64","num_cpus":1,"platform":"x86_64"}"#);
    }

    #[test]
    fn what_the_site_file_states_is_kept() {
        let stated = BTreeMap::from([("arch".to_owned(), Value::from("zen3"))]);
        let facts = complete(&stated);
        assert_eq!(facts["arch"], "zen3");
        assert!(facts["num_cpus"].as_u64().unwrap() > 0);
        assert_eq!(facts["platform"], std::env::consts::ARCH);
    }
}
