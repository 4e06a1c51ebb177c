//! `muster results suggest-references`: references from stored figures.

use super::{are_placed, filters};
use crate::{
    args::{Cli, SuggestArgs},
    inputs,
    terminal::{Terminal, unwritten::Written},
    wiring::asked::Asked,
};
use anyhow::{Context, ensure};
use muster_core::{
    case::matcher::Matcher,
    query::{
        answers::Suggestion,
        figures::{FigureSet, Run, Series},
        remarks::RemarkKind,
        spec::Selection,
    },
};
use muster_host::{files, replace};
use muster_judge::suggest::{SuggestSettings, suggest as suggested_reference};
use muster_report::suggested::{self, Basis, HEAD};
use muster_session::runtime;
use muster_store::{Parameters, Which};
use std::{collections::BTreeMap, path::Path};

pub fn suggest(cli: &Cli, args: &SuggestArgs, terminal: Terminal) -> anyhow::Result<u8> {
    ensure!(args.lower < args.upper, "the lower percentile ({}) is not below the upper one ({})", args.lower, args.upper);
    if let Some(path) = &args.write {
        may_write(path)?;
    }
    let mut filters = filters(cli, &args.filters)?;
    for name in &args.cases {
        filters.cases.push(Matcher::parse(name, false).map_err(anyhow::Error::msg)?);
    }
    let selection = Selection::parse(&args.period)?.and(&filters);
    let (set, parameters) = runtime::of_question()?.block_on(async {
        let asked = Asked::open(cli, terminal).await?;
        let sessions = asked.sessions(&selection).await?;
        are_placed(&sessions)?;
        let mut set = asked.reader.figures(&sessions, &selection.filters, Which::Passed).await?;
        if set.series.is_empty() {
            asked.are_known(&selection.filters).await?;
        }
        set.leave_out(&asked.reader.remarks().await?, RemarkKind::is_about_a_fault);
        let parameters = asked.reader.parameters(&sessions).await?;
        anyhow::Ok((set, parameters))
    })?;
    let settings = SuggestSettings { lower: args.lower, upper: args.upper, min_runs: args.min_runs };
    let suggestions = suggestions(&set, &parameters, settings);
    ensure!(!suggestions.is_empty(), "no case in `{selection}` that passed has a figure");
    let basis = Basis { period: selection.to_string(), lower: args.lower, upper: args.upper };
    let yaml = suggested::yaml(&suggestions, &basis);
    terminal.note(suggested::refused(&suggestions, &terminal.screen()).trim_end());
    let most = suggestions.iter().map(|suggestion| suggestion.count).max().unwrap_or_default();
    ensure!(!yaml.is_empty(), "no variable has enough runs: choose a longer --period{}", enough_for(most));
    match &args.write {
        None => terminal.print(&yaml),
        Some(path) => {
            files::write(path, &yaml).or_unwritten("the file", path)?;
            terminal.note(&format!(
                "wrote {}: a check reads its part with `reference: {}#CHECK`",
                path.display(),
                path.display()
            ));
        }
    }
    Ok(0)
}

/// The percentiles for which so many runs are enough: N and 100 - N need 100 / N runs.
fn enough_for(runs: usize) -> String {
    match 100_usize.div_ceil(runs.max(1)) {
        lower @ ..50 => format!(", or `--lower {lower} --upper {} --min-runs {runs}`", 100 - lower),
        _ => String::new(),
    }
}

/// A file of suggestions may be written again, no other one.
fn may_write(path: &Path) -> anyhow::Result<()> {
    replace::regular(path).with_context(|| format!("{} cannot be written", path.display()))?;
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

fn suggestions(set: &FigureSet, parameters: &BTreeMap<String, Parameters>, settings: SuggestSettings) -> Vec<Suggestion> {
    let of_series = |series: &Series| {
        let last = set.bases.get(series.runs.last()?.basis)?;
        // Figures of another check or unit are no figures of this one.
        let is_of_it = |run: &&Run| set.bases.get(run.basis).is_some_and(|basis| basis.agrees_with(last));
        let values: Vec<f64> = series.runs.iter().filter(is_of_it).map(|run| run.value).collect();
        let (check, parameters) =
            parameters.get(&series.metric.case).cloned().unwrap_or_else(|| (series.metric.case.clone(), Vec::new()));
        Some(Suggestion {
            metric: series.metric.clone(),
            check,
            parameters,
            unit: last.unit.clone(),
            count: values.len(),
            reference: suggested_reference(&values, series.direction, settings),
        })
    };
    let mut all: Vec<Suggestion> = set.series.values().filter_map(of_series).collect();
    all.sort_by(|a, b| a.metric.cmp(&b.metric));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentiles_that_are_named_do() {
        assert_eq!(enough_for(5), ", or `--lower 20 --upper 80 --min-runs 5`");
        assert_eq!((enough_for(0), enough_for(2)), (String::new(), String::new()));
        for runs in 3..40_usize {
            let lower = u8::try_from(100_usize.div_ceil(runs)).unwrap();
            let settings = SuggestSettings { lower, upper: 100 - lower, min_runs: runs };
            assert!(suggested_reference(&vec![1.0; runs], None, settings).is_ok(), "{runs}");
        }
    }
}
