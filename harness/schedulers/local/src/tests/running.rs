//! Jobs that end by themselves.

use super::{Field, chunks, ending, launch};
use crate::{LocalHandle, LocalScheduler, SCHEDULER};
use futures_util::StreamExt;
use muster_core::{
    job::{
        descriptor::{Descriptor, Schedulers},
        scheduler::{Channel, Chunk, Disposition, Exit, JobStatus, LogMarks, Scheduler},
        stage_folder::{EXIT_FILE, SCRIPT_FILE},
        workload::{Program, Staging, Workload},
    },
    secret::Secrets,
};
use muster_host::process;
use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};
use tokio::signal::unix::{SignalKind, signal};

/// Whatever is a secret: each word of a plan, and each number.
#[test]
fn a_plan_in_which_everything_is_masked_reads_back() {
    static ALL: &[&Descriptor] = &[&SCHEDULER];
    let field = Field::new();
    let staging = Staging { folder: field.folder.path().to_owned(), limit: Some(Staging::LIMIT), readonly_files: Vec::new() };
    let workload = Workload { staging: Some(staging), ..field.workload("echo hello", &["HOME"]) };
    let job = field.scheduler.plan(&workload).unwrap();
    let text = job.handle.to_string();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let secrets = Secrets::new(words.map(|word| ("token", word)));
    let masked = LocalHandle::of(&job.without(&secrets, &Schedulers::new(ALL))).unwrap();
    let planned = LocalHandle::of(&job).unwrap();
    assert_eq!((&masked.machine, &masked.leader), (&planned.machine, &planned.leader));
    assert_ne!(masked.script, planned.script, "nothing was masked");
}

#[tokio::test]
async fn every_way_to_end_is_reported() {
    let field = Field::new();
    let rows = [
        ("echo fine", Exit::Code(0), None),
        ("exit 7", Exit::Code(7), None),
        ("exec sh -c 'exit 5'", Exit::Code(5), None),
        ("cd /; exit 3", Exit::Code(3), None),
        ("set -e; false; true", Exit::Code(1), None),
        ("trap 'exit 9' EXIT; true", Exit::Code(9), None),
        ("/no/such/program", Exit::Code(127), Some("usually a command that was not found")),
        ("sh -c 'kill -SEGV $$'", Exit::Code(139), Some("usually signal 11 (SIGSEGV)")),
        // As it would end by itself: what is sent to the script's own process ends the script.
        ("kill -TERM $$; sleep 60", Exit::Code(143), Some("usually signal 15 (SIGTERM)")),
        ("trap 'exit 4' TERM; export TOP_PID=$$; (kill -s TERM $TOP_PID); sleep 60", Exit::Code(4), None),
        ("kill -TERM -$$; echo more; sleep 60", Exit::Code(143), Some("usually signal 15 (SIGTERM)")),
        ("(sleep 0.1; kill -- -$$) & sleep 60", Exit::Code(143), Some("usually signal 15 (SIGTERM)")),
        ("cat > input <<END\nsize 100\n  END", Exit::Code(2), None),
        ("kill -KILL $PPID; sleep 60", Exit::Signal(9), Some("signal 9 (SIGKILL) ended the shell of the job")),
        ("sleep 60 & true", Exit::Code(0), None),
        ("(", Exit::Code(2), None),
    ];
    let running = rows.map(|(body, ..)| field.run(body));
    for ((body, exit, cause), ran) in rows.into_iter().zip(futures_util::future::join_all(running).await) {
        assert_eq!((ran.exit(), ran.ending.cause.as_deref()), (exit, cause), "{body}: {}", ran.log);
        assert_eq!(ran.gap(), None, "{body}");
        assert!(ran.ending.started <= ran.ending.ended);
        let leader = LocalHandle::of(&ran.job).unwrap().leader.unwrap();
        assert!(process::stat(leader.pid).is_none_or(|stat| stat.start_time != leader.start_time), "{body} left a zombie");
        let written = fs::read_to_string(ran.job.stage.join(EXIT_FILE)).unwrap();
        // The shell that was killed cannot write it.
        let Exit::Code(code) = exit else { continue };
        assert_eq!(written, format!("{code}\n"), "{body}");
    }
    assert_eq!(field.living(), []);
}

