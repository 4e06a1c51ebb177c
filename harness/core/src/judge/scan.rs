//! The search: all patterns of a case over one stdout, in one pass.
//!
//! A section is read in blocks of whole lines that fit a processor's cache, and every pattern that sees no further than
//! a line searches the block while it is there. The others search the section's whole text, one after the other. Both
//! ways give the same matches: a block ends before its last newline, so that `$`, `^$` and `\b` see at its edge what
//! they would see in the whole text. Nothing is copied, and a search keeps what it folds, never its matches.

use super::{figures::Figures, matches::Matches};
use crate::{
    pattern::{Next, Pattern, Reach},
    stdout::Stdout,
};
use regex::bytes::CaptureLocations;

/// The size of a block, in bytes: with it, five patterns over 1 GiB took 0.7 CPU seconds.
pub(super) const BLOCK: usize = 256 << 10;

/// How many matches are looked at between two questions for the time.
const MATCHES_PER_QUESTION: u32 = 4096;

/// One pattern on its way through a stdout.
#[derive(Debug)]
pub(super) struct Search {
    pub pattern: Pattern,
    /// The number of the text that it searches.
    pub view: usize,
    pub fold: Fold,
}

/// What a search makes of its matches.
#[derive(Debug)]
pub(super) enum Fold {
    /// Whether, how often and where.
    Matches(Matches),
    /// Figures.
    Figures(Box<Figures>),
}

/// The time is up. Which search was at work, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Interrupted {
    pub search: usize,
    pub section: usize,
}

/// A stretch of one section: a block, or all of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch<'t> {
    /// Where its section stands in the stdout.
    pub section: usize,
    /// Where it begins in its section, in bytes.
    pub offset: usize,
    pub text: &'t [u8],
}

/// Asks for the time, but not at every match.
pub(super) struct Watch<'e> {
    expired: &'e dyn Fn() -> bool,
    /// Told which search is at work, and in which section.
    at: &'e dyn Fn(usize, usize),
    matches: u32,
}

/// The time is up.
#[derive(Debug)]
pub(super) struct Expired;

impl<'e> Watch<'e> {
    pub(super) fn new(expired: &'e dyn Fn() -> bool) -> Self {
        Self { expired, at: &|_, _| {}, matches: 0 }
    }

    /// The same, and says where the search is.
    pub(super) fn telling(expired: &'e dyn Fn() -> bool, at: &'e dyn Fn(usize, usize)) -> Self {
        Self { at, ..Self::new(expired) }
    }

    /// To be called at every match.
    pub(super) fn tick(&mut self) -> Result<(), Expired> {
        self.matches += 1;
        if self.matches < MATCHES_PER_QUESTION {
            return Ok(());
        }
        self.matches = 0;
        self.ask()
    }

    /// To be called before anything long.
    pub(super) fn ask(&self) -> Result<(), Expired> {
        if (self.expired)() { Err(Expired) } else { Ok(()) }
    }
}

impl Search {
    fn enter(&mut self, section: usize) {
        if let Fold::Figures(figures) = &mut self.fold {
            figures.enter(section);
        }
    }

    /// Whether more text of this section can change anything.
    fn is_done(&self) -> bool {
        match &self.fold {
            Fold::Matches(matches) => matches.is_done(),
            Fold::Figures(figures) => figures.is_done(),
        }
    }

    fn feed(&mut self, stretch: Stretch<'_>, watch: &mut Watch<'_>) -> Result<(), Expired> {
        if self.is_done() {
            return Ok(());
        }
        watch.ask()?;
        match &mut self.fold {
            Fold::Matches(matches) => matches.feed(&self.pattern, stretch, watch),
            Fold::Figures(figures) => figures.feed(&self.pattern, stretch.text, watch),
        }
    }
}

impl Search {
    /// The answer to a question of sanity.
    pub(super) fn into_answer(self) -> Option<(Pattern, Matches)> {
        match self.fold {
            Fold::Matches(matches) => Some((self.pattern, matches)),
            Fold::Figures(_) => None,
        }
    }

