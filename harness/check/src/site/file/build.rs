//! Builds a system from a site file as written: names resolved, the system's settings under those of its partitions.

use super::{ContainerPlatformFile, DeviceFile, EnvironmentFile, ModeFile, NightsFile, PartitionFile, ProcessorFile, SiteFile};
use crate::site::{
    ContainerPlatform, Device, Environment, Mode, Partition, System, modules,
    quarantine::Entry,
    scheduler_keys::{check_options, refused_options, shared_keys, wrong_shared},
};
use muster_core::{
    job::{
        descriptor::{NamedScheduler, Schedulers},
        workload::Staging,
    },
    night::{Cutoff, FalseAlarms, NightRules, Share, ZoneName},
};
use muster_text::{
    Value,
    decode::{Context, Decode, Keyed, Limit, Mapping, Name, OneOrMany, Ordered, Spanned, word},
    diagnostic::Diagnostic,
    pattern::Pattern,
    yaml::{Kind, Node, merge, to_parameter_value, to_value},
};
use serde_json::Map;
use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc, time::Duration};

/// ReFrame's default.
const MAX_JOBS: usize = 8;
/// A job that waits for half a day misses the nightly run.
const MAX_PENDING_TIME: Duration = Duration::from_hours(12);
/// How many bytes of a log are kept by default.
const MAX_LOG: u64 = 2 << 30;
/// The environment that is always there.
const DEFAULT: &str = "default";

/// Reads a site file. Site files have no placeholders: the context should refuse them.
///
/// `None` only if nothing of a system could be read; a system with diagnostics has all that could be read.
pub fn read(node: &Node, schedulers: &Schedulers, context: &mut Context) -> Option<System> {
    let site = SiteFile::decode(node, context)?;
    let environments = environments(site.environments.as_deref().unwrap_or_default(), context);
    let partitions: Vec<_> = site.partitions.iter().flatten().collect();
    unique(partitions.iter().filter_map(|partition| partition.name.as_ref()), "partition", context);
    for pattern in site.hostnames.iter().flat_map(|patterns| patterns.iter()) {
        if let Err(error) = Pattern::compile(&pattern.value) {
            context.push(Diagnostic::error(pattern.span, format!("not a regex: {}", error.message)).maybe_hint(error.hint));
        }
    }
    let named: Vec<(&str, NamedScheduler)> = schedulers.named().map(|scheduler| (scheduler.name, scheduler)).collect();
    let chosen: Vec<Option<NamedScheduler>> =
        partitions.iter().map(|partition| word(partition.scheduler.as_ref()?, context, &named)).collect();
    let all: Vec<NamedScheduler> = chosen.iter().flatten().copied().collect();
    if let Some(options) = site.sched_options.as_ref().filter(|_| all.len() == partitions.len()) {
        check_options(&options.0, &all, &[], context.placeholders, &mut context.diagnostics);
    }
    let trees = node.get("partitions").map(Node::items).unwrap_or_default();
    let partitions = partitions
        .into_iter()
        .zip(chosen)
        .filter_map(|(file, scheduler)| {
            let tree = trees.iter().find(|tree| tree.place() == file.span)?;
            partition((file, tree), scheduler, &site, &environments, context)
        })
        .map(Arc::new)
        .collect();
    refuse_silent_modules(&site, context);
    let extras = extras(site.extras.as_ref(), context);
    let quarantine = site.quarantine.iter().flatten().filter_map(|file| Entry::new(file, context)).collect();
    let modes = modes(site.modes.as_deref().unwrap_or_default(), context);
    Some(System {
        name: site.name?.value.0,
        descr: site.descr.unwrap_or_default(),
        hostnames: site.hostnames.into_iter().flat_map(|names| names.0).map(|name| name.value).collect(),
        partitions,
        extras,
        modes,
        quarantine,
        file_mode: site.file_mode,
        nights: site.nights.as_ref().map(nights).unwrap_or_default(),
        span: Some(site.span),
    })
}

fn nights(file: &NightsFile) -> NightRules {
    let default = NightRules::default();
    NightRules {
        zone: file.time_zone.clone().map_or(default.zone, |ZoneName(zone)| zone),
        cutoff: file.cutoff.map_or(default.cutoff, |Cutoff(time)| time),
        false_alarms: file.false_alarms.map_or(default.false_alarms, |FalseAlarms(rate)| rate),
        min_coverage: file.min_coverage.map_or(default.min_coverage, |Share(share)| share),
    }
}

fn modes(files: &[ModeFile], context: &mut Context) -> Vec<Mode> {
    unique(files.iter().filter_map(|file| file.name.as_ref()), "mode", context);
    let mode = |file: &ModeFile| {
        let options = file.options.as_ref()?.iter().cloned().collect();
        Some(Mode { name: file.name.as_ref()?.value.0.clone(), options })
    };
    files.iter().filter_map(mode).collect()
}

