//! The agent as it runs on an instance, against a server that plays S3 and the metadata service.

mod boots;
mod files;
mod instance;
mod logs;
mod server;

use super::*;
use base64::{Engine, prelude::BASE64_STANDARD};
use instance::{Given, Instance, Shell, missing, stage, status, until, which};
use serde_json::json;
use server::{SECRET, Server};
use std::{
    process::{Command, Stdio},
    thread,
};

fn orders() -> Orders<'static> {
    Orders {
        id: "aotugiob",
        instances: 1,
        timer_minutes: 65,
        limit: 1200,
        keep_minutes: 30,
        is_spot: false,
        fetch: 0,
        keeps_files: false,
        store: "",
        boot_url: "https://bench.s3.eu-west-1.amazonaws.com/a'b?x=1&y=2",
        pace: Pace::default(),
    }
}

/// Whether an instance with these programs can be played here; else says what was not tested.
fn can_play(shell: Shell, http: &str) -> bool {
    missing(shell, http).is_none_or(|program| skipped(&format!("the agent was not tested on {shell:?} with {http}"), &program))
}

/// Says that something was not tested, unless it has to be. Always `false`.
fn skipped(what: &str, program: &str) -> bool {
    let required = std::env::var("MUSTER_EC2_TESTS").is_ok_and(|value| value == "required");
    assert!(!required, "{what}: {program} is not installed");
    eprintln!("SKIPPED: {what}: {program} is not installed");
    false
}

/// Runs a script on one instance to its end.
fn run(given: Given<'_>, script: &str) -> (Server, Instance) {
    let server = Server::start();
    stage(&server, script, given.instances);
    let instance = Instance::boot(&server, given);
    instance.wait();
    (server, instance)
}

fn log(server: &Server, rank: u32) -> String {
    String::from_utf8_lossy(&server.segments(rank).concat()).into_owned()
}

#[test]
fn the_first_command_starts_the_timer() {
    let script = script(&orders());
    let commands: Vec<&str> = script.lines().filter(|line| !line.starts_with('#')).take(3).collect();
    insta::assert_snapshot!(commands.join("\n"));
}

#[test]
fn user_data_is_small_and_the_same_for_the_same_job() {
    let long = format!("https://bench.s3.amazonaws.com/boot?X-Amz-Security-Token={}", "A7".repeat(900));
    let data = render_user_data(&Orders { boot_url: &long, ..orders() }).unwrap();
    assert!(data.starts_with(&[0x1f, 0x8b]), "gzip");
    assert_eq!(data, render_user_data(&Orders { boot_url: &long, ..orders() }).unwrap());
    // A third of what EC2 takes is left for what other addresses have.
    assert!(data.len() < USER_DATA_LIMIT * 2 / 3, "{} bytes", data.len());
    // Text that does not compress: the upper bits of a linear congruence.
    let mut state = 1u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'0' + u8::try_from(state >> 58).unwrap())
    };
    let noise: String = (0..30_000).map(|_| letter()).collect();
    let error = render_user_data(&Orders { boot_url: &noise, ..orders() }).unwrap_err().to_string();
    assert!(error.ends_with("and EC2 takes 16384: report this, it is not the check's fault"), "{error}");
}

#[test]
fn shellcheck_finds_nothing() {
    if which("shellcheck").is_none() {
        skipped("the agent was not checked", "shellcheck");
        return;
    }
    let mut checked =
        Command::new("shellcheck").args(["-s", "sh", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    checked.stdin.take().unwrap().write_all(script(&orders()).as_bytes()).unwrap();
    let ended = checked.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
}

#[test]
fn a_script_that_passes_leaves_its_log_and_ends_the_instance_whatever_shell_and_client_there_is() {
    let play = |shell, http: &'static str| {
        if !can_play(shell, http) {
            return;
        }
        let (server, instance) = run(Given { shell, http, ..Given::default() }, "echo out\necho err >&2\nprintf 'no end'\n");
        let who = format!("{shell:?} with {http}");
        assert_eq!(log(&server, 0), "out\nerr\nno end", "{who}: {}", instance.read("root/agent.out"));
        let said = status(&server, 0);
        let expected = json!({
            "v": 1, "id": "aotugiob", "rank": 0, "instance": "i-00000000000000000", "ip": "10.0.0.10", "type": "c7i.large",
            "zone": "eu-west-1a", "state": "done", "exit": 0, "log_bytes": 14,
        });
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&said[key], value, "{who}: {key}");
        }
        assert_eq!(instance.shutdowns(), ["-P +65", "-P +65", "-P +65", "-P +65", "-P now"], "{who}");
        assert_eq!(instance.read("console"), "", "{who}: S3 has all of it");
        assert!(!instance.read("root/agent.out").contains(SECRET), "{who}: {}", instance.read("root/agent.out"));
    };
    thread::scope(|threads| {
        for shell in [Shell::Dash, Shell::Busybox] {
            for http in ["curl", "wget", "python3"] {
                threads.spawn(move || play(shell, http));
            }
        }
    });
}

