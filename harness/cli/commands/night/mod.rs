//! `muster night`: what changed in a night, per system, with one stated error rate.
//!
//! ```text
//! stored   figures of a system -> judged nights
//! chosen   the night, the system, the metric and the change that a person names
//! ```

mod chosen;
mod stored;

use crate::{
    args::{Cli, FailOn, NightArgs, NightCommand, NightFormat},
    inputs::files::{self, Sites},
    terminal::Terminal,
    wiring::{database, patience},
};
use anyhow::Context;
use chosen::Chosen;
use muster_core::night::NightRules;
use muster_judge::night::{Settings, Word, explain};
use muster_report::night::{self, SystemNight};
use muster_session::runtime;
use muster_store::Reader;
use stored::JudgedSystem;

/// Something is reported that `--fail-on` names.
const EXIT_CHANGED: u8 = 1;
/// Too little was measured to say so.
const EXIT_COVERAGE: u8 = 3;

pub fn night(cli: &Cli, args: &NightArgs, terminal: Terminal) -> anyhow::Result<u8> {
    match &args.what {
        None => verdicts(cli, args, terminal),
        Some(NightCommand::Why { change }) => why(cli, change, terminal),
        Some(NightCommand::Explain { metric, night }) => arithmetic(cli, metric, night.as_deref(), terminal),
    }
}

fn verdicts(cli: &Cli, args: &NightArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let judged = judged(cli, args.night.as_deref(), terminal)?;
    let nights: Vec<SystemNight<'_>> = judged.iter().map(JudgedSystem::shown).collect();
    match args.format {
        NightFormat::Table => terminal.print(&night::report(&nights, &terminal.screen())),
        NightFormat::Json => terminal.print(&night::json(&nights)?),
        NightFormat::Junit => terminal.print(&night::junit(&nights)?),
        NightFormat::Markdown => terminal.print(&night::markdown(&nights)),
    }
    Ok(exit_code(&nights, &args.fail_on))
}

/// 1 goes before 3: what was found is true whatever else was missed.
fn exit_code(nights: &[SystemNight<'_>], fail_on: &[FailOn]) -> u8 {
    let is_any = |holds: &dyn Fn(&SystemNight<'_>) -> bool| nights.iter().any(holds);
    let has = |word: &dyn Fn(Word) -> bool, only_new: bool| {
        is_any(&|night| night.verdicts.verdicts.iter().any(|one| one.is_counted && word(one.word) && (one.is_new || !only_new)))
    };
    let is_change = |word: Word| matches!(word, Word::Regressed | Word::Drifting);
    let failed = |what: &FailOn| match what {
        FailOn::Regression => has(&is_change, true),
        FailOn::Open => has(&is_change, false),
        FailOn::Missing => is_any(&|night| {
            night.absent_since.is_some()
                || night.verdicts.verdicts.iter().any(|verdict| verdict.is_counted && verdict.word == Word::NotMeasured)
        }),
        FailOn::Coverage => false,
    };
    if fail_on.iter().any(failed) {
        return EXIT_CHANGED;
    }
    let is_covered =
        |night: &SystemNight<'_>| night.absent_since.is_none() && night.verdicts.coverage.reaches(night.settings.min_coverage);
    if fail_on.contains(&FailOn::Coverage) && !nights.iter().all(is_covered) { EXIT_COVERAGE } else { 0 }
}

fn why(cli: &Cli, change: &str, terminal: Terminal) -> anyhow::Result<u8> {
    let id = chosen::change(cli, change)?;
    let settings = SiteSettings::read(cli, terminal)?;
    let (judged, facts) = runtime::of_question()?.block_on(async {
        let reader = database::reader_for_question(cli, terminal).await?;
        let systems = chosen::systems(&reader, cli.files.typed_system(), None).await?;
        let mut judged = Vec::new();
        for chosen in systems {
            judged.push(judged_system(&reader, &chosen, &settings, terminal).await?);
        }
        let (place, _) = chosen::place_of(&judged, id)?;
        let facts = match judged.get(place.0).and_then(|system| Some((system.change(place.1, id)?, &system.system))) {
            Some((change, system)) => stored::facts(&reader, &system.name, &system.metrics[place.1].name, change).await?,
            None => Vec::new(),
        };
        anyhow::Ok((judged, facts))
    })?;
    let (place, change) = chosen::place_of(&judged, id)?;
    terminal.print(&night::why(&judged[place.0].shown(), place.1, &change, &facts, &terminal.screen()));
    Ok(0)
}

fn arithmetic(cli: &Cli, metric: &[String], night: Option<&str>, terminal: Terminal) -> anyhow::Result<u8> {
    let judged = judged(cli, night, terminal)?;
    let (system, place) = chosen::metric(cli, &judged, metric)?;
    let of = judged.get(system).context("the system of the metric")?;
    let explanation = explain(&of.system, place, &of.verdicts.family, of.verdicts.night);
    terminal.print(&night::explain(&of.shown(), place, explanation.as_ref(), &terminal.screen()));
    Ok(0)
}

/// The systems that are asked for, judged.
fn judged(cli: &Cli, night: Option<&str>, terminal: Terminal) -> anyhow::Result<Vec<JudgedSystem>> {
    let night = night.map(chosen::night).transpose()?;
    let settings = SiteSettings::read(cli, terminal)?;
    runtime::of_question()?.block_on(async {
        let reader = database::reader_for_question(cli, terminal).await?;
        let mut judged = Vec::new();
        for chosen in chosen::systems(&reader, cli.files.typed_system(), night).await? {
            judged.push(judged_system(&reader, &chosen, &settings, terminal).await?);
        }
        Ok(judged)
    })
}

/// The first call on a long history takes a while.
async fn judged_system(
    reader: &Reader,
    chosen: &Chosen,
    settings: &SiteSettings,
    terminal: Terminal,
) -> anyhow::Result<JudgedSystem> {
    let told = || format!("the figures of {}: the nights that nobody has judged are judged first", chosen.system);
    patience::told(terminal, told, stored::judged(reader, chosen, &settings.of(&chosen.system))).await
}

/// What the site files say of the nights of their systems.
struct SiteSettings(Sites);

impl SiteSettings {
    fn read(cli: &Cli, terminal: Terminal) -> anyhow::Result<Self> {
        files::sound_sites(&cli.files, terminal.color).map(Self)
    }

    fn of(&self, system: &str) -> Settings {
        let NightRules { false_alarms, min_coverage, .. } = self.0.nights_of(system).cloned().unwrap_or_default();
        Settings { false_alarms, min_coverage, ..Settings::default() }
    }
}
