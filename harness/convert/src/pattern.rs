//! Regular expressions: Python's made Muster's, or the reason why that cannot be.

use muster_text::pattern::Pattern;

/// What does not fit, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub why: String,
    /// A suggestion of what to do.
    pub instead: Option<String>,
}

/// A pattern of Python's `re` as one of ours. The dialects differ in what may stand without a backslash.
pub(crate) fn translate(pattern: &str) -> Result<String, Misfit> {
    let text = rewrite(pattern);
    match Pattern::compile(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Misfit { why: format!("the pattern does not work in Muster: {}", error.message), instead: error.hint }),
    }
}

/// Writes what Python reads as a letter so that it is one here too.
fn rewrite(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let letters: Vec<char> = pattern.chars().collect();
    let (mut at, mut class): (usize, Option<usize>) = (0, None);
    while let Some(&letter) = letters.get(at) {
        match (letter, class) {
            ('\\', _) => {
                at += 1;
                match letters.get(at) {
                    Some('Z') if class.is_none() => out.push_str(r"\z"),
                    // These are borders of words in Rust.
                    Some(bracket @ ('<' | '>')) => out.push(*bracket),
                    Some(escaped) => out.extend(['\\', *escaped]),
                    None => out.push('\\'),
                }
            }
            ('[', None) => {
                class = Some(at + usize::from(letters.get(at + 1) == Some(&'^')) + 1);
                out.push('[');
            }
            (']', Some(first)) if at > first || letters.get(first) != Some(&']') => {
                class = None;
                out.push(']');
            }
            ('[', Some(_)) => out.push_str(r"\["),
            ('&' | '~' | '-', Some(_)) if letters.get(at + 1) == Some(&letter) => {
                out.extend(['\\', letter]);
            }
            ('{', None) if !is_repetition(&letters[at..]) => out.push_str(r"\{"),
            ('}', None) if !closes_repetition(&letters[..at]) => out.push_str(r"\}"),
            _ => out.push(letter),
        }
        at += 1;
    }
    out
}

/// `{2}`, `{2,}`, `{2,3}` and, in Python, `{,3}`.
fn is_repetition(rest: &[char]) -> bool {
    let inner: String = rest.iter().skip(1).take_while(|letter| **letter != '}').collect();
    let closed = rest.contains(&'}');
    let digits = |text: &str| text.chars().all(|letter| letter.is_ascii_digit());
    closed && !inner.is_empty() && inner != "," && inner.split(',').count() <= 2 && inner.split(',').all(digits)
}

fn closes_repetition(before: &[char]) -> bool {
    let open = before.iter().rposition(|letter| *letter == '{');
    open.is_some_and(|open| {
        let rest: Vec<char> = before[open..].iter().copied().chain(['}']).collect();
        is_repetition(&rest) && (open == 0 || before[open - 1] != '\\')
    })
}

#[cfg(test)]
mod tests {
    use super::translate;

    #[test]
    fn what_python_reads_as_a_letter_is_one_here_too() {
        let rows = [
            (r"a (\d+\.\d+) b", r"a (\d+\.\d+) b"),
            (r"end\Z", r"end\z"),
            (r"\<tag\>", "<tag>"),
            (r"{'a': 1}", r"\{'a': 1\}"),
            (r"x{2,3}", r"x{2,3}"),
            (r"[[\]]", r"[\[\]]"),
            (r"[a-z--]", r"[a-z\--]"),
            (r"(?P<value>\S+) GB\/s", r"(?P<value>\S+) GB\/s"),
            (r"\$\{x\}", r"\$\{x\}"),
        ];
        for (python, ours) in rows {
            assert_eq!(translate(python).as_deref(), Ok(ours), "{python}");
        }
    }

    #[test]
    fn what_needs_backtracking_is_told() {
        for pattern in [r"(a)\1", r"a(?=b)", r"(?<!x)y"] {
            let misfit = translate(pattern).expect_err(pattern);
            assert!(misfit.why.starts_with("the pattern does not work in Muster"), "{misfit:?}");
        }
    }
}
