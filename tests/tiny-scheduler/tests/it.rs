//! A scheduler that no other crate knows: files, command line and session work with it all the same.

#[path = "../../../harness/check/tests/reference/mod.rs"]
mod reference;

use insta::assert_snapshot;
use muster_check::{files::check_file, site::file as site_file};
use muster_core::{
    case::{Identifier, SessionId},
    job::{
        descriptor::{Descriptor, Harness, Schedulers},
        scheduler::{Disposition, Job, JobStatus},
    },
    secret::Secrets,
};
use muster_tiny_scheduler::SCHEDULER;
use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const SITE: &str = "
name: site
partitions:
  - { name: desk, scheduler: notes, launcher: srun, sched_options: { folder: notes }, environs: [default] }
  - { name: here, scheduler: local, environs: [default] }
environments: [{ name: default }]
";

const CHECK: &str = "
name: hello
valid_systems: ['site:desk']
note: { text: hello world }
sanity: [{ found: 'srun: hello' }]
";

struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        let sandbox = Self(tempfile::tempdir().expect("a folder"));
        sandbox.write("site.yaml", SITE).write("check.yaml", CHECK);
        sandbox
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        fs::write(self.path(name), text).expect(name);
        self
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster-tiny-scheduler"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MUSTER_")) {
            command.env_remove(name);
        }
        command.args(args).args(["-C", "site.yaml", "--system", "site"]).current_dir(self.0.path());
        command.env("XDG_STATE_HOME", self.path("state")).env("COLUMNS", "120");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn muster(&self, args: &[&str]) -> Ended {
        self.command(args).output().expect("the program runs").into()
    }

    /// The same with the checks.
    fn checks(&self, args: &[&str]) -> Ended {
        self.muster(&[args, &["-c", "check.yaml"]].concat())
    }

    /// The notes of jobs that were launched and not removed.
    fn notes(&self) -> usize {
        fs::read_dir(self.path("notes")).map_or(0, Iterator::count)
    }

    /// A session whose job is launched and runs for a minute.
    fn start(&self, seconds: u32) -> Child {
        self.write("check.yaml", &CHECK.replace("hello world", &format!("hello world, seconds: {seconds}")));
        let child = self.command(&["-r", "-c", "check.yaml"]).spawn().expect("the program runs");
        let started = Instant::now();
        while self.notes() == 0 {
            assert!(started.elapsed() < Duration::from_secs(30), "nothing was launched");
            thread::sleep(Duration::from_millis(20));
        }
        // The launch is stored, too.
        thread::sleep(Duration::from_millis(300));
        child
    }
}

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ended {
    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        self
    }
}

fn schedulers() -> Schedulers {
    let all: Vec<&Descriptor> = muster::SCHEDULERS.iter().copied().chain([&SCHEDULER]).collect();
    Schedulers::new(all.leak())
}

