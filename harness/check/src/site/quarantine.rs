//! Cases whose failure is known and does not fail a session, each with a reason and a last day.
//!
//! Such a case runs and is reported like any other. After its last day it counts again, with a warning: nothing is
//! forgotten in quarantine.

use muster_core::{
    case::{CaseName, matcher::Matcher},
    result::Quarantine,
};
use muster_text::{
    decode::{Context, Decode, Spanned},
    diagnostic::Diagnostic,
    keys,
    time::{Date, Timestamp},
    yaml::Node,
};

keys! {
    /// One entry of `quarantine`.
    pub struct QuarantineFile ("an entry of `quarantine`") {
        /// The cases: a regex for their names, or `/` and their hash, as for `-n`.
        @required name: Spanned<String>,
        /// The reason in one sentence, for example a ticket.
        @required reason: String,
        /// The last day of the quarantine, UTC: `2026-12-31`. After it the cases count again.
        @required until: Spanned<String>,
    }
    instead {
        "hash" => "write `name: /HASH`",
        "expires" => "write `until`",
    }
}

/// An entry that holds for some cases.
#[derive(Debug, Clone)]
pub struct Entry {
    pub name: String,
    matcher: Matcher,
    /// The reason and the last day of the quarantine.
    pub quarantine: Quarantine,
}

impl Entry {
    /// An entry as written; `None` after a mistake.
    pub fn new(file: &QuarantineFile, context: &mut Context) -> Option<Self> {
        let (name, until) = (file.name.as_ref()?, file.until.as_ref()?);
        let reason = file.reason.clone()?;
        let matcher = match name.strip_prefix('!') {
            Some(_) => Err("everything but these cases cannot be in quarantine: name those that are".to_owned()),
            None => Matcher::parse(name, true),
        };
        let matcher = matcher.map_err(|message| context.push(Diagnostic::error(name.span, message))).ok();
        let date = Date::parse(until).map_err(|message| context.push(Diagnostic::error(until.span, message))).ok();
        Some(Self { name: name.value.clone(), matcher: matcher?, quarantine: Quarantine { reason, until: date? } })
    }
}

/// Reads a file of entries: a list of them, as under a site file's `quarantine`.
pub fn read(node: &Node, context: &mut Context) -> Vec<Entry> {
    let files = Vec::<QuarantineFile>::decode(node, context).unwrap_or_default();
    files.iter().filter_map(|file| Entry::new(file, context)).collect()
}

/// All entries, on one day.
#[derive(Debug, Clone)]
pub struct List {
    entries: Vec<Entry>,
    today: Date,
}

/// The meaning of a list for a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing<'a> {
    /// No entry holds for it.
    Free,
    /// Its outcome does not count.
    Quarantined(&'a Quarantine),
    /// It counts again.
    Expired(&'a Quarantine),
}

/// No entries.
impl Default for List {
    fn default() -> Self {
        Self::new(Vec::new(), Date::of(Timestamp::default()))
    }
}

impl List {
    /// The entries that hold `today`, and those that no longer do.
    pub fn new(entries: Vec<Entry>, today: Date) -> Self {
        Self { entries, today }
    }

    /// Returns the meaning of the list for a case. Of several entries, the one that ends last counts.
    pub fn of(&self, case: &CaseName) -> Standing<'_> {
        let entries = self.entries.iter().filter(|entry| entry.matcher.matches(case));
        match entries.map(|entry| &entry.quarantine).max_by_key(|quarantine| quarantine.until) {
            None => Standing::Free,
            Some(quarantine) if quarantine.until >= self.today => Standing::Quarantined(quarantine),
            Some(quarantine) => Standing::Expired(quarantine),
        }
    }

    /// A sentence on each expired entry that applied to some of these cases.
    pub fn expired(&self, cases: &[&CaseName]) -> Vec<String> {
        let over = self.entries.iter().filter(|entry| entry.quarantine.until < self.today);
        let concerned = over.filter(|entry| {
            let mut matching = cases.iter().filter(|case| entry.matcher.matches(case));
            matching.any(|case| matches!(self.of(case), Standing::Expired(_)))
        });
        concerned.map(|entry| format!("`{}` {}", entry.name, expired_note(&entry.quarantine))).collect()
    }
}

/// `was in quarantine until 2026-06-30 and counts again (ticket 1)`
pub fn expired_note(quarantine: &Quarantine) -> String {
    format!("was in quarantine until {} and counts again ({})", quarantine.until, quarantine.reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_text::{
        decode::Placeholders,
        diagnostic::{Sources, render_short},
        yaml::parse,
    };

    fn list(text: &str, today: &str) -> (List, String) {
        let mut sources = Sources::default();
        let file = sources.add("quarantine.yaml", text);
        let mut context = Context::new(Placeholders::Refuse);
        let entries = read(&parse(file, text).documents[0], &mut context);
        (List::new(entries, Date::parse(today).unwrap()), render_short(&context.diagnostics, &sources))
    }

    fn case(display: &str, hash: &str) -> CaseName {
        let [system, partition, environ, hidden] = ["s", "p", "e", ""].map(str::to_owned);
        CaseName { display: display.into(), check: display.into(), hash: hash.into(), system, partition, environ, hidden }
    }

    #[test]
    fn an_entry_holds_until_the_end_of_its_last_day() {
        let text =
            "[{ name: 'ior %size=', reason: ticket 1, until: 2026-06-30 }, { name: /beef, reason: ticket 2, until: 2026-08-01 }]";
        let rows = [
            ("2026-06-30", "ior %size=1", "cafe0123", "quarantined ticket 1"),
            ("2026-07-01", "ior %size=1", "cafe0123", "expired ticket 1"),
            ("2026-07-01", "ior %size=1", "beef0123", "quarantined ticket 2"),
            ("2026-01-01", "ior", "cafe0123", "free"),
            ("2026-09-01", "stream", "beef0123", "expired ticket 2"),
        ];
        for (today, display, hash, expected) in rows {
            let (list, mistakes) = list(text, today);
            assert_eq!(mistakes, "");
            let standing = match list.of(&case(display, hash)) {
                Standing::Free => "free".to_owned(),
                Standing::Quarantined(quarantine) => format!("quarantined {}", quarantine.reason),
                Standing::Expired(quarantine) => format!("expired {}", quarantine.reason),
            };
            assert_eq!(standing, expected, "{today} {display} {hash}");
        }
    }

    #[test]
    fn an_entry_whose_time_is_over_is_named_if_it_matters() {
        let text = "[{ name: ior, reason: ticket 1, until: 2026-06-30 }, { name: stream, reason: ticket 2, until: 2026-06-30 }]";
        let (list, _) = list(text, "2026-07-01");
        insta::assert_snapshot!(list.expired(&[&case("ior", "")]).join("\n"), @"`ior` was in quarantine until 2026-06-30 and counts again (ticket 1)");
    }

    #[test]
    fn every_mistake_of_an_entry_has_its_place() {
        let text = "- { name: '(', reason: r, until: 2026-02-30 }\n- { name: '!a', reason: r, until: soon }\n- { name: a }\n- { name: a, reason: r, until: 2026-01-01, hash: x }\n";
        insta::assert_snapshot!(list(text, "2026-07-01").1);
    }
}
