//! The converter's knowledge of a Python value: a constant, or how Muster will compute it.
//!
//! A value that depends on parameters, facts or the output is an expression in CEL ([`Cel`]); one that depends on a
//! branch is a [`Choice`], so that it can become entries of `when` in the end. Values know nothing of where they are used.

pub(crate) mod cel;
pub(crate) mod cond;
mod join;
pub(crate) mod judge;
mod python;
pub(crate) mod searched;

pub(crate) use join::join;
pub(crate) use python::float_text;

use crate::python::Function;
use cel::{Cel, Kind, Prec};
use cond::Cond;
use judge::Judge;
use std::sync::Arc;

/// A class among the files.
pub(crate) type ClassId = (usize, String);

/// A function, where it stands, and the class that it is a method of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Method {
    /// The function.
    pub function: Arc<Function>,
    /// The class.
    pub class: ClassId,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// There is none: an entry of a mapping that a branch does not make.
    Absent,
    /// It could not be carried over, and that was reported; nothing is derived from it.
    Unknown,
    /// `None`
    None,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A decimal.
    Float(f64),
    /// Text.
    Str(String),
    /// Text with computed parts.
    Text(Vec<Piece>),
    /// A list, or a set in the order in which it is written.
    List(Vec<Value>),
    /// A tuple.
    Tuple(Vec<Value>),
    /// A mapping in the order in which it is written.
    Dict(Vec<(Value, Value)>),
    /// Within a list: items that depend on a branch.
    Items(Box<Choice>),
    /// Computed by Muster, without the output.
    Cel(Cel),
    /// One of several, by branch.
    Choice(Box<Choice>),
    /// True or false, by a condition.
    Test(Cond),
    /// Computed from the output.
    Judge(Judge),
    /// A figure with its unit.
    Figure(Box<(Value, Value)>),
    /// What is no data.
    Thing(Thing),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// As it stands.
    Text(String),
    /// Computed by Muster.
    Cel(Cel),
    /// Expanded by the shell: `$HOME`.
    Shell(String),
}

/// The first arm whose condition holds; else the default.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    /// Conditions and values, in order.
    pub arms: Vec<(Cond, Value)>,
    /// The value if none holds; `None` if one always does.
    pub default: Option<Value>,
}

/// What is no data: names of modules, functions, facts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Thing {
    /// The test itself.
    This,
    /// `super()`, and the class that says it.
    Super(ClassId),
    /// Something imported or built in, by its full name: `reframe.utility.sanity.count`.
    Name(String),
    /// A class of these files.
    Class(ClassId),
    /// A function of these files; the class is empty if it is no method.
    Function(Method),
    /// A method of the test.
    Bound(Method),
    /// A fact: `system`, `partition`, `environ` and what lies below.
    Fact(String),
    /// The job: its options are the scheduler's.
    Job(String),
    /// The output: `self.stdout`, `self.stderr`.
    Output,
    /// A file named by a path, opened.
    File(Box<Value>),
    /// A manifest: its path, and what was laid over it.
    Manifest(Arc<Manifest>),
    /// A declaration of the class body.
    Declared(Box<Declared>),
    /// The command line that builds or runs in a container, by the attribute it hangs on.
    Platform(String),
    /// `self.getdep(..)`: the check it names, and whether it was given as a class name.
    Dependency(String),
    /// A fixture of the test, by its name.
    Fixture(String),
    /// Ignored: loggers, `self.info`.
    Nothing,
}

/// A manifest read from a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    /// Its path, as written.
    pub path: String,
    /// Its content, if it could be read.
    pub content: Option<Value>,
    /// The mapping that is laid over it.
    pub patch: Value,
}

/// What a class body declares.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Declared {
    /// `parameter(..)`
    Parameter {
        /// Its values; `None` if a derived class says them.
        values: Option<Vec<Value>>,
        /// Whether the values of the base are to be kept before these.
        inherit: bool,
        /// How the values of the base are sifted.
        filter: Option<Arc<Function>>,
        /// How a value is shown.
        format: Option<Arc<Function>>,
    },
    /// `variable(..)` with its value, if it has one.
    Variable(Option<Value>),
    /// `fixture(..)`
    Fixture {
        /// The class it runs.
        class: ClassId,
        /// How often: session, partition, environment or test.
        scope: String,
        /// Variables that are set in it.
        variables: Vec<(Value, Value)>,
        /// Whether all its variants make one, or one each.
        joins: bool,
    },
}

impl Value {
    /// A sanity that fails and says that it was not carried over.
    pub(crate) fn failing() -> Self {
        let item = vec![
            (Self::text("assert"), Self::text("1 == 2")),
            (Self::text("msg"), Self::text("the sanity of this check was not carried over from ReFrame")),
        ];
        Self::List(vec![Self::Dict(item)])
    }

