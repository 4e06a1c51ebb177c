//! The files of `keep_files`, as an agent chooses them: by patterns of its shell.
//!
//! A pattern may fit more than its glob does, and never less: a session keeps what the globs fit of what has come back.

use muster_text::glob::plain;
use std::fmt::Write as _;

/// The lines of the list: two patterns for each glob, since a folder covers what is in it.
pub(crate) fn lines(globs: &[String]) -> String {
    globs.iter().map(|glob| pattern(plain(glob))).fold(String::new(), |mut lines, pattern| {
        let _ = write!(lines, "0 KEEP {pattern}\n0 KEEP {pattern}/*\n");
        lines
    })
}

/// A `*` of the shell fits slashes, too. What could mean something else to it, or to the list, is any letter.
fn pattern(glob: &str) -> String {
    let mut pattern = String::new();
    let mut rest = glob.chars();
    while let Some(letter) = rest.next() {
        match letter {
            '*' => pattern.push('*'),
            // `**/x` is `x`, too.
            '/' if pattern.ends_with('*') => {}
            '[' | '{' => {
                pattern.push('*');
                return pattern;
            }
            '\\' => {
                rest.next();
                pattern.push('*');
            }
            letter if letter.is_ascii_alphanumeric() || "/._-".contains(letter) => pattern.push(letter),
            // Letters beyond ASCII may be several bytes for its shell.
            _ => pattern.push('*'),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_what_its_glob_fits() {
        let rows = [
            ("out.txt", "out.txt"),
            ("./out/", "out"),
            ("*.csv", "*.csv"),
            ("**/*.csv", "***.csv"),
            ("out/**", "out/**"),
            ("a/**/b", "a/**b"),
            ("rank?", "rank*"),
            ("rank{0,1}.[ab]", "rank*"),
            (r"a\*b", "a*b"),
            ("a b$(x)", "a*b**x*"),
            ("é", "*"),
        ];
        for (glob, expected) in rows {
            assert_eq!(pattern(plain(glob)), expected, "{glob}");
        }
        assert_eq!(lines(&["out".to_owned()]), "0 KEEP out\n0 KEEP out/*\n");
    }
}
