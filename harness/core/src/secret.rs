//! Secrets whose values are known are left out of what is stored, reported and printed.
//!
//! ```text
//! hide        text for people        "***" in the place of a secret, for good
//! hide_in     a job's handle         the same, but for the keys by which the job is found
//! seal, open  JSON that is needed    each secret by its name; who gives the same secrets again reads what was written.
//!                                    A check value tells another value of the secret from the one that was sealed
//! ```

pub use muster_text::secret::MASK;
use muster_text::{Value, pattern, secret::LEAST, shell::in_double_quotes};
use sha2::{Digest, Sha256};
use std::{borrow::Cow, collections::BTreeMap};

/// Encloses the name of a secret in sealed JSON. JSON has no such character: it is escaped there.
const SEAL: char = '\u{1}';

/// The values of secrets, as they may stand in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// Each with the mask.
    texts: Vec<(String, &'static str)>,
    /// As in `texts`, of some length.
    words: Vec<(String, &'static str)>,
    /// Each with its mark: name, number and check value, form.
    sealed: Vec<(String, String)>,
}

impl Secrets {
    /// Secrets by their names; one may have several values.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut new = Self::default();
        let mut values_of: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, value) in secrets.into_iter().filter(|(_, value)| !value.is_empty()) {
            let number = values_of.entry(name).and_modify(|number| *number += 1).or_insert(1);
            for (form, text) in forms(value) {
                new.sealed.push((in_json(&text), format!("{SEAL}{name} {number}.{:03x}{form}{SEAL}", check_value(name, value))));
                new.texts.extend([(in_json(&text), MASK), (text, MASK)]);
            }
        }
        // Of two that begin alike the longer one goes first, so that nothing of it stays.
        let longest_first = |one: &str, other: &str| other.len().cmp(&one.len()).then_with(|| one.cmp(other));
        new.sealed.sort_by(|(one, _), (other, _)| longest_first(one, other));
        new.texts.retain(|(text, _)| !MASK.contains(&**text));
        new.texts.sort_by(|(one, _), (other, _)| longest_first(one, other));
        new.texts.dedup();
        new.words = new.texts.iter().filter(|(text, _)| text.chars().count() >= LEAST).cloned().collect();
        new
    }

    pub fn is_empty(&self) -> bool {
        self.sealed.is_empty()
    }

    /// Masks the secrets in a text for people.
    pub fn hide(&self, text: &mut String) {
        hide(&self.words, text);
    }

    /// Masks the secrets in all texts of a value, but not in its keys, and numbers that are secrets. `kept` stays as it is: paths
    /// such as `objects.*.name`, where `*` is every key and every item.
    pub fn hide_in(&self, value: &mut Value, kept: &[&str]) {
        if kept.contains(&"") {
            return;
        }
        let below = |key: &str| -> Vec<&str> {
            let split = kept.iter().map(|path| path.split_once('.').unwrap_or((path, "")));
            split.filter(|(first, _)| [key, "*"].contains(first)).map(|(_, rest)| rest).collect()
        };
        match value {
            Value::String(text) => hide(&self.texts, text),
            Value::Number(number) if self.words.iter().any(|(secret, _)| *secret == number.to_string()) => {
                *value = MASK.into();
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in(item, &below("*"))),
            Value::Object(map) => map.iter_mut().for_each(|(key, value)| self.hide_in(value, &below(key))),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// JSON with the names of secrets in the place of their values: it is JSON again when it is opened.
    pub fn seal(&self, json: &str) -> String {
        replaced(json, &self.sealed)
    }

    /// JSON as it was before it was sealed.
    ///
    /// # Errors
    /// The name of a secret of it that is not among these, or has another value here.
    pub fn open<'a>(&self, sealed: &'a str) -> Result<Cow<'a, str>, String> {
        if !sealed.contains(SEAL) {
            return Ok(sealed.into());
        }
        let by_name: Vec<(&str, &str)> = self.sealed.iter().map(|(text, name)| (&**name, &**text)).collect();
        let opened = replaced(sealed, &by_name);
        match opened.split(SEAL).nth(1) {
            None => Ok(opened.into()),
            Some(mark) => Err(mark.rsplit_once(' ').map_or(mark, |(name, _)| name).to_owned()),
        }
    }
}

/// 12 bits: of 4096 other values one is not noticed, and who tries values against it is left with one in 4096 of them.
fn check_value(name: &str, value: &str) -> u16 {
    let hash = Sha256::new().chain_update(name).chain_update([0]).chain_update(value).finalize();
    u16::from_be_bytes([hash[0], hash[1]]) >> 4
}

