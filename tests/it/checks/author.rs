//! What an author of checks types: `muster check new|fmt|lint`, completions, the manual.

use crate::sandbox::{Ended, Sandbox};
use insta::assert_snapshot;
use std::process::Command;

const SITE: &str = "name: all
partitions:
  - { name: local, scheduler: local, environs: [default] }
  - { name: k8s, scheduler: k8s, environs: [default] }
  - { name: ipu, scheduler: ipu, environs: [default] }
  - name: ec2
    scheduler: ec2
    environs: [default]
    sched_options: { region: eu-west-1, bucket: s3://bench, subnets: [subnet-0a1b2c3d] }
  - { name: slurm, scheduler: slurm, environs: [default] }
  - { name: squeue, scheduler: squeue, environs: [default] }
  - { name: fake, scheduler: fake, environs: [default] }
environments: [{ name: default }]
";

fn ok(ended: &Ended) -> &str {
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{}", ended.stdout);
    &ended.stdout
}

#[test]
fn a_new_check_loads_lists_is_in_order_and_passes_at_once() {
    let sandbox = Sandbox::new();
    sandbox.write("site-config/all.yaml", SITE);
    for scheduler in ["local", "k8s", "ipu", "ec2", "slurm", "squeue", "fake"] {
        ok(&sandbox.muster(&["check", "new", "--scheduler", scheduler, &format!("checks/my-{scheduler}")]));
        let path = format!("checks/my-{scheduler}/my-{scheduler}.check.yaml");
        let list = sandbox.muster(&["-c", &path, "--system", "all", "-l=C"]);
        assert_eq!(ok(&list).matches(&format!("@all:{scheduler}+default")).count(), 2, "{}", list.stdout);
        assert_eq!(ok(&sandbox.muster(&["check", "fmt", "--check", &path])), "", "{scheduler}");
        assert_eq!(ok(&sandbox.muster(&["check", "lint", &path])), "1 check in 1 file: no findings\n", "{scheduler}");
    }
    for path in ["checks/my-local", "checks/my-fake"] {
        let run = sandbox.muster(&["-c", path, "--system", "all", "-r", "--nocolor"]);
        assert!(ok(&run).contains("2 cases in"), "{}", run.stdout);
    }
}

#[test]
fn what_is_there_is_never_overwritten_and_a_name_nobody_would_find_is_refused() {
    let sandbox = Sandbox::with_check("mine");
    let say = |args: &[&str]| {
        let ended = sandbox.muster(&[&["check", "new"], args].concat());
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""));
        ended.stderr
    };
    assert_snapshot!(say(&["check.yaml"]), @"error: check.yaml is there already: nothing was written");
    assert_snapshot!(say(&["mine.yaml"]), @"error: mine.yaml would not be found in a folder: call it mine.check.yaml");
    assert_snapshot!(say(&["my check"]), @"error: `my check` cannot be a check's name: use letters, digits, `_`, `-` and `.`, a letter or digit first");
    assert_eq!(sandbox.read("check.yaml"), "mine");
}

#[test]
fn fmt_lists_files_that_are_not_formatted_or_formats_them() {
    let sandbox = Sandbox::new();
    let (untidy, tidy) = (
        "name:   a   # mine\ntags: [a,b]\n\n\nsanity:\n- found: x\n",
        "name: a   # mine\ntags: [a, b]\n\nsanity:\n  - found: x\n",
    );
    sandbox.write("checks/a.check.yaml", untidy).write("checks/b.check.yaml", tidy);
    let check = sandbox.muster(&["check", "fmt", "--check", "checks"]);
    assert_eq!((check.code, &*check.stdout, &*check.stderr), (Some(1), "not formatted: checks/a.check.yaml\n", ""));
    assert_eq!(sandbox.read("checks/a.check.yaml"), untidy);
    assert_eq!(ok(&sandbox.muster(&["check", "fmt", "checks"])), "formatted: checks/a.check.yaml\n");
    assert_eq!(sandbox.read("checks/a.check.yaml"), tidy);
    assert_eq!(ok(&sandbox.muster(&["check", "fmt", "checks"])), "");

    sandbox.write("checks/c.check.yaml", "name: [a\nb: 1\n");
    let broken = sandbox.muster(&["check", "fmt", "checks"]);
    assert_eq!((broken.code, &*broken.stdout), (Some(2), ""));
    assert!(broken.stderr.contains("--> checks/c.check.yaml:"), "{}", broken.stderr);
    assert_eq!(sandbox.read("checks/c.check.yaml"), "name: [a\nb: 1\n");
}

