//! `muster results annotate` and `muster results alias`: what people know.

use super::with;
use crate::{
    args::{AliasArgs, AnnotateArgs, AnnotationKind, Cli},
    settings::Places,
    terminal::Terminal,
    wiring::database,
};
use anyhow::{bail, ensure};
use muster_core::query::{
    remarks::{Remark, RemarkKind},
    spec::Filters,
};
use muster_host::{account, clock};
use muster_judge::night::Change;
use muster_report::said::{self, Said};
use muster_session::runtime;
use muster_store::{Annotation, KnownMetric, Reader};
use muster_text::time::Date;
use std::collections::BTreeMap;

pub fn annotate(cli: &Cli, args: &AnnotateArgs, terminal: Terminal) -> anyhow::Result<u8> {
    match (args.remove, args.from, &args.reason) {
        (Some(number), ..) => unannotate(cli, number, terminal),
        (None, Some(from), Some(reason)) => say(cli, args, (from, reason), terminal),
        // The arguments have been checked: this is --list.
        (None, ..) => list(cli, terminal),
    }
}

fn say(cli: &Cli, args: &AnnotateArgs, (from, reason): (Date, &str), terminal: Terminal) -> anyhow::Result<u8> {
    let until = args.until.unwrap_or(from);
    if until < from {
        bail!("--until {until} is before --from {from}");
    }
    let is_narrow = args.node.is_some() || args.session.is_some();
    ensure!(
        args.kind == AnnotationKind::Note || !is_narrow,
        "--node and --session are for --kind note: verdicts are about the figures of whole nights"
    );
    if reason.trim().is_empty() {
        bail!("--reason is empty: write why, in one sentence");
    }
    let Place { name, system, partition, environ } = Place::of(cli.files.typed_system(), args)?;
    let annotation = Annotation {
        kind: kind(args.kind),
        system,
        partition,
        environ,
        name,
        variable: args.variable.clone(),
        node: args.node.clone(),
        session: args.session.as_deref().map(|session| whole_id(cli, session, terminal)).transpose()?,
        from,
        until: Some(until),
        author: account::this_user(),
        reason: reason.to_owned(),
        link: args.link.clone(),
        created: clock::now(),
    };
    let without_effect = without_effect(cli, &annotation)?;
    let number = with(cli, async |upkeep| Ok(upkeep.annotate(&annotation).await?))?;
    terminal.print(&format!("annotation {number}: {}\n", shown(&annotation)));
    if let Some(why) = without_effect {
        terminal.note(&format!("note: {why}"));
    }
    Ok(0)
}

/// Why an annotation changes nothing so far, if it does not.
fn without_effect(cli: &Cli, annotation: &Annotation) -> anyhow::Result<Option<String>> {
    let kind = annotation.kind;
    let until = annotation.until.unwrap_or(annotation.from);
    match kind {
        RemarkKind::Note | RemarkKind::Maintenance => Ok(None),
        RemarkKind::Known => Ok((until < today())
            .then(|| format!("known is for {} alone, and that is over: --until says for how long it holds", nights(annotation)))),
        RemarkKind::Accept | RemarkKind::Dismiss => {
            let database = Places::of(cli).database;
            if !muster_store::exists(&database)? {
                return Ok(None);
            }
            let may_touch = runtime::build()?
                .block_on(async { may_touch_a_change(&database::reader_of_writer(&database).await?, annotation).await })?;
            Ok((!may_touch).then(|| {
                format!(
                    "it touches no change that was found so far: `{kind}` is about those that may have begun in the nights of --from \
                     to --until, which `muster night` prints in brackets behind `since`"
                )
            }))
        }
    }
}

