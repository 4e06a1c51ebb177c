//! The reference page, made of the key tables. Another program with schedulers of its own has one, too.

use muster_check::{
    files::check_file::{self, CheckFile},
    site::file as site_file,
};
use muster_core::job::descriptor::{Descriptor, Schedulers, SharedKey};
use muster_text::{Value, decode::Keyed};
use std::fmt::Write;

const HEAD: &str = "# Every key

A test writes this page and the JSON schemas from the key tables that read the files. [checks.md](checks.md) and
[site.md](site.md) explain the keys with examples, [outcomes.md](outcomes.md) the outcomes.

In a check file any value may be a placeholder, `${{ expression }}`. Null has the same effect as leaving out the key. A
check with `extends`, and an entry of `when`, may write `key+: [..]` to append to the list of the layer below.
";

/// The most characters of a line of an item.
const WIDTH: usize = 118;

/// The page of a program with these schedulers.
pub(crate) fn page(schedulers: &Schedulers) -> String {
    let mut page = HEAD.to_owned();
    page += "\n## Checks\n";
    keys(&check_file::schema(schedulers), 0, &mut page);
    page += "\n### Keys of other systems\n\nMuster refuses these keys and says what to write instead.\n\n| key | instead |\n| --- | --- |\n";
    for (key, instead) in CheckFile::TABLE.instead {
        let _ = writeln!(page, "| `{key}` | {} |", instead.replace('|', "\\|"));
    }
    if !CheckFile::TABLE.later.is_empty() {
        let later: Vec<_> = CheckFile::TABLE.later.iter().map(|key| format!("`{key}`")).collect();
        let _ = writeln!(page, "\nKnown, and not supported yet: {}.", later.join(", "));
    }
    page += "\n## Sites\n";
    keys(&site_file::schema(schedulers), 0, &mut page);
    page += "\n## Schedulers\n\nWhat `scheduler` of a partition may be, with the keys of its `sched_options`. In a check, options of another\nscheduler have no effect; in a partition they are mistakes. In the options of a system, an option is a mistake if no\npartition has a scheduler that knows it; in `-J`, if no selected case has one.\n";
    let mut shared_keys: Vec<&str> = Vec::new();
    for (key, _) in schedulers.all().iter().flat_map(|descriptor| descriptor.shared_keys) {
        if !shared_keys.contains(key) {
            shared_keys.push(key);
        }
    }
    schedulers.all().iter().for_each(|descriptor| scheduler(descriptor, &shared_keys, &mut page));
    page
}

/// The options of a scheduler, and what it does with the keys that several schedulers have.
fn scheduler(descriptor: &Descriptor, shared_keys: &[&str], page: &mut String) {
    let names: Vec<String> = descriptor.names.iter().map(|name| format!("`{name}`")).collect();
    *page += &wrapped(&format!("\n**{}**: {}.", names.join(", "), descriptor.descr), "");
    for option in descriptor.options {
        let kind = kind(&option.described());
        *page += &wrapped(&format!("- `{}` ({kind}): {}", option.name, option.description()), "");
    }
    let shared = |does: fn(&SharedKey) -> bool| -> Vec<String> {
        let keys = shared_keys.iter().filter(|key| does(&descriptor.shared_key(key)));
        keys.map(|key| format!("`{key}`")).collect()
    };
    for (keys, what) in [
        (shared(|attitude| *attitude == SharedKey::Takes), "It takes"),
        (shared(|attitude| *attitude == SharedKey::Ignores), "Without effect:"),
        (shared(|attitude| matches!(attitude, SharedKey::Refuses(_))), "Refused, with a hint:"),
        (descriptor.node_states.iter().map(|state| format!("`{state}`")).collect(), "Its nodes, with `--distribute`:"),
    ] {
        if !keys.is_empty() {
            *page += &wrapped(&format!("- {what} {}.", keys.join(", ")), "");
        }
    }
}

/// The keys of a mapping, each with those of the mappings in it.
fn keys(schema: &Value, depth: usize, page: &mut String) {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, key) in schema["properties"].as_object().into_iter().flatten() {
        // An entry of `when` refers to the keys of the check.
        if key.get("$ref").is_some() {
            continue;
        }
        let must = if required.contains(&name.as_str()) { ", required" } else { "" };
        let indent = "  ".repeat(depth);
        let description = key["description"].as_str().unwrap_or_default();
        let heading = if depth == 0 { format!("- **`{name}`**") } else { format!("- `{name}`") };
        *page += if depth == 0 { "\n" } else { "" };
        *page += &wrapped(&format!("{heading} ({}{must}): {description}", kind(key)), &indent);
        for table in tables(key) {
            keys(table, depth + 1, page);
        }
    }
}

/// An item in lines of at most `WIDTH` characters, broken at blanks outside of code.
fn wrapped(item: &str, indent: &str) -> String {
    let mut is_code = false;
    let words = item.split(|c: char| {
        is_code ^= c == '`';
        c == ' ' && !is_code
    });
    let (mut text, mut line) = (String::new(), indent.to_owned());
    for word in words {
        if !line.trim().is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = format!("{indent}  ");
        } else if !line.trim().is_empty() {
            line.push(' ');
        }
        line += word;
    }
    text + &line + "\n"
}

/// The mappings with fixed keys that a value consists of.
fn tables(schema: &Value) -> Vec<&Value> {
    if schema.get("properties").is_some() {
        return vec![schema];
    }
    let parts = schema["anyOf"].as_array().into_iter().flatten();
    let parts = parts.chain(["items", "additionalProperties"].into_iter().filter_map(|key| schema.get(key)));
    let mut found: Vec<&Value> = Vec::new();
    for table in parts.filter(|part| part.is_object()).flat_map(tables) {
        // One, or a list of them: the same mapping twice.
        if !found.contains(&table) {
            found.push(table);
        }
    }
    found
}

/// What a value may be, in words.
fn kind(schema: &Value) -> String {
    let mut words = Vec::new();
    collect(schema, &mut words);
    words.dedup();
    let mut unique: Vec<String> = vec![];
    for word in words {
        if !unique.contains(&word) {
            unique.push(word);
        }
    }
    if unique.is_empty() { "anything".to_owned() } else { unique.join(" or ") }
}

fn collect(schema: &Value, words: &mut Vec<String>) {
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().for_each(|choice| collect(choice, words));
    }
    if let Some(values) = schema["enum"].as_array() {
        return words.push(values.iter().map(|value| format!("`{}`", plain(value))).collect::<Vec<_>>().join(", "));
    }
    if let Some(value) = schema.get("const") {
        return words.push(format!("`{}`", plain(value)));
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    // Where text is wanted, any plain scalar is text.
    if kinds.contains(&"string") {
        return words.push("text".to_owned());
    }
    for kind in kinds {
        match kind {
            "integer" => words.push("a whole number".to_owned()),
            "number" => words.push("a number".to_owned()),
            "boolean" => words.push("true or false".to_owned()),
            "array" => words.push(match schema.get("items").map(self::kind) {
                Some(items) if items != "anything" => format!("a list: {items}"),
                _ => "a list".to_owned(),
            }),
            "object" => {
                words.push(match schema.get("additionalProperties").filter(|values| values.is_object()).map(self::kind) {
                    Some(values) if values != "anything" => format!("a mapping by name: {values}"),
                    Some(_) => "a mapping by name".to_owned(),
                    None => "a mapping".to_owned(),
                });
            }
            _ => {}
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
