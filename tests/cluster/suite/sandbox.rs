//! A namespace and a folder of its own for each test, and the real binary in them.

use crate::common::eventually;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;

/// The ServiceAccount that Muster is.
const ACCOUNT: &str = "muster-suite";
/// Its kubeconfig, in the place's folder.
const KUBECONFIG: &str = "kubeconfig.json";

/// A namespace, deleted in the end, and a folder.
pub(crate) struct Sandbox {
    pub(crate) namespace: String,
    folder: TempDir,
}

/// How one invocation of muster ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The run report; null if there is none.
    pub(crate) report: Value,
}

impl Sandbox {
    /// An empty namespace that pods can be created in, and an account with the Role that `muster k8s role` prints: Muster is that.
    pub(crate) fn new() -> Self {
        let sandbox = Self::as_admin();
        sandbox.use_account();
        sandbox
    }

    /// The same, where Muster is the cluster's administrator: for what no Role of a namespace grants.
    pub(crate) fn as_admin() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let namespace = format!("t{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let sandbox = Self { namespace, folder: tempfile::Builder::new().prefix("muster-cluster-").tempdir().expect("a folder") };
        kubectl(&["create", "namespace", &sandbox.namespace]);
        eventually("the ServiceAccount `default`", Duration::from_secs(30), || {
            run(Command::new("kubectl").args(["-n", &sandbox.namespace, "get", "serviceaccount", "default"])).status.success()
        });
        sandbox.site("");
        sandbox
    }

    /// The namespace in which `tests/cluster` has a queue of Kueue: tests take turns.
    pub(crate) fn queued() -> (Self, MutexGuard<'static, ()>) {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::Builder::new().prefix("muster-cluster-").tempdir().expect("a folder");
        let sandbox = Self { namespace: "eidf095ns".to_owned(), folder };
        sandbox.site("");
        sandbox.write("site.yaml", &sandbox.read("site.yaml").replace("name: pods", "name: gpu-service"));
        sandbox.use_account();
        (sandbox, turn)
    }

    /// From now on Muster is a ServiceAccount of the namespace, with the Role that it prints for the kinds of this suite.
    fn use_account(&self) {
        static ROLE: OnceLock<String> = OnceLock::new();
        let role = ROLE.get_or_init(|| {
            let kinds = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/suite/kinds.check.yaml");
            let (kinds, role) =
                (kinds.to_string_lossy(), ["k8s", "role", "--namespace", "NAMESPACE", "--service-account", ACCOUNT]);
            let printed = self.muster(&[role.as_slice(), &["-c", &kinds]].concat()).expect(0).stdout;
            // Beside the Roles that tests create.
            printed.replace("name: muster\n", &format!("name: {ACCOUNT}\n"))
        });
        let account = format!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {{ name: {ACCOUNT} }}\n---\n");
        self.write("account.yaml", &(account + &role.replace("NAMESPACE", &self.namespace)));
        self.kubectl(&["apply", "-f", &self.path("account.yaml").to_string_lossy()]);
        let kubeconfig = self.kubeconfig_of(ACCOUNT);
        fs::rename(kubeconfig, self.path(KUBECONFIG)).expect("a file");
    }

    /// A kubeconfig that speaks as a ServiceAccount of the namespace.
    pub(crate) fn kubeconfig_of(&self, account: &str) -> PathBuf {
        let token = self.kubectl(&["create", "token", account]);
        let admins = kubectl(&["config", "view", "--raw", "-o", "json"]);
        let mut config: Value = serde_json::from_str(&admins).expect("a kubeconfig");
        let cluster = &config["clusters"][0]["name"];
        config["contexts"] = json!([{ "name": "sa", "context": { "cluster": cluster, "user": "sa" } }]);
        config["users"] = json!([{ "name": "sa", "user": { "token": token.trim() } }]);
        config["current-context"] = "sa".into();
        let name = format!("{account}.json");
        self.write(&name, &config.to_string()).path(&name)
    }

    /// Writes the site file: a partition `pods` of this namespace, and more keys (indented by four blanks).
    pub(crate) fn site(&self, more: &str) -> &Self {
        let namespace = &self.namespace;
        self.write(
            "site.yaml",
            &format!(
                "name: test\nhostnames: ['.*']\npartitions:\n  - name: pods\n    scheduler: k8s\n    environs: [default]\n    max_jobs: 32\n    \
                 sched_options: {{ namespace: {namespace} }}\n{more}environments: [{{ name: default }}]\n"
            ),
        )
    }

