//! One morning's session: every outcome, every kind of figure, and a job that tries to talk to the terminal.

use jiff::tz::TimeZone;
use muster_core::{
    case::{CaseHash, CaseName, Identifier, SessionId},
    job::{
        scheduler::{Exit, SectionExit},
        workload::Clock,
    },
    result::{About, CaseResult, Counting, Failure, Fault, Invalid, Outcome, Phase, Session, Times},
    rules::perf::{Bounds, Direction, Measurement, Verdict},
};
use muster_report::{Paint, Results, Screen};
use muster_text::time::Timestamp;
use std::time::Duration;

/// 2026-01-05 07:03:12 UTC
pub(crate) const START: Timestamp = Timestamp(1_767_596_592_000_000);

pub(crate) fn after(seconds: f64) -> Timestamp {
    START.plus(Duration::from_secs_f64(seconds))
}

pub(crate) fn screen(width: usize) -> Screen {
    Screen { paint: Paint::OFF, width, zone: TimeZone::UTC }
}

pub(crate) fn colored(width: usize) -> Screen {
    Screen { paint: Paint::ON, ..screen(width) }
}

pub(crate) fn session() -> Session {
    Session {
        id: SessionId("20260105-070312-qkzvaxpe".into()),
        started: START,
        ended: Some(after(94.25)),
        command: ["muster", "-c", "my checks/", "-r", "--performance-report"].map(String::from).into(),
        system: "eidf".into(),
        user: "ada".into(),
        host: "login-1".into(),
        workdir: "/home/ada/site".into(),
        version: "0.1.0".into(),
        num_cases: 13,
        interrupted: false,
        counting: Counting::Last,
        extras: vec![],
        ..Session::default()
    }
}

pub(crate) fn case(check: &str, parameters: &[(&str, &str)], outcome: Outcome, phase: Phase) -> CaseResult {
    let shown: Vec<_> = parameters.iter().map(|(name, value)| format!(" %{name}={value}")).collect();
    let times =
        Times { begun: after(1.0), launched: Some(after(1.5)), started: Some(after(3.0)), ended: None, finished: after(13.5) };
    CaseResult {
        name: CaseName {
            display: format!("{check}{}", shown.concat()),
            check: check.into(),
            hash: CaseHash::of(check, parameters.iter().copied()).short(),
            system: "eidf".into(),
            partition: "gpu-service".into(),
            environ: "default".into(),
            hidden: String::new(),
        },
        about: About {
            descr: String::new(),
            tags: vec!["performance".into()],
            maintainers: vec!["hpc-support".into()],
            file: format!("checks/{check}/check.yaml"),
            other_files: Vec::new(),
            parameters: parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            scheduler: "k8s".into(),
            num_tasks: 1,
            ..About::default()
        },
        identifier: Identifier::parse("kqjzmvxa"),
        attempt: 1,
        outcome,
        phase,
        cause: None,
        warnings: vec![],
        nodes: vec![],
        exits: vec![],
        measurements: vec![],
        times,
        folder: None,
        log_tail: None,
        look: vec![],
        delete: vec![],
        leftovers: vec![],
        flaky: false,
        quarantine: None,
        restored_from: None,
        outputs: None,
        ..CaseResult::default()
    }
}

pub(crate) fn figure(variable: &str, value: f64, unit: &str, bounds: Option<(f64, Option<f64>, Option<f64>)>) -> Measurement {
    let bounds = bounds.map(|(reference, lower, upper)| Bounds { reference, lower, upper });
    let passes = |bounds: Bounds| bounds.lower.is_none_or(|low| low <= value) && bounds.upper.is_none_or(|up| value <= up);
    let verdict = match bounds {
        None => Verdict::None,
        Some(bounds) if passes(bounds) && !value.is_nan() => Verdict::Pass,
        Some(_) => Verdict::Fail,
    };
    let (variable, unit) = (variable.into(), unit.into());
    Measurement { variable, key: None, section: None, node: None, value, unit, bounds, verdict, direction: None }
}

fn passing() -> [CaseResult; 4] {
    let gpu = |name: &str, value| CaseResult {
        nodes: vec!["gpu-17".into()],
        measurements: vec![Measurement {
            direction: Some(Direction::Higher),
            ..figure("flops", value, "GFLOP/s", Some((7440.0, Some(6696.0), Some(8184.0))))
        }],
        ..case("nbody", &[("num_bodies", name)], Outcome::Pass, Phase::Performance)
    };
    let key = |key: &str, value, bounds| Measurement { key: Some(key.into()), ..figure("latency", value, "us", bounds) };
    let latency = CaseResult {
        nodes: vec!["cpu-1".into(), "cpu-2".into()],
        measurements: vec![
            key("8", 1.5, Some((1.4, None, Some(1.68)))),
            Measurement { verdict: Verdict::Warn, ..key("1048576", 110.000_000_000_000_01, Some((100.0, None, Some(120.0)))) },
            figure("drift", -100.5, "ppm", Some((-100.0, Some(-101.0), Some(-98.0)))),
            figure("lost", 0.0, "packets", Some((0.0, Some(-2.0), Some(5.0)))),
            figure("sent", 1_073_741_824.0, "", None),
        ],
        warnings: vec!["latency[1048576] is outside its warn band".into()],
        ..case("osu_latency", &[], Outcome::Pass, Phase::Performance)
    };
    let smoke = case("smoke", &[], Outcome::Pass, Phase::Sanity);
    [gpu("1024000", 7439.683), gpu("512000", 7011.25), latency, smoke]
}

