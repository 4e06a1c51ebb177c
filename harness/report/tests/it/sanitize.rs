//! Nothing that a job writes may move a cursor, set a title or reorder a line.

use crate::sample::{after, case, figure, screen, session};
use muster_core::{
    case::SessionId,
    job::scheduler::SectionExit,
    result::{CaseResult, Outcome, Phase, Session, SessionState},
    rules::perf::{Measurement, Verdict},
};
use muster_report::{
    Paint, Results, annotations, failure, json, junit,
    listing::{self, ListedCase},
    page, perflog,
    performance::{self, Format},
    progress,
    results::{self, ListedSession},
    retries, statistics,
    style::{one_line, sanitize},
    summary,
};
use proptest::prelude::*;

#[test]
fn escape_sequences_go_and_their_text_stays() {
    let rows = [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[?25lhidden cursor\x1b[2J", "hidden cursor"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never ends\nnext", "0;never ends\nnext"),
        ("\x1bPq sixel \x1b\\after", "after"),
        ("\u{9b}31mred\u{9d}0;title\u{9c}after", "redafter"),
        ("\x1b(Bcharset\x1b7\x1b8\x1bM", "charset"),
        ("\x1b", ""),
        ("\x1b[", ""),
        ("\x1b[31", ""),
        ("\x1b[31\nm", "\nm"),
        ("\x1b\x1b[31mtwice", "twice"),
        ("10%\r20%\r\nend", "10%\n20%\nend"),
        ("bell\x07 back\x08 nul\0 del\x7f", "bell back nul del"),
        ("\u{202e}txt.exe\u{2066}\u{200f}", "txt.exe"),
        ("caf\u{e9} \u{1f980} e\u{301}", "caf\u{e9} \u{1f980} e\u{301}"),
    ];
    for (text, clean) in rows {
        assert_eq!(sanitize(text), clean, "{text:?}");
    }
    assert_eq!(one_line("two\nlines\tand\x1b[2J a tab\n"), "two lines and a tab");
}

/// Text in which controls and the letters of escape sequences are frequent.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>(),
        proptest::char::range('\0', '\u{a0}'),
        Just('\x1b'),
        Just('['),
        Just(']'),
        Just('\\'),
        proptest::char::range('\u{2020}', '\u{2070}'),
    ];
    proptest::collection::vec(piece, 0..200).prop_map(String::from_iter)
}

proptest! {
    #[test]
    fn no_control_character_is_left(text in hostile()) {
        let clean = sanitize(&text);
        prop_assert!(!clean.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{clean:?}");
        prop_assert!(!clean.contains(['\u{202e}', '\u{2066}', '\u{2028}']), "{clean:?}");
        prop_assert_eq!(sanitize(&clean), clean.as_ref());
        prop_assert!(!one_line(&text).contains(|c: char| c.is_control()));
    }

    #[test]
    fn text_without_controls_is_unchanged(text in "[ -~\u{e0}-\u{1ff}\n\t]*") {
        prop_assert_eq!(sanitize(&text), text.as_str());
    }
}

/// A case of which every text was written by somebody hostile.
fn hostile_case(evil: &str, outcome: Outcome) -> CaseResult {
    let text = || evil.to_owned();
    let mut case = case(evil, &[(evil, evil)], outcome, Phase::Sanity);
    let name = &mut case.name;
    name.hash = text();
    for part in [&mut name.system, &mut name.partition, &mut name.environ] {
        *part = text();
    }
    case.about.descr = text();
    case.about.file = text();
    case.about.tags = vec![text()];
    case.about.maintainers = vec![text()];
    let (section, node) = (Some(text()), Some("n".to_owned()));
    let figure = figure(evil, f64::NAN, evil, Some((1.0, None, None)));
    let figure = Measurement { key: Some(text()), section, node, verdict: Verdict::Xpass(text()), ..figure };
    CaseResult {
        cause: Some(text()),
        warnings: vec![text()],
        nodes: vec![text()],
        exits: vec![SectionExit { section: text(), node: Some(text() + "n"), ..SectionExit::default() }],
        measurements: vec![figure.clone(), Measurement { section: None, node: None, ..figure.clone() }, figure],
        folder: Some(text().into()),
        log_tail: Some(text()),
        look: vec![text()],
        delete: vec![text()],
        leftovers: vec![text()],
        ..case
    }
}

/// Every text of this crate, without colours.
fn every_text(case: &CaseResult, session: &Session) -> Vec<String> {
    let (results, screen) = (Results::new(session, [case, case]), screen(80));
    let header =
        progress::Header { session, num_checks: 1, stage: &session.host, output: &session.host, database: &session.host };
    let listed =
        [ListedCase { name: case.name.clone(), about: case.about.clone(), skip: None, is_fixture: false, needs: vec![] }];
    let stored = [ListedSession { session, state: SessionState::Running, counts: results.counts() }];
    let mut texts = vec![
        progress::header(&header, &screen),
        progress::started(&case.name, Paint::OFF),
        progress::finished(case, 1, 1, Paint::OFF),
        progress::ended(&results, after(1.0), &screen),
        failure::report(&results, std::slice::from_ref(&session.host), &screen),
        summary::summary(&results, after(1.0)),
        summary::leftovers(&results, &screen),
        results::list(&stored, false, after(1.0), &screen),
        results::show(&results, &[], SessionState::Ended, after(1.0), &screen),
        json::report(&results, None).unwrap(),
        listing::describe(&listed).unwrap(),
    ];
    let templates = page::Templates::new([]).unwrap();
    let reader = page::Reader { rerun_options: vec![session.host.clone()], zone: screen.zone.clone() };
    texts.push(templates.html(&results, &reader).unwrap());
    texts.push(templates.markdown(&results, &reader).unwrap());
    texts.push(junit::report(&results, std::slice::from_ref(&session.host)).unwrap());
    texts.push(retries::report(&results, &screen));
    texts.push(statistics::report(&results, &screen));
    texts.push(annotations::github(&results, |case| annotations::Position { file: case.about.file.clone(), line: None }));
    texts.extend(
        perflog::additions(&results)
            .iter()
            .map(|addition| perflog::appended(addition, perflog::Continued::New).unwrap().unwrap()),
    );
    for list in [listing::checks, listing::cases] {
        texts.extend([false, true].map(|is_detailed| list(&listed, is_detailed, Paint::OFF)));
    }
    texts.push(listing::tags(&listed, Paint::OFF));
    texts.extend(
        [Format::Pretty, Format::Plain, Format::Csv].map(|format| performance::report(&results, format, &screen).unwrap()),
    );
    texts
}

#[test]
fn no_text_lets_anybody_speak_to_the_terminal() {
    let evil = "x\x1b[2Jx\x1b]0;t\x07\u{9b}31m\u{7f}\u{202e}\r\n\t\x08x";
    let session = Session {
        id: SessionId(evil.into()),
        command: vec![evil.into()],
        system: evil.into(),
        user: evil.into(),
        host: evil.into(),
        workdir: evil.into(),
        version: evil.into(),
        ..session()
    };
    let is_evil = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
    for outcome in [Outcome::Pass, Outcome::Abort, Outcome::Stopped(evil.into())] {
        for text in every_text(&hostile_case(evil, outcome), &session) {
            // The ends of lines in CSV are CRLF.
            assert!(!text.replace("\r\n", "\n").contains(is_evil), "{text:?}");
        }
    }
}
