//! The scope of a condition behind `?`: ReFrame's names for a session, and its extras.

use super::{Selection, SpecError};
use crate::result::Session;
use muster_text::expr::Scope;
use std::collections::BTreeSet;

/// The names of every session. `uuid` and `session` are its id, times are seconds since 1970, UTC.
pub const NAMES: [&str; 18] = [
    "uuid",
    "session",
    "hostname",
    "user",
    "system",
    "version",
    "workdir",
    "cmdline",
    "num_cases",
    "num_failures",
    "num_aborted",
    "num_skipped",
    "time_start_unix",
    "time_end_unix",
    "time_elapsed",
    "interrupted",
    "tags",
    "night",
];

/// The names whose values cost a look at every case of a session.
const OF_CASES: [&str; 4] = ["num_failures", "num_aborted", "num_skipped", "tags"];

/// The counts over the cases of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseCounts {
    pub failures: u32,
    pub aborted: u32,
    pub skipped: u32,
    pub tags: BTreeSet<String>,
}

impl Selection {
    /// Returns whether the condition asks about the cases of a session.
    pub fn needs_cases(&self) -> bool {
        self.condition.as_ref().is_some_and(|condition| condition.names().iter().any(|name| OF_CASES.contains(&name.as_str())))
    }

    /// Returns for each session whether the condition admits it. One without an extra that the condition reads is not admitted.
    ///
    /// # Errors
    /// A name that no session has, and what goes wrong in an evaluation.
    pub fn admitted<'a>(
        &self,
        sessions: impl Iterator<Item = (&'a Session, Option<String>, CaseCounts)>,
    ) -> Result<Vec<bool>, SpecError> {
        let Some(condition) = &self.condition else { return Ok(sessions.map(|_| true).collect()) };
        let sessions: Vec<_> = sessions.collect();
        let is_extra = |session: &Session, name: &str| session.extras.iter().any(|(key, _)| key == name);
        let strange = condition.names().iter().find(|name| {
            !NAMES.contains(&name.as_str())
                && !sessions.is_empty()
                && !sessions.iter().any(|(session, ..)| is_extra(session, name))
        });
        if let Some(name) = strange {
            let near = muster_text::diagnostic::nearest(name, NAMES)
                .map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
            return Err(SpecError(format!(
                "no selected session has `{name}`{near}: there are {} and session extras",
                NAMES.join(", ")
            )));
        }
        let holds = |(session, night, counts): &(&Session, Option<String>, CaseCounts)| {
            if condition.names().iter().any(|name| !NAMES.contains(&name.as_str()) && !is_extra(session, name)) {
                return Ok(false);
            }
            let holds = condition.eval_bool(&scope(session, night.as_deref(), counts));
            holds.map_err(|error| SpecError(format!("the condition `{}`: {error}", condition.text())))
        };
        sessions.iter().map(holds).collect()
    }
}

fn scope(session: &Session, night: Option<&str>, counts: &CaseCounts) -> Scope {
    let mut scope = Scope::new();
    for (name, value) in &session.extras {
        scope.set(name.as_str(), value.as_str());
    }
    let seconds = muster_text::time::Timestamp::seconds;
    scope.set("uuid", session.id.0.as_str());
    scope.set("session", session.id.0.as_str());
    scope.set("hostname", session.host.as_str());
    scope.set("user", session.user.as_str());
    scope.set("system", session.system.as_str());
    scope.set("version", session.version.as_str());
    scope.set("workdir", session.workdir.to_string_lossy().into_owned());
    scope.set("cmdline", session.command.join(" "));
    scope.set("num_cases", session.num_cases);
    scope.set("num_failures", counts.failures);
    scope.set("num_aborted", counts.aborted);
    scope.set("num_skipped", counts.skipped);
    scope.set("time_start_unix", seconds(session.started));
    scope.set("time_end_unix", session.ended.map_or(0, seconds));
    scope.set("time_elapsed", session.ended.map_or(0.0, |ended| ended.since(session.started).as_secs_f64()));
    scope.set("interrupted", session.interrupted);
    scope.set("tags", counts.tags.iter().cloned().collect::<Vec<String>>());
    scope.set("night", night.unwrap_or_default());
    scope
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(user: &str, extras: &[(&str, &str)]) -> Session {
        Session {
            user: user.into(),
            num_cases: 7,
            extras: extras.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            ..Session::default()
        }
    }

    #[test]
    fn a_condition_sees_reframes_names_and_extras() {
        let sessions = [session("ada", &[("release", "26.11")]), session("bob", &[])];
        let counts = CaseCounts { failures: 2, tags: ["nightly".to_owned()].into(), ..CaseCounts::default() };
        let of = |text: &str| {
            let selection = Selection::parse(text).expect(text);
            selection
                .admitted(sessions.iter().map(|session| (session, Some("2026-11-24".into()), counts.clone())))
                .map_err(|error| error.0)
        };
        let rows = [
            ("", [true, true]),
            ("?user == 'ada'", [true, false]),
            ("?release == '26.11'", [true, false]),
            ("?num_failures > 1 && num_cases == 7 && 'nightly' in tags", [true, true]),
            ("?night == '2026-11-24' && interrupted", [false, false]),
        ];
        for (text, expected) in rows {
            assert_eq!(of(text), Ok(expected.to_vec()), "{text}");
        }
        let errors = ["?usr == 'ada'", "?user", "?num_cases / 0 > 1"].map(|text| of(text).expect_err(text)).join("\n");
        insta::assert_snapshot!(errors);
        assert!(Selection::parse("?num_failures > 1").is_ok_and(|selection| selection.needs_cases()));
        assert!(!Selection::parse("?num_cases > 1").is_ok_and(|selection| selection.needs_cases()));
    }
}
