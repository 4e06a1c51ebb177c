//! Which cases run, how often and in which order: copies, nodes, shares. What is listed is what runs.

use super::rounds::{attempts, muster, sandbox};
use crate::sandbox::{Ended, Sandbox};
use insta::assert_snapshot;
use serde_json::Value;

#[test]
fn copies_of_a_case_have_folders_of_their_own_and_one_name_in_its_history() {
    let sandbox = sandbox();
    let ended = muster(&sandbox, &["-r", "-n", "good", "--repeat", "3", "--exec-policy", "serial"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(attempts(&sandbox), ["good 1 pass", "good 1 pass", "good 1 pass"]);
    for copy in 0..3 {
        let log = sandbox.read(&format!("output/site/here/default/good_770e607624d68926-repeat_no_{copy}/rfm_job.out"));
        assert!(log.contains("good"), "{log}");
    }
}

#[test]
fn a_case_is_copied_for_each_node_and_runs_nowhere_else() {
    let sandbox = sandbox();
    let here = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let ended = muster(&sandbox, &["-r", "-n", "good", "--distribute", &format!("{here},elsewhere")]);
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(attempts(&sandbox), ["good 1 error", "good 1 pass"]);
    let cause = "is to run on elsewhere, and `local` runs on this machine (leave the node out, or name this one)";
    assert!(ended.stdout.contains(cause), "{}", ended.stdout);
    let slip = muster(&sandbox, &["-l", "-n", "good", "--distribute=iddle"]);
    let doubt = "warning: --distribute: `iddle` is taken for the name of a node: did you mean `idle`?";
    assert!(slip.stderr.contains(doubt), "{}", slip.stderr);
}

#[test]
fn a_scheduler_that_can_name_its_nodes_does_and_the_others_say_so() {
    let sandbox = sandbox();
    let here = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for flag in ["--distribute", "--distribute=all", "--distribute=idle"] {
        let ended = muster(&sandbox, &["-n", "good", flag, "-r"]);
        assert_eq!(ended.code, Some(0), "{flag}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.contains(&format!("%.nid={here}")), "{flag}: {}", ended.stdout);
    }
    sandbox.write("site.yaml", "name: site\npartitions: [{ name: gpu, scheduler: k8s }, { name: play, scheduler: fake }]\n");
    let pod = "valid_systems: ['site:gpu']\nimage: i\nexecutable: echo\ntime_limit: 1m\nmax_pending_time: 1m\nsanity: []\n";
    let play = "valid_systems: ['site:play']\nfake: {}\nsanity: []\n";
    sandbox.write("check.yaml", &format!("name: pod\n{pod}---\nname: play\n{play}"));
    let rows = [("pod", "idle", ""), ("play", "avail", ""), ("pod", "idle|alloc", ""), ("pod", "a,b", "node=a")];
    let output = rows.map(|(name, state, option)| {
        let option: &[&str] = if option.is_empty() { &[] } else { &["-J", option] };
        let flag = format!("--distribute={state}");
        let ended = muster(&sandbox, &[&["-r", "-n", name, &flag, "--db", "r.db"], option].concat());
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        ended.stderr.lines().next().unwrap_or_default().to_owned()
    });
    assert_snapshot!(output.join("\n"), @"
    error: --distribute=idle: `k8s` does not know this state of nodes (partition gpu): write all, avail, or names
    error: --distribute: `fake` cannot run a case on a chosen node (partition play): leave its cases out
    error: --distribute: no scheduler knows nodes in state `idle|alloc`: write all, alloc, allocated, avail, cloud, comp, completing, down, drain, drained, draining, fail, idle, idle*, maint, maintenance, mix, mixed, planned, powered_down, reserved, resv, or names, as in node-1,node-2
    error: --distribute and -J node both say on which node a case runs: give one of them
    ");
}

#[test]
fn the_shares_together_are_the_whole() {
    let check =
        "name: many\nvalid_systems: ['*']\nparameters: { n: [1, 2, 3, 4, 5, 6, 7, 8, 9] }\nexecutable: 'true'\nsanity: []\n";
    let sandbox = sandbox();
    sandbox.write("check.yaml", check);
    let mut all: Vec<String> = Vec::new();
    for share in ["1/3", "2/3", "3/3"] {
        let ended = muster(&sandbox, &["-r", "--shard", share]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        all.extend(attempts(&sandbox));
    }
    all.sort();
    assert_eq!(all, (1..=9).map(|n| format!("many %n={n} 1 pass")).collect::<Vec<_>>());
}

#[test]
fn cases_run_in_the_order_that_is_asked_for() {
    let sandbox = sandbox();
    let order = |order: &str| {
        let ended = muster(&sandbox, &["-r", "--exec-order", order, "--exec-policy", "serial"]);
        let started = ended.stdout.lines().filter_map(|line| line.strip_prefix("[ RUN      ] ")?.split(' ').next());
        started.collect::<Vec<_>>().join(" ")
    };
    assert_eq!([order("name"), order("rname"), order("uid")], ["bad flaky good", "good flaky bad", "bad good flaky"]);
    let mut any = order("random").split(' ').map(str::to_owned).collect::<Vec<_>>();
    any.sort();
    assert_eq!(any, ["bad", "flaky", "good"]);
}

/// The cases that a listing names, in its order.
fn listed(ended: &Ended) -> Vec<String> {
    ended.stdout.lines().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect()
}

/// The cases that `-r` has started, in their order.
fn started(ended: &Ended) -> Vec<String> {
    ended.stdout.lines().filter_map(|line| line.strip_prefix("[ RUN      ] ")).map(str::to_owned).collect()
}

#[test]
fn what_is_listed_with_the_flags_of_a_run_is_what_runs() {
    let sandbox = sandbox();
    muster(&sandbox, &["-r"]);
    let rows: [&[&str]; 8] = [
        &[],
        &["--exec-order=rname"],
        &["--shard=1/2"],
        &["--shard=2/2"],
        &["--repeat=2"],
        &["--distribute=all", "--exec-order=name"],
        &["--restore-session", "--failed"],
        &["--restore-session", "-n", "good"],
    ];
    for flags in rows {
        let session = muster(&sandbox, &["-r"]);
        assert!(session.code.is_some());
        let shown = muster(&sandbox, &[flags, &["-lC"]].concat());
        let described = muster(&sandbox, &[flags, &["--describe"]].concat());
        let dry = muster(&sandbox, &[flags, &["--dry-run"]].concat());
        let ran = muster(&sandbox, &[flags, &["-r", "--exec-policy=serial"]].concat());
        assert_eq!((shown.code, described.code, dry.code), (Some(0), Some(0), Some(0)), "{flags:?}: {}", shown.stderr);
        let ran = started(&ran);
        assert!(!ran.is_empty(), "{flags:?}");
        assert_eq!(listed(&shown), ran, "{flags:?}");
        let planned = dry.stdout.lines().filter_map(|line| line.strip_prefix("# ")).filter(|line| line.contains(" @site:here+"));
        let place =
            |line: &String| line.rsplit_once(" @").map(|(name, _)| name.rsplit_once(" /").map(|(name, _)| name.to_owned()));
        let names: Vec<_> = ran.iter().map(place).collect();
        let planned: Vec<_> = planned.map(|line| Some(line.split_once(" @").map(|(name, _)| name.to_owned()))).collect();
        assert_eq!(planned, names, "{flags:?}");
        let described: Value = serde_json::from_str(&described.stdout).expect("JSON");
        let cases = described.as_array().expect("checks").iter().filter_map(|check| check["cases"].as_array());
        assert_eq!(cases.map(Vec::len).sum::<usize>(), ran.len(), "{flags:?}");
    }
}

#[test]
fn a_dry_run_shows_the_options_of_the_command_line() {
    let sandbox = sandbox();
    sandbox.write("again.yaml", "logs: [{ text: hello }]\n");
    let shown = muster(&sandbox, &["--dry-run", "-n", "good", "--rehearse", "again.yaml"]);
    assert!(
        shown.stdout.contains("# scheduler fake") && shown.stdout.contains("text: hello"),
        "{}{}",
        shown.stdout,
        shown.stderr
    );
}

#[test]
fn an_empty_share_is_one_line_and_no_failure() {
    let sandbox = sandbox();
    let share = (1..=2).map(|share| format!("--shard={share}/2")).find(|share| {
        let shown = muster(&sandbox, &["-n", "good", "-lC", share]);
        listed(&shown).is_empty()
    });
    let share = share.expect("one case is in one of two shares");
    for action in ["-r", "-l", "--describe", "--dry-run"] {
        let ended = muster(&sandbox, &["-n", "good", action, &share]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{action}");
        assert_eq!(ended.stderr.trim_end(), "nothing to do: no selected case is in this share (--shard)", "{action}");
    }
    assert!(!sandbox.path("reports").exists(), "no session begins");
    let ended = muster(&sandbox, &["-n", "nothing-like-this", "-r", &share]);
    assert_eq!(ended.code, Some(2), "an empty selection is a mistake");
}

/// The ids of the sessions, the newest first.
fn sessions(sandbox: &Sandbox) -> Vec<String> {
    let listed = sandbox.muster(&["results", "list", "--format", "json"]);
    let listed: Vec<Value> = serde_json::from_str(&listed.stdout).expect("JSON");
    listed.iter().map(|session| session["session"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn a_session_goes_on_from_the_newest_of_its_system_that_has_one_of_its_cases() {
    let sandbox = sandbox();
    let bad = muster(&sandbox, &["-r", "-n", "bad"]);
    assert_eq!(bad.code, Some(1), "{}", bad.stderr);
    muster(&sandbox, &["-r", "-n", "good"]);
    let [good_session, bad_session] = <[String; 2]>::try_from(sessions(&sandbox)).expect("two sessions");
    // A session of another system, in another folder, is the newest of the database.
    sandbox.write("elsewhere/check.yaml", "name: good\nvalid_systems: ['*']\nexecutable: 'true'\nsanity: []\n");
    let mut other = sandbox.command(&["-c", "check.yaml", "-r", "--system", "local"]);
    let other = other.current_dir(sandbox.path("elsewhere")).output().expect("the binary runs");
    assert_eq!(other.status.code(), Some(0));

    let ended = muster(&sandbox, &["-r", "--restore-session", "--failed", "-n", "bad"]);
    assert_eq!((ended.code, attempts(&sandbox)), (Some(1), vec!["bad 1 fail".to_owned()]), "{}", ended.stderr);
    assert!(ended.stderr.starts_with(&format!("session {bad_session} of system `site` in ")), "{}", ended.stderr);

    // What the session does not have runs.
    let ended = muster(&sandbox, &["-r", &format!("--restore-session={good_session}"), "--failed", "-n", "good|flaky"]);
    assert_eq!((ended.code, attempts(&sandbox)), (Some(1), vec!["flaky 1 fail".to_owned(), "good 1 pass".to_owned()]));

    let ended = muster(&sandbox, &["-r", &format!("--restore-session={good_session}"), "--failed", "-n", "bad"]);
    let newest = sessions(&sandbox).into_iter().nth(1).expect("a session");
    let expected = [
        format!("error: session {good_session} of system `site` in "),
        format!("; the newest that has is session {newest} of system `site` in "),
    ];
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""));
    assert!(ended.stderr.starts_with(&expected[0]) && ended.stderr.contains(&expected[1]), "{}", ended.stderr);

    sandbox.write("new.yaml", "name: new\nvalid_systems: ['*']\nexecutable: 'true'\nsanity: []\n");
    let args = ["-C", "site.yaml", "--system", "site", "-c", "new.yaml", "-r", "--restore-session", "--failed"];
    let ended = sandbox.muster(&args);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""));
    assert!(ended.stderr.starts_with("error: no session of system site in "), "{}", ended.stderr);
}

#[test]
fn copies_of_an_earlier_session_are_found_without_the_flag() {
    let sandbox = sandbox();
    muster(&sandbox, &["-r", "-n", "good|bad", "--repeat", "2"]);
    let ended = muster(&sandbox, &["-r", "--restore-session", "--failed", "-n", "good|bad"]);
    assert!(ended.stderr.ends_with(": 2 case(s) are restored, 2 run\n"), "{}", ended.stderr);
    assert_eq!(attempts(&sandbox), ["bad 1 fail", "bad 1 fail", "good 1 pass", "good 1 pass"]);
    assert!(ended.stdout.contains("bad %.repeat_no=0 ") && ended.stdout.contains("bad %.repeat_no=1 "), "{}", ended.stdout);
    let sandbox = super::rounds::sandbox();
    muster(&sandbox, &["-r", "-n", "good", "--repeat", "2"]);
    let ended = muster(&sandbox, &["-r", "--restore-session", "--failed", "-n", "good"]);
    assert!(ended.stderr.ends_with(": 2 case(s) are restored, 0 run\n"), "{}", ended.stderr);
    assert_eq!(ended.code, Some(0), "restored passes count: {}", ended.stdout);
}

#[test]
fn the_newest_session_of_another_folder_is_named() {
    let sandbox = sandbox();
    muster(&sandbox, &["-r", "-n", "good"]);
    let note = |folder: &str, args: &[&str]| {
        let output = sandbox.command(args).current_dir(sandbox.path(folder)).output().expect("the binary runs");
        sandbox.ended(&output).stderr
    };
    std::fs::create_dir(sandbox.path("other")).expect("a folder");
    let rows: [&[&str]; 3] = [&["results", "show"], &["results", "compare", "latest", "latest"], &["top", "latest"]];
    for args in rows {
        assert!(!note("", args).contains("note: `latest`"), "{args:?}");
        let text = note("other", args);
        assert!(text.contains("note: `latest` is session 2") && text.contains(" of system `site` in "), "{args:?}: {text}");
    }
}
