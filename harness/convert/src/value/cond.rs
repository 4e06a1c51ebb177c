//! Conditions: what a branch asks, kept in a form from which selectors of `when` can be made.

use crate::value::{
    Value,
    cel::{Cel, Kind, Prec, literal},
};

/// What can be compared with constants by a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A parameter, and whether its values are mappings that are known by their `name`.
    Parameter(String, bool),
    /// The name of the system.
    System,
    /// The name of the partition.
    Partition,
    /// `system:partition`
    FullName,
    /// The name of the environment.
    Environ,
    /// The name of the scheduler.
    Scheduler,
    /// Anything else that is compared: `partition.processor.arch`.
    Fact(String),
}

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cond {
    /// It is known.
    Always(bool),
    /// The subject is one of these. For a parameter of mappings, these are names.
    Is(Subject, Vec<Value>),
    /// Anything else that Muster can evaluate.
    Cel(Cel),
    /// It does not hold.
    Not(Box<Cond>),
    /// All of them hold.
    All(Vec<Cond>),
    /// One of them holds.
    Any(Vec<Cond>),
}

impl Subject {
    /// What stands for it.
    pub(crate) fn cel(&self) -> Cel {
        let text = match self {
            Self::Parameter(name, false) => name.clone(),
            Self::Parameter(name, true) => format!("{name}.name"),
            Self::System => "system.name".to_owned(),
            Self::Partition => "partition.name".to_owned(),
            Self::FullName => "system.name + ':' + partition.name".to_owned(),
            Self::Environ => "environ.name".to_owned(),
            Self::Scheduler => "scheduler".to_owned(),
            Self::Fact(path) => path.clone(),
        };
        let is_sum = matches!(self, Self::Fact(text) if text.contains(' '));
        let prec = if is_sum || *self == Self::FullName { Prec::Add } else { Prec::Atom };
        Cel::new(text, prec, Kind::Any)
    }
}

impl Cond {
    /// Not this.
    pub(crate) fn negated(&self) -> Self {
        match self {
            Self::Always(value) => Self::Always(!value),
            Self::Not(inner) => (**inner).clone(),
            other => Self::Not(Box::new(other.clone())),
        }
    }

    /// All of them.
    pub(crate) fn all(conds: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Vec::new();
        for cond in conds {
            match cond {
                Self::Always(true) => {}
                Self::Always(false) => return Self::Always(false),
                Self::All(inner) => all.extend(inner),
                cond => all.push(cond),
            }
        }
        let Some(mut all) = narrowed(all) else { return Self::Always(false) };
        match all.len() {
            0 => Self::Always(true),
            1 => all.remove(0),
            _ => Self::All(all),
        }
    }

    /// Any of them.
    pub(crate) fn any(conds: impl IntoIterator<Item = Self>) -> Self {
        let mut any = Vec::new();
        for cond in conds {
            match cond {
                Self::Always(false) => {}
                Self::Always(true) => return Self::Always(true),
                Self::Any(inner) => any.extend(inner),
                cond => any.push(cond),
            }
        }
        match any.len() {
            0 => Self::Always(false),
            1 => any.remove(0),
            _ => Self::Any(any),
        }
    }

    /// As an expression.
    pub(crate) fn cel(&self) -> Cel {
        let join = |conds: &[Self], operator: &str, prec: Prec| {
            let mut cels = conds.iter().map(Self::cel);
            let first = cels.next().unwrap_or_else(|| Cel::new("true", Prec::Atom, Kind::Bool));
            cels.fold(first, |whole, cond| Cel::binary(&whole, operator, &cond, prec, Kind::Bool))
        };
        match self {
            Self::Always(value) => Cel::new(value.to_string(), Prec::Atom, Kind::Bool),
            Self::Cel(cel) => cel.clone(),
            Self::All(conds) => join(conds, "&&", Prec::And),
            Self::Any(conds) => join(conds, "||", Prec::Or),
            Self::Is(subject, values) => is(subject, values, false),
            Self::Not(inner) => match &**inner {
                Self::Is(subject, values) if values.len() == 1 => is(subject, values, true),
                inner => Cel::new(format!("!{}", inner.cel().at(Prec::Atom)), Prec::Unary, Kind::Bool),
            },
        }
    }

    /// Its parts, if all of them must hold.
    pub(crate) fn parts(&self) -> Vec<&Self> {
        match self {
            Self::All(conds) => conds.iter().collect(),
            Self::Always(true) => vec![],
            other => vec![other],
        }
    }
}

/// Conditions on one subject made one: what it may still be. `None` if nothing is left.
fn narrowed(conds: Vec<Cond>) -> Option<Vec<Cond>> {
    let mut kept: Vec<Cond> = Vec::new();
    for cond in conds {
        if kept.contains(&cond) {
            continue;
        }
        let left = kept.iter_mut().find_map(|known| match (known, &cond) {
            (Cond::Is(of, values), Cond::Is(subject, wanted)) if of == subject => {
                values.retain(|value| wanted.contains(value));
                Some(values.len())
            }
            (Cond::Is(of, values), Cond::Not(not)) => match &**not {
                Cond::Is(subject, unwanted) if of == subject => {
                    values.retain(|value| !unwanted.contains(value));
                    Some(values.len())
                }
                _ => None,
            },
            _ => None,
        });
        match left {
            Some(0) => return None,
            Some(_) => {}
            None => kept.push(cond),
        }
    }
    Some(kept)
}

fn is(subject: &Subject, values: &[Value], negated: bool) -> Cel {
    let shown = |value: &Value| Cel::of(value).map_or_else(|| literal(""), |cel| cel.text);
    let values: Vec<String> = values.iter().map(shown).collect();
    let (operator, right) = match &values[..] {
        [one] => (if negated { "!=" } else { "==" }, one.clone()),
        several => ("in", format!("[{}]", several.join(", "))),
    };
    Cel::binary(&subject.cel(), operator, &Cel::new(right, Prec::Atom, Kind::Any), Prec::Relation, Kind::Bool)
}
