//! The JUnit report: its text, its schema, and that no text of a job can make it anything but XML.

use crate::{
    sample::{case, session, with, with_only},
    tools::validated,
};
use insta::assert_snapshot;
use muster_core::{
    case::SessionId,
    result::{CaseResult, Counting, Failure, Outcome, Phase, Quarantine},
};
use muster_report::{Results, junit};
use muster_text::time::Date;
use proptest::prelude::*;
use std::path::Path;

fn report(results: &Results<'_>) -> String {
    junit::report(results, &["-C".to_owned(), "site.yaml".to_owned()]).unwrap()
}

#[test]
fn a_case_of_each_kind() {
    assert_snapshot!(with_only(&["ior", "nbody_pods", "smoke", "stream", "p2p", "babelstream"], report), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="muster 20260105-070312-qkzvaxpe" tests="6" failures="2" errors="1" time="94.250">
        <testsuite name="eidf:gpu-service+default" tests="6" skipped="2" errors="1" failures="2" time="152.778" timestamp="2026-01-05T07:03:12.000000Z" hostname="login-1">
            <properties>
                <property name="session" value="20260105-070312-qkzvaxpe"/>
                <property name="system" value="eidf"/>
                <property name="user" value="ada"/>
                <property name="version" value="0.1.0"/>
                <property name="command" value="muster -c &apos;my checks/&apos; -r --performance-report"/>
                <property name="interrupted" value="false"/>
                <property name="not_run" value="1"/>
            </properties>
            <testcase name="babelstream @eidf:gpu-service+default" classname="babelstream" time="36.266">
                <error message="namespace &apos;eidf095n&apos; does not exist" type="error{config}">error (config) during &apos;launch&apos;: namespace &apos;eidf095n&apos; does not exist
    rerun with: muster -C site.yaml -c /home/ada/site/checks/babelstream/check.yaml -n /529bd767 --system eidf:gpu-service -p &apos;^default$&apos; -r
    </error>
                <system-out>file: checks/babelstream/check.yaml
    </system-out>
            </testcase>
            <testcase name="ior %fs.dir=/lustre/my dir @eidf:gpu-service+default" classname="ior" time="23.302">
                <failure message="pattern &apos;Max Write: .* MiB/sec&apos; was not found in any of 2 sections" type="fail{sanity}">failed during &apos;sanity&apos;: pattern &apos;Max Write: .* MiB/sec&apos; was not found in any of 2 sections
    rerun with: muster -C site.yaml -c &apos;/home/ada/site/my checks/ior.check.yaml&apos; -n /29b785a6 --system eidf:gpu-service -p &apos;^default$&apos; -r
    </failure>
                <system-out>file: my checks/ior.check.yaml
    identifier: kqjzmvxa
    nodes: cpu-1
    folder: stage/eidf/gpu-service/default/ior it&apos;s
    warning: the log has no last line end
    last lines of the log:
    write  10%
    write  20%
    ERROR: no space left on device
    </system-out>
            </testcase>
            <testcase name="nbody_pods @eidf:gpu-service+default" classname="nbody_pods" time="18.982">
                <failure message="node_flops on gpu-18: 1893.4 GFLOP/s, expected 2480 (l:2356)" type="fail{performance}">failed during &apos;performance&apos;: node_flops on gpu-18: 1893.4 GFLOP/s, expected 2480 (l:2356)
    rerun with: muster -C site.yaml -c /home/ada/site/checks/nbody_pods/check.yaml -n /ea0063fb --system eidf:gpu-service -p &apos;^default$&apos; -r
    </failure>
                <system-out>file: checks/nbody_pods/check.yaml
    identifier: kqjzmvxa
    nodes: gpu-16, gpu-17, gpu-18
    folder: stage/eidf/gpu-service/default/nbody_pods_5a1b2c3d4e5f6071
    look further: kubectl --context eidf-general -n eidf095ns describe pods -l rfm=kqjzmvxa
    delete what was kept: kubectl --context eidf-general -n eidf095ns delete jobs,pods -l rfm=kqjzmvxa
    P: node_flops gpu-16: 2481.12 GFLOP/s (r:2480, l:2356)
    P: node_flops gpu-17: 2479.5 GFLOP/s (r:2480, l:2356)
    P: node_flops gpu-18: 1893.4 GFLOP/s (r:2480, l:2356) [fail]
    </system-out>
            </testcase>
            <testcase name="p2p @eidf:gpu-service+default" classname="p2p" time="12.500">
                <skipped message="partition.devices.gpu.num_devices is not known here" type="skip"/>
                <system-out>file: checks/p2p/check.yaml
    </system-out>
            </testcase>
            <testcase name="smoke @eidf:gpu-service+default" classname="smoke" time="29.784">
                <flakyFailure message="exit status 7" type="fail{workload}">attempt 1: the workload failed during &apos;run&apos;: exit status 7

                    <system-out>file: checks/smoke/check.yaml
    identifier: kqjzmvxa
    </system-out>
                </flakyFailure>
                <system-out>file: checks/smoke/check.yaml
    identifier: kqjzmvxa
    </system-out>
            </testcase>
            <testcase name="stream @eidf:gpu-service+default" classname="stream" time="31.945">
                <skipped message="copy: 9.1 GB/s, expected 12" type="xfail"/>
                <system-out>file: checks/stream/check.yaml
    identifier: kqjzmvxa
    P: copy: 9.1 GB/s (r:12, l:10.8, u:13.2) [xfail: DIMM 4 is on order]
    </system-out>
            </testcase>
        </testsuite>
    </testsuites>
    "#);
}

/// In quarantine, restored from elsewhere, a copy of a case, and run twice.
fn rounds() -> (muster_core::result::Session, [CaseResult; 3]) {
    let quarantine = Quarantine { reason: "DIMM 4 is on order, #12".into(), until: Date::parse("2026-12-31").unwrap() };
    let cause = Some("copy: 9.1 GB/s, expected 12".to_owned());
    let bad = case("stream", &[], Outcome::Fail(Failure::Performance), Phase::Performance);
    let excused = CaseResult { quarantine: Some(quarantine), cause, ..bad };
    let mut first = case("smoke", &[], Outcome::Pass, Phase::Sanity);
    first.name.hidden = "%.repeat_no=1".into();
    first.restored_from = Some(SessionId("20260104-070312-abcdefgh".into()));
    let second = CaseResult { attempt: 2, restored_from: None, ..first.clone() };
    (muster_core::result::Session { counting: Counting::Every, num_cases: 2, ..session() }, [excused, first, second])
}

#[test]
fn of_a_session_run_twice_every_attempt_is_a_test_and_quarantine_fails_none() {
    let (session, cases) = rounds();
    let text = report(&Results::new(&session, &cases));
    let lines: Vec<_> =
        text.lines().filter(|line| ["<testcase", "<skipped", "<testsuites"].iter().any(|tag| line.contains(tag))).collect();
    assert_snapshot!(lines.join("\n"), @r#"
    <testsuites name="muster 20260105-070312-qkzvaxpe" tests="3" failures="0" errors="0" time="94.250">
            <testcase name="smoke %.repeat_no=1 @eidf:gpu-service+default (run 1)" classname="smoke" time="12.500">
            <testcase name="smoke %.repeat_no=1 @eidf:gpu-service+default (run 2)" classname="smoke" time="12.500">
            <testcase name="stream @eidf:gpu-service+default (run 1)" classname="stream" time="12.500">
                <skipped message="in quarantine until 2026-12-31, DIMM 4 is on order, #12: fail{performance}: copy: 9.1 GB/s, expected 12" type="quarantine"/>
    "#);
}

#[test]
fn a_report_keeps_to_the_schema_of_jenkins() {
    let text = with(report);
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/junit-10.xsd");
    let (session, cases) = rounds();
    for text in [text, report(&Results::new(&session, &cases))] {
        validated("JUnit", &text, "xml", &["xmllint", "--noout", "--nonet", "--schema", &schema.to_string_lossy()]);
    }
}

#[test]
fn a_secret_that_a_job_printed_goes_no_further() {
    let cases = [CaseResult {
        log_tail: Some("export API_TOKEN=f00dcafe1234\n".into()),
        cause: Some("login with https://ada:hunter22@git.example failed".into()),
        ..case("leak", &[], Outcome::Fail(Failure::Workload), Phase::Run)
    }];
    let session = session();
    let text = report(&Results::new(&session, &cases));
    assert!(!text.contains("f00dcafe") && !text.contains("hunter22"), "{text}");
}

/// The characters of XML 1.0 (its production 2), and no `<` but in tags: what is between tags has none left.
fn is_xml(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..))
}