    /// The figures of a variable.
    pub(super) fn into_figures(self) -> Option<Figures> {
        match self.fold {
            Fold::Figures(figures) => Some(*figures),
            Fold::Matches(_) => None,
        }
    }
}

/// Runs all searches of a view over all its sections, in stdout order.
pub(super) fn scan(
    (view, stdout): (usize, &Stdout),
    searches: &mut [Search],
    block: usize,
    watch: &mut Watch<'_>,
) -> Result<(), Interrupted> {
    for (section, meta) in stdout.sections().iter().enumerate() {
        let text = stdout.section(meta);
        for search in searches.iter_mut().filter(|search| search.view == view) {
            search.enter(section);
        }
        let mut run = |reach: Reach, stretch: Stretch<'_>| -> Result<bool, Interrupted> {
            let mut left = false;
            let is_meant = |search: &Search| search.view == view && search.pattern.reach() == reach;
            for (number, search) in searches.iter_mut().enumerate().filter(|(_, search)| is_meant(search)) {
                (watch.at)(number, section);
                search.feed(stretch, watch).map_err(|Expired| Interrupted { search: number, section })?;
                left |= !search.is_done();
            }
            Ok(left)
        };
        for (offset, text) in blocks(text, block) {
            if !run(Reach::Line, Stretch { section, offset, text })? {
                break;
            }
        }
        run(Reach::Text, Stretch { section, offset: 0, text })?;
    }
    Ok(())
}

/// Blocks of whole lines without the newline that ends them, with their offsets; longer than `size` only where a line
/// is. The last one is the rest of the text, final newline included, so that what follows it is searched as well.
fn blocks(text: &[u8], size: usize) -> impl Iterator<Item = (usize, &[u8])> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let at = next?;
        let rest = &text[at..];
        let cut = (rest.len() > size)
            .then(|| memchr::memrchr(b'\n', &rest[..size]).or_else(|| memchr::memchr(b'\n', &rest[size..]).map(|n| n + size)))
            .flatten();
        next = cut.map(|cut| at + cut + 1);
        Some((at, &rest[..cut.unwrap_or(rest.len())]))
    })
}

