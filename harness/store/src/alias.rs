//! The name of a case in history: that of its last alias.

use crate::sql::{Connection, Row, query};
use muster_core::{
    case::{CaseName, check_of},
    query::spec::Filters,
};
use sqlx::Error;

/// How many aliases may follow one another.
const CHAIN: usize = 16;

/// The names of cases in history, as filters see them.
#[derive(Debug, Clone, Default)]
pub struct Names(pub(crate) Aliases);

impl Names {
    /// Returns whether filters admit a case by its name in history.
    pub fn are_admitted(&self, filters: &Filters, name: &CaseName, tags: &[String]) -> bool {
        filters.admit(&self.in_history(name), tags)
    }

    /// The name of a case in history, by its text.
    pub fn of(&self, display: &str) -> String {
        self.0.canonical(display)
    }

    pub(crate) fn in_history(&self, name: &CaseName) -> CaseName {
        let display = self.0.canonical(&name.display);
        if display == name.display {
            return name.clone();
        }
        let check = check_of(&display).to_owned();
        CaseName { display, check, ..name.clone() }
    }
}

/// The aliases of a database: old name, new name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Aliases(Vec<(String, String)>);

/// All aliases, as [`pair`] reads them.
pub(crate) const ALIASES: &str = "SELECT old_name, new_name FROM alias ORDER BY old_name";

pub(crate) fn pair(row: &Row) -> Result<(String, String), Error> {
    Ok((row.try_get(0)?, row.try_get(1)?))
}

pub(crate) async fn read(connection: &mut Connection) -> Result<Aliases, Error> {
    let rows = query(ALIASES).fetch_all(connection).await?;
    Ok(Aliases::of(rows.iter().map(pair).collect::<Result<_, _>>()?))
}

impl Aliases {
    pub(crate) fn of(aliases: Vec<(String, String)>) -> Self {
        Self(aliases)
    }

    /// The name of a case in history. `stream` stands for the check of all its cases, `stream %size` for a parameter of it and
    /// `stream %size=2G` for one case.
    pub(crate) fn canonical(&self, display: &str) -> String {
        let mut name = display.to_owned();
        for _ in 0..CHAIN {
            match self.0.iter().find_map(|(old, new)| renamed(&name, old, new)) {
                Some(next) if next != name => name = next,
                _ => break,
            }
        }
        name
    }

    /// The names that a case of this name has or had: of each, it is the last.
    pub(crate) fn earlier(&self, name: &str) -> Vec<String> {
        let canonical = self.canonical(name);
        let mut names = vec![canonical.clone()];
        let mut next = 0;
        while next < names.len() {
            for (old, new) in &self.0 {
                let earlier = renamed(&names[next], new, old).filter(|earlier| !names.contains(earlier));
                names.extend(earlier.filter(|earlier| self.canonical(earlier) == canonical));
            }
            next += 1;
        }
        names
    }

    /// The alias of a name.
    pub(crate) fn new_name(&self, old: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == old).map(|(_, new)| new.as_str())
    }

    /// These and another one.
    pub(crate) fn and(&self, old: &str, new: &str) -> Self {
        Self([self.0.clone(), vec![(old.to_owned(), new.to_owned())]].concat())
    }

    /// Whether another alias would lead in a circle: for its own names, for those of other aliases, or for one of these cases.
    pub(crate) fn is_circle(&self, old: &str, new: &str, cases: &[String]) -> bool {
        let with = self.and(old, new);
        let aliased = with.0.iter().flat_map(|(old, new)| [old.as_str(), new.as_str()]);
        aliased.chain(cases.iter().map(String::as_str)).any(|name| with.leads_in_a_circle(name))
    }

    fn leads_in_a_circle(&self, name: &str) -> bool {
        let mut name = name.to_owned();
        for _ in 0..=self.0.len() {
            match self.0.iter().find_map(|(old, new)| renamed(&name, old, new)) {
                None => return false,
                Some(next) if next == name => return true,
                Some(next) => name = next,
            }
        }
        true
    }
}

