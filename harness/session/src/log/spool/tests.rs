//! Longer than other files: whatever a spool does shares the few helpers at its top.

use super::*;
use muster_core::{
    job::{
        scheduler::{Exit, JobPod},
        stdout::Stdout,
    },
    rules::LogAction,
};
use tempfile::TempDir;

/// The text before the log of the section `host`.
const FRAMING: &str = "aaaaaaaa\n\n-------host-------\n";

fn spool(folder: &TempDir) -> Spool {
    Spool::new(folder.path().to_owned(), Identifier::from_letters([0; 8]))
}

fn origin(name: &str, role: u32) -> SectionOrigin {
    SectionOrigin { role, ..SectionOrigin::new(name) }
}

fn bytes(section: &str, at: u64, text: &str) -> Chunk {
    Chunk::Bytes { section: section.into(), at, data: text.into(), time: Some(Timestamp(7)) }
}

fn file(section: &str, path: PathBuf, start: u64, len: u64) -> Chunk {
    Chunk::File { section: section.into(), path, start, len }
}

fn text(stdout: &Stdout) -> &str {
    std::str::from_utf8(stdout.bytes()).unwrap()
}

#[test]
fn what_a_source_says_twice_is_kept_once_and_what_it_leaves_out_is_a_gap() {
    // pieces with their folders, what is kept of them, gaps
    type Row = (&'static [(u64, &'static str)], &'static str, &'static [&'static str]);
    let rows: [Row; 5] = [
        (&[(0, "abc"), (3, "def\n")], "abcdef\n", &[]),
        (&[(0, "abc"), (0, "abcdef\n")], "abcdef\n", &[]),
        (&[(0, "abc"), (1, "bc")], "abc", &[]),
        (&[(0, "abc"), (5, "f\n")], "abcf\n", &["2 bytes after byte 3 were lost"]),
        (&[(4, "x")], "x", &["4 bytes after byte 0 were lost"]),
    ];
    for (pieces, expected, gaps) in rows {
        let folder = TempDir::new().unwrap();
        let mut spool = spool(&folder);
        spool.take_all([Chunk::Open(Channel::Log, origin("pod", 0))]);
        for (at, text) in pieces {
            spool.take_all([bytes("pod", *at, text)]);
        }
        let stdout = spool.assemble(&[]).unwrap();
        let section = &stdout.sections()[0];
        assert_eq!(stdout.section(section), expected.as_bytes());
        assert_eq!(section.gaps, gaps);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_no_gap_of_the_log() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    std::os::unix::fs::symlink("/dev/full", spool.path(0)).unwrap();
    spool.take_all([bytes("pod", 0, "abc\n")]);
    assert!(spool.is_closed(), "what holds the log is not told that it was taken to its end");
    let error = spool.assemble_ended(&Ending::default()).unwrap_err();
    assert!(is_disk_full(&error), "{error}");
}

#[test]
fn marks_say_from_where_to_go_on() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    spool.take_all([bytes("b", 0, "four"), bytes("a", 0, "six by"), bytes("b", 4, "!")]);
    let marks: Vec<_> = spool.marks().into_iter().map(|mark| (mark.section, mark.offset)).collect();
    assert_eq!(marks, [("b".to_owned(), 5), ("a".to_owned(), 6)]);
}

