//! The words of a stored command line. Its secrets are masked: users who continue the session give them again.

use crate::args::{self, Origin, Parsed};
use anyhow::bail;
use muster_report::secret::{MASK, masked_setting, masked_words, setting_at};
use muster_text::shell;

/// The words as they are stored. Secrets are masked; those of the environment or of a mode stand in the words, too: who continues
/// the session knows then that there were any.
pub fn stored(parsed: &Parsed, words: &[String]) -> Vec<String> {
    let mut stored = masked_words(words);
    let is_typed = |long: &str, setting: &str| {
        let before = std::iter::once(None).chain(stored.iter().map(|word| Some(word.as_str())));
        before
            .zip(&stored)
            .any(|(before, word)| setting_at(before, word).is_some_and(|(flag, begin)| flag == long && word[begin..] == *setting))
    };
    let mut more = Vec::new();
    for (long, settings) in parsed.cli.settings() {
        let is_secret = |setting: &String| masked_setting(setting) != **setting;
        if !settings.iter().any(is_secret) {
            continue;
        }
        // A flag replaces the whole variable: what else is set there stands beside the secret.
        let is_variable = matches!(parsed.origins.get(long), Some(Origin::Environment(_) | Origin::File(_)));
        for setting in settings.iter().filter(|setting| is_variable || is_secret(setting)) {
            let masked = masked_setting(setting);
            if !is_typed(long, &masked) {
                more.push(format!("--{long}={masked}"));
            }
        }
    }
    // What was typed comes later: the last one wins.
    let program = 1.min(stored.len());
    stored.splice(program..program, more);
    stored
}

/// The words with each masked setting replaced by the one of the same flag and name in `given`, which has long flags with their
/// settings. `attach`: the command that continues the session.
pub fn unmasked(words: &[String], given: &[(&str, Vec<String>)], attach: &str) -> anyhow::Result<Vec<String>> {
    let mut whole: Vec<String> = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| words.get(at)).map(String::as_str);
        let (long, begin) = setting_at(before, word).unwrap_or(("setvar", 0));
        let (flag, setting) = word.split_at(begin);
        let mut given = given.iter().filter(|(name, _)| *name == long).flat_map(|(_, given)| given);
        // Facts about a session were stored with it.
        if !word.contains(MASK) || long == "session-extras" {
            whole.push(word.clone());
        } else if let Some(given) = given.find(|given| masked_setting(given) == setting) {
            whole.push(format!("{flag}{given}"));
        } else {
            let variable = args::variable(long);
            let set = shell::quote(&setting.replace(MASK, "..."));
            bail!("its command line contains a secret, which is not stored: {word}; set it again with {variable}={set} {attach}");
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stored: &[&str], given: &[(&str, &str)]) -> Result<String, String> {
        let words: Vec<String> = stored.iter().map(|word| (*word).to_owned()).collect();
        let given: Vec<_> = given.iter().map(|(long, setting)| (*long, vec![(*setting).to_owned()])).collect();
        unmasked(&words, &given, "muster attach s1").map(|words| words.join(" ")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_masked_word_is_what_is_said_now_and_no_other_word_changes() {
        let given = [("setvar", "n=1"), ("setvar", "api_token=abc"), ("job-option", "labels.api_token=abc")];
        let rows: [(&[&str], &str); 7] = [
            (&["muster", "-r", "-S", "n=2"], "muster -r -S n=2"),
            (&["-S", "api_token=***"], "-S api_token=abc"),
            (&["-Sapi_token=***"], "-Sapi_token=abc"),
            (&["-rSapi_token=***"], "-rSapi_token=abc"),
            (&["--setvar=api_token=***", "-r"], "--setvar=api_token=abc -r"),
            (&["--session-extras", "token=***"], "--session-extras token=***"),
            (&["-J", "labels.api_token=***"], "-J labels.api_token=abc"),
        ];
        for (stored, words) in rows {
            assert_eq!(read(stored, &given).as_deref(), Ok(words));
        }
        insta::assert_snapshot!(
            read(&["-S", "api_token=***"], &[("setvar", "n=1")]).unwrap_err(),
            @"its command line contains a secret, which is not stored: api_token=***; set it again with MUSTER_SETVAR=api_token=... muster attach s1"
        );
        // A variable of another flag does not count.
        for (word, variable) in [("-Japi_token=***", "MUSTER_JOB_OPTION"), ("-Papi_token=***", "MUSTER_PARAMETERIZE")] {
            let refused = read(&[word], &given).unwrap_err();
            assert!(refused.contains(&format!("again with {variable}=api_token=... muster attach s1")), "{refused}");
        }
    }
}
