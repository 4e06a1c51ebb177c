//! Nothing that a job writes may move a cursor, set a title or reorder a line.

use muster_report::style::{one_line, sanitize};
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
