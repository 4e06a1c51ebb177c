//! `muster results compare`: two sets of sessions, variable by variable.

use super::filters;
use crate::{
    args::{Cli, CompareArgs, CompareFailOn, OutputFormat, Sample},
    terminal::Terminal,
    wiring::database::Question,
};
use muster_answers::compare as answers;
use muster_core::query::{
    answers::{Difference, SampleUnit},
    spec::Selection,
};
use muster_report::compared;
use muster_session::runtime;

pub fn compare(cli: &Cli, args: &CompareArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let filters = filters(cli, &args.filters)?;
    let (old, new) = (Selection::parse(&args.old)?.and(&filters), Selection::parse(&args.new)?.and(&filters));
    let per = args.per.map(|per| match per {
        Sample::Run => SampleUnit::Run,
        Sample::Night => SampleUnit::Night,
    });
    let (compared, sides) = runtime::of_question()?.block_on(async {
        let question = Question::open(cli, terminal).await?;
        anyhow::Ok(answers::compare(&question.asked(), &old, &new, per).await?)
    })?;
    let text = match args.format {
        OutputFormat::Table => compared::report(&compared, &sides, args.all, &terminal.screen()),
        OutputFormat::Json => compared::json(&compared, &sides)?,
        OutputFormat::Csv => compared::csv(&compared)?,
    };
    terminal.print(&text);
    let has_regressed = compared.rows.iter().any(|row| row.difference == Difference::Regressed);
    Ok(u8::from(args.fail_on == Some(CompareFailOn::Regression) && has_regressed))
}
