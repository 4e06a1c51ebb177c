//! Data sets, and the files that travel with the script and come back.

use super::{
    super::fetched::{Check, Fetched, lines},
    *,
};
use crate::config::Digest;
use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};
use std::{
    io::Read,
    time::{SystemTime, UNIX_EPOCH},
};

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// A file for the agents, and its content as S3 has it.
fn fetched(server: &Server, path: &str, content: &[u8], check: Check, unpack: bool) -> String {
    let key = format!("data/{}", path.replace('/', "_"));
    server.put(&key, content);
    let size = content.len() as u64;
    let file = Fetched { path: path.to_owned(), unpack, check, bucket: String::new(), key: key.clone(), size };
    lines(&[file], &[server.url(&key)])
}

fn archive() -> Vec<u8> {
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let mut header = tar::Header::new_ustar();
    header.set_size(3);
    header.set_mode(0o644);
    archive.append_data(&mut header, "deep/inside", &b"in\n"[..]).unwrap();
    archive.into_inner().unwrap().finish().unwrap()
}

/// Runs a script on an instance that has more in its list.
fn run_with(given: Given<'_>, script: &str, more: impl Fn(&Server) -> String) -> (Server, Instance) {
    let server = Server::start();
    stage(&server, script, 1);
    let list = String::from_utf8(server.get("boot").unwrap()).unwrap() + &more(&server);
    server.put("boot", list);
    let instance = Instance::boot(&server, given);
    instance.wait();
    (server, instance)
}

#[test]
fn data_sets_are_verified_and_there_before_the_script_begins() {
    let play = |shell, http: &'static str| {
        if !can_play(shell, http) {
            return;
        }
        let given = Given { shell, http, ..Given::default() };
        let far = tempfile::tempdir().unwrap();
        let absolute = far.path().join("a/b").display().to_string();
        let (server, instance) = run_with(given, &format!("cat sets/one {absolute} open/deep/inside\n"), |server| {
            let sum = Check::Digest(Digest::Sha256(hex(&Sha256::digest(b"one\n"))));
            let archive = archive();
            fetched(server, "sets/one", b"one\n", sum, false)
                + &fetched(server, &absolute, b"two\n", Check::Size(4), false)
                + &fetched(server, "open", &archive, Check::Size(archive.len() as u64), true)
        });
        assert_eq!(log(&server, 0), "one\ntwo\nin\n", "{shell:?} with {http}: {}", instance.read("root/agent.out"));
    };
    thread::scope(|threads| {
        for (shell, http) in [(Shell::Dash, "curl"), (Shell::Busybox, "wget"), (Shell::Busybox, "python3")] {
            threads.spawn(move || play(shell, http));
        }
    });
}

#[test]
fn the_disks_of_an_instance_are_mounted_before_the_script_begins() {
    let scratch = tempfile::tempdir().unwrap();
    let store = scratch.path().join("x").display().to_string();
    let play = |shell, disks, has_mdadm, calls: &[&str], said: &str| {
        if !can_play(shell, "curl") {
            return;
        }
        let given = Given { shell, disks, has_mdadm, store: &store, ..Given::default() };
        let (server, instance) = run(given, "echo \"at $RFM_INSTANCE_STORE\"; [ -d \"$RFM_INSTANCE_STORE\" ] || exit 3\n");
        let what = format!("{shell:?}, {disks} disks: {}", instance.read("root/mounted"));
        assert_eq!(instance.read("disk-calls").lines().collect::<Vec<_>>(), calls, "{what}");
        assert_eq!(log(&server, 0).replace(&store, "STORE"), said, "{what}");
        let ended = if disks == 0 { ("failed", 125) } else { ("done", 0) };
        assert_eq!((status(&server, 0)["state"].as_str(), status(&server, 0)["exit"].as_i64()), (Some(ended.0), Some(ended.1)));
    };
    let mount = |disk: &str| format!("mount -o noatime {disk} {store}");
    let (of_one, of_all) = (mount("/dev/nvme1n9"), mount("/dev/md0"));
    let one = ["mkfs.ext4 -q -F /dev/nvme1n9", &of_one];
    let joined = "mdadm --create /dev/md0 --run --force --level=0 --raid-devices=2 /dev/nvme1n9 /dev/nvme2n9";
    for shell in [Shell::Dash, Shell::Busybox] {
        thread::scope(|threads| {
            threads.spawn(|| play(shell, 1, true, &one, "at STORE\n"));
            threads.spawn(|| play(shell, 2, true, &[joined, "mkfs.ext4 -q -F /dev/md0", &of_all], "at STORE\n"));
            let said = "STORE has one of the 2 disks: there is no mdadm, which joins them\nat STORE\n";
            threads.spawn(|| play(shell, 2, false, &one, said));
            threads.spawn(|| play(shell, 0, true, &[], "the instance has no disks for STORE\n"));
        });
    }
}

