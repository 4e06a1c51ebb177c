//! Python as the converter sees it: a small tree with the line of every node.
//!
//! [`parse`] is the only way in, and `ruff` the only module that knows the parser. What checks never need (await,
//! match, decorators' insides) stays as a word for it, so that a refusal can name it. Nothing is evaluated here.

mod ruff;

pub(crate) use ruff::parse;
use std::sync::Arc;

/// A file that could be read as Python.
#[derive(Debug, Clone, Default)]
pub(crate) struct Module {
    /// Its statements.
    pub body: Vec<Stmt>,
    /// The places that are no Python, each its line and the parser's message.
    pub errors: Vec<(u32, String)>,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expr {
    /// The first line, from 1.
    pub line: u32,
    pub kind: ExprKind,
}

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ExprKind {
    /// `None`
    None,
    /// `True`, `False`
    Bool(bool),
    /// An integer that fits.
    Int(i64),
    /// A decimal.
    Float(f64),
    /// Text, adjacent literals joined.
    Str(String),
    /// An f-string.
    Format(Vec<FormatPart>),
    /// A name.
    Name(String),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `a, b`
    Tuple(Vec<Expr>),
    /// `{a, b}`
    Set(Vec<Expr>),
    /// `{a: b, **c}`; a key of `None` is a `**`.
    Dict(Vec<(Option<Expr>, Expr)>),
    /// `a.b`
    Attribute(Box<Expr>, String),
    /// `a[b]`
    Subscript(Box<Expr>, Box<Expr>),
    /// `a:b:c` within a subscript.
    Slice(Vec<Option<Expr>>),
    /// `f(a, k=b)`
    Call(Box<Call>),
    /// `not a`, `-a`
    Unary(Unary, Box<Expr>),
    /// `a + b`
    Binary(Box<Expr>, Binary, Box<Expr>),
    /// `a and b`, `a or b`
    Logic(Logic, Vec<Expr>),
    /// `a < b <= c`
    Compare(Box<Expr>, Vec<(Compare, Expr)>),
    /// `a if test else b`: test, a, b.
    IfElse(Box<[Expr; 3]>),
    /// `lambda x: ..`
    Lambda(Arc<Function>),
    /// `[e for t in i if c]`
    Comprehension(Box<Comprehension>),
    /// `*a`
    Starred(Box<Expr>),
    /// Anything else, by its name.
    Other(&'static str),
}

/// A piece of an f-string.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FormatPart {
    /// As it stands.
    Text(String),
    /// `{value!conversion:spec}`
    Value {
        /// The value.
        value: Expr,
        /// Whether it is `!r`.
        repr: bool,
        /// What follows the colon; `None` if that is computed.
        spec: Option<String>,
    },
}

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub function: Expr,
    /// Arguments by place.
    pub args: Vec<Expr>,
    /// Arguments by name; a name of `None` is a `**`.
    pub keywords: Vec<(Option<String>, Expr)>,
}

/// A comprehension of one clause.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comprehension {
    /// The type that it makes: a list, a set, a generator or, with a key, a dictionary.
    pub kind: &'static str,
    /// The key of a dictionary's item.
    pub key: Option<Expr>,
    /// The item.
    pub item: Expr,
    /// `for target in iter if ..`, in order.
    pub clauses: Vec<(Expr, Expr, Vec<Expr>)>,
}

/// An operator before its operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary {
    Not,
    Minus,
    Plus,
    Invert,
}

/// An operator between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    BitOr,
    BitAnd,
    Other,
}

/// `and` or `or`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compare {
    Eq,
    NotEq,
    Lt,
    LtE,
    Gt,
    GtE,
    Is,
    IsNot,
    In,
    NotIn,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stmt {
    /// The first line, from 1.
    pub line: u32,
    pub kind: StmtKind,
}

/// What a statement is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StmtKind {
    /// `a = b = value`; an annotation is dropped.
    Assign(Vec<Expr>, Expr),
    /// `a += value`
    Augment(Expr, Binary, Expr),
    /// An expression by itself.
    Expr(Expr),
    /// `return value`
    Return(Option<Expr>),
    /// `if`, with `elif` as an `if` within the other branch.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// `for target in iter`; whether it has an `else`.
    For(Expr, Expr, Vec<Stmt>, bool),
    /// `with a as b, ..`
    With(Vec<(Expr, Option<Expr>)>, Vec<Stmt>),
    /// `import a.b as c`: the module, and the name it gets.
    Import(Vec<(String, String)>),
    /// `from ..a import b as c`: dots, module, and the names with what they are called here.
    ImportFrom(u32, String, Vec<(String, String)>),
    /// `def`
    Def(Arc<Function>),
    /// `class`
    Class(Arc<Class>),
    /// `pass`, `...`, a docstring, `global`.
    Pass,
    /// Anything else, by its name, and what it holds.
    Other(&'static str, Vec<Stmt>),
}

/// A function, a method or a lambda.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Function {
    /// The first line.
    pub line: u32,
    /// Its name; empty for a lambda.
    pub name: String,
    /// Its parameters with their defaults.
    pub params: Vec<(String, Option<Expr>)>,
    /// It also takes `*args` or `**kwargs`.
    pub is_variadic: bool,
    pub decorators: Vec<Expr>,
    /// Its statements.
    pub body: Vec<Stmt>,
}

/// A class.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Class {
    /// The first line.
    pub line: u32,
    /// Its name.
    pub name: String,
    /// The classes that it derives from.
    pub bases: Vec<Expr>,
    /// `class A(B, pin_prefix=True)`
    pub keywords: Vec<(Option<String>, Expr)>,
    pub decorators: Vec<Expr>,
    /// Its docstring.
    pub doc: Option<String>,
    /// Its statements.
    pub body: Vec<Stmt>,
}

impl Expr {
    /// `a.b.c` as words, if it is only names.
    pub(crate) fn dotted(&self) -> Option<String> {
        match &self.kind {
            ExprKind::Name(name) => Some(name.clone()),
            ExprKind::Attribute(of, name) => Some(format!("{}.{name}", of.dotted()?)),
            _ => None,
        }
    }
}
