//! What never ends: it is stopped at its limit, named, and nothing of it goes on.

use crate::{common::eventually, sandbox::Sandbox};
use std::{
    fs,
    process::{Child, Command},
    thread::{sleep, spawn},
    time::{Duration, Instant},
};

const SITE: &str = "name: here\nhostnames: ['.*']\npartitions: [{ name: p, scheduler: local, environs: [default], max_jobs: 16 }]\nenvironments: [{ name: default }]\n";
const ENDLESS: &str = "range(0,100000).all(i, range(0,100000).all(j, i + j >= 0))";
/// In a single match: thousands of states for each byte, and nothing that could be looked for first.
const SLOW: &str = r"(?s-u:x(?:.{0,200}x){20}[^x\n])";

fn sandbox(checks: &str) -> Sandbox {
    let sandbox = Sandbox::with_check(checks);
    sandbox.write("site-config/here.yaml", SITE);
    sandbox
}

fn run(sandbox: &Sandbox) -> Child {
    sandbox.command(&["-c", "check.yaml", "-r", "--db", "r.db"]).spawn().expect("runs")
}

/// A check with a long log.
fn check(name: &str, limit: &str, keys: &str) -> String {
    format!("name: {name}\nvalid_systems: ['*']\njudge_limit: {limit}\nexecutable: |-\n  yes x | head -n 400000\n{keys}\n---\n")
}

fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold blanks.
    Some(stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

/// The judges of a session that live.
fn judges(session: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").expect("a /proc").flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        let is_judge = fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("@judge"));
        is_judge && stat(*pid).is_some_and(|stat| stat[1] == session.to_string() && stat[0] != "Z")
    })
    .collect()
}

fn lives(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| stat[0] != "Z")
}

/// Processor time so far, in hundredths of a second.
fn ticks(pid: u32) -> u64 {
    stat(pid).map_or(0, |stat| stat[11..13].iter().map(|field| field.parse::<u64>().unwrap_or(0)).sum())
}

fn send(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().expect("kill runs");
    assert!(status.success());
}

#[test]
fn eight_cases_that_never_end_are_named_at_their_limit_and_the_others_go_on() {
    let slow = check(
        "slow",
        "2s",
        "parameters: { n: [1, 2, 3, 4, 5, 6, 7, 8] }\nsanity: [{ assert: \"range(0,100000).all(i, count('x') >= 0)\" }]",
    );
    let quick = check("quick", "1m", "sanity: [{ assert: \"count('x') == 400000\" }]");
    let sandbox = sandbox(&(slow + &quick));
    let ended = sandbox.ended(&run(&sandbox).wait_with_output().expect("ends"));
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    let named = "judging took longer than judge_limit: it was evaluating `range(0,100000).all(i, count('x') >= 0)`";
    assert_eq!(ended.stdout.matches(&format!("==> error (config) during 'sanity': {named}")).count(), 8, "{}", ended.stdout);
    assert!(ended.stdout.contains("8 error{config}, 1 pass"), "{}", ended.stdout);
}

#[test]
fn whatever_takes_too_long_is_named() {
    let rows = [
        ("loops", format!("sanity: [{{ assert: \"{ENDLESS}\" }}]"), format!("it was evaluating `{ENDLESS}`")),
        ("match", format!("sanity: [{{ found: '{SLOW}' }}]"), format!("it was searching [HOST] for `{SLOW}`")),
        (
            "figure",
            format!("sanity: []\nperf_variables: {{ speed: {{ value: \"{ENDLESS} ? 1 : 2\", unit: s }} }}"),
            format!("it was evaluating `{ENDLESS} ? 1 : 2`, for `speed`"),
        ),
        ("output", format!("sanity: []\noutputs: {{ place: '{SLOW}' }}"), "for the output `place`".to_owned()),
    ];
    let checks = rows.iter().map(|(name, keys, _)| check(name, "3s", keys)).collect::<String>();
    let user = "name: user\nvalid_systems: ['*']\ndepends_on: output\nexecutable: 'true'\nsanity: []\n";
    let sandbox = sandbox(&(checks + user));
    let ended = sandbox.ended(&run(&sandbox).wait_with_output().expect("ends"));
    for (name, _, expected) in rows {
        let mut output = ended.stdout.lines().skip_while(|line| !(line.contains("ERROR") && line.contains(name)));
        let cause = output.nth(1).unwrap_or_default();
        // The section of a local job is called as its host.
        let (before, after) = expected.split_once("[HOST]").unwrap_or(("", &expected));
        assert!(cause.contains("error (config)") && cause.contains(before) && cause.contains(after), "{name}: {}", ended.stdout);
    }
}