#[test]
fn the_script_sees_variables_of_the_harness_and_works_in_a_folder_of_its_own() {
    if can_play(Shell::Busybox, "curl") {
        let given = Given { shell: Shell::Busybox, ..Given::default() };
        let (server, _) = run(given, "echo \"$GREETING\"; touch file; echo *\n");
        assert_eq!(log(&server, 0), "it's \"$HOME\"\nfile rfm_env.sh rfm_job.sh\n");
    }
}

#[test]
fn a_bundle_is_the_same_for_the_same_job() {
    let bundle = |script| parcel::bundle(script, &[], &[]).unwrap();
    assert_eq!(bundle("true\n"), bundle("true\n"));
    assert_ne!(bundle("true\n"), bundle("false\n"));
    let entries = parcel::entries(2, false);
    let addresses: Vec<String> = entries.iter().map(|entry| format!("{:?}:{}", entry.method, entry.key())).collect();
    let list = parcel::list(&parcel::digest(b"bundle"), &entries, &addresses);
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 4 + 2 * 65);
    insta::assert_snapshot!([&lines[..6], &lines[133..]].concat().join("\n"));
}

#[test]
fn a_script_that_fails_keeps_the_instance_for_a_while() {
    if can_play(Shell::Dash, "curl") {
        let (server, instance) = run(Given::default(), "echo bad\nexit 7\n");
        assert_eq!((log(&server, 0).as_str(), &status(&server, 0)["exit"]), ("bad\n", &json!(7)));
        assert_eq!(instance.shutdowns().last().map(String::as_str), Some("-P +30"));
    }
}

#[test]
fn a_script_that_ignores_its_limit_is_killed_with_all_it_has_started() {
    if can_play(Shell::Busybox, "wget") {
        let given = Given { shell: Shell::Busybox, http: "wget", limit: 1, ..Given::default() };
        let (server, instance) = run(given, "trap '' TERM\necho begun\nsleep 600 &\nwhile :; do sleep 1; done\n");
        let said = status(&server, 0);
        assert_eq!((&said["state"], &said["exit"]), (&json!("timeout"), &json!(124)));
        assert_eq!(log(&server, 0), "begun\n");
        assert!(!instance.has_processes());
    }
}

#[test]
fn a_long_log_of_any_bytes_arrives_in_segments() {
    if can_play(Shell::Dash, "curl") {
        let pace = Pace { blocks: 1, ..Given::default().pace };
        let script = "n=0; while [ $n -lt 3500 ]; do\n\
            printf '\\377'; n=$((n + 1)); [ $n -ne 1500 ] || while [ ! -e go ]; do sleep 1; done\ndone\n";
        let server = Server::start();
        stage(&server, script, 1);
        let instance = Instance::boot(&server, Given { pace, ..Given::default() });
        until("a part of it is there", || server.segments(0).concat().len() == 1500);
        instance.go();
        instance.wait();
        let lengths: Vec<usize> = server.segments(0).iter().map(Vec::len).collect();
        assert_eq!(lengths, [1024, 1024, 1024, 428]);
        assert!(server.segments(0).concat().iter().all(|byte| *byte == 0xff));
    }
}

