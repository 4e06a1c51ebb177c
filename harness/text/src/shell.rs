//! Words of a POSIX shell, for scripts and for commands that are shown to be copied.

/// One word for sh that means exactly `word`, quoted only if it has to be.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-+=:,./@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
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
