//! Secrets whose values are known are left out of what is stored.

use muster_text::Value;

/// Replaces a secret.
pub const MASK: &str = "***";

/// The values of secrets, as they may stand in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// The values, and their forms within single quotes of sh.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let values = values.into_iter().filter(|value| !value.is_empty());
        let mut forms: Vec<String> = values.flat_map(|value| [value.to_owned(), value.replace('\'', r"'\''")]).collect();
        // Of two that begin alike the longer one goes first, so that nothing of it stays.
        forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        forms.dedup();
        Self(forms)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Masks the secrets in all texts of a value, but not in its keys.
    pub fn hide_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                for secret in self.0.iter().filter(|secret| !MASK.contains(*secret)) {
                    if text.contains(secret) {
                        *text = text.replace(secret, MASK);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in(item)),
            Value::Object(map) => map.values_mut().for_each(|value| self.hide_in(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_secret_is_masked_wherever_it_stands_in_a_text() {
        let rows = [
            (vec!["abc"], json!({ "abc": ["x abc", 1, "abcabc"] }), json!({ "abc": ["x ***", 1, "******"] })),
            (vec!["a", "abc"], json!("abc"), json!("***")),
            (vec!["it's"], json!("export T='it'\\''s'"), json!("export T='***'")),
            (vec!["", "*"], json!("a*"), json!("a*")),
        ];
        for (values, before, after) in rows {
            let mut value = before.clone();
            Secrets::new(values.iter().copied()).hide_in(&mut value);
            assert_eq!(value, after, "{values:?} in {before}");
        }
    }
}
