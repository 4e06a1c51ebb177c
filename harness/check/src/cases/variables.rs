//! Variables: values that read parameters, facts and each other, in whatever order they are written.

use crate::files::needs::dependency_order;
use muster_core::fact::Fact;
use muster_text::{
    Value,
    diagnostic::Diagnostic,
    expr::Scope,
    template::{self, Cache},
    yaml::{self, Node},
};
use std::{collections::BTreeMap, sync::Arc};

/// The variables of a check and its `num_tasks`, each after those it reads.
#[derive(Debug)]
pub(crate) struct Variables(Vec<(Arc<str>, Node)>);

impl Variables {
    /// Orders what a check declares; a cycle is reported as a path. Where `num_tasks` is a parameter, that is what it is.
    pub(crate) fn of(tree: &Node, counts_tasks: bool, diagnostics: &mut Vec<Diagnostic>) -> Self {
        let mut nodes: BTreeMap<&str, &Node> = declared(tree).map(|(_, name, node)| (name, node)).collect();
        let one = Node::from_value(&1.into(), tree.span);
        if counts_tasks {
            nodes.insert("num_tasks", tree.get("num_tasks").filter(|node| !node.is_null()).unwrap_or(&one));
        }
        let reads = |name: &str| {
            let names = template::names(nodes[name]);
            let read = nodes.iter().filter(|(name, _)| names.contains(**name));
            read.map(|(name, node)| (*name, node.span)).collect()
        };
        let order = dependency_order(nodes.keys().copied(), &reads, &mut |trail, name, span| {
            let cycle = format!("{} -> {name}", trail.join(" -> "));
            diagnostics.push(Diagnostic::error(span, format!("variables depend on each other: {cycle}")));
        });
        Self(order.into_iter().map(|name| (Arc::from(name), nodes[name].clone())).collect())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// Gives each its value in a scope that holds everything else. `None` if one has none: whatever reads it would
    /// only be a mistake again. One that needs a fact which the site does not define has none either, but only what reads it
    /// will miss it.
    pub(crate) fn evaluate(&self, scope: &mut Scope, cache: &Cache, diagnostics: &mut Vec<Diagnostic>) -> Option<()> {
        let mut failed: Vec<&str> = Vec::new();
        for (name, node) in &self.0 {
            if !failed.is_empty() && template::names(node).iter().any(|read| failed.contains(&read.as_str())) {
                failed.push(name);
                continue;
            }
            let mut own = Vec::new();
            let value = match template::render(node, scope, cache, &mut own) {
                None => Ok(Value::Null),
                Some(rendered) => yaml::to_parameter_value(&rendered),
            };
            if let Some(missing) = Fact::only_missing(&own) {
                scope.set_missing(&**name, missing.clone());
                continue;
            }
            diagnostics.append(&mut own);
            match value {
                Ok(value) => scope.set(&**name, value),
                Err(mut mistakes) => {
                    diagnostics.append(&mut mistakes);
                    failed.push(name);
                }
            }
        }
        failed.is_empty().then_some(())
    }
}

/// The variables that a tree declares: key, name, value. A null takes a variable back.
pub(crate) fn declared(tree: &Node) -> impl Iterator<Item = (&Node, &str, &Node)> {
    let entries = tree.get("variables").map(Node::entries).unwrap_or_default();
    entries.iter().filter(|(_, node)| !node.is_null()).filter_map(|(key, node)| Some((key, key.text()?, node)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_text::{diagnostic::FileId, yaml::parse};

    fn evaluated(text: &str) -> Result<Vec<(String, Value)>, Vec<String>> {
        let tree = parse(FileId::default(), text).documents.swap_remove(0);
        let mut diagnostics = Vec::new();
        let variables = Variables::of(&tree, true, &mut diagnostics);
        let mut scope = Scope::new();
        scope.set("n", 3);
        if diagnostics.is_empty() {
            let _ = variables.evaluate(&mut scope, &Cache::default(), &mut diagnostics);
        }
        if !diagnostics.is_empty() {
            return Err(diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect());
        }
        let names = variables.0.iter().map(|(name, _)| name.to_string());
        Ok(names.map(|name| (name.clone(), scope.get(&name).cloned().unwrap_or_default())).collect())
    }

    #[test]
    fn variables_use_each_other_in_any_order() {
        let values =
            evaluated("variables: { c: '${{ b + 1 }}', b: '${{ a * 2 }}', a: '${{ n }}', d: plain }\nnum_tasks: ${{ c }}")
                .expect("no cycle");
        let expected = [("a", 3.into()), ("b", 6.into()), ("c", 7.into()), ("d", "plain".into()), ("num_tasks", Value::from(7))];
        assert_eq!(values, expected.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    fn a_cycle_is_reported_as_a_path() {
        let mistakes = evaluated("variables: { a: '${{ b }}', b: '${{ c }}', c: '${{ a }}' }").expect_err("a cycle");
        assert_eq!(mistakes, ["variables depend on each other: a -> b -> c -> a"]);
    }

    #[test]
    fn a_null_takes_a_variable_back_and_tasks_are_one_by_default() {
        assert_eq!(evaluated("variables: { a: null }"), Ok(vec![("num_tasks".to_owned(), 1.into())]));
    }

    #[test]
    fn a_variable_that_fails_is_reported_once_however_many_read_it() {
        let mistakes = evaluated("variables: { a: '${{ 1 + \"x\" }}', b: '${{ a }}', c: '${{ b }}', d: '${{ n.x }}' }");
        let mistakes = mistakes.expect_err("two mistakes");
        assert_eq!(mistakes, ["`+` does not take an integer and text", "an integer has no fields"]);
    }

    #[test]
    fn a_number_that_would_change_its_looks_is_refused() {
        let mistakes = evaluated("variables: { a: 1.20 }").expect_err("1.20 would become 1.2");
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    }
}