#[test]
fn nothing_is_computed_after_the_limit() {
    let slow = check("slow", "4s", &format!("sanity: [{{ assert: \"{ENDLESS}\" }}]"));
    let sandbox = sandbox(&(slow + "name: long\nvalid_systems: ['*']\nexecutable: sleep 300\nsanity: []\n"));
    let child = run(&sandbox);
    eventually("a judge at work", Duration::from_mins(1), || !judges(child.id()).is_empty());
    eventually("its end", Duration::from_secs(30), || judges(child.id()).is_empty());
    let before = ticks(child.id());
    sleep(Duration::from_secs(2));
    assert!(ticks(child.id()) - before < 50, "the session computes");
    assert!(judges(child.id()).is_empty(), "a judge was started again");
    send(&child, "TERM");
    assert_eq!(child.wait_with_output().expect("ends").status.code(), Some(130));
}

#[test]
fn a_signal_ends_a_session_that_judges() {
    let slow = check("slow", "10m", &format!("parameters: {{ n: [1, 2, 3, 4] }}\nsanity: [{{ assert: \"{ENDLESS}\" }}]"));
    let sandbox = sandbox(&slow);
    let child = run(&sandbox);
    let session = child.id();
    eventually("a judge at work", Duration::from_mins(1), || !judges(session).is_empty());
    let working = judges(session);
    let started = Instant::now();
    send(&child, "TERM");
    let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("4 aborted"), "{}", ended.stdout);
    assert!(!working.into_iter().any(lives), "a judge outlives its session");
}

#[test]
fn a_judge_ends_with_a_killed_session() {
    let sandbox = sandbox(&check("slow", "10m", &format!("sanity: [{{ assert: \"{ENDLESS}\" }}]")));
    let mut child = run(&sandbox);
    eventually("a judge at work", Duration::from_mins(1), || !judges(child.id()).is_empty());
    let working = judges(child.id());
    send(&child, "KILL");
    child.wait().expect("ends");
    eventually("the judge's end", Duration::from_secs(10), || !working.iter().any(|pid| lives(*pid)));
}

#[test]
fn a_judge_that_is_killed_is_replaced_once_and_the_cause_names_what_it_did() {
    let sandbox = sandbox(&check("slow", "10m", &format!("sanity: [{{ assert: \"{ENDLESS}\" }}]")));
    let child = run(&sandbox);
    let mut killed = 0;
    for _ in 0..2 {
        let other = || judges(child.id()).into_iter().find(|judge| *judge != killed);
        eventually("a judge at work", Duration::from_mins(1), || other().is_some_and(|judge| ticks(judge) > 10));
        killed = other().expect("a judge");
        assert_eq!(fs::read_to_string(format!("/proc/{killed}/comm")).expect("its name"), "muster-judge\n");
        assert!(Command::new("kill").args(["-KILL", &killed.to_string()]).status().expect("kill runs").success());
    }
    let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    let cause = format!("the process that judged ended: signal: 9 (SIGKILL): it was evaluating `{ENDLESS}`");
    assert!(ended.stdout.contains(&format!("==> error (infra) during 'sanity': {cause}")), "{}", ended.stdout);
}