/// Whether a change that was found may have begun in the nights of an annotation, or one may be found as they are not judged yet.
async fn may_touch_a_change(reader: &Reader, annotation: &Annotation) -> anyhow::Result<bool> {
    let Annotation { name, system, partition, environ, variable, from, until, .. } = annotation;
    let name = match name {
        Some(name) => Some(reader.names().await?.of(name)),
        None => None,
    };
    let (partition, environ, variable) = (partition.clone(), environ.clone(), variable.clone());
    let remark = Remark { partition, environ, name, variable, ..Remark::default() };
    let (from, until) = (*from, until.unwrap_or(*from));
    let is_since = |change: &Change| change.since_interval.0 <= until && from <= change.since_interval.1;
    let mut by_system: BTreeMap<String, Vec<KnownMetric>> = BTreeMap::new();
    for known in reader.metrics(&Filters::default()).await? {
        by_system.entry(known.metric.system.clone()).or_default().push(known);
    }
    for (of, metrics) in by_system.iter().filter(|(of, _)| system.as_ref().is_none_or(|system| system == *of)) {
        let mut meant = metrics.iter().filter(|known| remark.is_about(&known.metric)).peekable();
        if meant.peek().is_none() {
            continue;
        }
        if reader.judged(of).await?.until.is_none_or(|judged| judged < until) {
            return Ok(true);
        }
        let changes = reader.changes_before(of, Date::MAX).await?;
        if meant.any(|known| changes.get(&known.id).is_some_and(|changes| changes.iter().any(is_since))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Today, in UTC.
fn today() -> Date {
    Date::of(clock::now())
}

/// What an annotation is about, in the words that other commands print: `--system eidf:gpu`, `triad %size=2G @eidf:gpu+gnu`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Place {
    name: Option<String>,
    system: Option<String>,
    partition: Option<String>,
    environ: Option<String>,
}

impl Place {
    fn of(system: Option<&str>, args: &AnnotateArgs) -> anyhow::Result<Self> {
        let mut place = Self { name: args.name.clone(), partition: args.partition.clone(), ..Self::default() };
        place.environ.clone_from(&args.environ);
        if let Some((name, at)) = args.name.as_deref().and_then(|name| name.rsplit_once(" @")) {
            let (at, environ) = at.split_once('+').map_or((at, None), |(at, environ)| (at, Some(environ)));
            place.name = Some(name.to_owned());
            set("environments", &mut place.environ, environ)?;
            place.set_system(at)?;
        }
        system.map_or(Ok(()), |system| place.set_system(system))?;
        Ok(place)
    }

    /// `eidf`, or `eidf:gpu`
    fn set_system(&mut self, text: &str) -> anyhow::Result<()> {
        let (system, partition) = text.split_once(':').map_or((text, None), |(system, partition)| (system, Some(partition)));
        set("systems", &mut self.system, Some(system))?;
        set("partitions", &mut self.partition, partition)
    }
}

/// One annotation is about one of them, or about all.
fn set(what: &str, known: &mut Option<String>, name: Option<&str>) -> anyhow::Result<()> {
    if let (Some(known), Some(name)) = (&*known, name) {
        ensure!(known == name, "`{known}` and `{name}` are two {what}: an annotation is about one, or about all");
    }
    *known = known.take().or_else(|| name.map(str::to_owned));
    Ok(())
}

/// `maintenance for the nights of 2026-11-17 to 2026-11-18: triad, system eidf`
fn shown(annotation: &Annotation) -> String {
    let about = about(annotation);
    let about = if about.is_empty() { "all systems".to_owned() } else { about.join(", ") };
    format!("{} for {}: {about}", annotation.kind.as_str(), nights(annotation))
}

fn nights(annotation: &Annotation) -> String {
    let from = annotation.from;
    match annotation.until {
        Some(until) if until == from => format!("the night of {until}"),
        Some(until) => format!("the nights of {from} to {until}"),
        None => format!("the nights from {from}"),
    }
}

fn unannotate(cli: &Cli, number: i64, terminal: Terminal) -> anyhow::Result<u8> {
    let annotation = with(cli, async |upkeep| Ok(upkeep.unannotate(number).await?))?;
    terminal.print(&format!("annotation {number} is taken back: {}\n", shown(&annotation)));
    Ok(0)
}

fn list(cli: &Cli, terminal: Terminal) -> anyhow::Result<u8> {
    let all = runtime::build()?.block_on(async {
        let reader = Reader::open(Places::of(cli).database).await?;
        anyhow::Ok(reader.annotations().await?)
    })?;
    let said = |(number, annotation): &'_ (i64, Annotation)| Said {
        number: *number,
        kind: annotation.kind.as_str(),
        from: annotation.from,
        until: annotation.until,
        about: about(annotation),
        author: annotation.author.clone(),
        reason: annotation.reason.clone(),
        link: annotation.link.clone(),
    };
    terminal.print(&said::annotations(&all.iter().map(said).collect::<Vec<_>>(), &terminal.screen()));
    Ok(0)
}

/// What it is about; nothing is everything.
fn about(annotation: &Annotation) -> Vec<String> {
    let Annotation { name, system, partition, environ, variable, node, session, .. } = annotation;
    let scopes = [
        ("", name),
        ("system ", system),
        ("partition ", partition),
        ("environment ", environ),
        ("variable ", variable),
        ("node ", node),
        ("session ", session),
    ];
    scopes.into_iter().filter_map(|(what, name)| Some(format!("{what}{}", name.as_deref()?))).collect()
}

fn kind(kind: AnnotationKind) -> RemarkKind {
    match kind {
        AnnotationKind::Note => RemarkKind::Note,
        AnnotationKind::Maintenance => RemarkKind::Maintenance,
        AnnotationKind::Accept => RemarkKind::Accept,
        AnnotationKind::Dismiss => RemarkKind::Dismiss,
        AnnotationKind::Known => RemarkKind::Known,
    }
}

fn whole_id(cli: &Cli, session: &str, terminal: Terminal) -> anyhow::Result<String> {
    runtime::build()?.block_on(async {
        let reader = Reader::open(Places::of(cli).database).await?;
        Ok(database::session_named(cli, &reader, session, terminal).await?.session.id.0)
    })
}

pub fn alias(cli: &Cli, args: &AliasArgs, terminal: Terminal) -> anyhow::Result<u8> {
    match (&args.remove, &args.old, &args.new) {
        (Some(old), ..) => unalias(cli, old, terminal),
        (None, Some(old), Some(new)) => rename(cli, (old, new), terminal),
        // The arguments have been checked: this is --list.
        (None, ..) => list_aliases(cli, terminal),
    }
}

fn rename(cli: &Cli, (old, new): (&str, &str), terminal: Terminal) -> anyhow::Result<u8> {
    for name in [old, new] {
        if name.trim() != name || name.is_empty() {
            bail!("`{name}` is not a name: it is empty, or begins or ends with a space");
        }
    }
    let cases = with(cli, async |upkeep| Ok(upkeep.rename((old, new), &account::this_user(), clock::now()).await?))?;
    terminal.print(&format!("`{old}` is `{new}` in all nights: {cases} case(s)\n"));
    Ok(0)
}

fn unalias(cli: &Cli, old: &str, terminal: Terminal) -> anyhow::Result<u8> {
    let new = with(cli, async |upkeep| Ok(upkeep.unrename(old).await?))?;
    terminal.print(&format!("`{old}` is no longer `{new}`: each has its own history\n"));
    Ok(0)
}

fn list_aliases(cli: &Cli, terminal: Terminal) -> anyhow::Result<u8> {
    let all = runtime::build()?.block_on(async {
        let reader = Reader::open(Places::of(cli).database).await?;
        anyhow::Ok(reader.aliases().await?)
    })?;
    let all: Vec<_> = all.iter().map(|alias| (&*alias.old, &*alias.new, &*alias.author, alias.created)).collect();
    terminal.print(&said::aliases(&all, &terminal.screen()));
    Ok(0)
}
