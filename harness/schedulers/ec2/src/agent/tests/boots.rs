//! Instances that lose power, and what is left of their time.

use super::*;
use std::{
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

/// The instance has so many minutes left, and not a few seconds more or less.
fn has_left(instance: &Instance, minutes: u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    fs::write(instance.path("root/deadline"), format!("{}\n", now + minutes * 60 - 10)).unwrap();
}

#[test]
fn an_instance_that_boots_a_second_time_sends_what_it_has_and_ends() {
    if can_play(Shell::Dash, "curl") {
        let server = Server::start();
        stage(&server, "echo begun\nexec sleep 600\n", 1);
        let instance = Instance::boot(&server, Given::default());
        until("the script runs", || log(&server, 0) == "begun\n");
        instance.lose_power();
        assert_eq!(status(&server, 0)["state"], json!("running"), "the last word before");
        instance.start("hooks/rfm", &server, 0);
        until("it says so", || status(&server, 0)["state"] == json!("rebooted"));
        until("it ends", || !instance.has_processes());
        assert_eq!(log(&server, 0), "begun\n", "nothing is lost or doubled");
        assert_eq!(instance.shutdowns().last().map(String::as_str), Some("-P +30"));
    }
}

/// Whatever an agent does when it loses power, it ends when it would have ended.
#[test]
fn an_instance_that_loses_power_at_any_step_ends_at_the_time_that_it_had_from_the_beginning() {
    let play = |shell, step: &'static str| {
        if !can_play(shell, "curl") {
            return;
        }
        let server = Server::start();
        stage(&server, "echo ran\n", 2);
        let list = String::from_utf8(server.get("boot").unwrap()).unwrap();
        server.put("boot", list + &format!("* DATA set size:3 0 {}\n", server.url("data")));
        server.put("data", "set");
        server.put("go", "10.0.0.10\n10.0.0.11\n");
        server.hang(step);
        let instance = Instance::boot(&server, Given { shell, instances: 2, ..Given::default() });
        until("it hangs", || server.is_hanging());
        instance.lose_power();
        assert_eq!(instance.shutdowns().last().map(String::as_str), Some("-P +65"), "{step}");
        has_left(&instance, 5);
        server.go_on();
        let before = instance.shutdowns().len();
        instance.start("hooks/rfm", &server, 0);
        until("it has its time", || instance.shutdowns()[before..].iter().any(|call| call == "-P +5"));
        until("it ends", || !instance.has_processes());
        let rest = &instance.shutdowns()[before..];
        let (calls, end) = rest.split_at(rest.len() - 1);
        assert!(calls.chunks(2).all(|calls| calls == ["-P +65", "-P +5"]), "{step}: {rest:?}");
        let ran_before = step == "log.000";
        assert_eq!(end, [if ran_before { "-P +30" } else { "-P now" }], "{step}: {rest:?}");
        assert_eq!(status(&server, 0)["state"], if ran_before { "rebooted" } else { "done" }, "{step}");
        assert_eq!(log(&server, 0), "ran\n", "{step}");
    };
    thread::scope(|threads| {
        for step in ["api/token", "identity", "/boot", "0/status", "/bundle", "/data", "/go"] {
            threads.spawn(move || play(Shell::Dash, step));
        }
        threads.spawn(move || play(Shell::Busybox, "log.000"));
    });
}

#[test]
fn one_that_is_kept_and_boots_again_stays_no_longer_and_says_nothing_new() {
    if can_play(Shell::Dash, "curl") {
        let (server, instance) = run(Given::default(), "echo bad\nexit 7\n");
        has_left(&instance, 4);
        instance.start("hooks/rfm", &server, 0);
        assert_eq!(instance.shutdowns().last().map(String::as_str), Some("-P +4"));
        assert!(!instance.has_processes());
        assert_eq!((&status(&server, 0)["state"], &status(&server, 0)["exit"]), (&json!("done"), &json!(7)));
    }
}