/// A secret as it may be written: as it is, within quotes of sh, and in a pattern.
fn forms(secret: &str) -> [(&'static str, String); 4] {
    let single = secret.replace('\'', r"'\''");
    [("", secret.to_owned()), ("'", single), ("\"", in_double_quotes(secret)), ("/", pattern::literal(secret))]
}

/// A text as it stands within quotes of JSON.
fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn hide(secrets: &[(String, &'static str)], text: &mut String) {
    if secrets.iter().any(|(secret, _)| text.contains(secret)) {
        *text = replaced(text, secrets);
    }
}

/// Reads the text once: what was put in is not read again.
fn replaced<S: AsRef<str>, T: AsRef<str>>(text: &str, pairs: &[(S, T)]) -> String {
    let (mut done, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let found = pairs.iter().find_map(|(from, to)| Some((rest.strip_prefix(from.as_ref())?, to)));
        if let Some((after, to)) = found {
            done.push_str(to.as_ref());
            rest = after;
        } else {
            done.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secrets(values: &[&str]) -> Secrets {
        Secrets::new(values.iter().map(|value| ("token", *value)))
    }

    #[test]
    fn a_secret_is_masked_wherever_it_stands_in_a_text() {
        let rows = [
            (vec!["abc"], json!({ "abc": ["x abc", 1, "abcabc"] }), json!({ "abc": ["x ***", 1, "******"] })),
            (vec!["a", "abc"], json!("abc"), json!("***")),
            (vec!["it's"], json!("export T='it'\\''s'"), json!("export T='***'")),
            (vec!["a$b-c"], json!(r#"export T="a\$b-c"; a\$b\-c"#), json!(r#"export T="***"; ***"#)),
            (vec!["a\"b"], json!("{\"t\":\"a\\\"b\"}"), json!("{\"t\":\"***\"}")),
            (vec!["12345", "1"], json!([12345, 1]), json!(["***", 1])),
            (vec!["", "*"], json!("a*"), json!("a*")),
        ];
        for (values, before, after) in rows {
            let mut value = before.clone();
            secrets(&values).hide_in(&mut value, &[]);
            assert_eq!(value, after, "{values:?} in {before}");
        }
    }

    #[test]
    fn what_a_job_is_found_by_stays() {
        let mut value = json!({ "place": { "name": "abc" }, "objects": [{ "name": "abc", "spec": "abc" }], "more": "abc" });
        secrets(&["abc"]).hide_in(&mut value, &["place", "objects.*.name"]);
        let after = json!({ "place": { "name": "abc" }, "objects": [{ "name": "abc", "spec": "***" }], "more": "***" });
        assert_eq!(value, after);
    }

    #[test]
    fn a_sentence_keeps_short_words() {
        let mut text = "exit status 7 of hunter2".to_owned();
        secrets(&["7", "hunter2"]).hide(&mut text);
        assert_eq!(text, "exit status 7 of ***");
    }

    #[test]
    fn sealed_json_is_opened_by_the_same_secrets_alone() {
        let json = json!({ "n": 12345, "t": "it's a\"b", "q": "'it'\\''s'", "a": "token", "u": "\u{1}" }).to_string();
        for values in [vec!["12345"], vec!["a", "t", "1"], vec!["it's a\"b", "it's"], vec!["\u{1}"], vec!["\"", "{"]] {
            let secrets = secrets(&values);
            let sealed = secrets.seal(&json);
            assert_ne!(sealed, json, "{values:?}");
            assert_eq!(secrets.open(&sealed).as_deref(), Ok(&*json), "{values:?}");
            assert_eq!(Secrets::default().open(&sealed), Err("token".to_owned()), "{values:?}");
        }
        assert_eq!(Secrets::default().open(&json).as_deref(), Ok(&*json));
    }

    #[test]
    fn another_value_of_a_secret_opens_nothing() {
        let sealed = secrets(&["12345"]).seal(r#"{"n":12345,"t":"is 12345"}"#);
        for other in ["abc", "12346", "1234", "23456"] {
            assert_eq!(secrets(&[other]).open(&sealed), Err("token".to_owned()), "{other}");
        }
        let other_name = Secrets::new([("an other token", "12345")]);
        assert_eq!(other_name.open(&sealed), Err("token".to_owned()));
        assert_eq!(secrets(&["1"]).open(&other_name.seal("12345")), Err("an other token".to_owned()));
    }
}
