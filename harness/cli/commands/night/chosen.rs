//! What a person names: a night, a system, a metric, a change. What does not exist is a sentence with the nearest name.

use super::stored::JudgedSystem;
use crate::{args::Cli, settings::on_this_database};
use anyhow::{bail, ensure};
use muster_host::clock;
use muster_judge::night::{Change, ChangeId, Metric, Night};
use muster_store::{Reader, StoredNights};
use muster_text::{diagnostic::nearest, time::Date};

/// So many names are listed.
const LISTED: usize = 8;

/// `2026-11-17`
pub(super) fn night(text: &str) -> anyhow::Result<Night> {
    Date::parse(text).map(Night::of).map_err(anyhow::Error::msg)
}

/// `17@2026-11-17`
pub(super) fn change(cli: &Cli, text: &str) -> anyhow::Result<ChangeId> {
    match ChangeId::parse(text) {
        Some(id) => Ok(id),
        None => bail!("`{text}` is not a change: `{}` names them, as in 17@2026-11-17", on_this_database(cli, "night")),
    }
}

/// A system, and the night that is judged.
pub(super) struct Chosen {
    pub(super) system: String,
    pub(super) night: Night,
    /// The last night in which it had a session, if that is an earlier one.
    pub(super) absent_since: Option<Night>,
    /// A night that has not begun, and has a session all the same.
    pub(super) future: Option<Night>,
    /// Only this partition is shown.
    pub(super) partition: Option<String>,
}

/// The systems that are asked for, each with the night that is judged. Tonight is the last night of any system: one that had no
/// session in it is judged for it, too.
pub(super) async fn systems(reader: &Reader, system: Option<&str>, night: Option<Night>) -> anyhow::Result<Vec<Chosen>> {
    let stored = reader.nights(clock::now()).await?;
    ensure!(
        !stored.is_empty(),
        "no night is stored in {}: run checks with `muster -r`; `muster results rebuild{}` places what an older muster has stored",
        reader.database().display(),
        reader.database().clone().absolute().flag()
    );
    let wanted = of_system(&stored, system)?;
    let tonight = stored.iter().map(|nights| nights.last).max().unwrap_or_default();
    let partition = system.and_then(|system| system.split_once(':')).map(|(_, partition)| partition.to_owned());
    let at = night.unwrap_or(tonight);
    let mut found = Vec::new();
    for StoredNights { system, first, last, future } in wanted.iter().copied().cloned() {
        let latest = last.max(future.unwrap_or(last)).max(tonight);
        if night.is_some() && !(first..=latest).contains(&at) {
            continue;
        }
        // Later sessions say nothing of a night: a system that had none in it was absent, also when it is back.
        let until_then = reader.nights_between(&system, first, at).await?.last().copied();
        let absent_since = until_then.filter(|last| *last < at);
        let future = future.filter(|future| *future != at);
        found.push(Chosen { system, night: at, absent_since, future, partition: partition.clone() });
    }
    if let (true, Some(night)) = (found.is_empty(), night) {
        let first = wanted.iter().map(|nights| nights.first).min().unwrap_or(night);
        let last = wanted.iter().map(|nights| nights.last).max().unwrap_or(night);
        bail!("the night of {night} is not stored: there are nights from {first} to {last}");
    }
    Ok(found)
}

/// `--system` names one, perhaps with a partition.
fn of_system<'a>(stored: &'a [StoredNights], system: Option<&str>) -> anyhow::Result<Vec<&'a StoredNights>> {
    let Some(system) = system else { return Ok(stored.iter().collect()) };
    let system = system.split(':').next().unwrap_or_default();
    let found: Vec<_> = stored.iter().filter(|nights| nights.system == system).collect();
    if found.is_empty() {
        let names = || stored.iter().map(|nights| nights.system.as_str());
        let near = nearest(system, names()).map_or_else(
            || format!("there are {}", names().take(LISTED).collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        bail!("no night of the system `{system}` is stored; {near}");
    }
    Ok(found)
}

/// The system and the place of the metric that words describe: its number, or words that all stand in its name.
pub(super) fn metric(cli: &Cli, judged: &[JudgedSystem], words: &[String]) -> anyhow::Result<(usize, usize)> {
    let all =
        || judged.iter().enumerate().flat_map(|(system, of)| (0..of.system.metrics.len()).map(move |place| (system, place)));
    let name = |(system, place): (usize, usize)| name(&judged[system], &judged[system].system.metrics[place]);
    if let [word] = words
        && let Ok(number) = word.parse::<i64>()
    {
        let found = all().find(|(system, place)| judged[*system].system.metrics[*place].id == number);
        let all = || on_this_database(cli, "night --format json");
        return found.ok_or_else(|| anyhow::anyhow!("no metric has the number {number}; `{}` lists them", all()));
    }
    let contains = |place: (usize, usize)| {
        let name = name(place);
        words.iter().all(|word| name.contains(word.as_str()))
    };
    let found: Vec<_> = all().filter(|place| contains(*place)).collect();
    let text = words.join(" ");
    match found.as_slice() {
        [one] => Ok(*one),
        [] => {
            let names: Vec<String> = all().map(name).collect();
            let near = nearest(&text, names.iter().map(String::as_str)).map(|near| format!("; did you mean `{near}`?"));
            bail!("no metric of the night has `{text}` in its name{}", near.unwrap_or_default())
        }
        many => {
            let numbered = |place: &(usize, usize)| format!("{} ({})", judged[place.0].system.metrics[place.1].id, name(*place));
            let names: Vec<String> = many.iter().take(LISTED).map(numbered).collect();
            let more = many.len().saturating_sub(LISTED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            bail!("{} metrics have `{text}` in their names: {}{more}; give a number, or more words", many.len(), names.join(", "))
        }
    }
}

/// `triad %size=2G @eidf:gpu+gnu bandwidth`
fn name(of: &JudgedSystem, metric: &Metric) -> String {
    let name = &metric.name;
    format!("{} @{}:{}+{} {}", name.case, of.system.name, name.partition, name.environ, name.label())
}

/// Where a change is: its system, the place of its metric, and the change as it is seen in the last night.
pub(super) fn place_of(judged: &[JudgedSystem], id: ChangeId) -> anyhow::Result<((usize, usize), Change)> {
    for (system, of) in judged.iter().enumerate() {
        for place in 0..of.system.metrics.len() {
            if let Some(change) = of.change(place, id) {
                return Ok(((system, place), change.clone()));
            }
        }
    }
    let known: Vec<String> = judged
        .iter()
        .flat_map(|of| of.verdicts.verdicts.iter().filter_map(|verdict| Some(verdict.change()?.id.to_string())))
        .collect();
    let there_are = if known.is_empty() {
        "no change is open".to_owned()
    } else {
        format!("open are {}", known.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", "))
    };
    bail!("there is no change {id}; {there_are}")
}