fn environments(files: &[EnvironmentFile], context: &mut Context) -> Vec<Arc<Environment>> {
    unique(files.iter().filter_map(|file| file.name.as_ref()), "environment", context);
    let mut environments: Vec<_> = files
        .iter()
        .filter_map(|file| {
            let extras = extras(file.extras.as_ref(), context);
            Some(Arc::new(Environment {
                name: file.name.as_ref()?.value.0.clone(),
                descr: file.descr.clone().unwrap_or_default(),
                modules: modules::list(file.modules.as_ref()),
                env_vars: variables(&[file.env_vars.as_ref()]),
                prepare_cmds: list(file.prepare_cmds.as_ref()),
                features: list(file.features.as_ref()),
                extras,
                resources: resources(file.resources.as_ref()),
            }))
        })
        .collect();
    if environments.iter().all(|environment| environment.name != DEFAULT) {
        environments.push(Arc::new(Environment { name: DEFAULT.to_owned(), ..Environment::default() }));
    }
    environments
}

fn resources(resources: Option<&Ordered<Ordered<String>>>) -> Map<String, Value> {
    let values =
        |values: &Ordered<String>| values.iter().map(|(name, value)| (name.value.clone(), value.as_str().into())).collect();
    let resources = resources.iter().flat_map(|resources| resources.iter());
    resources.map(|(name, resource)| (name.value.clone(), Value::Object(values(resource)))).collect()
}

fn partition(
    (file, tree): (&PartitionFile, &Node),
    scheduler: Option<NamedScheduler>,
    site: &SiteFile,
    environments: &[Arc<Environment>],
    context: &mut Context,
) -> Option<Partition> {
    let environs = match &file.environs {
        Some(names) => names.iter().filter_map(|name| environment(name, environments, context)).collect(),
        None => environments.iter().filter(|environment| environment.name == DEFAULT).cloned().collect(),
    };
    let sched_options = sched_options(scheduler, site.sched_options.as_ref(), file.sched_options.as_ref(), context);
    let extras = extras(file.extras.as_ref(), context);
    let mut pass_env = list(site.pass_env.as_ref());
    pass_env.extend(list(file.pass_env.as_ref()));
    let shared = shared_keys(scheduler?, tree, PartitionFile::TABLE.shared(), &mut context.diagnostics);
    context.diagnostics.extend(wrong_shared(scheduler?, tree, &shared));
    Some(Partition {
        name: file.name.as_ref()?.value.0.clone(),
        descr: file.descr.clone().unwrap_or_default(),
        scheduler: scheduler?,
        environs,
        max_jobs: file.max_jobs.and_then(|jobs: NonZeroU32| jobs.get().try_into().ok()).unwrap_or(MAX_JOBS),
        features: list(file.features.as_ref()),
        extras,
        time_limit: Limit::over(file.time_limit, None),
        max_pending_time: Limit::over(file.max_pending_time, Some(MAX_PENDING_TIME)),
        stage_limit: Limit::over(file.stage_limit, Some(Staging::LIMIT)),
        max_log: Limit::over(file.max_log, Some(MAX_LOG)),
        max_log_action: file.max_log_action.unwrap_or_default(),
        on_disruption: file.on_disruption,
        modules_system: site.modules_system,
        modules: [&site.modules, &file.modules].into_iter().flat_map(|list| modules::list(list.as_ref())).collect(),
        container_platforms: file.container_platforms.iter().flatten().filter_map(container_platform).collect(),
        env_vars: variables(&[site.env_vars.as_ref(), file.env_vars.as_ref()]),
        prepare_cmds: list(file.prepare_cmds.as_ref()),
        pass_env,
        sched_options,
        shared,
        processor: file.processor.as_ref().map(processor).unwrap_or_default(),
        devices: file.devices.iter().flatten().filter_map(device).collect(),
        span: Some(file.span),
    })
}

/// Refuses modules without a system that loads them.
fn refuse_silent_modules(site: &SiteFile, context: &mut Context) {
    if site.modules_system.is_some() {
        return;
    }
    let partitions = || site.partitions.iter().flatten();
    let platforms = partitions().flat_map(|partition| partition.container_platforms.iter().flatten());
    let lists = std::iter::once(&site.modules)
        .chain(partitions().map(|partition| &partition.modules))
        .chain(platforms.map(|platform| &platform.modules))
        .chain(site.environments.iter().flatten().map(|environment| &environment.modules));
    if let Some(first) = lists.flatten().find_map(|list| list.first()) {
        let message = "`modules` without a `modules_system` to load them";
        let hint = "write `modules_system: lmod` at the top of the file, or tmod, spack; nomod if they need no loading";
        context.push(Diagnostic::error(first.span, message).hint(hint));
    }
}

