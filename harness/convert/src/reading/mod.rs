//! A class read as a test: what its bodies declare, what its hooks do, what its functions judge.
//!
//! Bodies are read from the last base to the class itself, hooks in the order in which ReFrame runs them. Nothing here
//! knows of YAML.

mod hooks;
mod verdict;

use hooks::assigned;

use crate::{
    interp::{Interp, Manifests, Parameter, Stop, get, set, test::default_of},
    python::{Class, Expr, ExprKind, Function, Stmt, StmtKind},
    report::Level,
    value::{ClassId, Declared, Method, Thing, Value},
    world::{Root, UnknownBase, World},
};
use std::{collections::BTreeMap, sync::Arc};

/// A test that was read.
#[derive(Debug)]
pub(crate) struct Reading<'w> {
    /// Its class.
    pub id: ClassId,
    /// The class itself.
    pub class: Arc<Class>,
    /// The class of ReFrame that it derives from in the end.
    pub root: Root,
    /// The reader, with the attributes as the last hook left them.
    pub interp: Interp<'w>,
    /// Variables in the order of declaration; those without a value are for derived classes.
    pub variables: Vec<String>,
    /// Its fixtures: name, class, scope, variables.
    pub fixtures: Vec<(String, Declared)>,
    /// The result of its sanity function.
    pub sanity: Option<Value>,
    /// Its figures by name.
    pub figures: Vec<(Value, Value)>,
}

/// Whether a class is a test that ReFrame lists.
pub(crate) fn is_listed(class: &Class) -> bool {
    class.decorators.iter().any(|above| named(above, "simple_test"))
}

/// `@name`, `@a.name`, `@name(..)`
fn named(above: &Expr, name: &str) -> bool {
    let function = match &above.kind {
        ExprKind::Call(call) => &call.function,
        _ => above,
    };
    function.dotted().is_some_and(|dotted| dotted.rsplit('.').next() == Some(name))
}

/// Reads a test. `is_base`: parameters and variables may be left to derived classes.
pub(crate) fn read<'w>(world: &'w World, id: &ClassId, manifests: &'w dyn Manifests) -> Result<Reading<'w>, UnknownBase> {
    let (lineage, root) = world.lineage(id)?;
    let class = world.class(id).cloned().ok_or_else(|| UnknownBase { file: id.0, line: 1, name: id.1.clone() })?;
    let mut interp = Interp::new(world, id.0, manifests);
    interp.test.class = Some(id.clone());
    interp.test.lineage.clone_from(&lineage);
    for base in lineage.iter().rev() {
        let Some(class) = world.class(base) else { continue };
        for function in functions(class) {
            interp.test.methods.insert(function.name.clone(), Method { function: function.clone(), class: base.clone() });
        }
    }
    let mut reading =
        Reading { id: id.clone(), class, root, interp, variables: vec![], fixtures: vec![], sanity: None, figures: vec![] };
    reading.bodies(world);
    reading.decorated_figures(world);
    reading.hooks(world);
    reading.judged(world);
    Ok(reading)
}

fn functions(class: &Class) -> impl Iterator<Item = &Arc<Function>> {
    class.body.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::Def(function) => Some(function),
        _ => None,
    })
}

