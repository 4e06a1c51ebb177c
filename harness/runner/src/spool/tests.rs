use super::*;
use muster_core::scheduler::Exit;
use tempfile::TempDir;

/// What stands before the log of the section `host`.
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
    // pieces with their places, what is kept of them, gaps
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
        spool.take_all([Chunk::Open(origin("pod", 0))]);
        for (at, text) in pieces {
            spool.take_all([bytes("pod", *at, text)]);
        }
        let stdout = spool.assemble(&[]).unwrap();
        let section = &stdout.sections()[0];
        assert_eq!(stdout.section(section), expected.as_bytes());
        assert_eq!(section.gaps, gaps);
    }
}

#[test]
fn marks_say_from_where_to_go_on() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    spool.take_all([bytes("b", 0, "four"), bytes("a", 0, "six by"), bytes("b", 4, "!")]);
    let marks: Vec<_> = spool.marks().into_iter().map(|mark| (mark.section, mark.offset)).collect();
    assert_eq!(marks, [("b".to_owned(), 5), ("a".to_owned(), 6)]);
    assert_eq!(spool.growing(), Some(folder.path().join(".rfm_spool.0")));
}

#[test]
fn sections_stand_in_the_contract_s_order_with_their_exits() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    spool.take_all([
        Chunk::Open(origin("worker", 1)),
        Chunk::Open(origin("launcher", 0)),
        bytes("worker", 0, "w"),
        bytes("launcher", 0, "l\n"),
    ]);
    let exit = |section: &str, node: &str, code| SectionExit {
        section: section.into(),
        node: Some(node.into()),
        exit: Exit::Code(code),
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
fn a_pod_that_was_replaced_under_its_name_stands_after_what_is_judged() {
    let folder = TempDir::new().unwrap();
    let life = |uid: &str, created| SectionOrigin { uid: Some(uid.into()), created: Timestamp(created), ..origin("db-0", 0) };
    let mut spool = spool(&folder);
    for (uid, created, figure) in [("u1", 1, 50), ("u2", 2, 75), ("u3", 2, 100)] {
        spool.take_all([Chunk::Open(life(uid, created)), bytes(uid, 0, &format!("figure {figure}\n"))]);
        spool.take_all([Chunk::Gap { section: "u1".into(), why: "cut".into() }, Chunk::End { section: uid.into() }]);
    }
    let exit = |section: &str, code| SectionExit { section: section.into(), node: None, exit: Exit::Code(code) };
    let exits = [exit("db-0", 0), exit("db-0#2", 9)];
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
        spool.take_all([Chunk::Open(origin), bytes(uid, 0, &format!("of {uid}\n"))]);
    }
    let ending = Ending { judged: vec!["u2".into()], ..Ending::default() };
    let stdout = spool.assemble_ended(&ending).unwrap();
    assert_eq!(text(&stdout), "aaaaaaaa\n\n-------db-0-------\nof u2\n\n-------db-0#2-------\nof u1\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no spool is left");
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
        spool.take_all([Chunk::Open(origin("host", 0)), file("host", path.clone(), FRAMING.len() as u64, len)]);
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
    spool.take_all([Chunk::Open(origin("host", 0)), file("host", path, FRAMING.len() as u64, 17)]);
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
    spool.take_all((0..4096).map(|n| Chunk::Open(origin(&title(n), 0))));
    spool.take_all((0..4096).rev().map(|n| Chunk::Gap { section: title(n), why: title(n) }));
    assert_eq!(spool.sections.len(), 4096);
    assert!(spool.sections.iter().all(|section| section.gaps == [section.id.clone()]));
}
