//! `muster config show`: every setting, its value and who set it.

use crate::{
    args::Parsed,
    inputs::{
        selection::{self, Site},
        settings_files,
    },
    settings::{self, Setting},
    terminal::Terminal,
};
use muster_check::site::Partition;
use muster_core::job::descriptor;
use muster_report::secret::{masked, masked_setting};
use muster_text::{size::Size, time::format_duration, yaml::Node};
use std::fmt::Display;

/// Wider columns of values would move the sources out of sight.
const WIDEST_VALUE: usize = 60;

pub fn show(parsed: &Parsed, terminal: Terminal) -> anyhow::Result<u8> {
    let cli = &parsed.cli;
    let site = selection::site(&cli.files, terminal.live)?;
    let rows = settings::of_the_command_line(parsed, &site);
    let mut text = table("Command line", &rows);
    let picked = match (rows.iter().find(|row| cli.files.system.is_some() && row.name == "system"), site.document()) {
        (Some(named), _) => format!("by {}", named.source),
        (None, Some(_)) => "by host name".to_owned(),
        (None, None) => "built in: no site file's hostnames match this machine".to_owned(),
    };
    let own = [
        Setting { name: "settings files".into(), value: or_dash(&settings_files::shown().join(", ")), source: String::new() },
        Setting { name: "system".into(), value: site.system.name.clone(), source: picked },
        Setting { name: "site files".into(), value: or_dash(&site.sites.paths.join(", ")), source: String::new() },
    ];
    text += &table("Site", &own);
    for partition in &site.system.partitions {
        let mut rows = of_partition(&site, partition);
        let of_options = |row: descriptor::Setting| Setting {
            name: row.name.to_owned(),
            value: masked(&row.value).into_owned(),
            source: row.source.unwrap_or_else(|| site.source(partition, "sched_options")),
        };
        rows.extend((partition.scheduler.settings)(&partition.sched_options).into_iter().map(of_options));
        text += &table(&format!("Partition {}:{}", site.system.name, partition.name), &rows);
    }
    terminal.print(&text);
    Ok(0)
}

fn of_partition(site: &Site, partition: &Partition) -> Vec<Setting> {
    let list = |items: &[String]| or_dash(&items.join(", "));
    let pairs = |items: &[(String, String)]| {
        or_dash(&items.iter().map(|(name, value)| named(name, value)).collect::<Vec<_>>().join(", "))
    };
    let environs: Vec<String> = partition.environs.iter().map(|environ| environ.name.clone()).collect();
    let facts = |facts: &std::collections::BTreeMap<String, muster_text::Value>| {
        or_dash(&facts.iter().map(|(name, value)| named(name, value)).collect::<Vec<_>>().join(", "))
    };
    let devices: Vec<String> = partition
        .devices
        .iter()
        .map(|device| format!("{} {}x{}", device.kind, device.num_devices.unwrap_or(0), device.arch.as_deref().unwrap_or("?")))
        .collect();
    let limit = |limit: Option<std::time::Duration>| limit.map_or_else(|| "none".to_owned(), format_duration);
    let platforms: Vec<String> = partition.container_platforms.iter().map(|platform| platform.platform.to_string()).collect();
    let modules: Vec<String> = partition.modules.iter().map(|module| module.name.clone()).collect();
    let shared = |key: &str| partition.shared.get(key).map_or_else(|| "-".to_owned(), ToString::to_string);
    let rows = [
        ("descr", or_dash(&partition.descr)),
        ("scheduler", partition.scheduler.to_string()),
        ("environs", list(&environs)),
        ("max_jobs", partition.max_jobs.to_string()),
        ("time_limit", limit(partition.time_limit)),
        ("max_pending_time", limit(partition.max_pending_time)),
        ("stage_limit", limit(partition.stage_limit)),
        ("max_log", partition.max_log.map_or_else(|| "none".to_owned(), |bytes| Size(bytes).to_string())),
        ("max_log_action", format!("{:?}", partition.max_log_action).to_lowercase()),
        ("on_disruption", partition.on_disruption.map_or_else(|| "-".to_owned(), |action| format!("{action:?}").to_lowercase())),
        ("features", list(&partition.features)),
        ("extras", facts(&partition.extras)),
        ("modules", list(&modules)),
        ("container_platforms", list(&platforms)),
        ("env_vars", pairs(&partition.env_vars)),
        ("prepare_cmds", list(&partition.prepare_cmds)),
        ("pass_env", list(&partition.pass_env)),
        ("sched_options", partition.sched_options.to_string()),
        ("access", shared("access")),
        ("resources", shared("resources")),
        ("launcher", shared("launcher")),
        ("processor", facts(&partition.processor)),
        ("devices", list(&devices)),
    ];
    let row = |(name, value): (&str, String)| Setting {
        name: name.to_owned(),
        value: masked(&value).into_owned(),
        source: site.source(partition, name),
    };
    rows.into_iter().map(row).collect()
}

