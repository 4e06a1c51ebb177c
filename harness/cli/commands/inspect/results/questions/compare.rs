//! `muster results compare`: two sets of sessions, variable by variable.

use super::{are_placed, filters};
use crate::{
    args::{Cli, CompareArgs, CompareFailOn, OutputFormat, Sample},
    terminal::Terminal,
    wiring::asked::Asked,
};
use muster_core::query::{
    answers::{Compared, ComparedMetric, Difference, Method, SampleUnit, Summary},
    figures::FigureSet,
    pairs::{Pair, pair, sample_unit},
    remarks::RemarkKind,
    spec::Selection,
};
use muster_judge::compare::{self as judge, CompareSettings, PairVerdict};
use muster_report::compared::{self, Sides};
use muster_session::runtime;
use muster_store::Which;

pub fn compare(cli: &Cli, args: &CompareArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let filters = filters(cli, &args.filters)?;
    let (old, new) = (Selection::parse(&args.old)?.and(&filters), Selection::parse(&args.new)?.and(&filters));
    let (old_set, new_set) = runtime::of_question()?.block_on(async {
        let asked = Asked::open(cli, terminal).await?;
        anyhow::Ok((figures(cli, &asked, &old).await?, figures(cli, &asked, &new).await?))
    })?;
    let per = match args.per {
        Some(Sample::Run) => SampleUnit::Run,
        Some(Sample::Night) => SampleUnit::Night,
        None => sample_unit(&old_set, &new_set),
    };
    let compared = judged(pair(&old_set, &new_set, per)?, per);
    let sides = Sides { old: old.to_string(), new: new.to_string(), sessions: (old_set.sessions, new_set.sessions) };
    let text = match args.format {
        OutputFormat::Table => compared::report(&compared, &sides, args.all, &terminal.screen()),
        OutputFormat::Json => compared::json(&compared, &sides)?,
        OutputFormat::Csv => compared::csv(&compared)?,
    };
    terminal.print(&text);
    let has_regressed = compared.rows.iter().any(|row| row.difference == Difference::Regressed);
    Ok(u8::from(args.fail_on == Some(CompareFailOn::Regression) && has_regressed))
}

/// What a side has.
async fn figures(cli: &Cli, asked: &Asked, side: &Selection) -> anyhow::Result<FigureSet> {
    let sessions = asked.sessions(side).await?;
    are_placed(cli, &sessions)?;
    let mut set = asked.reader.figures(&sessions, &side.filters, Which::Measured).await?;
    if set.series.is_empty() {
        asked.are_known(&side.filters).await?;
    }
    set.leave_out(&asked.reader.remarks().await?, |kind| kind == RemarkKind::Maintenance);
    Ok(set)
}

/// The pairs, each with its verdict.
fn judged(pairs: Vec<Pair>, sample: SampleUnit) -> Compared {
    let of_side = |series: &[Vec<f64>], unit: &str| {
        (!series.is_empty()).then(|| judge::Sample { series: series.to_vec(), unit: unit.to_owned() })
    };
    let asked: Vec<judge::Pair> = pairs
        .iter()
        .map(|pair| judge::Pair {
            a: of_side(&pair.old, &pair.unit),
            b: of_side(&pair.new, &pair.unit),
            direction: pair.direction,
        })
        .collect();
    let settings = CompareSettings::default();
    let answer = judge::compare(&asked, settings);
    let method =
        Method { text: answer.method(), error_rate: settings.false_discoveries, min_effect: settings.min_effect, sample };
    let rows = pairs.into_iter().zip(&answer.verdicts).map(|(pair, verdict)| row(pair, verdict)).collect();
    let mut compared = Compared { method, rows };
    compared.sort();
    compared
}

fn row(pair: Pair, verdict: &PairVerdict) -> ComparedMetric {
    let Pair { metric, unit, direction, is_redefined, .. } = pair;
    ComparedMetric {
        metric,
        unit,
        direction,
        old: verdict.a.map(summary),
        new: verdict.b.map(summary),
        difference: difference(verdict.word),
        effect: verdict.effect.map(|shift| shift.estimate),
        is_redefined,
        p: verdict.p,
    }
}

fn summary(of: judge::Summary) -> Summary {
    let judge::Summary { count, median, low, high, spread } = of;
    Summary { count, median, low, high, spread }
}

fn difference(word: judge::Compared) -> Difference {
    match word {
        judge::Compared::Worse => Difference::Regressed,
        judge::Compared::Better => Difference::Improved,
        // Units were converted, or refused before: what is left has no numbers in common.
        judge::Compared::Changed | judge::Compared::MixedUnits => Difference::Changed,
        judge::Compared::Same => Difference::Steady,
        judge::Compared::TooFewSamples => Difference::TooFew,
        judge::Compared::New => Difference::New,
        judge::Compared::Vanished => Difference::Vanished,
    }
}
