//! What travels with a script: its sources, data sets, and what it leaves.

use super::{cloud::Cloud, place::Place};
use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

const FAST: &str = "poll_interval: 1s";

/// A server of the web with one file, and how often it was asked for.
fn web(content: &'static [u8]) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/set.bin?key=secret", listener.local_addr().expect("an address"));
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut question = [0; 4096];
            let _ = connection.read(&mut question);
            let _ = write!(connection, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", content.len());
            let _ = connection.write_all(content);
        }
    });
    (address, asked)
}

fn executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions");
}

pub(super) fn sources_travel_with_the_script_and_what_it_leaves_comes_back() {
    let cloud = Cloud::start();
    let check = "time_limit: 1m\nsourcesdir: input\nexecutable: ./sub/run.sh\nkeep_files: ['out/**', made]\n\
                 sanity: [{ found: ^hello$ }, { found: '^42$', file: out/deep/result }]";
    let place = Place::new(&cloud, FAST, check, "");
    fs::create_dir_all(place.file("input/sub")).expect("a folder");
    place.write("input/sub/word", "hello\n");
    executable(
        &place.write("input/sub/run.sh", "#!/bin/sh\ncat sub/word; mkdir -p out/deep; echo 42 >out/deep/result; echo x >made\n"),
    );
    let ended = place.run(&[]).expect_case(0, "pass", &[]);
    assert_eq!(ended.kept("out/deep/result"), b"42\n");
    assert_eq!(ended.kept("made"), b"x\n");
}

pub(super) fn the_check_stream_runs_unchanged_on_an_instance() {
    let cloud = Cloud::start();
    let place = Place::new(&cloud, FAST, "executable: true\ntime_limit: 1m", "");
    let of_check = Path::new(env!("CARGO_MANIFEST_DIR")).join("checks/stream");
    fs::create_dir_all(place.file("stream/src")).expect("a folder");
    for name in ["stream.check.yaml", "src/stream.c", "src/run.sh", "src/Makefile"] {
        fs::copy(of_check.join(name), place.file("stream").join(name)).expect("a copy");
    }
    let text = fs::read_to_string(place.file("stream/stream.check.yaml")).expect("the check");
    // The image of the cloud is not Amazon's, and a test measures nothing.
    let line = text.lines().find(|line| line.trim_start().starts_with("ami: ")).expect("an image");
    let text = text.replace(line, &format!("  ami: {}", cloud.image)).replace("[c7i.8xlarge, c7a.8xlarge]", "c7i.large");
    place.write("stream/stream.check.yaml", &text.replace("\"*\": { triad: [10, -0.8,", "\"*\": { triad: [10, -0.999,"));
    let running = place.start(&mut place.command(&["-c", "stream/stream.check.yaml", "-S", "mib=16", "-r"]));
    let ended = running.ended().expect_case(0, "pass", &[]);
    let triad = &ended.case()["measurements"][0];
    assert!(triad["value"].as_f64().is_some_and(|value| value > 0.0), "{triad}");
    assert!(triad["node"].as_str().is_some_and(|node| node.contains("i-")), "the node of the figure is known: {triad}");
}

pub(super) fn data_sets_of_the_web_are_copied_once_and_those_of_s3_are_read_in_place() {
    let cloud = Cloud::start();
    let (address, asked) = web(b"from the web\n");
    // As sha256sum prints it.
    let digest = "451f3e8714562111c7fc96b639f49f404507d4436dcd0ec3d539defcc2577d86";
    let check = "time_limit: 1m\nparameters: { n: [1, 2] }\nexecutable: cat sets/web data/a data/deep/b\n\
                 sanity: [{ found: from the web }, { found: '^one$' }, { found: '^two$' }]";
    let data = format!(
        "data: [{{ src: '{address}', dest: sets/web, sha256: {digest} }}, {{ src: 's3://{}/sets/', dest: data }}]",
        cloud.bucket
    );
    let place = Place::new(&cloud, FAST, check, &data);
    for (key, text) in [("sets/a", "one\n"), ("sets/deep/b", "two\n")] {
        let object = format!("{}/{}/{key}", cloud.endpoint, cloud.bucket);
        let put = ["-sSf", "-X", "PUT", "-H", "Content-Type: application/octet-stream", "--data-binary", text, &object];
        let done = Command::new("curl").args(put).output().expect("curl");
        assert!(done.status.success(), "{done:?}");
    }
    let ended = place.run(&[]);
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    assert_eq!(asked.load(Ordering::SeqCst), 1, "two cases, and one copy");
    let ended = place.run(&[]);
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    assert_eq!(asked.load(Ordering::SeqCst), 1, "another session finds it");
    assert!(!ended.text.contains("key=secret"), "{}", ended.text);
}

pub(super) fn a_data_set_that_is_another_launches_nothing() {
    let cloud = Cloud::start();
    let (address, _) = web(b"from the web\n");
    let data = format!("data: [{{ src: '{address}', dest: x, sha256: {} }}]", "0".repeat(64));
    let place = Place::new(&cloud, FAST, "time_limit: 1m\nexecutable: cat x\nsanity: []", &data);
    let ended = place.run(&[]);
    ended.expect_case(3, "error{config}", &["is another file than the check says", "/set.bin is"]);
    assert!(cloud.instances().is_empty(), "nothing was launched");
}
