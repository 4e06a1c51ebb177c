//! Secrets that a job printed, or that stand on a command line, do not go on into reports that are passed around.
//!
//! Muster itself never writes the values of environment variables. This is the second line: what is *named* a secret
//! (`DB_PASSWORD=...`, `token: ...`), what an `Authorization` header or an address carries, and the token formats that
//! are recognised by their prefix. A secret that looks like nothing in particular cannot be found.

use muster_text::secret::is_secret_name;
use regex::{Captures, Regex};
use std::{borrow::Cow, sync::LazyLock};

pub use muster_core::secret::MASK;

/// Shorter values are counts and words, not secrets.
const LEAST: usize = 6;

static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = "password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?";
    // Names are ASCII, and so are their letters here: those of all of Unicode take 30 ms to compile.
    compiled(&format!(r#"(?i)(?-u:\b)((?:(?-u:[\w.-])*[_.-])?(?:{names})(?-u:\w)*["']?\s*[=:]\s*["']?)([^\s"'<>,;&]+)"#))
});

static KNOWN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i:(?-u:\b)(?:bearer|basic)\s+)[A-Za-z0-9+/=._~-]{8,}",
        r"|://[^/\s:@]*:[^/\s@]+@",
        r"|(?-u:\b(?:gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}))",
        r"|(?-u:\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)",
    ))
});

fn compiled(pattern: &str) -> Option<Regex> {
    // The patterns are ours and a test compiles them.
    Regex::new(pattern).ok()
}

/// The text with `***` in the place of what looks like a secret.
pub fn masked(text: &str) -> Cow<'_, str> {
    let text = replaced(&KNOWN, Cow::Borrowed(text), |found| {
        let whole = &found[0];
        match whole.split_once(char::is_whitespace) {
            Some((scheme, _)) => format!("{scheme} {MASK}"),
            None if whole.starts_with("://") => format!("://{MASK}@"),
            None => MASK.to_owned(),
        }
    });
    replaced(&NAMED, text, |found| {
        let (name, value) = (&found[1], &found[2]);
        let is_harmless = value.len() < LEAST || value.parse::<f64>().is_ok() || value.starts_with(['$', '*']);
        if is_harmless { found[0].to_owned() } else { format!("{name}{MASK}") }
    })
}

/// The flags that set something by its name, `-S NAME=VALUE`, with their letters.
const SETTING_FLAGS: [(&str, Option<char>); 4] =
    [("setvar", Some('S')), ("parameterize", Some('P')), ("job-option", Some('J')), ("session-extras", None)];
/// Letters of flags without a value, which may stand before them in one word: `-rSn=1`.
const BARE_LETTERS: [char; 5] = ['r', 'R', 'v', 'q', 'l'];
/// The value of `NAME=VALUE` if the name says that it is a secret, however short it is and whatever it looks like.
pub fn secret_of(setting: &str) -> Option<&str> {
    let (name, value) = setting.split_once('=')?;
    (is_secret_name(name.trim_end_matches('+')) && !value.is_empty()).then_some(value)
}

/// `NAME=VALUE` with `***` for the value of a secret.
pub fn masked_setting(setting: &str) -> Cow<'_, str> {
    match secret_of(setting) {
        Some(value) => format!("{}{MASK}", &setting[..setting.len() - value.len()]).into(),
        None => masked(setting),
    }
}

/// The `NAME=VALUE` in a word of a command line: its long flag (`setvar`), and where it begins. `before` is the word before it.
/// `None`: there is none.
pub fn setting_at(before: Option<&str>, word: &str) -> Option<(&'static str, usize)> {
    let long = |flag: &str| {
        let name = flag.strip_prefix("--")?;
        SETTING_FLAGS.iter().map(|(long, _)| *long).find(|long| *long == name)
    };
    if let Some((flag, _)) = word.split_once('=')
        && let Some(long) = long(flag)
    {
        return Some((long, flag.len() + 1));
    }
    // The letter of a flag that takes a setting, in a word such as `-rS`.
    let short = |word: &str| {
        let letters = word.strip_prefix('-')?;
        let at = letters.find(|c| !BARE_LETTERS.contains(&c))?;
        let letter = letters[at..].chars().next();
        let (long, _) = SETTING_FLAGS.iter().find(|(_, short)| short.is_some() && *short == letter)?;
        Some((*long, at + 2))
    };
    let short_alone = |word: &str| short(word).filter(|(_, at)| *at == word.len()).map(|(long, _)| long);
    if let Some(long) = before.and_then(|before| long(before).or_else(|| short_alone(before))) {
        return Some((long, 0));
    }
    short(word).filter(|(_, at)| *at < word.len())
}

