//! `muster results export`: stored sessions for other programs.

use super::filters;
use crate::{
    args::{Cli, ExportArgs, ExportFormat},
    terminal::Terminal,
    wiring::database::Question,
};
use anyhow::bail;
use muster_core::query::spec::Selection;
use muster_report::{
    Results, json,
    performance::{self, Format},
};
use muster_session::runtime;

pub fn export(cli: &Cli, args: &ExportArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let selection = Selection::parse(args.selection.as_deref().unwrap_or_default())?.and(&filters(cli, &args.filters)?);
    export_some(cli, &selection, args.format, terminal)
}

/// `--describe-stored-sessions`
pub fn export_json(cli: &Cli, selection: &Selection, terminal: Terminal) -> anyhow::Result<u8> {
    export_some(cli, selection, ExportFormat::Json, terminal)
}

fn export_some(cli: &Cli, selection: &Selection, format: ExportFormat, terminal: Terminal) -> anyhow::Result<u8> {
    runtime::of_question()?.block_on(async {
        let question = Question::open(cli, terminal).await?;
        let (reader, asked) = (&question.reader, question.asked());
        let mut sessions = asked.sessions(selection).await?;
        sessions.reverse();
        let names = reader.names().await?;
        let mut number = 0;
        for one in &sessions {
            // One session at a time: all of them may not fit into memory.
            let mut cases = reader.results(&one.session.id).await?;
            cases.retain(|case| names.are_admitted(&selection.filters, &case.name, &case.about.tags));
            if cases.is_empty() && !selection.filters.is_empty() {
                continue;
            }
            let results = Results::new(&one.session, &cases);
            match format {
                ExportFormat::Csv => {
                    let table = performance::report(&results, Format::Csv, &terminal.screen())?;
                    let head = table.find('\n').map_or(table.len(), |end| end + 1);
                    terminal.print(if number == 0 { &table } else { &table[head..] });
                }
                ExportFormat::Json => {
                    terminal.print(if number == 0 { "[\n" } else { ",\n" });
                    terminal.print(json::report(&results, None)?.trim_end());
                }
            }
            number += 1;
        }
        if number == 0 {
            asked.are_known(&selection.filters).await?;
            bail!("no case in `{selection}` passes these filters");
        }
        if format == ExportFormat::Json {
            terminal.print("\n]\n");
        }
        Ok(0)
    })
}