#[tokio::test]
async fn the_log_file_is_the_assembled_stdout() {
    let field = Field::new();
    let ran = field.run("echo out; echo err >&2; printf 'no newline'").await;
    let host = &field.scheduler.here.host;
    let head = format!("{}\n\n-------{host}-------\n", ran.job.identifier);
    assert_eq!(ran.log, format!("{head}out\nerr\nno newline"));
    assert_eq!(ran.text(), "out\nerr\nno newline");
    assert!(matches!(&ran.chunks[..], [Chunk::Open(Channel::Log, origin), Chunk::File { .. }, Chunk::End { section }]
        if origin.title() == *host && section == host && origin.created == ran.ending.started));
    let mode = fs::metadata(ran.job.stage.join(SCRIPT_FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o700, 0o700);
}

#[tokio::test]
async fn a_truncated_or_removed_log_is_a_gap() {
    let field = Field::new();
    for body in ["echo a; echo b > /dev/stderr; echo c", "echo a | tee /dev/stderr; echo c", "rm rfm_job.out"] {
        let ran = field.run(body).await;
        assert!(ran.gap().is_some(), "{body}: {:?}", ran.chunks);
    }
    assert_eq!(field.run("echo a; echo b >&2; echo c | tee -a /dev/stderr").await.gap(), None);
}

#[tokio::test]
async fn a_job_has_exactly_the_promised_environment() {
    let field = Field::new();
    let mut scheduler = LocalScheduler::default();
    let harness =
        [("PATH", "/usr/bin:/bin"), ("HOME", "/h"), ("LANG", "C"), ("MY_LICENCE", "x"), ("SECRET", "y"), ("RFM_ID", "z")];
    scheduler.environment = std::sync::Arc::new(harness.map(|(name, value)| (name.into(), value.into())).into());
    let workload = field.workload("tr '\\0' '\\n' < /proc/$$/environ", &["MY_LICENCE", "NOT_SET", "RFM_ID"]);
    let job = launch(&scheduler, &scheduler.plan(&workload).unwrap()).await;
    ending(&scheduler, &job).await;
    let log = fs::read_to_string(job.stage.join("rfm_job.out")).unwrap();
    // A shell sets these itself.
    let own = ["PWD=", "OLDPWD=", "SHLVL=", "_="];
    let mut variables: Vec<&str> = log.lines().skip(3).filter(|line| !own.iter().any(|own| line.starts_with(own))).collect();
    variables.sort_unstable();
    let (id, session) = (format!("RFM_ID={}", job.identifier), format!("RFM_SESSION={}", job.session));
    assert_eq!(variables, ["HOME=/h", "LANG=C", "MY_LICENCE=x", "PATH=/usr/bin:/bin", id.as_str(), session.as_str()]);
}

#[tokio::test]
async fn no_descriptor_input_or_ignored_signal_of_the_harness_reaches_a_job() {
    // What the parent of this test ignores (`nohup`, a shell's `&`), a job would too; what is handled, no program inherits.
    for kind in [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::quit()] {
        if is_ignored(kind.as_raw_value()) {
            drop(signal(kind).unwrap());
        }
    }
    let field = Field::new();
    let secret = field.folder.path().join("held open");
    let _held = fs::File::create(&secret).unwrap();
    let ran = field.run("grep -E 'Sig(Blk|Ign)' /proc/self/status; readlink /proc/$$/fd/*").await;
    let lines: Vec<&str> = ran.text().lines().collect();
    assert_eq!(lines[0], "SigBlk:\t0000000000000000");
    let ignored = u64::from_str_radix(lines[1].strip_prefix("SigIgn:\t").unwrap(), 16).unwrap();
    // This process ignores SIGPIPE, as every Rust program does. Signals 32 and 33 are the C library's own.
    assert_eq!(ignored & 0x7fff_ffff, 0, "{ignored:x}");
    assert_eq!(lines[2], "/dev/null");
    let not_for_jobs = |line: &&&str| Path::new(line) == secret || line.contains("eventpoll") || line.contains("pidfd");
    assert_eq!(lines.iter().find(not_for_jobs), None);
}

#[tokio::test]
async fn a_second_launch_returns_the_first_job() {
    let field = Field::new();
    let job = field.plan("echo once; sleep 0.2");
    let (one, two) = futures_util::future::join(launch(&field.scheduler, &job), launch(&field.scheduler, &job)).await;
    assert_eq!(one, two);
    assert_eq!(launch(&field.scheduler, &one).await, one);
    ending(&field.scheduler, &one).await;
    assert_eq!(launch(&field.scheduler, &job).await, one, "also when it has ended");
    let log = fs::read_to_string(one.stage.join("rfm_job.out")).unwrap();
    assert_eq!(log.matches("once").count(), 1);
}

#[tokio::test]
async fn a_launch_that_is_dropped_half_way_is_found_by_the_next_call() {
    let field = Field::new();
    let job = field.plan("sleep 60");
    assert!(futures_util::FutureExt::now_or_never(field.scheduler.launch(&job)).is_none());
    let leftovers = field.scheduler.cleanup(&job, Disposition::Delete).await.unwrap();
    assert!(leftovers.items.is_empty());
    assert_eq!(field.living(), []);
    let status = field.scheduler.wait(&job, None).await.unwrap();
    assert!(matches!(status, JobStatus::Ended(_)), "{status:?}");
}

#[tokio::test]
async fn a_launch_that_fails_can_be_tried_again() {
    let field = Field::new();
    let job = field.plan("true");
    let elsewhere = job.stage.with_extension("moved");
    fs::rename(&job.stage, &elsewhere).unwrap();
    let error = field.scheduler.launch(&job).await.unwrap_err();
    assert!(error.to_string().starts_with("write /"), "{error}");
    fs::rename(&elsewhere, &job.stage).unwrap();
    let job = launch(&field.scheduler, &job).await;
    assert_eq!(ending(&field.scheduler, &job).await.exits[0].exit, Exit::Code(0));
}

#[tokio::test]
async fn waiting_and_collecting_can_be_dropped_at_any_time() {
    let field = Field::new();
    let job = field.launch("for i in 1 2 3 4; do echo $i; sleep 0.05; done; exit 4").await;
    let running = field.scheduler.wait(&job, None).await.unwrap();
    for micros in (0..60).map(|n| n * 100) {
        let limit = Duration::from_micros(micros);
        let _ = tokio::time::timeout(limit, field.scheduler.wait(&job, Some(&running))).await;
        let mut stream = field.scheduler.collect_logs(&job, LogMarks::default());
        let _ = tokio::time::timeout(limit, stream.next()).await;
    }
    assert_eq!(ending(&field.scheduler, &job).await.exits[0].exit, Exit::Code(4));
    assert_eq!(chunks(&field.scheduler, &job).await.len(), 3);
}

#[tokio::test]
async fn the_file_of_a_log_is_named_while_the_job_runs_and_its_part_at_the_end() {
    let field = Field::new();
    let job = field.launch("while [ ! -e go ]; do sleep 0.02; done; printf two").await;
    let mut chunks = field.scheduler.collect_logs(&job, LogMarks::default()).map(Result::unwrap);
    let Some(Chunk::Grows { origin, path: grows }) = chunks.next().await else { panic!("no file") };
    let status = field.scheduler.wait(&job, None).await.unwrap();
    assert!(matches!(status, JobStatus::Running { .. }), "{status:?}");
    fs::write(job.stage.join("go"), "").unwrap();
    let rest: Vec<Chunk> = chunks.collect().await;
    assert!(
        matches!(&rest[..], [Chunk::Open(Channel::Log, open), Chunk::File { path, len: 3, .. }, Chunk::End { .. }]
            if *open == origin && *path == grows),
        "{rest:?}"
    );
}

#[test]
fn what_is_no_script_is_refused_with_a_hint() {
    let field = Field::new();
    let objects = Workload { program: Program::Own { env_vars: vec![] }, ..field.workload("true", &[]) };
    let mistakes = field.scheduler.plan(&objects).unwrap_err();
    insta::assert_snapshot!(mistakes[0].message, @"`probe @generic:default+builtin` has no script for the scheduler `local`");
    assert!(mistakes[0].hint.is_some());
}

/// Whether this process ignores a signal.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal - 1) & 1 == 1
}
