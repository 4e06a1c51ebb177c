//! The parser's tree made ours. No other module names the parser's crates, so the whole translation stands here.
//!
//! Files of hundreds of kilobytes and expressions of hundreds of levels are no checks; both are refused before they can
//! cost more than they are worth. The parser and the drop of its tree recurse with the depth of the text, so they run on
//! a stack that the longest accepted file cannot exhaust.

use super::{
    Binary, Call, Class, Compare, Comprehension, Expr, ExprKind, FormatPart, Function, Logic, Module, Stmt, StmtKind, Unary,
};
use ruff_python_ast::{self as ast, FStringPart, InterpolatedStringElement};
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::{Ranged, TextSize};
use std::sync::Arc;

/// No check file is longer; generated data belongs elsewhere.
const MOST_BYTES: usize = 256 * 1024;
/// Expressions and blocks within each other.
const MOST_LEVELS: u32 = 120;
/// Reserved, not used: a level of nesting costs the parser about a kilobyte, and a byte can open a level.
const STACK: usize = 1024 * 1024 * 1024;

/// Reads a file. What is no Python is an error with its line, and the rest is read all the same.
pub(crate) fn parse(text: &str) -> Module {
    if text.len() > MOST_BYTES {
        return failed(1, format!("the file is longer than {} KiB", MOST_BYTES / 1024));
    }
    let read = || {
        let parsed = parse_unchecked(text, ParseOptions::from(Mode::Module));
        let lines = Lines::of(text);
        let errors = parsed.errors().iter().map(|error| (lines.at(error.location.start()), error.error.to_string())).collect();
        let ast::Mod::Module(module) = parsed.syntax() else { return failed(1, "no module".to_owned()) };
        let tree = Tree { lines: &lines };
        match tree.stmts(&module.body, 0) {
            Ok(body) => Module { body, errors },
            Err(TooDeep(line)) => failed(line, format!("more than {MOST_LEVELS} levels within each other")),
        }
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, read);
        thread.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(|| failed(1, "the parser gave up".to_owned()))
    })
}

fn failed(line: u32, why: String) -> Module {
    Module { body: Vec::new(), errors: vec![(line, why)] }
}

/// Where lines begin.
struct Lines(Vec<u32>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(std::iter::once(0).chain(ends.filter_map(|(at, _)| u32::try_from(at + 1).ok())).collect())
    }

    fn at(&self, offset: TextSize) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start <= offset.to_u32())).unwrap_or(u32::MAX)
    }
}

struct TooDeep(u32);

type Made<T> = Result<T, TooDeep>;

struct Tree<'a> {
    lines: &'a Lines,
}

