//! `muster results annotate --list` and `alias --list`: what people have said.

use crate::text::{
    style::{Screen, Tone, one_line},
    table::{Column, Layout, left, right},
    time::local,
};
use muster_text::time::{Date, Timestamp};

/// An annotation.
#[derive(Debug, Clone)]
pub struct Said {
    pub number: i64,
    pub kind: &'static str,
    pub from: Date,
    /// `None`: without end.
    pub until: Option<Date>,
    /// The parts of its scope, each with its name: `partition gpu`. Empty: everything.
    pub about: Vec<String>,
    pub author: String,
    pub reason: String,
    pub link: Option<String>,
}

/// A line for each annotation.
pub fn annotations(all: &[Said], screen: &Screen) -> String {
    let row = |said: &Said| {
        let nights = match said.until {
            Some(until) if until == said.from => until.to_string(),
            Some(until) => format!("{} to {until}", said.from),
            None => format!("from {}", said.from),
        };
        let about = if said.about.is_empty() { "everything".to_owned() } else { said.about.join(", ") };
        let link = said.link.as_ref().map(|link| format!(" ({link})")).unwrap_or_default();
        let cells =
            [said.number.to_string(), said.kind.to_owned(), nights, about, said.author.clone(), said.reason.clone() + &link];
        cells.iter().map(|cell| one_line(cell).into_owned()).collect()
    };
    let columns = [right("number"), left("kind"), left("nights"), left("about"), left("by"), left("reason")];
    table(&columns, &all.iter().map(row).collect::<Vec<_>>(), "No annotation is stored\n", screen)
}

/// A line for each alias: its old name, the new one, who gave it and when.
pub fn aliases(all: &[(&str, &str, &str, Timestamp)], screen: &Screen) -> String {
    let row = |(old, new, author, created): &(&str, &str, &str, Timestamp)| {
        let day = local(*created, &screen.zone).get(..10).unwrap_or_default().to_owned();
        [*old, *new, *author, &day].iter().map(|cell| one_line(cell).into_owned()).collect()
    };
    let columns = [left("until then"), left("from then on"), left("by"), left("given")];
    table(&columns, &all.iter().map(row).collect::<Vec<_>>(), "No alias is stored\n", screen)
}

fn table(columns: &[Column], rows: &[Vec<String>], nothing: &str, screen: &Screen) -> String {
    if rows.is_empty() {
        return nothing.to_owned();
    }
    let layout = Layout::new(columns, rows);
    layout.head(screen.paint) + &rows.iter().map(|row| layout.row(row, screen.paint, Tone::Plain)).collect::<String>()
}
