//! Cases as jobs: how they pass, fail, are taken away, and are found again.

use crate::{
    common::{STEPS, copy_environment, eventually},
    suite::cluster::{Accounting, Cluster, User, run_folder},
};
use std::{
    fs,
    os::unix::{fs::chown, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
    time::Duration,
};

/// A folder of Alice's with a site and a check.
struct Place<'c> {
    cluster: &'c Cluster,
    folder: PathBuf,
}

/// The partitions of a test's site, with options of its own.
fn site(options: &str) -> String {
    format!(
        "name: trial\npartitions:\n  - {{ name: main, scheduler: slurm, environs: [default], max_jobs: 100, max_pending_time: 2m, \
         {options} }}\nenvironments: [{{ name: default }}]\n"
    )
}

/// The program in a folder that everybody can read: the build folder may be private.
fn for_everybody() -> &'static Path {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| {
        let copy = run_folder().join("muster");
        fs::copy(env!("CARGO_BIN_EXE_muster"), &copy).expect("a copy of the program");
        copy
    })
}

impl<'c> Place<'c> {
    fn new(cluster: &'c Cluster, name: &str, options: &str, check: &str) -> Self {
        let folder = run_folder().join(format!("place-{name}"));
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("site.yaml"), site(options)).expect("a site");
        let check = format!("name: {name}\nvalid_systems: ['*']\n{check}\n");
        fs::write(folder.join("c.check.yaml"), check).expect("a check");
        chown(&folder, Some(User::Alice.id()), Some(User::Alice.id())).expect("root may do this");
        Self { cluster, folder }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.cluster.command(User::Alice, for_everybody());
        command.current_dir(&self.folder).env("MUSTER_DB", self.folder.join("results.db"));
        for name in ["MUSTER_SLURM", "MUSTER_SLURM_DIR"] {
            command.env_remove(name);
        }
        command.args(["-C", "site.yaml", "--system", "trial", "--nocolor"]).args(arguments);
        command
    }

    /// Muster with these arguments, its output as text.
    fn muster(&self, arguments: &[&str]) -> (Option<i32>, String) {
        shown(&self.command(arguments).output().expect("muster"))
    }

    /// Runs all cases. Returns the exit code and the output.
    fn run(&self, more: &[&str]) -> (Option<i32>, String) {
        self.muster(&[&["-c", "c.check.yaml", "-r"], more].concat())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// How often a line of the script ran.
    fn marks(&self) -> usize {
        fs::read_to_string(self.file("marks")).unwrap_or_default().lines().count()
    }
}