impl Tree<'_> {
    fn line(&self, node: &impl Ranged) -> u32 {
        self.lines.at(node.range().start())
    }

    fn stmts(&self, body: &[ast::Stmt], level: u32) -> Made<Vec<Stmt>> {
        body.iter().map(|stmt| self.stmt(stmt, level + 1)).collect()
    }

    fn exprs<'e>(&self, items: impl IntoIterator<Item = &'e ast::Expr>, level: u32) -> Made<Vec<Expr>> {
        items.into_iter().map(|item| self.expr(item, level)).collect()
    }

    fn maybe(&self, item: Option<&ast::Expr>, level: u32) -> Made<Option<Expr>> {
        item.map(|item| self.expr(item, level)).transpose()
    }

    fn boxed(&self, item: &ast::Expr, level: u32) -> Made<Box<Expr>> {
        self.expr(item, level).map(Box::new)
    }

    fn stmt(&self, stmt: &ast::Stmt, level: u32) -> Made<Stmt> {
        use ast::Stmt as S;
        let line = self.line(stmt);
        if level > MOST_LEVELS {
            return Err(TooDeep(line));
        }
        let kind = match stmt {
            S::Assign(node) => StmtKind::Assign(self.exprs(&node.targets, level)?, self.expr(&node.value, level)?),
            S::AnnAssign(node) => match &node.value {
                Some(value) => StmtKind::Assign(vec![self.expr(&node.target, level)?], self.expr(value, level)?),
                None => StmtKind::Pass,
            },
            S::AugAssign(node) => {
                StmtKind::Augment(self.expr(&node.target, level)?, binary(node.op), self.expr(&node.value, level)?)
            }
            S::Expr(node) => StmtKind::Expr(self.expr(&node.value, level)?),
            S::Return(node) => StmtKind::Return(self.maybe(node.value.as_deref(), level)?),
            S::If(node) => self.branches(&node.test, &node.body, &node.elif_else_clauses, level)?,
            S::For(node) if !node.is_async => StmtKind::For(
                self.expr(&node.target, level)?,
                self.expr(&node.iter, level)?,
                self.stmts(&node.body, level)?,
                !node.orelse.is_empty(),
            ),
            S::With(node) if !node.is_async => {
                let item = |item: &ast::WithItem| {
                    Ok((self.expr(&item.context_expr, level)?, self.maybe(item.optional_vars.as_deref(), level)?))
                };
                StmtKind::With(node.items.iter().map(item).collect::<Made<_>>()?, self.stmts(&node.body, level)?)
            }
            S::Import(node) => StmtKind::Import(node.names.iter().map(imported).collect()),
            S::ImportFrom(node) => {
                let name =
                    |alias: &ast::Alias| (alias.name.to_string(), alias.asname.as_ref().unwrap_or(&alias.name).to_string());
                let module = node.module.as_ref().map(ToString::to_string).unwrap_or_default();
                StmtKind::ImportFrom(node.level, module, node.names.iter().map(name).collect())
            }
            S::FunctionDef(node) if !node.is_async => StmtKind::Def(Arc::new(Function {
                line: self.line(&node.name),
                name: node.name.to_string(),
                decorators: self.exprs(node.decorator_list.iter().map(|decorator| &decorator.expression), level)?,
                body: self.stmts(&node.body, level)?,
                ..self.signature(&node.parameters, level)?
            })),
            S::ClassDef(node) => StmtKind::Class(Arc::new(self.class(node, level)?)),
            S::Pass(_) | S::Global(_) | S::Nonlocal(_) => StmtKind::Pass,
            other => self.other(other, level)?,
        };
        Ok(Stmt { line, kind })
    }

    /// What is refused later; its statements stay, for what they assign is then unknown.
    fn other(&self, stmt: &ast::Stmt, level: u32) -> Made<StmtKind> {
        use ast::Stmt as S;
        let (word, bodies): (_, Vec<&[ast::Stmt]>) = match stmt {
            S::While(node) => ("a `while` loop", vec![&node.body]),
            S::For(node) => ("an `async for` loop", vec![&node.body]),
            S::With(node) => ("an `async with` block", vec![&node.body]),
            S::FunctionDef(_) => ("an `async def`", vec![]),
            S::Try(node) => ("a `try` block", vec![&node.body, &node.orelse, &node.finalbody]),
            S::Match(node) => ("a `match` block", node.cases.iter().map(|case| &*case.body).collect()),
            S::Raise(_) => ("a `raise`", vec![]),
            S::Assert(_) => ("an `assert`", vec![]),
            S::Delete(_) => ("a `del`", vec![]),
            S::Break(_) => ("a `break`", vec![]),
            S::Continue(_) => ("a `continue`", vec![]),
            _ => ("this statement", vec![]),
        };
        let bodies = bodies.into_iter().map(|body| self.stmts(body, level)).collect::<Made<Vec<_>>>()?;
        Ok(StmtKind::Other(word, bodies.concat()))
    }

    fn branches(&self, test: &ast::Expr, body: &[ast::Stmt], rest: &[ast::ElifElseClause], level: u32) -> Made<StmtKind> {
        if level > MOST_LEVELS {
            return Err(TooDeep(self.line(test)));
        }
        let otherwise = match rest {
            [] => vec![],
            [clause, rest @ ..] => match &clause.test {
                Some(test) => {
                    vec![Stmt { line: self.line(clause), kind: self.branches(test, &clause.body, rest, level + 1)? }]
                }
                None => self.stmts(&clause.body, level)?,
            },
        };
        Ok(StmtKind::If(self.expr(test, level)?, self.stmts(body, level)?, otherwise))
    }

    fn class(&self, node: &ast::StmtClassDef, level: u32) -> Made<Class> {
        let arguments = node.arguments.as_deref();
        let (bases, keywords) = match arguments {
            Some(arguments) => (self.exprs(&arguments.args, level)?, self.keywords(&arguments.keywords, level)?),
            None => (vec![], vec![]),
        };
        let body = self.stmts(&node.body, level)?;
        let doc = match body.first().map(|stmt| &stmt.kind) {
            Some(StmtKind::Expr(Expr { kind: ExprKind::Str(doc), .. })) => Some(doc.clone()),
            _ => None,
        };
        Ok(Class {
            line: self.line(&node.name),
            name: node.name.to_string(),
            bases,
            keywords,
            decorators: self.exprs(node.decorator_list.iter().map(|decorator| &decorator.expression), level)?,
            doc,
            body,
        })
    }

    fn keywords(&self, keywords: &[ast::Keyword], level: u32) -> Made<Vec<(Option<String>, Expr)>> {
        let keyword =
            |keyword: &ast::Keyword| Ok((keyword.arg.as_ref().map(ToString::to_string), self.expr(&keyword.value, level)?));
        keywords.iter().map(keyword).collect()
    }

    /// A function of which only the parameters are known.
    fn signature(&self, parameters: &ast::Parameters, level: u32) -> Made<Function> {
        let all = parameters.posonlyargs.iter().chain(&parameters.args).chain(&parameters.kwonlyargs);
        let param = |param: &ast::ParameterWithDefault| {
            Ok((param.parameter.name.to_string(), self.maybe(param.default.as_deref(), level)?))
        };
        Ok(Function {
            line: self.line(parameters),
            name: String::new(),
            params: all.map(param).collect::<Made<_>>()?,
            is_variadic: parameters.vararg.is_some() || parameters.kwarg.is_some(),
            decorators: vec![],
            body: vec![],
        })
    }

    fn expr(&self, expr: &ast::Expr, level: u32) -> Made<Expr> {
        use ast::Expr as E;
        let (line, level) = (self.line(expr), level + 1);
        if level > MOST_LEVELS {
            return Err(TooDeep(line));
        }
        let kind = match expr {
            E::NoneLiteral(_) => ExprKind::None,
            E::BooleanLiteral(node) => ExprKind::Bool(node.value),
            E::NumberLiteral(node) => number(&node.value),
            E::StringLiteral(node) => ExprKind::Str(node.value.to_str().to_owned()),
            E::FString(node) => ExprKind::Format(self.format(&node.value, level)?),
            E::Name(node) => ExprKind::Name(node.id.to_string()),
            E::List(node) => ExprKind::List(self.exprs(&node.elts, level)?),
            E::Tuple(node) => ExprKind::Tuple(self.exprs(&node.elts, level)?),
            E::Set(node) => ExprKind::Set(self.exprs(&node.elts, level)?),
            E::Dict(node) => {
                let item = |item: &ast::DictItem| Ok((self.maybe(item.key.as_ref(), level)?, self.expr(&item.value, level)?));
                ExprKind::Dict(node.items.iter().map(item).collect::<Made<_>>()?)
            }
            E::Attribute(node) => ExprKind::Attribute(self.boxed(&node.value, level)?, node.attr.to_string()),
            E::Subscript(node) => ExprKind::Subscript(self.boxed(&node.value, level)?, self.boxed(&node.slice, level)?),
            E::Slice(node) => {
                let parts = [&node.lower, &node.upper, &node.step];
                ExprKind::Slice(parts.into_iter().map(|part| self.maybe(part.as_deref(), level)).collect::<Made<_>>()?)
            }
            E::Call(node) => ExprKind::Call(Box::new(Call {
                function: self.expr(&node.func, level)?,
                args: self.exprs(&node.arguments.args, level)?,
                keywords: self.keywords(&node.arguments.keywords, level)?,
            })),
            E::UnaryOp(node) => ExprKind::Unary(unary(node.op), self.boxed(&node.operand, level)?),
            E::BinOp(node) => ExprKind::Binary(self.boxed(&node.left, level)?, binary(node.op), self.boxed(&node.right, level)?),
            E::BoolOp(node) => {
                let logic = if node.op == ast::BoolOp::And { Logic::And } else { Logic::Or };
                ExprKind::Logic(logic, self.exprs(&node.values, level)?)
            }
            E::Compare(node) => {
                let rest = node.ops.iter().zip(&node.comparators);
                let rest = rest.map(|(op, right)| Ok((compare(*op), self.expr(right, level)?))).collect::<Made<_>>()?;
                ExprKind::Compare(self.boxed(&node.left, level)?, rest)
            }
            E::If(node) => ExprKind::IfElse(Box::new([
                self.expr(&node.test, level)?,
                self.expr(&node.body, level)?,
                self.expr(&node.orelse, level)?,
            ])),
            E::Lambda(node) => {
                let signature = node.parameters.as_deref().map(|parameters| self.signature(parameters, level)).transpose()?;
                let nothing =
                    Function { line, name: String::new(), params: vec![], is_variadic: false, decorators: vec![], body: vec![] };
                let value = self.expr(&node.body, level)?;
                let body = vec![Stmt { line, kind: StmtKind::Return(Some(value)) }];
                ExprKind::Lambda(Arc::new(Function { line, body, ..signature.unwrap_or(nothing) }))
            }
            E::ListComp(node) => self.comprehension("list", None, &node.elt, &node.generators, level)?,
            E::SetComp(node) => self.comprehension("set", None, &node.elt, &node.generators, level)?,
            E::Generator(node) => self.comprehension("generator", None, &node.elt, &node.generators, level)?,
            E::DictComp(node) => self.comprehension("dict", node.key.as_deref(), &node.value, &node.generators, level)?,
            E::Starred(node) => ExprKind::Starred(self.boxed(&node.value, level)?),
            other => ExprKind::Other(word(other)),
        };
        Ok(Expr { line, kind })
    }

    fn comprehension(
        &self,
        kind: &'static str,
        key: Option<&ast::Expr>,
        item: &ast::Expr,
        generators: &[ast::Comprehension],
        level: u32,
    ) -> Made<ExprKind> {
        let clause = |clause: &ast::Comprehension| {
            Ok((self.expr(&clause.target, level)?, self.expr(&clause.iter, level)?, self.exprs(&clause.ifs, level)?))
        };
        let clauses = generators.iter().map(clause).collect::<Made<_>>()?;
        let (key, item) = (self.maybe(key, level)?, self.expr(item, level)?);
        Ok(ExprKind::Comprehension(Box::new(Comprehension { kind, key, item, clauses })))
    }

    fn format(&self, value: &ast::FStringValue, level: u32) -> Made<Vec<FormatPart>> {
        let mut parts = Vec::new();
        for part in value {
            match part {
                FStringPart::Literal(literal) => parts.push(FormatPart::Text(literal.value.to_string())),
                FStringPart::FString(string) => {
                    for element in &string.elements {
                        parts.push(self.format_part(element, level)?);
                    }
                }
            }
        }
        Ok(parts)
    }

    fn format_part(&self, element: &InterpolatedStringElement, level: u32) -> Made<FormatPart> {
        let node = match element {
            InterpolatedStringElement::Literal(literal) => return Ok(FormatPart::Text(literal.value.to_string())),
            InterpolatedStringElement::Interpolation(node) => node,
        };
        let literal = |element: &InterpolatedStringElement| match element {
            InterpolatedStringElement::Literal(literal) => Some(literal.value.to_string()),
            InterpolatedStringElement::Interpolation(_) => None,
        };
        let spec = match &node.format_spec {
            Some(spec) => spec.elements.iter().map(literal).collect(),
            None => Some(String::new()),
        };
        // `{x=}` shows its own text too; nothing but a computed format says "cannot be told" as well.
        let spec = if node.debug_text.is_some() { None } else { spec };
        let repr = matches!(node.conversion, ast::ConversionFlag::Repr | ast::ConversionFlag::Ascii);
        Ok(FormatPart::Value { value: self.expr(&node.expression, level)?, repr, spec })
    }
}

