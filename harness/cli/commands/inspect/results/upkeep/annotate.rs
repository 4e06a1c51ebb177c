//! `muster results annotate` and `muster results alias`: what people know.

use super::with;
use crate::{
    args::{AnnotateArgs, AnnotationKind, Cli},
    settings::Places,
    terminal::Terminal,
    wiring::database,
};
use anyhow::{bail, ensure};
use muster_host::{account, clock};
use muster_session::runtime;
use muster_store::{Annotation, Kind, Reader};

pub fn annotate(cli: &Cli, args: &AnnotateArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let until = args.until.unwrap_or(args.from);
    if until < args.from {
        bail!("--until {until} is before --from {}", args.from);
    }
    let is_narrow = args.node.is_some() || args.session.is_some();
    ensure!(
        args.kind == AnnotationKind::Note || !is_narrow,
        "--node and --session are for --kind note: verdicts are about the figures of whole nights"
    );
    if args.reason.trim().is_empty() {
        bail!("--reason is empty: write why, in one sentence");
    }
    let annotation = Annotation {
        kind: kind(args.kind),
        system: cli.files.system.clone(),
        partition: args.partition.clone(),
        environ: args.environ.clone(),
        name: args.name.clone(),
        variable: args.variable.clone(),
        node: args.node.clone(),
        session: args.session.as_deref().map(|session| whole_id(cli, session)).transpose()?,
        from: args.from,
        until: Some(until),
        author: account::this_user(),
        reason: args.reason.clone(),
        link: args.link.clone(),
        created: clock::now(),
    };
    let number = with(cli, async |upkeep| Ok(upkeep.annotate(&annotation).await?))?;
    let nights =
        if until == args.from { format!("the night of {until}") } else { format!("the nights of {} to {until}", args.from) };
    terminal.print(&format!("annotation {number}: {} for {nights}\n", annotation.kind.as_str()));
    Ok(0)
}

fn kind(kind: AnnotationKind) -> Kind {
    match kind {
        AnnotationKind::Note => Kind::Note,
        AnnotationKind::Maintenance => Kind::Maintenance,
        AnnotationKind::Accept => Kind::Accept,
        AnnotationKind::Dismiss => Kind::Dismiss,
        AnnotationKind::Known => Kind::Known,
    }
}

fn whole_id(cli: &Cli, session: &str) -> anyhow::Result<String> {
    runtime::build()?.block_on(async {
        let reader = Reader::open(Places::of(cli).database).await?;
        Ok(database::session_named(&reader, session).await?.session.id.0)
    })
}

pub fn alias(cli: &Cli, (old, new): (&str, &str), terminal: Terminal) -> anyhow::Result<u8> {
    for name in [old, new] {
        if name.trim() != name || name.is_empty() {
            bail!("`{name}` is no name of a check, a parameter or a case");
        }
    }
    let cases = with(cli, async |upkeep| Ok(upkeep.rename((old, new), &account::this_user(), clock::now()).await?))?;
    terminal.print(&format!("`{old}` is `{new}` in all nights: {cases} case(s)\n"));
    Ok(0)
}