fn failing() -> [CaseResult; 5] {
    let pod = |number: usize, value: f64| Measurement {
        section: Some(format!("rfm-kqjzmvxa-{number}")),
        node: Some(format!("gpu-{}", 16 + number)),
        ..figure("node_flops", value, "GFLOP/s", Some((2480.0, Some(2356.0), None)))
    };
    let slow = CaseResult {
        cause: Some("node_flops on gpu-18: 1893.4 GFLOP/s, expected 2480 (l:2356)".into()),
        nodes: vec!["gpu-16".into(), "gpu-17".into(), "gpu-18".into()],
        measurements: vec![pod(0, 2481.125), pod(1, 2479.5), pod(2, 1893.4)],
        folder: Some("stage/eidf/gpu-service/default/nbody_pods_5a1b2c3d4e5f6071".into()),
        look: vec!["kubectl --context eidf-general -n eidf095ns describe pods -l rfm=kqjzmvxa".into()],
        delete: vec!["kubectl --context eidf-general -n eidf095ns delete jobs,pods -l rfm=kqjzmvxa".into()],
        ..case("nbody_pods", &[], Outcome::Fail(Failure::Performance), Phase::Performance)
    };
    let mut insane = CaseResult {
        cause: Some("pattern 'Max Write: .* MiB/sec' was not found in any of 2 sections\n\x1b[2J".into()),
        nodes: vec!["cpu-1".into()],
        exits: vec![
            SectionExit { section: "ior-0".into(), node: Some("cpu-1".into()), exit: Exit::Code(0), ..SectionExit::default() },
            SectionExit { section: "ior-1".into(), node: Some("cpu-1".into()), exit: Exit::Signal(9), ..SectionExit::default() },
        ],
        folder: Some("stage/eidf/gpu-service/default/ior it's".into()),
        log_tail: Some(
            "\x1b]0;owned\x07write  10%\rwrite  20%\r\nERROR:\x1b[31m no space left\x1b[0m on \u{202e}device\n".into(),
        ),
        warnings: vec!["the log has no last line end".into()],
        ..case("ior", &[("fs.dir", "/lustre/my dir")], Outcome::Fail(Failure::Sanity), Phase::Sanity)
    };
    insane.about.descr = "Writes and reads one file for each process through MPI-IO and compares the bandwidth with what the \
                          file system showed in the acceptance test"
        .into();
    insane.about.file = "my checks/ior.check.yaml".into();
    let lost = CaseResult {
        cause: Some("variable 'bandwidth' matched nothing".into()),
        measurements: vec![figure("errors", f64::NAN, "", Some((0.0, None, Some(0.0))))],
        ..case("hpl", &[], Outcome::Invalid(Invalid::Metrics), Phase::Performance)
    };
    let waiting = CaseResult {
        cause: Some("0/12 nodes are available: 12 Insufficient nvidia.com/gpu".into()),
        ..case("hpcg", &[], Outcome::Timeout(Clock::Pending), Phase::Run)
    };
    let wrong = CaseResult {
        cause: Some("namespace 'eidf095n' does not exist".into()),
        identifier: None,
        ..case("babelstream", &[], Outcome::Error(Fault::Config), Phase::Launch)
    };
    [slow, insane, lost, waiting, wrong]
}

fn others() -> [CaseResult; 4] {
    let skipped = CaseResult {
        cause: Some("partition.devices.gpu.num_devices is not known here".into()),
        identifier: None,
        ..case("p2p", &[], Outcome::Skip, Phase::Plan)
    };
    let expected = CaseResult {
        cause: Some("copy: 9.1 GB/s, expected 12".into()),
        measurements: vec![Measurement {
            verdict: Verdict::Xfail("DIMM 4 is on order".into()),
            ..figure("copy", 9.1, "GB/s", Some((12.0, Some(10.8), Some(13.2))))
        }],
        ..case("stream", &[], Outcome::Xfail, Phase::Performance)
    };
    let aborted = CaseResult {
        cause: Some("interrupted by SIGINT".into()),
        leftovers: vec!["pod eidf095ns/rfm-kqjzmvxa-0: kubectl -n eidf095ns delete pod rfm-kqjzmvxa-0".into()],
        ..case("soak", &[], Outcome::Abort, Phase::Run)
    };
    let again = CaseResult { attempt: 2, ..case("smoke", &[], Outcome::Pass, Phase::Sanity) };
    [skipped, expected, aborted, again]
}

/// In the order in which they finished.
pub(crate) fn cases() -> Vec<CaseResult> {
    let [slow, insane, lost, waiting, wrong] = failing();
    let [skipped, expected, aborted, again] = others();
    let [big, small, latency, first] = passing();
    let first =
        CaseResult { outcome: Outcome::Fail(Failure::Workload), cause: Some("exit status 7".into()), phase: Phase::Run, ..first };
    let mut cases = vec![skipped, big, first, slow, latency, insane, small, lost, again, expected, waiting, wrong, aborted];
    for (number, case) in (0_u32..).zip(&mut cases) {
        let offset = Duration::from_millis(u64::from(number) * 4_321);
        case.times.begun = case.times.begun.plus(offset / 2);
        case.times.finished = case.times.finished.plus(offset);
    }
    cases
}

pub(crate) fn with<T>(test: impl FnOnce(&Results<'_>) -> T) -> T {
    let (session, cases) = (session(), cases());
    test(&Results::new(&session, &cases))
}

/// The same with only the cases that are named.
pub(crate) fn with_only<T>(checks: &[&str], test: impl FnOnce(&Results<'_>) -> T) -> T {
    let cases: Vec<_> = cases().into_iter().filter(|case| checks.contains(&case.name.check.as_str())).collect();
    let session = Session { num_cases: u32::try_from(cases.len()).unwrap_or(u32::MAX), ..session() };
    test(&Results::new(&session, &cases))
}
