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
        for step in ["api/token", "local-ipv4", "/boot", "0/status", "/bundle", "/data", "/go"] {
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
fn the_metadata_service_is_asked_with_a_new_token_when_one_is_old() {
    if can_play(Shell::Dash, "curl") {
        let server = Server::start();
        stage(&server, "echo begun\nexec sleep 600\n", 1);
        let instance = Instance::boot(&server, Given { is_spot: true, token: Some(2), ..Given::default() });
        until("the script runs", || log(&server, 0) == "begun\n");
        thread::sleep(std::time::Duration::from_secs(3));
        server.give_spot_notice();
        instance.wait();
        assert_eq!(status(&server, 0)["state"], json!("interrupted"));
    }
}