#[test]
fn the_metadata_service_is_asked_again_and_nothing_begins_without_its_answers() {
    let play = |shell, instances, part: &'static str, times| {
        if !can_play(shell, "curl") {
            return;
        }
        let server = Server::start();
        stage(&server, "echo ran\n", instances);
        server.put("go", "10.0.0.11\n10.0.0.11\n");
        server.put("stop", "");
        server.fail(part, times);
        let pace = Pace { tries: 4, ..Given::default().pace };
        let rank = instances - 1;
        let instance = Instance::boot(&server, Given { shell, rank, instances, pace, ..Given::default() });
        instance.wait();
        let (who, said) = (format!("{shell:?} {part} {times}"), status(&server, rank));
        if times < 4 {
            assert_eq!((&said["state"], &said["ip"]), (&json!("done"), &json!(format!("10.0.0.1{rank}"))), "{who}");
        } else if instances == 1 {
            assert_eq!((&said["state"], &said["exit"]), (&json!("failed"), &json!(125)), "{who}");
            assert_eq!(log(&server, 0), "the metadata service of the instance does not answer\n", "{who}");
        } else {
            assert_eq!((&said, &status(&server, 0)), (&json!(null), &json!(null)), "{who}: it does not know who it is");
            assert!(instance.read("console").contains("exit=125"), "{who}");
        }
        assert_eq!(
            instance.shutdowns().last().map(String::as_str),
            Some(if times < 4 {
                "-P now"
            } else if instances == 1 {
                "-P +30"
            } else {
                "-P now"
            }),
            "{who}"
        );
    };
    thread::scope(|threads| {
        for shell in [Shell::Dash, Shell::Busybox] {
            for part in ["identity", "api/token"] {
                threads.spawn(move || play(shell, 1, part, 2));
            }
            threads.spawn(move || play(shell, 2, "ami-launch-index", 3));
            threads.spawn(move || play(shell, 1, "identity", 99));
            threads.spawn(move || play(shell, 2, "ami-launch-index", 99));
        }
    });
}

#[test]
fn without_an_address_of_ipv4_one_instance_goes_on_and_several_do_not() {
    let play = |shell, instances, state| {
        if !can_play(shell, "curl") {
            return;
        }
        let server = Server::start();
        server.without_addresses();
        stage(&server, "echo ran\n", instances);
        let rank = instances - 1;
        let instance = Instance::boot(&server, Given { shell, rank, instances, ..Given::default() });
        instance.wait();
        let said = status(&server, rank);
        assert_eq!((&said["state"], &said["ip"]), (&json!(state), &json!("")), "{shell:?} {instances}");
    };
    thread::scope(|threads| {
        for shell in [Shell::Dash, Shell::Busybox] {
            threads.spawn(move || play(shell, 1, "done"));
            threads.spawn(move || play(shell, 2, "failed"));
        }
    });
}

#[test]
fn a_clock_that_is_set_while_the_script_runs_is_not_its_time() {
    let play = |shell| {
        if can_play(shell, "curl") {
            let server = Server::start();
            stage(&server, "echo begun; while [ ! -e go ]; do sleep 1; done\n", 1);
            let instance = Instance::boot(&server, Given { shell, ..Given::default() });
            until("the script runs", || log(&server, 0) == "begun\n");
            let at = |name: &str| status(&server, 0)[name].as_i64().unwrap_or_default();
            let begun = at("started");
            fs::write(instance.path("jump"), "7200").unwrap();
            until("its clock is another", || at("t") > begun + 7000);
            instance.go();
            instance.wait();
            let (said, time) = (status(&server, 0), at("t") - at("started"));
            assert!(said["state"] == json!("done") && at("started") > begun && (0..1000).contains(&time), "{shell:?}: {said}");
        }
    };
    thread::scope(|threads| {
        for shell in [Shell::Dash, Shell::Busybox] {
            threads.spawn(move || play(shell));
        }
    });
}

#[test]
fn the_metadata_service_is_asked_with_a_new_token_when_one_is_old() {
    if can_play(Shell::Dash, "curl") {
        let server = Server::start();
        stage(&server, "echo begun\nexec sleep 600\n", 1);
        let instance = Instance::boot(&server, Given { is_spot: true, token: Some(2), ..Given::default() });
        until("the script runs", || log(&server, 0) == "begun\n");
        let given = server.tokens();
        until("it has had two others", || server.tokens() >= given + 2);
        server.give_spot_notice();
        instance.wait();
        assert_eq!(status(&server, 0)["state"], json!("interrupted"));
    }
}
