//! A folder of its own for each test, the real binary in it, and its output without what differs between two runs.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;

/// A user who owns nothing.
pub(crate) const NOBODY: u32 = 65534;

/// A folder with check files, a database and whatever a run leaves.
pub(crate) struct Sandbox {
    folder: TempDir,
}

/// How one invocation ended.
pub(crate) struct Ended {
    /// The exit code; `None` after a signal.
    pub(crate) code: Option<i32>,
    /// Standard output, made comparable.
    pub(crate) stdout: String,
    /// Standard error, made comparable.
    pub(crate) stderr: String,
}

impl Sandbox {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::Builder::new().prefix("muster-it-").tempdir().expect("a temporary folder") }
    }

    /// A folder with one check file, `check.yaml`.
    pub(crate) fn with_check(text: &str) -> Self {
        let sandbox = Self::new();
        sandbox.write("check.yaml", text);
        sandbox
    }

    /// Writes a file, folders included.
    pub(crate) fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
        self
    }

    /// A path in the folder.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// A file's text.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect(path)
    }

    /// The binary with arguments, its environment cleared of ours.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
        let is_ours = |name: &str| name.starts_with("MUSTER_") || name.starts_with("GITHUB_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_ours(&name.to_string_lossy())) {
            command.env_remove(name);
        }
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("COLUMNS", "100");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The binary in this folder, which everybody may read now: the build folder may be private.
    pub(crate) fn for_everybody(&self) -> PathBuf {
        fs::set_permissions(self.path(""), fs::Permissions::from_mode(0o755)).expect("a folder");
        let (binary, copy) = (Path::new(env!("CARGO_BIN_EXE_muster")), self.path("muster"));
        fs::hard_link(binary, &copy).or_else(|_| fs::copy(binary, &copy).map(drop)).expect("a copy of the program");
        copy
    }

    /// Runs it to its end.
    pub(crate) fn muster(&self, args: &[&str]) -> Ended {
        self.ended(&self.command(args).output().expect("the binary runs"))
    }

    /// Runs a command that was printed, as if it was pasted into a shell in a folder.
    pub(crate) fn paste(&self, command: &str, folder: &str) -> Ended {
        let here = fs::canonicalize(self.path("")).expect("a folder");
        let line = format!("muster() {{ \"$0\" \"$@\"; }}; {}", command.replace("[FOLDER]", &here.to_string_lossy()));
        let model = self.command(&[]);
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).arg(model.get_program()).current_dir(self.path(folder));
        for (name, value) in model.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        self.ended(&shell.stdin(Stdio::null()).output().expect("a shell"))
    }

    /// Makes an output comparable.
    pub(crate) fn ended(&self, raw: &Output) -> Ended {
        let text = |bytes: &[u8]| comparable(&String::from_utf8_lossy(bytes), self.folder.path());
        Ended { code: raw.status.code(), stdout: text(&raw.stdout), stderr: text(&raw.stderr) }
    }
}

/// Replaces what differs between two runs: the folder, times, durations, identifiers, the host, the version.
fn comparable(text: &str, folder: &Path) -> String {
    let folder_text = folder.to_string_lossy();
    let canonical = folder.canonicalize().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    text.replace(&canonical, "[FOLDER]").replace(&*folder_text, "[FOLDER]")
}

/// A terminal of its own: our end, and the program's.
pub(crate) fn terminal() -> (fs::File, impl Fn() -> fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("a terminal");
    let path = ptsname(&ours, Vec::new()).expect("a name").into_string().expect("text");
    let theirs = move || fs::OpenOptions::new().read(true).write(true).open(&path).expect("the other end");
    (ours.into(), theirs)
}
