//! An instance of the tests: a folder, a `PATH` with what the agent may use and nothing else, and the user data that runs in it.

use super::server::Server;
use crate::agent::{Orders, Pace, parcel, script};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Whose programs an instance has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shell {
    Dash,
    Busybox,
}

/// What the agent uses beside a shell and one program that speaks HTTP.
const TOOLS: [&str; 26] = [
    "awk",
    "base64",
    "cat",
    "chmod",
    "cp",
    "date",
    "dd",
    "find",
    "gzip",
    "head",
    "ln",
    "ls",
    "md5sum",
    "mkdir",
    "mv",
    "rm",
    "sed",
    "setsid",
    "sha256sum",
    "sleep",
    "tail",
    "tar",
    "touch",
    "tr",
    "uname",
    "wc",
];

/// What an instance is given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given<'a> {
    pub shell: Shell,
    pub http: &'a str,
    pub rank: u32,
    pub instances: u32,
    pub limit: u64,
    pub is_spot: bool,
    pub keeps_files: bool,
    pub pace: Pace,
    /// The path where its disks are mounted; empty: it leaves them alone.
    pub store: &'a str,
    /// The number of disks beside its root, which is a volume.
    pub disks: u32,
    pub has_mdadm: bool,
    /// Seconds that a token of the metadata service lives, if not as long as there.
    pub token: Option<u64>,
    /// The size of its disk, as `mount` takes it; `None`: that of this machine.
    pub disk: Option<&'a str>,
}

impl Default for Given<'_> {
    fn default() -> Self {
        let pace = Pace { flush: 1, block: 1024, blocks: 64, tries: 2, pause: 1, grace: 1 };
        Self {
            shell: Shell::Dash,
            http: "curl",
            rank: 0,
            instances: 1,
            limit: 60,
            is_spot: false,
            keeps_files: false,
            pace,
            store: "",
            disks: 0,
            has_mdadm: false,
            token: None,
            disk: None,
        }
    }
}

pub(super) struct Instance {
    folder: TempDir,
    has_disk: bool,
}

impl Drop for Instance {
    fn drop(&mut self) {
        if self.has_disk {
            self.lose_power();
            let _ = Command::new("umount").arg(self.path("root")).status();
        }
    }
}

/// Where a program is; `None`: not on this machine.
pub(super) fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// A program that speaks HTTP. Python may be one that looks for another at every start.
fn client(program: &str) -> PathBuf {
    let found = which(program).unwrap();
    if program != "python3" {
        return found;
    }
    let asked = Command::new(found).args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    PathBuf::from(String::from_utf8(asked.stdout).unwrap().trim())
}

/// A small disk in the place of a folder. `false`: this process may not have one.
pub(super) fn mount(size: &str, at: &Path) -> bool {
    let options = format!("size={size}");
    Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).status().is_ok_and(|status| status.success())
}

/// What is missing here for an instance.
pub(super) fn missing(shell: Shell, http: &str) -> Option<String> {
    let shell = if shell == Shell::Dash { "dash" } else { "busybox" };
    [shell, http].into_iter().find(|program| which(program).is_none()).map(str::to_owned)
}

/// Puts the bundle, and the list of all addresses, where an instance looks for them.
pub(super) fn stage(server: &Server, script: &str, instances: u32) {
    let variable = ("GREETING".to_owned(), "it's \"$HOME\"".to_owned());
    let bundle = parcel::bundle(script, &[variable], &[]).unwrap();
    let entries = parcel::entries(instances, false);
    let addresses: Vec<String> = entries.iter().map(|entry| server.url(&entry.key())).collect();
    server.put("boot", parcel::list(&parcel::digest(&bundle), &entries, &addresses));
    server.put("bundle", bundle);
}

impl Instance {
    /// Boots: the user data runs as cloud-init runs it, and goes on by itself.
    pub(super) fn boot(server: &Server, given: Given<'_>) -> Self {
        let instance = Self { folder: TempDir::new().unwrap(), has_disk: given.disk.is_some() };
        if let Some(size) = given.disk {
            fs::create_dir(instance.path("root")).unwrap();
            assert!(mount(size, &instance.path("root")), "a disk of {size}");
        }
        let url = server.url("boot");
        let orders = Orders {
            id: "aotugiob",
            instances: given.instances,
            timer_minutes: 65,
            limit: given.limit,
            keep_minutes: 30,
            is_spot: given.is_spot,
            fetch: 0,
            keeps_files: given.keeps_files,
            store: given.store,
            boot_url: &url,
            pace: given.pace,
        };
        let lives = given.token.map_or_else(|| "ttl=21600".to_owned(), |seconds| format!("ttl={seconds}"));
        let mut script = script(&orders).replace("ttl=21600", &lives);
        if given.shell == Shell::Busybox {
            // It takes programs of its own before those of `PATH`, but not before functions.
            let programs = instance.path("bin");
            let function = |name: &str| format!("{name}() {{ {}/{name} \"$@\"; }}\n", programs.display());
            script = script.replacen("#!/bin/sh\n", &format!("#!/bin/sh\n{}{}", function("date"), function("sleep")), 1);
        }
        fs::write(instance.path("user-data"), script).unwrap();
        instance.programs(given);
        instance.disks(given);
        instance.start("user-data", server, given.rank);
        instance
    }