#[test]
fn sections_stand_in_the_contract_s_order_with_their_exits() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    spool.take_all([
        Chunk::Open(Channel::Log, origin("worker", 1)),
        Chunk::Open(Channel::Log, origin("launcher", 0)),
        bytes("worker", 0, "w"),
        bytes("launcher", 0, "l\n"),
    ]);
    let exit = |section: &str, node: &str, code| SectionExit {
        section: section.into(),
        node: Some(node.into()),
        exit: Exit::Code(code),
        ..SectionExit::default()
    };
    let stdout = spool.assemble(&[exit("worker", "n1", 1), exit("launcher", "n2", 0)]).unwrap();
    assert_eq!(text(&stdout), "aaaaaaaa\n\n-------launcher-------\nl\n\n-------worker-------\nw\n");
    let found: Vec<_> =
        stdout.sections().iter().map(|s| (s.origin.title(), s.exit, s.origin.node.clone(), s.bytes, s.lines)).collect();
    assert_eq!(
        found,
        [
            ("launcher".into(), Some(Exit::Code(0)), Some("n2".into()), 2, Some(1)),
            ("worker".into(), Some(Exit::Code(1)), Some("n1".into()), 1, Some(1)),
        ]
    );
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn an_earlier_start_is_not_the_log_of_a_start_of_which_nothing_came() {
    for (ended, gaps, limit) in [(0, 0, None), (1, 0, None), (2, 1, None), (2, 1, Some(8)), (2, 1, Some(7))] {
        let folder = TempDir::new().unwrap();
        let start = |start| SectionOrigin { uid: Some("u1".into()), start, ..origin("p", 0) };
        let mut spool = spool(&folder).limited(limit.map(|bytes| LogLimit { bytes, action: LogAction::Warn }));
        for opened in [start(0), start(1)] {
            let id = opened.id();
            spool.take_all([Chunk::Open(Channel::Log, opened), bytes(&id, 0, "log\n"), Chunk::End { section: id }]);
        }
        let exit = SectionExit { section: "p".into(), section_id: Some(start(ended).id()), ..SectionExit::default() };
        let pods = vec![JobPod { uid: "u1".into(), name: "p".into(), later: 0, judged: true }];
        let stdout = spool.assemble_ended(&Ending { exits: vec![exit], pods, ..Ending::default() }).unwrap();
        let judged: Vec<_> = stdout.sections().iter().map(|section| section.origin.start).collect();
        assert_eq!((judged, stdout.gaps().count()), (vec![ended.min(1)], gaps), "{ended}");
    }
}

#[test]
fn a_pod_that_was_replaced_under_its_name_stands_after_what_is_judged() {
    let folder = TempDir::new().unwrap();
    let life = |uid: &str, created| SectionOrigin { uid: Some(uid.into()), created: Timestamp(created), ..origin("db-0", 0) };
    let mut spool = spool(&folder);
    for (uid, created, figure) in [("u1", 1, 50), ("u2", 2, 75), ("u3", 2, 100)] {
        spool.take_all([Chunk::Open(Channel::Log, life(uid, created)), bytes(uid, 0, &format!("figure {figure}\n"))]);
        spool.take_all([Chunk::Gap { section: "u1".into(), why: "cut".into() }, Chunk::End { section: uid.into() }]);
    }
    let exit = |section: &str, uid: &str, code| SectionExit {
        section: section.into(),
        section_id: Some(uid.into()),
        exit: Exit::Code(code),
        ..SectionExit::default()
    };
    let exits = [exit("db-0", "u3", 0), exit("db-0#2", "u2", 9)];
    let stdout = spool.assemble(&exits).unwrap();
    let expected =
        "aaaaaaaa\n\n-------db-0-------\nfigure 100\n\n-------db-0#2-------\nfigure 75\n\n-------db-0#3-------\nfigure 50\n";
    assert_eq!(text(&stdout), expected);
    assert_eq!((stdout.sections().len(), stdout.gaps().count()), (1, 0), "only the last is judged");
    let (again, ending) = Spool::reopened(folder.path(), &Identifier::from_letters([0; 8])).unwrap();
    assert_eq!((&ending.exits[..], &ending.superseded[..]), (&exits[..1], &exits[1..]));
    let stdout = again.assemble(ending.exits.iter().chain(&ending.superseded)).unwrap();
    assert_eq!(text(&stdout), expected, "as another process puts it together");
}

