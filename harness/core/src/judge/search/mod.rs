//! The search: all patterns of a case over one stdout, in one pass.
//!
//! A section is read in blocks of whole lines that fit a processor's cache, and every pattern that sees no further than
//! a line searches the block while it is there. The others search the section's whole text, one after the other. Both
//! ways give the same matches: a block ends before its last newline, so that `$`, `^$` and `\b` see at its edge what
//! they would see in the whole text. Nothing is copied, and a search keeps its accumulator, never its matches.

pub(super) mod figures;
pub mod lines;
pub(super) mod matches;

use crate::job::stdout::Stdout;
use figures::Figures;
use lines::blocks;
use matches::Matches;
use muster_text::pattern::{Haystack, Next, Pattern, Reach};
use regex::bytes::CaptureLocations;

/// The size of a block, in bytes: with it, five patterns over 1 GiB took 0.7 CPU seconds.
pub(super) const BLOCK: usize = 256 << 10;

/// One pattern and what it has found so far.
#[derive(Debug)]
pub(super) struct Search {
    pub pattern: Pattern,
    /// The number of the text that it searches.
    pub view: usize,
    pub accumulator: Accumulator,
}

/// Collects the matches of a search.
#[derive(Debug)]
pub(super) enum Accumulator {
    Matches(Matches),
    Figures(Box<Figures>),
}

/// A stretch of one section: a block, or all of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch<'t> {
    /// Number of the section.
    pub section: usize,
    /// Byte offset in the section.
    pub offset: usize,
    pub text: Haystack<'t>,
}

/// Called with the number of the search and of its section.
pub(super) type OnProgress<'e> = &'e dyn Fn(usize, usize);

impl Search {
    fn enter(&mut self, section: usize) {
        if let Accumulator::Figures(figures) = &mut self.accumulator {
            figures.enter(section);
        }
    }

    /// Whether more text of this section can change anything.
    fn is_done(&self) -> bool {
        match &self.accumulator {
            Accumulator::Matches(matches) => matches.is_done(),
            Accumulator::Figures(figures) => figures.is_done(),
        }
    }

    fn feed(&mut self, stretch: Stretch<'_>) {
        match &mut self.accumulator {
            Accumulator::Matches(matches) => matches.feed(&self.pattern, stretch),
            Accumulator::Figures(figures) => figures.feed(&self.pattern, stretch.text),
        }
    }

    /// The answer to a question of sanity.
    pub(super) fn into_answer(self) -> Option<(Pattern, Matches)> {
        match self.accumulator {
            Accumulator::Matches(matches) => Some((self.pattern, matches)),
            Accumulator::Figures(_) => None,
        }
    }

    /// The figures of a variable.
    pub(super) fn into_figures(self) -> Option<Figures> {
        match self.accumulator {
            Accumulator::Figures(figures) => Some(*figures),
            Accumulator::Matches(_) => None,
        }
    }
}

/// Runs all searches of a view over all its sections, in stdout order.
pub(super) fn scan((view, stdout): (usize, &Stdout), searches: &mut [Search], block: usize, on_progress: OnProgress<'_>) {
    for (section, meta) in stdout.sections().iter().enumerate() {
        let text = stdout.section(meta);
        for search in searches.iter_mut().filter(|search| search.view == view) {
            search.enter(section);
        }
        let is_meant = |search: &Search, reach| search.view == view && search.pattern.reach() == reach && !search.is_done();
        let sees_text = searches.iter().any(|search| is_meant(search, Reach::Text));
        // Whether more text of this section can change anything.
        let mut run = |reach: Reach, stretch: Stretch<'_>| {
            let mut left = false;
            for (number, search) in searches.iter_mut().enumerate().filter(|(_, search)| is_meant(search, reach)) {
                on_progress(number, section);
                search.feed(stretch);
                left |= !search.is_done();
            }
            left
        };
        let (mut has_returns, mut is_read) = (false, true);
        for (offset, text) in blocks(text, block) {
            has_returns |= text.has_returns;
            if !run(Reach::Line, Stretch { section, offset, text }) {
                is_read = false;
                break;
            }
        }
        if is_read || has_returns {
            stdout.searched().set_has_returns(section, has_returns);
        }
        if sees_text {
            run(Reach::Text, Stretch { section, offset: 0, text: stdout.searched().section(section) });
        }
    }
}

