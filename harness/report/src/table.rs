//! Tables that fit: columns, alignment, one wrapping column. Colours are put in afterwards: the table crate would ask
//! the environment about them.

use crate::style::{Paint, Tone};
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width};

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) align: CellAlignment,
}

pub(crate) const fn left(title: &'static str) -> Column {
    Column { title, align: CellAlignment::Left }
}

pub(crate) const fn right(title: &'static str) -> Column {
    Column { title, align: CellAlignment::Right }
}

/// One blank on each side of a cell.
const PADDING: usize = 2;
/// The wrapping column keeps at least this.
const LEAST: usize = 12;

/// Columns and how wide they are.
pub(crate) struct Layout {
    columns: Vec<Column>,
    widths: Vec<usize>,
}

impl Layout {
    /// As wide as the longest cell of each column.
    pub(crate) fn new(columns: &[Column], rows: &[Vec<String>]) -> Self {
        let mut table = Table::new();
        table.set_header(columns.iter().map(|column| column.title).collect::<Vec<_>>());
        table.add_rows(rows.iter().cloned());
        let widths = table.column_max_content_widths().into_iter().map(usize::from).collect();
        Self { columns: columns.to_vec(), widths }
    }

    /// Columns on the screen.
    pub(crate) fn width(&self) -> usize {
        self.widths.iter().map(|width| width + PADDING).sum()
    }

    /// Makes one column narrower until the whole is not wider than `width`; its cells are then wrapped.
    pub(crate) fn fit(&mut self, column: usize, width: usize) {
        let excess = self.width().saturating_sub(width);
        if let Some(own) = self.widths.get_mut(column) {
            *own = own.saturating_sub(excess).max(LEAST.min(*own));
        }
    }

    /// A line of the table's width.
    pub(crate) fn rule(&self) -> String {
        "─".repeat(self.width()) + "\n"
    }

    /// The titles.
    pub(crate) fn titles(&self, paint: Paint) -> String {
        let titles = self.columns.iter().map(|column| column.title.to_owned()).collect();
        self.lines(&[titles]).map(|line| paint.apply(Tone::Strong, line.trim_end()) + "\n").collect()
    }

    /// The rows; `tone` says how to colour the word in the last column.
    pub(crate) fn rows(&self, rows: &[Vec<String>], paint: Paint, tone: impl Fn(&str) -> Tone) -> String {
        let last = self.widths.last().map_or(0, |width| width + PADDING);
        let painted = |line: String| {
            // A wrapped row's further lines are blank here, and no word of ours is wider than its column.
            let at = line.char_indices().rev().nth(last.saturating_sub(1)).map_or(0, |(at, _)| at);
            let (cells, word) = line.split_at(at);
            match word.trim() {
                "" => cells.trim_end().to_owned() + "\n",
                word => format!("{cells} {}\n", paint.apply(tone(word), word)),
            }
        };
        self.lines(rows).map(painted).collect()
    }

    fn lines(&self, rows: &[Vec<String>]) -> impl Iterator<Item = String> {
        let mut table = Table::new();
        // No line between the columns: the padding is the gap.
        table.load_style(TableStyle::new().row_separator(LineStyle::none()));
        table.set_content_arrangement(ContentArrangement::Disabled);
        for row in rows {
            let aligned = row.iter().zip(&self.columns).map(|(cell, column)| Cell::new(cell).set_alignment(column.align));
            table.add_row(aligned.collect::<Vec<_>>());
        }
        for (column, width) in table.column_iter_mut().zip(&self.widths) {
            let width = u16::try_from(width + PADDING).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
        }
        table.lines().collect::<Vec<_>>().into_iter()
    }
}
