//! `muster results causes`: why the cases of a night failed.

use super::filters;
use crate::{
    args::{CausesArgs, Cli},
    terminal::Terminal,
    wiring::asked::Asked,
};
use muster_core::query::{
    causes::{self, Cause, Since},
    figures::NightNumber,
    spec::Selection,
};
use muster_report::causes::{NightOfCauses, json, report};
use muster_session::runtime;
use muster_store::{Occurrence, Reader};
use std::collections::{BTreeMap, BTreeSet};

/// So many nights back the last good one is looked for.
const NIGHTS: NightNumber = 120;
/// Of a group so many cases are looked at.
const CASES: usize = 12;

pub fn causes(cli: &Cli, args: &CausesArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let selection = Selection::parse(args.night.as_deref().unwrap_or("last-night"))?.and(&filters(&args.filters)?);
    let night = runtime::build()?.block_on(async {
        let asked = Asked::open(cli).await?;
        let sessions = asked.sessions(&selection).await?;
        super::are_placed(&sessions)?;
        let nights = || sessions.iter().filter_map(|session| session.night);
        let (first, night) = (nights().min().unwrap_or_default(), nights().max().unwrap_or_default());
        let failures = asked.reader.failures(&sessions, &selection.filters).await?;
        let mut groups = Vec::new();
        for cause in causes::group(failures.failures) {
            let since = since(&asked.reader, &cause, night).await?;
            groups.push((cause, since));
        }
        let systems: BTreeSet<&str> = sessions.iter().map(|session| session.session.system.as_str()).collect();
        anyhow::Ok(NightOfCauses {
            first,
            night,
            systems: systems.into_iter().map(str::to_owned).collect(),
            sessions: sessions.len(),
            cases: failures.cases,
            causes: groups,
        })
    })?;
    terminal.print(&if args.json { json(&night)? } else { report(&night, args.all, &terminal.screen()) });
    Ok(0)
}

/// Since when a group fails, and what changed then.
async fn since(reader: &Reader, cause: &Cause, night: NightNumber) -> anyhow::Result<Since<NightNumber>> {
    let mut nights: BTreeMap<NightNumber, Vec<Occurrence>> = BTreeMap::new();
    for failure in cause.failures.iter().take(CASES) {
        for occurrence in reader.occurrences(&failure.name, (night - NIGHTS, night)).await? {
            nights.entry(occurrence.night).or_default().push(occurrence);
        }
    }
    // Of several nights that are asked about, the group may have been well in the last.
    let failed = nights.iter().rev().find(|(_, all)| all.iter().any(|one| !one.is_fine)).map_or(night, |(failed, _)| *failed);
    // A night is good if one of the cases ran and was well each time; those of one case lie together.
    let is_good = |of_night: &[Occurrence]| of_night.iter().any(|one| one.is_fine) && !of_night.iter().all(|one| !one.is_fine);
    let earlier = nights.iter().rev().filter(|(number, _)| **number < failed).map(|(number, all)| (*number, is_good(all)));
    let mut since = causes::since(failed, earlier);
    let good = since.last_good.and_then(|good| nights.get(&good)?.iter().find(|one| one.is_fine));
    let bad = since.first_bad.and_then(|bad| nights.get(&bad)?.iter().find(|one| !one.is_fine));
    if let Some((good, bad)) = good.zip(bad) {
        let (before, after) = (reader.facts(good, bad).await?, reader.facts(bad, bad).await?);
        since.changed = causes::changed(&before, &after);
    }
    Ok(since)
}
