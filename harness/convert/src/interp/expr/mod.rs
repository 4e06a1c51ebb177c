//! Expressions. Longer than other files: one walk over every kind of expression, so that none is forgotten.

pub(crate) mod constant;
mod facts;
pub(crate) mod operators;
pub(crate) mod subscript;

use super::{Interp, Made, Stop, get, test::default_of};
use crate::{
    python::{Expr, ExprKind, FormatPart, Logic, StmtKind},
    report::Level,
    value::{
        Choice, Method, Piece, Thing, Value,
        cel::{Cel, Kind, Prec},
        cond::Cond,
        join,
        judge::Judge,
    },
};

/// Python's own functions that are known here.
const BUILTINS: [&str; 24] = [
    "range",
    "list",
    "tuple",
    "set",
    "dict",
    "len",
    "str",
    "int",
    "float",
    "bool",
    "sorted",
    "min",
    "max",
    "sum",
    "abs",
    "round",
    "zip",
    "enumerate",
    "open",
    "print",
    "repr",
    "reversed",
    "any",
    "all",
];

/// Functions that ReFrame puts into every class body.
pub(crate) const FRAMEWORK: [&str; 14] = [
    "parameter",
    "variable",
    "fixture",
    "required",
    "bind",
    "deferrable",
    "run_before",
    "run_after",
    "sanity_function",
    "performance_function",
    "require_deps",
    "final",
    "loggable",
    "xfail",
];