#[test]
fn a_data_set_that_is_another_ends_the_job_before_the_script() {
    if !can_play(Shell::Dash, "curl") {
        return;
    }
    let rows = [
        ("sha256", Check::Digest(Digest::Sha256("0".repeat(64)))),
        ("md5", Check::Digest(Digest::Md5("0".repeat(32)))),
        ("size", Check::Size(5)),
    ];
    thread::scope(|threads| {
        for (what, check) in rows {
            threads.spawn(move || {
                let (server, _) = run_with(Given::default(), "echo ran\n", |server| {
                    fetched(server, "sets/one", b"one\n", check.clone(), false)
                });
                let (log, said) = (log(&server, 0), status(&server, 0));
                assert_eq!((&said["state"], &said["exit"]), (&json!("failed"), &json!(125)), "{what}");
                assert!(
                    log.contains("the data set for work/sets did not arrive as it was named") && !log.contains("ran"),
                    "{log}"
                );
            });
        }
    });
}

#[test]
fn while_files_are_sent_the_script_is_said_to_have_ended() {
    if can_play(Shell::Dash, "curl") {
        let server = Server::start();
        stage(&server, "echo x; touch mine; exit 3\n", 1);
        let list = String::from_utf8(server.get("boot").unwrap()).unwrap();
        let outputs = format!("0 PUT outputs {}\n", server.url("0/outputs"));
        server.put("boot", list + &outputs + &kept::lines(&["mine".to_owned()]));
        server.hang("0/outputs");
        let instance = Instance::boot(&server, Given { keeps_files: true, ..Given::default() });
        until("it sends", || server.is_hanging());
        let said = status(&server, 0);
        assert_eq!((&said["state"], &said["exit"]), (&json!("sending"), &json!(3)));
        assert_eq!(log(&server, 0), "x\n", "its log is there before its files");
        let ended = said["t"].as_i64().unwrap();
        until("another second has begun", || now() > ended);
        server.go_on();
        instance.wait();
        let said = status(&server, 0);
        assert_eq!((&said["state"], &said["outputs"]), (&json!("done"), &json!("sent")));
        assert!(said["ended"].as_i64().unwrap() <= ended && said["t"].as_i64().unwrap() > ended, "{said}");
    }
}

