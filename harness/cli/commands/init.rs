//! `muster init`: a site file with what this machine has, and a first check that runs there. It asks no server, and overwrites nothing.

use crate::{
    args::{Files, InitArgs},
    commands::{check::starter, new_files},
    inputs::selection,
    terminal::Terminal,
};
use anyhow::{Context as _, anyhow, bail};
use muster_core::job::descriptor::{NamedScheduler, Schedulers};
use muster_text::{
    Value,
    decode::{Context, Placeholders},
    diagnostic::{Diagnostic, Span, did_you_mean},
    shell::quote,
    yaml::Node,
};
use std::fmt::Write as _;

/// The option that only works where the kubeconfig has this context: it is written for who asks for it.
const CONTEXT: &str = "context";

/// A partition, with the options that were found or given.
struct Planned<'a> {
    scheduler: NamedScheduler,
    options: Vec<(&'a str, Value)>,
}

/// The value of an option as its site file has it: text, or what the option takes instead. A list has commas between its items.
fn value_of(scheduler: NamedScheduler, name: &str, text: &str) -> Result<Value, Vec<Diagnostic>> {
    let Some(option) = scheduler.options.iter().find(|option| option.name == name) else { return Ok(text.into()) };
    let mistakes = |value: &Value| {
        let mut context = Context::new(Placeholders::Refuse);
        (option.set)(&mut (), &Node::from_value(value, Span::default()), &mut context);
        context.diagnostics
    };
    let fits = |value: &Value| mistakes(value).is_empty();
    let items = || text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect::<Value>();
    let as_json = || serde_json::from_str(text).ok().filter(fits);
    if fits(&text.into()) {
        return Ok(text.into());
    }
    if let Some(value) = as_json() {
        return Ok(value);
    }
    if !fits(&Value::Array(Vec::new())) {
        return Ok(text.into());
    }
    let value = items();
    let wrong = mistakes(&value);
    if wrong.is_empty() { Ok(value) } else { Err(wrong) }
}

pub fn init(args: &InitArgs, schedulers: &Schedulers, terminal: Terminal) -> anyhow::Result<u8> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = match &args.site_name {
        Some(name) if is_name(name) => name.clone(),
        Some(name) => bail!("--site-name {name}: use letters, digits, `_` and `-`, a letter or digit first"),
        None => name_of(&host),
    };
    let planned = planned(args, schedulers)?;
    let first = planned.iter().find(|planned| planned.scheduler.is_cluster).or_else(|| planned.first());
    let first = first.map(|planned| planned.scheduler.name).context("there is no scheduler")?;
    let folder = args.folder.strip_prefix(".").unwrap_or(&args.folder);
    let (site, checks) = (folder.join("site-config").join(format!("{name}.yaml")), folder.join("checks"));
    let check = checks.join("hello").join("hello.check.yaml");
    let shown = quote(&check.to_string_lossy());
    let text = starter(first, schedulers).replace("NAME", "hello").replace("PATH", &shown);
    new_files::write(&[(&site, &site_file(&name, &host, &planned)), (&check, &text)])?;
    // Another site file may claim this host.
    let files = Files { checkpath: vec![checks.clone()], ..Files::of(schedulers) };
    let is_chosen = selection::site(&files, false).is_ok_and(|site| site.system.name == name);
    let system = if is_chosen { String::new() } else { format!(" --system {name}") };
    let partitions: Vec<&str> = planned.iter().map(|planned| planned.scheduler.name).collect();
    let (checks, site, check) = (quote(&checks.to_string_lossy()), site.display(), check.display());
    terminal.print(&format!(
        "{site}: system `{name}`, with the partitions {}\n{check}: a first check, for `{first}`\n\nNext:\n  \
         muster -c {checks}{system} doctor       what would keep it from running\n  \
         muster -c {checks}{system} -lC          what would run, and where\n  \
         muster -c {checks}{system} --dry-run    what would be launched\n  \
         muster -c {checks}{system} -r           run it\n",
        partitions.join(", "),
    ));
    Ok(0)
}