/// Calls `visit` with the groups of every match, until it returns false. The matches are those of `find_iter`: an
/// empty match right after another does not count.
pub(super) fn each_capture(pattern: &Pattern, text: Haystack<'_>, mut visit: impl FnMut(&CaptureLocations) -> bool) {
    let mut groups = pattern.locations(text);
    let mut next = Next::default();
    while next.of(|at| pattern.captures_read_at(&mut groups, text, at)).is_some() && visit(&groups) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{case::Identifier, job::stdout::SectionOrigin, judge::search::matches::Question};
    use proptest::prelude::*;
    use std::cell::Cell;

    /// Where `find_iter` on the whole text and on the blocks finds a pattern.
    fn both_ways(pattern: &Pattern, text: &[u8], size: usize) -> [Vec<(usize, usize)>; 2] {
        let find =
            |at: usize, text: Haystack<'_>| pattern.find_iter(text).map(|m| (at + m.start(), at + m.end())).collect::<Vec<_>>();
        [find(0, Haystack::of(text)), blocks(text, size).flat_map(|(at, block)| find(at, block)).collect()]
    }

    #[test]
    fn blocks_are_whole_lines_and_nothing_is_lost() {
        let cut = |text: &'static str, size| {
            blocks(text.as_bytes(), size).map(|(at, block)| (at, std::str::from_utf8(block.bytes).unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(cut("", 4), [(0, "")]);
        assert_eq!(cut("ab", 4), [(0, "ab")]);
        assert_eq!(cut("ab\ncd\n", 8), [(0, "ab\ncd\n")]);
        assert_eq!(cut("ab\ncd\n", 4), [(0, "ab"), (3, "cd\n")]);
        assert_eq!(cut("a\nb\ncd\ne", 4), [(0, "a\nb"), (4, "cd\ne")]);
        assert_eq!(cut("longer than it\nb\n", 4), [(0, "longer than it"), (15, "b\n")]);
        assert_eq!(cut("no newline at all", 4), [(0, "no newline at all")]);
        assert_eq!(cut("ab\r\nc\rd\n\r\n", 5), [(0, "ab"), (4, "c\rd"), (8, "\r\n")]);
        assert_eq!(cut("\n\n\n\n\n", 1), [(0, ""), (1, ""), (2, ""), (3, ""), (4, "\n")]);
    }

    #[test]
    fn blocks_of_any_size_give_the_matches_of_the_whole_text() {
        let patterns =
            ["^$", "^", "$", r"\bfoo\b", r"\Bo", "o*", "x?", r"^\S*$", "last = ([0-9])", ".*", "", r"\<foo\>", "é|foo"];
        for text in ["a b\n\nfoo foo\nlast = 3\n\n x\nfoo", "\n", "", "é\nfoo\r\n\r\n"] {
            for tail in ["", "\n", "\n\n"] {
                let text = format!("{text}{tail}");
                for pattern in patterns.map(|pattern| Pattern::compile(pattern).unwrap()) {
                    assert_eq!(pattern.reach(), Reach::Line, "{}", pattern.as_str());
                    for size in 1..text.len() + 2 {
                        let [whole, cut] = both_ways(&pattern, text.as_bytes(), size);
                        assert_eq!(whole, cut, "{:?} in {text:?} by {size}", pattern.as_str());
                    }
                }
            }
        }
    }

    /// Pieces of patterns and of logs that meet at the edges of lines.
    fn pattern() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "a",
            "b",
            "é",
            " ",
            ".",
            r"\b",
            r"\B",
            "^",
            "$",
            "a*",
            "b?",
            r"\d+",
            r"\S*?",
            "[ab]+",
            "(?:a|b )",
            r"\w{1,2}",
            r"(\d)",
            r"\<",
            "(?i:A)",
            r"(?-u:\b)",
            r"(?-u:[\x80-\xff])",
            r"([^\n]*)",
            r"(a\r|b)?",
            "(a){0}",
            "|",
        ]);
        prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    fn log() -> impl Strategy<Value = Vec<u8>> {
        let piece =
            prop::sample::select(vec![&b"a"[..], b"b", b"1", b" ", b"\n", b"\r", b"\r\n", b"\xff", "é".as_bytes(), b"ab 12"]);
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn a_pattern_of_the_line_finds_the_same_in_blocks(pattern in pattern(), log in log(), size in 1_usize..24) {
            let Ok(pattern) = Pattern::compile(&pattern) else { return Ok(()) };
            prop_assert_eq!(pattern.reach(), Reach::Line);
            let [whole, cut] = both_ways(&pattern, &log, size);
            prop_assert_eq!(whole, cut, "{:?}", pattern.as_str());
        }

        #[test]
        fn captures_are_visited_where_captures_iter_finds(pattern in pattern(), log in log()) {
            let Ok(pattern) = Pattern::compile(&pattern) else { return Ok(()) };
            let [expected, visited] = places(&pattern, &log);
            prop_assert_eq!(visited, expected, "{:?}", pattern.as_str());
        }
    }

    /// Of a match, where each of its groups is.
    type Places = Vec<Option<(usize, usize)>>;

    /// The places of the groups of all matches: what the regex finds in the text with newlines alone, and what is visited.
    fn places(pattern: &Pattern, log: &[u8]) -> [Vec<Places>; 2] {
        let text = Haystack::of(log);
        let shown = |place: usize| text.between(0, place).len();
        let universal = String::from_utf8(log.iter().flat_map(|byte| byte.escape_ascii()).collect()).unwrap();
        let universal = universal.replace(r"\r\n", r"\n").replace(r"\r", r"\n");
        assert_eq!(text.between(0, log.len()).escape_ascii().to_string(), universal);
        let all = text.between(0, log.len());
        let found = pattern
            .regex()
            .captures_iter(&all)
            .map(|groups| groups.iter().map(|group| Some((group?.start(), group?.end()))).collect());
        let found = found.collect();
        let mut visited = Vec::new();
        each_capture(pattern, text, |groups| {
            let place = |group| groups.get(group).map(|(start, end)| (shown(start), shown(end)));
            visited.push((0..groups.len()).map(place).collect());
            true
        });
        [found, visited]
    }

    /// Patterns that can see the whole text; most begin with a literal.
    fn wide_pattern() -> impl Strategy<Value = String> {
        let start = prop::sample::select(vec!["a", "ab", "^a", r"\ba", "(a)", "a{2}", "(?:ab|a)", "a+", "a?", "(?i:a)", ""]);
        let rest = prop::sample::select(vec![
            r"[\s\S]*?",
            r"[\s\S]*",
            r"(?s:.)",
            r"\s",
            r"\s*",
            r"[^b]*?",
            "b",
            "a",
            r"(\d+)",
            "$",
            r"\z",
            "(?:b|1)",
            "(b)?",
            r"\b",
            r"\B",
            "^",
            "(.*)",
            "\n",
            r"\r?\n",
            r"(\n|b){0,2}",
            r"(?-u:[^a])",
            r"(?R:$)",
            r"(x){0}([^1]+)",
        ]);
        (start, prop::collection::vec(rest, 0..5)).prop_map(|(start, rest)| format!(r"{start}{}(?:\n)?", rest.concat()))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn a_pattern_that_begins_with_a_literal_is_found_where_the_regex_finds_it(pattern in wide_pattern(), log in log()) {
            let Ok(pattern) = Pattern::compile(&pattern) else { return Ok(()) };
            prop_assert_eq!(pattern.reach(), Reach::Text);
            let [expected, visited] = places(&pattern, &log);
            prop_assert_eq!(visited, &expected[..], "{:?}", pattern.as_str());
            let found: Vec<_> = pattern.find_iter(Haystack::of(&log)).collect();
            prop_assert_eq!(found.len(), expected.len(), "{:?}", pattern.as_str());
            prop_assert_eq!(pattern.is_match(Haystack::of(&log)), !expected.is_empty());
        }
    }

    fn search(pattern: &str, question: Question) -> Search {
        Search { pattern: Pattern::compile(pattern).unwrap(), view: 0, accumulator: Accumulator::Matches(Matches::new(question)) }
    }

    #[test]
    fn a_search_that_knows_its_answer_reads_no_further() {
        let stdout = Stdout::of("a\n".repeat(1000));
        let reported = Cell::new(0);
        let count = |_, _| reported.set(reported.get() + 1);
        let mut searches = [search("a", Question::Whether), search(r"\Aa", Question::Where)];
        scan((0, &stdout), &mut searches, 10, &count);
        assert_eq!(reported.get(), 2, "one block and one whole text");
        let mut searches = [search("b", Question::Whether)];
        scan((0, &stdout), &mut searches, 10, &count);
        assert!(reported.get() > 100, "{} blocks", reported.get());
    }

    #[test]
    fn every_search_says_in_which_section_it_is_at_work() {
        let text = |name: &str| (SectionOrigin::new(name.to_owned()), b"ab\n".to_vec());
        let stdout = Stdout::assemble(&Identifier::from_letters([0; 8]), vec![text("x"), text("y")]);
        let reported = std::cell::RefCell::new(Vec::new());
        let mut searches = [search("never", Question::Whether), search("a", Question::HowOften)];
        scan((0, &stdout), &mut searches, 30, &|search, section| reported.borrow_mut().push((search, section)));
        reported.borrow_mut().dedup();
        assert_eq!(*reported.borrow(), [(0, 0), (1, 0), (0, 1), (1, 1)]);
    }
}
