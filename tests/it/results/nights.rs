//! `muster night` over many nights: what was reported once is reported the same way later.

use crate::sandbox::Sandbox;
use serde_json::Value;
use std::{collections::BTreeMap, fs};

/// A year of three systems.
fn a_year() -> Sandbox {
    let sandbox = Sandbox::new();
    let made = sandbox.muster(&["results", "demo", "year.db", "--systems", "3", "--nights", "200", "--seed", "7"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    sandbox
}

#[test]
fn example_data_is_never_written_over_a_file_or_without_its_truth() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("year.truth.csv")).expect("a folder");
    let make = || sandbox.muster(&["results", "demo", "year.db", "--systems", "1", "--nights", "1"]);
    let unwritten = make();
    assert_eq!(unwritten.code, Some(3), "{}", unwritten.stderr);
    assert!(unwritten.stderr.contains("the file year.truth.csv could not be written: Is a directory"), "{}", unwritten.stderr);
    let refused = make();
    assert_eq!(
        (refused.code, &*refused.stderr),
        (Some(2), "error: year.db is there already: example data goes to a file of its own\n")
    );
}

#[test]
fn example_data_goes_to_no_server_and_its_password_is_not_shown() {
    let sandbox = Sandbox::new();
    let said = |args: &[&str]| {
        let ended = sandbox.muster(&[&["results"], args].concat());
        assert_ne!(ended.code, Some(0), "{args:?}\n{}{}", ended.stdout, ended.stderr);
        assert!(!ended.stderr.contains("secret"), "{}", ended.stderr);
        ended.stderr
    };
    let server = "postgres://ada:secret@127.0.0.1:9/results";
    assert!(said(&["demo", server]).contains("postgres://ada:***@127.0.0.1:9/results is no file"));
    assert!(said(&["demo", ":memory:"]).contains(":memory: is no name of a file"));
    assert!(said(&["import", server]).contains("postgres://ada:***@127.0.0.1:9/results cannot be read"));
    assert!(!sandbox.path(":memory:").exists() && !sandbox.path("postgres:").exists(), "nothing is written");
}

/// The systems of `muster night --format json` with these arguments.
fn night(sandbox: &Sandbox, database: &str, args: &[&str]) -> Vec<Value> {
    let ended = sandbox.muster(&[&["night", "--format", "json", "--db", database], args].concat());
    assert_eq!(ended.code, Some(0), "{args:?}\n{}", ended.stderr);
    let text: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    text["systems"].as_array().or(text.as_array()).expect("systems").clone()
}

/// The changes that a night shows, by name.
fn changes(systems: &[Value]) -> BTreeMap<String, Value> {
    let metrics = systems.iter().filter_map(|system| system["metrics"].as_array()).flatten();
    let named = metrics.filter_map(|metric| Some((metric["change"]["id"].as_str()?.to_owned(), metric["change"].clone())));
    named.collect()
}

fn copy(sandbox: &Sandbox, name: &str) {
    fs::copy(sandbox.path("year.db"), sandbox.path(name)).expect("a copy");
}

/// The last night of the year, and the night so many days before.
fn date(sandbox: &Sandbox, before: i64) -> String {
    let last = night(sandbox, "year.db", &[])[0]["night"].as_str().expect("a night").to_owned();
    let days = muster_text::time::Date::parse(&last).expect("a date").days() - before;
    muster_text::time::Date::of_days(days).to_string()
}

#[test]
fn who_looks_every_night_and_who_looks_once_are_told_the_same() {
    let sandbox = a_year();
    for name in ["often.db", "once.db"] {
        copy(&sandbox, name);
    }
    let mut reported = BTreeMap::new();
    for before in [60, 45, 44, 43, 20, 3, 2, 1] {
        reported.extend(changes(&night(&sandbox, "often.db", &["--night", &date(&sandbox, before)])));
    }
    let (often, once) = (night(&sandbox, "often.db", &[]), night(&sandbox, "once.db", &[]));
    assert_eq!(often, once);
    assert!(changes(&once).len() >= 2, "{:?}", changes(&once));
    // An earlier night is still told as it was, and every change that had a name then still has it.
    let earlier = date(&sandbox, 45);
    assert_eq!(night(&sandbox, "often.db", &["--night", &earlier]), night(&sandbox, "once.db", &["--night", &earlier]));
    assert!(reported.len() >= 2, "{reported:?}");
    for (id, change) in &reported {
        let why = sandbox.muster(&["night", "why", id, "--db", "often.db"]);
        assert_eq!(why.code, Some(0), "{id}: {}", why.stderr);
        assert!(
            why.stdout.contains(&format!("when it was found, on {}", change["opened"].as_str().expect("a night"))),
            "{}",
            why.stdout
        );
    }
}