#[test]
fn a_pod_that_took_a_name_after_the_end_is_no_part_of_the_job() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    for uid in ["u1", "u2", "u3"] {
        let origin = SectionOrigin { uid: Some(uid.into()), ..origin("db-0", 0) };
        spool.take_all([Chunk::Open(Channel::Log, origin), bytes(uid, 0, &format!("of {uid}\n"))]);
    }
    let ending = Ending { pods: vec![pod("u1", 1, false), pod("u2", 0, true)], ..Ending::default() };
    let stdout = spool.assemble_ended(&ending).unwrap();
    assert_eq!(text(&stdout), "aaaaaaaa\n\n-------db-0-------\nof u2\n\n-------db-0#2-------\nof u1\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no spool is left");
}

fn pod(uid: &str, later: u32, judged: bool) -> JobPod {
    JobPod { uid: uid.into(), name: "db-0".into(), later, judged }
}

#[test]
fn a_log_that_fills_the_limit_is_not_judged_in_the_place_of_the_one_that_replaced_it() {
    // limit, what the second pod of the name says, another pod that is judged, what is judged, gaps, warnings
    type Row<'a> = (u64, Option<LogAction>, Option<&'a str>, Option<&'a str>, &'a str, &'a [&'a str], &'a [&'a str]);
    let begun = "the log is longer than 40 bytes (max_log): what follows was not kept";
    let rest = "no line of it was kept: the log of the case is longer than 40 bytes (max_log)";
    let unread = "nothing of it was read";
    let rows: [Row<'_>; 6] = [
        (9999, None, Some("figure 100\n"), None, "figure 100\n", &[], &[]),
        (9999, None, None, None, "", &[unread], &[]),
        (40, Some(LogAction::Warn), None, None, "", &[rest], &[]),
        (40, Some(LogAction::Invalid), None, None, "", &[rest], &[]),
        (40, Some(LogAction::Warn), None, Some("of b\n"), "of b\n", &[], &[rest, begun]),
        (40, Some(LogAction::Warn), Some("figure 100\n"), None, "", &[rest], &[begun]),
    ];
    for (bytes_kept, action, second, other, judged, gaps, warnings) in rows {
        let folder = TempDir::new().unwrap();
        let life = |uid: &str, name: &str| SectionOrigin { uid: Some(uid.into()), ..origin(name, 0) };
        let mut spool = spool(&folder).limited(action.map(|action| LogLimit { bytes: bytes_kept, action }));
        if let Some(other) = other {
            spool.take_all([Chunk::Open(Channel::Log, life("v1", "other")), bytes("v1", 0, other)]);
        }
        spool.take_all([Chunk::Open(Channel::Log, life("u1", "db-0")), bytes("u1", 0, &"figure 50\n".repeat(5))]);
        if let Some(second) = second {
            spool.take_all([Chunk::Open(Channel::Log, life("u2", "db-0")), bytes("u2", 0, second)]);
        }
        let mut pods = vec![pod("u1", 1, false), pod("u2", 0, true)];
        pods.extend(other.map(|_| JobPod { name: "other".into(), ..pod("v1", 0, true) }));
        let exit =
            SectionExit { section: "db-0".into(), section_id: Some("u2".into()), exit: Exit::Code(0), ..SectionExit::default() };
        let ending = Ending { pods, exits: vec![exit], ..Ending::default() };
        let stdout = spool.assemble_ended(&ending).unwrap();
        let seen: Vec<_> = stdout.sections().iter().map(|section| stdout.section(section)).collect();
        assert_eq!(String::from_utf8_lossy(&seen.concat()), judged, "{action:?}");
        assert_eq!(stdout.gaps().map(|(_, why)| why).collect::<Vec<_>>(), gaps, "{action:?} {other:?}");
        let told: Vec<_> = stdout.warnings().map(|(_, why)| why).collect();
        assert_eq!(told, warnings, "{action:?} {other:?}");
        let ends: Vec<_> = stdout.sections().iter().map(|section| (section.origin.title(), section.exit)).collect();
        assert!(ends.contains(&("db-0".to_owned(), Some(Exit::Code(0)))), "{ends:?}");
        assert_eq!(stdout.superseded()[0].exit, None, "the exit of the second is not the first one's");
    }
}

