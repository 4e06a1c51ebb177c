//! Tests on a file that ReFrame 4.10.4 has written: `report.json` of a session with a retry.

use super::*;

fn report() -> Value {
    serde_json::from_str(include_str!("report.json")).expect("JSON")
}

#[test]
fn every_attempt_of_a_report_is_a_result() {
    let (session, results) = read(&report()).expect("a report");
    let lines: Vec<String> = results
        .iter()
        .map(|result| {
            let figures: Vec<String> = result
                .measurements
                .iter()
                .map(|figure| {
                    format!("{} {} {} {:?} {}", figure.variable, figure.value, figure.unit, figure.bounds, figure.verdict.word())
                })
                .collect();
            format!(
                "{} #{} {} in {}: {}\n  {}",
                result.name,
                result.attempt,
                result.outcome,
                result.phase,
                result.cause.as_deref().unwrap_or("-"),
                figures.join("\n  ")
            )
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
    let Session { user, version, num_cases, counting, extras, system, .. } = &session;
    insta::assert_snapshot!(
        "session",
        format!("{user} {version} {num_cases} {counting} {extras:?} {system} {:?}", session.command)
    );
    let stream = results.iter().find(|result| result.name.display == "stream %size=1G").expect("a case");
    assert_eq!(stream.about.parameters, [("size".to_owned(), "1G".to_owned())]);
    assert_eq!(stream.about.tags, ["memory", "nightly"]);
    assert_eq!(stream.nodes, ["vm"]);
    assert!(stream.times.begun < stream.times.finished);
}

#[test]
fn a_copy_has_a_hidden_parameter_and_a_list_of_nodes_may_be_a_text() {
    let case = serde_json::json!({ "name": "t %n=1 %.repeat_no=2", "job_nodelist": "n1,n2" });
    let name = name(&case);
    assert_eq!((name.display.as_str(), name.hidden.as_str(), name.check.as_str()), ("t %n=1", "%.repeat_no=2", "t"));
    assert_eq!(texts(&case, "job_nodelist"), ["n1", "n2"]);
}

#[test]
fn another_document_is_refused() {
    let error = |document: Value| read(&document).expect_err("no report").to_string();
    let errors = [
        error(serde_json::json!({})),
        error(serde_json::json!({ "session_info": { "data_version": "3.1" }, "runs": [] })),
        error(serde_json::json!({ "session_info": { "data_version": "4.2" }, "runs": [] })),
        error(serde_json::json!({ "session_info": { "data_version": "4.2", "uuid": "u", "time_start_unix": 1.0 } })),
        error(serde_json::json!({ "session_info": { "data_version": "4.2", "uuid": "u", "time_start_unix": 1.0 }, "runs": [
            { "testcases": [{ "name": "t", "result": "maybe" }] }] })),
        error(serde_json::json!({ "session_info": { "data_version": "4.2", "uuid": "u", "time_start_unix": 1.0 }, "runs": [
            { "testcases": [{ "name": "t", "result": "pass", "perfvalues": { "a:b:c": [1, 2] } }] }] })),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}
