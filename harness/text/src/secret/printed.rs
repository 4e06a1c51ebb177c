//! Secrets that a job printed, or that stand on a command line, do not go on into reports that are passed around.
//!
//! Muster itself never writes the values of environment variables. This is the second line: what is *named* a secret
//! (`DB_PASSWORD=...`, `token: ...`), what an `Authorization` header or an address carries, and the token formats that
//! are recognised by their prefix. A secret that looks like nothing in particular cannot be found.

use super::{LEAST, MASK, closing, compiled, is_reference, is_secret_name, items};
use regex::{Captures, Regex};
use std::{borrow::Cow, ops::Range, sync::LazyLock};

/// After `:` shorter values are words of a sentence.
const LEAST_OF_A_SENTENCE: usize = 6;

// Names are ASCII, and so are their letters here: those of all of Unicode take 30 ms to compile.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r#"(?-u:\b([A-Za-z_][\w.-]*))\\?["']?[ \t]*([=:])[ \t]*\\?"#));

static KNOWN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i:(?-u:\b)(?:bearer|basic)\s+)[A-Za-z0-9+/=._~-]{8,}",
        r#"|://[^/\s:@"']*:[^\s"']+@"#,
        r"|(?-u:\b(?:gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}))",
        r"|(?-u:\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)",
    ))
});

/// A header, up to the end of its line or of its quotes.
static HEADER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(
        r#"(?i)(authorization["']?[ \t]*[:=][ \t]*["']?(?:token|basic|bearer|apikey|negotiate|digest)[ \t]+)([^\s"'][^\n"']*)"#,
    )
});

/// The text with `***` in the place of what looks like a secret.
pub fn masked(text: &str) -> Cow<'_, str> {
    let text = replaced(&HEADER, Cow::Borrowed(text), |found| format!("{}{MASK}", &found[1]));
    let text = replaced(&KNOWN, text, |found| {
        let whole = &found[0];
        match whole.split_once(char::is_whitespace) {
            Some((scheme, _)) => format!("{scheme} {MASK}"),
            // Behind an address with a port another one may follow.
            None if is_port(whole) => match whole.rfind("://") {
                Some(at @ 1..) if !is_port(&whole[at..]) => format!("{}://{MASK}@", &whole[..at]),
                _ => whole.to_owned(),
            },
            None if whole.starts_with("://") => format!("://{MASK}@"),
            None => MASK.to_owned(),
        }
    });
    let places = places(&text);
    if places.is_empty() {
        return text;
    }
    let (mut masked, mut done) = (String::with_capacity(text.len()), 0);
    for place in places {
        masked.push_str(&text[done..place.start]);
        masked.push_str(MASK);
        done = place.end;
    }
    masked.push_str(&text[done..]);
    Cow::Owned(masked)
}

/// Whether what looks like a password is a port and a path: `://registry:5000/image@`.
fn is_port(found: &str) -> bool {
    let after = found.strip_prefix("://").and_then(|found| found.split_once(':')).map(|(_, after)| after);
    let port = after.and_then(|after| after.split_once('/')).map(|(port, _)| port);
    port.is_some_and(|port| !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The values of what has the name of a secret, in order.
fn places(text: &str) -> Vec<Range<usize>> {
    let mut places: Vec<Range<usize>> = Vec::new();
    for found in NAMED.iter().flat_map(|pattern| pattern.captures_iter(text)).filter(|found| is_secret_name(&found[1])) {
        let start = found.get(0).map_or(0, |whole| whole.end());
        // The folder of a shell.
        let is_folder = &found[1] == "PWD" && text[start..].starts_with('/');
        if !is_folder && places.last().is_none_or(|last| last.end <= start) {
            values(&text[start..], &found[2] == "=", |place| places.push(start + place.start..start + place.end));
        }
    }
    places
}

/// The values at the beginning of a text.
fn values(text: &str, is_assigned: bool, mut found: impl FnMut(Range<usize>)) {
    let is_harmless = |value: &str| value.is_empty() || value.starts_with('*') || is_reference(value);
    let place = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let line = text.lines().next().unwrap_or_default();
            1..closing(line, quote)
        }
        Some('[') => {
            items(text).into_iter().filter(|item| !is_harmless(&text[item.clone()])).for_each(found);
            return;
        }
        _ => {
            let end = text.find(|c: char| c.is_whitespace() || "\"'<>,;&".contains(c)).unwrap_or(text.len());
            let value = &text[..end];
            let least = if is_assigned { LEAST } else { LEAST_OF_A_SENTENCE };
            let is_word = ["none", "null", "true", "false"].contains(&value.to_ascii_lowercase().as_str());
            if value.len() < least || is_word || is_quantity(value) || value.starts_with("$(") {
                return;
            }
            0..end
        }
    };
    if !is_harmless(&text[place.clone()]) {
        found(place);
    }
}