#[test]
fn fmt_finds_site_files_in_their_folder_and_says_where_it_has_looked() {
    let sandbox = Sandbox::new();
    sandbox.write("site-config/all.yaml", "name:   all\n").write("sites/all.yaml", "name:   all\n");
    assert_eq!(ok(&sandbox.muster(&["check", "fmt", "."])), "formatted: site-config/all.yaml\n");
    assert_eq!(ok(&sandbox.muster(&["check", "fmt", "site-config"])), "");
    let elsewhere = sandbox.muster(&["check", "fmt", "sites"]);
    assert_eq!(elsewhere.code, Some(2));
    assert_snapshot!(elsewhere.stderr, @"error: check fmt sites holds no check.yaml, no *.check.yaml and no site-config/*.yaml (a site file that is elsewhere is named by itself)");
    assert_eq!(ok(&sandbox.muster(&["check", "fmt", "sites/all.yaml"])), "formatted: sites/all.yaml\n");
}

#[test]
fn fmt_filters_standard_input_for_editors() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "a:   [1,2]\n");
    let file = std::fs::File::open(sandbox.path("in")).expect("a file");
    let output = sandbox.command(&["check", "fmt", "-"]).stdin(file).output().expect("runs");
    assert_eq!(ok(&sandbox.ended(&output)), "a: [1, 2]\n");
}

