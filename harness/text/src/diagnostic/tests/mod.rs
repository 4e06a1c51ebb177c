use super::*;

const A: &str = "name: a\nlist:\n  - one\n  - zwölf: x\nlast: y\n";

fn sources() -> Sources {
    let mut sources = Sources::default();
    sources.add("a.yaml", A);
    sources.add("b.yaml", "x: 1\ny: 2\n");
    sources
}

/// The place of a word in a file of `sources`.
fn at(file: u32, word: &str) -> Span {
    let sources = sources();
    let text = &sources.get(FileId(file)).unwrap().text;
    let start = u32::try_from(text.find(word).unwrap()).unwrap();
    Span { file: FileId(file), start, end: start + u32::try_from(word.len()).unwrap() }
}

fn plain(diagnostics: &[Diagnostic]) -> String {
    render(diagnostics, &sources(), false)
}

#[test]
fn a_mistake_shows_its_line_a_caret_and_a_hint() {
    let mistake = Diagnostic::error(at(0, "zwölf"), "unknown key `zwölf`").hint("did you mean `zwei`?");
    insta::assert_snapshot!(plain(&[mistake]), @"
    error: unknown key `zwölf`
     --> a.yaml:4:5
      |
    4 |   - zwölf: x
      |     ^^^^^
      |
      = help: did you mean `zwei`?

    error: 1 mistake in 1 file
    ");
}

#[test]
fn a_secret_is_neither_in_the_picture_nor_in_what_is_said() {
    let mut sources = Sources::default();
    let text = "db: postgres://ada:hunter1@h/x\njob-option: [password hunter2]\n";
    let file = sources.add("muster.yaml", text);
    let line = |start: u32| Span { file, start, end: start + 2 };
    let twice = Diagnostic::error(line(0), "unknown setting `db`");
    let said = Diagnostic::error(line(31), "invalid value 'password hunter2'").hint("not `password hunter2`");
    for shown in [render(&[twice.clone(), said.clone()], &sources, false), render_short(&[twice, said], &sources)] {
        assert!(!shown.contains("hunter") && shown.contains("'password ***'"), "{shown}");
    }
}

#[test]
fn a_second_place_stands_in_the_same_picture_or_in_one_of_its_own() {
    let near = Diagnostic::error(at(0, "last"), "two keys").related(at(0, "name"), "the first");
    let far = Diagnostic::error(at(0, "last"), "two files").related(at(1, "y"), "the other");
    insta::assert_snapshot!(plain(&[near, far]), @"
    error: two files
     --> a.yaml:5:1
      |
    5 | last: y
      | ^^^^
      |
     ::: b.yaml:2:1
      |
    2 | y: 2
      | - the other

    error: two keys
     --> a.yaml:5:1
      |
    1 | name: a
      | ---- the first
    ...
    5 | last: y
      | ^^^^

    error: 2 mistakes in 1 file
    ");
}

#[test]
fn mistakes_stand_in_the_order_of_files_and_places_and_once() {
    let last = Diagnostic::error(at(1, "y"), "last");
    let first = Diagnostic::error(at(0, "name"), "first");
    let warning = Diagnostic::warning(at(0, "list"), "only a warning");
    let general = Diagnostic::general("no place").hint("look elsewhere");
    let all = [last.clone(), warning, first, last, general];
    insta::assert_snapshot!(render_short(&all, &sources()), @"
    error: no place (look elsewhere)
    a.yaml:1:1: error: first
    a.yaml:2:1: warning: only a warning
    b.yaml:2:1: error: last
    ");
    let mut reversed = all.clone();
    reversed.reverse();
    assert_eq!(plain(&all), plain(&reversed));
    assert!(plain(&all).ends_with("\nerror: 3 mistakes in 2 files\n"), "{}", plain(&all));
}

#[test]
fn after_fifty_pictures_one_line_has_to_do() {
    let many: Vec<_> = (0..60).map(|n| Diagnostic::error(at(1, "x"), format!("mistake {n:02}"))).collect();
    let text = plain(&many);
    assert_eq!(text.matches(" --> b.yaml:1:1").count(), 50);
    assert!(text.ends_with("\nb.yaml:1:1: error: mistake 59\n\nerror: 60 mistakes in 1 file\n"), "{text}");
}

#[test]
fn what_counts_is_the_mistakes() {
    let warning = Diagnostic::warning(at(0, "name"), "w");
    for (diagnostics, last_line) in [
        (vec![], None),
        (vec![warning.clone()], Some("  | ^^^^")),
        (vec![Diagnostic::general("g"), warning], Some("error: 1 mistake")),
    ] {
        let text = plain(&diagnostics);
        assert_eq!(text.trim_end().lines().last(), last_line, "{text}");
    }
}

#[test]
fn of_a_value_over_several_lines_the_first_is_shown() {
    let list = Span { end: at(0, "last").start, ..at(0, "- one") };
    insta::assert_snapshot!(plain(&[Diagnostic::error(list, "a list")]), @"
    error: a list
     --> a.yaml:3:3
      |
    3 |   - one
      |   ^^^^^

    error: 1 mistake in 1 file
    ");
}

#[test]
fn nothing_from_a_file_moves_the_cursor() {
    let mut sources = Sources::default();
    let text = "a: \u{1b}[31mred\u{9b}2J\u{7}\r\n";
    let file = sources.add("evil\u{1b}[1m.yaml", text);
    let span = Span { file, start: 0, end: 1 };
    let mistake = Diagnostic::error(span, "key \u{1b}[5m").hint("\u{9b}1mhint\nmore").related(span, "\u{7}here");
    for text in [render(std::slice::from_ref(&mistake), &sources, false), render_short(&[mistake], &sources)] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}

#[test]
fn places_beyond_the_text_are_places_at_its_end() {
    let sources = sources();
    let long = A.len().try_into().unwrap();
    let middle_of_a_letter = at(0, "ö").start + 1;
    for (start, end, position) in [
        (0, 0, ("a.yaml", 1, 1)),
        (long, long, ("a.yaml", 6, 1)),
        (long + 50, long + 60, ("a.yaml", 6, 1)),
        (middle_of_a_letter, 3, ("a.yaml", 4, 7)),
    ] {
        let span = Span { file: FileId(0), start, end };
        assert_eq!(sources.position(span), Some(position));
        assert!(render(&[Diagnostic::error(span, "m")], &sources, false).contains(" --> a.yaml:"));
    }
    let nowhere = Span { file: FileId(9), start: 0, end: 0 };
    assert_eq!(sources.position(nowhere), None);
    assert_eq!(render_short(&[Diagnostic::error(nowhere, "m")], &sources), "error: m\n");
}

#[test]
fn colour_is_for_those_who_ask() {
    let mistake = [Diagnostic::error(at(0, "name"), "m")];
    assert!(render(&mistake, &sources(), true).contains("\u{1b}["));
    assert!(!render(&mistake, &sources(), false).contains('\u{1b}'));
}
