//! `muster results suggest-references`: references from stored figures.

use super::{are_placed, are_variables, filters, is_variable};
use crate::{
    args::{Cli, SuggestArgs, is_dash},
    inputs,
    settings::on_this_database,
    terminal::{Terminal, unwritten::Written},
    wiring::asked::Asked,
};
use anyhow::{Context, ensure};
use muster_core::{
    case::matcher::Matcher,
    query::{
        answers::Suggestion,
        figures::{FigureSet, NightNumber, Run, Series},
        remarks::{Remark, RemarkKind},
        spec::Selection,
    },
};
use muster_host::replace::{regular, replace_shared};
use muster_judge::{
    night::{Change, Night, Settings},
    suggest::{SuggestSettings, other_levels, suggest as suggested_reference},
};
use muster_report::suggested::{self, Basis, HEAD};
use muster_session::runtime;
use muster_store::{Parameters, Which};
use muster_text::{shell, time::Date};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
};

pub fn suggest(cli: &Cli, args: &SuggestArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let write = args.write.as_deref().filter(|path| !is_dash(path));
    if let Some(path) = write {
        may_write(path)?;
    }
    let mut filters = filters(cli, &args.filters)?;
    for name in &args.cases {
        filters.cases.push(Matcher::parse(name, false).map_err(anyhow::Error::msg)?);
    }
    let selection = Selection::parse(&args.period)?.and(&filters);
    let (set, known) = runtime::of_question()?.block_on(async {
        let asked = Asked::open(cli, terminal).await?;
        let sessions = asked.sessions(&selection).await?;
        are_placed(cli, &sessions)?;
        let mut set = asked.reader.figures(&sessions, &selection.filters, Which::Passed).await?;
        if set.series.is_empty() {
            asked.are_known(&selection.filters).await?;
        }
        ensure!(!set.series.is_empty(), "no case in `{selection}` that passed has a figure");
        are_variables(&selection.to_string(), &args.var, set.series.values().map(|series| &series.metric))?;
        set.series.retain(|_, series| is_variable(&series.metric, &args.var));
        let (parameters, remarks) = (asked.reader.parameters(&sessions).await?, asked.reader.remarks().await?);
        let mut known = Known { parameters, remarks, ..Known::default() };
        for system in set.series.values().map(|series| &series.metric.system).collect::<BTreeSet<_>>() {
            known.changes.extend(asked.reader.changes_before(system, Night(i32::MAX)).await?);
            let judged = asked.reader.judged(system).await?.until.map_or(i64::MIN, |until| i64::from(until.0));
            let mut runs = set.series.values().filter(|series| series.metric.system == *system).flat_map(|series| &series.runs);
            if runs.any(|run| judged < run.night) {
                known.notes.push(unjudged(cli, system));
            }
        }
        anyhow::Ok((set, known))
    })?;
    let settings = SuggestSettings { lower: args.lower, upper: args.upper, min_runs: args.min_runs };
    let suggestions = suggestions(&set, &known, settings);
    let yaml = suggested::yaml(&suggestions, &Basis { period: selection.to_string(), lower: args.lower, upper: args.upper });
    terminal.note(known.notes.join("\n").trim_end());
    terminal.note(suggested::refused(&suggestions, &terminal.screen()).trim_end());
    let others = if args.lower.or(args.upper).is_some() { ", or leave out --lower and --upper" } else { "" };
    ensure!(!yaml.is_empty(), "there is no reference to suggest: run more, or choose a longer --period{others}");
    match write {
        None => terminal.print(&yaml),
        Some(path) => {
            let text = yaml + &suggested::comments(&suggestions);
            replace_shared(path, ".part", text).or_unwritten("the file", path)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let keys = suggested::keys(&suggestions, &name).join("\n");
            terminal.note(&format!("wrote {}: a check file in the same folder reads its part with\n{keys}", path.display()));
        }
    }
    Ok(0)
}

