//! A case's settings for its scheduler: options, and keys that several schedulers have. The check's override the partition's.

use crate::{
    cases::test_case::TestCase,
    files::check_file::CheckFile,
    site::scheduler_keys::{check_options, joined, refused_options, shared_keys},
};
use muster_core::job::descriptor::{NODE, SharedKey};
use muster_text::{
    Value,
    decode::{Keyed, Placeholders},
    diagnostic::Diagnostic,
    yaml::{self, Node},
};
use serde_json::Map;

/// The key with values for the resources of a partition. Those of the environment are under the check's.
const RESOURCES: &str = "extra_resources";

/// The values of the keys that several schedulers have, of those that this one takes.
pub fn shared(case: &TestCase, tree: &Node, diagnostics: &mut Vec<Diagnostic>) -> Map<String, Value> {
    let partition = &case.place.partition;
    let resources = &case.place.environ.resources;
    let mut values = partition.shared.clone();
    if !resources.is_empty() && partition.scheduler.shared_key(RESOURCES) == SharedKey::Takes {
        values.insert(RESOURCES.to_owned(), Value::Object(resources.clone()));
    }
    merge(&mut values, shared_keys(partition.scheduler, tree, CheckFile::TABLE.shared(), diagnostics), &[]);
    values
}

/// The partition's options, the check's over them: maps merge, and some lists are added to the site's.
pub fn sched_options(case: &TestCase, tree: &Node, diagnostics: &mut Vec<Diagnostic>) -> Value {
    let partition = &case.place.partition;
    let scheduler = partition.scheduler;
    let mut options = match &partition.sched_options {
        Value::Object(options) => options.clone(),
        _ => Map::new(),
    };
    let known_mistakes = diagnostics.len();
    let own = tree.get("sched_options").filter(|own| !own.is_null());
    if let Some(own) = own {
        let all = case.check.manifests.schedulers.all().iter();
        let elsewhere: Vec<&str> = all.flat_map(|other| other.option_names()).collect();
        check_options(own, &[scheduler], &elsewhere, Placeholders::Refuse, diagnostics);
        refuse_site_options(own, scheduler.site_options, diagnostics);
        let known: Vec<&str> = scheduler.option_names().collect();
        match yaml::to_value(&own.only(&known)) {
            Ok(Value::Object(own)) => merge(&mut options, own, scheduler.joined_options),
            Ok(_) => {}
            Err(mut mistakes) => diagnostics.append(&mut mistakes),
        }
    }
    for key in scheduler.own_options {
        let value = tree.get(key).filter(|node| !node.is_null()).and_then(Node::text);
        options.extend(value.map(|value| ((*key).to_owned(), value.into())));
    }
    // Those of the partition alone were looked at with its file.
    if let Some(own) = own.filter(|_| diagnostics.len() == known_mistakes) {
        let wrong = Value::Object(options.clone());
        diagnostics.extend(refused_options(scheduler, &wrong, |name| own.get(name).map(Node::place)));
    }
    options.extend(case.node.iter().map(|node| (NODE.to_owned(), Value::from(&**node))));
    Value::Object(options)
}

/// What a site forbids its checks, or asks of all their jobs, is not for them to change.
fn refuse_site_options(own: &Node, site_options: &[(&str, &str)], diagnostics: &mut Vec<Diagnostic>) {
    for (key, hint) in site_options {
        if let Some(option) = own.get(key) {
            let message = format!("`{key}` belongs to the site file: a check cannot set it");
            diagnostics.push(Diagnostic::error(option.span, message).hint(*hint));
        }
    }
}

/// `lists`: those that are joined.
fn merge(options: &mut Map<String, Value>, own: Map<String, Value>, lists: &[&str]) {
    for (key, value) in own {
        match (options.get_mut(&key), value) {
            (Some(Value::Object(options)), Value::Object(own)) => merge(options, own, lists),
            (Some(known), own) if lists.contains(&&*key) && !own.is_null() => *known = joined(known.take(), own),
            (_, value) => drop(options.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn maps_merge_lists_are_joined_and_the_rest_is_replaced() {
        let (site, own) = (
            json!({ "exclude": "n1", "constraint": ["a"], "qos": "low", "labels": { "a": 1, "b": 1 }, "nodes": [1], "options": "-x" }),
            json!({ "exclude": ["n2"], "constraint": "b", "qos": "high", "labels": { "b": 2 }, "nodes": [2], "options": null }),
        );
        let (Value::Object(mut options), Value::Object(own)) = (site, own) else { unreachable!("both are maps") };
        merge(&mut options, own, &["exclude", "constraint", "options"]);
        assert_eq!(
            Value::Object(options),
            json!({
                "exclude": ["n1", "n2"], "constraint": ["a", "b"], "qos": "high", "labels": { "a": 1, "b": 2 }, "nodes": [2],
                "options": null,
            })
        );
    }
}
