//! From sessions to answers: what runs of a check leave is what the questions find.

use crate::sandbox::Sandbox;

const SITE: &str = "\
name: here
hostnames: ['.*']
nights: { false_alarms: 0.2 }
partitions:
  - { name: local, scheduler: local }
";

/// A check whose figure is in a file, so that it is the same check in every night. A second attempt finds 100 there.
fn check(sandbox: &Sandbox) -> String {
    format!(
        "name: speed
valid_systems: ['*']
executable: 'echo rate=$(cat {0}); echo 100 > {0}'
sanity: [{{ found: 'rate' }}]
perf_variables: {{ rate: {{ pattern: 'rate=(\\S+)', unit: 'MB/s', direction: higher }} }}
reference: {{ '*': {{ rate: [100, -0.1, null] }} }}
",
        sandbox.path("figure").display()
    )
}

/// The first attempt of the ninth session. Its retry measures 100 and passes, and hides nothing.
const RETRIED: &str = "70";

/// Sixteen sessions: twelve at about 100 MB/s, four at about 80.
const RATES: [&str; 16] = [
    "100.1", "99.8", "100.4", "99.5", "100.2", "99.9", "100.3", "99.7", RETRIED, "100.5", "99.6", "100.0", "80.2", "79.9",
    "80.3", "79.8",
];

/// Runs the sessions, today.
fn sessions() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("site.yaml", SITE);
    sandbox.write("check.yaml", &check(&sandbox));
    for rate in RATES {
        sandbox.write("figure", rate);
        let is_low = rate.parse::<f64>().expect("a number") < 90.0;
        let retries = if rate == RETRIED { "1" } else { "0" };
        let ended = sandbox.muster(&["-C", "site.yaml", "-c", "check.yaml", "-r", "--max-retries", retries]);
        assert_eq!(ended.code, Some(i32::from(is_low && rate != RETRIED)), "{rate}: {}{}", ended.stdout, ended.stderr);
    }
    sandbox
}

/// As if they had run in one night after the other, until tonight: by an earlier version, which knew no nights.
fn spread(sandbox: &Sandbox) {
    const SPREAD: &str = "
        UPDATE attempt SET finished = finished - 86400000000 * (16 - (SELECT session FROM \"case\" c WHERE c.id = attempt.\"case\"));
        UPDATE session SET started = started - 86400000000 * (16 - number), night = NULL;
        DELETE FROM night; DELETE FROM planned;";
    muster_test_database::create(&sandbox.path("state/muster/results.db"), SPREAD).expect("sixteen nights");
    let rebuilt = asked(sandbox, &["results", "rebuild", "-C", "site.yaml"]);
    assert_eq!(rebuilt, "the figures of 17 attempt(s) are written again, 16 session(s) placed in their nights\n");
}

fn asked(sandbox: &Sandbox, args: &[&str]) -> String {
    let ended = sandbox.muster(args);
    assert_eq!(ended.code, Some(0), "{args:?}\n{}{}", ended.stdout, ended.stderr);
    ended.stdout
}

fn json(sandbox: &Sandbox, args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&asked(sandbox, args)).expect("JSON")
}

#[test]
fn the_questions_find_the_figures_of_sessions_that_have_run() {
    let sandbox = sessions();
    let ids = json(&sandbox, &["results", "history", "speed", "--json"]);
    let points = ids[0]["points"].as_array().expect("points").clone();
    assert_eq!(points.len(), 16);
    let values: Vec<f64> = points.iter().map(|point| point["value"].as_f64().expect("a value")).collect();
    assert_eq!(values, RATES.map(|rate| rate.parse::<f64>().expect("a number")));
    // Two sessions: one figure each says nothing, and is shown.
    let session = |place: usize| points[place]["session"].as_str().expect("a session").to_owned();
    let compared = asked(&sandbox, &["results", "compare", &session(0), &session(15), "--all"]);
    assert!(compared.contains("100.1") && compared.contains("79.8") && compared.contains("too few samples"), "{compared}");
    // All in one night: the median of sixteen runs.
    let night = json(&sandbox, &["night", "--format", "json"]);
    let metric = &night["systems"][0]["metrics"][0];
    assert_eq!((&metric["value"], &metric["verdict"]), (&99.75.into(), &"too few nights".into()), "{night:#}");
}

#[test]
fn a_step_after_twelve_nights_is_found_by_night_compare_and_causes() {
    let sandbox = sessions();
    spread(&sandbox);
    let night = asked(&sandbox, &["night", "-C", "site.yaml"]);
    assert!(night.contains("one false alarm in 5 nights"), "{night}");
    assert!(night.contains("1 of 1 planned measured") && night.contains("regressed  speed @here:local"), "{night}");
    let points = json(&sandbox, &["results", "history", "speed", "--json"]);
    let points = points[0]["points"].as_array().expect("points").clone();
    let night = |place: usize| points[place]["night"].as_str().expect("a night").to_owned();
    let (old, new) = (format!("{}..{}", night(0), night(11)), format!("{}..{}", night(12), night(15)));
    let compared = sandbox.muster(&["results", "compare", &old, &new, "--fail-on", "regression"]);
    assert_eq!(compared.code, Some(1), "{}{}", compared.stdout, compared.stderr);
    assert!(compared.stdout.contains("regressed"), "{}", compared.stdout);
    let causes = asked(&sandbox, &["results", "causes"]);
    assert!(causes.contains(&night(12)) && causes.contains(&night(11)), "since when: {causes}");
    let chart = asked(&sandbox, &["results", "history", "speed"]);
    assert!(chart.contains("16 runs"), "{chart}");
}
