//! Lays lines of tokens out as text: blanks between tokens, columns of values and comments.

use super::scan::{Line, Token, TokenKind};

pub(super) fn lay(mut lines: Vec<Line>) -> String {
    place_comments(&mut lines);
    let values = value_columns(&lines);
    let contents: Vec<String> = lines.iter().zip(&values).map(|(line, value)| content(line, *value)).collect();
    let columns = comment_columns(&lines, &contents);
    let mut text = String::new();
    for ((line, content), column) in lines.iter().zip(&contents).zip(&columns) {
        if line.after_gap {
            text.push('\n');
        }
        text += content;
        if let Some(comment) = &line.comment {
            text.extend(std::iter::repeat_n(' ', column - width(content)));
            text += &comment.text;
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
        text += &line.body;
    }
    text
}

/// A comment alone on its line goes with what follows, or with what it is in line with.
fn place_comments(lines: &mut [Line]) {
    for at in (0..lines.len()).rev() {
        let (head, tail) = lines.split_at_mut(at + 1);
        let line = &mut head[at];
        if !line.tokens.is_empty() {
            continue;
        }
        let Some(comment) = &line.comment else { continue };
        let next = tail.iter().find(|line| !line.tokens.is_empty());
        let next = next.map(|next| (next.column, next.indent));
        let open = || next.into_iter().chain(comment.around.iter().copied());
        let exact = open().find(|(old, _)| *old == comment.column);
        let nearest = || open().filter(|(old, _)| *old < comment.column).max_by_key(|(old, _)| *old);
        line.indent = exact.or_else(nearest).or(next).map_or(0, |(_, new)| new);
    }
}

fn width(text: &str) -> usize {
    text.rsplit('\n').next().unwrap_or(text).chars().count()
}

/// The spaces between two tokens.
fn blanks(before: &Token, after: &Token) -> usize {
    use TokenKind as K;
    match (before.kind, after.kind) {
        (K::Open, K::Close) | (_, K::Comma) | (K::Scalar | K::Close, K::BlockColon | K::FlowColon) => 0,
        (K::Open, _) => usize::from(before.text == "{"),
        (_, K::Close) => usize::from(after.text == "}"),
        // An alias or an anchor would swallow a colon.
        _ => 1,
    }
}

/// A line's tokens; `value` is the number of spaces after its first key.
fn content(line: &Line, value: usize) -> String {
    let mut text = if line.tokens.is_empty() { String::new() } else { " ".repeat(line.indent) };
    let key = colon(line);
    for (at, token) in line.tokens.iter().enumerate() {
        if at > 0 {
            let is_value = key.is_some_and(|key| at == key + 1);
            let blanks = if is_value { value } else { blanks(&line.tokens[at - 1], token) };
            text.extend(std::iter::repeat_n(' ', blanks));
        }
        text += &token.text;
    }
    text
}

/// The colon after a line's first key.
fn colon(line: &Line) -> Option<usize> {
    line.tokens.iter().position(|token| token.kind == TokenKind::BlockColon)
}

/// The number of spaces after the first key of each line: one, or as many as keep aligned values aligned.
fn value_columns(lines: &[Line]) -> Vec<usize> {
    // Key and value in their old columns, and where the colon ends in the new layout.
    let point = |line: &Line| {
        let colon = colon(line).filter(|colon| *colon > 0)?;
        let value = line.tokens.get(colon + 1)?;
        let key = Line { indent: line.indent, ..Line::default() };
        let mut end = key.indent;
        for at in 0..=colon {
            let gap = if at == 0 { 0 } else { blanks(&line.tokens[at - 1], &line.tokens[at]) };
            end += gap + line.tokens[at].text.chars().count();
        }
        Some(((line.tokens[colon - 1].column, value.column), end))
    };
    let points: Vec<_> = lines.iter().map(point).collect();
    let mut blanks = vec![1; lines.len()];
    for run in runs(lines, |at| points[at].map(|(columns, _)| columns)) {
        let ends = || run.clone().filter_map(|at| points[at].map(|(_, end)| (at, end)));
        let widest = ends().map(|(_, end)| end).max().unwrap_or(0);
        for (at, end) in ends() {
            blanks[at] = widest + 1 - end;
        }
    }
    blanks
}

/// The column of each line's comment: in line with those that it was in line with.
fn comment_columns(lines: &[Line], contents: &[String]) -> Vec<usize> {
    // A comment below another that ends a line, in its column, continues it.
    let mut trailing: Vec<bool> = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let own_column = |line: &Line| line.comment.as_ref().map(|comment| comment.column);
        let belongs_below =
            || lines[at + 1..].iter().find(|next| !next.tokens.is_empty()).is_some_and(|n| n.column == line.column);
        let continues = at > 0
            && trailing[at - 1]
            && !line.after_gap
            && lines[at - 1].body.is_empty()
            && own_column(&lines[at - 1]) == own_column(line)
            && !belongs_below();
        trailing.push(line.comment.is_some() && (!line.tokens.is_empty() || continues));
    }
    let mut columns: Vec<usize> = lines.iter().map(|line| line.indent).collect();
    let own = |at: usize| lines[at].comment.as_ref().filter(|_| trailing[at]).map(|comment| comment.column);
    for run in runs(lines, own) {
        let with_tokens = || run.clone().filter(|at| !lines[*at].tokens.is_empty());
        let widest = with_tokens().map(|at| width(&contents[at])).max().unwrap_or(0);
        let gap = with_tokens().filter_map(|at| lines[at].comment.as_ref()).map(|comment| comment.gap).min();
        for at in run.clone() {
            columns[at] = widest + gap.unwrap_or(1).max(1);
        }
    }
    columns
}

/// The longest runs of neighbouring lines that agree on something.
fn runs<T: PartialEq>(lines: &[Line], of: impl Fn(usize) -> Option<T>) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = vec![];
    for at in 0..lines.len() {
        let Some(own) = of(at) else { continue };
        let joins = |run: &&mut std::ops::Range<usize>| {
            let before = &lines[at - 1];
            let is_apart = lines[at].after_gap || !before.body.is_empty();
            let is_long = before.tokens.iter().any(|token| token.text.contains('\n'));
            run.end == at && !is_apart && !is_long && of(at - 1).is_some_and(|before| before == own)
        };
        match runs.last_mut().filter(joins) {
            Some(run) => run.end = at + 1,
            None => runs.push(at..at + 1),
        }
    }
    runs
}
