//! Logs that are not easily kept: opened again, held open, shortened, and without room for them.

use super::{instance::mount, *};

#[test]
fn a_script_that_opens_its_own_output_again_empties_nothing() {
    let play = |shell| {
        if !can_play(shell, "curl") {
            return;
        }
        let script = "echo one; sleep 2; echo two >/dev/stderr; sleep 2; echo three >/dev/stdout\nexit 3\n";
        let (server, instance) = run(Given { shell, ..Given::default() }, script);
        let said = status(&server, 0);
        assert_eq!(log(&server, 0), "one\ntwo\nthree\n", "{shell:?}: {}", instance.read("root/agent.out"));
        assert_eq!((&said["state"], &said["exit"], &said["log_bytes"]), (&json!("done"), &json!(3), &json!(14)));
    };
    thread::scope(|threads| {
        for shell in [Shell::Dash, Shell::Busybox] {
            threads.spawn(move || play(shell));
        }
    });
}

#[test]
fn what_a_script_leaves_running_is_not_waited_for_and_all_that_it_has_said_before_is_there() {
    if can_play(Shell::Dash, "curl") {
        let server = Server::start();
        let script = "setsid sh -c 'echo child; : >said; exec sleep 600' &\n\
            while [ ! -e said ]; do sleep 1; done; seq=0; echo over\n";
        stage(&server, script, 1);
        let instance = Instance::boot(&server, Given::default());
        until("it is done", || status(&server, 0)["state"] == json!("done"));
        assert_eq!((log(&server, 0).as_str(), &status(&server, 0)["exit"]), ("child\nover\n", &json!(0)));
        instance.lose_power();
    }
}

#[test]
fn a_log_that_has_become_shorter_is_said_to_lack_something() {
    if can_play(Shell::Dash, "curl") {
        let server = Server::start();
        stage(&server, "echo a long line; while [ ! -e go ]; do sleep 1; done; : >../log; echo x\n", 1);
        let instance = Instance::boot(&server, Given::default());
        until("the log has begun", || log(&server, 0) == "a long line\n");
        instance.go();
        instance.wait();
        assert_eq!(log(&server, 0), "a long line\n");
        assert_eq!(status(&server, 0)["log_bytes"], json!(12 + 2 + 1), "more than was sent");
    }
}

#[test]
fn a_log_that_was_sent_is_not_sent_again() {
    if can_play(Shell::Dash, "curl") {
        // A pause after a failure that did not happen would be seen.
        let pace = Pace { pause: 7, ..Given::default().pace };
        let (_, instance) = run(Given { pace, ..Given::default() }, "echo x\n");
        let sleeps = instance.read("sleeps");
        assert!(sleeps.lines().all(|seconds| seconds == "1"), "{sleeps}");
    }
}

#[test]
fn while_the_script_runs_its_log_is_as_long_as_what_was_sent() {
    if can_play(Shell::Dash, "curl") {
        let server = Server::start();
        server.fail("log.000", u32::MAX);
        stage(&server, "echo a line that is lost; while [ ! -e go ]; do sleep 1; done\n", 1);
        let instance = Instance::boot(&server, Given::default());
        until("it is at work", || status(&server, 0)["state"] == json!("running"));
        until("it has said something", || !instance.read("root/log").is_empty());
        let said = || status(&server, 0)["t"].as_i64().unwrap_or_default();
        let first = said();
        until("it has spoken again, and once more", || said() > first + 1);
        assert_eq!(status(&server, 0)["log_bytes"], json!(0));
        instance.lose_power();
    }
}

#[test]
fn what_s3_does_not_take_for_a_while_at_the_end_comes_later() {
    if can_play(Shell::Busybox, "curl") {
        let pace = Pace { tries: 30, ..Given::default().pace };
        let server = Server::start();
        stage(&server, "echo first; while [ ! -e go ]; do sleep 1; done; echo last\n", 1);
        let instance = Instance::boot(&server, Given { shell: Shell::Busybox, pace, ..Given::default() });
        until("the log has begun", || log(&server, 0) == "first\n");
        server.refuse_puts();
        instance.go();
        until("it has tried more often than others", || server.refused() > 8);
        assert_eq!(log(&server, 0), "first\n");
        server.take_puts();
        instance.wait();
        assert_eq!((log(&server, 0).as_str(), &status(&server, 0)["exit"]), ("first\nlast\n", &json!(0)));
        assert_eq!(instance.read("console"), "");
    }
}

