//! Between Muster and sbatch: who is submitted when, with what, and what a launch that failed half-way leaves.

use crate::{
    common::eventually,
    suite::{cluster::Cluster, sandbox::Place},
};
use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// A stub that writes a line for each call, with its arguments.
fn counted(program: &str) -> String {
    format!("echo {program} \"$@\" >> calls; exec /usr/bin/{program} \"$@\"")
}

/// The lines that stubs have written.
fn calls(place: &Place<'_>, of: &str) -> Vec<String> {
    let calls = fs::read_to_string(place.file("calls")).unwrap_or_default();
    calls.lines().filter(|line| line.starts_with(of)).map(str::to_owned).collect()
}

/// A quality of service takes three jobs of a user: one of twelve cases asks for all, and a refusal makes nobody look for a job.
pub(crate) fn one_case_asks_a_full_site_for_all() {
    const CASES: usize = 12;
    let check = "executable: echo mark >> $SLURM_SUBMIT_DIR/marks; sleep 1\n\
                 parameters: { n: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] }\nsanity: []";
    let place = Place::new(Cluster::with_accounting(), "crowd", "launcher: none, sched_options: { qos: tight }", check);
    place.stub("squeue", &counted("squeue"));
    let path = place.stub("sbatch", &counted("sbatch"));
    let started = Instant::now();
    let ended = place.to_end(place.command(&["-c", "c.check.yaml", "-r"]).env("PATH", path)).expect(0);
    assert_eq!((ended.report["totals"]["passed"].as_u64(), place.marks()), (Some(12), CASES), "{}", ended.text);
    let searches: Vec<String> = calls(&place, "squeue").into_iter().filter(|call| call.contains(" -n ")).collect();
    assert!(searches.is_empty(), "{searches:?}");
    // One each 5 s, and one more where a job that has ended made room for somebody else.
    let refused = calls(&place, "sbatch").len() - CASES;
    let allowed = usize::try_from(started.elapsed().as_secs()).unwrap_or(usize::MAX) / 5 + CASES;
    assert!(refused <= allowed, "{refused} refusals, not {allowed}");
}

/// More cases than are submitted in a few seconds: each waits its turn, and nothing is looked for.
pub(crate) fn cases_wait_their_turn_at_a_slow_sbatch() {
    let check = "executable: 'true'\nparameters: { n: [1, 2, 3, 4, 5, 6, 7, 8] }\nsanity: []";
    let place = Place::new(Cluster::shared(), "slow", "launcher: none", check);
    place.stub("squeue", &counted("squeue"));
    let path = place.stub("sbatch", &format!("sleep 1.5; {}", counted("sbatch")));
    let ended = place.to_end(place.command(&["-c", "c.check.yaml", "-r"]).env("PATH", path)).expect(0);
    assert_eq!(ended.report["totals"]["passed"].as_u64(), Some(8), "{}", ended.text);
    assert_eq!(calls(&place, "sbatch").len(), 8, "{}", ended.text);
    assert!(calls(&place, "squeue").iter().all(|call| !call.contains(" -n ")), "{:?}", calls(&place, "squeue"));
}

/// Slurm's limit is that of the check, and may be as long as one of its partitions allows.
pub(crate) fn a_time_limit_may_be_that_of_the_partition() {
    let check = "executable: hostname\ntime_limit: 60m\nsanity: [{ found: n }]";
    for (name, partition) in [("exact", "low"), ("either", "'low,main'"), ("shorter", "'short,main'")] {
        let place =
            Place::new(Cluster::shared(), name, &format!("launcher: none, sched_options: {{ partition: {partition} }}"), check);
        let ended = place.run(&[]).expect_case(0, "pass", &[]);
        assert!(String::from_utf8_lossy(&ended.kept("rfm_job.sh")).contains("#SBATCH --time=60\n"), "{name}");
    }
}

/// As long as its quality of service allows, and not longer.
pub(crate) fn a_time_limit_may_be_that_of_the_quality_of_service() {
    let run = |name: &str, minutes: u32| {
        let check = format!("executable: hostname\ntime_limit: {minutes}m\nsanity: [{{ found: n }}]");
        let options = "launcher: none, sched_options: { qos: brief }";
        Place::new(Cluster::with_accounting(), name, options, &check).run(&[])
    };
    run("brief", 10).expect_case(0, "pass", &[]);
    let cause = ["QOSMaxWallDurationPerJobLimit: its time limit is above that of its quality of service"];
    run("notbrief", 11).expect_case(3, "error{config}", &cause);
}

/// The disk of the stage folder is full when the launch begins, and has room again before it is tried the second time.
pub(crate) fn a_launch_that_failed_half_way_is_completed() {
    let place = Place::new(Cluster::shared(), "half", "launcher: none", "executable: echo hi\nsanity: [{ found: hi }]");
    let small = place.file("small");
    fs::create_dir(&small).expect("a folder");
    let folder = small.to_string_lossy().into_owned();
    let mount = ["-t", "tmpfs", "-o", "size=64k,mode=777", "small", &folder];
    assert!(Command::new("mount").args(mount).stdin(Stdio::null()).status().is_ok_and(|status| status.success()));
    let fill = small.join("fill");
    assert!(fs::write(&fill, vec![0; 1 << 20]).is_err(), "the disk is larger than it should be");
    let running = place.start(&mut place.command(&["-c", "c.check.yaml", "-r", "--stage", &folder]));
    eventually("a file of the launch", Duration::from_secs(30), || {
        let found = Command::new("find").args([&*folder, "-name", "rfm_job.*"]).stdin(Stdio::null()).output();
        found.is_ok_and(|found| !found.stdout.is_empty())
    });
    fs::remove_file(fill).expect("the file");
    running.ended().expect_case(0, "pass", &[]);
}

/// sbatch finds its libraries where squeue does, and the job does not inherit them.
pub(crate) fn sbatch_gets_what_it_needs_to_reach_the_cluster_and_its_job_does_not() {
    let check = "executable: 'echo [$SLURM_JWT][$LD_LIBRARY_PATH][$SECRET]'\nsanity: [{ found: '^\\[\\]\\[\\]\\[\\]$' }]";
    let place = Place::new(Cluster::shared(), "connects", "launcher: none", check);
    // This Slurm takes no tokens.
    let script = "echo sbatch \"$SLURM_JWT $LD_LIBRARY_PATH $SECRET\" >> calls; unset SLURM_JWT; exec /usr/bin/sbatch \"$@\"";
    let path = place.stub("sbatch", script);
    for program in ["squeue", "scontrol"] {
        place.stub(program, &format!("unset SLURM_JWT; exec /usr/bin/{program} \"$@\""));
    }
    let mut command = place.command(&["-c", "c.check.yaml", "-r"]);
    command.env("PATH", path).env("SLURM_JWT", "token").env("LD_LIBRARY_PATH", "/opt/slurm/lib").env("SECRET", "shown");
    place.to_end(&mut command).expect_case(0, "pass", &[]);
    assert_eq!(calls(&place, "sbatch"), ["sbatch token /opt/slurm/lib "]);
}
