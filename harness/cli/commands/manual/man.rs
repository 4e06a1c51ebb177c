//! `muster man`: the page of the program, then one for each command.

use crate::{
    args::{self, Cli},
    terminal::Terminal,
};
use clap::Command;
use clap_mangen::Man;
use std::io;

pub fn man(cli: &Cli, terminal: Terminal) -> anyhow::Result<u8> {
    let mut command = args::definition(&cli.files.schedulers).disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    render(&command, &mut pages)?;
    terminal.print(&String::from_utf8_lossy(&pages));
    Ok(0)
}

fn render(command: &Command, pages: &mut Vec<u8>) -> io::Result<()> {
    Man::new(command.clone()).render(pages)?;
    command.get_subcommands().filter(|command| !command.is_hide_set()).try_for_each(|command| render(command, pages))
}
