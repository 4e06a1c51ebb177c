//! The path and query of a request.

use http::Method;
use std::collections::BTreeMap;

/// `/api/v1/...` or `/apis/GROUP/VERSION/...`, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub group: String,
    pub version: String,
    pub namespace: Option<String>,
    pub plural: String,
    pub name: Option<String>,
    pub subresource: Option<String>,
}

impl Target {
    pub(crate) fn of(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
            _ => (None, rest),
        };
        let owned = |at: usize| rest.get(at).map(|part| (*part).to_owned());
        let (plural, name, subresource) = (owned(0)?, owned(1), owned(2));
        Some(Self { group: group.to_owned(), version: version.to_owned(), namespace, plural, name, subresource })
    }

    /// `pods`, `jobs.batch`
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `pods/log`
    pub(crate) fn right(&self) -> String {
        self.subresource.as_ref().map_or_else(|| self.plural.clone(), |part| format!("{}/{part}", self.plural))
    }

    /// As RBAC calls it.
    pub(crate) fn verb(&self, method: &Method, query: &Query) -> &'static str {
        match method.as_str() {
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" if self.name.is_none() => "deletecollection",
            "DELETE" => "delete",
            _ if query.is("watch") => "watch",
            _ if self.name.is_none() => "list",
            _ => "get",
        }
    }
}

/// The part after `?`, percent decoding done.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    pub(crate) fn of(text: &str) -> Self {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(key, value)| (decode(key), decode(value))).collect())
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn is(&self, key: &str) -> bool {
        matches!(self.get(key), Some("true" | "1"))
    }
}

/// Undoes percent encoding.
pub(crate) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                plain.push(byte);
                at += 2;
            }
            (b'+', _) => plain.push(b' '),
            (byte, _) => plain.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        let rows = [
            ("/api/v1/namespaces/n/pods", "|v1|n|pods||"),
            ("/api/v1/namespaces/n/pods/p/log", "|v1|n|pods|p|log"),
            ("/api/v1/namespaces/n", "|v1||namespaces|n|"),
            ("/api/v1/pods", "|v1||pods||"),
            ("/apis/batch/v1/namespaces/n/jobs/j", "batch|v1|n|jobs|j|"),
        ];
        for (path, expected) in rows {
            let Target { group, version, namespace, plural, name, subresource } = Target::of(path).unwrap();
            let text = [Some(group), Some(version), namespace, Some(plural), name, subresource].map(Option::unwrap_or_default);
            assert_eq!(text.join("|"), expected, "{path}");
        }
        assert_eq!(Target::of("/version"), None);
    }

    #[test]
    fn queries_are_decoded() {
        let query = Query::of("labelSelector=rfm%3Dab%2Cx+y&watch=true&container=");
        assert_eq!((query.get("labelSelector"), query.is("watch"), query.get("container")), (Some("rfm=ab,x y"), true, None));
    }
}
