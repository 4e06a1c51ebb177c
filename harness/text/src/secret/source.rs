//! Secrets in the source text of files: where they are, so that a mistake can be shown without them.

use super::{
    LINES_OF_A_LIST, closing, compiled, is_reference, is_secret_name, listed,
    tree::{self, Tree},
};
use regex::Regex;
use std::{ops::Range, sync::LazyLock};

/// A name, and what stands between it and its value.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r#"(?-u:([A-Za-z_][\w.-]*)["']?\+?[ \t]*([:=])[ \t]*)"#));
/// An item or an option with a space where `=` was meant.
static SPACED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(r#"(?m)(?:["'\[,:]|^|(?-u:[ \t])--?)[ \t]*(?:-[ \t]+)?(?-u:([A-Za-z_][\w.-]*))[ \t]+([^\s"',\]}=:#][^\n"',\]}]*)"#)
});
/// A password with `/`, `?` or `@` that was not escaped is found, too.
static IN_URL: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r"://[^\s/:@]*:([^\n]+)@"));
static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r#"^[ \t]*(?:-[ \t]+)?["']?(?-u:[\w.-])+["']?[ \t]*:(?:\s|$)"#));

/// Keys of a Secret's manifest whose values are all secret.
const DATA: [&str; 2] = ["data", "stringData"];

/// Where secrets are: passwords of URLs, and the values of what has the name of one. The tree says what belongs together; the text is
/// looked at, too, for a file with a mistake may be no tree.
pub(crate) fn places(text: &str) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let captures = |pattern: &'static LazyLock<Option<Regex>>| pattern.iter().flat_map(|pattern| pattern.captures_iter(text));
    places.extend(captures(&IN_URL).filter_map(|found| Some(found.get(1)?.range())));
    let spaced = captures(&SPACED).filter(|found| is_secret_name(&found[1]));
    places.extend(spaced.filter_map(|found| Some(found.get(2)?.range())));
    for found in captures(&NAMED).filter(|found| is_secret_name(&found[1])) {
        if let Some(whole) = found.get(0) {
            value(text, whole.range(), &found[2] == ":", &mut places);
        }
    }
    let mut found = Found { text, places: &mut places };
    for document in tree::read(text) {
        found.look(&document);
    }
    places
}

/// The secrets in a tree.
struct Found<'a> {
    text: &'a str,
    places: &'a mut Vec<Range<usize>>,
}

impl Found<'_> {
    fn look(&mut self, tree: &Tree) {
        let (has_secret_name, is_secret) = (is_secret_name(tree.text_of("name")), tree.text_of("kind") == "Secret");
        for (key, value) in tree.entries() {
            if is_secret && DATA.contains(&key) {
                value.entries().for_each(|(_, value)| self.take(value));
            } else if is_secret_name(key) || (has_secret_name && key == "value") {
                self.take(value);
            } else {
                self.look(value);
            }
        }
        let mut follows_flag = false;
        for item in tree.items() {
            if follows_flag && !item.text().starts_with('-') {
                self.take(item);
            } else {
                self.look(item);
            }
            follows_flag = item.text().strip_prefix('-').is_some_and(is_secret_name);
        }
    }

    /// What has the name of a secret. The keys of a mapping speak for themselves, but for `value`.
    fn take(&mut self, tree: &Tree) {
        tree.items().iter().for_each(|item| self.take(item));
        for (key, value) in tree.entries() {
            if key == "value" || is_secret_name(key) { self.take(value) } else { self.look(value) }
        }
        let Tree::Scalar { text, is_plain, is_block, bytes } = tree else { return };
        if is_reference(text) || (*is_plain && is_word(text)) {
            return;
        }
        let quote = usize::from(!is_plain && !is_block);
        let Some(written) = self.text.get(bytes.start + quote..bytes.end.saturating_sub(quote)) else { return };
        let mut start = bytes.start + quote;
        for line in written.split_inclusive('\n') {
            let content = line.trim();
            let is_head = *is_block && line.starts_with(['|', '>']);
            if !content.is_empty() && !is_head {
                let at = start + line.len() - line.trim_start().len();
                self.places.push(at..at + content.len());
            }
            start += line.len();
        }
    }
}