#[test]
fn a_file_with_its_framing_is_used_where_it_is() {
    let rows: [(&str, u64, &str, &[&str]); 5] = [
        // content, length as told, text of the section, gaps
        ("one\ntwo\n", 8, "one\ntwo\n", &[]),
        ("one\ntwo", 7, "one\ntwo", &[]),
        ("", 0, "", &[]),
        ("one\n", 9, "one\n", &["the log has 5 bytes less than it had"]),
        ("one\nmore\n", 4, "one\n", &[]),
    ];
    for (content, len, expected, gaps) in rows {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("rfm_job.out");
        fs::write(&path, format!("{FRAMING}{content}")).unwrap();
        let mut spool = spool(&folder);
        spool.take_all([Chunk::Open(Channel::Log, origin("host", 0)), file("host", path.clone(), FRAMING.len() as u64, len)]);
        let stdout = spool.assemble(&[]).unwrap();
        assert_eq!(stdout.section(&stdout.sections()[0]), expected.as_bytes(), "{content:?}");
        assert_eq!(stdout.sections()[0].gaps, gaps, "{content:?}");
        assert!(content.is_empty() || fs::read_to_string(&path).unwrap().ends_with('\n'), "{content:?}");
    }
}

#[test]
fn a_file_that_lost_its_first_line_says_so() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rfm_job.out");
    fs::write(&path, "something else that is as long as the framing\n").unwrap();
    let mut spool = spool(&folder);
    spool.take_all([Chunk::Open(Channel::Log, origin("host", 0)), file("host", path, FRAMING.len() as u64, 17)]);
    let stdout = spool.assemble(&[]).unwrap();
    assert_eq!(stdout.gaps().collect::<Vec<_>>(), [("host".to_owned(), "the log lost its first line")]);
}

#[test]
fn a_file_without_framing_is_copied_even_onto_itself() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rfm_job.out");
    fs::write(&path, "bare").unwrap();
    let mut spool = spool(&folder);
    spool.take_all([file("host", path.clone(), 0, 4), Chunk::Gap { section: "host".into(), why: "cut".into() }]);
    let stdout = spool.assemble(&[]).unwrap();
    assert_eq!(text(&stdout), "aaaaaaaa\n\n-------host-------\nbare\n");
    assert_eq!(fs::read_to_string(path).unwrap(), text(&stdout));
    assert_eq!(stdout.sections()[0].gaps, ["cut"]);
}

#[test]
fn a_log_that_never_came_is_a_gap() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    spool.cut_short("nothing was sent");
    let stdout = spool.assemble(&[]).unwrap();
    assert_eq!(stdout.gaps().collect::<Vec<_>>(), [("aaaaaaaa".to_owned(), "nothing was sent")]);
}

#[test]
fn four_thousand_sections_are_found_by_their_titles() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    let title = |n: u32| format!("pod-{}", n * 7919 % 4096);
    spool.take_all((0..4096).map(|n| Chunk::Open(Channel::Log, origin(&title(n), 0))));
    spool.take_all((0..4096).rev().map(|n| Chunk::Gap { section: title(n), why: title(n) }));
    assert_eq!(spool.sections.len(), 4096);
    assert!(spool.sections.iter().all(|section| section.gaps == [section.origin.title()]));
}

/// Three sections that arrived in another order than theirs, of so many bytes together, and what they become.
fn three(folder: &TempDir, len: usize) -> (Spool, Vec<SectionExit>, String) {
    let mut spool = spool(folder);
    let mut whole = "aaaaaaaa\n".to_owned();
    let texts: Vec<String> = (0..3).map(|n| format!("{n}, and so on\n").repeat(len / 45 + 1)).collect();
    spool.take_all((0..3).rev().map(|n| Chunk::Open(Channel::Log, origin(&format!("pod-{n}"), n))));
    for n in [1, 0, 2] {
        spool.take_all([bytes(&format!("pod-{n}"), 0, &texts[n])]);
    }
    for (n, text) in texts.iter().enumerate() {
        whole.extend(["\n-------", &format!("pod-{n}"), "-------\n", text]);
    }
    let exit = |n| SectionExit { section: format!("pod-{n}"), exit: Exit::Code(0), ..SectionExit::default() };
    (spool, (0..3).map(exit).collect(), whole)
}

