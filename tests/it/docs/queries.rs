//! The examples of docs/queries.md, on forty nights of one system.

use crate::results::forty_nights;
use std::path::Path;

#[test]
fn every_question_of_the_page_has_an_answer() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/queries.md")).expect("the page");
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let lines: Vec<&str> = blocks.flat_map(|(block, _)| block.lines()).collect();
    assert!(lines.len() >= 15, "{lines:?}");
    for line in lines {
        let sandbox = forty_nights();
        std::fs::copy(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("harness/convert/src/stored/report.json"),
            sandbox.path("run-report-1.json"),
        )
        .expect("a report");
        sandbox.write("checks/one.check.yaml", "name: one\nvalid_systems: ['*']\nexecutable: 'true'\nsanity: []\n");
        let command = line.replace("~/.reframe/reports/results.db", "run-report-1.json").replace("~/.reframe/reports/", "");
        let ended = sandbox.paste(&format!("export MUSTER_DB=r.db; {command}"), "");
        // The nights of the example lie in the past, and will lie in that of every week.
        let is_relative = line.contains("now");
        let code = i32::from(line.contains("--fail-on"));
        if is_relative && ended.code == Some(2) {
            assert!(
                ["no session is in", "has no figures", "has a figure", "no stored case has the system `archer`"]
                    .iter()
                    .any(|why| ended.stderr.contains(why)),
                "{line}\n{}",
                ended.stderr
            );
        } else if !is_relative {
            assert_eq!(ended.code, Some(code), "{line}\n{}{}", ended.stdout, ended.stderr);
        }
    }
}
