//! `muster completions SHELL`: commands, flags and their values; after `-n` and `-x` the names of the checks that `-c` names.
//!
//! Clap's own way to ask the program while a user types is marked unstable, and its scripts change with it. So the scripts are
//! the static ones, each with a few lines that ask `muster completions --names` with the `-c` of the line.

use crate::{
    args::{self, Cli},
    inputs::files,
    terminal::Terminal,
};
use clap_complete::Shell;
use muster_text::yaml::Node;

const BASH: &str = r#"
_muster_named() {
    local asked=() at
    case "${COMP_WORDS[COMP_CWORD-1]}" in
        -n|--name|-x|--exclude)
            for ((at = 1; at < COMP_CWORD - 1; at++)); do
                case "${COMP_WORDS[at]}" in
                    -c|--checkpath) asked+=(-c "${COMP_WORDS[at+1]}") ;;
                esac
            done
            COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" completions --names "${asked[@]}" 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
            ;;
        *) _muster "$@" ;;
    esac
}
complete -F _muster_named -o bashdefault -o default muster
"#;

const ZSH: &str = r#"
_muster_names() {
    local -a asked names
    local at
    for ((at = 2; at < CURRENT - 1; at++)); do
        case "${words[at]}" in
            -c|--checkpath) asked+=(-c "${words[at+1]}") ;;
        esac
    done
    names=("${(@f)$("${words[1]}" completions --names "${asked[@]}" 2>/dev/null)}")
    compadd -a names
}
"#;

const FISH: &str = r"
function __fish_muster_names
    set -l words (commandline -opc)
    set -l asked
    for at in (seq 2 (math (count $words) - 1))
        if contains -- $words[$at] -c --checkpath
            set -a asked -c $words[(math $at + 1)]
        end
    end
    $words[1] completions --names $asked 2>/dev/null
end
complete -c muster -s n -l name -x -a '(__fish_muster_names)'
complete -c muster -s x -l exclude -x -a '(__fish_muster_names)'
";

/// Prints the script that teaches a shell, or the names that such a script asks for.
pub fn completions(cli: &Cli, shell: Option<Shell>, terminal: Terminal) -> anyhow::Result<u8> {
    let Some(shell) = shell else { return names(cli, terminal) };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::definition(&cli.files.schedulers), "muster", &mut script);
    terminal.print(&asking(shell, &String::from_utf8_lossy(&script)));
    Ok(0)
}

/// The script, with names of checks where one is wanted.
fn asking(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}{BASH}"),
        Shell::Fish => format!("{script}{FISH}"),
        Shell::Zsh => {
            let wants_name =
                |line: &str| ["-n+", "--name=", "-x+", "--exclude="].iter().any(|flag| line.starts_with(&format!("'*{flag}[")));
            let asked =
                |line: &str| if wants_name(line) { line.replace(":_default'", ":_muster_names'") } else { line.to_owned() };
            let mut lines: Vec<String> = script.lines().map(asked).collect();
            // The first line must stay the first: it tells zsh what the file is for.
            lines.insert(1, ZSH.to_owned());
            lines.join("\n") + "\n"
        }
        _ => script.to_owned(),
    }
}

/// One name a line. Mistakes in the files are not reported here.
fn names(cli: &Cli, terminal: Terminal) -> anyhow::Result<u8> {
    let loaded = files::checks(&cli.files.checkpath, &cli.files.schedulers)?;
    let is_concrete = |tree: &Node| tree.get("abstract").and_then(Node::text) != Some("true");
    let names =
        loaded.checks.iter().filter(|document| is_concrete(&document.tree)).map(|document| format!("{}\n", document.name));
    terminal.print(&names.collect::<String>());
    Ok(0)
}