const SUSPECT: &str = "name: suspect
valid_systems: [\"*\"]
executable: a
sanity:
  - found: 'x*'
";

#[test]
fn lint_has_the_mistakes_of_all_variants() {
    let check = "name: one\nvalid_systems: ['*']\nparameters: { i: [2, 3, 1] }\nnum_tasks: ${{ 4 / (i - 1) }}\nexecutable: 'true'\nsanity: []\n";
    let sandbox = Sandbox::with_check(check);
    let lint = sandbox.muster(&["check", "lint", "check.yaml"]);
    assert_eq!(lint.code, Some(2), "{}", lint.stdout);
    assert!(lint.stderr.contains("num_tasks: ${{ 4 / (i - 1) }}"), "{}", lint.stderr);
}

#[test]
fn lint_reports_place_line_hint_and_name_and_ends_with_1() {
    let sandbox = Sandbox::with_check(SUSPECT);
    let lint = sandbox.muster(&["check", "lint", "check.yaml"]);
    assert_eq!((lint.code, &*lint.stderr), (Some(1), ""));
    assert_snapshot!(lint.stdout);
    let json = sandbox.muster(&["check", "lint", "--format", "json", "check.yaml"]);
    assert_eq!((json.code, &*json.stderr), (Some(1), ""));
    assert_snapshot!(json.stdout);
    let allowed = sandbox.muster(&["check", "lint", "--allow", "empty-match", "check.yaml"]);
    assert_eq!(ok(&allowed), "1 check in 1 file: no findings\n");
    let unknown = sandbox.muster(&["check", "lint", "--allow", "empty-mtach", "check.yaml"]);
    assert_eq!(
        (unknown.code, &*unknown.stderr),
        (Some(2), "error: --allow empty-mtach: there is no such lint; did you mean empty-match?\n")
    );
}

#[test]
fn lint_reads_standard_input_and_a_session_does_not() {
    let sandbox = Sandbox::with_check(SUSPECT);
    let given = |args: &[&str]| {
        let file = std::fs::File::open(sandbox.path("check.yaml")).expect("it is there");
        sandbox.ended(&sandbox.command(args).stdin(file).output().expect("runs"))
    };
    let lint = given(&["check", "lint", "-"]);
    assert_eq!((lint.code, &*lint.stderr), (Some(1), ""));
    assert_eq!(lint.stdout, sandbox.muster(&["check", "lint", "check.yaml"]).stdout.replace("check.yaml:", "standard input:"));
    let listed = given(&["-c", "-", "-l"]);
    assert_eq!((listed.code, &*listed.stdout), (Some(2), ""));
    assert_snapshot!(
        listed.stderr,
        @"error: -c -: a report names the files of its checks, so standard input is not read: use a file, or ./- for one of this name"
    );
}

#[test]
fn lint_ends_with_2_where_there_are_mistakes_and_reports_them_too() {
    let sandbox = Sandbox::with_check(&SUSPECT.replace("'x*'", "'x(?=y)'"));
    let lint = sandbox.muster(&["check", "lint", "check.yaml"]);
    assert_eq!((lint.code, &*lint.stdout), (Some(2), ""));
    assert_snapshot!(lint.stderr);
    let json = sandbox.muster(&["check", "lint", "--format", "json", "check.yaml"]);
    assert!(json.stdout.contains("\"severity\": \"error\"") && json.stderr.is_empty(), "{}{}", json.stdout, json.stderr);
}

#[test]
fn the_shipped_checks_are_in_order_and_mean_what_they_say() {
    let sandbox = Sandbox::new();
    let root = env!("CARGO_MANIFEST_DIR");
    let run = |args: &[&str]| sandbox.ended(&sandbox.command(args).current_dir(root).output().expect("runs"));
    assert_eq!(ok(&run(&["check", "fmt", "--check", "checks", "site-config"])), "");
    let lint = run(&["check", "lint", "checks"]);
    assert!(ok(&lint).ends_with(" files: no findings\n") && lint.stdout.lines().count() == 1, "{}", lint.stdout);
}

#[test]
fn every_lint_is_explained() {
    assert_snapshot!(ok(&Sandbox::new().muster(&["check", "lint", "--explain"])));
}

/// Runs a script in a shell that may not be there; says so then.
fn in_shell(sandbox: &Sandbox, shell: &str, script: &str) -> Option<String> {
    let mut command = Command::new(shell);
    command.args(["-c", script]).current_dir(sandbox.path("")).env("TESTED", env!("CARGO_BIN_EXE_muster"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MUSTER_")) {
        command.env_remove(name);
    }
    match command.output() {
        Ok(output) => {
            assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            println!("SKIPPED for {shell}: {error}");
            None
        }
    }
}

#[test]
fn completions_complete_in_bash_zsh_and_fish() {
    let sandbox = Sandbox::new();
    let bash = "source <(\"$TESTED\" completions bash)
        ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _muster muster \"${@: -1}\" \"${@: -2:1}\"; echo \"${COMPREPLY[*]}\"; }
        ask muster check ''; ask muster --exec-policy ''; ask muster check new --scheduler k";
    let answers = in_shell(&sandbox, "bash", bash).expect("there is a bash");
    let lines: Vec<_> = answers.lines().collect();
    assert!(["new", "fmt", "lint"].iter().all(|word| lines[0].contains(word)), "{answers}");
    assert_eq!(&lines[1..], ["serial async", "k8s"]);

    let fish = "\"$TESTED\" completions fish | source; complete -C 'muster check new --scheduler k'";
    if let Some(answers) = in_shell(&sandbox, "fish", fish) {
        assert!(answers.starts_with("k8s"), "{answers}");
    }
    // What zsh completes only shows on a terminal: here it has to define the function and know its words.
    let zsh = "autoload -Uz compinit && compinit -D -u; source <(\"$TESTED\" completions zsh); whence -w _muster; functions _muster__subcmd__check_commands _muster__check_commands 2>/dev/null";
    if let Some(answers) = in_shell(&sandbox, "zsh", &format!("{zsh}; true")) {
        assert!(answers.contains("_muster: function") && answers.contains("lint"), "{answers}");
    }
}

#[test]
fn behind_a_filter_shells_complete_the_names_of_the_checks_that_are_named() {
    let sandbox = Sandbox::with_check(
        "name: base\nabstract: true\n---\nname: stream\nextends: '#base'\n---\nname: strong-scaling\n---\nname: hpl\n",
    );
    let names = sandbox.muster(&["completions", "--list", "names", "-c", "check.yaml"]);
    assert_eq!(ok(&names), "stream\nstrong-scaling\nhpl\n");
    let bash = "source <(\"$TESTED\" completions bash)
        ask() { COMP_WORDS=(\"$TESTED\" \"$@\"); COMP_CWORD=$#; COMPREPLY=(); _muster_named; echo \"${COMPREPLY[*]}\"; }
        ask -c check.yaml -r -n str; ask --checkpath check.yaml --exclude ''; ask -n ''";
    let answers = in_shell(&sandbox, "bash", bash).expect("there is a bash");
    assert_eq!(answers, "stream strong-scaling\nstream strong-scaling hpl\n\n");
    let fish =
        "\"$TESTED\" completions fish | source; function muster; $TESTED $argv; end; complete -C 'muster -c check.yaml -n str'";
    if let Some(answers) = in_shell(&sandbox, "fish", fish) {
        assert_eq!(answers, "stream\nstrong-scaling\n");
    }
    // What zsh completes only shows on a terminal: the function is asked with the words that zsh would have set.
    let zsh = "autoload -Uz compinit && compinit -D -u; source <(\"$TESTED\" completions zsh); compadd() { print -l $values; }
        words=(\"$TESTED\" -c check.yaml -n ''); CURRENT=5; _muster_values names; functions _muster | grep -o ':REGEX:_muster_values names' | grep -c .";
    if let Some(answers) = in_shell(&sandbox, "zsh", zsh) {
        assert_eq!(answers, "stream\nstrong-scaling\nhpl\n4\n");
    }
}

#[test]
fn shells_complete_tags_systems_modes_and_sessions() {
    let sandbox = Sandbox::with_check(
        "name: a\nvalid_systems: ['*']\ntags: [slow, '${{ 1 }}', gpu]\nexecutable: echo\nsanity: []\n---\nname: b\nabstract: true\ntags: slow\n",
    );
    let site = "name: cluster\nhostnames: ['.*']\nmodes: [{ name: nightly, options: [] }]\npartitions:\n\
                - { name: cpu, scheduler: local, environs: [default] }\nenvironments: [{ name: default }]\n";
    sandbox.write("s.yaml", site);
    sandbox.muster(&["-c", "check.yaml", "-S", "tags=x", "-r", "--db", "r.db"]);
    let listed = |kind: &str| {
        ok(&sandbox.muster(&["completions", "--list", kind, "-c", "check.yaml", "-C", "s.yaml", "--db", "r.db"])).to_owned()
    };
    assert_eq!(["tags", "systems", "modes"].map(listed), ["gpu\nslow\n", "cluster\ncluster:cpu\n", "nightly\n"]);
    let session = listed("sessions").trim().to_owned();
    assert!(session.len() > 20 && !session.contains('\n'), "{session}");
    assert_eq!(sandbox.muster(&["completions", "--list", "sessions", "--db", "none.db"]).stdout, "");

    let files = "-c check.yaml -C s.yaml --db r.db";
    let expected = format!("gpu slow\ncluster cluster:cpu\nnightly\n{session}\n{session}\n{session}\n");
    let bash = format!(
        "source <(\"$TESTED\" completions bash)
        ask() {{ COMP_WORDS=(\"$TESTED\" {files} \"$@\"); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMPREPLY=(); _muster_named; echo \"${{COMPREPLY[*]}}\"; }}
        ask -t ''; ask --system clu; ask --mode ''; ask --restore-session ''; ask attach ''; ask results show ''"
    );
    assert_eq!(in_shell(&sandbox, "bash", &bash).expect("there is a bash"), expected);
    let fish = format!(
        "\"$TESTED\" completions fish | source; function muster; $TESTED $argv; end
        for line in '-t ' '--system clu' '--mode ' '--restore-session ' 'attach ' 'results show '
            echo (complete -C \"muster {files} $line\")
        end"
    );
    if let Some(answers) = in_shell(&sandbox, "fish", &fish) {
        assert_eq!(answers, expected);
    }
    let zsh = format!(
        "autoload -Uz compinit && compinit -D -u; source <(\"$TESTED\" completions zsh); compadd() {{ echo $values; }}
        ask() {{ local kind=$1; shift; words=(\"$TESTED\" {files} \"$@\"); CURRENT=$#words; _muster_values $kind; }}
        ask tags -t ''; ask systems --system clu; ask modes --mode ''; ask sessions --restore-session ''; ask sessions attach ''
        ask sessions results show ''; functions _muster | grep -o 'session -- .*:_muster_values sessions' | grep -c ."
    );
    if let Some(answers) = in_shell(&sandbox, "zsh", &zsh) {
        assert_eq!(answers, expected + "3\n");
    }
}

#[test]
fn fmt_shows_what_would_change_and_changes_nothing() {
    let sandbox = Sandbox::with_check("name:   x\nexecutable: a\nsanity: []\n");
    let shown = sandbox.muster(&["check", "fmt", "--diff", "check.yaml"]);
    let diff = "--- check.yaml\n+++ check.yaml\n@@ -1,3 +1,3 @@\n-name:   x\n+name: x\n executable: a\n sanity: []\n";
    assert_eq!((shown.code, shown.stdout.as_str(), shown.stderr.as_str()), (Some(1), diff, ""));
    assert!(sandbox.read("check.yaml").starts_with("name:   x"));
    let patch = std::process::Command::new("patch")
        .args(["-p0", "-i", "-"])
        .current_dir(sandbox.path(""))
        .stdin(std::process::Stdio::piped())
        .spawn();
    match patch {
        Ok(mut patch) => {
            std::io::Write::write_all(&mut patch.stdin.take().expect("piped"), diff.as_bytes()).expect("read");
            assert!(patch.wait().expect("ends").success());
        }
        Err(error) => {
            println!("SKIPPED for patch: {error}");
            sandbox.muster(&["check", "fmt", "check.yaml"]);
        }
    }
    let clean = sandbox.muster(&["check", "fmt", "--diff", "check.yaml"]);
    assert_eq!((clean.code, clean.stdout.as_str()), (Some(0), ""));
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let manual = Sandbox::new().muster(&["man"]);
    for title in ["muster", "muster-check-lint", "muster-results-show", "muster-sweep"] {
        assert!(ok(&manual).contains(&format!(".TH {title} 1")), "{title}");
    }
    assert!(manual.stdout.contains("Exit codes"), "the page says how it ends");
}
