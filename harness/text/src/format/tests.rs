use super::*;
use proptest::{prelude::*, sample::Index};
use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

fn laid(text: &str) -> String {
    let once = format(FileId::default(), text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    assert_eq!(format(FileId::default(), &once).as_ref(), Ok(&once), "the second time, after\n{text}");
    once
}

#[test]
fn blanks_and_indentation_are_put_in_order_and_nothing_else_is() {
    let written = include_str!("messy.yaml");
    insta::assert_snapshot!(laid(&format!("\u{feff}{}\n\n", written.replace('\n', "\r\n"))));
    assert_eq!(laid(&format!("\u{feff}{}\n\n", written.replace('\n', "\r\n"))), laid(written));
}

#[test]
fn a_file_with_mistakes_is_left_to_its_mistakes() {
    let Err(FormatError::Mistakes(mistakes)) = format(FileId::default(), "a: [1\nb: 2\n") else { panic!("it has mistakes") };
    assert_eq!(mistakes.len(), 1);
}

#[test]
fn nothing_stays_nothing() {
    assert_eq!([laid(""), laid("\n\n"), laid("# only\n")], ["", "", "# only\n"]);
}

/// All files of the repository that are YAML, but for templates that are not.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() && !entry.ends_with("target") && !entry.ends_with(".git") {
            files(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "yaml") {
            found.push(entry);
        }
    }
}

#[test]
fn every_check_and_site_that_is_shipped_is_laid_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![];
    for folder in ["checks", "site-config", "deploy", "harness"] {
        files(&root.join(folder), &mut found);
    }
    assert!(found.len() > 15, "{found:?}");
    for path in found {
        let text = std::fs::read_to_string(&path).expect("text");
        let formatted = laid(&text);
        let is_ours = path.ends_with("check.yaml") || path.to_string_lossy().ends_with(".check.yaml");
        if is_ours || path.parent().is_some_and(|folder| folder.ends_with("site-config")) {
            assert_eq!(formatted, text, "{}: run `muster check fmt`", path.display());
        }
    }
}

/// A value, and an unusual way to write it.
#[derive(Debug, Clone)]
enum Value {
    Plain,
    Quoted,
    Folded,
    Block(u8),
    Null,
    Seq(Vec<Value>),
    Map(Vec<Value>),
    Flow(Vec<Value>),
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Plain),
        Just(Value::Quoted),
        Just(Value::Folded),
        (0..6_u8).prop_map(Value::Block),
        Just(Value::Null)
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        let some = || prop::collection::vec(inner.clone(), 1..5);
        prop_oneof![some().prop_map(Value::Seq), some().prop_map(Value::Map), some().prop_map(Value::Flow)]
    })
}

/// Writes with blanks, comments and empty lines wherever they may be.
struct Untidy<'a> {
    text: String,
    whims: &'a [Index],
    at: usize,
    names: usize,
}

