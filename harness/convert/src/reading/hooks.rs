//! The hooks of a class, run in ReFrame's order, and what its functions set.

use super::{Reading, functions, named};
use crate::{
    interp::{Stop, call::decorator},
    python::{Expr, ExprKind, Function, Stmt, StmtKind},
    value::{Method, Thing, Value},
    world::World,
};

/// Stages in the order in which ReFrame passes them; a hook before one comes before a hook after it.
const STAGES: [&str; 7] = ["init", "setup", "compile", "run", "sanity", "performance", "cleanup"];

/// The rank of the first hook that runs after the verdict.
const AFTER_VERDICT: usize = 11;

impl Reading<'_> {
    /// Runs the hooks.
    pub(super) fn hooks(&mut self, world: &World) {
        if let Some(method) = self.interp.test.methods.get("__init__").cloned() {
            self.interp.is_early = true;
            self.run_hook(&method);
        }
        let mut hooks: Vec<(usize, bool, Method)> = Vec::new();
        for id in self.interp.test.lineage.clone().iter().rev() {
            let Some(class) = world.class(id) else { continue };
            for function in functions(class) {
                let stages = stages(function);
                let method = Method { function: function.clone(), class: id.clone() };
                // A hook of the same name takes the place of the base's; a plain method ends it.
                let place = hooks.iter().position(|(.., known)| known.function.name == function.name);
                hooks.retain(|(.., known)| known.function.name != function.name);
                let new = stages.into_iter().map(|(rank, last)| (rank, last, method.clone()));
                match place.filter(|place| *place <= hooks.len()) {
                    Some(place) => drop(hooks.splice(place..place, new)),
                    None => hooks.extend(new),
                }
            }
        }
        for rank in 0..=STAGES.len() * 2 {
            let (last, first): (Vec<_>, Vec<_>) =
                hooks.iter().filter(|(known, ..)| *known == rank).cloned().partition(|(_, last, _)| *last);
            for (_, _, method) in first.iter().chain(last.iter().rev()) {
                if rank >= AFTER_VERDICT {
                    let stop = Stop::new(method.function.line, "this hook runs after the verdict")
                        .instead("write `postrun_cmds`, or `teardown_cmds` of a fixture");
                    let frame = self.interp.enter(method.class.0, None);
                    self.interp.tell(stop);
                    self.interp.frame = frame;
                    continue;
                }
                // Rank 1 is after init; nothing has been chosen then.
                self.interp.is_early = rank <= 2;
                self.run_hook(method);
            }
        }
        self.interp.is_early = false;
    }

    fn run_hook(&mut self, method: &Method) {
        // `@require_deps`: the parameters are the tests that this one depends on.
        let has_deps = method.function.decorators.iter().any(|above| named(above, "require_deps"));
        let deps = if has_deps { &method.function.params[1.min(method.function.params.len())..] } else { &[] };
        let args = deps.iter().map(|(name, _)| Value::Thing(Thing::Dependency(name.clone()))).collect();
        let frame = self.interp.enter(method.class.0, Some(method.class.clone()));
        if let Err(stop) = self.interp.inline(method, args, &[], method.function.line) {
            self.interp.tell(stop);
        }
        self.interp.frame = frame;
    }
}

/// The stages of a function's hooks: twice the stage, one more after it; and whether it comes last.
fn stages(function: &Function) -> Vec<(usize, bool)> {
    let mut stages = Vec::new();
    for above in &function.decorators {
        for (word, after) in [("run_before", 0), ("run_after", 1)] {
            let Some(call) = decorator(above, word) else { continue };
            let Some(ExprKind::Str(stage)) = call.args.first().map(|stage| &stage.kind) else { continue };
            let last = call
                .keywords
                .iter()
                .any(|(name, value)| name.as_deref() == Some("always_last") && value.kind == ExprKind::Bool(true));
            stages.extend(STAGES.iter().position(|known| known == stage).map(|at| (at * 2 + after, last)));
        }
        if named(above, "require_deps") && stages.is_empty() {
            stages.push((3, false));
        }
    }
    stages
}

/// The attributes that a function sets.
pub(super) fn assigned(body: &[Stmt], names: &mut Vec<String>) {
    let own = |target: &Expr| target.dotted().and_then(|name| name.strip_prefix("self.").map(str::to_owned));
    for stmt in body {
        match &stmt.kind {
            StmtKind::Assign(targets, _) => {
                for target in targets {
                    match &target.kind {
                        ExprKind::Tuple(targets) => names.extend(targets.iter().filter_map(own)),
                        ExprKind::Subscript(of, _) => names.extend(own(of)),
                        _ => names.extend(own(target)),
                    }
                }
            }
            StmtKind::Augment(target, ..) => names.extend(own(target)),
            StmtKind::Expr(Expr { kind: ExprKind::Call(call), .. }) => {
                if let ExprKind::Attribute(of, _) = &call.function.kind {
                    names.extend(own(of));
                }
                if call.function.dotted().as_deref() == Some("self.set_var_default")
                    && let Some(ExprKind::Str(name)) = call.args.first().map(|name| &name.kind)
                {
                    names.push(name.clone());
                }
            }
            StmtKind::If(_, then, otherwise) => {
                assigned(then, names);
                assigned(otherwise, names);
            }
            StmtKind::For(_, _, body, _) | StmtKind::With(_, body) | StmtKind::Other(_, body) => assigned(body, names),
            _ => {}
        }
    }
}