/// A number, perhaps with its unit: `12.3ms` of `time per output token`.
fn is_quantity(value: &str) -> bool {
    let value = value.trim_end_matches(['}', ']', ')']);
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_unit =
        ["%", "ns", "us", "µs", "ms", "s", "min", "h", "/s", "tok/s", "tokens/s", "B", "kB", "KB", "MB", "GB", "MB/s", "GB/s"];
    value.parse::<f64>().is_ok() || (is_unit.contains(&unit) && value[..value.len() - unit.len()].parse::<f64>().is_ok())
}

fn replaced<'a>(pattern: &LazyLock<Option<Regex>>, text: Cow<'a, str>, with: impl Fn(&Captures<'_>) -> String) -> Cow<'a, str> {
    match pattern.as_ref().filter(|pattern| pattern.is_match(&text)) {
        Some(pattern) => Cow::Owned(pattern.replace_all(&text, with).into_owned()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_a_secret_is_masked() {
        let rows = [
            ("export DB_PASSWORD=correct-horse", "export DB_PASSWORD=***"),
            ("dbPassword=hunter dbPwd=hunter db_pw=hunter MYSQL_PWD=hunter", "dbPassword=*** dbPwd=*** db_pw=*** MYSQL_PWD=***"),
            ("AWS_SECRET_ACCESS_KEY: wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY: ***"),
            (r#"{"api_key": "0123456789abcdef"}"#, r#"{"api_key": "***"}"#),
            (r#"{"password": ["x", "y z"], "b": 1}"#, r#"{"password": ["***", "***"], "b": 1}"#),
            (r#"password="a b c" next"#, r#"password="***" next"#),
            ("password: 'x y'", "password: '***'"),
            ("password=${X}hunter2", "password=***"),
            ("-S token='abcdef123'", "-S token='***'"),
            ("Authorization: Bearer abc.def-123456", "Authorization: Bearer ***"),
            ("Authorization: Token x", "Authorization: Token ***"),
            (r#"-H "Authorization: Digest a=b, c=d" -v"#, r#"-H "Authorization: Digest ***" -v"#),
            ("https://ada:enigma99@git.example/x", "https://***@git.example/x"),
            ("https://ada:hunter2/secretA@h/x", "https://***@h/x"),
            ("https://ada:p@ss/word@h/x", "https://***@h/x"),
            ("http://proxy:3128/,https://ada:hunter2secret@git.example/x", "http://proxy:3128/,https://***@git.example/x"),
            ("\"token\": [\n  \"hunter2\"\n]\nnext", "\"token\": [\n  \"***\"\n]\nnext"),
            ("glpat-abcdefghij0123456789", "***"),
            ("pushing with ghp_abcdefghijklmnopqrstuvwxyz012345 now", "pushing with *** now"),
            ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ", "***"),
        ];
        for (text, shown) in rows {
            assert_eq!(masked(text), shown);
            assert_eq!(masked(shown), shown, "masking twice changes nothing");
        }
    }

    #[test]
    fn what_only_sounds_like_one_stays() {
        for text in [
            "tokens: 1234567",
            "output tokens/s = 98765.4321",
            "token=$CI_TOKEN_VALUE",
            "password: none",
            "the secret of speed",
            "basic block 12",
            "nodes: a:b@c",
            "P: tokens_per_second: 120 tok/s (r:100)",
            "PWD=/home/ada",
            "json error: unexpected token: [ at line 3\nkilled\nout of memory ]",
            "time per output token: 12.34ms",
            "time_to_first_token=35.2ms",
            "{first_token: 12.345}",
            "docker://registry:5000/image@sha256:abc",
            "http://h:8080/x ada@h",
        ] {
            assert_eq!(masked(text), text);
        }
    }
}
