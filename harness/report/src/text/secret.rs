//! Settings and command lines without the secrets that stand on them.

use muster_text::secret::is_secret_name;
use std::borrow::Cow;

pub use muster_text::secret::{MASK, masked};

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

/// `NAME=VALUE` with `***` for the value of a secret, also if a blank or a colon stands in the place of `=`.
pub fn masked_setting(setting: &str) -> Cow<'_, str> {
    let misspelt = || {
        let (name, value) = setting.split_once([' ', '\t', ':', '='])?;
        (is_secret_name(name) && !value.trim().is_empty()).then(|| value.trim_start())
    };
    match secret_of(setting).or_else(misspelt) {
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

/// Returns whether there is something to mask.
pub fn has_secret(text: &str) -> bool {
    masked(text) != text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_with_a_mistake_hides_its_secret_too() {
        let rows = [
            ("password hunter2x", "password ***"),
            ("db_password:hunter2x", "db_password:***"),
            ("api_token: hunter=2", "api_token: ***"),
            ("token", "token"),
            ("n 5", "n 5"),
        ];
        for (setting, shown) in rows {
            assert_eq!(masked_setting(setting), shown);
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
            ("-S url=https://ada:hunter2/secretA@h/x", "-S url=https://***@h/x"),
        ];
        for (line, shown) in rows {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let masked = masked_words(&words);
            assert_eq!(masked.join(" "), shown);
            assert_eq!(masked_words(&masked), masked, "masking twice changes nothing");
        }
    }
}