#[test]
fn a_judge_that_wants_too_much_memory_ends_its_case_alone() {
    let doubled = ".map(x, x + x)".repeat(18);
    let large = format!("sanity: [{{ assert: \"size(range(200).map(i, lower(['0123456789abcdef']{doubled}[0]))) > 0\" }}]");
    let sandbox =
        sandbox(&(check("large", "5m", &large) + &check("quick", "5m", "sanity: [{ assert: \"count('x') == 400000\" }]")));
    let mut command = sandbox.command(&["-c", "check.yaml", "-r", "--db", "r.db"]);
    let ended = sandbox.ended(&command.env("RFM_JUDGE_MEMORY", (256 << 20).to_string()).output().expect("the binary runs"));
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    let cause = "judging needs more than 256 MiB of memory: it was evaluating `size(range(200)";
    assert!(ended.stdout.contains(&format!("==> error (config) during 'sanity': {cause}")), "{}", ended.stdout);
    assert!(ended.stdout.contains("1 error{config}, 1 pass"), "{}", ended.stdout);
}

#[test]
fn an_expression_of_a_file_that_never_ends_is_a_mistake_with_its_place() {
    let plain = "name: c\nvalid_systems: ['*']\nexecutable: 'true'\nsanity: []\n";
    let rows: [(&str, String, &[&str]); 4] = [
        ("parameters", format!("{plain}parameters: {{ n: '${{{{ {ENDLESS} ? [1] : [2] }}}}' }}\n"), &["-l"]),
        ("variables", format!("{plain}variables: {{ a: '${{{{ {ENDLESS} }}}}' }}\nexecutable_opts: ['${{{{ a }}}}']\n"), &["-L"]),
        ("when", format!("{plain}parameters: {{ n: [1, 2, 3] }}\nwhen: [{{ if: '{ENDLESS}', skip: no }}]\n"), &["-l"]),
        ("-E", plain.to_owned(), &["-l", "-E", ENDLESS]),
    ];
    let looks = rows.map(|(what, text, args)| {
        let text = text.clone();
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        spawn(move || {
            let sandbox = sandbox(&text);
            let started = Instant::now();
            let args: Vec<&str> = ["-c", "check.yaml"].into_iter().chain(args.iter().map(String::as_str)).collect();
            (what, sandbox.muster(&args), started.elapsed())
        })
    });
    for look in looks {
        let (what, ended, took) = look.join().expect("a listing");
        let output = ended.stdout + &ended.stderr;
        assert_eq!(ended.code, Some(2), "{what}: {output}");
        assert!(output.contains("did not end within 10 s"), "{what}: {output}");
        assert!(what == "-E" || output.contains("check.yaml:"), "{what}: {output}");
        assert!(took < Duration::from_secs(30), "{what}: {took:?}");
    }
}

#[test]
fn a_placeholder_that_never_ends_at_launch_fails_its_case_alone() {
    let loops = "range(0, size(deps.write.outputs.n)).all(i, range(0, size(deps.write.outputs.n)).all(j, range(0, size(deps.write.outputs.n)).all(k, true)))";
    let write = "name: write\nvalid_systems: ['*']\nexecutable: |-\n  printf 'n='; head -c 5000 /dev/zero | tr '\\0' x; echo\nsanity: []\noutputs: { n: 'n=(x+)' }\n---\n";
    let user = |name: &str, expression: &str| {
        format!(
            "name: {name}\nvalid_systems: ['*']\ndepends_on: write\nexecutable: echo\nexecutable_opts: ['${{{{ {expression} }}}}']\nsanity: []\n---\n"
        )
    };
    let sandbox = sandbox(&[write.to_owned(), user("endless", loops), user("fine", "size(deps.write.outputs.n)")].concat());
    let ended = sandbox.ended(&run(&sandbox).wait_with_output().expect("ends"));
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("error (config)") && ended.stdout.contains("did not end within 10 s"), "{}", ended.stdout);
    assert!(ended.stdout.contains("2 pass, 1 error{config}"), "{}", ended.stdout);
}
