//! `muster night`: what changed in a night, per system, with one stated error rate.

use crate::{
    args::{Cli, FailOn, NightArgs, NightCommand, NightFormat},
    inputs::files::{self, Sites},
    settings::Places,
    terminal::Terminal,
    wiring::{database, patience},
};
use muster_answers::nights::{self, Chosen, JudgedNight};
use muster_core::night::NightRules;
use muster_host::clock;
use muster_judge::night::{Night, Settings, Word, explain};
use muster_report::night::{self, SystemNight};
use muster_session::runtime;
use muster_store::Reader;

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
    let nights: Vec<SystemNight<'_>> = judged.iter().map(shown).collect();
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
    let id = nights::change(&Places::of(cli).database, change)?;
    let (judged, facts) = judged_and(cli, None, terminal, async |reader, judged| {
        let (place, change) = nights::place_of(judged, id)?;
        let system = judged[place.night].system();
        Ok(nights::why(reader, &system.name, &system.metrics[place.metric].name, change).await?)
    })?;
    let (place, change) = nights::place_of(&judged, id)?;
    terminal.print(&night::why(&shown(&judged[place.night]), place.metric, change, &facts, &terminal.screen()));
    Ok(0)
}

fn arithmetic(cli: &Cli, metric: &[String], night: Option<&str>, terminal: Terminal) -> anyhow::Result<u8> {
    let judged = judged(cli, night, terminal)?;
    let place = nights::metric(&Places::of(cli).database, &judged, metric)?;
    let of = &judged[place.night];
    let explanation = explain(of.system(), place.metric, &of.verdicts.family, of.verdicts.night);
    terminal.print(&night::explain(&shown(of), place.metric, explanation.as_ref(), &terminal.screen()));
    Ok(0)
}

fn judged(cli: &Cli, night: Option<&str>, terminal: Terminal) -> anyhow::Result<Vec<JudgedNight>> {
    Ok(judged_and(cli, night, terminal, async |_, _| Ok(()))?.0)
}

/// Judges the systems that are asked for, stores what was found, and asks the same database for more.
fn judged_and<T>(
    cli: &Cli,
    night: Option<&str>,
    terminal: Terminal,
    more: impl AsyncFnOnce(&Reader, &[JudgedNight]) -> anyhow::Result<T>,
) -> anyhow::Result<(Vec<JudgedNight>, T)> {
    let night = night.map(Night::parse).transpose().map_err(anyhow::Error::msg)?;
    let settings = SiteSettings::read(cli, terminal)?;
    let (system, partition) = cli.files.typed_system().map_or((None, None), |typed| match typed.split_once(':') {
        Some((system, partition)) => (Some(system), Some(partition)),
        None => (Some(typed), None),
    });
    runtime::of_question()?.block_on(async {
        let reader = database::reader_for_question(cli, terminal).await?;
        let mut all = Vec::new();
        for chosen in nights::systems(&reader, clock::now(), system, night).await? {
            // The first call on a long history takes a while.
            let told = || format!("the figures of {}: the nights that nobody has judged are judged first", chosen.system);
            let judging = judged_system(&reader, &chosen, settings.of(&chosen.system), partition);
            all.push(patience::told(terminal, told, judging).await?);
        }
        let more = more(&reader, &all).await?;
        Ok((all, more))
    })
}

async fn judged_system(
    reader: &Reader,
    chosen: &Chosen,
    settings: Settings,
    partition: Option<&str>,
) -> anyhow::Result<JudgedNight> {
    let mut judged = nights::judged(reader, chosen, &settings).await?;
    if let Err(error) = nights::keep(reader, &judged).await {
        let error = anyhow::Error::new(error);
        judged.notes.push(format!("what was found is not stored, so its nights are judged again: {error:#}"));
    }
    judged.notes.extend(chosen.future.map(nights::in_the_future));
    if let Some(partition) = partition {
        judged.only(partition)?;
    }
    Ok(judged)
}

fn shown(night: &JudgedNight) -> SystemNight<'_> {
    let JudgedNight { verdicts, settings, absent_since, notes, .. } = night;
    SystemNight { system: night.system(), verdicts, settings, absent_since: *absent_since, notes }
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
