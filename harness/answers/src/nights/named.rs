//! Metrics and changes of judged nights by name. A name of nothing is answered by a sentence with the nearest name.

use super::JudgedNight;
use crate::Unanswered;
use muster_judge::night::{Change, ChangeId};
use muster_store::Location;
use muster_text::diagnostic::nearest;

/// At most this many names are listed.
const LISTED: usize = 8;

/// The place of a metric among judged nights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The place of its night.
    pub night: usize,
    /// The place of the metric in the system of that night.
    pub metric: usize,
}

/// Reads the name of a change: `17@2026-11-17`.
///
/// # Errors
/// [`Unanswered::Unknown`] if it has another form.
pub fn change(database: &Location, text: &str) -> Result<ChangeId, Unanswered> {
    ChangeId::parse(text).ok_or_else(|| {
        let night = database.command("night");
        Unanswered::Unknown(format!("`{text}` is not a change: `{night}` names them, as in 17@2026-11-17"))
    })
}

/// Finds the metric that words describe: its number, or words that all stand in its name.
///
/// # Errors
/// [`Unanswered::Unknown`] if they describe none, or several.
pub fn metric(database: &Location, judged: &[JudgedNight], words: &[String]) -> Result<Place, Unanswered> {
    let all = || {
        let metrics =
            |(night, of): (usize, &JudgedNight)| (0..of.system().metrics.len()).map(move |metric| Place { night, metric });
        judged.iter().enumerate().flat_map(metrics)
    };
    let number = |place: &Place| judged[place.night].system().metrics[place.metric].id;
    let name = |place: &Place| judged[place.night].name(place.metric);
    if let [word] = words
        && let Ok(wanted) = word.parse::<i64>()
    {
        let listing = database.command("night --format json");
        return all()
            .find(|place| number(place) == wanted)
            .ok_or_else(|| Unanswered::Unknown(format!("no metric has the number {wanted}; `{listing}` lists them")));
    }
    let contains = |place: &Place| {
        let name = name(place);
        words.iter().all(|word| name.contains(word.as_str()))
    };
    let found: Vec<_> = all().filter(contains).collect();
    let text = words.join(" ");
    match found.as_slice() {
        [one] => Ok(*one),
        [] => {
            let names: Vec<String> = all().map(|place| name(&place)).collect();
            let near = nearest(&text, names.iter().map(String::as_str)).map(|near| format!("; did you mean `{near}`?"));
            Unanswered::unknown(format!("no metric of the night has `{text}` in its name{}", near.unwrap_or_default()))
        }
        many => {
            let numbered = |place: &Place| format!("{} ({})", number(place), name(place));
            let names = many.iter().take(LISTED).map(numbered).collect::<Vec<_>>().join(", ");
            let more = many.len().saturating_sub(LISTED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Unanswered::unknown(format!(
                "{} metrics have `{text}` in their names: {names}{more}; give a number, or more words",
                many.len()
            ))
        }
    }
}

/// Finds the metric of a change, and the change as the judged night has it.
///
/// # Errors
/// [`Unanswered::Unknown`] with the open changes, if it is none of the judged nights.
pub fn place_of(judged: &[JudgedNight], id: ChangeId) -> Result<(Place, &Change), Unanswered> {
    for (night, of) in judged.iter().enumerate() {
        for (metric, verdict) in of.verdicts.verdicts.iter().enumerate() {
            if let Some(change) = verdict.changes.iter().find(|change| change.id == id) {
                return Ok((Place { night, metric }, change));
            }
        }
    }
    let changes = judged.iter().flat_map(|of| &of.verdicts.verdicts).filter_map(|verdict| verdict.change());
    let known: Vec<String> = changes.take(LISTED).map(|change| change.id.to_string()).collect();
    let there_are = if known.is_empty() { "no change is open".to_owned() } else { format!("open are {}", known.join(", ")) };
    Unanswered::unknown(format!("there is no change {id}; {there_are}"))
}
