//! Calls: functions of the files are followed into their bodies, the rest by name.

pub(crate) mod methods;
mod named;
mod sanity;

use super::{Interp, MOST_CALLS, Made, Stop, expr::FRAMEWORK, get, set};
use crate::{
    python::{Call, Expr, ExprKind, StmtKind},
    report::Level,
    value::{ClassId, Method, Thing, Value},
};

/// Arguments with their values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Args {
    pub(crate) by_place: Vec<Value>,
    pub(crate) by_name: Vec<(String, Value)>,
}

impl Args {
    /// The argument of that place or name.
    pub(crate) fn get(&self, place: usize, name: &str) -> Option<&Value> {
        self.by_place.get(place).or_else(|| self.by_name.iter().find(|(known, _)| known == name).map(|(_, value)| value))
    }
}

impl Interp<'_> {
    pub(crate) fn call(&mut self, call: &Call, line: u32) -> Made {
        if let ExprKind::Attribute(of, name) = &call.function.kind {
            let of_value = self.expr(of)?;
            match &of_value {
                Value::Thing(Thing::This) => return self.self_method(name, call, line),
                Value::Thing(Thing::Super(class)) => return self.super_method(&class.clone(), name, call, line),
                Value::Thing(Thing::Class(id)) => return self.class_method(&id.clone(), name, call, line),
                Value::Thing(Thing::Name(full)) if full != "os.environ" => {
                    let function = self.full_name(format!("{full}.{name}"));
                    let args = self.args(call)?;
                    return self.called(&function, args, line);
                }
                _ => {
                    let args = self.args(call)?;
                    return self.method(&of_value, name, &args, line);
                }
            }
        }
        let function = self.expr(&call.function)?;
        let args = self.args(call)?;
        self.called(&function, args, line)
    }

    pub(crate) fn args(&mut self, call: &Call) -> Made<Args> {
        let mut args = Args::default();
        // The types of a variable are not needed: `variable(typ.List[str], value=[])`.
        if call.function.dotted().is_some_and(|name| name.rsplit('.').next() == Some("variable")) {
            for (name, value) in call.keywords.iter().filter(|(name, _)| name.as_deref() == Some("value")) {
                let value = self.expr(value)?;
                args.by_name.extend(name.clone().map(|name| (name, value)));
            }
            return Ok(args);
        }
        for arg in &call.args {
            match &arg.kind {
                ExprKind::Starred(inner) => match self.expr(inner)? {
                    list @ (Value::List(_) | Value::Tuple(_)) if list.items().is_some() => {
                        args.by_place.extend(list.items().unwrap_or_default().iter().cloned());
                    }
                    _ => return Err(Stop::new(arg.line, "only a list that is written out can be unpacked")),
                },
                _ => args.by_place.push(self.expr(arg)?),
            }
        }
        for (name, value) in &call.keywords {
            let Some(name) = name else { return Err(Stop::new(value.line, "`**` in a call cannot be followed")) };
            let value = self.expr(value)?;
            args.by_name.push((name.clone(), value));
        }
        Ok(args)
    }

    /// A call of a value.
    pub(crate) fn called(&mut self, function: &Value, args: Args, line: u32) -> Made {
        match function {
            Value::Thing(Thing::Function(method)) => self.inline(method, args.by_place, &args.by_name, line),
            Value::Thing(Thing::Bound(method)) => self.inline(&method.clone(), args.by_place, &args.by_name, line),
            Value::Thing(Thing::Name(full)) => self.named(&full.clone(), &args, line),
            Value::Thing(Thing::Nothing) => Ok(Value::None),
            // A figure, and what is deferred, are functions without arguments in ReFrame.
            Value::Figure(_) | Value::Judge(_) if args.by_place.is_empty() => Ok(function.clone()),
            Value::Thing(Thing::Dependency(_)) => Ok(function.clone()),
            Value::Unknown => Err(Stop::silent(line)),
            _ => Err(Stop::new(line, "what is called here is not known")),
        }
    }

    /// `self.name(..)`
    fn self_method(&mut self, name: &str, call: &Call, line: u32) -> Made {
        if let Some(method) = self.test.methods.get(name).cloned() {
            let args = self.args(call)?;
            return self.inline(&method, args.by_place, &args.by_name, line);
        }
        match name {
            "skip_if_no_procinfo" => Ok(Value::None),
            "info" | "is_fixture" | "is_dry_run" | "set_var_default" | "depends_on" | "skip" | "skip_if" | "getdep"
            | "is_local" => {
                let args = self.args(call)?;
                self.framework_method(name, &args, line)
            }
            _ => {
                let function = self.self_attribute(name, line)?;
                let args = self.args(call)?;
                self.called(&function, args, line)
            }
        }
    }

    /// What ReFrame's own methods do.
    fn framework_method(&mut self, name: &str, args: &Args, line: u32) -> Made {
        match name {
            "skip" => {
                let msg = args.get(0, "msg").cloned().unwrap_or_else(|| Value::text("skipped"));
                self.mark("skip", &msg, line);
                self.skips.push((self.here(), msg, line));
            }
            "skip_if" => {
                let cond = args.get(0, "cond").ok_or_else(|| Stop::new(line, "`skip_if` needs a condition"))?.clone();
                let cond = self.truth(&cond, line)?;
                let msg = args.get(1, "msg").cloned().unwrap_or_else(|| Value::text("skipped"));
                self.mark("skip", &msg, line);
                self.skips.push((crate::value::cond::Cond::all([self.here(), cond]), msg, line));
            }
            "set_var_default" => {
                if let (Some(Value::Str(name)), Some(value)) = (args.get(0, "name"), args.get(1, "value"))
                    && matches!(get(&self.state.attrs, name), None | Some(Value::None))
                {
                    set(&mut self.state.attrs, name, value.clone());
                }
            }
            "depends_on" => return self.depends_on(args, line),
            "getdep" => {
                let name = self.dependency_name(args.get(0, "target"), line)?;
                return Ok(Value::Thing(Thing::Dependency(name)));
            }
            "is_local" => {
                let local = crate::value::cond::Subject::Scheduler;
                return Ok(Value::Test(crate::value::cond::Cond::Is(local, vec![Value::text("local")])));
            }
            "is_fixture" | "is_dry_run" => return Ok(Value::Bool(false)),
            _ => return Err(Stop::new(line, format!("`self.{name}()` has no counterpart"))),
        }
        Ok(Value::None)
    }

    fn dependency_name(&self, target: Option<&Value>, line: u32) -> Made<String> {
        match target {
            Some(Value::Str(name)) => Ok(name.clone()),
            Some(Value::Thing(Thing::Class(id))) => Ok(id.1.clone()),
            _ => Err(Stop::new(line, "which test this depends on is not known here")),
        }
    }

    fn depends_on(&mut self, args: &Args, line: u32) -> Made {
        let name = self.dependency_name(args.get(0, "target"), line)?;
        let how = match args.get(1, "how") {
            None => "by_case".to_owned(),
            Some(Value::Thing(Thing::Name(how))) => how.rsplit('.').next().unwrap_or_default().to_owned(),
            Some(_) => "a function of your own".to_owned(),
        };
        if how != "by_case" {
            return Err(Stop::new(line, format!("`how={how}` pairs cases in a way that `depends_on` does not have"))
                .instead("`depends_on` pairs cases of equal shared parameters on the same place"));
        }
        let known = get(&self.state.attrs, "depends_on").cloned().unwrap_or(Value::List(vec![]));
        if let Value::List(mut names) = known {
            if !names.contains(&Value::text(&*name)) {
                names.push(Value::Str(name));
            }
            set(&mut self.state.attrs, "depends_on", Value::List(names));
        }
        Ok(Value::None)
    }

    /// `super().name(..)`: the next class of the lineage that has it.
    fn super_method(&mut self, class: &ClassId, name: &str, call: &Call, line: u32) -> Made {
        let after = self.test.lineage.iter().skip_while(|id| *id != class).skip(1).cloned().collect::<Vec<_>>();
        let found = after.iter().find_map(|id| own_method(self.world.class(id)?, id, name));
        match found {
            Some(method) => {
                let args = self.args(call)?;
                self.inline(&method, args.by_place, &args.by_name, line)
            }
            None if matches!(name, "__init__" | "setup" | "run") => Ok(Value::None),
            None => Err(Stop::new(line, format!("no base has a method `{name}`")).level(Level::Defect)),
        }
    }

    /// `Base.name(self, ..)`
    fn class_method(&mut self, id: &ClassId, name: &str, call: &Call, line: u32) -> Made {
        let (lineage, _) = self.world.lineage(id).unwrap_or_default_lineage();
        let found = lineage.iter().find_map(|id| own_method(self.world.class(id)?, id, name));
        let Some(method) = found else { return Err(Stop::new(line, format!("`{}` has no method `{name}`", id.1))) };
        let mut args = self.args(call)?;
        if args.by_place.first() == Some(&Value::Thing(Thing::This)) {
            args.by_place.remove(0);
        }
        self.inline(&method, args.by_place, &args.by_name, line)
    }

    /// A constant of a class: the last assignment in its body.
    pub(crate) fn class_attribute(&mut self, id: &ClassId, name: &str, line: u32) -> Made {
        if name == "__name__" {
            return Ok(Value::text(&*id.1));
        }
        let (lineage, _) = self.world.lineage(id).unwrap_or_default_lineage();
        for id in lineage {
            let Some(class) = self.world.class(&id).cloned() else { continue };
            let assigned = class.body.iter().rev().find_map(|stmt| match &stmt.kind {
                StmtKind::Assign(targets, value) if targets.iter().any(|target| target.dotted().as_deref() == Some(name)) => {
                    Some(value)
                }
                _ => None,
            });
            if let Some(value) = assigned {
                let frame = self.enter(id.0, Some(id.clone()));
                let outer = std::mem::take(&mut self.state.locals);
                let value = self.expr(value);
                self.state.locals = outer;
                self.frame = frame;
                return value;
            }
        }
        Err(Stop::new(line, format!("`{}.{name}` is not known here", id.1)))
    }

    /// Follows a call into a function of the files.
    pub(crate) fn inline(&mut self, method: &Method, by_place: Vec<Value>, by_name: &[(String, Value)], line: u32) -> Made {
        let function = &method.function;
        if self.calls >= MOST_CALLS {
            return Err(Stop::new(line, "these calls go too deep to be followed"));
        }
        if function.is_variadic {
            return Err(Stop::new(line, format!("`{}` takes any arguments and cannot be followed", function.name)));
        }
        let has = |word: &str| {
            function.decorators.iter().any(|above| above.dotted().is_some_and(|name| name.rsplit('.').next() == Some(word)))
        };
        let is_method = !method.class.1.is_empty() && !function.name.is_empty() && !has("staticmethod");
        let mut values = by_place.into_iter();
        let mut locals = Vec::new();
        let own = if is_method {
            Some(if has("classmethod") { Value::Thing(Thing::Nothing) } else { Value::Thing(Thing::This) })
        } else {
            None
        };
        let mut own = own.into_iter();
        for (name, default) in &function.params {
            let given = own.next().or_else(|| values.next());
            let named = || by_name.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            let value = match (given.or_else(named), default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.expr(default)?,
                (None, None) => {
                    return Err(Stop::new(line, format!("`{}` needs an argument `{name}`", function.name)).level(Level::Defect));
                }
            };
            set(&mut locals, name, value);
        }
        if values.next().is_some() {
            return Err(Stop::new(line, format!("`{}` takes fewer arguments", function.name)).level(Level::Defect));
        }
        // A lambda sees what is around it.
        if function.name.is_empty() {
            let mut around = self.state.locals.clone();
            for (name, value) in locals {
                set(&mut around, &name, value);
            }
            locals = around;
        }
        let outer = std::mem::replace(&mut self.state.locals, locals);
        let class = (!method.class.1.is_empty()).then(|| method.class.clone());
        let frame = self.enter(method.class.0, class);
        self.calls += 1;
        let returned = self.body(&function.body);
        self.calls -= 1;
        self.frame = frame;
        self.state.locals = outer;
        let value = match returned {
            Value::Unknown => return Err(Stop::silent(line)),
            value => value,
        };
        // A performance function gives a figure in every call.
        match self.unit_of(method) {
            Some(unit) if !matches!(value, Value::Figure(_)) => Ok(Value::Figure(Box::new((value, unit)))),
            _ => Ok(value),
        }
    }

    /// The unit of a performance function.
    pub(crate) fn unit_of(&mut self, method: &Method) -> Option<Value> {
        let call = method.function.decorators.iter().find_map(|above| decorator(above, "performance_function"))?;
        let unit = call
            .args
            .first()
            .or_else(|| call.keywords.iter().find(|(name, _)| name.as_deref() == Some("units")).map(|(_, unit)| unit))?;
        self.expr(unit).ok()
    }

    pub(crate) fn framework_name(full: &str) -> Option<&str> {
        let name = full.strip_prefix("reframe.")?.rsplit('.').next()?;
        FRAMEWORK.contains(&name).then_some(name)
    }
}

/// `@name(..)`: its call.
pub(crate) fn decorator<'e>(above: &'e Expr, name: &str) -> Option<&'e Call> {
    match &above.kind {
        ExprKind::Call(call) if call.function.dotted()?.rsplit('.').next() == Some(name) => Some(call),
        _ => None,
    }
}

/// A method that a class itself has.
pub(crate) fn own_method(class: &crate::python::Class, id: &ClassId, name: &str) -> Option<Method> {
    class.body.iter().rev().find_map(|stmt| match &stmt.kind {
        StmtKind::Def(function) if function.name == name => Some(Method { function: function.clone(), class: id.clone() }),
        _ => None,
    })
}

trait OrNothing {
    fn unwrap_or_default_lineage(self) -> (Vec<ClassId>, crate::world::Root);
}

impl OrNothing for Result<(Vec<ClassId>, crate::world::Root), crate::world::UnknownBase> {
    fn unwrap_or_default_lineage(self) -> (Vec<ClassId>, crate::world::Root) {
        self.unwrap_or((vec![], crate::world::Root::None))
    }
}
