//! `muster completions SHELL`: commands, flags and their values. Values that files and the database have are asked for: names and tags
//! of the checks that `-c` names, systems and modes of the site files, stored sessions.
//!
//! Clap's own way to ask the program while a user types is marked unstable, and its scripts change with it. So the scripts are
//! the static ones, each with a few lines that ask `muster completions --list KIND` with the files that the line names.

use crate::{
    args::{self, Cli, Completed},
    inputs::{files, selection},
    settings::Places,
    terminal::Terminal,
};
use clap::ValueEnum;
use clap_complete::Shell;
use muster_host::owner;
use muster_session::runtime;
use muster_store::Reader;
use muster_text::yaml::Node;
use std::collections::BTreeSet;

/// Which flags have which values.
const FLAGS: [(Completed, &[&str]); 5] = [
    (Completed::Names, &["-n", "--name", "-x", "--exclude"]),
    (Completed::Tags, &["-t", "--tag", "-T", "--exclude-tag"]),
    (Completed::Systems, &["--system"]),
    (Completed::Modes, &["--mode"]),
    (Completed::Sessions, &["--restore-session"]),
];
/// The words of a command whose next word is a session.
const BEFORE_SESSION: [&str; 3] = ["attach", "top", "results show"];
/// How many sessions are offered, the newest ones.
const SESSIONS: u32 = 20;

const BASH: &str = r#"
_muster_named() {
    local asked=() at kind="" current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
    case "$previous" in
FLAGS
        *) case "${COMP_WORDS[COMP_CWORD-2]} $previous" in
SESSIONS
        esac ;;
    esac
    if [[ -z "$kind" || "$current" == -* ]]; then
        _muster "$@"
        return
    fi
    for ((at = 1; at < COMP_CWORD - 1; at++)); do
        case "${COMP_WORDS[at]}" in
            -c|--checkpath|-C|--config-file|--db) asked+=("${COMP_WORDS[at]}" "${COMP_WORDS[at+1]}") ;;
        esac
    done
    COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" completions --list "$kind" "${asked[@]}" 2>/dev/null)" -- "$current"))
}
complete -F _muster_named -o bashdefault -o default muster
"#;

const ZSH: &str = r#"
_muster_values() {
    local -a asked values
    local at
    for ((at = 2; at < CURRENT - 1; at++)); do
        case "${words[at]}" in
            -c|--checkpath|-C|--config-file|--db) asked+=("${words[at]}" "${words[at+1]}") ;;
        esac
    done
    values=("${(@f)$("${words[1]}" completions --list "$1" "${asked[@]}" 2>/dev/null)}")
    compadd -a values
}
"#;

const FISH: &str = r"
function __fish_muster_values
    set -l words (commandline -opc)
    set -l asked
    for at in (seq 2 (math (count $words) - 1))
        if contains -- $words[$at] -c --checkpath -C --config-file --db
            set -a asked $words[$at] $words[(math $at + 1)]
        end
    end
    $words[1] completions --list $argv[1] $asked 2>/dev/null
end
";

/// Prints the script that teaches a shell, or the values that such a script asks for.
pub fn completions(cli: &Cli, shell: Option<Shell>, list: Option<Completed>, terminal: Terminal) -> anyhow::Result<u8> {
    if let Some(kind) = list {
        let values = values(cli, kind)?;
        terminal.print(&values.into_iter().map(|value| value + "\n").collect::<String>());
    }
    let Some(shell) = shell else { return Ok(0) };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::definition(&cli.files.schedulers), "muster", &mut script);
    terminal.print(&asking(shell, &String::from_utf8_lossy(&script)));
    Ok(0)
}

fn word(kind: Completed) -> String {
    kind.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The script, with values that are asked for where there are some.
fn asking(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}{}", bash()),
        Shell::Fish => format!("{script}{FISH}{}", fish()),
        Shell::Zsh => {
            let mut lines: Vec<String> = script.lines().map(zsh).collect();
            // The first line must stay the first: it tells zsh what the file is for.
            lines.insert(1, ZSH.to_owned());
            lines.join("\n") + "\n"
        }
        _ => script.to_owned(),
    }
}

