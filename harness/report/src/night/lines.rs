//! The answer for people: a block a system, one line a change.

use super::{SystemNight, absence, case, effect, error_rate, levels, long_date, notes, odds, since};
use crate::text::{
    style::{Screen, Tone, one_line, wrapped},
    words::counted,
};
use muster_judge::night::{Event, Verdict, Word};
use muster_text::decode::Words as _;
use std::fmt::Write;

/// So many metrics of an event are shown.
const SHOWN: usize = 10;

/// A block for each system.
pub fn report(nights: &[SystemNight<'_>], screen: &Screen) -> String {
    nights.iter().map(|night| block(night, screen)).collect::<Vec<_>>().join("\n")
}

fn block(night: &SystemNight<'_>, screen: &Screen) -> String {
    let coverage = night.verdicts.coverage;
    let title = format!("{}, night of {}", one_line(&night.system.name), long_date(night.verdicts.night));
    let mut text = format!(
        "{}: {}, {} of {} planned measured\n",
        screen.paint.apply(Tone::Strong, title),
        counted(night.system.metrics.len(), "metric"),
        coverage.measured,
        coverage.planned,
    );
    if let Some(absence) = absence(night) {
        let _ = writeln!(text, "{}", screen.paint.apply(Tone::Odd, absence));
    }
    for note in notes(night) {
        let _ = writeln!(text, "note: {}", one_line(&note));
    }
    for event in &night.verdicts.events {
        text += &event_lines(night, event, screen);
    }
    for place in others(night) {
        text += &line(night, place, "", screen);
    }
    text + &foot(night, screen)
}

/// Metrics without a change that are worth a line, by place: those that came back, and those that are missing.
fn others(night: &SystemNight<'_>) -> Vec<usize> {
    let verdicts = &night.verdicts.verdicts;
    let of = |word: Word| (0..verdicts.len()).filter(move |place| verdicts[*place].word == word);
    let is_told = |place: &usize| verdicts[*place].change().is_none() && verdicts[*place].gone_since.is_none();
    let missing: Vec<usize> = of(Word::NotMeasured).filter(is_told).collect();
    // A night in which nothing ran has one line, not hundreds.
    let missing = if missing.len() > SHOWN { Vec::new() } else { missing };
    of(Word::Recovered).chain(missing).collect()
}

fn event_lines(night: &SystemNight<'_>, event: &Event, screen: &Screen) -> String {
    let together = match event.metrics.len() {
        0 | 1 => String::new(),
        count => format!("{count} metrics of {} moved together", counted(event.checks, "check")),
    };
    let mut text = String::new();
    for (number, place) in event.metrics.iter().take(SHOWN).enumerate() {
        text += &line(night, *place, if number == 0 { "" } else { "  " }, screen);
        if number == 0 && !together.is_empty() {
            text.truncate(text.trim_end().len());
            let _ = writeln!(text, "  {together}");
        }
    }
    if event.metrics.len() > SHOWN {
        let _ = writeln!(text, "  ... and {} more", event.metrics.len() - SHOWN);
    }
    text
}

/// `regressed  triad %size=2G @eidf:gpu  bandwidth  1912 -> 1815 GB/s  -5.1 % (-6.0 .. -4.2)  since Tue 17 Nov (16-17) ...`
fn line(night: &SystemNight<'_>, place: usize, lead: &str, screen: &Screen) -> String {
    let (metric, verdict) = (&night.system.metrics[place], &night.verdicts.verdicts[place]);
    let word = screen.paint.apply(tone(verdict), verdict.word.as_str());
    let mut parts = vec![
        format!("{lead}{word}"),
        one_line(&case(night.system, metric)).into_owned(),
        one_line(&metric.name.label()).into_owned(),
    ];
    if let Some(change) = verdict.change() {
        parts.push(one_line(&levels(change, &metric.unit)).into_owned());
        parts.push(effect(change));
        parts.push(format!("since {}", since(change)));
        parts.push(format!("evidence {}", odds(change.evidence)));
        parts.push(format!("{}{}", if verdict.is_new { "new " } else { "" }, change.id));
    } else if let Some(level) = verdict.level {
        parts.push(format!("level {} {}", muster_core::rules::perf::format_digits(level, 4), one_line(&metric.unit)));
    }
    if let Some(reason) = &verdict.reason {
        parts.push(format!("({})", one_line(reason)));
    }
    parts.join("  ") + "\n"
}

fn tone(verdict: &Verdict) -> Tone {
    match verdict.word {
        Word::Regressed => Tone::Bad,
        Word::Drifting if verdict.is_counted => Tone::Bad,
        Word::Improved | Word::Recovered => Tone::Good,
        Word::Changed | Word::Drifting | Word::NotMeasured | Word::Known | Word::Accepted | Word::TooNoisy => Tone::Odd,
        Word::Steady | Word::TooFewNights => Tone::Plain,
    }
}

/// The words of all metrics with their counts, and how they were reached.
fn foot(night: &SystemNight<'_>, screen: &Screen) -> String {
    let verdicts = &night.verdicts.verdicts;
    let counts: Vec<String> = Word::WORDS
        .iter()
        .map(|(_, word)| (word, verdicts.iter().filter(|verdict| verdict.word == *word).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    let family = &night.verdicts.family;
    let mut method = error_rate(night.settings);
    if family.metrics > 0 {
        let _ = write!(method, "; a metric alone needs 1 : {:.0}", family.needed_alone());
    }
    if family.tempering < 1.0 {
        let _ = write!(
            method,
            "; nights resemble each other ({:.2}), so they say {:.0} % of that",
            family.autocorrelation,
            100.0 * family.tempering
        );
    }
    let blind = blind(night);
    let counts = if counts.is_empty() { "no metric is stored".to_owned() } else { counts.join(", ") };
    let sentences: Vec<String> = [counts, method].into_iter().chain(blind).collect();
    let lines = sentences.iter().flat_map(|sentence| wrapped(sentence, screen.width));
    lines.fold(String::new(), |text, line| text + &line + "\n")
}

/// What would not be seen.
fn blind(night: &SystemNight<'_>) -> Option<String> {
    let mut steps: Vec<f64> = night.verdicts.verdicts.iter().filter_map(|verdict| verdict.smallest_step).collect();
    steps.sort_by(f64::total_cmp);
    // The smallest step that so many metrics would show, or more.
    let seen_in = |tenths: usize| steps.get((steps.len() * tenths).div_ceil(10).checked_sub(1)?);
    let (half, most) = (seen_in(5)?, seen_in(9)?);
    Some(format!(
        "within a week a step of {:.1} % is seen in half of the metrics, of {:.1} % in nine of ten; more runs a night see smaller ones",
        100.0 * half,
        100.0 * most
    ))
}
