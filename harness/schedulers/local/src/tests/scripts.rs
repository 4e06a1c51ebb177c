//! Job scripts in the shells that are here: what they write and with which status they end.

use muster_check::render::script::{Preparation, Script};
use muster_core::job::stage_folder::{EXIT_FILE, read_status};
use std::{
    fs,
    process::{Command, Stdio},
};

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|&line| line.to_owned()).collect()
}

/// The shells of this machine, with the arguments that make them a POSIX sh.
pub(super) fn shells() -> Vec<Vec<&'static str>> {
    let known = [vec!["sh"], vec!["dash"], vec!["bash", "--posix"], vec!["busybox", "sh"]];
    let is_here = |shell: &Vec<&str>| {
        let probe = Command::new(shell[0]).args(&shell[1..]).args(["-c", "exit 0"]).stderr(Stdio::null()).status();
        probe.is_ok_and(|status| status.success())
    };
    known.into_iter().filter(is_here).collect()
}

/// Runs a script in every shell; each must write `output` and end with `status`, in the file too.
fn expect(script: &Script, status: i32, output: &str) {
    let folder = tempfile::tempdir().unwrap();
    let shells = shells();
    assert!(!shells.is_empty());
    for shell in shells {
        // This shell is that of both parts.
        let text = script.render().unwrap().replacen("/bin/sh \"$0\"", &format!("{} \"$0\"", shell.join(" ")), 1);
        fs::write(folder.path().join("job.sh"), text).unwrap();
        let _ = fs::remove_file(folder.path().join(EXIT_FILE));
        let mut command = Command::new(shell[0]);
        let ran = command.args(&shell[1..]).arg("job.sh").current_dir(&folder).env("LIVE", "a \"b").output().unwrap();
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(String::from_utf8_lossy(&ran.stdout), output, "{shell:?}: {errors}");
        assert_eq!(ran.status.code(), Some(status), "{shell:?}: {errors}");
        let written = fs::read_to_string(folder.path().join(EXIT_FILE)).unwrap();
        assert_eq!(read_status(&written), Some(status), "{shell:?}");
    }
}

/// As it ends by itself.
#[test]
fn a_script_that_signals_itself_ends_with_that() {
    let top = "trap 'exit 4' TERM; TOP_PID=$$; fail() { kill -s TERM $TOP_PID; sleep 0.2; }; echo first; x=$(fail); echo more";
    for (body, status, output) in
        [("echo first; kill -TERM $$; echo more", 143, "first\n"), (top, 4, "first\n"), ("kill -KILL $$; echo more", 137, "")]
    {
        expect(&Script { executable: Some(body), ..Script::default() }, status, output);
    }
}

#[test]
fn a_value_is_what_was_written_but_for_the_dollar() {
    let rows = [
        (r#"{"a": "b\"c"}"#, r#"{"a": "b\"c"}"#),
        (r"C:\dir\", r"C:\dir\"),
        (r"a\\b\n", r"a\\b\n"),
        ("`date` 'x' !", "`date` 'x' !"),
        ("$LIVE", r#"a "b"#),
        (r"\$LIVE", "$LIVE"),
        (r"\\$LIVE", r"\$LIVE"),
        ("costs 5$", "costs 5$"),
        (r#"${UNSET:-a "b" c}"#, r#"a "b" c"#),
        (r#"$(printf '%s-' "x y" ")" '(') "q""#, r#"x y-)-(- "q""#),
        ("$((2 * (3 + 4)))", "14"),
        ("two\nlines", "two\nlines"),
        ("", ""),
        ("ü→", "ü→"),
    ];
    let command = owned(&["printenv", "K"]);
    for (value, seen) in rows {
        let exports = [("K".to_owned(), value.to_owned())];
        let preparations = [Preparation { exports: &exports, ..Preparation::default() }];
        expect(&Script { preparations: &preparations, command: Some(&command), ..Script::default() }, 0, &format!("{seen}\n"));
    }
}

#[test]
fn every_short_value_without_a_dollar_reaches_the_job_unchanged() {
    let alphabet = ["\"", "\\", "`", "'", "!", "\n", " ", "a"];
    let longer = |shorter: &[String]| -> Vec<String> {
        shorter.iter().flat_map(|value| alphabet.map(|character| format!("{value}{character}"))).collect()
    };
    let one = longer(&[String::new()]);
    let two = longer(&one);
    let values = [&one[..], &two, &longer(&two)].concat();
    let exports: Vec<(String, String)> = values.iter().enumerate().map(|(n, value)| (format!("K{n}"), value.clone())).collect();
    let options: Vec<String> = exports.iter().map(|(name, _)| format!("\"${name}\"")).collect();
    let output = format!("<{}>", values.join("><"));
    let preparations = [Preparation { exports: &exports, ..Preparation::default() }];
    let script =
        Script { preparations: &preparations, executable: Some("printf '<%s>'"), executable_opts: &options, ..Script::default() };
    expect(&script, 0, &output);
}

#[test]
fn the_words_of_a_command_reach_it_unchanged() {
    let words = ["$HOME", "it's", "", "*", "a  b", "\\n", "\"", "`id`", "-n", "x\ny"];
    let command: Vec<String> = owned(&["printf", "<%s>"]).into_iter().chain(owned(&words)).collect();
    let output = format!("<{}>", words.join("><"));
    expect(&Script { command: Some(&command), ..Script::default() }, 0, &output);
}

#[test]
fn the_status_is_the_executables_and_else_the_last_commands() {
    let rows: [(&[&str], &str, &[&str], i32); 8] = [
        (&[], "true", &[], 0),
        (&[], "(exit 7)", &[], 7),
        (&["false"], "true", &[], 0),
        (&[], "(exit 7)", &["true"], 7),
        (&[], "true", &["false", "(exit 5)"], 5),
        (&[], "true", &["false", "true"], 0),
        (&["set -e", "false"], "exit 9", &["exit 8"], 1),
        (&["cd /"], "exec sh -c 'exit 6'", &["exit 8"], 6),
    ];
    for (prerun, executable, postrun, status) in rows {
        let (prerun, postrun) = (owned(prerun), owned(postrun));
        let script = Script { prerun_cmds: &prerun, executable: Some(executable), postrun_cmds: &postrun, ..Script::default() };
        expect(&script, status, "");
    }
}

#[test]
fn a_later_export_sees_an_earlier_one_and_options_expand() {
    let exports = [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "$A$A".to_owned())];
    let options = owned(&["$B", "\"$B $A\"", "| tr 1 2"]);
    let prepare = owned(&["echo prepared"]);
    let preparations = [Preparation { prepare_cmds: &prepare, exports: &exports, ..Preparation::default() }];
    let script = Script { preparations: &preparations, executable: Some("echo"), executable_opts: &options, ..Script::default() };
    expect(&script, 0, "prepared\n22 22 2\n");
}
