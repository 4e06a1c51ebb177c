//! Joins a value where two branches meet.

use super::{Choice, Manifest, Thing, Value};
use crate::value::cond::Cond;
use std::sync::Arc;

/// What two branches leave: `then` if the condition holds, `otherwise` if not. Lists and mappings keep what is the same
/// in both.
pub(crate) fn join(cond: &Cond, then: &Value, otherwise: &Value) -> Value {
    if then == otherwise {
        return then.clone();
    }
    match cond {
        Cond::Always(true) => return then.clone(),
        Cond::Always(false) => return otherwise.clone(),
        _ => {}
    }
    match (then, otherwise) {
        (Value::Unknown, _) | (_, Value::Unknown) => Value::Unknown,
        (Value::List(left), Value::List(right)) => join_lists(cond, left, right),
        (Value::Dict(left), Value::Dict(right)) => join_maps(cond, left, right),
        (Value::Thing(Thing::Manifest(left)), Value::Thing(Thing::Manifest(right))) if left.path == right.path => {
            let patch = join(cond, &left.patch, &right.patch);
            Value::Thing(Thing::Manifest(Arc::new(Manifest { patch, ..(**left).clone() })))
        }
        (_, Value::Choice(rest)) => {
            let mut choice = (**rest).clone();
            choice.arms.insert(0, (cond.clone(), then.clone()));
            Value::Choice(Box::new(choice))
        }
        _ => Value::Choice(Box::new(Choice { arms: vec![(cond.clone(), then.clone())], default: Some(otherwise.clone()) })),
    }
}

/// A list that begins the same in both branches: what follows depends on the branch. Lists that share nothing are two
/// lists.
fn join_lists(cond: &Cond, left: &[Value], right: &[Value]) -> Value {
    let same = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    if same == 0 && !left.is_empty() && !right.is_empty() {
        let arm = (cond.clone(), Value::List(left.to_vec()));
        return Value::Choice(Box::new(Choice { arms: vec![arm], default: Some(Value::List(right.to_vec())) }));
    }
    let rest = |list: &[Value]| Value::List(list[same..].to_vec());
    let mut items = left[..same].to_vec();
    let choice = Choice { arms: vec![(cond.clone(), rest(left))], default: Some(rest(right)) };
    items.push(Value::Items(Box::new(choice)));
    Value::List(items)
}

fn join_maps(cond: &Cond, left: &[(Value, Value)], right: &[(Value, Value)]) -> Value {
    let at = |map: &[(Value, Value)], key: &Value| map.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone());
    let absent = || Value::Absent;
    let keys = left.iter().chain(right.iter().filter(|(key, _)| at(left, key).is_none())).map(|(key, _)| key);
    let entry = |key: &Value| {
        let (then, otherwise) = (at(left, key).unwrap_or_else(absent), at(right, key).unwrap_or_else(absent));
        (key.clone(), join(cond, &then, &otherwise))
    };
    Value::Dict(keys.map(entry).collect())
}
