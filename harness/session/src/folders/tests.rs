//! Two sessions on one root, what a pass keeps, and what is never followed.

use super::*;
use muster_core::job::stage_folder::{EXIT_FILE, LOG_FILE, SCRIPT_FILE, SECTIONS};
use rustix::fs::{Mode, OFlags, open, openat};
use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};
use tempfile::TempDir;

fn name() -> CaseName {
    let part = |text: &str| text.to_owned();
    CaseName {
        display: part("case"),
        check: part("case"),
        hash: part("01234567"),
        system: part("s"),
        partition: part("p"),
        environ: part("e"),
        hidden: String::new(),
    }
}

/// A folder, and the two roots in it.
fn roots() -> (TempDir, PathBuf, PathBuf) {
    let folder = TempDir::new().unwrap();
    let (stage, output) = (folder.path().join("stage"), folder.path().join("output"));
    (folder, stage, output)
}

fn identifier() -> Identifier {
    Identifier::parse("kqzvwxyz").unwrap()
}

#[test]
fn a_session_beside_another_has_folders_of_its_own() {
    let (_folder, stage, output) = roots();
    let (case, identifier) = (name(), identifier());
    let leaf = |folders: &Folders, number| {
        let attempt = AttemptId { case: &case, folder: "case_1", number, identifier: &identifier };
        folders.stage_of(attempt).strip_prefix(stage.join("s/p/e")).unwrap().display().to_string()
    };
    let first = Folders::open(&stage, &output).unwrap();
    let second = Folders::open(&stage, &output).unwrap();
    assert_eq!([leaf(&first, 1), leaf(&first, 2)], ["case_1", "case_1.2"]);
    assert_eq!([leaf(&second, 1), leaf(&second, 2)], ["case_1.kqzvwxyz", "case_1.2.kqzvwxyz"]);
    drop(first);
    assert_eq!(leaf(&Folders::open(&stage, &output).unwrap(), 1), "case_1");
}

#[test]
fn a_folder_is_replaced_while_a_job_of_an_earlier_session_writes_in_it() {
    let (_folder, stage, output) = roots();
    let folders = Folders::open(&stage, &output).unwrap();
    let (case, identifier) = (name(), identifier());
    let path = folders.stage_of(AttemptId { case: &case, folder: "case_1", number: 1, identifier: &identifier });
    for _ in 0..100 {
        folders.create(&path).unwrap();
        // As the working directory of a process.
        let inside = open(&path, OFlags::DIRECTORY, Mode::empty()).unwrap();
        let (over, written) = (AtomicBool::new(false), Barrier::new(2));
        thread::scope(|scope| {
            let (over, written) = (&over, &written);
            scope.spawn(move || {
                for number in 0.. {
                    let flags = OFlags::CREATE | OFlags::WRONLY;
                    let _ = openat(&inside, format!("{number}"), flags, Mode::RWXU);
                    thread::sleep(Duration::from_micros(100));
                    if number == 10 {
                        written.wait();
                    }
                    if over.load(Ordering::Relaxed) && number > 10 {
                        break;
                    }
                }
            });
            written.wait();
            let replaced = folders.create(&path);
            over.store(true, Ordering::Relaxed);
            replaced.unwrap();
        });
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }
}

#[test]
fn a_pass_keeps_what_muster_wrote_and_nothing_else() {
    let (_folder, stage, output) = roots();
    let folders = Folders::open(&stage, &output).unwrap();
    let (case, identifier) = (name(), identifier());
    let attempt = AttemptId { case: &case, folder: "case_1", number: 1, identifier: &identifier };
    let path = folders.stage_of(attempt);
    for round in ["first", "again"] {
        folders.create(&path).unwrap();
        fs::create_dir_all(path.join("deep/er")).unwrap();
        for file in KEPT.iter().chain(&["core.1", ".hidden", "deep/er/data"]) {
            fs::write(path.join(file), round).unwrap();
        }
        let kept = folders.keep(&path, attempt, &[]).unwrap();
        assert_eq!(kept, output.join("s/p/e/case_1"));
        let mut found: Vec<_> = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        found.sort();
        assert_eq!(found, [SECTIONS, EXIT_FILE, LOG_FILE, SCRIPT_FILE], "{round}");
        assert!(KEPT.iter().all(|file| fs::read_to_string(kept.join(file)).unwrap() == round), "{round}");
        assert!(!path.exists(), "{round}");
        assert_eq!(fs::read_dir(kept.parent().unwrap()).unwrap().count(), 1, "{round}");
    }
}

