//! `muster results causes`: why the cases of a night failed.

use super::filters;
use crate::{
    args::{CausesArgs, Cli},
    terminal::Terminal,
    wiring::database::Question,
};
use muster_answers::causes as answers;
use muster_core::query::spec::Selection;
use muster_report::causes::{json, report};
use muster_session::runtime;

pub fn causes(cli: &Cli, args: &CausesArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let selection = Selection::parse(args.night.as_deref().unwrap_or("last-night"))?.and(&filters(cli, &args.filters)?);
    let (night, future) = runtime::of_question()?.block_on(async {
        let question = Question::open(cli, terminal).await?;
        let asked = question.asked();
        let night = answers::causes(&asked, &selection).await?;
        let future = if args.night.is_none() { answers::future(&asked).await? } else { None };
        anyhow::Ok((night, future))
    })?;
    if let Some(future) = future {
        terminal.note(&format!("note: {future}"));
    }
    terminal.print(&if args.json { json(&night)? } else { report(&night, args.all, &terminal.screen()) });
    Ok(0)
}