/// Shows every match with its groups to `visit`, until that says to stop. The matches are those of `find_iter`: an
/// empty one right behind another is none.
pub(super) fn each_capture(
    pattern: &Pattern,
    text: &[u8],
    mut visit: impl FnMut(&CaptureLocations) -> Result<bool, Expired>,
) -> Result<(), Expired> {
    let mut groups = pattern.regex().capture_locations();
    let mut next = Next::default();
    while next.of(|at| pattern.captures_read_at(&mut groups, text, at)).is_some() {
        if !visit(&groups)? {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::matches::Question;
    use proptest::prelude::*;
    use std::cell::Cell;

    /// Where `find_iter` on the whole text and on the blocks finds a pattern.
    fn both_ways(pattern: &Pattern, text: &[u8], size: usize) -> [Vec<(usize, usize)>; 2] {
        let find =
            |at: usize, text: &[u8]| pattern.regex().find_iter(text).map(|m| (at + m.start(), at + m.end())).collect::<Vec<_>>();
        [find(0, text), blocks(text, size).flat_map(|(at, block)| find(at, block)).collect()]
    }

    #[test]
    fn blocks_are_whole_lines_and_nothing_is_lost() {
        let cut = |text: &'static str, size| {
            blocks(text.as_bytes(), size).map(|(at, block)| (at, std::str::from_utf8(block).unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(cut("", 4), [(0, "")]);
        assert_eq!(cut("ab", 4), [(0, "ab")]);
        assert_eq!(cut("ab\ncd\n", 8), [(0, "ab\ncd\n")]);
        assert_eq!(cut("ab\ncd\n", 4), [(0, "ab"), (3, "cd\n")]);
        assert_eq!(cut("a\nb\ncd\ne", 4), [(0, "a\nb"), (4, "cd\ne")]);
        assert_eq!(cut("longer than it\nb\n", 4), [(0, "longer than it"), (15, "b\n")]);
        assert_eq!(cut("no newline at all", 4), [(0, "no newline at all")]);
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
            "|",
        ]);
        prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    fn log() -> impl Strategy<Value = Vec<u8>> {
        let piece =
            prop::sample::select(vec![&b"a"[..], b"b", b"1", b" ", b"\n", b"\n\n", b"\r\n", b"\xff", "é".as_bytes(), b"ab 12"]);
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
        fn captures_are_visited_where_find_iter_finds(pattern in pattern(), log in log()) {
            let Ok(pattern) = Pattern::compile(&pattern) else { return Ok(()) };
            let mut visited = Vec::new();
            let end = each_capture(&pattern, &log, |groups| {
                visited.push(groups.get(0).unwrap());
                Ok(true)
            });
            prop_assert!(end.is_ok());
            let found: Vec<_> = pattern.regex().find_iter(&log).map(|m| (m.start(), m.end())).collect();
            prop_assert_eq!(visited, found, "{:?}", pattern.as_str());
        }
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
        ]);
        (start, prop::collection::vec(rest, 0..5)).prop_map(|(start, rest)| format!(r"{start}{}(?:\n)?", rest.concat()))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn a_pattern_that_begins_with_a_literal_is_found_where_the_regex_finds_it(pattern in wide_pattern(), log in log()) {
            let Ok(pattern) = Pattern::compile(&pattern) else { return Ok(()) };
            prop_assert_eq!(pattern.reach(), Reach::Text);
            let places = |found: regex::bytes::Match<'_>| (found.start(), found.end());
            let expected: Vec<_> = pattern.regex().find_iter(&log).map(places).collect();
            prop_assert_eq!(pattern.find_iter(&log).map(places).collect::<Vec<_>>(), &expected[..], "{:?}", pattern.as_str());
            let mut visited = Vec::new();
            let end = each_capture(&pattern, &log, |groups| {
                visited.push(groups.get(0).unwrap());
                Ok(true)
            });
            prop_assert!(end.is_ok());
            prop_assert_eq!(visited, expected, "{:?}", pattern.as_str());
        }
    }

    fn search(pattern: &str, question: Question) -> Search {
        Search { pattern: Pattern::compile(pattern).unwrap(), view: 0, fold: Fold::Matches(Matches::new(question)) }
    }

    #[test]
    fn a_search_that_knows_its_answer_reads_no_further() {
        let stdout = Stdout::of("a\n".repeat(1000));
        let asked = Cell::new(0);
        let count = || {
            asked.set(asked.get() + 1);
            false
        };
        let mut searches = [search("a", Question::Whether), search(r"\Aa", Question::Where)];
        assert_eq!(scan((0, &stdout), &mut searches, 10, &mut Watch::new(&count)), Ok(()));
        assert_eq!(asked.get(), 2, "one block and one whole text");
        let mut searches = [search("b", Question::Whether)];
        assert_eq!(scan((0, &stdout), &mut searches, 10, &mut Watch::new(&count)), Ok(()));
        assert!(asked.get() > 100, "{} blocks", asked.get());
    }

    #[test]
    fn the_time_is_asked_for_in_every_block_and_among_many_matches() {
        let run = |pattern: &str, lines: usize, patience: u32| {
            let left = Cell::new(patience);
            let expired = || left.replace(left.get().saturating_sub(1)) == 0;
            let mut searches = [search("never", Question::Whether), search(pattern, Question::HowOften)];
            scan((0, &Stdout::of("ab\n".repeat(lines))), &mut searches, 30, &mut Watch::new(&expired))
        };
        assert_eq!(run("a", 100, 1000), Ok(()));
        assert_eq!(run("a", 100, 7), Err(Interrupted { search: 1, section: 0 }));
        assert_eq!(run("a", 100, 8), Err(Interrupted { search: 0, section: 0 }));
        // The second pattern searches the whole text at one go: only its matches can be interrupted.
        let many = MATCHES_PER_QUESTION as usize;
        assert_eq!(run(r"a(?s:.)", many / 2, u32::MAX), Ok(()));
        let blocks_of_the_first = u32::try_from(blocks("ab\n".repeat(2 * many).as_bytes(), 30).count()).unwrap();
        assert_eq!(run(r"a(?s:.)", 2 * many, blocks_of_the_first + 1), Err(Interrupted { search: 1, section: 0 }));
    }
}
