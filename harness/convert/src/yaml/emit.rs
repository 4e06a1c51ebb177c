//! YAML out: values as a person would write them.
//!
//! Mappings are blocks, short lists and what is a line by nature (a figure, a reference) are flows. Every text is quoted
//! where any reader of YAML could take it for something else.

use crate::value::{Piece, Value};
use muster_text::secret::masked;
use std::fmt::Write as _;

/// Columns that a flow may fill.
const WIDTH: usize = 120;

/// Keys whose entries are a line each.
const LINES: [&str; 6] = ["perf_variables", "reference", "with", "processor", "values", "fixtures"];

/// A document: what of its `origin` is missing from it as comments, without secrets, then the entries.
pub(crate) fn document(origin: &str, comments: &[String], entries: &[(String, Value)]) -> String {
    let mut text = String::new();
    if !comments.is_empty() {
        let _ = writeln!(text, "# Not carried over from {origin}:");
        for comment in comments {
            let _ = writeln!(text, "#   {}", masked(comment));
        }
        text.push('\n');
    }
    let mut after_block = false;
    for (at, (key, value)) in entries.iter().enumerate() {
        let block = is_block(key, value);
        if at > 0 && (block || after_block) {
            text.push('\n');
        }
        entry(&mut text, 0, key, value);
        after_block = block && key != "executable";
    }
    text
}

fn is_block(key: &str, value: &Value) -> bool {
    let long = match value {
        Value::Dict(entries) => !entries.is_empty(),
        Value::List(items) => items.iter().any(|item| matches!(item, Value::Dict(_))),
        _ => false,
    };
    long || key == "executable"
}

fn entry(text: &mut String, indent: usize, key: &str, value: &Value) {
    let _ = write!(text, "{:indent$}{}:", "", scalar_text(key, false));
    body(text, indent, key, value);
}

/// What follows `key:`, its line break included.
fn body(text: &mut String, indent: usize, key: &str, value: &Value) {
    match value {
        Value::Dict(entries) if entries.is_empty() => text.push_str(" {}\n"),
        Value::Dict(_) | Value::List(_) | Value::Tuple(_) if fits(key, value, indent) => {
            let _ = writeln!(text, " {}", flow(value));
        }
        Value::Dict(entries) => {
            text.push('\n');
            for (name, value) in entries {
                let name = name.shown().unwrap_or_default();
                let inner = if LINES.contains(&key) { "perf_variables" } else { &name };
                let _ = write!(text, "{:indent$}  {}:", "", scalar_text(&name, false));
                if let (true, Value::Dict(_) | Value::List(_)) = (LINES.contains(&key), value)
                    && is_line(value)
                {
                    let _ = writeln!(text, " {}", flow(value));
                } else {
                    body(text, indent + 2, inner, value);
                }
            }
        }
        Value::List(items) | Value::Tuple(items) => {
            text.push('\n');
            for value in items {
                item(text, indent + 2, value);
            }
        }
        Value::Str(lines) if is_literal(lines) => literal(text, indent, lines),
        // An expression with texts and patterns in it is easier to read without a second layer of quotes.
        Value::Str(line)
            if is_expression(key) && !is_plain(line, false) && line.contains('\'') && is_literal(&format!("{line}\nx")) =>
        {
            literal(text, indent, line);
        }
        Value::Text(pieces) if is_literal(&template(pieces)) => literal(text, indent, &template(pieces)),
        value => {
            let _ = writeln!(text, " {}", scalar(value, false));
        }
    }
}

fn item(text: &mut String, indent: usize, value: &Value) {
    match value {
        Value::Dict(entries) if !entries.is_empty() => {
            for (at, (key, value)) in entries.iter().enumerate() {
                let lead = if at == 0 { "- " } else { "  " };
                let key = key.shown().unwrap_or_default();
                let _ = write!(text, "{:indent$}{lead}{}:", "", scalar_text(&key, false));
                body(text, indent + 2, &key, value);
            }
        }
        Value::Str(lines) if is_literal(lines) => {
            let _ = write!(text, "{:indent$}-", "");
            literal(text, indent, lines);
        }
        value => {
            let _ = writeln!(text, "{:indent$}- {}", "", flow(value));
        }
    }
}

