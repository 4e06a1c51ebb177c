//! The secrets that a command line sets. They are stored, reported and printed nowhere.

use crate::args::Cli;
use muster_core::secret::Secrets;
use muster_report::secret::secret_of;
use muster_text::{Value, diagnostic::FileId, yaml};

/// Shorter items of a list are words, too.
const LEAST: usize = 6;

/// The secrets of `-S` and `-J`.
pub fn of(cli: &Cli) -> Secrets {
    let options = cli.rounds.job_option.iter().map(ToString::to_string);
    let settings: Vec<String> = cli.files.setvar.iter().cloned().chain(options).collect();
    let named = |setting: &str| {
        let (name, _) = setting.split_once('=')?;
        let values = values(secret_of(setting)?);
        Some(values.into_iter().map(|value| (name.to_owned(), value)).collect::<Vec<_>>())
    };
    // From the last, which has an effect: `attach` may find another one of the same name before it, in a mode.
    let secrets: Vec<(String, String)> = settings.iter().rev().filter_map(|setting| named(setting)).flatten().collect();
    Secrets::new(secrets.iter().map(|(name, value)| (&**name, &**value)))
}

/// What a check may see of a setting: its text, the text without its quotes, the items of a list.
fn values(setting: &str) -> Vec<String> {
    let parsed = |text: &str| yaml::to_value(yaml::parse(FileId::default(), text).documents.first()?).ok();
    let mut values = vec![setting.to_owned()];
    let mut items = Vec::new();
    match parsed(setting) {
        Some(value @ (Value::Array(_) | Value::Object(_))) => texts(&value, &mut items),
        whole => {
            values.extend(whole.as_ref().and_then(Value::as_str).map(str::to_owned));
            setting.split(',').filter_map(parsed).for_each(|value| texts(&value, &mut items));
        }
    }
    values.extend(items.into_iter().filter(|item| item.len() >= LEAST));
    values.dedup();
    values
}

fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Number(number) => into.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(map) => map.values().for_each(|value| texts(value, into)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_by_all_forms_in_which_a_check_may_see_it() {
        let rows = [
            ("abc", vec!["abc"]),
            ("\"a: b\"", vec!["\"a: b\"", "a: b"]),
            ("one,correct,horse", vec!["one,correct,horse", "correct"]),
            ("[correct, 1234567]", vec!["[correct, 1234567]", "correct", "1234567"]),
            ("pa{ss", vec!["pa{ss"]),
        ];
        for (setting, expected) in rows {
            let mut found = values(setting);
            found.sort_unstable();
            found.dedup();
            let mut expected: Vec<&str> = expected;
            expected.sort_unstable();
            assert_eq!(found, expected, "{setting}");
        }
    }
}