/// What all files in a folder take on disk.
fn on_disk(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let files = fs::read_dir(folder).unwrap().flatten();
    files.map(|file| file.metadata().map_or(0, |file| file.blocks() * 512)).sum()
}

#[test]
fn a_log_takes_no_more_than_a_tenth_more_room_while_it_is_put_together() {
    let folder = TempDir::new().unwrap();
    let (mut spool, exits, whole) = three(&folder, 24 << 20);
    let (mut peak, mut pieces) = (on_disk(folder.path()), 0);
    let stdout = spool.assembled(&exits, &mut || {
        peak = peak.max(on_disk(folder.path()));
        pieces += 1;
    });
    assert!(text(&stdout.unwrap()) == whole);
    assert!(pieces > 10, "{pieces} pieces");
    assert!(peak * 10 <= whole.len() as u64 * 11, "{peak} bytes on disk for a log of {}", whole.len());
}

#[test]
fn the_only_section_of_a_log_is_not_copied() {
    use std::os::unix::fs::MetadataExt;
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    spool.take_all([Chunk::Open(Channel::Log, origin("host", 0)), bytes("host", 0, "one\n"), bytes("host", 4, "two")]);
    let inode = fs::metadata(folder.path().join(".rfm_spool.0")).unwrap().ino();
    let stdout = spool.assemble(&[]).unwrap();
    assert_eq!(text(&stdout), format!("{FRAMING}one\ntwo\n"));
    assert_eq!(fs::metadata(folder.path().join(LOG_FILE)).unwrap().ino(), inode);
}

#[test]
fn what_is_killed_while_a_log_is_put_together_is_finished_by_another() {
    for piece in [1, 2, 7, 13] {
        let folder = TempDir::new().unwrap();
        let (mut spool, exits, whole) = three(&folder, 2 << 20);
        let mut pieces = 0;
        let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = spool.assembled(&exits, &mut || {
                pieces += 1;
                if pieces == piece {
                    std::panic::resume_unwind(Box::new("killed"));
                }
            });
        }));
        assert!(killed.is_err(), "only {pieces} pieces");
        assert!(!folder.path().join(LOG_FILE).exists());
        let (spool, ending) = Spool::reopened(folder.path(), &Identifier::from_letters([0; 8])).expect("it is whole");
        assert_eq!(ending.exits, exits);
        let stdout = spool.assemble(&[]).unwrap();
        assert!(text(&stdout) == whole, "after {piece} pieces");
        let titles: Vec<_> = stdout.sections().iter().map(|section| section.origin.title()).collect();
        assert_eq!(titles, ["pod-0", "pod-1", "pod-2"]);
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["pods.json", "rfm_job.out"]);
    }
}

#[test]
fn of_a_log_beyond_its_limit_the_beginning_is_kept() {
    let told = "the log is longer than 5 bytes (max_log): what follows was not kept";
    for (action, gaps, warnings) in [(LogAction::Invalid, 2, 0), (LogAction::Warn, 0, 2)] {
        let folder = TempDir::new().unwrap();
        let mut spool = spool(&folder).limited(Some(LogLimit { bytes: 5, action }));
        spool.take_all([
            Chunk::Open(Channel::Log, origin("a", 0)),
            Chunk::Open(Channel::Log, origin("b", 1)),
            bytes("a", 0, "ab\n"),
        ]);
        assert!(!spool.is_closed());
        spool.take_all([bytes("b", 0, "c\nd"), bytes("a", 3, "\n")]);
        assert!(spool.is_closed());
        let stdout = spool.assemble(&[]).unwrap();
        assert_eq!(text(&stdout), "aaaaaaaa\n\n-------a-------\nab\n\n-------b-------\nc\n");
        assert_eq!(stdout.gaps().map(|(_, why)| why).collect::<Vec<_>>(), vec![told; gaps]);
        assert_eq!(stdout.warnings().map(|(_, why)| why).collect::<Vec<_>>(), vec![told; warnings]);
    }
}