fn is_expression(key: &str) -> bool {
    matches!(key, "assert" | "value" | "if")
}

/// Several lines that a block scalar gives back as they are.
fn is_literal(text: &str) -> bool {
    let is_whole = |line: &str| line.trim_end() == line && !line.chars().any(char::is_control);
    text.contains('\n') && !text.starts_with([' ', '\n']) && !text.ends_with('\n') && text.split('\n').all(is_whole)
}

fn literal(text: &mut String, indent: usize, lines: &str) {
    text.push_str(" |-\n");
    for line in lines.split('\n') {
        let _ = writeln!(text, "{}", format!("{:indent$}  {line}", "").trim_end());
    }
}

/// Whether a value is one line by nature: no mapping within it, and not too long.
fn is_line(value: &Value) -> bool {
    let is_flat = |value: &Value| !matches!(value, Value::Dict(_));
    let flat = match value {
        Value::Dict(entries) => entries.iter().all(|(_, value)| is_flat(value)),
        Value::List(items) | Value::Tuple(items) => items.iter().all(is_flat),
        _ => true,
    };
    flat && flow(value).len() <= WIDTH && !flow(value).contains('\n')
}

fn fits(key: &str, value: &Value, indent: usize) -> bool {
    let is_wanted = match value {
        Value::Dict(_) => matches!(key, "with" | "processor" | "extras" | "env_vars" | "labels" | "devices"),
        Value::List(items) => !items.iter().any(|item| matches!(item, Value::Dict(_) | Value::List(_))),
        _ => true,
    };
    is_wanted && is_line(value) && flow(value).len() + indent + key.len() < WIDTH
}

/// A value in one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Dict(entries) if entries.is_empty() => "{}".to_owned(),
        Value::Dict(entries) => {
            let entry = |(key, value): &(Value, Value)| {
                format!("{}: {}", scalar_text(&key.shown().unwrap_or_default(), true), flow(value))
            };
            format!("{{ {} }}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Value::List(items) | Value::Tuple(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        value => scalar(value, true),
    }
}

fn scalar(value: &Value, in_flow: bool) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => number(*value),
        Value::Str(text) => scalar_text(text, in_flow),
        Value::Text(pieces) => scalar_text(&template(pieces), in_flow),
        Value::Cel(cel) => scalar_text(&format!("${{{{ {} }}}}", cel.text), in_flow),
        // `None`; `settle` leaves nothing else.
        _ => "null".to_owned(),
    }
}

fn number(value: f64) -> String {
    if value.is_nan() {
        ".nan".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { ".inf" } else { "-.inf" }.to_owned()
    } else {
        // The one spelling that Muster takes for a number.
        muster_text::Value::from(value).to_string()
    }
}

fn template(pieces: &[Piece]) -> String {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let piece = |(at, piece): (usize, &Piece)| match (piece, pieces.get(at + 1)) {
        // What follows a variable is no part of its name.
        (Piece::Shell(text), Some(Piece::Text(next))) if next.starts_with(is_word) => match text.strip_prefix('$') {
            Some(name) if name.chars().all(is_word) => format!("${{{name}}}"),
            _ => text.clone(),
        },
        (Piece::Text(text) | Piece::Shell(text), _) => text.clone(),
        (Piece::Cel(cel), _) => format!("${{{{ {} }}}}", cel.text),
    };
    pieces.iter().enumerate().map(piece).collect()
}