#[test]
fn what_s3_does_not_take_is_on_the_console() {
    if !can_play(Shell::Dash, "curl") {
        return;
    }
    let server = Server::start();
    stage(&server, "echo first\nwhile [ ! -e go ]; do sleep 1; done\nprintf 'last\\001\\n'\nexit 3\n", 1);
    let instance = Instance::boot(&server, Given::default());
    until("the log has begun", || log(&server, 0) == "first\n");
    server.refuse_puts();
    instance.go();
    instance.wait();
    assert_eq!(log(&server, 0), "first\n", "S3 has nothing more");
    let console = instance.read("console");
    let mut lines = console.lines();
    assert_eq!(lines.next(), Some("rfm-log aotugiob 0 exit=3 total=12 from=0"));
    let text = lines.next().and_then(|line| line.strip_prefix("rfm-log aotugiob 0 0 ")).unwrap();
    assert_eq!(BASE64_STANDARD.decode(text).unwrap(), b"first\nlast\x01\n");
    assert_eq!(lines.next(), Some("rfm-log aotugiob 0 exit=3 total=12 from=0 end"));
    assert!(!console.contains(SECRET));
    assert_eq!(instance.shutdowns().last().map(String::as_str), Some("-P +30"));
}

#[test]
fn a_bundle_that_is_not_the_one_that_was_sent_is_not_run() {
    if can_play(Shell::Dash, "python3") {
        let server = Server::start();
        stage(&server, "echo ran\n", 1);
        server.put("bundle", "something else");
        let instance = Instance::boot(&server, Given { http: "python3", ..Given::default() });
        instance.wait();
        assert_eq!(log(&server, 0), "the bundle did not arrive as it was sent\n");
        let said = status(&server, 0);
        assert_eq!((&said["state"], &said["exit"]), (&json!("failed"), &json!(125)));
    }
}

#[test]
fn without_a_way_to_s3_the_console_says_so_and_the_instance_ends() {
    if can_play(Shell::Dash, "curl") {
        let (server, instance) = run_without_boot();
        assert_eq!(status(&server, 0), json!(null));
        let said = instance.read("console");
        let lines = said.lines().filter(|line| !line.contains("exit="));
        let bytes = lines.flat_map(|line| BASE64_STANDARD.decode(line.rsplit(' ').next().unwrap()).unwrap());
        let text = String::from_utf8(bytes.collect()).unwrap();
        assert!(text.starts_with("no URL was read from S3, with curl:\ncurl: (22) ") && text.contains("403"), "{text}");
        assert_eq!(instance.shutdowns().last().map(String::as_str), Some("-P now"));
    }
}

fn run_without_boot() -> (Server, Instance) {
    let server = Server::start();
    let instance = Instance::boot(&server, Given::default());
    instance.wait();
    (server, instance)
}

#[test]
fn a_spot_notice_ends_the_script_and_is_told() {
    if can_play(Shell::Dash, "curl") {
        let server = Server::start();
        stage(&server, "echo begun\nexec sleep 600\n", 1);
        let instance = Instance::boot(&server, Given { is_spot: true, ..Given::default() });
        until("the script runs", || log(&server, 0) == "begun\n");
        server.give_spot_notice();
        instance.wait();
        assert_eq!(status(&server, 0)["state"], json!("interrupted"));
        assert!(!instance.has_processes());
    }
}

#[test]
fn several_instances_begin_together_and_end_with_the_first() {
    if !can_play(Shell::Dash, "curl") {
        return;
    }
    let server = Server::start();
    stage(&server, "echo \"$RFM_NODES\"; sed 's/ slots=[1-9].*//' \"$RFM_HOSTFILE\"\n", 3);
    let boot = |rank| Instance::boot(&server, Given { rank, instances: 3, ..Given::default() });
    let instances: Vec<Instance> = (0..3).map(boot).collect();
    until("all are ready", || (0..3).all(|rank| status(&server, rank)["state"] == json!("ready")));
    assert_eq!(log(&server, 0), "", "none begins before");
    server.put("go", "10.0.0.10\n10.0.0.11\n10.0.0.12\n");
    until("rank 0 is done", || status(&server, 0)["state"] == json!("done"));
    assert_eq!(log(&server, 0), "3\n10.0.0.10\n10.0.0.11\n10.0.0.12\n");
    server.put("stop", "");
    for (rank, instance) in (0..3).zip(&instances) {
        assert_eq!(instance.wait().last().map(String::as_str), Some("-P now"), "rank {rank}");
        assert_eq!(status(&server, rank)["exit"], json!(0));
    }
}