proptest! {
    #[test]
    fn no_text_of_a_job_breaks_the_report(evil in "(\\PC|[\\x00-\\x1f\\x7f-\\x9f<>&'\"\u{fffe}\u{ffff}]|]]>|<!--){0,60}") {
        let mut bad = case("x", &[("p", &evil)], Outcome::Fail(Failure::Sanity), Phase::Sanity);
        bad.name.environ.clone_from(&evil);
        bad.cause = Some(evil.clone());
        bad.log_tail = Some(evil.clone());
        bad.nodes = vec![evil.clone()];
        let again = CaseResult { attempt: 2, ..bad.clone() };
        let session = session();
        let cases = [bad, again];
        let text = report(&Results::new(&session, &cases));
        prop_assert!(is_xml(&text), "{text:?}");
        let tags = quick_xml::Reader::from_str(&text);
        prop_assert!(events(tags).is_ok(), "{text}");
    }
}

/// Reads a document to its end: the names of its elements.
fn events(mut reader: quick_xml::Reader<&[u8]>) -> Result<usize, quick_xml::Error> {
    let mut count = 0;
    loop {
        match reader.read_event()? {
            quick_xml::events::Event::Eof => return Ok(count),
            quick_xml::events::Event::Start(tag) | quick_xml::events::Event::Empty(tag) => {
                for attribute in tag.attributes() {
                    let attribute = attribute?;
                    let _ = attribute.key;
                }
                count += 1;
            }
            _ => {}
        }
    }
}
