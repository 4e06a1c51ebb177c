//! `muster results demo`: a year of an invented site, so that every question can be tried.

use crate::{
    args::DemoArgs,
    terminal::{Terminal, unwritten::Written},
};
use anyhow::{Context, bail, ensure};
use muster_host::{clock, owner};
use muster_judge::sample::year::{Year, YearSpec};
use muster_session::runtime;
use muster_store::{Location, Store, demo};
use muster_text::time::Date;
use std::fs;

pub fn demo(args: &DemoArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let location = Location::from(&args.file);
    let Location::File(file) = &location else {
        bail!("{} is no file: example data never goes to a server, where it would stand among results", location.display())
    };
    ensure!(
        file == &args.file,
        "{} is no name of a file that other commands can open: write ./{0}, or choose another",
        args.file.display()
    );
    ensure!(!file.exists(), "{} is there already: example data goes to a file of its own", file.display());
    // The last night is that of yesterday, so that periods such as now-1w have something in them.
    let today = Date::of(clock::now()).0;
    let nights = i32::try_from(args.nights).context("--nights")?;
    let (seed, systems, nights, first) = (args.seed, args.systems, args.nights, today - nights);
    let year = Year::new(YearSpec { seed, systems, nights, first });
    let told = |night: usize| {
        if night.is_multiple_of(73) || night == nights {
            terminal.note(&format!("{night} of {nights} nights are written"));
        }
    };
    let written = runtime::build()?.block_on(async {
        let store = Store::open(&location).await?;
        let written = store.write_year(&year, &owner::this_owner(), &told).await;
        store.close().await?;
        anyhow::Ok(written?)
    })?;
    let truth = file.with_extension("truth.csv");
    fs::write(&truth, demo::truth(&year)).or_unwritten("the file", &truth)?;
    let (shown, again) = (file.display(), location.flag());
    terminal.print(&format!(
        "{} sessions with {} attempts and {} figures are in {shown}; {} says what really happened\n\nTry:\n  muster night{again}\n  \
         muster results list{again}\n",
        written.sessions,
        written.attempts,
        written.figures,
        truth.display()
    ));
    Ok(0)
}
