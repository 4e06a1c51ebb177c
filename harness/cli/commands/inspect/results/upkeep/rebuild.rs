//! `muster results rebuild`.

use super::with;
use crate::{args::Cli, inputs::files, terminal::Terminal};
use muster_core::night::NightRules;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

pub fn rebuild(cli: &Cli, terminal: Terminal) -> anyhow::Result<u8> {
    let sites = files::sound_sites(&cli.files, terminal.color)?;
    let known: BTreeMap<&str, &NightRules> = sites.systems.iter().map(|system| (system.name.as_str(), &system.nights)).collect();
    let unknown = Mutex::new(BTreeSet::new());
    let rules = |system: &str| {
        if let (None, Ok(mut unknown)) = (known.get(system), unknown.lock()) {
            unknown.insert(system.to_owned());
        }
        known.get(system).map_or_else(NightRules::default, |rules| (*rules).clone())
    };
    let rebuilt = with(cli, async |upkeep| Ok(upkeep.rebuild(rules).await?))?;
    for system in unknown.into_inner().unwrap_or_default() {
        let rules = NightRules::default();
        terminal.note(&format!(
            "note: no site file of system `{system}` was read: its nights end at {}, {}",
            rules.cutoff,
            rules.zone.name()
        ));
    }
    let placed =
        if rebuilt.placed > 0 { format!(", {} session(s) placed in their nights", rebuilt.placed) } else { String::new() };
    terminal.print(&format!("the figures of {} attempt(s) are written again{placed}\n", rebuilt.attempts));
    Ok(0)
}