/// A text, quoted where it has to be.
pub(crate) fn scalar_text(text: &str, in_flow: bool) -> String {
    if is_plain(text, in_flow) {
        return text.to_owned();
    }
    let has_control = text.chars().any(char::is_control);
    // CEL's own texts are in single quotes; doubling them is hard to read.
    if has_control || text.contains('\'') && !text.contains(['"', '\\']) {
        let mut quoted = String::from("\"");
        for letter in text.chars() {
            match letter {
                '"' => quoted.push_str("\\\""),
                '\\' => quoted.push_str("\\\\"),
                '\n' => quoted.push_str("\\n"),
                '\t' => quoted.push_str("\\t"),
                '\r' => quoted.push_str("\\r"),
                letter if letter.is_control() => {
                    let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
                }
                letter => quoted.push(letter),
            }
        }
        quoted.push('"');
        return quoted;
    }
    format!("'{}'", text.replace('\'', "''"))
}

fn is_plain(text: &str, in_flow: bool) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let lower = text.to_ascii_lowercase();
    let words = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "~", "none", "=", "<<"];
    let is_word = first.is_alphanumeric() || matches!(first, '_' | '/' | '$' | '^' | '(' | '+' | '\\' | '.');
    let is_option = first == '-' && text.len() > 1 && !text.starts_with("- ") && text != "---";
    let digits = text.trim_start_matches(['+', '-', '.']);
    let is_number = (digits.starts_with(|letter: char| letter.is_ascii_digit())
        || matches!(&*digits.to_ascii_lowercase(), "inf" | "nan" | ""))
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || ".:_+-".contains(letter))
        && (text.chars().all(|letter| letter.is_ascii_digit() || ".:_+-eE".contains(letter))
            || digits.starts_with('0')
            || digits.len() == 3 && !digits.starts_with(|letter: char| letter.is_ascii_digit()));
    let flows = |letter: char| ",[]{}".contains(letter);
    let is_template = text.contains("${{");
    !words.contains(&&*lower)
        && (is_word || is_option)
        && !is_number
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        && !text.chars().any(|letter| letter.is_control() || matches!(letter, '\u{feff}' | '\u{85}' | '\u{2028}' | '\u{2029}'))
        && !(in_flow && (text.chars().any(flows) || text.contains(':') || text.starts_with('-') && is_template))
        && !(in_flow && text.contains(['"', '\'', '#', '?', '&', '*', '!', '|', '>', '%', '@', '`']))
}

#[cfg(test)]
mod tests {
    use super::scalar_text;
    use muster_text::{diagnostic::FileId, yaml::parse};

    #[test]
    fn every_text_is_read_back_as_it_was() {
        let texts = [
            "",
            " a",
            "a ",
            "a: b",
            "a #b",
            "yes",
            "No",
            "1.20",
            "0644",
            "1e3",
            "-x",
            "- x",
            "---",
            "${{ a }}",
            "${{ a ? 'b' : \"c\" }}",
            "a\nb",
            "'",
            "\"",
            "\\d+",
            "*",
            "+gpu",
            "%a=b",
            "@x",
            "a, b",
            "[a]",
            "{a}",
            "key:",
            "~",
            "null",
            "2024-01-01",
            "12:30:45",
            "0x1F",
            "!tag",
            "&a",
            "é",
            "a'b\"c\\d",
            "\u{7}",
            "=",
            "<<",
            ".",
            ".inf",
        ];
        for text in texts {
            for (before, after, in_flow) in [("", "", false), ("[", "]", true)] {
                let yaml = format!("key: {before}{}{after}\n", scalar_text(text, in_flow));
                let parsed = parse(FileId::default(), &yaml);
                assert!(parsed.diagnostics.is_empty(), "{yaml}: {:?}", parsed.diagnostics);
                let value = parsed.documents[0].get("key").expect("the key");
                let value = if in_flow { &value.items()[0] } else { value };
                assert_eq!((value.text(), value.what()), (Some(text), "text"), "{yaml}");
            }
        }
    }
}