fn shown(output: &Output) -> (Option<i32>, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// A case that passes on a node, with its figure; nothing is left in the queue.
pub(crate) fn a_job_passes_with_its_figure_and_node() {
    let check = "executable: echo\nexecutable_opts: ['rate: 12.5']\nsanity: [{ found: rate }]\n\
                 perf_variables: { rate: { pattern: 'rate: (\\S+)', unit: GB/s } }";
    let place = Place::new(Cluster::shared(), "passes", "launcher: srun", check);
    let (code, text) = place.run(&["--performance-report"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("rate  12.5  GB/s") && text.contains(" on n"), "{text}");
}

/// Tasks on nodes, a launcher of the check with options of its own.
pub(crate) fn tasks_run_on_as_many_nodes_as_the_check_says() {
    let check = "executable: hostname\nnum_tasks: 3\nnum_nodes: 3\nnum_tasks_per_node: 1\nlauncher: srun\n\
                 launcher_options: --label\nsanity: [{ found: '^\\d: n\\d', count: 3 }, { found: '2: n3' }]";
    let place = Place::new(Cluster::shared(), "shape", "launcher: none", check);
    let (code, text) = place.run(&[]);
    assert_eq!(code, Some(0), "{text}");
    let script =
        fs::read_to_string(place.file("output/trial/main/default").join(only(&place)).join("rfm_job.sh")).expect("a script");
    for line in ["#SBATCH --ntasks=3\n", "#SBATCH --nodes=3\n", "#SBATCH --ntasks-per-node=1\n", "srun --label hostname\n"] {
        assert!(script.contains(line), "{line}: {script}");
    }
}

/// Each task writes a file of its own, and a command of the check starts tasks as the executable does.
pub(crate) fn the_output_of_each_task_can_be_judged_by_itself() {
    let check = "executable: sh\nexecutable_opts: [-c, \"'echo rank $SLURM_PROCID'\"]\nnum_tasks: 3\nlauncher: srun\n\
                 prerun_cmds: ['${{ launcher }} true && echo started by ${{ launcher }}']\n\
                 launcher_options: --output=task.%t.out\nkeep_files: ['task.*.out']\n\
                 sanity:\n- { file: 'task.*.out', found: 'rank \\d', count: 3 }\n- { file: task.2.out, found: '^rank 2$' }\n\
                 - { found: started by srun --output }\n- { found: rank, count: 0 }";
    let place = Place::new(Cluster::shared(), "each", "launcher: none", check);
    let (code, text) = place.run(&[]);
    assert_eq!(code, Some(0), "{text}");
}

/// The only folder of outputs.
fn only(place: &Place<'_>) -> String {
    let folder = fs::read_dir(place.file("output/trial/main/default")).expect("outputs").next().expect("one").expect("readable");
    folder.file_name().to_string_lossy().into_owned()
}

pub(crate) fn a_failed_job_names_its_status_and_the_commands_to_look_further() {
    let place = Place::new(Cluster::shared(), "fails", "launcher: none", "executable: exit\nexecutable_opts: 3\nsanity: []");
    let (code, text) = place.run(&[]);
    assert_eq!(code, Some(1), "{text}");
    for part in ["fail{workload}", "exit status 3 on n", "scontrol show job"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

pub(crate) fn a_job_that_runs_too_long_ends_at_its_time_limit() {
    let place = Place::new(Cluster::shared(), "toolong", "launcher: none", "executable: sleep 300\ntime_limit: 3s\nsanity: []");
    let (code, text) = place.run(&[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("timeout{run}"), "{text}");
    assert_eq!(queued(&place), 0, "{text}");
}

/// Jobs of this place's check in the queue.
fn queued(place: &Place<'_>) -> usize {
    let name = place.folder.file_name().expect("a name").to_string_lossy().replace("place-", "rfm-");
    place.cluster.jobs(User::Alice).iter().filter(|(job, _)| job.starts_with(&name)).count()
}

pub(crate) fn what_can_never_run_is_a_mistake_before_or_at_its_launch() {
    let cluster = Cluster::shared();
    for (name, options, part) in [
        ("nowhere", "sched_options: { partition: nowhere }", "nowhere"),
        ("toobig", "launcher: none, access: [--gres=tpu:1]", "gres"),
        ("tooshort", "launcher: none, time_limit: 30m, sched_options: { partition: short }", "short"),
    ] {
        let place = Place::new(cluster, name, options, "executable: 'true'\nsanity: []");
        let (code, text) = place.run(&[]);
        assert_eq!(code, Some(3), "{name}: {text}");
        assert!(text.contains("error{config}") && text.contains(part), "{name}: {text}");
        assert_eq!(queued(&place), 0, "{name}");
    }
}

pub(crate) fn a_job_that_somebody_cancels_is_disrupted() {
    let place = Place::new(
        Cluster::with_accounting(),
        "cancelled",
        "launcher: none",
        "executable: sleep 100\nsanity: []\non_disruption: fail",
    );
    let running = place.command(&["-c", "c.check.yaml", "-r"]).stdout(std::process::Stdio::piped()).spawn().expect("muster");
    eventually("the job", Duration::from_secs(30), || {
        place.cluster.jobs(User::Alice).iter().any(|(name, state)| name.starts_with("rfm-cancelled") && state == "RUNNING")
    });
    let id = place.cluster.run(User::Root, &["squeue", "-h", "-u", "alice", "-o", "%A %j"]);
    let id = id.lines().find(|line| line.contains("rfm-cancelled")).and_then(|line| line.split(' ').next()).expect("an id");
    place.cluster.run(User::Root, &["scancel", id]);
    let (code, text) = shown(&running.wait_with_output().expect("muster"));
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("disrupted{deleted}") && text.contains("sacct -j"), "{text}");
}

pub(crate) fn a_node_that_dies_disrupts_its_job() {
    let cluster = Cluster::own(Accounting::On);
    let check = "executable: sleep 100\nsanity: []\non_disruption: fail\nsched_options: { nodelist: n2 }";
    let place = Place::new(&cluster, "nodedies", "launcher: none", check);
    let running = place.command(&["-c", "c.check.yaml", "-r"]).stdout(std::process::Stdio::piped()).spawn().expect("muster");
    eventually("the job", Duration::from_secs(30), || cluster.jobs(User::Alice).iter().any(|(_, state)| state == "RUNNING"));
    cluster.stop("n2");
    let (code, text) = shown(&running.wait_with_output().expect("muster"));
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("disrupted{node}") && text.contains("n2"), "{text}");
}

/// A controller that hangs while jobs run and end: nothing is lost, and no case fails.
pub(crate) fn a_controller_that_is_away_for_a_while_fails_no_case() {
    let cluster = Cluster::own(Accounting::Off);
    let place = Place::new(&cluster, "outage", "launcher: none", "executable: sleep 4; echo done\nsanity: [{ found: done }]");
    let running = place.command(&["-c", "c.check.yaml", "-r"]).stdout(std::process::Stdio::piped()).spawn().expect("muster");
    eventually("the job", Duration::from_secs(30), || cluster.jobs(User::Alice).iter().any(|(_, state)| state == "RUNNING"));
    cluster.hang("slurmctld");
    std::thread::sleep(Duration::from_secs(12));
    cluster.resume("slurmctld");
    let (code, text) = shown(&running.wait_with_output().expect("muster"));
    assert_eq!(code, Some(0), "{text}");
}

/// The answer of sbatch is lost, as the controller hangs; the job runs once.
pub(crate) fn a_submission_whose_answer_is_lost_runs_once() {
    let cluster = Cluster::own(Accounting::Off);
    let marks = "executable: 'echo mark >> $SLURM_SUBMIT_DIR/marks; echo done'\nsanity: [{ found: done }]";
    let place = Place::new(&cluster, "lost", "launcher: none", marks);
    // The working folder of sbatch is that of the harness.
    cluster.hang("slurmctld");
    let running = place.command(&["-c", "c.check.yaml", "-r"]).stdout(std::process::Stdio::piped()).spawn().expect("muster");
    std::thread::sleep(Duration::from_secs(8));
    cluster.resume("slurmctld");
    let (code, text) = shown(&running.wait_with_output().expect("muster"));
    assert_eq!(code, Some(0), "{text}");
    eventually("the end of every job", Duration::from_secs(30), || cluster.jobs(User::Alice).is_empty());
    assert_eq!(place.marks(), 1, "{text}");
}

pub(crate) fn a_copy_of_a_case_runs_on_each_node_of_a_state() {
    let place = Place::new(Cluster::shared(), "nodes", "launcher: none", "executable: hostname\nsanity: [{ found: '^n' }]");
    let (code, text) = place.run(&["--distribute=avail"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("Ran 3/3"), "{text}");
    for node in ["n1", "n2", "n3"] {
        assert!(text.contains(node), "{node}: {text}");
    }
}

/// A node that is drained gets no copy, and its reason is said; asked for by its state it gets one.
pub(crate) fn a_node_that_is_drained_is_left_out_and_named() {
    let cluster = Cluster::own(Accounting::Off);
    cluster.run(User::Root, &["scontrol", "update", "nodename=n2", "state=drain", "reason=bad gpu, see #12"]);
    let place = Place::new(&cluster, "drained", "launcher: none", "executable: hostname\nsanity: [{ found: '^n[13]' }]");
    let (code, text) = place.run(&["--distribute"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("Ran 2/2"), "{text}");
    let warning = "warning: --distribute leaves out a node of partition main: n2 idle+drain (bad gpu, see #12)";
    assert_eq!(text.matches("leaves out").count(), 1, "{text}");
    assert!(text.contains(warning), "{text}");
    let (code, text) = place.muster(&["-c", "c.check.yaml", "-lC", "--distribute=drain"]);
    assert_eq!((code, text.contains("%.nid=n2"), text.contains("%.nid=n1")), (Some(0), true, false), "{text}");
}

/// Variables of sbatch in the user's shell change no job.
pub(crate) fn the_environment_of_the_user_changes_no_job() {
    let place =
        Place::new(Cluster::shared(), "clean", "launcher: none", "executable: 'echo [$SECRET]'\nsanity: [{ found: '^\\[\\]' }]");
    let mut command = place.command(&["-c", "c.check.yaml", "-r"]);
    command.env("SBATCH_TIMELIMIT", "bad").env("SQUEUE_FORMAT", "%i").env("SECRET", "shown");
    let (code, text) = shown(&command.output().expect("muster"));
    assert_eq!(code, Some(0), "{text}");
}

/// Killed at each step of a case's life: what runs on is found by `attach` or `sweep`, and nothing stays in the queue.
pub(crate) fn a_session_that_is_killed_at_any_step_leaves_nothing_behind() {
    // A job that runs at the first look is never seen in another state.
    for step in STEPS.into_iter().filter(|step| *step != "seen") {
        let place = Place::new(
            Cluster::shared(),
            &format!("kill{}", step.replace('-', "")),
            "launcher: none",
            "executable: echo mark >> \"$SLURM_SUBMIT_DIR/marks\"; sleep 2\nsanity: []",
        );
        let mut plain = place.command(&["-c", "c.check.yaml", "-r"]);
        plain.env("RFM_CRASH_AT", step);
        let mut command = Command::new("timeout");
        copy_environment(&plain, &mut command);
        User::Alice.becomes(&mut command);
        command.current_dir(&place.folder).args(["60"]).arg(plain.get_program()).args(plain.get_args());
        let output = command.output().expect("muster");
        let (_, text) = shown(&output);
        assert!(output.status.code() != Some(0) || output.status.signal().is_some(), "{step}: was not killed: {text}");
        let (code, attached) = place.muster(&["attach"]);
        assert_eq!(code, Some(0), "{step}: {attached}");
        let (code, swept) = place.muster(&["sweep"]);
        assert_eq!(code, Some(0), "{step}: {swept}");
        eventually("the end of every job", Duration::from_secs(20), || queued(&place) == 0);
        assert!(place.marks() <= 1, "{step}: ran {} times: {attached}", place.marks());
    }
}