#[test]
fn what_the_script_leaves_is_sent_and_what_it_got_is_not() {
    let play = |shell, http: &'static str| {
        if !can_play(shell, http) {
            return;
        }
        let given = Given { shell, http, keeps_files: true, ..Given::default() };
        let script = "mkdir -p out/deep && printf '1\\n' >out/deep/result && cp rfm_job.sh mine; touch other 'a b'; exit 3\n";
        let globs = ["**/result", "mi?e", "a b"].map(str::to_owned);
        let (server, instance) = run_with(given, script, |server| {
            let outputs = format!("0 PUT outputs {}\n", server.url("0/outputs"));
            outputs + &kept::lines(&globs) + &fetched(server, "big", b"xx", Check::Size(2), false)
        });
        assert_eq!(status(&server, 0)["outputs"], "sent", "{shell:?}: {}", instance.read("root/agent.out"));
        let sent = server.get("0/outputs").unwrap();
        let mut files = tar::Archive::new(GzDecoder::new(&sent[..]));
        let mut names: Vec<String> = Vec::new();
        for file in files.entries().unwrap() {
            let mut file = file.unwrap();
            let name = file.path().unwrap().display().to_string();
            if name.ends_with('/') {
                continue;
            }
            let mut content = String::new();
            file.read_to_string(&mut content).unwrap();
            names.push(name.trim_start_matches("./").to_owned());
        }
        names.sort();
        assert_eq!(names, ["a b", "mine", "out/deep/result"], "{shell:?}");
        assert_eq!(instance.shutdowns().last().map(String::as_str), Some("-P +30"), "it is kept: {:?}", instance.shutdowns());
    };
    thread::scope(|threads| {
        for (shell, http) in [(Shell::Dash, "curl"), (Shell::Busybox, "python3")] {
            threads.spawn(move || play(shell, http));
        }
    });
}

/// The files of an archive with their content, as a stage folder has them.
fn kept_by(server: &Server) -> Vec<(String, String)> {
    let sent = server.get("0/outputs").unwrap();
    let mut files = tar::Archive::new(GzDecoder::new(&sent[..]));
    let mut all = Vec::new();
    for file in files.entries().unwrap() {
        let mut file = file.unwrap();
        let name = file.path().unwrap().display().to_string().trim_start_matches("./").to_owned();
        if !name.is_empty() && !name.ends_with('/') {
            let mut content = Vec::new();
            file.read_to_end(&mut content).unwrap();
            all.push((name, String::from_utf8_lossy(&content).into_owned()));
        }
    }
    all.sort();
    all
}

#[test]
fn files_with_old_times_or_other_names_come_back_and_what_cannot_takes_none_with_it() {
    let play = |shell| {
        if !can_play(shell, "curl") {
            return;
        }
        // Of the same size, with a time before the script; another one in its place; one with two names; one whose name has a line
        // break; and one that grows while it is sent.
        let script = "touch -t 202001010000 old && mv one-sent was && echo twice >two && ln two deep.two\n\
            printf x >swapped.new && touch -t 202001010000 swapped.new && mv swapped.new swapped\n\
            printf y >'br\nk'; setsid sh -c 'while [ ! -e ../over ]; do echo more; done >grows' >/dev/null 2>&1 &\n\
            sleep 1; exit 3\n";
        let given = Given { shell, keeps_files: true, ..Given::default() };
        let (server, instance) = run_with(given, script, |server| {
            let outputs = format!("0 PUT outputs {}\n", server.url("0/outputs"));
            outputs
                + &kept::lines(&["*".to_owned()])
                + &fetched(server, "one-sent", b"1", Check::Size(1), false)
                + &fetched(server, "same", b"1", Check::Size(1), false)
                + &fetched(server, "swapped", b"1", Check::Size(1), false)
        });
        let (who, kept) = (format!("{shell:?}: {}", instance.read("root/agent.out")), kept_by(&server));
        assert_eq!(status(&server, 0)["outputs"], "sent", "{who}");
        let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["deep.two", "grows", "old", "rfm_missing", "swapped", "two", "was"], "{who}");
        let content = |name: &str| kept.iter().find(|(of, _)| of == name).unwrap().1.as_str();
        assert_eq!((content("swapped"), content("was")), ("x", "1"), "{who}");
        assert!(
            content("grows").starts_with("more\n") && content("rfm_missing").lines().count() == 2,
            "{who}: {}",
            content("rfm_missing")
        );
    };
    thread::scope(|threads| {
        for shell in [Shell::Dash, Shell::Busybox] {
            threads.spawn(move || play(shell));
        }
    });
}
