//! Branches become entries of `when`.
//!
//! ```text
//! key: Choice { a: 1, b: 2, else 3 }      key: 3         when: [{ b, key: 2 }, { a, key: 1 }]     later over earlier
//! key: [x, Items { a: [y] }]              key: [x]       when: [{ a, key+: [y] }]
//! key: { k: Choice { a: v, else - } }                    when: [{ a, key: { k: v } }]
//! ```

use crate::value::{
    Choice, Value,
    cond::{Cond, Subject},
};

/// A setting that holds under a condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    pub cond: Cond,
    /// The name of the key; `key+` appends.
    pub key: String,
    pub value: Value,
}

/// A key without branches, and what branches lay over it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Settled {
    /// The value that holds under all conditions.
    pub base: Option<Value>,
    /// The settings in order: later ones override earlier ones.
    pub settings: Vec<Setting>,
}

/// Takes a key's branches apart.
pub(crate) fn settle(key: &str, value: &Value) -> Settled {
    let mut settled = Settled::default();
    settled.value(&Cond::Always(true), key, value);
    settled
}

impl Settled {
    fn put(&mut self, cond: &Cond, key: &str, value: Value) {
        match cond {
            Cond::Always(true)
                if self.settings.iter().all(|setting| setting.key.trim_end_matches('+') != key) && !key.ends_with('+') =>
            {
                self.base = Some(value);
            }
            Cond::Always(false) => {}
            cond => self.settings.push(Setting { cond: cond.clone(), key: key.to_owned(), value }),
        }
    }

    fn value(&mut self, cond: &Cond, key: &str, value: &Value) {
        match value {
            Value::Choice(choice) => {
                for (arm, value) in in_order(choice) {
                    self.value(&Cond::all([cond.clone(), arm]), key, value);
                }
            }
            Value::Absent => {}
            Value::List(items) => self.list(cond, key, items),
            Value::Dict(entries) if !matches!(key, "k8s_config" | "k8s_patch") => self.map(cond, key, entries),
            value => self.put(cond, key, value.clone()),
        }
    }

    /// Items up to the first that depend on a branch are the list; the rest is appended in order.
    fn list(&mut self, cond: &Cond, key: &str, items: &[Value]) {
        let fixed = items.iter().take_while(|item| !matches!(item, Value::Items(_))).count();
        if !key.ends_with('+') || fixed > 0 {
            self.put(cond, key, Value::List(items[..fixed].to_vec()));
        }
        let more = if key.ends_with('+') { key.to_owned() } else { format!("{key}+") };
        let mut rest = &items[fixed..];
        while let Some((first, others)) = rest.split_first() {
            if let Value::Items(choice) = first {
                self.items(cond, &more, choice);
                rest = others;
            } else {
                let plain = rest.iter().take_while(|item| !matches!(item, Value::Items(_))).count();
                self.put(cond, &more, Value::List(rest[..plain].to_vec()));
                rest = &rest[plain..];
            }
        }
    }

    /// Appending is not taken back, so each arm says what it excludes.
    fn items(&mut self, cond: &Cond, key: &str, choice: &Choice) {
        for (arm, value) in exclusive(choice) {
            if let Value::List(items) = value {
                if !items.is_empty() {
                    self.list(&Cond::all([cond.clone(), arm]), key, items);
                }
            } else {
                self.put(&Cond::all([cond.clone(), arm]), key, value.clone());
            }
        }
    }

    fn map(&mut self, cond: &Cond, key: &str, entries: &[(Value, Value)]) {
        let depends = |value: &Value| matches!(value, Value::Choice(_) | Value::Absent);
        let fixed: Vec<_> = entries.iter().filter(|(_, value)| !depends(value)).cloned().collect();
        if !fixed.is_empty() || entries.is_empty() {
            self.put(cond, key, Value::Dict(fixed));
        }
        for (name, value) in entries.iter().filter(|(_, value)| depends(value)) {
            let Value::Choice(choice) = value else { continue };
            self.entry(cond, key, name, choice);
        }
    }

    /// What an entry holds is merged, not replaced, so each arm says what it excludes.
    fn entry(&mut self, cond: &Cond, key: &str, name: &Value, choice: &Choice) {
        for (arm, value) in exclusive(choice) {
            let cond = Cond::all([cond.clone(), arm]);
            match value {
                Value::Absent => {}
                Value::Choice(choice) => self.entry(&cond, key, name, choice),
                value => self.put(&cond, key, Value::Dict(vec![(name.clone(), value.clone())])),
            }
        }
    }
}

/// Arms so that a later one is laid over an earlier one: the default first, then from the last to the first, unless
/// they exclude each other anyway.
fn in_order(choice: &Choice) -> Vec<(Cond, &Value)> {
    let mut arms: Vec<(Cond, &Value)> = choice.arms.iter().map(|(cond, value)| (cond.clone(), value)).collect();
    if !are_disjoint(choice) {
        arms.reverse();
    }
    choice.default.iter().map(|value| (Cond::Always(true), value)).chain(arms).collect()
}

