//! The JSON run report, and its schema.

use crate::sample::{case, cases, figure, session, with, with_only};
use insta::assert_snapshot;
use muster_core::result::{CaseResult, Outcome, Phase, Session};
use muster_report::{
    Results,
    json::{REPORT_VERSION, report},
};
use muster_text::{Value, decode::Words as _};

const SCHEMA: &str = include_str!("../../../../../docs/run-report.schema.json");

/// Holds a value against the part of JSON Schema that our schema uses: `$ref`, `anyOf`, `type`, `enum`, `const`,
/// `minimum`, `pattern` (ours has one), `required`, `properties`, `additionalProperties`, `items`. Returns every
/// difference with its place; a keyword it does not know is one too.
fn differences(schema: &Value, value: &Value, root: &Value, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut wrong = |what: String| found.push(format!("{place}: {what}"));
    let mut inner = Vec::new();
    for (keyword, rule) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$ref" => {
                let target = root.pointer(rule.as_str().unwrap().trim_start_matches('#')).unwrap();
                inner.extend(differences(target, value, root, place));
            }
            "anyOf" => {
                if rule.as_array().unwrap().iter().all(|one| !differences(one, value, root, place).is_empty()) {
                    wrong(format!("{value} is none of {rule}"));
                }
            }
            "type" => {
                let types = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                if !types.iter().any(|name| has_type(value, name.as_str().unwrap())) {
                    wrong(format!("{value} is no {rule}"));
                }
            }
            "enum" if !rule.as_array().unwrap().contains(value) => wrong(format!("{value} is not in {rule}")),
            "const" if rule != value => wrong(format!("{value} is not {rule}")),
            "minimum" if value.as_f64() < rule.as_f64() => wrong(format!("{value} is below {rule}")),
            "pattern" => {
                assert_eq!(rule, "^[0-9a-f]{8}$");
                let text = value.as_str().unwrap();
                if text.len() != 8 || !text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
                    wrong(format!("{value} is no hash"));
                }
            }
            "$schema" | "$defs" | "title" | "description" | "properties" | "enum" | "const" | "minimum" => {}
            // These speak of objects only.
            "required" | "additionalProperties" if !value.is_object() => {}
            "required" => {
                let missing = rule.as_array().unwrap().iter().filter(|key| value.get(key.as_str().unwrap()).is_none());
                missing.for_each(|key| wrong(format!("{key} is missing")));
            }
            "additionalProperties" => {
                for (key, field) in value.as_object().unwrap() {
                    match schema.get("properties").and_then(|known| known.get(key)) {
                        Some(known) => inner.extend(differences(known, field, root, &format!("{place}/{key}"))),
                        None if rule == &Value::Bool(false) => wrong(format!("{key} is not in the schema")),
                        None => inner.extend(differences(rule, field, root, &format!("{place}/{key}"))),
                    }
                }
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    inner.extend(differences(rule, item, root, &format!("{place}/{number}")));
                }
            }
            other => wrong(format!("the schema says {other}, which this test cannot read")),
        }
    }
    found.extend(inner);
    found
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("no type of JSON Schema: {other}"),
    }
}

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

fn parsed(results: &Results<'_>) -> Value {
    serde_json::from_str(&report(results, None).unwrap()).unwrap()
}