#[test]
fn a_pass_may_leave_its_stage_folder_as_it_is() {
    let (_folder, stage, output) = roots();
    let folders = Folders::open(&stage, &output).unwrap().keeping_stages(true);
    let (case, identifier) = (name(), identifier());
    let attempt = AttemptId { case: &case, folder: "case_1", number: 1, identifier: &identifier };
    let path = folders.stage_of(attempt);
    folders.create(&path).unwrap();
    for file in [LOG_FILE, "data"] {
        fs::write(path.join(file), file).unwrap();
    }
    let kept = folders.keep(&path, attempt, &[]).unwrap();
    assert!(kept.join(LOG_FILE).exists() && !kept.join("data").exists());
    assert!(path.join(LOG_FILE).exists() && path.join("data").exists());
}

#[test]
fn a_link_in_the_place_of_a_folder_is_not_followed() {
    let (folder, stage, output) = roots();
    let folders = Folders::open(&stage, &output).unwrap();
    let (case, identifier) = (name(), identifier());
    let attempt = AttemptId { case: &case, folder: "case_1", number: 1, identifier: &identifier };
    let path = folders.stage_of(attempt);
    let precious = folder.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("file"), "keep me").unwrap();
    folders.create(&path).unwrap();
    fs::remove_dir(&path).unwrap();
    std::os::unix::fs::symlink(&precious, &path).unwrap();
    assert!(matches!(folders.keep(&path, attempt, &[]), Err(FoldersError::Io { .. })));
    assert!(precious.join("file").exists() && !output.join("s").exists());
}

#[test]
fn a_name_cannot_lead_out_of_a_root() {
    for (name, safe) in [("../../escape", "_.._.._escape"), ("", "_"), (".", "_."), ("a/b\n", "a_b_")] {
        assert_eq!(component(name), safe, "{name:?}");
    }
}

#[test]
fn nothing_outside_the_stage_root_is_renamed_or_removed() {
    let (folder, stage, output) = roots();
    let folders = Folders::open(&stage, &output).unwrap();
    let elsewhere = folder.path().join("elsewhere/build");
    fs::create_dir_all(&elsewhere).unwrap();
    assert!(matches!(folders.tear_down(&elsewhere), Err(FoldersError::Outside { .. })));
    assert!(elsewhere.is_dir());
    let within = stage.join("s/build");
    fs::create_dir_all(&within).unwrap();
    assert!(is_available(&within));
    Folders::give_up(&within).unwrap();
    assert!(!is_available(&within) && within.is_dir());
    folders.tear_down(&within).unwrap();
    assert_eq!(fs::read_dir(stage.join("s")).unwrap().count(), 0);
}

#[test]
fn a_pass_keeps_the_files_that_its_check_names_and_none_of_an_earlier_pass() {
    let (folder, stage, output) = roots();
    let (case, identifier) = (name(), identifier());
    let attempt = AttemptId { case: &case, folder: "case_1", number: 1, identifier: &identifier };
    for (keeps_stages, kept) in [(false, ["deep/er/data", "link"]), (true, ["a", "link"]), (false, ["a", "deep/er/more"])] {
        let folders = Folders::open(&stage, &output).unwrap().keeping_stages(keeps_stages);
        let path = folders.stage_of(attempt);
        folders.create(&path).unwrap();
        fs::create_dir_all(path.join("deep/er")).unwrap();
        for file in ["a", "deep/er/data", "deep/er/more", "deep/x", LOG_FILE] {
            fs::write(path.join(file), file).unwrap();
        }
        std::os::unix::fs::symlink("a", path.join("link")).unwrap();
        let there = folders.keep(&path, attempt, &kept.map(PathBuf::from)).unwrap();
        let mut found = files(&there, &there);
        found.sort();
        let mut expected = [kept[0], kept[1], LOG_FILE].map(PathBuf::from);
        expected.sort();
        assert_eq!(found, expected);
        if kept.contains(&"link") {
            assert_eq!(fs::read_to_string(there.join("link")).unwrap(), "a", "a link is kept as its file");
        }
        assert_eq!(path.join("deep/x").exists(), keeps_stages);
    }
    drop(folder);
}

/// All files below a folder.
fn files(folder: &Path, root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path(), root));
        } else {
            found.push(entry.path().strip_prefix(root).unwrap().to_owned());
        }
    }
    found
}