fn imported(alias: &ast::Alias) -> (String, String) {
    let module = alias.name.to_string();
    if let Some(name) = &alias.asname {
        return (module, name.to_string());
    }
    // `import a.b` binds `a`.
    let first = module.split('.').next().unwrap_or_default().to_owned();
    (first.clone(), first)
}

fn number(number: &ast::Number) -> ExprKind {
    match number {
        ast::Number::Int(int) => int.as_i64().map_or(ExprKind::Other("an integer beyond 64 bits"), ExprKind::Int),
        ast::Number::Float(float) => ExprKind::Float(*float),
        ast::Number::Complex { .. } => ExprKind::Other("a complex number"),
    }
}

fn unary(op: ast::UnaryOp) -> Unary {
    match op {
        ast::UnaryOp::Not => Unary::Not,
        ast::UnaryOp::USub => Unary::Minus,
        ast::UnaryOp::UAdd => Unary::Plus,
        ast::UnaryOp::Invert => Unary::Invert,
    }
}

fn binary(op: ast::Operator) -> Binary {
    match op {
        ast::Operator::Add => Binary::Add,
        ast::Operator::Sub => Binary::Sub,
        ast::Operator::Mult => Binary::Mul,
        ast::Operator::Div => Binary::Div,
        ast::Operator::FloorDiv => Binary::FloorDiv,
        ast::Operator::Mod => Binary::Mod,
        ast::Operator::Pow => Binary::Pow,
        ast::Operator::BitOr => Binary::BitOr,
        ast::Operator::BitAnd => Binary::BitAnd,
        _ => Binary::Other,
    }
}

fn compare(op: ast::CmpOp) -> Compare {
    match op {
        ast::CmpOp::Eq => Compare::Eq,
        ast::CmpOp::NotEq => Compare::NotEq,
        ast::CmpOp::Lt => Compare::Lt,
        ast::CmpOp::LtE => Compare::LtE,
        ast::CmpOp::Gt => Compare::Gt,
        ast::CmpOp::GtE => Compare::GtE,
        ast::CmpOp::Is => Compare::Is,
        ast::CmpOp::IsNot => Compare::IsNot,
        ast::CmpOp::In => Compare::In,
        ast::CmpOp::NotIn => Compare::NotIn,
    }
}

fn word(expr: &ast::Expr) -> &'static str {
    match expr {
        ast::Expr::Named(_) => "`:=`",
        ast::Expr::Await(_) => "`await`",
        ast::Expr::Yield(_) | ast::Expr::YieldFrom(_) => "`yield`",
        ast::Expr::BytesLiteral(_) => "bytes",
        ast::Expr::EllipsisLiteral(_) => "`...`",
        ast::Expr::TString(_) => "a t-string",
        _ => "this expression",
    }
}
