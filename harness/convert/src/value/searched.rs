//! The text that an expression searches: the output, or a file.
//!
//! While an expression is put together, a search in a file is written `file('out.txt').count(..)`. A check says it with the key
//! `file` beside the expression; so it is taken out when all is there, and no way of putting expressions together can lose it.

use crate::value::{
    Piece, Value,
    cel::{Cel, Kind, Prec},
};

/// The functions that search.
const SEARCHES: [&str; 4] = ["count", "findall", "extractall", "extractsingle"];

/// A path in the stage folder, as text with placeholders; `None` for any other path.
pub(crate) fn path(file: &Value) -> Option<String> {
    let pieces = file.pieces()?;
    let is_stage = |piece: &Piece| matches!(piece, Piece::Cel(cel) if cel.text == "stagedir");
    let mut path = String::new();
    for piece in pieces.iter().skip(usize::from(pieces.first().is_some_and(is_stage))) {
        match piece {
            Piece::Text(text) if !text.contains(['\'', '\\', '$', '*', '?', '[', '{']) => path.push_str(text),
            Piece::Cel(cel) if !cel.text.contains(['\'', '}', '\\']) => path.extend(["${{ ", &cel.text, " }}"]),
            _ => return None,
        }
    }
    if pieces.first().is_some_and(is_stage) {
        path = path.strip_prefix('/')?.to_owned();
    }
    let path = path.strip_prefix("./").unwrap_or(&path);
    let leads_out = path.starts_with('/') || path.split('/').any(|part| part == "..");
    (!path.is_empty() && !leads_out).then(|| path.to_owned())
}

/// A search in a file.
pub(crate) fn within(file: Option<&str>, cel: Cel) -> Cel {
    match file {
        Some(file) => Cel { text: format!("file('{file}').{}", cel.text), ..cel },
        None => cel,
    }
}

/// An expression without its files, and the one file that it searches.
pub(crate) fn taken_apart(text: &str) -> Result<(String, Option<Value>), &'static str> {
    let mut plain = String::new();
    let mut searched: Vec<Option<&str>> = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let is_new_word = !plain.ends_with(|last: char| last.is_ascii_alphanumeric() || last == '_');
        if let Some(literal) = literal(rest).filter(|_| is_new_word || letter != 'r') {
            plain.push_str(literal);
            rest = &rest[literal.len()..];
        } else if let Some((file, call)) =
            rest.strip_prefix("file('").filter(|_| is_new_word).and_then(|rest| rest.split_once("')."))
        {
            searched.push(Some(file));
            let name = SEARCHES.into_iter().find(|name| call.starts_with(name)).unwrap_or_default();
            plain.push_str(name);
            rest = &call[name.len()..];
        } else {
            let is_search = |name: &&str| rest.strip_prefix(*name).is_some_and(|rest| rest.starts_with('('));
            if is_new_word && SEARCHES.iter().any(is_search) {
                searched.push(None);
            }
            plain.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
    }
    let first = searched.first().copied().flatten();
    if searched.iter().any(|file| *file != first) {
        return Err("one expression searches several files, or a file and the output");
    }
    Ok((plain, first.map(value)))
}

/// The file that an expression searches, if it searches one.
pub(crate) fn file_of(cel: &Cel) -> Option<String> {
    let (file, _) = cel.text.strip_prefix("file('")?.split_once("').")?;
    Some(file.to_owned())
}

/// The literal that a text begins with.
fn literal(text: &str) -> Option<&str> {
    let (raw, body) = text.strip_prefix('r').map_or((false, text), |body| (true, body));
    let quote = body.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let start = text.len() - body.len() + 1;
    let mut is_escaped = false;
    for (at, letter) in text[start..].char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if !raw => is_escaped = true,
            _ if letter == quote => return Some(&text[..=start + at]),
            _ => {}
        }
    }
    None
}

/// A path with its placeholders, as a check has it.
fn value(file: &str) -> Value {
    let mut pieces = Vec::new();
    let mut rest = file;
    while let Some((before, (cel, after))) =
        rest.split_once("${{ ").and_then(|(before, rest)| Some((before, rest.split_once(" }}")?)))
    {
        pieces.push(Piece::Text(before.to_owned()));
        pieces.push(Piece::Cel(Cel::new(cel, Prec::Atom, Kind::Any)));
        rest = after;
    }
    pieces.push(Piece::Text(rest.to_owned()));
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    Value::joined(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(text: &str) -> String {
        match taken_apart(text) {
            Ok((plain, file)) => format!("{plain} | {}", file.and_then(|file| file.shown()).unwrap_or_default()),
            Err(why) => why.to_owned(),
        }
    }

    #[test]
    fn an_expression_searches_one_text() {
        let rows = [
            (r"file('out.txt').extractsingle(r'a (\S+)', 1) < 2", r"extractsingle(r'a (\S+)', 1) < 2 | out.txt"),
            (
                "max(file('a').extractall('x')) > size(file('a').findall('count(y)'))",
                "max(extractall('x')) > size(findall('count(y)')) | a",
            ),
            ("count('file(\\'a\\').x') == 0", "count('file(\\'a\\').x') == 0 | "),
            ("count('x') + file('a').count('x')", "one expression searches several files, or a file and the output"),
            ("file('a').count('x') + file('b').count('x')", "one expression searches several files, or a file and the output"),
            ("discount('x') + n", "discount('x') + n | "),
        ];
        for (text, expected) in rows {
            assert_eq!(apart(text), expected);
        }
    }

    #[test]
    fn a_path_in_the_stage_folder_may_hold_placeholders() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let cel = |text: &str| Piece::Cel(Cel::new(text, Prec::Atom, Kind::Text));
        let rows = [
            (vec![text("out.txt")], Some("out.txt")),
            (vec![text("./d/out.txt")], Some("d/out.txt")),
            (vec![cel("stagedir"), text("/out_"), cel("n"), text(".txt")], Some("out_${{ n }}.txt")),
            (vec![text("/tmp/x")], None),
            (vec![text("../x")], None),
            (vec![cel("stagedir")], None),
            (vec![cel("fixtures.b.stagedir"), text("/x")], Some("${{ fixtures.b.stagedir }}/x")),
        ];
        for (pieces, expected) in rows {
            assert_eq!(path(&Value::joined(pieces)).as_deref(), expected);
        }
    }
}