#[test]
fn the_end_of_a_long_log_is_no_more_than_a_console_keeps() {
    let play = |shell| {
        if !can_play(shell, "curl") {
            return;
        }
        let server = Server::start();
        server.fail("log.000", u32::MAX);
        let script = "n=0; while [ $n -lt 1000 ]; do echo \"line $n of a log that nobody takes, or the console alone\"; n=$((n + 1)); done\n";
        stage(&server, script, 1);
        let instance = Instance::boot(&server, Given { shell, ..Given::default() });
        instance.wait();
        // A terminal makes two bytes of each end of a line.
        let console = instance.read("console").replace('\n', "\r\n");
        assert!(console.len() < 60_000, "{shell:?}: {}", console.len());
        let whole = std::fs::read(instance.path("root/log")).unwrap();
        let text = |console: &str| crate::decide::log::read_console(console, "aotugiob", 0).unwrap().pieces;
        let pieces = text(&console);
        assert_eq!(pieces.values().flatten().copied().collect::<Vec<u8>>(), whole[whole.len() - 32_000..]);
        // Others have written after it, and its beginning is gone.
        assert_eq!(text(&console[1000..]).last_key_value(), pieces.last_key_value());
    };
    thread::scope(|threads| {
        for shell in [Shell::Dash, Shell::Busybox] {
            threads.spawn(move || play(shell));
        }
    });
}

/// Whether this process may have a small disk; else says what was not tested.
fn can_mount() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let can = mount("64k", folder.path());
    if can {
        let _ = Command::new("umount").arg(folder.path()).status();
    }
    can || skipped("full disks were not tested", "mount")
}

#[test]
fn a_script_that_fills_the_disk_ends_with_its_status_and_its_log() {
    if can_play(Shell::Dash, "curl") && can_mount() {
        let rows = [
            ("echo begins; sleep 2; dd if=/dev/zero of=big bs=1k 2>/dev/null; echo no room; exit 4\n", 4, "begins\nno room\n"),
            // It has room again, and is what it says.
            ("echo begins; sleep 2; dd if=/dev/zero of=big bs=1k 2>/dev/null; rm big; echo fine\n", 0, "begins\nfine\n"),
        ];
        for (script, exit, said) in rows {
            let (server, instance) = run(Given { disk: Some("1m"), ..Given::default() }, script);
            let state = if exit == 0 { "done" } else { "full" };
            let last = status(&server, 0);
            assert_eq!((&last["state"], &last["exit"]), (&json!(state), &json!(exit)), "{}", instance.read("root/agent.out"));
            // The page that the log has may be the last one.
            assert!(said.starts_with(&log(&server, 0)) && log(&server, 0).starts_with("begins\n"), "{}", log(&server, 0));
        }
    }
}

#[test]
fn a_log_that_fills_the_disk_is_sent_as_far_as_it_goes() {
    if can_play(Shell::Busybox, "curl") && can_mount() {
        let given = Given { shell: Shell::Busybox, disk: Some("1m"), ..Given::default() };
        let (server, instance) = run(given, "dd if=/dev/zero bs=64k count=40 2>/dev/null; echo $? >&2\n");
        let last = status(&server, 0);
        assert_eq!((&last["state"], &last["exit"]), (&json!("full"), &json!(0)), "{}", instance.read("root/agent.out"));
        let sent = server.segments(0).concat().len() as u64;
        assert!(sent > 300_000 && last["log_bytes"] == json!(sent), "{sent}: {last}");
    }
}

#[test]
fn a_disk_that_is_full_from_the_beginning_runs_no_script() {
    if can_play(Shell::Dash, "curl") && can_mount() {
        let (server, instance) = run(Given { disk: Some("160k"), ..Given::default() }, "echo ran\n");
        assert_eq!(status(&server, 0)["state"], json!("full"), "{}", instance.read("root/agent.out"));
        assert_eq!(log(&server, 0), "the disk of the instance is full before the script begins\n");
    }
}

#[test]
fn a_script_is_ended_before_its_agent_where_memory_is_short() {
    if can_play(Shell::Dash, "curl") {
        let (server, _) = run(Given::default(), "cat /proc/self/oom_score_adj\n");
        assert_eq!(log(&server, 0), "0\n");
    }
}