/// What is known beside the figures.
#[derive(Default)]
struct Known {
    parameters: BTreeMap<String, Parameters>,
    remarks: Vec<Remark>,
    /// By the number of the metric.
    changes: HashMap<i64, Vec<Change>>,
    notes: Vec<String>,
}

fn unjudged(cli: &Cli, system: &str) -> String {
    let command = on_this_database(cli, &format!("night --system {}", shell::quote(system)));
    format!("note: not all of these nights of `{system}` are judged, and a regression in them counts: `{command}` judges them")
}

/// A file of suggestions may be written again, no other one.
fn may_write(path: &Path) -> anyhow::Result<()> {
    let is_named = path.file_name().is_some_and(|name| name.to_string_lossy().contains('#'));
    ensure!(!is_named, "{}: a check reads `#` as the end of a file name: choose another name", path.display());
    regular(path).with_context(|| format!("{} cannot be written", path.display()))?;
    match inputs::files::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
        Ok(text) => {
            ensure!(
                text.starts_with(HEAD),
                "{} is there already, and was not written by this command: choose another file",
                path.display()
            );
            Ok(())
        }
    }
}

fn suggestions(set: &FigureSet, known: &Known, settings: SuggestSettings) -> Vec<Suggestion> {
    let of_series = |(id, series): (&i64, &Series)| {
        let remarks: Vec<&Remark> = known.remarks.iter().filter(|remark| remark.is_about(&series.metric)).collect();
        let is_said = |kind, night: NightNumber| remarks.iter().any(|remark| remark.kind == kind && remark.covers(night));
        // What was dismissed ends with its change.
        let faults = [RemarkKind::Maintenance, RemarkKind::Known];
        let is_sound = |run: &&Run| !faults.iter().any(|kind| is_said(*kind, run.night));
        let last = set.bases.get(series.runs.iter().rfind(is_sound).or(series.runs.last())?.basis)?;
        // Figures of another check or unit are no figures of this one.
        let is_of_it = |run: &&Run| set.bases.get(run.basis).is_some_and(|basis| basis.agrees_with(last));
        let mut runs: Vec<Run> = series.runs.iter().filter(is_of_it).filter(|run| run.value.is_finite()).copied().collect();
        let said = faults.map(|kind| leave_out(&mut runs, kind.as_str(), |night| is_said(kind, night)));
        let changes = known.changes.get(id).map_or(&[][..], Vec::as_slice);
        let min_effect = series.min_effect.unwrap_or(Settings::default().min_effect);
        let found = other_levels(changes, series.direction, min_effect).into_iter().filter_map(|(word, change, nights)| {
            let nights = i64::from(nights.start().0)..=i64::from(nights.end().0);
            leave_out(&mut runs, &format!("{word} ({change})"), |night| nights.contains(&night))
        });
        let left_out = said.into_iter().flatten().chain(found).collect();
        let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
        let parameters = known.parameters.get(&series.metric.case).cloned();
        let (check, parameters) = parameters.unwrap_or_else(|| (series.metric.case.clone(), Vec::new()));
        Some(Suggestion {
            metric: series.metric.clone(),
            check,
            parameters,
            unit: last.unit.clone(),
            count: values.len(),
            nights: runs.iter().map(|run| run.night).collect::<BTreeSet<_>>().len(),
            left_out,
            reference: suggested_reference(&values, series.direction, settings),
        })
    };
    let mut all: Vec<Suggestion> = set.series.iter().filter_map(of_series).collect();
    all.sort_by(|a, b| a.metric.cmp(&b.metric));
    all
}

/// Leaves out the runs of some nights, and says which.
fn leave_out(runs: &mut Vec<Run>, why: &str, is_meant: impl Fn(NightNumber) -> bool) -> Option<String> {
    let (out, others): (Vec<Run>, Vec<Run>) = runs.iter().copied().partition(|run| is_meant(run.night));
    *runs = others;
    let [first, last] = [out.first()?, out.last()?].map(|run| Date::of_days(run.night));
    Some(format!("left out, {why}: {} run(s) of {first}..{last}", out.len()))
}
