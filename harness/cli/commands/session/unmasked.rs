//! The words of a stored command line. Its secrets are masked: users who continue the session give them again.

use anyhow::bail;
use muster_report::secret::{MASK, masked_setting, setting_at};
use muster_text::shell;

/// The words with each masked setting replaced by the one of the same name in `given`. `attach`: the command that continues
/// the session.
pub fn unmasked(words: &[String], given: &[&str], attach: &str) -> anyhow::Result<Vec<String>> {
    let mut whole: Vec<String> = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| words.get(at)).map(String::as_str);
        let begin = setting_at(before, word).unwrap_or_default();
        let (flag, setting) = word.split_at(begin);
        // Facts about a session were stored with it.
        let is_extra = flag == "--session-extras=" || before == Some("--session-extras");
        if !word.contains(MASK) || is_extra {
            whole.push(word.clone());
        } else if let Some(given) = given.iter().find(|given| masked_setting(given) == setting) {
            whole.push(format!("{flag}{given}"));
        } else {
            let set = shell::quote(&setting.replace(MASK, "..."));
            bail!(
                "its command line contains a secret, which is not stored: {word}; set it again with MUSTER_SETVAR={set} {attach}"
            );
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stored: &[&str], given: &[&str]) -> Result<String, String> {
        let words: Vec<String> = stored.iter().map(|word| (*word).to_owned()).collect();
        unmasked(&words, given, "muster attach s1").map(|words| words.join(" ")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_masked_word_is_what_is_said_now_and_no_other_word_changes() {
        let given = ["n=1", "api_token=abc"];
        let rows: [(&[&str], &str); 6] = [
            (&["muster", "-r", "-S", "n=2"], "muster -r -S n=2"),
            (&["-S", "api_token=***"], "-S api_token=abc"),
            (&["-Sapi_token=***"], "-Sapi_token=abc"),
            (&["-rSapi_token=***"], "-rSapi_token=abc"),
            (&["--setvar=api_token=***", "-r"], "--setvar=api_token=abc -r"),
            (&["--session-extras", "token=***"], "--session-extras token=***"),
        ];
        for (stored, words) in rows {
            assert_eq!(read(stored, &given).as_deref(), Ok(words));
        }
        insta::assert_snapshot!(
            read(&["-S", "api_token=***"], &["n=1"]).unwrap_err(),
            @"its command line contains a secret, which is not stored: api_token=***; set it again with MUSTER_SETVAR=api_token=... muster attach s1"
        );
    }
}