fn container_platform(file: &ContainerPlatformFile) -> Option<ContainerPlatform> {
    Some(ContainerPlatform {
        platform: file.platform?,
        modules: modules::list(file.modules.as_ref()),
        env_vars: variables(&[file.env_vars.as_ref()]),
        is_default: file.default.unwrap_or(false),
    })
}

fn environment(name: &Spanned<String>, environments: &[Arc<Environment>], context: &mut Context) -> Option<Arc<Environment>> {
    let known = environments.iter().find(|environment| environment.name == name.value);
    if known.is_none() {
        let diagnostic = Diagnostic::error(name.span, format!("no environment `{}`", name.value));
        let names = environments.iter().map(|environment| environment.name.as_str());
        context.push(diagnostic.did_you_mean(&name.value, names, Some("add it to the file's `environments`")));
    }
    known.cloned()
}

fn processor(file: &ProcessorFile) -> BTreeMap<String, Value> {
    let facts = [
        ("arch", file.arch.clone().map(Value::from)),
        ("model", file.model.clone().map(Value::from)),
        ("platform", file.platform.clone().map(Value::from)),
        ("num_cpus", file.num_cpus.map(Value::from)),
        ("num_cpus_per_core", file.num_cpus_per_core.map(Value::from)),
        ("num_cpus_per_socket", file.num_cpus_per_socket.map(Value::from)),
        ("num_cores", file.num_cores.map(Value::from)),
        ("num_sockets", file.num_sockets.map(Value::from)),
    ];
    facts.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), fact?))).collect()
}

fn device(file: &DeviceFile) -> Option<Device> {
    Some(Device {
        kind: file.kind.as_ref()?.value.0.clone(),
        arch: file.arch.clone(),
        model: file.model.clone(),
        num_devices: file.num_devices,
    })
}

/// The options of a partition, the system's under them.
fn sched_options(
    scheduler: Option<NamedScheduler>,
    system: Option<&Mapping>,
    partition: Option<&Mapping>,
    context: &mut Context,
) -> Value {
    if let (Some(partition), Some(scheduler)) = (partition, scheduler) {
        check_options(&partition.0, &[scheduler], &[], context.placeholders, &mut context.diagnostics);
    }
    let merged = match (system, partition) {
        (Some(system), Some(partition)) => merge(&system.0, &partition.0, &mut context.diagnostics),
        (Some(only), None) | (None, Some(only)) => only.0.clone(),
        (None, None) => return Value::Object(Map::new()),
    };
    refuse_placeholders(&merged, context);
    let own = scheduler.map_or_else(|| merged.clone(), |scheduler| merged.only(&scheduler.option_names().collect::<Vec<_>>()));
    let values = to_value(&own).unwrap_or_else(|mut diagnostics| {
        context.diagnostics.append(&mut diagnostics);
        Value::Null
    });
    let place = |option: &str| own.get(option).map(Node::place);
    for mistake in scheduler.map(|scheduler| refused_options(scheduler, &values, place)).into_iter().flatten() {
        // Partitions share the options of their system.
        if !context.diagnostics.contains(&mistake) {
            context.push(mistake);
        }
    }
    values
}

fn extras(extras: Option<&Ordered<Node>>, context: &mut Context) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    for (name, node) in extras.iter().flat_map(|extras| extras.iter()) {
        refuse_placeholders(node, context);
        match to_parameter_value(node) {
            Ok(value) => {
                values.insert(name.value.clone(), value);
            }
            Err(mut diagnostics) => context.diagnostics.append(&mut diagnostics),
        }
    }
    values
}

fn refuse_placeholders(node: &Node, context: &mut Context) {
    match &*node.kind {
        Kind::Scalar { .. } | Kind::Bad => {
            context.kind(node);
        }
        Kind::Seq(items) => items.iter().for_each(|item| refuse_placeholders(item, context)),
        Kind::Map(entries) => entries.iter().for_each(|(_, value)| refuse_placeholders(value, context)),
    }
}

fn unique<'a>(names: impl Iterator<Item = &'a Spanned<Name>>, what: &str, context: &mut Context) {
    let mut seen = BTreeMap::new();
    for name in names {
        if let Some(first) = seen.get(&name.value) {
            let message = format!("two {what}s are called `{}`", &*name.value);
            context.push(Diagnostic::error(name.span, message).related(*first, "the first"));
        } else {
            seen.insert(&name.value, name.span);
        }
    }
}

/// Variables of several levels, later over earlier, each in its first place.
fn variables(levels: &[Option<&Ordered<String>>]) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = Vec::new();
    for (name, value) in levels.iter().flatten().flat_map(|level| level.iter()) {
        match variables.iter_mut().find(|(known, _)| *known == name.value) {
            Some((_, known)) => known.clone_from(value),
            None => variables.push((name.value.clone(), value.clone())),
        }
    }
    variables
}

fn list(texts: Option<&OneOrMany<String>>) -> Vec<String> {
    texts.map(|texts| texts.0.clone()).unwrap_or_default()
}
