//! Words of a POSIX shell, for scripts and for commands that are shown to be copied.

use std::fmt::Write;

/// One word for sh that means exactly `word`, quoted only if it has to be.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-+=:,./@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// A word of a command shown in one line: control characters are escaped (`$'a\nb'`), as bash, zsh and POSIX 2024 read it.
pub fn quote_in_line(word: &str) -> String {
    if !word.contains(char::is_control) {
        return quote(word);
    }
    let mut quoted = "$'".to_owned();
    for c in word.chars() {
        match c {
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            '\'' | '\\' => quoted.extend(['\\', c]),
            // Three digits: the next character is none of them.
            c if c.is_ascii_control() => _ = write!(quoted, "\\{:03o}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "'"
}

/// Escapes a text for double quotes.
pub fn in_double_quotes(text: &str) -> String {
    text.chars().flat_map(|c| "\\\"$`".contains(c).then_some('\\').into_iter().chain(std::iter::once(c))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_live_within_double_quotes() {
        assert_eq!(in_double_quotes(r#"a "b" $c `d` \ e"#), r#"a \"b\" \$c \`d\` \\ e"#);
    }

    #[test]
    fn a_word_with_a_newline_stays_in_its_line() {
        let rows = [
            ("a b", "'a b'"),
            ("two\nlines", r"$'two\nlines'"),
            ("it's\n\t1\\2", r"$'it\'s\n\t1\\2'"),
            ("\u{1b}[0m\r", r"$'\033[0m\015'"),
        ];
        for (word, quoted) in rows {
            assert_eq!(quote_in_line(word), quoted);
            let echoed = std::process::Command::new("bash").args(["-c", &format!("printf %s {quoted}")]).output();
            // Where there is no bash, the table alone decides.
            if let Ok(echoed) = echoed {
                assert_eq!(String::from_utf8_lossy(&echoed.stdout), word);
            }
        }
    }

    #[test]
    fn only_words_that_need_quotes_get_them() {
        let rows = [
            ("a-b_c.d/e:f,g@h%i+j=k", "a-b_c.d/e:f,g@h%i+j=k"),
            ("", "''"),
            ("two words", "'two words'"),
            ("$HOME", "'$HOME'"),
            ("it's", r"'it'\''s'"),
            ("*", "'*'"),
            ("~/x", "'~/x'"),
            ("é", "'é'"),
        ];
        for (word, quoted) in rows {
            assert_eq!(quote(word), quoted);
        }
    }
}