impl Interp<'_> {
    /// The value of an expression.
    pub(crate) fn expr(&mut self, expr: &Expr) -> Made {
        let line = expr.line;
        self.step(line)?;
        let value = match &expr.kind {
            ExprKind::None => Value::None,
            ExprKind::Bool(value) => Value::Bool(*value),
            ExprKind::Int(value) => Value::Int(*value),
            ExprKind::Float(value) => Value::Float(*value),
            ExprKind::Str(text) => Value::Str(text.clone()),
            ExprKind::Name(name) => self.name(name, line)?,
            ExprKind::Format(parts) => self.format(parts, line)?,
            ExprKind::List(items) | ExprKind::Set(items) => Value::List(self.items(items)?),
            ExprKind::Tuple(items) => Value::Tuple(self.items(items)?),
            ExprKind::Dict(entries) => self.dict(entries)?,
            ExprKind::Attribute(of, name) => {
                let of = self.expr(of)?;
                self.attribute(&of, name, line)?
            }
            ExprKind::Subscript(of, index) => {
                let of = self.expr(of)?;
                self.subscript(&of, index, line)?
            }
            ExprKind::Call(call) => self.call(call, line)?,
            ExprKind::Unary(op, operand) => {
                let operand = self.expr(operand)?;
                self.unary(*op, &operand, line)?
            }
            ExprKind::Binary(left, op, right) => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                self.binary(&left, *op, &right, line)?
            }
            ExprKind::Logic(logic, operands) => self.logic(*logic, operands, line)?,
            ExprKind::Compare(left, rest) => self.compare(left, rest, line)?,
            ExprKind::IfElse(parts) => {
                let [test, then, otherwise] = &**parts;
                match self.cond(test)? {
                    Cond::Always(true) => self.expr(then)?,
                    Cond::Always(false) => self.expr(otherwise)?,
                    cond => {
                        let (then, otherwise) = (self.expr(then)?, self.expr(otherwise)?);
                        join(&cond, &then, &otherwise)
                    }
                }
            }
            ExprKind::Lambda(function) => {
                let class = self.frame.class.clone().unwrap_or((self.frame.file, String::new()));
                Value::Thing(Thing::Function(Method { function: function.clone(), class }))
            }
            ExprKind::Comprehension(comprehension) => self.comprehension(comprehension, line)?,
            ExprKind::Starred(_) => return Err(Stop::new(line, "`*` is not followed here")),
            ExprKind::Slice(_) => return Err(Stop::new(line, "a slice stands only in brackets")),
            ExprKind::Other(what) => return Err(Stop::new(line, format!("{what} has no counterpart"))),
        };
        if value == Value::Unknown { Err(Stop::silent(line)) } else { Ok(value) }
    }

    fn items(&mut self, items: &[Expr]) -> Made<Vec<Value>> {
        let mut values = Vec::new();
        for item in items {
            match &item.kind {
                ExprKind::Starred(inner) => match self.expr(inner)? {
                    Value::List(inner) | Value::Tuple(inner) => values.extend(inner),
                    _ => return Err(Stop::new(item.line, "only a list that is written out can be unpacked")),
                },
                _ => values.push(self.part(item)?),
            }
        }
        Ok(values)
    }

    /// A part of a list or mapping.
    fn part(&mut self, part: &Expr) -> Made {
        match self.expr(part) {
            Err(stop) if self.is_lenient => {
                // Nothing is left out of it without a line.
                let is_told = !stop.why.is_empty();
                self.tell(if is_told { stop } else { Stop::new(part.line, "this depends on what was not carried over") });
                Ok(Value::Unknown)
            }
            made => made,
        }
    }

    fn dict(&mut self, entries: &[(Option<Expr>, Expr)]) -> Made {
        let mut dict: Vec<(Value, Value)> = Vec::new();
        let put = |dict: &mut Vec<(Value, Value)>, key: Value, value| match dict.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => dict.push((key, value)),
        };
        for (key, value) in entries {
            let line = value.line;
            let value = self.part(value)?;
            match (key, value) {
                (Some(key), value) => {
                    let key = self.expr(key)?;
                    put(&mut dict, key, value);
                }
                (None, Value::Dict(inner)) => inner.into_iter().for_each(|(key, value)| put(&mut dict, key, value)),
                (None, _) => return Err(Stop::new(line, "only a mapping that is written out can be unpacked")),
            }
        }
        Ok(Value::Dict(dict))
    }

    fn name(&mut self, name: &str, line: u32) -> Made {
        if let Some(value) = get(&self.state.locals, name) {
            return match value {
                Value::Unknown => Err(Stop::silent(line)),
                Value::Absent => Err(Stop::new(line, format!("`{name}` has no value in one of the branches before"))),
                value => Ok(value.clone()),
            };
        }
        let file = &self.world.files[self.frame.file];
        if let Some(value) = file.globals.get(name) {
            return if *value == Value::Unknown { Err(Stop::silent(line)) } else { Ok(value.clone()) };
        }
        if file.classes.iter().any(|class| class.name == name) {
            return Ok(Value::Thing(Thing::Class((self.frame.file, name.to_owned()))));
        }
        if let Some(function) = file.functions.get(name) {
            let class = (self.frame.file, String::new());
            return Ok(Value::Thing(Thing::Function(Method { function: function.clone(), class })));
        }
        if let Some(full) = file.imports.get(name) {
            let full = full.clone();
            return Ok(self.full_name(full));
        }
        if FRAMEWORK.contains(&name) {
            return Ok(Value::name(format!("reframe.{name}")));
        }
        // A class body sees the variables of its bases.
        if let (Some(_), 0, Some(value)) = (&self.frame.class, self.calls, default_of(name)) {
            return Ok(value);
        }
        if BUILTINS.contains(&name) || name == "super" {
            return Ok(Value::name(format!("builtins.{name}")));
        }
        if name == "__file__" {
            return Err(Stop::new(line, "where the file lies is known only when it runs")
                .instead("name files relative to the check, or by a variable"));
        }
        Err(Stop::new(line, format!("there is no `{name}`")).level(Level::Defect))
    }

    /// What a full name stands for: something of these files, or something that is imported.
    pub(crate) fn full_name(&self, full: String) -> Value {
        let Some((file, name)) = self.world.resolve(&full) else { return Value::name(full) };
        let there = &self.world.files[file];
        if let Some(value) = there.globals.get(&name) {
            return value.clone();
        }
        if there.classes.iter().any(|class| class.name == name) {
            return Value::Thing(Thing::Class((file, name)));
        }
        match there.functions.get(&name) {
            Some(function) => Value::Thing(Thing::Function(Method { function: function.clone(), class: (file, String::new()) })),
            None => Value::name(full),
        }
    }

    /// An attribute of a value.
    pub(crate) fn attribute(&mut self, of: &Value, name: &str, line: u32) -> Made {
        match of {
            Value::Thing(Thing::This) => self.self_attribute(name, line),
            Value::Thing(Thing::Name(full)) if full == "os" && name == "environ" => Ok(Value::name("os.environ")),
            Value::Thing(Thing::Name(full)) => Ok(self.full_name(format!("{full}.{name}"))),
            Value::Thing(Thing::Fact(path)) => self.fact(path, name, line),
            Value::Thing(Thing::Job(path)) => match name {
                "num_tasks" => Ok(Value::known("num_tasks", Kind::Int)),
                _ => Ok(Value::Thing(Thing::Job(format!("{path}.{name}")))),
            },
            Value::Thing(Thing::Platform(path)) => {
                let known = get(&self.state.attrs, &format!("{path}.{name}")).cloned();
                known.ok_or_else(|| Stop::new(line, format!("`{path}.{name}` has no value here")))
            }
            Value::Thing(Thing::Class(id)) => self.class_attribute(&id.clone(), name, line),
            Value::Thing(Thing::Dependency(check)) => self.dependency_attribute(check, name, line),
            Value::Thing(Thing::Fixture(fixture)) => self.fixture_attribute(fixture, name, line),
            Value::Thing(Thing::Nothing) => Ok(Value::Thing(Thing::Nothing)),
            _ => Err(Stop::new(line, format!("`.{name}` of this value cannot be followed"))),
        }
    }

    fn dependency_attribute(&self, check: &str, name: &str, line: u32) -> Made {
        if name == "stagedir" {
            return Ok(Value::known(&format!("deps.{check}.stagedir"), Kind::Text));
        }
        Err(Stop::new(line, format!("`{name}` of another test is not known here"))
            .instead("declare it in `outputs` of that check and read `deps.CHECK.outputs`"))
    }

    /// What a fixture leaves: its folder, its parameters and variables.
    fn fixture_attribute(&self, fixture: &str, name: &str, line: u32) -> Made {
        let known = self.test.fixtures.iter().find(|(known, ..)| known == fixture);
        let Some((_, class, joins)) = known else { return Err(Stop::silent(line)) };
        if *joins {
            return Err(Stop::new(line, "what several variants of a fixture leave is a list")
                .instead("read it as `fixtures.NAME[0].stagedir`"));
        }
        if name == "stagedir" {
            return Ok(Value::known(&format!("fixtures.{fixture}.stagedir"), Kind::Text));
        }
        if self.declares(class, name) {
            return Ok(Value::known(&format!("fixtures.{fixture}.{name}"), Kind::Any));
        }
        Err(Stop::new(line, format!("`{name}` of a fixture is not known here")).instead("declare it in `outputs` of its check"))
    }

    /// Whether a class or one of its bases declares a parameter or a variable with one plain value.
    fn declares(&self, class: &crate::value::ClassId, name: &str) -> bool {
        let Ok((lineage, _)) = self.world.lineage(class) else { return false };
        let is_plain =
            |expr: &Expr| matches!(expr.kind, ExprKind::Str(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_));
        lineage.iter().filter_map(|id| self.world.class(id)).flat_map(|class| &class.body).any(|stmt| match &stmt.kind {
            StmtKind::Assign(targets, Expr { kind: ExprKind::Call(call), .. }) => {
                let is_it = targets.iter().any(|target| target.dotted().as_deref() == Some(name));
                let declares = match call.function.dotted().as_deref() {
                    Some("parameter") => true,
                    Some("variable") => {
                        call.keywords.iter().any(|(key, value)| key.as_deref() == Some("value") && is_plain(value))
                    }
                    _ => false,
                };
                is_it && declares
            }
            _ => false,
        })
    }

    /// `self.name`
    pub(crate) fn self_attribute(&mut self, name: &str, line: u32) -> Made {
        if let Some(param) = self.test.param(name) {
            return Ok(param.value());
        }
        if self.test.stable.iter().any(|known| known == name) {
            let kind = get(&self.state.attrs, name).map_or(Kind::Any, Value::kind);
            self.test.read.push(name.to_owned());
            return Ok(Value::known(name, kind));
        }
        match get(&self.state.attrs, name) {
            Some(Value::Unknown) => return Err(Stop::silent(line)),
            Some(Value::Absent) => {
                return Err(Stop::new(line, format!("`self.{name}` has no value in one of the branches before")));
            }
            Some(value) if name != "container_platform" && name != "build_system" => return Ok(value.clone()),
            _ => {}
        }
        if self.test.fixtures.iter().any(|(fixture, ..)| fixture == name) {
            return Ok(Value::Thing(Thing::Fixture(name.to_owned())));
        }
        if let Some(method) = self.test.methods.get(name).cloned() {
            let is = |word: &str| method.function.decorators.iter().any(|above| above.dotted().as_deref() == Some(word));
            return if is("property") { self.inline(&method, vec![], &[], line) } else { Ok(Value::Thing(Thing::Bound(method))) };
        }
        if let Some(value) = self.own_fact(name, line)? {
            return Ok(value);
        }
        default_of(name).ok_or_else(|| Stop::new(line, format!("the test has no attribute `{name}`")).level(Level::Defect))
    }

    /// An f-string.
    fn format(&mut self, parts: &[FormatPart], line: u32) -> Made {
        let mut values = Vec::new();
        for part in parts {
            values.push(match part {
                FormatPart::Text(text) => Value::Str(text.clone()),
                FormatPart::Value { value, repr, spec } => {
                    let value = self.expr(value)?;
                    let Some(spec) = spec else { return Err(Stop::new(line, "a computed format has no counterpart")) };
                    self.formatted(&value, *repr, spec, line)?
                }
            });
        }
        self.concatenated(&values, line)
    }

    /// Texts in a row. One that depends on a branch, among others that do not, stays a choice of whole texts.
    pub(crate) fn concatenated(&mut self, values: &[Value], line: u32) -> Made {
        let choices = values.iter().filter(|value| matches!(value, Value::Choice(_))).count();
        if choices == 1
            && let Some(at) = values.iter().position(|value| matches!(value, Value::Choice(_)))
            && let Value::Choice(choice) = &values[at]
        {
            return choice.map(|value| {
                let with: Vec<Value> =
                    values.iter().enumerate().map(|(index, other)| if index == at { value } else { other }.clone()).collect();
                self.concatenated(&with, line)
            });
        }
        if values.iter().any(|value| matches!(value, Value::Judge(_))) {
            return self.judged_text(values, line);
        }
        let mut pieces = Vec::new();
        for value in values {
            let made = value.pieces().ok_or_else(|| {
                if value.is_unknown() { Stop::silent(line) } else { Stop::new(line, "this value has no text here") }
            })?;
            pieces.extend(made);
        }
        Ok(Value::joined(pieces))
    }

    fn judged_text(&self, values: &[Value], line: u32) -> Made {
        let mut whole: Option<Cel> = None;
        for value in values {
            let cel = self.cel(value, line)?.as_text();
            whole = Some(match whole {
                None => cel,
                Some(before) => Cel::binary(&before, "+", &cel, Prec::Add, Kind::Text),
            });
        }
        Ok(Value::Judge(Judge::plain(whole.unwrap_or_else(|| Cel::literal("")))))
    }

    /// A value as an expression of Muster's, the output included.
    pub(crate) fn cel(&self, value: &Value, line: u32) -> Made<Cel> {
        match value {
            Value::Judge(judge) => Ok(judge.cel.clone()),
            Value::Figure(figure) => self.cel(&figure.0, line),
            Value::List(items) | Value::Tuple(items) if items.iter().any(|item| matches!(item, Value::Judge(_))) => {
                let items = items.iter().map(|item| Ok(self.cel(item, line)?.text)).collect::<Made<Vec<_>>>()?;
                Ok(Cel::new(format!("[{}]", items.join(", ")), Prec::Atom, Kind::List))
            }
            Value::Choice(choice) if choice.values().any(|value| matches!(value, Value::Judge(_))) => {
                let mut rest = choice.default.as_ref().map(|value| self.cel(value, line)).transpose()?;
                for (cond, value) in choice.arms.iter().rev() {
                    let value = self.cel(value, line)?;
                    rest = Some(rest.map_or_else(|| value.clone(), |rest| Cel::ternary(&cond.cel(), &value, &rest)));
                }
                rest.ok_or_else(|| Stop::silent(line))
            }
            _ if value.is_unknown() => Err(Stop::silent(line)),
            _ => Cel::of(value).ok_or_else(|| {
                let shell = matches!(value, Value::Text(pieces) if pieces.iter().any(|piece| matches!(piece, Piece::Shell(_))));
                if shell {
                    Stop::new(line, "the environment is read by the job's shell, not here")
                        .instead("use `$NAME` in commands, or a variable of the check that `-S` sets")
                } else {
                    Stop::new(line, "this value cannot be computed here")
                }
            }),
        }
    }

    /// `and`, `or`: of conditions; `a or b` also of values.
    fn logic(&mut self, logic: Logic, operands: &[Expr], line: u32) -> Made {
        let mut values = Vec::new();
        for operand in operands {
            let value = self.expr(operand)?;
            // What Python would not evaluate is not evaluated here either.
            let decided = value.truth().is_some_and(|truth| truth == (logic == Logic::Or));
            values.push(value);
            if decided {
                break;
            }
        }
        if values.iter().any(|value| matches!(value, Value::Judge(_))) {
            let (operator, prec) = if logic == Logic::And { ("&&", Prec::And) } else { ("||", Prec::Or) };
            return self.judged_fold(&values, operator, prec, line);
        }
        let mut values = values.into_iter().rev();
        let Some(mut result) = values.next() else { return Err(Stop::silent(line)) };
        for value in values {
            let cond = self.truth(&value, line)?;
            result = match (logic, &cond) {
                (Logic::And, Cond::Always(true)) | (Logic::Or, Cond::Always(false)) => result,
                (_, Cond::Always(_)) => value,
                (Logic::And, _) => match &result {
                    Value::Test(rest) => Value::Test(Cond::all([cond, rest.clone()])),
                    Value::Bool(rest) => Value::Test(Cond::all([cond, Cond::Always(*rest)])),
                    other => join(&cond, other, &value),
                },
                (Logic::Or, _) => match &result {
                    Value::Test(rest) => Value::Test(Cond::any([cond, rest.clone()])),
                    Value::Bool(rest) => Value::Test(Cond::any([cond, Cond::Always(*rest)])),
                    other => join(&cond, &value, other),
                },
            };
        }
        Ok(result)
    }

    pub(crate) fn judged_fold(&self, values: &[Value], operator: &str, prec: Prec, line: u32) -> Made {
        let mut whole: Option<Cel> = None;
        for value in values {
            let cel = self.cel(value, line)?;
            whole = Some(whole.map_or(cel.clone(), |before| Cel::binary(&before, operator, &cel, prec, Kind::Bool)));
        }
        whole.map(|cel| Value::Judge(Judge::plain(cel))).ok_or_else(|| Stop::silent(line))
    }

    /// An expression as a condition.
    pub(crate) fn cond(&mut self, expr: &Expr) -> Made<Cond> {
        let value = self.expr(expr)?;
        self.truth(&value, expr.line)
    }

    /// What Python calls the truth of a value.
    pub(crate) fn truth(&mut self, value: &Value, line: u32) -> Made<Cond> {
        if let Some(truth) = value.truth() {
            return Ok(Cond::Always(truth));
        }
        let not = |cel: &Cel, nothing: &str| {
            let nothing = Cel::new(nothing, Prec::Atom, Kind::Any);
            Cond::Cel(Cel::binary(cel, "!=", &nothing, Prec::Relation, Kind::Bool))
        };
        match value {
            Value::Test(cond) => Ok(cond.clone()),
            Value::Cel(cel) => {
                if let Some(crate::value::cond::Subject::Parameter(name, _)) = &cel.subject
                    && let Some(param) = self.test.param(name).filter(|param| !param.is_abstract)
                {
                    return Ok(param.is(|value| value.truth() == Some(true)));
                }
                Ok(match cel.kind {
                    Kind::Bool => Cond::Cel(cel.clone()),
                    Kind::Int | Kind::Float => not(cel, "0"),
                    Kind::Text => not(cel, "''"),
                    Kind::List | Kind::Map => not(&Cel::call("size", std::slice::from_ref(cel), Kind::Int), "0"),
                    Kind::Any => {
                        return Err(
                            Stop::new(line, "whether this counts as true is not known here").instead("compare it with a value")
                        );
                    }
                })
            }
            Value::Choice(choice) => {
                let choice: &Choice = choice;
                let mut cond = match &choice.default {
                    Some(default) => self.truth(default, line)?,
                    None => Cond::Always(false),
                };
                for (test, value) in choice.arms.iter().rev() {
                    let truth = self.truth(value, line)?;
                    cond = Cond::any([Cond::all([test.clone(), truth]), Cond::all([test.negated(), cond])]);
                }
                Ok(cond)
            }
            Value::Text(pieces) if pieces.iter().any(|piece| matches!(piece, Piece::Text(_))) => Ok(Cond::Always(true)),
            Value::Judge(_) => Err(Stop::new(line, "a branch on the output has no counterpart")
                .instead("write both sides into one `assert`: `a ? b : c`")),
            Value::Unknown => Err(Stop::silent(line)),
            _ => Err(Stop::new(line, "whether this counts as true is not known here")),
        }
    }
}