#[test]
fn a_report_keeps_to_its_schema() {
    let value = with(parsed);
    assert_eq!(differences(&schema(), &value, &schema(), ""), Vec::<String>::new());
    let environment: Value = serde_json::from_str(r#"{ "kernel": "6.1" }"#).unwrap();
    let value: Value = serde_json::from_str(&with(|results| report(results, Some(&environment)).unwrap())).unwrap();
    assert_eq!(differences(&schema(), &value, &schema(), ""), Vec::<String>::new());
    assert_eq!(value["environment"]["kernel"], "6.1");
    let value = crate::usage::with(parsed);
    assert_eq!(differences(&schema(), &value, &schema(), ""), Vec::<String>::new());
}

#[test]
fn every_scheduler_and_every_phase_is_in_the_schema() {
    for scheduler in ["slurm", "squeue", "ec2", "a scheduler of another crate"] {
        let mut value = with(parsed);
        value["cases"][0]["scheduler"] = scheduler.into();
        assert_eq!(differences(&schema(), &value, &schema(), ""), Vec::<String>::new(), "{scheduler}");
    }
    let phases: Vec<&str> = Phase::WORDS.iter().map(|(word, _)| *word).collect();
    assert_eq!(schema()["$defs"]["case"]["properties"]["phase"]["enum"], Value::from(phases));
}

type Spoil = fn(&mut Value);

#[test]
fn the_schema_notices_what_is_wrong() {
    let good = with(parsed);
    let spoiled: [(&str, Spoil); 7] = [
        ("/report_version", |value| *value = "2.0".into()),
        ("/session/started_unix_us", |value| *value = "soon".into()),
        ("/session", |value| _ = value.as_object_mut().unwrap().remove("id")),
        ("/cases/0/outcome/word", |value| *value = "success".into()),
        ("/cases/1/measurements/0/value", |value| *value = "many".into()),
        ("/cases/1", |value| value["more"] = 1.into()),
        ("/totals/failed", |value| *value = (-1).into()),
    ];
    for (place, spoil) in spoiled {
        let mut bad = good.clone();
        spoil(bad.pointer_mut(place).unwrap());
        let found = differences(&schema(), &bad, &schema(), "");
        assert_eq!(found.len(), 1, "{place}: {found:?}");
        assert!(found[0].starts_with(place), "{found:?}");
    }
}

#[test]
fn the_version_is_that_of_the_schema() {
    assert_eq!(schema()["properties"]["report_version"]["const"], REPORT_VERSION);
}

#[test]
fn every_field_of_the_format_is_held() {
    assert_snapshot!(with_only(&["stream"], |results| report(results, None).unwrap()), @r#"
    {
      "report_version": "1.3",
      "session": {
        "id": "20260105-070312-qkzvaxpe",
        "started": "2026-01-05T07:03:12.000000Z",
        "started_unix_us": 1767596592000000,
        "ended": "2026-01-05T07:04:46.250000Z",
        "ended_unix_us": 1767596686250000,
        "command": [
          "muster",
          "-c",
          "my checks/",
          "-r",
          "--performance-report"
        ],
        "system": "eidf",
        "user": "ada",
        "host": "login-1",
        "workdir": "/home/ada/site",
        "version": "0.1.0",
        "num_cases": 1,
        "interrupted": false,
        "counting": "last",
        "fail_on_skip": false,
        "extras": {}
      },
      "cases": [
        {
          "name": "stream",
          "check": "stream",
          "hash": "dca83e71",
          "system": "eidf",
          "partition": "gpu-service",
          "environ": "default",
          "descr": "",
          "file": "checks/stream/check.yaml",
          "tags": [
            "performance"
          ],
          "maintainers": [
            "hpc-support"
          ],
          "parameters": {},
          "scheduler": "k8s",
          "num_tasks": 1,
          "identifier": "kqjzmvxa",
          "hidden": "",
          "attempt": 1,
          "flaky": false,
          "quarantine": null,
          "restored_from": null,
          "outcome": {
            "word": "xfail",
            "detail": null,
            "fine": true
          },
          "phase": "performance",
          "cause": "copy: 9.1 GB/s, expected 12",
          "warnings": [],
          "nodes": [],
          "exits": [],
          "measurements": [
            {
              "variable": "copy",
              "key": null,
              "section": null,
              "node": null,
              "value": 9.1,
              "unit": "GB/s",
              "reference": 12.0,
              "lower": 10.8,
              "upper": 13.2,
              "diff_percent": -24.16666666666667,
              "verdict": "xfail",
              "reason": "DIMM 4 is on order",
              "direction": null
            }
          ],
          "times": {
            "begun": "2026-01-05T07:03:32.444500Z",
            "begun_unix_us": 1767596612444500,
            "launched": "2026-01-05T07:03:13.500000Z",
            "launched_unix_us": 1767596593500000,
            "started": "2026-01-05T07:03:15.000000Z",
            "started_unix_us": 1767596595000000,
            "ended": null,
            "ended_unix_us": null,
            "finished": "2026-01-05T07:04:04.389000Z",
            "finished_unix_us": 1767596644389000,
            "total_s": 31.9445
          },
          "folder": null,
          "log_tail": null,
          "look": [],
          "delete": [],
          "leftovers": []
        }
      ],
      "totals": {
        "cases": 1,
        "checks": 1,
        "ran": 1,
        "passed": 0,
        "failed": 0,
        "expected_failures": 1,
        "quarantined": 0,
        "skipped": 0,
        "aborted": 0,
        "stopped": 0,
        "not_run": 0,
        "exit_code": 0,
        "by_outcome": {
          "xfail": 1
        },
        "figures": 1,
        "attempts": 1,
        "elapsed_s": 94.25
      }
    }
    "#);
}

#[test]
fn figures_without_a_number_in_json_are_texts() {
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.1];
    let measurements = values.map(|value| figure("x", value, "", Some((f64::INFINITY, None, None)))).to_vec();
    let cases = [CaseResult { measurements, ..case("odd", &[], Outcome::Pass, Phase::Performance) }];
    let session = session();
    let value = parsed(&Results::new(&session, &cases));
    let of = |key: &str| (0..4).map(|number| value["cases"][0]["measurements"][number][key].to_string()).collect::<Vec<_>>();
    assert_eq!(of("value"), ["\"NaN\"", "\"inf\"", "\"-inf\"", "0.1"]);
    assert_eq!(of("reference"), ["\"inf\""; 4]);
    assert_eq!(of("diff_percent"), ["null"; 4]);
    assert_eq!(differences(&schema(), &value, &schema(), ""), Vec::<String>::new());
}

#[test]
fn a_hostile_log_is_kept_but_cannot_speak_to_a_terminal() {
    let log = "\x1b[2J\u{9b}31m\u{7f}\u{202e}\u{e9}\n\t\r";
    let cases = [CaseResult { log_tail: Some(log.into()), ..case("odd", &[], Outcome::Pass, Phase::Sanity) }];
    let session = session();
    let results = Results::new(&session, &cases);
    let text = report(&results, None).unwrap();
    assert!(!text.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'));
    assert_eq!(parsed(&results)["cases"][0]["log_tail"], log);
}

#[test]
fn the_totals_add_up_also_for_a_killed_session() {
    let (session, cases) = (Session { ended: None, num_cases: 40, ..session() }, cases());
    let totals = &parsed(&Results::new(&session, &cases))["totals"];
    let sum = |keys: &[&str]| keys.iter().map(|key| totals[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum(&["ran", "skipped", "aborted", "not_run"]), 40);
    assert_eq!(sum(&["passed", "failed", "expected_failures", "stopped"]), sum(&["ran"]));
    assert_eq!(totals["by_outcome"].as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>(), 12);
    assert_eq!(totals["elapsed_s"], Value::Null);
}
