//! `muster results rebuild|alias|annotate|delete|prune|backup`: what they print, and that bad input changes nothing and ends with 2.

use crate::sandbox::{Ended, Sandbox};

const SITE: &str = "\
name: here
hostnames: ['.*']
nights: { time_zone: Europe/London, cutoff: '12:00', min_coverage: 80% }
partitions:
  - { name: local, scheduler: local }
";

const CHECK: &str = "\
name: speed
valid_systems: ['*']
parameters: { n: [1, 2] }
executable: 'echo rate=${{ n }}; test ${{ n }} = 1'
sanity: [{ found: 'rate' }]
perf_variables: { rate: { pattern: 'rate=(\\d+)', unit: 'MB/s', direction: higher } }
";

/// A folder with one session: the first case passes, the second fails.
fn session() -> Sandbox {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("site.yaml", SITE);
    let ended = sandbox.muster(&["-C", "site.yaml", "-c", "check.yaml", "-r"]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    sandbox
}

fn database(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.path("state/muster/results.db")
}

fn rows(sandbox: &Sandbox, query: &str) -> Vec<String> {
    muster_test_database::rows(&database(sandbox), query).expect("the database")
}

fn done(sandbox: &Sandbox, args: &[&str]) -> String {
    let ended = sandbox.muster(&[&["results"], args].concat());
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{args:?}: {}", ended.stdout);
    ended.stdout
}

fn refused(sandbox: &Sandbox, args: &[&str]) -> String {
    let Ended { code, stdout, stderr } = sandbox.muster(&[&["results"], args].concat());
    assert_eq!((code, &*stdout), (Some(2), ""), "{args:?}: {stderr}");
    stderr.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_session_is_in_a_night_of_its_site_with_its_figures_its_nodes_and_the_log_of_what_failed() {
    let sandbox = session();
    let night = rows(
        &sandbox,
        "SELECT n.time_zone || ' ' || n.state || ' ' || (s.started BETWEEN n.begins AND n.ends) FROM night n \
                               JOIN session s ON s.system = n.system AND s.night = n.night",
    );
    assert_eq!(night, ["Europe/London ended 1"]);
    let figures = "SELECT s.name || ' ' || m.variable || ' ' || f.value || ' ' || m.unit || ' ' || m.direction FROM night_figure f \
                   JOIN metric m ON m.id = f.metric JOIN subject s ON s.id = m.subject";
    assert_eq!(rows(&sandbox, figures), ["speed %n=1 rate 1.0 MB/s higher"]);
    let planned = "SELECT s.name || ' ' || p.state FROM planned p JOIN subject s ON s.id = p.subject ORDER BY 1";
    assert_eq!(rows(&sandbox, planned), ["speed %n=1 run", "speed %n=2 run"]);
    assert_eq!(
        rows(
            &sandbox,
            "SELECT c.display || ': ' || l.tail FROM attempt_log l JOIN attempt a ON a.id = l.attempt \
                              JOIN \"case\" c ON c.id = a.\"case\""
        ),
        ["speed %n=2: rate=2"]
    );
    let hashes = "SELECT length(check_hash) || ' ' || length(manifest_hash) FROM basis";
    assert_eq!(rows(&sandbox, hashes), ["16 0"]);
    assert!(rows(&sandbox, "SELECT facts FROM session")[0].starts_with(r#"{"site_hash":""#));
    assert_eq!(rows(&sandbox, "SELECT CAST(count(*) AS TEXT) FROM member m JOIN node n ON n.id = m.node"), ["2"]);
}

#[test]
fn what_is_stored_is_rebuilt_renamed_annotated_copied_and_removed() {
    let sandbox = session();
    let figures = "SELECT s.name || ' ' || f.value FROM night_figure f JOIN metric m ON m.id = f.metric \
                   JOIN subject s ON s.id = m.subject";
    insta::assert_snapshot!(done(&sandbox, &["rebuild", "-C", "site.yaml"]), @"the figures of 1 attempt(s) are written again");
    insta::assert_snapshot!(done(&sandbox, &["alias", "speed", "rate"]), @"`speed` is `rate` in all nights: 2 case(s)");
    assert_eq!(rows(&sandbox, figures), ["rate %n=1 1.0"]);
    let annotate =
        ["annotate", "rate", "--kind", "maintenance", "--from", "2026-11-17", "--until", "2026-11-18", "--reason", "cooling"];
    insta::assert_snapshot!(done(&sandbox, &annotate), @"annotation 1: maintenance for the nights of 2026-11-17 to 2026-11-18: rate");
    let said = done(&sandbox, &["annotate", "--list"]);
    assert!(said.contains("1  maintenance  2026-11-17 to 2026-11-18  rate ") && said.contains(" cooling\n"), "{said}");
    let aliases = done(&sandbox, &["alias", "--list"]);
    assert!(aliases.lines().last().is_some_and(|line| line.starts_with("speed       rate ")), "{aliases}");
    insta::assert_snapshot!(done(&sandbox, &["annotate", "--remove", "1"]), @"annotation 1 is taken back: maintenance for the nights of 2026-11-17 to 2026-11-18: rate");
    insta::assert_snapshot!(done(&sandbox, &["annotate", "--list"]), @"No annotation is stored");
    insta::assert_snapshot!(done(&sandbox, &["alias", "--remove", "speed"]), @"`speed` is no longer `rate`: each has its own history");
    assert_eq!(rows(&sandbox, figures), ["speed %n=1 1.0"]);
    insta::assert_snapshot!(done(&sandbox, &["alias", "--list"]), @"No alias is stored");
    done(&sandbox, &["alias", "speed", "rate"]);
    let copied = done(&sandbox, &["backup", "copy.db"]);
    assert!(copied.starts_with("copy.db: 0.") && copied.ends_with(" MB, checked\n"), "{copied}");
    let listed = sandbox.muster(&["results", "list", "--db", "copy.db"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let pruned = done(&sandbox, &["prune", "--keep", "1d", "--logs-older-than", "0s"]);
    assert!(pruned.starts_with("removed 0 session(s) with 0 case(s); 1 log(s) of others: 0."), "{pruned}");
    let everything = ["prune", "--keep", "0s", "--keep-last", "0"];
    let would = done(&sandbox, &[&everything[..], &["--dry-run"]].concat());
    assert!(would.starts_with("would remove 1 session(s) with 2 case(s), started 20"), "{would}");
    assert!(would.contains("; 0 log(s) of others: about 0.") && would.ends_with(" MB less\n"), "{would}");
    let pruned = done(&sandbox, &everything);
    assert!(pruned.starts_with("removed 1 session(s) with 2 case(s), started 20"), "{pruned}");
    assert_eq!(rows(&sandbox, figures), [""; 0]);
    let again = sandbox.muster(&["-C", "site.yaml", "-c", "check.yaml", "-r"]);
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    assert_eq!(rows(&sandbox, figures), ["rate %n=1 1.0"]);
    for dry_run in [true, false] {
        let args = [&["delete", "latest"][..], if dry_run { &["--dry-run"] } else { &[] }].concat();
        let said = done(&sandbox, &args);
        let begin = if dry_run { "would delete" } else { "deleted" };
        assert!(said.starts_with(&format!("{begin} 1 session(s) with 2 case(s), started 20")), "{said}");
        assert_eq!(rows(&sandbox, "SELECT id FROM session").len(), usize::from(dry_run));
    }
}

#[test]
fn an_annotation_takes_the_names_that_other_commands_print() {
    let sandbox = session();
    let environ = rows(&sandbox, "SELECT DISTINCT environ FROM subject").concat();
    let named = format!("speed %n=1 @here:local+{environ}");
    let from = ["--from", "2026-11-17", "--reason", "why"];
    done(&sandbox, &[&["annotate", &named], &from[..]].concat());
    done(&sandbox, &[&["annotate", "speed", "--system", "here:local", "--partition", "local"], &from[..]].concat());
    let scopes = "SELECT name || ' ' || system || ' ' || partition || ' ' || coalesce(environ, 'any') FROM annotation";
    assert_eq!(rows(&sandbox, scopes), [format!("speed %n=1 here local {environ}"), "speed here local any".to_owned()]);
    let wrong = [
        ["--system", "there", "--kind", "note"],
        ["--system", "here:gpu", "--kind", "note"],
        ["--system", "here:local", "--partition", "gpu"],
    ];
    let said = wrong.map(|wrong| refused(&sandbox, &[&["annotate", "speed @here:local"], &wrong[..], &from[..]].concat()));
    insta::assert_snapshot!(said.join("\n"), @"
    error: `here` and `there` are two systems: an annotation is about one, or about all
    error: `local` and `gpu` are two partitions: an annotation is about one, or about all
    error: `gpu` and `local` are two partitions: an annotation is about one, or about all
    ");
    assert_eq!(rows(&sandbox, "SELECT CAST(count(*) AS TEXT) FROM annotation"), ["2"]);
}

#[test]
fn bad_input_is_one_sentence_and_changes_nothing() {
    let sandbox = session();
    sandbox.write("notes.txt", "mine");
    let before = std::fs::read(database(&sandbox)).expect("the database");
    let from = ["--from", "2026-11-17", "--reason", "why"];
    let rows: [&[&str]; 19] = [
        &["alias", "sped", "rate"],
        &["alias", "speed", " "],
        &["annotate", "--from", "17.11.2026", "--reason", "why"],
        &[&["annotate", "sped"], &from[..]].concat(),
        &[&["annotate", "--until", "2026-11-16"], &from[..]].concat(),
        &["annotate", "--from", "2026-11-17", "--reason", ""],
        &[&["annotate", "--kind", "maintenance", "--node", "n1"], &from[..]].concat(),
        &["annotate", "--remove", "7"],
        &["annotate", "--remove", "7", "--reason", "why"],
        &["alias", "--remove", "sped"],
        &["alias", "speed"],
        &["delete", "20200101"],
        &["delete", "20200101", "--dry-run"],
        &["prune", "--keep", "soon"],
        &["prune", "--keep", "60"],
        &["backup", "notes.txt"],
        &["backup", "state/muster/results.db"],
        &["backup", "postgres://me:s3cret@db/results"],
        &["rebuild", "--db", "missing.db"],
    ];
    let said: Vec<_> = rows.iter().map(|args| refused(&sandbox, args)).collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    error: no check, parameter or case in the results database [FOLDER]/state/muster/results.db is called `sped`: did you mean `speed`?
    error: ` ` is not a name: it is empty, or begins or ends with a space
    error: invalid value '17.11.2026' for '--from <DATE>': `17.11.2026` is not a day: write YEAR-MONTH-DAY, as in 2026-12-31
    error: no check or case in the results database [FOLDER]/state/muster/results.db is called `sped`: did you mean `speed`?
    error: --until 2026-11-16 is before --from 2026-11-17
    error: --reason is empty: write why, in one sentence
    error: --node and --session are for --kind note: verdicts are about the figures of whole nights
    error: no annotation has the number 7: `muster results annotate --list` shows them
    error: the argument '--remove <NUMBER>' cannot be used with '--reason <TEXT>'
    error: no alias in the results database [FOLDER]/state/muster/results.db is called `sped`
    error: the following required arguments were not provided:
    error: no session begins with `20200101`: the night is `2020-01-01`
    error: no session begins with `20200101`: the night is `2020-01-01`
    error: invalid value 'soon' for '--keep <AGE>': `soon` is not an age: write a number and its unit, as in 400d, 36h or 1d12h
    error: invalid value '60' for '--keep <AGE>': `60` has no unit: write 60d for days, 60h for hours, 60m for minutes or 60s for seconds
    error: no backup to notes.txt: a file is there that is no results database
    error: no backup to state/muster/results.db: it is the database itself
    error: no backup to postgres://me:***@db/results: it is a server: name a file
    error: there is no results database missing.db
    ");
    assert_eq!(std::fs::read(database(&sandbox)).expect("the database"), before);
    assert_eq!(sandbox.read("notes.txt"), "mine");
}
