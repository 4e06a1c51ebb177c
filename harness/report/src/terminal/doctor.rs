//! `muster doctor`: a line for each finding, in parts; the same as JSON.

use crate::{
    RenderError,
    text::style::{Screen, Tone, one_line},
};
use muster_core::probe::{Level, Probed};
use serde::Serialize;

/// The findings about this machine or about a partition.
#[derive(Debug, Clone)]
pub struct Part {
    /// `cluster:gpu` and its scheduler; `None`: this machine.
    pub partition: Option<(String, String)>,
    pub found: Vec<Probed>,
}

/// The lines of a part under its title.
pub fn part(part: &Part, screen: &Screen) -> String {
    let title = match &part.partition {
        Some((partition, scheduler)) => format!("{partition} ({scheduler})"),
        None => "this machine".to_owned(),
    };
    let line = |probed: &Probed| {
        let level = screen.paint.apply(tone(probed.level), format!("{:<7}", probed.level.as_str()));
        let hint = probed.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
        format!("  {level}  {}: {}\n", probed.topic, one_line(&format!("{}{hint}", probed.what)))
    };
    let lines: String = part.found.iter().map(line).collect();
    format!("{}\n{lines}", screen.paint.apply(Tone::Strong, one_line(&title)))
}

/// `9 ok, 1 warning(s), 0 error(s)`
pub fn summary(parts: &[Part], screen: &Screen) -> String {
    let count = |level| found(parts).filter(|probed| probed.level == level).count();
    let (fine, warnings, errors) = (count(Level::Fine), count(Level::Warning), count(Level::Error));
    let text = format!("{fine} ok, {warnings} warning(s), {errors} error(s)");
    format!("{}\n", screen.paint.apply(tone(worst(parts)), text))
}

/// The worst level of all.
pub fn worst(parts: &[Part]) -> Level {
    found(parts).map(|probed| probed.level).max().unwrap_or(Level::Fine)
}

fn found(parts: &[Part]) -> impl Iterator<Item = &Probed> {
    parts.iter().flat_map(|part| &part.found)
}

fn tone(level: Level) -> Tone {
    match level {
        Level::Fine => Tone::Good,
        Level::Warning => Tone::Odd,
        Level::Error => Tone::Bad,
    }
}

/// The whole as JSON.
#[derive(Serialize)]
struct Json<'a> {
    system: &'a str,
    level: Level,
    findings: Vec<Finding<'a>>,
}

#[derive(Serialize)]
struct Finding<'a> {
    /// `null`: this machine.
    partition: Option<&'a str>,
    scheduler: Option<&'a str>,
    topic: &'a str,
    level: Level,
    what: &'a str,
    hint: Option<&'a str>,
}

/// One object for programs: `{system, level, findings: [{partition, scheduler, topic, level, what, hint}]}`.
///
/// # Errors
/// Never, as far as is known.
pub fn json(system: &str, parts: &[Part]) -> Result<String, RenderError> {
    let mut findings = Vec::new();
    for Part { partition, found } in parts {
        let (partition, scheduler) = partition.as_ref().map(|(name, scheduler)| (name.as_str(), scheduler.as_str())).unzip();
        findings.extend(found.iter().map(|probed| Finding {
            partition,
            scheduler,
            topic: probed.topic,
            level: probed.level,
            what: &probed.what,
            hint: probed.hint.as_deref(),
        }));
    }
    let json = serde_json::to_string_pretty(&Json { system, level: worst(parts), findings });
    Ok(json.map_err(RenderError::of("write the findings as JSON"))? + "\n")
}