impl Reading<'_> {
    /// Reads the class bodies, the last base first.
    fn bodies(&mut self, world: &World) {
        let lineage = self.interp.test.lineage.clone();
        let mut params: BTreeMap<String, (Parameter, Option<Arc<Function>>)> = BTreeMap::new();
        let mut known: Vec<(String, Value)> = Vec::new();
        for id in lineage.iter().rev() {
            let Some(class) = world.class(id) else { continue };
            let before = known.clone();
            self.interp.state.locals.clone_from(&before);
            let frame = self.interp.enter(id.0, Some(id.clone()));
            self.interp.top(&class.body, true);
            for (name, value) in std::mem::take(&mut self.interp.state.locals) {
                if get(&before, &name) == Some(&value) {
                    continue;
                }
                self.declare(class, &name, value, &mut known, &mut params);
            }
            self.interp.frame = frame;
        }
        self.order_params(world, params);
        self.stable(world, &known);
        self.interp.state.attrs = known;
    }

    fn declare(
        &mut self,
        class: &Class,
        name: &str,
        value: Value,
        known: &mut Vec<(String, Value)>,
        params: &mut BTreeMap<String, (Parameter, Option<Arc<Function>>)>,
    ) {
        let Value::Thing(Thing::Declared(declared)) = value else {
            if value == Value::name("reframe.required") {
                known.retain(|(known, _)| known != name);
            } else {
                set(known, name, value);
            }
            return;
        };
        match *declared {
            Declared::Parameter { values, inherit, filter, format } => {
                let line = line_of(class, name);
                let before = params.get(name).map(|(param, _)| param.values.clone()).unwrap_or_default();
                let before = if inherit { self.sifted(before, filter.as_ref(), line) } else { vec![] };
                let is_abstract = values.is_none() && before.is_empty();
                let values: Vec<Value> = before.into_iter().chain(values.unwrap_or_default()).collect();
                let format = format.or_else(|| params.get(name).and_then(|(_, format)| format.clone()).filter(|_| inherit));
                let param = Parameter { name: name.to_owned(), values, shown: vec![], is_wrapped: false, is_abstract };
                params.insert(name.to_owned(), (param, format));
                // It takes the place of a value of this name.
                known.retain(|(known, _)| known != name);
            }
            Declared::Variable(value) => {
                if default_of(name).is_none() && !self.variables.iter().any(|known| known == name) {
                    self.variables.push(name.to_owned());
                }
                match value {
                    Some(value) => set(known, name, value),
                    None => known.retain(|(known, _)| known != name),
                }
            }
            Declared::Fixture { class, scope, variables, joins } => {
                self.fixtures.retain(|(known, _)| known != name);
                self.interp.test.fixtures.retain(|(known, ..)| known != name);
                self.interp.test.fixtures.push((name.to_owned(), class.clone(), joins));
                self.fixtures.push((name.to_owned(), Declared::Fixture { class, scope, variables, joins }));
            }
        }
    }

    /// `filter_params=lambda values: ..`
    fn sifted(&mut self, values: Vec<Value>, filter: Option<&Arc<Function>>, line: u32) -> Vec<Value> {
        let Some(function) = filter else { return values };
        let method = Method { function: function.clone(), class: (self.id.0, String::new()) };
        let result = self.interp.inline(&method, vec![Value::List(values)], &[], line);
        match result {
            Ok(list) if list.items().is_some() => list.items().unwrap_or_default().to_vec(),
            Ok(_) => vec![],
            Err(stop) => {
                self.interp.tell(stop);
                vec![]
            }
        }
    }

    /// Puts the parameters into the order of the display name, and finds how each value is shown.
    fn order_params(&mut self, world: &World, mut params: BTreeMap<String, (Parameter, Option<Arc<Function>>)>) {
        let mut classes = Vec::new();
        world.by_declaration(&self.id, &mut classes);
        let mut names = Vec::new();
        for id in &classes {
            let Some(class) = world.class(id) else { continue };
            let assigned = class.body.iter().filter_map(|stmt| match &stmt.kind {
                StmtKind::Assign(targets, _) => targets.first()?.dotted(),
                _ => None,
            });
            for name in assigned {
                if params.contains_key(&name) && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        for name in names {
            let Some((mut param, format)) = params.remove(&name) else { continue };
            let line = line_of(&self.class, &name);
            param.shown = param.values.iter().map(|value| self.shown(value, format.as_ref(), line)).collect();
            param.is_wrapped = param.values.iter().zip(&param.shown).any(|(value, shown)| !is_shown_alike(value, shown));
            self.interp.test.params.push(param);
        }
    }

    fn shown(&mut self, value: &Value, format: Option<&Arc<Function>>, line: u32) -> String {
        let plain = value.shown().unwrap_or_default();
        let Some(function) = format else { return plain };
        let method = Method { function: function.clone(), class: (self.id.0, String::new()) };
        match self.interp.inline(&method, vec![value.clone()], &[], line) {
            Ok(shown) => shown.shown().unwrap_or(plain),
            Err(stop) => {
                self.interp.tell(stop);
                plain
            }
        }
    }

    /// Variables that no function sets stay variables; the rest is written out where it is used.
    fn stable(&mut self, world: &World, known: &[(String, Value)]) {
        let mut set_by_functions = Vec::new();
        for id in &self.interp.test.lineage {
            let Some(class) = world.class(id) else { continue };
            functions(class).for_each(|function| assigned(&function.body, &mut set_by_functions));
        }
        let is_scalar =
            |name: &str| matches!(get(known, name), Some(Value::Str(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_)));
        let stable = self.variables.iter().filter(|name| is_scalar(name) && !set_by_functions.contains(name));
        self.interp.test.stable = stable.cloned().collect();
    }

    /// Tells of something in the class.
    pub(crate) fn tell(&mut self, line: u32, level: Level, why: impl Into<String>, instead: Option<&str>) {
        let stop = Stop { line, level, why: why.into(), instead: instead.map(str::to_owned) };
        self.interp.tell(stop);
    }

    /// Tells of an attribute, where it was last set.
    pub(crate) fn tell_of(&mut self, name: &str, level: Level, why: impl Into<String>, instead: Option<&str>) {
        let (file, line) = self.interp.lines.get(name).copied().unwrap_or((self.id.0, self.class.line));
        let frame = self.interp.enter(file, None);
        self.tell(line, level, why, instead);
        self.interp.frame = frame;
    }

    /// Whether a folder `src` lies beside the class's file.
    pub(crate) fn has_src(&self) -> bool {
        self.interp.world.files[self.id.0].has_src
    }

    /// An attribute, as the last hook left it.
    pub(crate) fn attr(&self, name: &str) -> Option<&Value> {
        get(&self.interp.state.attrs, name)
    }
}

fn line_of(class: &Class, name: &str) -> u32 {
    let assigns = |stmt: &&Stmt| match &stmt.kind {
        StmtKind::Assign(targets, _) => targets.iter().any(|target| target.dotted().as_deref() == Some(name)),
        _ => false,
    };
    class.body.iter().rev().find(assigns).map_or(class.line, |stmt| stmt.line)
}

/// Whether Muster shows a value as ReFrame does.
fn is_shown_alike(value: &Value, shown: &str) -> bool {
    match value {
        Value::Str(text) => text == shown,
        Value::Int(number) => number.to_string() == shown,
        Value::Float(number) => {
            let plain = muster_text::Value::from(*number).to_string();
            plain == shown && !plain.contains('e')
        }
        _ => false,
    }
}