#[test]
fn history_marks_what_the_night_has_found_and_maintenance_long_ago_changes_no_names() {
    let sandbox = a_year();
    copy(&sandbox, "plain.db");
    let systems = night(&sandbox, "plain.db", &[]);
    let shown = changes(&systems);
    let of_system = |system: &Value| {
        let metrics = system["metrics"].as_array().cloned().unwrap_or_default();
        metrics.into_iter().find(|metric| metric["change"].is_object()).map(|metric| (system["system"].clone(), metric))
    };
    let (system, metric) = systems.iter().find_map(of_system).expect("a change");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let (case, variable) = (text(&metric["case"]), text(&metric["variable"]));
    let args =
        ["results", "history", &format!("^{case}$"), "--var", &variable, "--on", &text(&system), "--db", "plain.db", "--json"];
    let told = sandbox.muster(&args);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let history: Value = serde_json::from_str(&told.stdout).expect("JSON");
    let marks = history[0]["marks"].as_array().expect("marks").clone();
    let is_change = |mark: &&Value| mark["kind"] == "change" && mark["night"] == metric["change"]["since"];
    assert!(marks.iter().any(|mark| is_change(&mark)), "{marks:?} {metric}");
    // Nights are judged again from there on, and the same is found.
    let annotate =
        ["results", "annotate", "--kind", "maintenance", "--from", &date(&sandbox, 190), "--until", &date(&sandbox, 190)];
    let done = sandbox.muster(&[&annotate[..], &["--reason", "cables", "--db", "plain.db"]].concat());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let again = changes(&night(&sandbox, "plain.db", &[]));
    assert_eq!(again.keys().collect::<Vec<_>>(), shown.keys().collect::<Vec<_>>());
}

#[test]
fn a_system_without_a_session_tonight_is_absent_and_the_future_decides_nothing() {
    let sandbox = a_year();
    let last = date(&sandbox, 0);
    let systems = night(&sandbox, "year.db", &[]);
    let names: Vec<String> = systems.iter().map(|system| system["system"].as_str().expect("a name").to_owned()).collect();
    // One system has no more nights from the day before on, another one has one of the next century.
    let day = muster_text::time::Date::parse(&last).expect("a date").days();
    let sql = format!(
        "DELETE FROM judged_series; DELETE FROM night WHERE system = '{0}' AND night >= {1}; DELETE FROM night_figure WHERE night >= {1} AND metric IN \
         (SELECT m.id FROM metric m JOIN subject u ON u.id = m.subject WHERE u.system = '{0}'); DELETE FROM planned WHERE night >= {1}; \
         INSERT INTO night VALUES ('{2}', 60000, 5184000000000000, 5184086400000000, 'UTC', 'ended');",
        names[0],
        day - 1,
        names[1]
    );
    muster_test_database::create(&sandbox.path("year.db"), &sql).expect("a database");
    let systems = night(&sandbox, "year.db", &[]);
    assert_eq!(systems.iter().map(|system| system["night"].as_str()).collect::<Vec<_>>(), [Some(last.as_str()); 3]);
    assert_eq!(systems[0]["absent_since"], date_of(day - 2));
    assert_eq!((systems[0]["coverage"]["measured"].as_u64(), &systems[1]["absent_since"]), (Some(0), &Value::Null));
    assert!(systems[0]["coverage"]["planned"].as_u64() > Some(0), "{}", systems[0]["coverage"]);
    assert!(systems[1]["notes"].to_string().contains("in the future"), "{}", systems[1]["notes"]);
    let coverage = sandbox.muster(&["night", "--db", "year.db", "--fail-on", "coverage"]);
    assert_eq!(coverage.code, Some(3), "{}", coverage.stdout);

    // One partition of a system.
    let metrics = systems[2]["metrics"].as_array().expect("metrics");
    let partition = metrics[0]["partition"].as_str().expect("a partition");
    let one = night(&sandbox, "year.db", &["--system", &format!("{}:{partition}", names[2])]);
    let shown = one[0]["metrics"].as_array().expect("metrics");
    let of_partition: Vec<&Value> = metrics.iter().filter(|metric| metric["partition"] == partition).collect();
    assert_eq!(shown.iter().collect::<Vec<_>>(), of_partition);
    assert_eq!(one[0]["family"], systems[2]["family"]);
    let none = sandbox.muster(&["night", "--db", "year.db", "--system", &format!("{}:nowhere", names[2])]);
    assert_eq!(none.code, Some(2), "{}", none.stderr);
    assert!(none.stderr.contains("no figure of the partition `nowhere`"), "{}", none.stderr);
}

/// A system without a session in some nights: its answer about one of them is the same before and after it is back.
#[test]
fn a_system_that_is_back_was_absent_all_the_same() {
    let sandbox = a_year();
    let day = muster_text::time::Date::parse(&date(&sandbox, 0)).expect("a date").days();
    let name = night(&sandbox, "year.db", &[])[0]["system"].as_str().expect("a name").to_owned();
    let asked = date_of(day - 12);
    let answers = [day, day - 5].map(|until| {
        let database = format!("until{until}.db");
        copy(&sandbox, &database);
        let nights = format!("BETWEEN {} AND {until}", day - 30);
        let subjects = format!("SELECT id FROM subject WHERE system = '{name}'");
        let sql = format!(
            "DELETE FROM judged_series; DELETE FROM judged; DELETE FROM change; DELETE FROM night WHERE system = '{name}' AND night {nights}; \
             DELETE FROM night_figure WHERE night {nights} AND metric IN (SELECT id FROM metric WHERE subject IN ({subjects})); \
             DELETE FROM planned WHERE night {nights} AND subject IN ({subjects});"
        );
        muster_test_database::create(&sandbox.path(&database), &sql).expect("a database");
        let code = |what: &str| {
            let args = ["night", "--db", &database, "--night", &asked, "--system", &name, "--fail-on", what];
            sandbox.muster(&args).code
        };
        let codes = [code("missing"), code("coverage")];
        (night(&sandbox, &database, &["--night", &asked, "--system", &name]), codes)
    });
    let [away, back] = &answers;
    assert!(away.0[0]["absent_since"].is_string() && away.1 == [Some(1), Some(3)], "{away:?}");
    assert_eq!(away, back);
}

fn date_of(day: i64) -> String {
    muster_text::time::Date::of_days(day).to_string()
}