/// A plain scalar that is no text.
fn is_word(text: &str) -> bool {
    ["", "true", "false", "null", "~"].contains(&text)
}

/// The value after a name. What is read from elsewhere is no secret, and the keys of a mapping speak for themselves.
fn value(text: &str, name: Range<usize>, is_yaml: bool, places: &mut Vec<Range<usize>>) {
    let start = name.end;
    let line = text[start..].lines().next().unwrap_or_default();
    let before = text[..name.start].rsplit('\n').next().unwrap_or_default();
    if is_yaml && (line.is_empty() || line.starts_with(['|', '>', '#'])) {
        let indent = before.len() - before.trim_start().len();
        below(text, start + line.len(), indent, line.starts_with(['|', '>']), places);
        return;
    }
    let until = |end: &[char]| line.find(end).unwrap_or(line.len());
    let (begin, end) = match line.chars().next() {
        Some('{') => return,
        Some('[') => {
            // One whose end is missing ends with its line, or with what is further in.
            let depth = before.len() - before.trim_start().len();
            let lines = text[start..].split_inclusive('\n').enumerate().take(LINES_OF_A_LIST);
            let is_part = |(number, line): &(usize, &str)| {
                *number == 0 || (is_yaml && (line.trim().is_empty() || line.len() - line.trim_start().len() > depth))
            };
            let length: usize = lines.take_while(is_part).map(|(_, line)| line.len()).sum();
            let found = listed(&text[start..start + length]).0.into_iter().map(|item| start + item.start..start + item.end);
            places.extend(found.filter(|item| !is_reference(&text[item.clone()])));
            return;
        }
        Some(quote @ ('"' | '\'')) => (1, closing(line, quote)),
        Some('$') if line.starts_with("${{") && line.contains("}}") => {
            let after = line.find("}}").map_or(0, |at| at + 2);
            (0, line[after..].find([' ', '\t', '"', '\'', '&', ',', '}', ']']).map_or(line.len(), |end| after + end))
        }
        _ if !is_yaml => (0, until(&[' ', '\t', '"', '\'', '&'])),
        _ if before.contains(['{', '[']) => (0, until(&[',', '}', ']'])),
        _ => (0, line.find(" #").unwrap_or(line.len())),
    };
    let value = line[begin..end].trim_end();
    let is_plain_word = begin == 0 && is_word(value.trim_end_matches(['"', '\'', ']', '}', ',']));
    if !is_plain_word && !is_reference(value) {
        places.push(start + begin..start + begin + value.len());
    }
}

/// The lines below a key that are its value: `from` is the end of its line.
fn below(text: &str, from: usize, indent: usize, is_block: bool, places: &mut Vec<Range<usize>>) {
    let mut start = from;
    for line in text[from..].split_inclusive('\n') {
        let end = start + line.len();
        let content = line.trim();
        let at = line.len() - line.trim_start().len();
        if !content.is_empty() {
            let is_key = KEY.as_ref().is_some_and(|key| key.is_match(line));
            let is_item = !is_block && at == indent && content.starts_with("- ");
            if (at <= indent && !is_item) || (is_key && !is_block) {
                return;
            }
            places.push(start + at..start + at + content.len());
        }
        start = end;
    }
}

