//! The words of a stored command line: secrets are masked in it, so whoever goes on with the session says them again.

use anyhow::bail;
use muster_core::shell;
use muster_report::secret::{MASK, masked};

/// The words with each masked one replaced by what the environment says now (`MUSTER_SETVAR=token=...`). `attach`: the command
/// that goes on with the session.
///
/// # Errors
/// A word that is still masked, and how to say it.
pub(super) fn unmasked(words: &[String], env: &dyn Fn(&str) -> Option<String>, attach: &str) -> anyhow::Result<Vec<String>> {
    let list = env("MUSTER_SETVAR").unwrap_or_default();
    let said: Vec<String> = list.split(',').flat_map(forms).collect();
    let extras = |before: Option<&String>, word: &str| {
        word.starts_with("--session-extras=") || before.is_some_and(|before| before == "--session-extras")
    };
    let mut whole = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        // Facts about a session were stored with it.
        if !word.contains(MASK) || extras(at.checked_sub(1).and_then(|at| words.get(at)), word) {
            whole.push(word.clone());
        } else if let Some(said) = said.iter().find(|said| masked(said) == *word) {
            whole.push(said.clone());
        } else {
            let bare = word.trim_start_matches("--setvar=").trim_start_matches("-S").replace(MASK, "...");
            bail!(
                "its command line held a secret, which is not stored: {word}; say it again with MUSTER_SETVAR={} {attach}",
                shell::quote(&bare)
            );
        }
    }
    Ok(whole)
}

/// The words that set a variable.
fn forms(set: &str) -> [String; 3] {
    [set.to_owned(), format!("-S{set}"), format!("--setvar={set}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stored: &[&str], setvar: Option<&str>) -> Result<String, String> {
        let words: Vec<String> = stored.iter().map(|word| (*word).to_owned()).collect();
        let env = |name: &str| setvar.filter(|_| name == "MUSTER_SETVAR").map(str::to_owned);
        unmasked(&words, &env, "muster attach s1").map(|words| words.join(" ")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_masked_word_is_what_the_environment_says_and_no_other_word_changes() {
        let set = Some("n=1,api_token=abcdefgh");
        let rows: [(&[&str], &str); 5] = [
            (&["muster", "-r", "-S", "n=2"], "muster -r -S n=2"),
            (&["-S", "api_token=***"], "-S api_token=abcdefgh"),
            (&["-Sapi_token=***"], "-Sapi_token=abcdefgh"),
            (&["--setvar=api_token=***", "-r"], "--setvar=api_token=abcdefgh -r"),
            (&["--session-extras", "token=***"], "--session-extras token=***"),
        ];
        for (stored, words) in rows {
            assert_eq!(read(stored, set).as_deref(), Ok(words));
        }
        insta::assert_snapshot!(
            read(&["-S", "api_token=***"], Some("n=1")).unwrap_err(),
            @"its command line held a secret, which is not stored: api_token=***; say it again with MUSTER_SETVAR=api_token=... muster attach s1"
        );
    }
}