    /// Text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Str(text.into())
    }

    /// A Python name from elsewhere.
    pub(crate) fn name(name: impl Into<String>) -> Self {
        Self::Thing(Thing::Name(name.into()))
    }

    /// A name of Muster's.
    pub(crate) fn known(name: &str, kind: Kind) -> Self {
        Self::Cel(Cel::new(name, Prec::Atom, kind))
    }

    /// The text of a constant one.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list or tuple without branches.
    pub(crate) fn items(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) | Self::Tuple(items) if !items.iter().any(|item| matches!(item, Self::Items(_))) => Some(items),
            _ => None,
        }
    }

    /// What is directly in it.
    fn inner(&self) -> Vec<&Self> {
        match self {
            Self::List(items) | Self::Tuple(items) => items.iter().collect(),
            Self::Dict(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
            Self::Choice(choice) | Self::Items(choice) => choice.values().collect(),
            _ => vec![],
        }
    }

    /// Whether another value is somewhere in it.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        self == other || self.inner().iter().any(|value| value.contains(other))
    }

    /// All in it that holds nothing itself.
    pub(crate) fn leaves(&self) -> Vec<&Self> {
        let inner = self.inner();
        if inner.is_empty() { vec![self] } else { inner.into_iter().flat_map(Self::leaves).collect() }
    }

    /// Whether nothing in it waits for Muster.
    pub(crate) fn is_constant(&self) -> bool {
        match self {
            Self::None | Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Str(_) => true,
            Self::List(items) | Self::Tuple(items) => items.iter().all(Self::is_constant),
            Self::Dict(entries) => entries.iter().all(|(key, value)| key.is_constant() && value.is_constant()),
            _ => false,
        }
    }

    /// Whether something in it could not be carried over.
    pub(crate) fn is_unknown(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::List(items) | Self::Tuple(items) => items.iter().any(Self::is_unknown),
            Self::Dict(entries) => entries.iter().any(|(key, value)| key.is_unknown() || value.is_unknown()),
            Self::Choice(choice) | Self::Items(choice) => choice.values().any(Self::is_unknown),
            Self::Figure(pair) => pair.0.is_unknown() || pair.1.is_unknown(),
            Self::Thing(Thing::Manifest(manifest)) => manifest.patch.is_unknown(),
            _ => false,
        }
    }

    /// What kind of value it is for Muster.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Bool(_) | Self::Test(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::Float(_) => Kind::Float,
            Self::Str(_) | Self::Text(_) => Kind::Text,
            Self::List(_) | Self::Tuple(_) => Kind::List,
            Self::Dict(_) => Kind::Map,
            Self::Cel(cel) => cel.kind,
            Self::Choice(choice) => choice.values().map(Self::kind).reduce(Kind::either).unwrap_or(Kind::Any),
            _ => Kind::Any,
        }
    }

    /// A text of these parts, joined where they touch.
    pub(crate) fn joined(pieces: Vec<Piece>) -> Self {
        let mut joined: Vec<Piece> = Vec::new();
        for piece in pieces {
            match (joined.last_mut(), piece) {
                (_, Piece::Text(text)) if text.is_empty() => {}
                (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
                (_, piece) => joined.push(piece),
            }
        }
        match &mut joined[..] {
            [] => Self::Str(String::new()),
            [Piece::Text(text)] => Self::Str(std::mem::take(text)),
            _ => Self::Text(joined),
        }
    }

    /// Its parts, as text.
    pub(crate) fn pieces(&self) -> Option<Vec<Piece>> {
        match self {
            Self::Text(pieces) => Some(pieces.clone()),
            Self::Cel(cel) => Some(vec![Piece::Cel(cel.clone())]),
            Self::Choice(_) | Self::Test(_) => Some(vec![Piece::Cel(Cel::of(self)?)]),
            constant => constant.shown().map(|text| vec![Piece::Text(text)]),
        }
    }
}

impl Choice {
    /// All values that it may take.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Value> {
        self.arms.iter().map(|(_, value)| value).chain(&self.default)
    }

    /// The same choice of something made of each value; fails with the first that fails.
    pub(crate) fn map<E>(&self, mut make: impl FnMut(&Value) -> Result<Value, E>) -> Result<Value, E> {
        let arms = self.arms.iter().map(|(cond, value)| Ok((cond.clone(), make(value)?))).collect::<Result<_, E>>()?;
        let default = self.default.as_ref().map(&mut make).transpose()?;
        Ok(Value::Choice(Box::new(Self { arms, default })))
    }
}

impl From<Cel> for Value {
    fn from(cel: Cel) -> Self {
        Self::Cel(cel)
    }
}
