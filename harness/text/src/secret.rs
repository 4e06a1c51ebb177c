//! Secrets in the source text of files: where they are, so that a mistake can be shown without them.

use regex::Regex;
use std::{ops::Range, sync::LazyLock};

/// Replaces a secret.
pub const MASK: &str = "***";

/// Shorter values are words and counts, too: people would not know what they replaced in a sentence.
pub const LEAST: usize = 4;

/// How the name of a secret ends, without the marks between its words.
const ENDINGS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "secretkey",
    "credential",
    "credentials",
];

/// Whether what has this name is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let last = name.rsplit(['.', '_', '-']).next().unwrap_or_default();
    let whole = name.replace(['.', '_', '-'], "");
    let whole = whole.trim_end_matches(|c: char| c.is_ascii_digit());
    ["pw", "pwd"].contains(&last) || ENDINGS.iter().any(|end| whole.ends_with(end))
}

/// A name, and what stands between it and its value.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r#"(?-u:([A-Za-z_][\w.-]*)["']?\+?[ \t]*([:=])[ \t]*)"#));
/// An item or an option with a space where `=` was meant.
static SPACED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(r#"(?m)(?:["'\[,:]|^|(?-u:[ \t])--?)[ \t]*(?:-[ \t]+)?(?-u:([A-Za-z_][\w.-]*))[ \t]+([^\s"',\]}=:#][^\n"',\]}]*)"#)
});
/// A password with `/`, `?` or `@` that was not escaped is found, too.
static IN_URL: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r"://[^\s/:@]*:([^\n]+)@"));
static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r#"^[ \t]*(?:-[ \t]+)?["']?(?-u:[\w.-])+["']?[ \t]*:(?:\s|$)"#));

fn compiled(pattern: &str) -> Option<Regex> {
    // The patterns are ours and a test uses them.
    Regex::new(pattern).ok()
}

/// Where secrets are: passwords of URLs, and the values of what has the name of one.
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
    places
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
    let plain = line.trim_start_matches(['"', '\'']);
    let word = plain.split(|c: char| !c.is_ascii_alphanumeric() && c != '~').next().unwrap_or_default();
    if plain.starts_with("${") || line.starts_with('{') || ["true", "false", "null", "~"].contains(&word) {
        return;
    }
    let until = |end: &[char]| line.find(end).unwrap_or(line.len());
    let end = match line.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            places.push(start + 1..start + closing(line, quote));
            return;
        }
        Some('[') => {
            let list = &text[start + 1..];
            items(&list[..list.find(']').unwrap_or(list.len())], start + 1, places);
            return;
        }
        _ if !is_yaml => until(&[' ', '\t', '"', '\'', '&']),
        _ if before.contains(['{', '[']) => until(&[',', '}', ']']),
        _ => line.find(" #").unwrap_or(line.len()),
    };
    places.push(start..start + line[..end].trim_end().len());
}

/// Where a quoted text ends: at its second quote that is not escaped.
fn closing(line: &str, quote: char) -> usize {
    let mut letters = line.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if quote == '"' => drop(letters.next()),
            '\'' if quote == '\'' && letters.next_if(|(_, next)| *next == '\'').is_some() => {}
            letter if letter == quote => return at,
            _ => {}
        }
    }
    line.len()
}

/// Each item of a list in brackets, which begins at `from` and may go over several lines.
fn items(list: &str, from: usize, places: &mut Vec<Range<usize>>) {
    let mut start = from;
    for item in list.split_inclusive([',', '\n']) {
        let marks = |c: char| c.is_whitespace() || c == ',';
        let (blank, content) = (item.len() - item.trim_start_matches(marks).len(), item.trim_matches(marks));
        if !content.is_empty() {
            places.push(start + blank..start + blank + content.len());
        }
        start += item.len();
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
            let is_item = at == indent && content.starts_with("- ");
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
            (r#"token: "ab\"cdefgh" # c"#, r#"token: "**********" # c"#),
            ("api_key: 'it''sasecret'", "api_key: '************'"),
            ("a:\n  token:\n    hunter\n  n: 1", "a:\n  token:\n    ******\n  n: 1"),
            ("a:\n  token: |\n    x: 1\n\n    y\n  n: 1", "a:\n  token: |\n    ****\n\n    *\n  n: 1"),
            ("opts: [-S, api_token=hunter, --token hunter]", "opts: [-S, api_token=******* --token ******]"),
        ];
        for (text, shown) in rows {
            assert_eq!(starred(text, &places(text)), shown);
        }
        for text in [
            "token: ${{ vars.token }}",
            "automountServiceAccountToken: false",
            "secret:\n  name: of-mine",
            "secret: {name: of-mine}",
            "max_tokens: 128",
            "descr: what the secret of speed is",
            "image: docker://registry/x:1.2",
        ] {
            assert_eq!(starred(text, &places(text)), text);
        }
    }
}