impl Untidy<'_> {
    fn whim(&mut self, choices: usize) -> usize {
        self.at += 1;
        self.whims[self.at % self.whims.len()].index(choices)
    }

    fn one_of(&mut self, texts: &[&str]) {
        let chosen = self.whim(texts.len());
        self.text += texts[chosen];
    }

    fn blanks(&mut self, least: usize) {
        let more = self.whim(3);
        self.text.extend(std::iter::repeat_n(' ', least + more));
    }

    fn end_of_line(&mut self, column: usize) {
        match self.whim(8) {
            0 => self.text += "   # a: comment\n",
            1 => self.text += " \n\n\n",
            2 => {
                self.text.push('\n');
                self.text.extend(std::iter::repeat_n(' ', column));
                self.text += "# of its own #x\n";
            }
            3 => self.text += "\t # - tab\n",
            _ => self.text.push('\n'),
        }
    }

    fn indent(&mut self, column: usize) {
        self.text.extend(std::iter::repeat_n(' ', column));
    }

    fn property(&mut self) {
        if self.whim(9) == 0 {
            self.names += 1;
            let _ = write!(self.text, "&n{}-x ", self.names);
            self.blanks(0);
        }
    }

    /// Behind a `-` or `:` in column `parent`.
    fn value(&mut self, value: &Value, parent: usize, is_item: bool) {
        match value {
            Value::Plain => {
                self.blanks(1);
                self.property();
                self.one_of(&["word", "5", "a b#c", "${{ x }}", "http://x:80/y", "-x"]);
                self.end_of_line(parent);
            }
            Value::Quoted => {
                self.blanks(1);
                self.property();
                self.one_of(&["'it''s # no comment: -'", r#""a \" \n b""#, "''", "'- [x]'"]);
                self.end_of_line(parent);
            }
            Value::Folded => {
                self.blanks(1);
                self.one_of(&["one\n", "'one \n", "\"one \\\n"]);
                let quote = self.text.rfind(['\'', '"']).filter(|at| self.text.len() - at < 9).map(|at| self.text.as_bytes()[at]);
                let deeper = self.whim(3);
                self.indent(parent + 1 + deeper);
                self.text += "two\n\n";
                self.indent(parent + 3);
                self.text += "three";
                self.text.extend(quote.map(char::from));
                self.end_of_line(parent);
            }
            Value::Block(kind) => {
                self.blanks(1);
                let explicit = 2 + self.whim(2);
                let digit = if *kind % 3 == 2 { explicit.to_string() } else { String::new() };
                self.one_of(&["|", ">"]);
                self.text += &digit;
                self.one_of(&["", "-", "+"]);
                self.one_of(&["\n", "  # header\n", "\n\n"]);
                self.indent(parent + explicit);
                self.text += "text # none\n";
                self.indent(parent + explicit + 3);
                self.text += "deeper: x  \n   \n\n";
                if *kind > 3 {
                    self.indent(parent + explicit);
                    self.text += "- last\n";
                }
            }
            Value::Null => self.end_of_line(parent),
            Value::Flow(items) => {
                self.blanks(1);
                self.property();
                self.flow(items, parent);
                self.end_of_line(parent);
            }
            Value::Seq(_) | Value::Map(_) => self.nested(value, parent, is_item),
        }
    }

    fn nested(&mut self, value: &Value, parent: usize, is_item: bool) {
        if is_item && self.whim(2) == 0 {
            let before = self.text.len();
            self.blanks(1);
            let column = parent + 1 + self.text.len() - before;
            return self.block(value, column, true);
        }
        self.blanks(1);
        self.property();
        self.end_of_line(parent);
        let is_level = !is_item && matches!(value, Value::Seq(_)) && self.whim(2) == 0;
        let column = parent + if is_level { 0 } else { 1 + self.whim(4) };
        self.block(value, column, false);
    }

    fn block(&mut self, value: &Value, column: usize, mut is_begun: bool) {
        let (Value::Seq(items) | Value::Map(items)) = value else { return self.value(value, column, false) };
        for item in items {
            if !std::mem::take(&mut is_begun) {
                self.indent(column);
            }
            if matches!(value, Value::Seq(_)) {
                self.text.push('-');
                self.value(item, column, true);
            } else {
                self.names += 1;
                let quote = if self.whim(3) == 0 { "'" } else { "" };
                let _ = write!(self.text, "{quote}k-{}{quote}", self.names);
                if self.whim(4) == 0 {
                    self.blanks(0);
                }
                self.text.push(':');
                self.value(item, column, false);
            }
        }
    }

    fn flow(&mut self, items: &[Value], parent: usize) {
        let is_map = self.whim(2) == 0;
        self.text.push(if is_map { '{' } else { '[' });
        for (at, item) in items.iter().enumerate() {
            self.space(parent);
            if is_map {
                self.names += 1;
                let _ = write!(self.text, "f{}: ", self.names);
                self.space(parent);
            }
            match item {
                Value::Seq(items) | Value::Map(items) | Value::Flow(items) => self.flow(items, parent),
                _ => self.one_of(&["w", "'q, # '", "5", "a b"]),
            }
            self.space(parent);
            if at + 1 < items.len() || self.whim(4) == 0 {
                self.text.push(',');
            }
        }
        self.space(parent);
        self.text.push(if is_map { '}' } else { ']' });
    }

    fn space(&mut self, parent: usize) {
        match self.whim(12) {
            0 => self.text += "  ",
            1 => {
                self.text += " # within\n";
                self.indent(parent + 2);
            }
            2 => {
                self.text += "\n\n";
                self.indent(parent + 5);
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 400 } else { 20_000 }))]

    #[test]
    fn whatever_the_layout_the_meaning_and_the_comments_stay(
        value in value(), whims in prop::collection::vec(any::<Index>(), 1..80)
    ) {
        let mut untidy = Untidy { text: String::new(), whims: &whims, at: 0, names: 0 };
        untidy.block(&Value::Map(vec![value.clone(), value]), 0, false);
        let text = untidy.text;
        match format(FileId::default(), &text) {
            Err(error) => prop_assert!(false, "{error:?}\n{text}"),
            Ok(once) => prop_assert_eq!(format(FileId::default(), &once), Ok(once), "{}", text),
        }
    }

    #[test]
    fn no_change_to_a_good_file_is_laid_out_differently_the_second_time(
        changes in prop::collection::vec((any::<Index>(), 0..9_usize, prop::sample::select(&PIECES[..])), 1..5)
    ) {
        let mut text = include_str!("messy.yaml").to_owned();
        for (at, length, piece) in changes {
            let boundary = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let (start, end) = { let at = at.index(text.len() + 1); (boundary(at), boundary(at + length)) };
            text.replace_range(start..end, piece);
        }
        if let Ok(once) = format(FileId::default(), &text) {
            prop_assert_eq!(format(FileId::default(), &once), Ok(once), "{}", text);
        }
    }
}

const PIECES: [&str; 24] = [
    "",
    "\n",
    "  ",
    "\t",
    ":",
    ": ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "'",
    "\"",
    "#",
    " # c\n",
    "&a ",
    "*my-anchor ",
    "!!str ",
    "|\n",
    ">-\n",
    "? ",
    "---\n",
    "é",
    "\r\n",
];
