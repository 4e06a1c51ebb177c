//! Label and field selectors. As `quantity`, written apart from the code under test, so as not to share its mistakes.

use serde_json::Value;

/// Both selectors of a list or watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector {
    pub labels: Option<String>,
    pub fields: Option<String>,
}

impl Selector {
    pub(crate) fn takes(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let label = |term: &str| label_term(term, |key| labels[key].as_str());
        let field = |term: &str| {
            let (path, value, equal) = match term.split_once("!=") {
                Some((path, value)) => (path, value, false),
                None => {
                    term.split_once('=').map_or((term, "", true), |(path, value)| (path, value.trim_start_matches('='), true))
                }
            };
            let found = path.split('.').fold(object, |at, key| &at[key]);
            (found.as_str().unwrap_or_default() == value) == equal
        };
        terms(self.labels.as_deref()).all(label) && terms(self.fields.as_deref()).all(field)
    }
}

/// Split at commas that stand in no parentheses.
fn terms(text: Option<&str>) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.unwrap_or_default()
        .split(move |c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth == 0
        })
        .map(str::trim)
        .filter(|term| !term.is_empty())
}

fn label_term<'a>(term: &str, of: impl Fn(&str) -> Option<&'a str>) -> bool {
    if let Some((key, list)) = term.split_once('(') {
        let values: Vec<&str> = list.trim_end_matches(')').split(',').map(str::trim).collect();
        let mut words = key.split_whitespace();
        let value = of(words.next().unwrap_or_default());
        let within = value.is_some_and(|value| values.contains(&value));
        return if words.next() == Some("notin") { !within } else { within };
    }
    if let Some((key, value)) = term.split_once("!=") {
        return of(key.trim()) != Some(value.trim());
    }
    if let Some((key, value)) = term.split_once('=') {
        return of(key.trim()) == Some(value.trim_start_matches('=').trim());
    }
    match term.strip_prefix('!') {
        Some(key) => of(key.trim()).is_none(),
        None => of(term).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_take_what_the_server_would_take() {
        let object = json!({"metadata": {"name": "p", "labels": {"a": "1", "b/c": "x"}}, "status": {"phase": "Running"}});
        let rows = [
            ("a=1", true),
            ("a==1,b/c=x", true),
            ("a!=1", false),
            ("a in (1, 2),b/c", true),
            ("a notin (1)", false),
            ("!d", true),
            ("d", false),
            ("", true),
        ];
        for (labels, takes) in rows {
            assert_eq!(Selector { labels: Some(labels.into()), fields: None }.takes(&object), takes, "{labels}");
        }
        for (fields, takes) in [("metadata.name=p", true), ("status.phase!=Running", false), ("metadata.name=q", false)] {
            assert_eq!(Selector { labels: None, fields: Some(fields.into()) }.takes(&object), takes, "{fields}");
        }
    }
}