/// The name under one alias; `None`: it is not about this case.
fn renamed(name: &str, old: &str, new: &str) -> Option<String> {
    if name == old {
        return Some(new.to_owned());
    }
    let (check, parameters) = name.split_once(' ')?;
    if check == old && !new.contains(' ') {
        return Some(format!("{new} {parameters}"));
    }
    // A parameter: `stream %size` -> `stream %bytes`.
    let (old_check, old_parameter) = parameter(old)?;
    let (new_check, new_parameter) = parameter(new)?;
    if check != old_check {
        return None;
    }
    let mut is_there = false;
    let parameters: Vec<String> = parameters
        .split(' ')
        .map(|part| match part.split_once('=') {
            Some((parameter, value)) if parameter == old_parameter => {
                is_there = true;
                format!("{new_parameter}={value}")
            }
            _ => part.to_owned(),
        })
        .collect();
    is_there.then(|| format!("{new_check} {}", parameters.join(" ")))
}

/// A check and the name of one of its parameters, with `%`.
fn parameter(name: &str) -> Option<(&str, &str)> {
    let (check, parameter) = name.split_once(' ')?;
    (parameter.starts_with('%') && !parameter.contains(['=', ' '])).then_some((check, parameter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aliases(pairs: &[(&str, &str)]) -> Aliases {
        Aliases::of(pairs.iter().map(|(old, new)| ((*old).to_owned(), (*new).to_owned())).collect())
    }

    #[test]
    fn the_names_that_a_case_had_lead_to_the_one_that_it_has() {
        let aliases = aliases(&[
            ("triad", "stream"),
            ("stream %size", "stream %bytes"),
            ("old", "triad"),
            ("copy %n=1", "copy_once"),
            ("reused", "stream"),
            ("stream", "bandwidth"),
        ]);
        let rows: [(&str, &[&str]); 4] = [
            (
                "triad %size=2G",
                &[
                    "bandwidth %bytes=2G",
                    "stream %bytes=2G",
                    "triad %bytes=2G",
                    "stream %size=2G",
                    "reused %bytes=2G",
                    "old %bytes=2G",
                    "triad %size=2G",
                    "reused %size=2G",
                    "old %size=2G",
                ],
            ),
            ("copy %n=1", &["copy_once", "copy %n=1"]),
            ("copy_once", &["copy_once", "copy %n=1"]),
            ("copy %n=2", &["copy %n=2"]),
        ];
        for (name, mut expected) in rows.map(|(name, names)| (name, names.to_vec())) {
            let mut names = aliases.earlier(name);
            assert_eq!(names[0], aliases.canonical(name), "the first is the last");
            names.sort_unstable();
            expected.sort_unstable();
            assert_eq!(names, expected, "{name}");
        }
    }

    #[test]
    fn a_check_a_parameter_or_a_case_is_renamed() {
        let aliases = aliases(&[
            ("triad", "stream"),
            ("stream %size", "stream %bytes"),
            ("copy %n=1", "copy_once"),
            ("stream %bytes=2G %mode=a", "stream %bytes=2G %mode=b"),
        ]);
        for (name, canonical) in [
            ("triad", "stream"),
            ("triad %size=2G", "stream %bytes=2G"),
            ("stream %size=1G %mode=a", "stream %bytes=1G %mode=a"),
            ("triad %size=2G %mode=a", "stream %bytes=2G %mode=b"),
            ("stream %sizes=1", "stream %sizes=1"),
            ("copy %n=1", "copy_once"),
            ("copy %n=10", "copy %n=10"),
            ("triads", "triads"),
        ] {
            assert_eq!(aliases.canonical(name), canonical, "{name}");
        }
    }

    #[test]
    fn a_circle_is_found_and_followed_by_nobody_for_ever() {
        let none = aliases(&[("a", "b"), ("b", "c")]);
        assert!(!none.is_circle("c", "d", &[]));
        assert!(none.is_circle("c", "a", &[]));
        assert!(none.is_circle("x", "x", &[]));
        // A case that is renamed one way, and its check the other way.
        let case = aliases(&[("b %x=1", "a %x=1")]);
        assert!(case.is_circle("a", "b", &[]));
        let parameter = aliases(&[("a %y", "b %x")]);
        assert!(parameter.is_circle("b %x", "a %y", &["b %x=1".to_owned()]));
        aliases(&[("a", "b"), ("b", "a")]).canonical("a");
    }
}