/// Arms that exclude each other.
pub(crate) fn exclusive(choice: &Choice) -> Vec<(Cond, &Value)> {
    let disjoint = are_disjoint(choice);
    let mut before: Vec<Cond> = Vec::new();
    let mut arms = Vec::new();
    for (cond, value) in &choice.arms {
        let excluded = if disjoint { vec![] } else { before.iter().map(Cond::negated).collect() };
        arms.push((Cond::all(excluded.into_iter().chain([cond.clone()])), value));
        before.push(cond.clone());
    }
    if let Some(default) = &choice.default {
        arms.push((Cond::all(before.iter().map(Cond::negated)), default));
    }
    arms
}

/// Whether all conditions compare the same thing with different values.
pub(crate) fn are_disjoint(choice: &Choice) -> bool {
    let mut seen: Vec<&Value> = Vec::new();
    let mut subject: Option<&Subject> = None;
    choice.arms.iter().all(|(cond, _)| {
        let Cond::Is(of, values) = cond else { return false };
        let same = subject.is_none_or(|known| known == of);
        subject = Some(of);
        let new = values.iter().all(|value| !seen.contains(&value));
        seen.extend(values);
        same && new
    })
}

/// Settings as entries of `when`. Those of one condition share an entry where that changes nothing.
pub(crate) fn entries(settings: &[Setting]) -> Vec<Value> {
    let mut groups: Vec<(Cond, Vec<(String, Value)>)> = Vec::new();
    for Setting { cond, key, value } in settings {
        let root = |key: &str| key.trim_end_matches('+').to_owned();
        let last = groups.iter().rposition(|(_, known)| known.iter().any(|(other, _)| root(other) == root(key)));
        let from = last.unwrap_or(0);
        let place = groups.iter().enumerate().skip(from).find(|(_, (known, _))| known == cond).map(|(at, _)| at);
        match place.map(|at| &mut groups[at].1) {
            Some(group) => match group.iter_mut().find(|(known, _)| known == key) {
                // Two entries of one mapping.
                Some((_, Value::Dict(known))) if matches!(value, Value::Dict(_)) => {
                    if let Value::Dict(more) = value {
                        known.extend(more.iter().cloned());
                    }
                }
                Some(_) => groups.push((cond.clone(), vec![(key.clone(), value.clone())])),
                None => group.push((key.clone(), value.clone())),
            },
            None => groups.push((cond.clone(), vec![(key.clone(), value.clone())])),
        }
    }
    let entry = |(cond, settings): (Cond, Vec<(String, Value)>)| {
        let mut entry = selectors(&cond);
        entry.extend(settings.into_iter().map(|(key, value)| (Value::Str(key), value)));
        Value::Dict(entry)
    };
    groups.into_iter().map(entry).collect()
}

/// A condition as selectors, and `if` for what they cannot say.
pub(crate) fn selectors(cond: &Cond) -> Vec<(Value, Value)> {
    let (mut system, mut environ): (Option<Value>, Option<Value>) = (None, None);
    let (mut with, mut rest): (Vec<(Value, Value)>, Vec<Cond>) = (vec![], vec![]);
    for part in cond.parts() {
        match selector(part) {
            Some(("system", words)) if system.is_none() => system = Some(words),
            Some(("environ", words)) if environ.is_none() => environ = Some(words),
            Some((_, Value::Dict(param))) if !with.iter().any(|(known, _)| *known == param[0].0) => with.extend(param),
            _ => rest.push(part.clone()),
        }
    }
    let mut selectors = Vec::new();
    selectors.extend(system.map(|words| (Value::text("system"), words)));
    selectors.extend(environ.map(|words| (Value::text("environ"), words)));
    if !with.is_empty() {
        selectors.push((Value::text("with"), Value::Dict(with)));
    }
    if !rest.is_empty() {
        selectors.push((Value::text("if"), Value::Str(Cond::all(rest).cel().text)));
    }
    selectors
}

/// One part of a condition as a selector: which, and its words.
pub(crate) fn selector(cond: &Cond) -> Option<(&'static str, Value)> {
    let Cond::Is(subject, values) = cond else { return None };
    let words = |prefix: &str| {
        let word = |value: &Value| {
            let text = value.as_str()?;
            let fits = !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-.:".contains(letter));
            (fits && text.starts_with(|letter: char| letter.is_ascii_alphanumeric()))
                .then(|| Value::Str(format!("{prefix}{text}")))
        };
        values.iter().map(word).collect::<Option<Vec<_>>>().map(Value::List)
    };
    Some(match subject {
        Subject::Parameter(name, _) => match &values[..] {
            [one] => ("with", Value::Dict(vec![(Value::text(&**name), one.clone())])),
            _ => return None,
        },
        Subject::System | Subject::FullName => ("system", words("")?),
        Subject::Partition => ("system", words("*:")?),
        Subject::Environ => ("environ", words("")?),
        Subject::Scheduler | Subject::Fact(_) => return None,
    })
}