#[test]
fn beyond_the_limit_no_part_of_a_line_is_kept() {
    // pieces of section a, whether it has ended, and its log; of section b likewise
    type Side<'a> = (&'a [&'a str], bool, &'a str);
    let rows: [(Side<'_>, Side<'_>); 7] = [
        ((&["v=1\nv=1000000\n"], true, "v=1\n"), (&[], false, "")),
        ((&["v=1\nv=10", "00000\n"], false, "v=1\n"), (&[], false, "")),
        ((&["v=1\nv=10", "00", "0\n"], true, "v=1\n"), (&[], false, "")),
        ((&["v=100000000\n"], true, ""), (&[], false, "")),
        ((&["v=1\nv=2\n", "v=3\n"], true, "v=1\nv=2\n"), (&[], false, "")),
        ((&["v=1"], true, "v=1"), (&["v=20\nv=3000\n"], true, "v=20\n")),
        ((&["v=1"], false, ""), (&["v=20\nv=3000\n"], true, "v=20\n")),
    ];
    for (a, b) in rows {
        let folder = TempDir::new().unwrap();
        let mut spool = spool(&folder).limited(Some(LogLimit { bytes: 8, action: LogAction::Warn }));
        for (section, (pieces, ended, _)) in [("a", a), ("b", b)] {
            let mut at = 0;
            spool.take_all([Chunk::Open(Channel::Log, origin(section, 0))]);
            for piece in pieces {
                spool.take_all([bytes(section, at, piece)]);
                at += piece.len() as u64;
            }
            spool.take_all(ended.then(|| Chunk::End { section: section.into() }));
        }
        assert!(spool.is_closed());
        let stdout = spool.assemble(&[]).unwrap();
        for (section, (.., kept)) in stdout.sections().iter().zip([a, b]) {
            assert_eq!(stdout.section(section), kept.as_bytes(), "{a:?} {b:?}");
            assert_eq!(section.lines, Some(kept.lines().count() as u64), "{a:?} {b:?}");
        }
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["pods.json", "rfm_job.out"]);
    }
}

#[test]
fn a_file_beyond_the_limit_is_cut_off() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(LOG_FILE);
    fs::write(&path, format!("{FRAMING}one\ntwo\n")).unwrap();
    let mut spool = spool(&folder).limited(Some(LogLimit { bytes: 6, action: LogAction::Invalid }));
    let whole = file("host", path.clone(), FRAMING.len() as u64, 8);
    spool.take_all([Chunk::Open(Channel::Log, origin("host", 0)), whole, Chunk::End { section: "host".into() }]);
    let stdout = spool.assemble(&[]).unwrap();
    assert_eq!(stdout.section(&stdout.sections()[0]), b"one\n");
    assert_eq!(fs::read_to_string(path).unwrap(), format!("{FRAMING}one\n"));
    assert_eq!(stdout.gaps().count(), 1);
    let copied = folder.path().join("elsewhere");
    fs::write(&copied, "one\ntwo\n").unwrap();
    let mut spool = Spool::new(folder.path().join("."), Identifier::from_letters([0; 8]))
        .limited(Some(LogLimit { bytes: 6, action: LogAction::Invalid }));
    spool.take_all([file("host", copied, 0, 8), Chunk::End { section: "host".into() }]);
    let stdout = spool.assemble(&[]).unwrap();
    assert_eq!(text(&stdout), format!("{FRAMING}one\n"));
}