fn bash() -> String {
    let flags: Vec<String> =
        FLAGS.iter().map(|(kind, flags)| format!("        {}) kind={} ;;", flags.join("|"), word(*kind))).collect();
    let commands: Vec<String> = BEFORE_SESSION.iter().map(|words| format!("*\"{words}\"")).collect();
    let sessions = format!("            {}) kind={} ;;", commands.join("|"), word(Completed::Sessions));
    BASH.replace("FLAGS", &flags.join("\n")).replace("SESSIONS", &sessions)
}

fn fish() -> String {
    let flag = |flag: &str| match flag.strip_prefix("--") {
        Some(long) => format!("-l {long}"),
        None => format!("-s {}", flag.trim_start_matches('-')),
    };
    let of_kind = |(kind, flags): &(Completed, &[&str])| -> String {
        let line = |name: &&str| format!("complete -c muster {} -x -a '(__fish_muster_values {})'\n", flag(name), word(*kind));
        flags.iter().map(line).collect()
    };
    let of_command = |words: &&str| {
        let seen: Vec<String> = words.split(' ').map(|word| format!("__fish_seen_subcommand_from {word}")).collect();
        format!("complete -c muster -n '{}' -f -a '(__fish_muster_values {})'\n", seen.join("; and "), word(Completed::Sessions))
    };
    FLAGS.iter().map(of_kind).chain(BEFORE_SESSION.iter().map(of_command)).collect()
}

/// A line of zsh's script: `'*-n+[..]:REGEX:_default'`, and `'::session -- ..:_default'` of commands.
fn zsh(line: &str) -> String {
    let has = |flag: &str| {
        let ends = if flag.starts_with("--") { "=[" } else { "+[" };
        ["'*", "'"].iter().any(|begin| line.starts_with(&format!("{begin}{flag}{ends}")))
    };
    let of_flag = FLAGS.iter().find(|(_, flags)| flags.iter().any(|flag| has(flag))).map(|(kind, _)| *kind);
    let is_session = line.starts_with("'::session --");
    match of_flag.or_else(|| is_session.then_some(Completed::Sessions)) {
        Some(kind) => line.replace(":_default'", &format!(":_muster_values {}'", word(kind))),
        None => line.to_owned(),
    }
}

/// Mistakes in the files are not reported here.
fn values(cli: &Cli, kind: Completed) -> anyhow::Result<Vec<String>> {
    let checks = || files::checks(&cli.files.checkpath, &cli.files.schedulers);
    let is_concrete = |tree: &Node| tree.get("abstract").and_then(Node::text) != Some("true");
    Ok(match kind {
        Completed::Names => {
            let concrete = checks()?.checks.into_iter().filter(|document| is_concrete(&document.tree));
            concrete.map(|document| document.name.to_string()).collect()
        }
        Completed::Tags => {
            let loaded = checks()?;
            let tags = loaded.checks.iter().filter_map(|document| document.tree.get("tags"));
            let tags = tags.flat_map(Node::one_or_many).filter(|tag| !tag.has_placeholder()).filter_map(Node::text);
            tags.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
        }
        Completed::Systems => {
            let sites = files::sites(&cli.files.config_file, &cli.files.checkpath, &cli.files.schedulers)?;
            let of = |system: &muster_check::site::System| {
                let parts = system.partitions.iter().map(|partition| format!("{}:{}", system.name, partition.name));
                std::iter::once(system.name.clone()).chain(parts).collect::<Vec<_>>()
            };
            sites.systems.iter().flat_map(of).collect()
        }
        Completed::Modes => {
            let site = selection::site(&cli.files, false)?;
            site.system.modes.iter().map(|mode| mode.name.clone()).collect()
        }
        Completed::Sessions => {
            let rows = runtime::build()?.block_on(async {
                let reader = Reader::open(Places::of(cli).database).await?;
                reader.sessions(SESSIONS, &owner::is_alive).await
            })?;
            rows.into_iter().map(|row| row.session.id.0).collect()
        }
    })
}