    /// Runs a script as cloud-init does, in a service that is unlike others where memory is short.
    pub(super) fn start(&self, script: &str, server: &Server, rank: u32) {
        let programs = self.path("bin");
        let status = Command::new(programs.join("sh"))
            .args(["-c", "echo 500 >/proc/self/oom_score_adj; exec sh \"$0\""])
            .arg(self.path(script))
            .env_clear()
            .env("PATH", &programs)
            .env("RFM_ROOT", self.path("root"))
            .env("RFM_IMDS", server.imds(rank))
            .env("RFM_CONSOLE", self.path("console"))
            .env("RFM_SYS", self.path("sys"))
            .env("DISK_CALLS", self.path("disk-calls"))
            .env("RFM_HOOKS", self.path("hooks"))
            .env("SHUTDOWN_CALLS", self.path("shutdown"))
            .status()
            .unwrap();
        assert!(status.success(), "cloud-init is let go");
    }

    /// Loses power: nothing can clean up after itself.
    pub(super) fn lose_power(&self) {
        for process in self.processes() {
            // It may be gone by itself.
            let _ = Command::new("kill").args(["-9", &process]).output();
        }
        until("all processes are gone", || !self.has_processes());
    }

    /// A folder with the only programs that there are.
    fn programs(&self, given: Given<'_>) {
        let folder = self.path("bin");
        fs::create_dir(&folder).unwrap();
        let busybox = which("busybox");
        for tool in TOOLS {
            let program = if given.shell == Shell::Busybox { busybox.clone() } else { which(tool) };
            symlink(program.unwrap_or_else(|| panic!("{tool} is missing")), folder.join(tool)).unwrap();
        }
        let shell = if given.shell == Shell::Busybox { busybox } else { which("dash") };
        symlink(shell.unwrap(), folder.join("sh")).unwrap();
        self.wrapper(given.http, &format!("exec {} \"$@\"", client(given.http).display()));
        // `jump` of an instance: by how many seconds somebody has set its clock.
        let (busybox, date) = (which("busybox"), which("date"));
        let (date, name) = if given.shell == Shell::Busybox { (busybox, " date") } else { (date, "") };
        fs::remove_file(folder.join("date")).unwrap();
        let (date, jump) = (date.unwrap(), self.path("jump"));
        let (date, jump) = (date.display(), jump.display());
        let text = format!("now=$({date}{name} +%s)\n[ ! -e {jump} ] || now=$((now + $(cat {jump})))\necho $now");
        self.wrapper("date", &text);
        self.sleeps(given);
        self.wrapper("shutdown", "echo \"$*\" >>\"$SHUTDOWN_CALLS\"");
    }

    /// Agent and script sleep a fifth of what they say, which is in `sleeps`. Files that were there before the script have an older
    /// second: where they count, a second is one.
    fn sleeps(&self, given: Given<'_>) {
        let (program, name) = if given.shell == Shell::Busybox { (which("busybox"), " sleep") } else { (which("sleep"), "") };
        let (program, calls) = (program.unwrap(), self.path("sleeps"));
        let (program, calls) = (program.display(), calls.display());
        let part = if given.keeps_files { 1 } else { 5 };
        fs::remove_file(self.path("bin/sleep")).unwrap();
        let text = format!(
            "echo \"$1\" >>{calls}\ntenths=$(($1 * 10 / {part}))\nexec {program}{name} $((tenths / 10)).$((tenths % 10))"
        );
        self.wrapper("sleep", &text);
    }

    /// What the kernel says of its disks, and programs that would change them.
    fn disks(&self, given: Given<'_>) {
        for (at, model) in
            (0..=given.disks).map(|at| (at, if at == 0 { "Elastic Block Store" } else { "EC2 NVMe Instance Storage" }))
        {
            let folder = self.path(&format!("sys/block/nvme{at}n9/device"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("model"), format!("Amazon {model}   \n")).unwrap();
        }
        let mdadm = given.has_mdadm.then_some("mdadm");
        for name in ["mkfs.ext4", "mount"].into_iter().chain(mdadm) {
            self.wrapper(name, &format!("echo {name} \"$*\" >>\"$DISK_CALLS\""));
        }
    }

    /// A program of its own.
    fn wrapper(&self, name: &str, text: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap_or_default()).into_owned()
    }

    /// How its timer was set, in order.
    pub(super) fn shutdowns(&self) -> Vec<String> {
        self.read("shutdown").lines().map(str::to_owned).collect()
    }

    /// Waits until the agent has set its last timer and is gone.
    pub(super) fn wait(&self) -> Vec<String> {
        // The user data is run twice: by cloud-init, and as a service.
        until("the agent ends", || self.shutdowns().len() >= 5 && !self.has_processes());
        self.shutdowns()
    }

    /// What a script waits for that waits for `go`.
    pub(super) fn go(&self) {
        fs::write(self.path("root/work/go"), "").unwrap();
    }

    /// Whether a process works in one of its folders.
    pub(super) fn has_processes(&self) -> bool {
        !self.processes().is_empty()
    }

    /// The numbers of the processes that work in its folders.
    fn processes(&self) -> Vec<String> {
        let here = fs::canonicalize(self.folder.path()).unwrap();
        let works_here =
            |process: &fs::DirEntry| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&here));
        let processes = fs::read_dir("/proc").unwrap().flatten().filter(works_here);
        processes.map(|process| process.file_name().to_string_lossy().into_owned()).collect()
    }
}

/// What an instance has last said of itself.
pub(super) fn status(server: &Server, rank: u32) -> Value {
    server.get(&format!("{rank}/status")).and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

pub(super) fn until(what: &str, is: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < Duration::from_secs(90), "{what}: not within 90 s");
        sleep(Duration::from_millis(50));
    }
}
