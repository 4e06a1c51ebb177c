//! Statements: straight lines, branches, and loops over what is written out. Longer than other files: one walk over every kind.
//!
//! ```text
//! if c: A          both branches begin with the same state; afterwards join(c, after A, after B)
//! else: B          a branch that returns takes what follows the `if` into the other branch
//! ```

use super::{
    Interp, MOST_PARTS, Made, State, Stop, call::methods::job_option, expr::operators::is_thing, get, parts, set,
    test::default_of,
};
use crate::{
    python::{Call, Expr, ExprKind, Stmt, StmtKind},
    value::{Thing, Value, cond::Cond, join},
};

/// How a block ended.
#[derive(Debug, Clone, PartialEq)]
enum Flow {
    Next,
    Return(Value),
}

/// Methods that change what they are called on.
const CHANGES: [&str; 6] = ["append", "extend", "insert", "update", "add", "setdefault"];

impl Interp<'_> {
    /// Runs a function's body and gives what it returns.
    pub(super) fn body(&mut self, body: &[Stmt]) -> Value {
        let stmts: Vec<&Stmt> = body.iter().collect();
        match self.block(&stmts) {
            Flow::Next => Value::None,
            Flow::Return(value) => value,
        }
    }

    /// Runs statements one after the other.
    fn block(&mut self, stmts: &[&Stmt]) -> Flow {
        for (at, stmt) in stmts.iter().enumerate() {
            if let Err(stop) = self.step(stmt.line) {
                self.tell(stop);
                return Flow::Return(Value::Unknown);
            }
            if let StmtKind::If(test, then, otherwise) = &stmt.kind {
                let rest = &stmts[at + 1..];
                let ends = returns(then) || returns(otherwise);
                let flow = self.branch(test, then, otherwise, if ends { rest } else { &[] });
                if ends {
                    return flow;
                }
                continue;
            }
            match self.stmt(stmt) {
                Ok(Flow::Next) => {}
                Ok(flow) => return flow,
                Err(stop) => {
                    self.tell(stop);
                    self.forget(std::slice::from_ref(*stmt));
                    if returns(std::slice::from_ref(*stmt)) {
                        return Flow::Return(Value::Unknown);
                    }
                }
            }
        }
        Flow::Next
    }

    fn branch(&mut self, test: &Expr, then: &[Stmt], otherwise: &[Stmt], rest: &[&Stmt]) -> Flow {
        let with_rest =
            |body: &[Stmt]| -> Vec<Stmt> { body.iter().cloned().chain(rest.iter().map(|stmt| (*stmt).clone())).collect() };
        let cond = match self.cond(test) {
            Ok(cond) => cond,
            Err(stop) => {
                self.tell(stop);
                self.forget(then);
                self.forget(otherwise);
                self.forget(&rest.iter().map(|stmt| (*stmt).clone()).collect::<Vec<_>>());
                return if rest.is_empty() && !returns(then) && !returns(otherwise) {
                    Flow::Next
                } else {
                    Flow::Return(Value::Unknown)
                };
            }
        };
        let (then, otherwise) = (with_rest(then), with_rest(otherwise));
        let run = |this: &mut Self, body: &[Stmt]| this.block(&body.iter().collect::<Vec<_>>());
        match cond {
            Cond::Always(true) => run(self, &then),
            Cond::Always(false) => run(self, &otherwise),
            cond => {
                let before = self.state.clone();
                self.path.push(cond.clone());
                let first = run(self, &then);
                self.path.pop();
                let after_then = std::mem::replace(&mut self.state, before);
                self.path.push(cond.negated());
                let second = run(self, &otherwise);
                self.path.pop();
                self.state = self.joined_state(&cond, &after_then);
                match (first, second) {
                    (Flow::Next, Flow::Next) => Flow::Next,
                    (first, second) => {
                        let value = |flow| if let Flow::Return(value) = flow { value } else { Value::None };
                        Flow::Return(join(&cond, &value(first), &value(second)))
                    }
                }
            }
        }
    }

    /// The state after both branches; the current one is the second's.
    fn joined_state(&self, cond: &Cond, then: &State) -> State {
        let names = |then: &[(String, Value)], otherwise: &[(String, Value)], is_attrs: bool| {
            let missing = |name: &str| if is_attrs { default_of(name).unwrap_or(Value::Absent) } else { Value::Absent };
            let all = then.iter().chain(otherwise.iter().filter(|(name, _)| get(then, name).is_none()));
            let joined = all.map(|(name, _)| {
                let side = |side: &[(String, Value)]| get(side, name).cloned().unwrap_or_else(|| missing(name));
                (name.clone(), join(cond, &side(then), &side(otherwise)))
            });
            joined.collect::<Vec<_>>()
        };
        State { attrs: names(&then.attrs, &self.state.attrs, true), locals: names(&then.locals, &self.state.locals, false) }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Made<Flow> {
        let line = stmt.line;
        match &stmt.kind {
            // `block` follows branches itself.
            StmtKind::Pass | StmtKind::Import(_) | StmtKind::ImportFrom(..) | StmtKind::If(..) => {}
            StmtKind::Return(None) => return Ok(Flow::Return(Value::None)),
            StmtKind::Return(Some(value)) => return self.expr(value).map(Flow::Return),
            StmtKind::Assign(targets, value) => {
                // What is the scheduler's is dropped whatever its value is.
                if let Some(target) = targets.iter().find(|target| self.is_job_option(target)) {
                    return Err(job_option(target.line));
                }
                self.is_lenient = targets.iter().any(|target| target.dotted().as_deref() == Some("site_configuration"));
                let value = self.expr(value);
                self.is_lenient = false;
                let value = value?;
                for target in targets {
                    self.assign(target, &value)?;
                }
            }
            StmtKind::Augment(target, op, value) => {
                if self.is_job_option(target) {
                    return Err(job_option(line));
                }
                let (before, value) = (self.expr(target)?, self.expr(value)?);
                let after = self.binary(&before, *op, &value, line)?;
                self.assign(target, &after)?;
            }
            StmtKind::Expr(value) => self.expression(value)?,
            StmtKind::With(items, body) => {
                for (context, name) in items {
                    let value = self.expr(context)?;
                    match (value, name) {
                        (file @ Value::Thing(Thing::File(_)), Some(name)) => self.assign(name, &file)?,
                        _ => return Err(Stop::new(line, "this `with` cannot be followed")),
                    }
                }
                return Ok(self.block(&body.iter().collect::<Vec<_>>()));
            }
            StmtKind::For(target, iter, body, has_else) => return self.unrolled(target, iter, body, *has_else, line),
            StmtKind::Def(_) => {
                return Err(Stop::new(line, "a function within a function has no counterpart")
                    .instead("make it a method, or write it out"));
            }
            StmtKind::Class(_) => return Err(Stop::new(line, "a class within a function has no counterpart")),
            StmtKind::Other(what, _) => return Err(Stop::new(line, format!("{what} has no counterpart"))),
        }
        Ok(Flow::Next)
    }

    /// A loop over what is written out is so many times its body.
    fn unrolled(&mut self, target: &Expr, iter: &Expr, body: &[Stmt], has_else: bool, line: u32) -> Made<Flow> {
        if has_else || leaves(body) {
            return Err(Stop::new(line, "a loop that is left early has no counterpart"));
        }
        if returns(body) {
            return Err(Stop::new(line, "a loop that returns has no counterpart"));
        }
        let items = self.iterable(iter).map_err(|stop| {
            let instead = "write out what it does, or make a parameter of what it runs over";
            if stop.instead.is_none() { stop.instead(instead) } else { stop }
        })?;
        for item in items {
            self.step(line)?;
            self.assign(target, &item)?;
            self.block(&body.iter().collect::<Vec<_>>());
        }
        Ok(Flow::Next)
    }

    /// An expression by itself: a call that does something.
    fn expression(&mut self, value: &Expr) -> Made<()> {
        let ExprKind::Call(call) = &value.kind else { return Ok(()) };
        if let ExprKind::Attribute(of, name) = &call.function.kind {
            if self.is_job_option(of) {
                return Err(job_option(value.line));
            }
            let is_own_method = of.dotted().as_deref() == Some("self") && self.test.methods.contains_key(name);
            if CHANGES.contains(&name.as_str()) && !is_own_method {
                return self.change(of, name, call, value.line);
            }
        }
        self.expr(value).map(|_| ())
    }

    /// `list.append(x)` and its like.
    fn change(&mut self, of: &Expr, name: &str, call: &Call, line: u32) -> Made<()> {
        let before = self.expr(of)?;
        let args = self.args(call)?;
        let after = self.changed(&before, name, &args, line)?;
        self.assign(of, &after)
    }

    fn changed(&mut self, before: &Value, name: &str, args: &super::call::Args, line: u32) -> Made {
        let strange = || Stop::new(line, format!("`.{name}()` of this cannot be followed"));
        let arg = args.by_place.first().cloned();
        match (before, name, arg) {
            (Value::List(items), "append", Some(item)) => Ok(Value::List(items.iter().cloned().chain([item]).collect())),
            (Value::List(items), "add", Some(item)) => {
                let new = (!items.contains(&item)).then_some(item);
                Ok(Value::List(items.iter().cloned().chain(new).collect()))
            }
            (Value::List(items), "insert", Some(Value::Int(0))) => {
                let item = args.by_place.get(1).cloned().ok_or_else(strange)?;
                Ok(Value::List(std::iter::once(item).chain(items.iter().cloned()).collect()))
            }
            (Value::List(items), "update", Some(Value::List(more) | Value::Tuple(more))) => {
                let new = more.iter().filter(|item| !items.contains(item)).cloned();
                Ok(Value::List(items.iter().cloned().chain(new).collect()))
            }
            (Value::List(_), "extend", Some(Value::Tuple(more))) => {
                self.binary(before, crate::python::Binary::Add, &Value::List(more), line)
            }
            (Value::List(_), "extend", Some(more)) => self.binary(before, crate::python::Binary::Add, &more, line),
            (Value::Dict(entries), "update", more) => {
                let more = match more {
                    None => vec![],
                    Some(Value::Dict(more)) => more,
                    Some(_) => return Err(strange()),
                };
                let named = args.by_name.iter().map(|(name, value)| (Value::text(&**name), value.clone()));
                let mut entries = entries.clone();
                for (key, value) in more.into_iter().chain(named) {
                    match entries.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, known)) => *known = value,
                        None => entries.push((key, value)),
                    }
                }
                Ok(Value::Dict(entries))
            }
            (Value::Dict(entries), "setdefault", Some(key)) if key.is_constant() => {
                let mut entries = entries.clone();
                if entries.iter().all(|(known, _)| *known != key) {
                    entries.push((key, args.by_place.get(1).cloned().unwrap_or(Value::None)));
                }
                Ok(Value::Dict(entries))
            }
            (Value::Choice(choice), _, _) => {
                let choice = choice.clone();
                choice.map(|value| self.changed(value, name, args, line))
            }
            _ => Err(strange()),
        }
    }

    /// Sets what a target names.
    pub(super) fn assign(&mut self, target: &Expr, value: &Value) -> Made<()> {
        let line = target.line;
        if parts(value) > MOST_PARTS {
            return Err(Stop::new(line, "this depends on too many branches to be written down"));
        }
        match &target.kind {
            ExprKind::Name(name) => {
                if self.calls == 0 {
                    self.mark(name, value, line);
                }
                set(&mut self.state.locals, name, value.clone());
            }
            ExprKind::Attribute(of, name) => match self.expr(of)? {
                Value::Thing(Thing::This) => self.assign_attribute(name, value, line)?,
                Value::Thing(Thing::Platform(path)) => set(&mut self.state.attrs, &format!("{path}.{name}"), value.clone()),
                Value::Thing(Thing::Job(_)) => return Err(job_option(line)),
                Value::Thing(Thing::Fixture(_) | Thing::Dependency(_)) => {
                    return Err(Stop::new(line, "a fixture is set with `with`, not while it runs"));
                }
                _ => return Err(Stop::new(line, "an attribute of this cannot be set here")),
            },
            ExprKind::Subscript(of, index) => {
                let (root, mut keys) = (of, vec![self.expr(index)?]);
                let mut root: &Expr = root;
                while let ExprKind::Subscript(of, index) = &root.kind {
                    keys.insert(0, self.expr(index)?);
                    root = of;
                }
                if root.dotted().as_deref() == Some("os.environ") {
                    return Err(Stop::new(line, "this changes ReFrame's own environment").instead("write `env_vars`"));
                }
                if let Some(key) = keys[0].as_str().map(str::to_owned) {
                    self.mark(&key, value, line);
                }
                let before = self.expr(root)?;
                let after = self.with_item(&before, &keys, value.clone(), line)?;
                self.assign(root, &after)?;
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                for (at, target) in (0..).zip(targets) {
                    let item = self.item(value, &Value::Int(at), None, line)?;
                    self.assign(target, &item)?;
                }
            }
            _ => return Err(Stop::new(line, "this cannot be assigned to")),
        }
        Ok(())
    }

    fn assign_attribute(&mut self, name: &str, value: &Value, line: u32) -> Made<()> {
        if self.test.param(name).is_some() {
            return Err(Stop::new(line, format!("the parameter `{name}` is set in a hook"))
                .instead("give the computed value a name of its own: a variable"));
        }
        if name == "perf_patterns" {
            self.keep_patterns(value);
        }
        // `self.variables` is ReFrame's old word.
        let name = if name == "variables" && matches!(value, Value::Dict(_)) { "env_vars" } else { name };
        self.mark(name, value, line);
        set(&mut self.state.attrs, name, value.clone());
        Ok(())
    }

    /// Whether an expression is an option of the job.
    fn is_job_option(&self, expr: &Expr) -> bool {
        expr.dotted().is_some_and(|name| name.starts_with("self.job.")) && !self.state.attrs.iter().any(|(name, _)| name == "job")
    }

    /// What statements would have set is not known any more.
    pub(super) fn forget(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Assign(targets, _) => targets.iter().for_each(|target| self.forget_target(target)),
                StmtKind::Augment(target, ..) => self.forget_target(target),
                StmtKind::Expr(Expr { kind: ExprKind::Call(call), .. }) => {
                    if let ExprKind::Attribute(of, name) = &call.function.kind
                        && CHANGES.contains(&name.as_str())
                    {
                        self.forget_target(of);
                    }
                }
                StmtKind::If(_, then, otherwise) => {
                    self.forget(then);
                    self.forget(otherwise);
                }
                StmtKind::For(target, _, body, _) => {
                    self.forget_target(target);
                    self.forget(body);
                }
                StmtKind::With(items, body) => {
                    items.iter().filter_map(|(_, name)| name.as_ref()).for_each(|name| self.forget_target(name));
                    self.forget(body);
                }
                StmtKind::Def(function) => set(&mut self.state.locals, &function.name, Value::Unknown),
                StmtKind::Other(_, body) => self.forget(body),
                _ => {}
            }
        }
    }

    fn forget_target(&mut self, target: &Expr) {
        match &target.kind {
            ExprKind::Name(name) => set(&mut self.state.locals, name, Value::Unknown),
            ExprKind::Attribute(of, name) if of.dotted().as_deref() == Some("self") => {
                // A scheduler's option is not the test's; nothing else depends on it.
                set(&mut self.state.attrs, name, Value::Unknown);
            }
            // One entry of a mapping is lost, not what stands beside it.
            ExprKind::Subscript(of, _) => {
                let known = self.apart_told(|this| this.expr(of)).ok();
                if !known.as_ref().is_some_and(|value| matches!(value, Value::Dict(_)) || is_thing(value)) {
                    self.forget_target(of);
                }
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => targets.iter().for_each(|target| self.forget_target(target)),
            _ => {}
        }
    }

    /// Tries something without a word.
    fn apart_told<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.refusals.len();
        let result = work(self);
        self.refusals.truncate(before);
        result
    }

    /// Runs the top of a file, or the body of a class.
    pub(crate) fn top(&mut self, body: &[Stmt], is_class: bool) {
        for stmt in body {
            match &stmt.kind {
                StmtKind::Def(_) | StmtKind::Class(_) | StmtKind::Import(_) | StmtKind::ImportFrom(..) | StmtKind::Pass => {
                    continue;
                }
                StmtKind::Expr(Expr { kind: ExprKind::Str(_), .. }) => continue,
                StmtKind::Expr(Expr { kind: ExprKind::Call(call), .. }) if is_class && is_bind(call) => continue,
                StmtKind::If(..) | StmtKind::For(..) | StmtKind::Other(..) | StmtKind::With(..) => {
                    // The usual last lines of a script run nothing here.
                    if !is_main(stmt) {
                        let place = if is_class { "the class body" } else { "the file" };
                        let why = format!("control flow in {place} runs while ReFrame loads it");
                        self.tell(
                            Stop::new(stmt.line, why).instead("write a parameter's values out, and put what differs into a hook"),
                        );
                        self.forget(std::slice::from_ref(stmt));
                    }
                    continue;
                }
                _ => {}
            }
            if let Err(stop) = self.stmt(stmt) {
                let is_told = !stop.why.is_empty() || !is_class;
                let stop = if is_told { stop } else { Stop::new(stmt.line, "this depends on what was not carried over") };
                self.tell(stop);
                self.forget(std::slice::from_ref(stmt));
            }
        }
    }
}

fn is_bind(call: &Call) -> bool {
    call.function.dotted().is_some_and(|name| matches!(name.rsplit('.').next(), Some("bind")))
}

/// `if __name__ == '__main__'`
fn is_main(stmt: &Stmt) -> bool {
    matches!(&stmt.kind, StmtKind::If(Expr { kind: ExprKind::Compare(left, _), .. }, ..) if left.dotted().as_deref() == Some("__name__"))
}

/// Whether a `return` is somewhere in it.
fn returns(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match &stmt.kind {
        StmtKind::Return(_) => true,
        StmtKind::If(_, then, otherwise) => returns(then) || returns(otherwise),
        StmtKind::For(_, _, body, _) | StmtKind::With(_, body) | StmtKind::Other(_, body) => returns(body),
        _ => false,
    })
}

/// Whether a `break` or `continue` is somewhere in it.
fn leaves(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match &stmt.kind {
        StmtKind::Other("a `break`" | "a `continue`", _) => true,
        StmtKind::If(_, then, otherwise) => leaves(then) || leaves(otherwise),
        StmtKind::With(_, body) | StmtKind::Other(_, body) => leaves(body),
        _ => false,
    })
}