/// The text with `*` in the place of each byte of these places.
pub(crate) fn starred(text: &str, places: &[Range<usize>]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for place in places {
        bytes[place.clone()].fill(b'*');
    }
    // Places begin and end between characters.
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_a_source_are_found_by_their_names_and_in_urls() {
        let rows = [
            ("db: postgres://ada:hunter@h/x", "db: postgres://ada:******@h/x"),
            ("db: postgres://ada:h/n?@er@h/x", "db: postgres://ada:*******@h/x"),
            ("db: postgres://h/x?password=hunter&sslmode=no", "db: postgres://h/x?password=******&sslmode=no"),
            ("job-option: [\"password hunter6\"]", "job-option: [\"password *******\"]"),
            ("- api_token hunter8", "- api_token *******"),
            ("env_vars: {API_TOKEN: x, nmae: y}", "env_vars: {API_TOKEN: *, nmae: y}"),
            ("\"api_key\": 'a b' # c", "\"api_key\": '***' # c"),
            ("api_key: hé llo # c", "api_key: ******* # c"),
            ("token: [one, two]", "token: [***, ***]"),
            ("token: [\n  hunter22,\n  n\n]", "token: [\n  ********,\n  *\n]"),
            ("a:\n  token: [\n    hunter22,\n  b: 1\nc: 2", "a:\n  token: [\n    ********,\n  b: 1\nc: 2"),
            ("- export token=[\n- echo a\n- echo b", "- export token=[\n- echo a\n- echo b"),
            (r#"token: "ab\"cdefgh" # c"#, r#"token: "**********" # c"#),
            ("api_key: 'it''sasecret'", "api_key: '************'"),
            ("a:\n  token:\n    hunter\n  n: 1", "a:\n  token:\n    ******\n  n: 1"),
            ("a:\n  token: |\n    x: 1\n\n    y\n  n: 1", "a:\n  token: |\n    ****\n\n    *\n  n: 1"),
            ("- name: DB_PASSWORD\n  value: hunter-${{ nope }}", "- name: DB_PASSWORD\n  value: ******************"),
            ("[{name: DB_PASSWORD, value: 'hunter'}]", "[{name: DB_PASSWORD, value: '******'}]"),
            ("args: [\"--password\", \"hunter\"]", "args: [\"--password\", \"******\"]"),
            ("args:\n- --password\n- hunter\n- -v", "args:\n- --password\n- ******\n- -v"),
            (
                "kind: Secret\nstringData: {a: hunter}\ndata:\n  b: aHVu",
                "kind: Secret\nstringData: {a: ******}\ndata:\n  b: ****",
            ),
            ("password: null-hunter2", "password: ************"),
            ("password: true hunter2\nb: 1", "password: ************\nb: 1"),
            ("password: false.hunter2", "password: *************"),
            ("password: \"${X}hunter2\"", "password: \"***********\""),
            ("token: [[a], hunter2]", "token: [[*], *******]"),
            ("token: [\"a]\", \"hunter2\"]", "token: [\"**\", \"*******\"]"),
            ("? DB_PASSWORD\n: [hunter, x]", "? DB_PASSWORD\n: [******, *]"),
            ("DB_PASSWORD: {value: hunter, from: x}", "DB_PASSWORD: {value: ******, from: x}"),
            // Not a whole tree: what is before the mistake counts.
            ("- {name: DB_PASSWORD, value: hunter}\n- [a: {", "- {name: DB_PASSWORD, value: ******}\n- [a: {"),
            ("opts: [-S, api_token=hunter, --token hunter]", "opts: [-S, api_token=******* --token ******]"),
        ];
        for (text, shown) in rows {
            assert_eq!(starred(text, &places(text)), shown);
        }
        for text in [
            "token: ${{ vars.token }}",
            "automountServiceAccountToken: false",
            "secret:\n  name: of-mine",
            "env:\n- name: TOKEN\n  valueFrom: {secretKeyRef: {name: of-mine, key: token}}",
            "args: [--token, --verbose, x]",
            "kind: ConfigMap\ndata: {a: b}",
            "token: null\npassword: ~ # none",
            "secret: {name: of-mine}",
            "max_tokens: 128",
            "descr: what the secret of speed is",
            "image: docker://registry/x:1.2",
        ] {
            assert_eq!(starred(text, &places(text)), text);
        }
    }
}