    /// Writes a file, and the folders that it is in.
    pub(crate) fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The binary, with this test's site, in its folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MUSTER_")) {
            command.env_remove(name);
        }
        command.args(args).current_dir(self.folder.path()).env("XDG_STATE_HOME", self.path("state")).env("COLUMNS", "120");
        command.env("MUSTER_CONFIG_FILE", self.path("site.yaml"));
        if self.path(KUBECONFIG).exists() {
            command.env("KUBECONFIG", self.path(KUBECONFIG));
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs one check file to its end: `muster -c check.yaml -r`.
    pub(crate) fn check(&self, text: &str) -> Ended {
        self.write("check.yaml", text);
        self.muster(&["-c", "check.yaml", "-r"])
    }

    /// Runs the binary to its end.
    pub(crate) fn muster(&self, args: &[&str]) -> Ended {
        self.ended(&run(&mut self.command(args)))
    }

    pub(crate) fn ended(&self, output: &Output) -> Ended {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let report = fs::read_to_string(self.path("reports/out/latest.json")).unwrap_or_default();
        Ended {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            report: serde_json::from_str(&report).unwrap_or_default(),
        }
    }

    /// `kubectl -n NAMESPACE ...`; panics if it fails.
    pub(crate) fn kubectl(&self, args: &[&str]) -> String {
        let mut all = vec!["-n", &self.namespace];
        all.extend(args);
        kubectl(&all)
    }

    /// Creates objects from a text of YAML.
    pub(crate) fn create(&self, manifest: &str) -> String {
        self.write("manifest.yaml", manifest);
        self.kubectl(&["create", "-f", &self.path("manifest.yaml").to_string_lossy()])
    }

    /// A folder of the shipped checks, as it is.
    pub(crate) fn copy_checks(&self, name: &str) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("checks").join(name);
        let to = self.path("checks").join(name);
        fs::create_dir_all(&to).expect("a folder");
        for entry in fs::read_dir(from).expect("checks").map(|entry| entry.expect("a file")) {
            fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
        }
    }

    /// The stdout of the only case.
    pub(crate) fn stdout(&self, ended: &Ended) -> String {
        String::from_utf8_lossy(&self.stdout_bytes(ended)).into_owned()
    }

    pub(crate) fn stdout_bytes(&self, ended: &Ended) -> Vec<u8> {
        let folder = ended.case()["folder"].as_str().unwrap_or_else(|| panic!("no folder: {}\n{}", ended.stdout, ended.stderr));
        fs::read(self.path(folder).join("rfm_job.out")).expect("a stdout")
    }

    /// The names of everything with our label that is there.
    pub(crate) fn left(&self) -> Vec<String> {
        let kinds = "pods,jobs,configmaps,secrets,services,persistentvolumeclaims,jobsets.jobset.x-k8s.io";
        self.kubectl(&["get", kinds, "-l", "rfm", "-o", "name"]).lines().map(str::to_owned).collect()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if self.namespace == "eidf095ns" {
            return;
        }
        let _ = Command::new("kubectl").args(["delete", "namespace", &self.namespace, "--wait=false"]).output();
    }
}

impl Ended {
    /// Fails the test, with all output, unless the exit code is this one.
    pub(crate) fn expect(self, code: i32) -> Self {
        assert!(self.code == Some(code), "exit code {:?}, not {code}\n{}\n{}", self.code, self.stdout, self.stderr);
        self
    }

    /// The only case of the run report.
    pub(crate) fn case(&self) -> &Value {
        let cases = self.report["cases"].as_array().map(Vec::as_slice).unwrap_or_default();
        assert_eq!(cases.len(), 1, "{}\n{}", self.stdout, self.stderr);
        &cases[0]
    }

    /// The outcome of the only case: `fail workload`.
    pub(crate) fn outcome(&self) -> String {
        let outcome = &self.case()["outcome"];
        let words = [&outcome["word"], &outcome["detail"]];
        words.iter().filter_map(|word| word.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// The cause of the only case.
    pub(crate) fn cause(&self) -> &str {
        self.case()["cause"].as_str().unwrap_or_default()
    }
}

/// `kubectl ...` as the cluster's administrator; panics if it fails.
pub(crate) fn kubectl(args: &[&str]) -> String {
    let output = run(Command::new("kubectl").args(args));
    assert!(output.status.success(), "kubectl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `tests/cluster/fault ...`
pub(crate) fn fault(args: &[&str]) {
    script("fault", args);
}

/// A script of `tests/cluster`; panics if it fails.
pub(crate) fn script(name: &str, args: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster").join(name);
    let output = run(Command::new(script).args(args));
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{name} {args:?}: {}", String::from_utf8_lossy(&text));
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}
