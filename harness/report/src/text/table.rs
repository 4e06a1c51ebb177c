//! Tables: columns of their content's width, two blanks between them, at most one column that wraps.
//!
//! Small enough to be ours: the table crates colour through the environment (`NO_COLOR`), break labels within words
//! and cannot put a heading between rows.

use crate::text::style::{Paint, Tone};
use std::{borrow::Cow, iter};
use unicode_width::UnicodeWidthStr;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    is_right: bool,
}

/// A column of words.
pub(crate) const fn left(title: &'static str) -> Column {
    Column { title, is_right: false }
}

/// A column of numbers.
pub(crate) const fn right(title: &'static str) -> Column {
    Column { title, is_right: true }
}

/// Between two columns.
const GAP: usize = 2;
/// The wrapping column keeps at least this.
const LEAST: usize = 12;

/// Columns and how wide they are.
pub(crate) struct Layout {
    /// Each title, and whether its cells are numbers.
    columns: Vec<(Cow<'static, str>, bool)>,
    widths: Vec<usize>,
}

impl Layout {
    /// As wide as the longest cell of each column.
    pub(crate) fn new(columns: &[Column], rows: &[Vec<String>]) -> Self {
        Self::titled(columns.iter().map(|column| (column.title.into(), column.is_right)).collect(), rows)
    }

    /// The same with titles that a question chooses; `true`: a column of numbers.
    pub(crate) fn titled(columns: Vec<(Cow<'static, str>, bool)>, rows: &[Vec<String>]) -> Self {
        let mut widths: Vec<_> = columns.iter().map(|(title, _)| title.width()).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        Self { columns, widths }
    }

    pub(crate) fn width(&self) -> usize {
        self.widths.iter().sum::<usize>() + GAP * self.widths.len().saturating_sub(1)
    }

    /// Makes the first column narrower until the whole is not wider than `width`; its cells are then wrapped.
    pub(crate) fn fit(&mut self, width: usize) {
        let excess = self.width().saturating_sub(width);
        if let Some(first) = self.widths.first_mut() {
            *first = first.saturating_sub(excess).max(LEAST.min(*first));
        }
    }

    pub(crate) fn head(&self, paint: Paint) -> String {
        format!("{}\n{}", paint.apply(Tone::Strong, self.line(&self.titles())), self.rule())
    }

    /// The titles over a line in ASCII, with gaps.
    pub(crate) fn plain_head(&self) -> String {
        let rules: Vec<_> = self.widths.iter().map(|width| "-".repeat(*width)).collect();
        let rules: Vec<_> = rules.iter().map(String::as_str).collect();
        format!("{}\n{}\n", self.line(&self.titles()), self.line(&rules))
    }

    fn titles(&self) -> Vec<&str> {
        self.columns.iter().map(|(title, _)| &**title).collect()
    }

    /// A line of the table's width.
    pub(crate) fn rule(&self) -> String {
        "─".repeat(self.width()) + "\n"
    }

    /// A row, over several lines if its first cell has to be wrapped; `tone` colours its last cell.
    pub(crate) fn row(&self, cells: &[String], paint: Paint, tone: Tone) -> String {
        let Some((first, others)) = cells.split_first() else { return String::new() };
        let mut wrapped = wrapped(first, self.widths.first().copied().unwrap_or_default()).into_iter();
        let first = wrapped.next().unwrap_or_default();
        let cells: Vec<_> = iter::once(first.as_str()).chain(others.iter().map(String::as_str)).collect();
        let line = self.line(&cells);
        // The last column begins a line's last word: nothing follows it.
        let last = cells.last().copied().unwrap_or_default();
        let line = match line.strip_suffix(last) {
            Some(before) if !last.is_empty() => format!("{before}{}\n", paint.apply(tone, last)),
            _ => line + "\n",
        };
        iter::once(line).chain(wrapped.map(|line| line + "\n")).collect()
    }

    fn line(&self, cells: &[&str]) -> String {
        let mut line = String::new();
        for ((cell, &width), (_, is_right)) in cells.iter().zip(&self.widths).zip(&self.columns) {
            if !line.is_empty() {
                line.extend(iter::repeat_n(' ', GAP));
            }
            let blanks = iter::repeat_n(' ', width.saturating_sub(cell.width()));
            if *is_right {
                line.extend(blanks);
                line.push_str(cell);
            } else {
                line.push_str(cell);
                line.extend(blanks);
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// A cell's lines: broken between words if need be, and within a word that is longer than a line. Further lines are
/// indented a little more than the first.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    if text.width() <= width {
        return vec![text.to_owned()];
    }
    let indent = " ".repeat(text.len() - text.trim_start().len());
    let mut lines = vec![indent.clone()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().map_or(0, |line| line.width() + usize::from(!line.trim().is_empty()));
        if line + word.width() > width && line > indent.len() {
            lines.push(format!("{indent}  "));
        } else if let Some(line) = lines.last_mut().filter(|line| !line.trim().is_empty()) {
            line.push(' ');
        }
        for c in word.chars() {
            if lines.last().is_some_and(|line| line.width() >= width) {
                lines.push(format!("{indent}  "));
            }
            if let Some(line) = lines.last_mut() {
                line.push(c);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_cell_is_broken_between_words_first() {
        let rows: [(&str, &[&str]); 5] = [
            ("short", &["short"]),
            ("node_flops gpu-1", &["node_flops", "  gpu-1"]),
            ("  latency[8] cpu-1", &["  latency[8]", "    cpu-1"]),
            ("abcdefghijklmnop", &["abcdefghijkl", "  mnop"]),
            ("a b c d e f g h", &["a b c d e f", "  g h"]),
        ];
        for (text, lines) in rows {
            assert_eq!(wrapped(text, 12), lines, "{text}");
        }
    }

    #[test]
    fn columns_line_up_whatever_their_script() {
        let rows = ["é", "名前", "plain"].map(|name| vec![name.to_owned(), "1".to_owned(), "ok".to_owned()]);
        let layout = Layout::new(&[left("name"), right("n"), left("result")], &rows);
        let lines = rows.map(|row| layout.row(&row, Paint::OFF, Tone::Plain));
        assert_eq!(lines, ["é      1  ok\n", "名前   1  ok\n", "plain  1  ok\n"]);
    }
}