/// What has a name: it may be that of a secret.
fn named(name: &str, value: &dyn Display) -> String {
    masked_setting(&format!("{name}={value}")).into_owned()
}

impl Site {
    /// Where a partition's setting is written: there, or at the system, or not at all.
    fn source(&self, partition: &Partition, key: &str) -> String {
        let Some(document) = self.document() else { return "built in".to_owned() };
        let own = document.get("partitions").map(Node::items).unwrap_or_default();
        let own = own.iter().find(|node| node.get("name").and_then(Node::text) == Some(&partition.name));
        // What both have the system sets for all its partitions, but for these.
        let of_all = |key: &str| document.entry(key).filter(|_| !["extras", "descr"].contains(&key));
        match own.and_then(|node| node.entry(key)).or_else(|| of_all(key)).and_then(|entry| self.place(entry)) {
            Some(place) => place,
            None if key == "processor" && partition.scheduler.complete_processor.is_some() => "detected".to_owned(),
            None => "default".to_owned(),
        }
    }
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// Aligned columns under a title. A value that is wider than its column has its source below it.
fn table(title: &str, rows: &[Setting]) -> String {
    let width = |field: fn(&Setting) -> &String| rows.iter().map(|row| field(row).chars().count()).max().unwrap_or(0);
    let (names, values) = (width(|row| &row.name), width(|row| &row.value).min(WIDEST_VALUE));
    let line = |row: &Setting| {
        let Setting { name, value, source } = row;
        if value.chars().count() > values && !source.is_empty() {
            format!("  {name:<names$}  {value}\n  {:<names$}  {:<values$}  {source}\n", "", "")
        } else {
            format!("  {name:<names$}  {value:<values$}  {source}").trim_end().to_owned() + "\n"
        }
    };
    format!("{title}\n{}\n", rows.iter().map(line).collect::<Vec<_>>().concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::files::Sites;
    use muster_check::site::file::{self as site_file, PartitionFile};
    use muster_core::job::descriptor::Schedulers;
    use muster_text::decode::Keyed;
    use std::sync::Arc;

    #[test]
    fn every_key_of_a_partition_is_listed() {
        let system = site_file::pick(&[], &Schedulers::new(crate::SCHEDULERS), "", None).unwrap();
        let site = Site { sites: Sites::default(), system: Arc::new(system) };
        let listed: Vec<String> =
            of_partition(&site, &site.system.partitions[0]).into_iter().map(|setting| setting.name).collect();
        for key in PartitionFile::TABLE.keys.iter().filter(|key| key.name != "name") {
            assert!(listed.iter().any(|name| name == key.name), "`config show` does not list `{}`", key.name);
        }
    }

    #[test]
    fn a_long_value_does_not_break_the_columns() {
        let row =
            |name: &str, value: &str, source: &str| Setting { name: name.into(), value: value.into(), source: source.into() };
        let long = "/a/path/".repeat(9);
        let rows = [row("prefix", ".", "default"), row("db", &long, "flag --db"), row("site files", &long, "")];
        insta::assert_snapshot!(table("Command line", &rows), @"
        Command line
          prefix      .                                                             default
          db          /a/path//a/path//a/path//a/path//a/path//a/path//a/path//a/path//a/path/
                                                                                    flag --db
          site files  /a/path//a/path//a/path//a/path//a/path//a/path//a/path//a/path//a/path/
        ");
    }
}
