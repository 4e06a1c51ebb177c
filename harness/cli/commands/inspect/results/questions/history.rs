//! `muster results history`: metrics over time.

use super::filters;
use crate::{
    args::{Cli, HistoryArgs},
    terminal::Terminal,
    wiring::database::Question,
};
use muster_answers::history::{self as answers, MOST, Shown};
use muster_core::{case::matcher::Matcher, query::spec::Selection};
use muster_report::history::{self, CHARTS};
use muster_session::runtime;

pub fn history(cli: &Cli, args: &HistoryArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let mut filters = filters(cli, &args.filters)?;
    filters.cases.push(Matcher::parse(&args.case, false).map_err(anyhow::Error::msg)?);
    let shown = Shown { case: &args.case, filters, variables: args.var.as_slice() };
    let selection = Selection::parse(args.period.as_deref().unwrap_or("now-365d:now"))?;
    let histories = runtime::of_question()?.block_on(async {
        let question = Question::open(cli, terminal).await?;
        anyhow::Ok(answers::history(&question.asked(), shown, &selection).await?)
    })?;
    if args.json {
        terminal.print(&history::json(&histories)?);
    } else {
        terminal.print(&history::report(&histories, terminal.unicode, &terminal.screen()));
        if histories.len() > CHARTS && histories.len() == MOST {
            terminal.note(&format!("note: only the first {MOST} variables are shown: choose some by name, --var or --system"));
        }
    }
    Ok(0)
}
