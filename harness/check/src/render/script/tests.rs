use super::*;
use muster_core::job::stage_folder::{FAULT_FILE, read_status};

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|&line| line.to_owned()).collect()
}

#[test]
fn a_script_runs_its_parts_in_order_and_keeps_the_status() {
    let script = Script {
        preparations: &[
            Preparation { prepare_cmds: &owned(&["ulimit -s unlimited"]), ..Preparation::default() },
            Preparation {
                exports: &[("OMP_NUM_THREADS".into(), "8".into()), ("DATA".into(), "$HOME/data".into())],
                ..Preparation::default()
            },
        ],
        prerun_cmds: &owned(&["cat > in.txt <<EOF\nn = 4\nEOF"]),
        executable: Some("./bench"),
        executable_opts: &owned(&["-n", "$OMP_NUM_THREADS", "> bench.csv"]),
        postrun_cmds: &owned(&["cat bench.csv", "rm -f core.*"]),
        ..Script::default()
    };
    let contained = Script { in_container: true, ..script }.render().unwrap();
    let text = script.render().unwrap();
    assert_eq!(contained, format!("#!/bin/sh\n{}", text.split_once("\nshift\n").unwrap().1));
    insta::assert_snapshot!(script.render().unwrap(), @r#"
    #!/bin/sh
    if [ "$1" != rfm_part ]; then
    trap rfm_signal=1 TERM INT HUP
    trap : USR1 USR2
    /bin/sh "$0" rfm_part
    rfm_status=$?
    echo "$rfm_status" > rfm_job.exit
    exit "$rfm_status"
    fi
    shift
    kill() { for rfm_arg do shift; [ "$rfm_arg" != "-$$" ] || rfm_arg=0; set -- "$@" "$rfm_arg"; done; command kill "$@"; }
    {
    :
    ulimit -s unlimited
    export OMP_NUM_THREADS="8"
    export DATA="$HOME/data"
    cat > in.txt <<EOF
    n = 4
    EOF
    ./bench -n $OMP_NUM_THREADS > bench.csv
    rfm_status=$?
    cat bench.csv
    rm -f core.*
    rfm_post=$?
    exit "$((rfm_status ? rfm_status : rfm_post))"
    }
    "#);
}

#[test]
fn modules_stand_between_the_commands_and_the_variables_of_their_layer() {
    let module =
        |name: &str| Module { name: name.into(), collection: false, path: None, span: muster_text::diagnostic::Span::default() };
    let script = Script {
        modules_system: Some(ModulesSystem::Lmod),
        preparations: &[
            Preparation {
                prepare_cmds: &owned(&["module use /apps"]),
                modules: &[module("base")],
                exports: &[("ROOT".into(), "$BASE_ROOT".into())],
            },
            Preparation { modules: &[module("gcc/12")], ..Preparation::default() },
        ],
        requires: Some("apptainer"),
        executable: Some("./bench"),
        ..Script::default()
    };
    insta::assert_snapshot!(script.render().unwrap(), @r#"
    #!/bin/sh
    if [ "$1" != rfm_part ]; then
    trap rfm_signal=1 TERM INT HUP
    trap : USR1 USR2
    /bin/sh "$0" rfm_part
    rfm_status=$?
    echo "$rfm_status" > rfm_job.exit
    exit "$rfm_status"
    fi
    shift
    kill() { for rfm_arg do shift; [ "$rfm_arg" != "-$$" ] || rfm_arg=0; set -- "$@" "$rfm_arg"; done; command kill "$@"; }
    {
    :
    for rfm_init in "${LMOD_PKG:+$LMOD_PKG/init/sh}" "${MODULESHOME:+$MODULESHOME/init/sh}" /etc/profile.d/lmod.sh /etc/profile.d/z00_lmod.sh /usr/share/lmod/lmod/init/sh; do
    if [ -r "$rfm_init" ]; then . "$rfm_init"; fi
    if command -v module > /dev/null; then break; fi
    done
    rfm_stage=$PWD
    rfm_fault() {
    printf '%s\n' "$1" > "$rfm_stage/rfm_job.fault"
    printf '%s\n' "$1" >&2
    exit 1
    }
    rfm_load() {
    command -v "$1" > /dev/null || rfm_fault "\`$*\` failed: there is no \`$1\` on $(uname -n); prepare_cmds may source what defines it"
    "$@" || rfm_fault "\`$*\` failed on $(uname -n)"
    }
    module use /apps
    rfm_load module load base
    export ROOT="$BASE_ROOT"
    rfm_load module load gcc/12
    command -v apptainer > /dev/null || rfm_fault "apptainer is not installed on $(uname -n): it is what runs the container"
    ./bench
    }
    "#);
    let contained = Script { in_container: true, requires: None, ..script }.render().unwrap();
    assert!(contained.contains("termination-log") && !contained.contains(FAULT_FILE), "{contained}");
    let without = Script { modules_system: Some(ModulesSystem::Nomod), requires: None, ..script }.render().unwrap();
    assert!(!without.contains("rfm_load") && !without.contains("rfm_fault"), "{without}");
}

#[test]
fn the_words_of_a_command_are_passed_as_they_are() {
    let argv = owned(&["/opt/my bench", "$HOME", "it's", "", "*"]);
    let text = Script { command: Some(&argv), ..Script::default() }.render().unwrap();
    assert!(text.contains("\n'/opt/my bench' '$HOME' 'it'\\''s' '' '*'\n"), "{text}");
}

#[test]
fn only_a_dollar_is_live_in_a_value() {
    let rows = [
        ("plain text", r#""plain text""#),
        ("$HOME/x and ${TMPDIR:-/tmp}", r#""$HOME/x and ${TMPDIR:-/tmp}""#),
        (r#"{"a": "b\"c"}"#, r#""{\"a\": \"b\\\"c\"}""#),
        (r"\$HOME", r#""\$HOME""#),
        (r"C:\dir\", r#""C:\\dir\\""#),
        ("`date`", r#""\`date\`""#),
        (r#"$(printf "%s" ')' "$(echo "(")") "x""#, r#""$(printf "%s" ')' "$(echo "(")") \"x\"""#),
        ("$((1 + (2)))", r#""$((1 + (2)))""#),
        (r#"${X:-"a"}"#, r#""${X:-\"a\"}""#),
        ("costs 5$", r#""costs 5$""#),
        ("é$É", r#""é$É""#),
        ("two\nlines", "\"two\nlines\""),
    ];
    for (value, written) in rows {
        assert_eq!(export("K", value).unwrap(), format!("export K={written}\n"), "{value}");
    }
}

#[test]
fn what_would_break_the_script_is_refused() {
    let nul = owned(&["true", "a\0b"]);
    let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let argv = owned(&["true"]);
    let (nul_value, unclosed, unclosed_brace) = (pair("K", "\0"), pair("K", "$(date"), pair("K", "${HOME"));
    let (digit, injected, empty) = (pair("1K", "v"), pair("K=x; rm", "v"), pair("", "v"));
    let layer = |exports| [Preparation { exports, ..Preparation::default() }];
    let layers = [&nul_value, &unclosed, &unclosed_brace, &digit, &injected, &empty].map(|exports| layer(exports));
    let with = |layer| Script { preparations: layer, ..Script::default() };
    let rows = [
        Script { prerun_cmds: &nul, ..Script::default() },
        Script { executable: Some("true"), command: Some(&argv), ..Script::default() },
        with(&layers[0]),
        with(&layers[1]),
        with(&layers[2]),
        with(&layers[3]),
        with(&layers[4]),
        with(&layers[5]),
    ];
    let messages: Vec<String> = rows.iter().map(|script| script.render().unwrap_err()).collect();
    insta::assert_snapshot!(messages.join("\n"), @r"
    prerun_cmds[1] contains a NUL byte
    `command` and `executable` cannot both be set
    env_vars.K contains a NUL byte
    the value of K has `$(` that nothing closes; write \$ for a dollar sign
    the value of K has `${` that nothing closes; write \$ for a dollar sign
    `1K` is not a variable's name: use letters, digits and _, no digit first
    `K=x; rm` is not a variable's name: use letters, digits and _, no digit first
    `` is not a variable's name: use letters, digits and _, no digit first
    ");
}

#[test]
fn a_status_without_its_newline_is_not_written_yet() {
    for (content, status) in [("0\n", Some(0)), ("137\n", Some(137)), ("13", None), ("", None), ("x\n", None)] {
        assert_eq!(read_status(content), status, "{content:?}");
    }
}

#[test]
fn a_command_begins_with_the_words_of_its_launcher() {
    let argv = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let srun = "srun --kill-on-bad-exit=1";
    let rows = [
        (srun, argv(&[srun, "./a b", "x"]), "srun --kill-on-bad-exit=1 './a b' x"),
        (srun, argv(&["./a", srun]), "./a 'srun --kill-on-bad-exit=1'"),
        // A scheduler without launchers, or `launcher: none`.
        ("", argv(&["", "./a"]), "./a"),
        ("", argv(&["./a"]), "./a"),
    ];
    for (launcher, command, expected) in rows {
        let script = Script { command: Some(&command), launcher, ..Script::default() };
        assert_eq!(script.program().unwrap().unwrap(), expected);
    }
}
