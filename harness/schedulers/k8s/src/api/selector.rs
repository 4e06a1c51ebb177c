//! Label selectors as kubectl writes them: `app=x,tier!=web,role in (launcher,master),!debug`.
//!
//! The `{name}` in the selector of a kind is filled in by the plan.

use std::collections::BTreeMap;

/// Whether labels meet every requirement of a selector. An empty one takes everything.
pub(crate) fn matches(selector: &str, labels: &BTreeMap<String, String>) -> bool {
    requirements(selector).all(|requirement| meets(requirement, labels))
}

/// The parts between commas that are not inside brackets.
fn requirements(selector: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    selector
        .split(move |c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth == 0
        })
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

fn meets(requirement: &str, labels: &BTreeMap<String, String>) -> bool {
    let get = |key: &str| labels.get(key.trim()).map(String::as_str);
    if let Some((key, value)) = requirement.split_once("!=") {
        return get(key) != Some(value.trim());
    }
    if let Some((key, value)) = requirement.split_once('=') {
        return get(key) == Some(value.trim_start_matches('=').trim());
    }
    if let Some((head, list)) = requirement.split_once('(') {
        let mut words = head.split_whitespace();
        let (key, operator) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let listed = |value: &str| list.trim_end_matches(')').split(',').any(|item| item.trim() == value);
        let is_in = get(key).is_some_and(listed);
        return if operator == "notin" { !is_in } else { is_in };
    }
    match requirement.strip_prefix('!') {
        Some(key) => get(key).is_none(),
        None => get(requirement).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_means_what_kubectl_takes_it_to_mean() {
        let labels = BTreeMap::from([("app".to_owned(), "x".to_owned()), ("role".to_owned(), "launcher".to_owned())]);
        let rows = [
            ("", true),
            ("app=x", true),
            ("app==x", true),
            (" app = x , role = launcher ", true),
            ("app=x,role=worker", false),
            ("app!=y", true),
            ("app!=x", false),
            ("other!=x", true),
            ("app", true),
            ("other", false),
            ("!other", true),
            ("!app", false),
            ("role in (launcher, master)", true),
            ("role in (worker),app=x", false),
            ("role notin (worker,launcher)", false),
            ("other notin (a)", true),
            ("other in (a)", false),
        ];
        for (selector, expected) in rows {
            assert_eq!(matches(selector, &labels), expected, "{selector}");
        }
    }
}