/// What this machine has, or the scheduler that is named. An option is for those that have one of its name.
fn planned<'a>(args: &'a InitArgs, schedulers: &Schedulers) -> anyhow::Result<Vec<Planned<'a>>> {
    let mut planned: Vec<Planned<'a>> = Vec::new();
    if let Some(name) = &args.scheduler {
        let scheduler = schedulers.find(name).with_context(|| {
            let names: Vec<&str> = schedulers.named().map(|scheduler| scheduler.name).collect();
            let hint = did_you_mean(name, names.iter().copied()).unwrap_or_else(|| format!("there is {}", names.join(", ")));
            format!("--scheduler {name}: there is no such scheduler: {hint}")
        })?;
        planned.push(Planned { scheduler, options: found((scheduler.found)().unwrap_or_default()) });
    } else {
        // An alias is asked for by name.
        let own = schedulers.named().filter(|scheduler| scheduler.name == scheduler.own_name());
        planned.extend(own.filter_map(|scheduler| Some(Planned { scheduler, options: found((scheduler.found)()?) })));
    }
    for (name, value) in args.options()? {
        let mut is_used = false;
        for partition in planned.iter_mut().filter(|partition| partition.scheduler.option_names().any(|known| known == name)) {
            partition.options.retain(|(known, _)| *known != name);
            let value = value_of(partition.scheduler, name, value).map_err(|mistakes| {
                let said = mistakes.into_iter().map(|Diagnostic { message, hint, .. }| match hint {
                    Some(hint) => format!("{message} ({hint})"),
                    None => message,
                });
                anyhow!("--option {name}={value}: {}", said.collect::<Vec<_>>().join("; "))
            })?;
            partition.options.push((name, value));
            is_used = true;
        }
        if !is_used {
            let names: Vec<&str> = planned.iter().map(|partition| partition.scheduler.name).collect();
            let known: Vec<&str> = planned.iter().flat_map(|partition| partition.scheduler.option_names()).collect();
            let hint = did_you_mean(name, known).unwrap_or_else(|| "name another with --scheduler".to_owned());
            bail!("`{name}` is not an option of {}: {hint}", names.join(" and "));
        }
    }
    for Planned { scheduler, options } in &planned {
        let options: Value = options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        if let Some(wrong) = (scheduler.wrong_options)(&options).into_iter().next() {
            bail!("{}", wrong.mistake.message);
        }
    }
    Ok(planned)
}

fn found(options: Vec<(&str, String)>) -> Vec<(&str, Value)> {
    options.into_iter().map(|(name, value)| (name, value.into())).collect()
}

fn site_file(name: &str, host: &str, planned: &[Planned<'_>]) -> String {
    // JSON's texts are YAML's, too.
    let text = |text: &str| Value::from(text).to_string();
    let pattern = format!("^{}$", host.replace('.', r"\."));
    let mut yaml = format!(
        "# Written by `muster init`. docs/site.md and docs/reference.md have all keys.\n\nname: {name}\n\
         # Regexes: on hosts with these names this system is used.\nhostnames: [{}]\n\npartitions:\n",
        text(&pattern)
    );
    for Planned { scheduler, options } in planned {
        let _ = writeln!(yaml, "  # {}", scheduler.descr);
        let _ = writeln!(yaml, "  - name: {0}\n    scheduler: {0}\n    environs: [default]", scheduler.name);
        if !options.is_empty() {
            yaml += "    sched_options:\n";
            let has_context = options.iter().any(|(name, _)| *name == CONTEXT);
            if !has_context && scheduler.option_names().any(|name| name == CONTEXT) {
                let _ = writeln!(
                    yaml,
                    "      # {CONTEXT}: NAME    # of the kubeconfig; without it the current one, and in a pod its own cluster"
                );
            }
        }
        for (name, value) in options {
            let _ = writeln!(yaml, "      {name}: {value}");
        }
    }
    yaml + "\nenvironments:\n  - name: default\n"
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

/// A system's name from that of a host: `login1.example.org` is `login1`.
fn name_of(host: &str) -> String {
    let short = host.split('.').next().unwrap_or_default();
    let name: String = short.chars().map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '-' }).collect();
    // The built-in system has this name.
    if is_name(&name) && name != "local" && name != "localhost" { name } else { "site".to_owned() }
}