#[test]
fn its_checks_are_listed_shown_and_run() {
    let sandbox = Sandbox::new();
    let listed = sandbox.checks(&["-lC"]).expect(0).stdout;
    assert!(listed.contains("- hello /") && listed.contains("@site:desk+default"), "{listed}");
    let shown = sandbox.checks(&["--dry-run"]).expect(0).stdout;
    let hash = shown.split_whitespace().find(|word| word.starts_with('/')).unwrap_or_default();
    assert_snapshot!(shown.replace(hash, "/[HASH]"), @"
    # hello @site:desk+default /[HASH]
    # scheduler notes, 1 task(s), time_limit none, max_pending_time 12h
    # a note on desk-1
    srun: hello world
    ");
    let run = sandbox.checks(&["-r"]).expect(0).stdout;
    assert!(run.contains(": 1 pass\n"), "{run}");
    assert_eq!(sandbox.notes(), 0);
}

#[test]
fn doctor_says_what_its_preflight_finds() {
    let sandbox = Sandbox::new();
    let of_desk = |ended: &Ended| {
        let text = ended.stdout.split_once("site:desk (notes)\n").expect("the partition").1;
        text.lines().next().unwrap_or_default().to_owned()
    };
    let fine = sandbox.checks(&["doctor"]).expect(0);
    assert_snapshot!(of_desk(&fine), @"  ok       cases: nothing is known that keeps 1 case(s) from running");
    fs::create_dir(sandbox.path("notes")).expect("a folder");
    sandbox.write("notes/closed", "");
    let closed = sandbox.checks(&["doctor"]).expect(1);
    assert_snapshot!(of_desk(&closed), @"  error    cases: hello: the folder is closed");
}

#[test]
fn what_it_takes_others_refuse_and_typos_have_hints() {
    let sandbox = Sandbox::new();
    let mistake = |ended: Ended| {
        let lines = ended.stderr.lines().filter(|line| !line.starts_with("error: 1 mistake in"));
        lines
            .filter(|line| ["error", "  = help", "nothing"].iter().any(|start| line.starts_with(start)))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let mut output = Vec::new();
    for (site, check, args) in [
        (SITE.replace("folder: notes", "foldre: notes"), CHECK.to_owned(), &["-l"][..]),
        (SITE.replace("scheduler: notes", "scheduler: note"), CHECK.to_owned(), &["-l"]),
        (SITE.replace("scheduler: local", "scheduler: local, launcher: srun"), CHECK.to_owned(), &["-l"]),
        (SITE.to_owned(), CHECK.replace("text:", "txt:"), &["-l"]),
        (SITE.to_owned(), CHECK.replace("note:", "sched_options: { folder: x }\nnote:"), &["-l"]),
        (SITE.to_owned(), CHECK.replace("note:", "sched_options: { noed: x }\nnote:"), &["-l"]),
        (SITE.to_owned(), CHECK.replace("note: { text: hello world }", "executable: echo"), &["-l"]),
        (SITE.to_owned(), CHECK.to_owned(), &["-r", "-J", "noed=desk-2"]),
        // Its plan is made of files alone, so its mistakes are found before anything is launched.
        (SITE.to_owned(), CHECK.to_owned(), &["-r", "-J", "node=desk-9"]),
        (SITE.to_owned(), CHECK.to_owned(), &["--dry-run", "-J", "node=desk-9"]),
    ] {
        sandbox.write("site.yaml", &site).write("check.yaml", &check);
        output.push(mistake(sandbox.checks(args).expect(2)));
    }
    assert_snapshot!(output.join("\n\n"), @"
    error: unknown option `foldre` of the scheduler notes
      = help: did you mean `folder`?

    error: expected one of k8s, ipu, ec2, slurm, squeue, local, fake, notes, found `note`
      = help: did you mean `notes`?

    error: `launcher` has no meaning on `local`
      = help: write the program that starts the tasks into `executable`

    error: unknown key `txt` in a note
      = help: did you mean `text`?

    error: `folder` belongs to the site file: a check cannot set it
      = help: write it in the partition's `sched_options`

    error: unknown option `noed` of the scheduler notes
      = help: did you mean `node`?

    error: `hello` has no `note`, which `notes` needs to run it on site:desk
      = help: give it a `note`, or leave site:desk out of `valid_systems`

    error: -J noed: unknown option `noed` of the scheduler notes
      = help: did you mean `node`?

    error: there is no node desk-9
      = help: take one of desk-1, desk-2, desk-3
    nothing was launched

    error: there is no node desk-9
      = help: take one of desk-1, desk-2, desk-3
    ");
    assert_eq!(sandbox.notes(), 0);
}

#[test]
fn an_example_check_runs_as_it_is_written() {
    let sandbox = Sandbox::new();
    sandbox.muster(&["check", "new", "--scheduler", "notes", "first"]).expect(0);
    let run = sandbox.muster(&["-c", "first", "-r"]).expect(0).stdout;
    assert!(run.contains(": 2 pass\n"), "{run}");
}

#[test]
fn its_nodes_have_a_state_that_no_other_scheduler_knows() {
    let sandbox = Sandbox::new();
    let nodes = |state: &str| {
        let listed = sandbox.checks(&["-lC", &format!("--distribute={state}")]).expect(0).stdout;
        listed.split(['=', ' ', '\n']).filter(|word| word.starts_with("desk-")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(nodes("fast"), ["desk-1", "desk-2"]);
    assert_eq!(nodes("all"), ["desk-1", "desk-2", "desk-3"]);
    let run = sandbox.checks(&["-r", "--distribute=fast"]).expect(0).stdout;
    assert!(run.contains(": 2 pass\n") && run.contains("%.nid=desk-2"), "{run}");
    sandbox.write("check.yaml", "name: script\nvalid_systems: ['site:here']\nexecutable: 'true'\nsanity: []\n");
    let other = sandbox.checks(&["-l", "--distribute=fast"]).expect(2).stderr;
    let idle = sandbox.write("check.yaml", CHECK).checks(&["-l", "--distribute=idle"]).expect(2).stderr;
    assert_snapshot!(other + &idle, @"
    error: --distribute=fast: `local` does not know this state of nodes (partition here): write all, avail, idle, or names
    error: --distribute=idle: `notes` does not know this state of nodes (partition desk): write all, avail, fast, or names
    ");
}

#[test]
fn what_cannot_be_launched_is_refused_unless_what_it_needs_may_mend_it() {
    let sandbox = Sandbox::new();
    let opens =
        "---\nname: opens\nvalid_systems: ['site:here']\nexecutable: rm\nexecutable_opts: [\"$FOLDER/closed\"]\nsanity: []\n";
    let opens = opens.replace("$FOLDER", &sandbox.path("notes").display().to_string());
    let later = CHECK.replace("name: hello", "name: later\ndepends_on: [{ check: opens, how: fully }]");
    sandbox.write("check.yaml", &format!("{CHECK}{opens}---{later}"));
    fs::create_dir(sandbox.path("notes")).expect("a folder");
    sandbox.write("notes/closed", "");
    let shown = sandbox.checks(&["--dry-run=server"]).expect(2).stdout;
    assert_eq!(shown.matches("# NOT LAUNCHED: the folder is closed").count(), 1, "{shown}");
    let run = sandbox.checks(&["-r"]).expect(3).stdout;
    assert!(run.contains("3 cases in") && run.contains(": 2 pass, 1 error{config}\n"), "{run}");
}

#[test]
fn what_a_killed_session_left_is_swept() {
    let sandbox = Sandbox::new();
    let mut session = sandbox.start(600);
    session.kill().and_then(|()| session.wait()).expect("it is killed");
    assert_eq!(sandbox.notes(), 1);
    let swept = sandbox.muster(&["sweep"]).expect(0).stdout;
    assert!(swept.contains("note "), "{swept}");
    assert_eq!(sandbox.notes(), 0);
}

#[test]
fn a_scheduler_that_cannot_be_reached_hides_no_other() {
    let sandbox = Sandbox::new();
    let mut session = sandbox.start(600);
    session.kill().and_then(|()| session.wait()).expect("it is killed");
    let cluster = "  - { name: gpu, scheduler: k8s, environs: [default] }\nenvironments:";
    sandbox.write("site.yaml", &SITE.replace("environments:", cluster)).write("kubeconfig", "contexts: [");
    let swept: Ended = sandbox.command(&["sweep"]).env("KUBECONFIG", "kubeconfig").output().expect("the program runs").into();
    let Ended { stdout, .. } = swept.expect(1);
    assert!(stdout.contains("not swept: ") && stdout.contains("connect to `k8s`"), "{stdout}");
    assert_eq!(sandbox.notes(), 0);
}

#[test]
fn a_session_is_attached_to() {
    let sandbox = Sandbox::new();
    let mut session = sandbox.start(3);
    session.kill().and_then(|()| session.wait()).expect("it is killed");
    let attached = sandbox.muster(&["attach", "latest"]).expect(0).stdout;
    assert!(attached.contains(": 1 pass\n"), "{attached}");
    assert_eq!(sandbox.notes(), 0);
}

/// Whatever is a secret: each word of a plan, and each number.
#[test]
fn a_plan_in_which_everything_is_masked_is_found_again() {
    let sandbox = Sandbox::new();
    let job = Job {
        identifier: Identifier::parse("abcdefgh").expect("eight letters"),
        session: SessionId("s1".to_owned()),
        case: "hello".to_owned(),
        scheduler: "notes".into(),
        stage: sandbox.path("stage"),
        handle: serde_json::json!({ "folder": sandbox.path("notes"), "node": "desk-1", "text": "hello world", "seconds": 600.5 })
            .into(),
    };
    let text = job.handle.to_string();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let secrets = Secrets::new(words.chain(["600.5"]).map(|word| ("token", word)));
    let masked = job.without(&secrets, &schedulers());
    assert_eq!(masked.handle["text"], "*** ***");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let scheduler = (SCHEDULER.connect)(&Harness::default()).expect("it connects");
    runtime.block_on(scheduler.launch(&job)).expect("it is launched");
    let status = runtime.block_on(scheduler.wait(&masked, None)).expect("a status");
    assert!(matches!(status, JobStatus::Running { .. }), "{status:?}");
    runtime.block_on(scheduler.cleanup(&masked, Disposition::Delete)).expect("it is removed");
    assert_eq!(sandbox.notes(), 0);
}

/// The session is killed between the launch and the moment at which that is stored.
#[test]
fn a_job_whose_launch_was_not_stored_runs_once() {
    let sandbox = Sandbox::new();
    sandbox.write("check.yaml", &CHECK.replace("hello world", "hello world, seconds: 2"));
    let mut command = sandbox.command(&["-r", "-c", "check.yaml"]);
    let killed = command.env("RFM_CRASH_AT", "launched").output().expect("the program runs");
    assert_eq!(killed.status.code(), None, "{}", String::from_utf8_lossy(&killed.stderr));
    let note = fs::read_dir(sandbox.path("notes")).expect("a folder").next().expect("a note").expect("a note").path();
    let note: serde_json::Value = serde_json::from_str(&fs::read_to_string(note).expect("a note")).expect("JSON");
    sandbox.muster(&["attach", "latest"]).expect(0);
    let shown = sandbox.muster(&["results", "show", "--json"]).expect(0).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let case = &shown["cases"][0];
    assert_eq!((&case["identifier"], &case["times"]["started_unix_us"]), (&note["job"]["identifier"], &note["since"]), "{case}");
    assert_eq!((&case["outcome"]["word"], sandbox.notes()), (&"pass".into(), 0), "{case}");
}

#[test]
fn the_configuration_shows_where_its_notes_are() {
    let shown = Sandbox::new().muster(&["config", "show"]).expect(0).stdout;
    let row = shown.lines().find(|line| line.trim_start().starts_with("notes "));
    let words: Vec<&str> = row.unwrap_or_default().split_whitespace().collect();
    assert_eq!(words, ["notes", "notes", "site.yaml:4:53"], "{shown}");
}

#[test]
fn schemas_and_the_reference_page_have_its_keys() {
    let schedulers = schedulers();
    let document = |text: &str| {
        let parsed = muster_text::yaml::parse(muster_text::diagnostic::FileId::default(), text);
        muster_text::yaml::to_parameter_value(&parsed.documents[0]).expect("plain YAML")
    };
    for (schema, text, wrong) in [
        (site_file::schema(&schedulers), SITE, SITE.replace("scheduler: notes", "scheduler: note")),
        (check_file::schema(&schedulers), CHECK, CHECK.replace("text:", "txt:")),
    ] {
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        let mistakes: Vec<String> = validator.iter_errors(&document(text)).map(|error| error.to_string()).collect();
        assert!(mistakes.is_empty(), "{mistakes:?}");
        assert!(!validator.is_valid(&document(&wrong)), "{wrong}");
    }
    let page = reference::page(&schedulers);
    let own: Vec<&str> = page.lines().skip_while(|line| !line.starts_with("**`notes`**")).collect();
    assert_snapshot!(own.join("\n"), @"
    **`notes`**: notes in a folder, each a job that says its text.
    - `folder` (text): Where the notes are.
    - `node` (text): The only node that a job may run on.
    - It takes `launcher`.
    - Refused, with a hint: `num_nodes`, `num_tasks_per_node`, `num_tasks_per_socket`, `num_tasks_per_core`,
      `num_cpus_per_task`, `num_gpus_per_node`, `exclusive_access`, `use_multithreading`, `extra_resources`,
      `launcher_options`, `launcher_modifier`, `access`, `resources`.
    - Its nodes, with `--distribute`: `all`, `avail`, `fast`.
    ");
    let key: Vec<&str> = page.lines().skip_while(|line| !line.starts_with("- **`note`**")).take(3).collect();
    assert_snapshot!(key.join("\n"), @"
    - **`note`** (a mapping): What a job says, and when it ends.
      - `text` (text, required): What the job says.
      - `seconds` (a number): When it ends, in seconds after its launch. Default: 0.
    ");
}