/// The words of a command line without secrets.
pub fn masked_words(words: &[String]) -> Vec<String> {
    let masked = |(at, word): (usize, &String)| {
        let before = at.checked_sub(1).and_then(|at| words.get(at)).map(String::as_str);
        match setting_at(before, word) {
            Some((_, begin)) => format!("{}{}", &word[..begin], masked_setting(&word[begin..])),
            None => masked(word).into_owned(),
        }
    };
    words.iter().enumerate().map(masked).collect()
}

/// Whether there is something to mask.
pub fn has_secret(text: &str) -> bool {
    masked(text) != text
}

fn replaced<'a>(pattern: &LazyLock<Option<Regex>>, text: Cow<'a, str>, with: impl Fn(&Captures<'_>) -> String) -> Cow<'a, str> {
    match pattern.as_ref().filter(|pattern| pattern.is_match(&text)) {
        Some(pattern) => Cow::Owned(pattern.replace_all(&text, with).into_owned()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_a_secret_is_masked() {
        let rows = [
            ("export DB_PASSWORD=correct-horse", "export DB_PASSWORD=***"),
            ("AWS_SECRET_ACCESS_KEY: wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY: ***"),
            (r#"{"api_key": "0123456789abcdef"}"#, r#"{"api_key": "***"}"#),
            ("-S token='abcdef123'", "-S token='***'"),
            ("Authorization: Bearer abc.def-123456", "Authorization: Bearer ***"),
            ("https://ada:enigma99@git.example/x", "https://***@git.example/x"),
            ("glpat-abcdefghij0123456789", "***"),
            ("pushing with ghp_abcdefghijklmnopqrstuvwxyz012345 now", "pushing with *** now"),
            ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ", "***"),
        ];
        for (text, shown) in rows {
            assert_eq!(masked(text), shown);
            assert_eq!(masked(shown), shown, "masking twice changes nothing");
        }
    }

    #[test]
    fn what_a_command_line_sets_by_the_name_of_a_secret_is_masked_whatever_it_is() {
        let rows = [
            ("muster -r -S api_token=12345", "muster -r -S api_token=***"),
            ("-S n=1 -S sec.password=pa,ssword1", "-S n=1 -S sec.password=***"),
            ("-Stoken=hunter2secretA -Jtoken=x -Ppw=a,b", "-Stoken=*** -Jtoken=*** -Ppw=***"),
            ("-rSapi_token=x -rS api_key2=1234567890123456", "-rSapi_token=*** -rS api_key2=***"),
            (
                "--setvar=token=x --setvar token=y --job-option=env.pwd=1",
                "--setvar=token=*** --setvar token=*** --job-option=env.pwd=***",
            ),
            (
                "--session-extras token=x --session-extras=dbPassword=1",
                "--session-extras token=*** --session-extras=dbPassword=***",
            ),
            (
                "-S max_tokens=128 -S tokens=1 -S mode=token -n token=1 -S token=",
                "-S max_tokens=128 -S tokens=1 -S mode=token -n token=1 -S token=",
            ),
            ("-S url=https://ada:enigma99@git.example/x", "-S url=https://***@git.example/x"),
        ];
        for (line, shown) in rows {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let masked = masked_words(&words);
            assert_eq!(masked.join(" "), shown);
            assert_eq!(masked_words(&masked), masked, "masking twice changes nothing");
        }
    }

    #[test]
    fn what_only_sounds_like_one_stays() {
        for text in [
            "tokens: 1234567",
            "output tokens/s = 98765.4321",
            "token=$CI_TOKEN_VALUE",
            "password: none",
            "the secret of speed",
            "basic block 12",
            "nodes: a:b@c",
            "P: tokens_per_second: 120 tok/s (r:100)",
        ] {
            assert_eq!(masked(text), text);
        }
    }
}
