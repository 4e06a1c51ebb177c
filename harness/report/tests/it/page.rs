//! The page and the summary: what they say, that nothing in them acts, and what a site can make of them.

use crate::sample::{case, session, with, with_only};
use insta::assert_snapshot;
use jiff::tz::TimeZone;
use muster_core::{
    error::chain,
    result::{CaseResult, Failure, Outcome, Phase, Quarantine, Session},
};
use muster_report::{
    Results,
    page::{Reader, Templates},
};
use muster_text::time::Date;

fn reader() -> Reader {
    Reader { rerun_options: vec!["-C".to_owned(), "site.yaml".to_owned()], zone: TimeZone::UTC }
}

fn embedded() -> Templates {
    Templates::new([]).unwrap()
}

fn html(results: &Results<'_>) -> String {
    embedded().html(results, &reader()).unwrap()
}

fn markdown(results: &Results<'_>) -> String {
    embedded().markdown(results, &reader()).unwrap()
}

/// The page without its style sheet and its script, which are the template's own lines.
fn content(page: &str) -> String {
    let without = |page: String, tag: &str| {
        let (before, rest) = page.split_once(&format!("<{tag}>")).unwrap();
        let (_, after) = rest.split_once(&format!("</{tag}>")).unwrap();
        format!("{before}<{tag}/>{after}")
    };
    without(without(page.to_owned(), "style"), "script")
}

#[test]
fn the_page_says_what_failed_and_why() {
    let page = with(html);
    if let Some(path) = std::env::var_os("MUSTER_SHOW_PAGE") {
        std::fs::write(path, &page).unwrap();
    }
    assert_snapshot!(content(&page));
}

#[test]
fn the_summary_fits_the_page_of_a_job() {
    assert_snapshot!(with(markdown));
}

#[test]
fn the_summary_of_a_good_session_is_short() {
    assert_snapshot!(with_only(&["nbody"], markdown), @"
    ## ✅ eidf: passed

    2 of 2 cases passed, in 1m34s.

    <sub>session 20260105-070312-qkzvaxpe by ada on login-1, 2026-01-05 07:03:12 +00:00; 2 figures; Muster 0.1.0</sub>
    ");
}

#[test]
fn what_is_in_quarantine_stands_apart() {
    let quarantine = Quarantine { reason: "DIMM 4 is on order".into(), until: Date::parse("2026-12-31").unwrap() };
    let bad = case("stream", &[], Outcome::Fail(Failure::Performance), Phase::Performance);
    let cases = [CaseResult { quarantine: Some(quarantine), ..bad }];
    let session = Session { num_cases: 1, extras: vec![("ticket".into(), "OPS-12".into())], ..session() };
    let results = Results::new(&session, &cases);
    assert_snapshot!(markdown(&results), @r#"
    ## ✅ eidf: passed

    0 of 1 case passed, 1 in quarantine, in 1m34s.

    ### In quarantine

    - stream &#64;eidf:gpu-service+default: fail\{performance\}, until 2026-12-31: DIMM 4 is on order

    <sub>session 20260105-070312-qkzvaxpe by ada on login-1, 2026-01-05 07:03:12 +00:00; 0 figures; Muster 0.1.0</sub>
    "#);
    let page = html(&results);
    assert!(page.contains("In quarantine <span class=\"count\">1") && page.contains("<dt>ticket</dt><dd>OPS-12</dd>"), "{page}");
    assert!(!page.contains("<details"), "no failure");
}

#[test]
fn the_page_needs_nothing_beside_it() {
    let page = with(html);
    for word in ["src=", "href=", "url(", "@import", "fetch(", "XMLHttp"] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn nothing_that_a_job_says_acts() {
    let evil = "</pre></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'`|[x](y)\u{1b}[2J{{ 7 * 7 }}{% raw %}";
    let mut bad = CaseResult {
        cause: Some(evil.into()),
        log_tail: Some(format!("{evil}\n```\n# {evil}")),
        nodes: vec![evil.into()],
        look: vec![evil.into()],
        warnings: vec![evil.into()],
        ..case(evil, &[], Outcome::Fail(Failure::Sanity), Phase::Sanity)
    };
    bad.about.descr = evil.into();
    let session = Session { system: evil.into(), command: vec![evil.into()], ..session() };
    let (cases, clean) = ([bad], with(html));
    let results = Results::new(&session, &cases);
    let page = html(&results);
    assert_eq!(page.matches("<script").count(), clean.matches("<script").count());
    assert!(!page.contains("<img") && !page.contains('\u{1b}') && !page.contains("49"), "{page}");
    let summary = markdown(&results);
    // Within fences and spans of code everything is text.
    let outside: String = summary.split("````").step_by(2).flat_map(|part| part.split("``").step_by(2)).collect();
    assert!(!outside.contains("<script") && !outside.contains("\n```\n"), "{summary}");
}

#[test]
fn a_secret_is_masked_everywhere() {
    let leak = "token=f00dcafe1234 https://ada:hunter22@x.example";
    let cases = [CaseResult {
        cause: Some(leak.into()),
        log_tail: Some(leak.into()),
        look: vec![leak.into()],
        ..case("leak", &[], Outcome::Fail(Failure::Sanity), Phase::Sanity)
    }];
    let session = Session { command: ["muster", "-S", "api_token=f00dcafe1234"].map(String::from).into(), ..session() };
    let results = Results::new(&session, &cases);
    for text in [html(&results), markdown(&results)] {
        assert!(!text.contains("f00dcafe") && !text.contains("hunter22"), "{text}");
    }
}

#[test]
fn thousands_of_failures_make_a_page_that_can_be_opened() {
    let cases: Vec<_> =
        (0..2_000).map(|n| case("x", &[("n", &n.to_string())], Outcome::Fail(Failure::Sanity), Phase::Sanity)).collect();
    let session = Session { num_cases: 2_000, ..session() };
    let results = Results::new(&session, &cases);
    let page = html(&results);
    assert_eq!((page.matches("<details").count(), page.contains("1900 more failures")), (100, true));
    assert!(page.len() < 1_300_000, "{} bytes", page.len());
    assert!(markdown(&results).len() < 64 * 1024);
}

#[test]
fn a_site_fills_in_blocks_of_the_page() {
    let own = r#"{% extends "builtin/report.html" %}{% block header %}<p>{{ include_me }}{% include "logo.html" %}</p>{% endblock header %}"#;
    let own = own.replace("{{ include_me }}", "{{ session.host }}: ");
    let templates = Templates::new([("report.html", own.as_str()), ("logo.html", "<b>EIDF</b>")]).unwrap();
    let page = with(|results| templates.html(results, &reader()).unwrap());
    assert!(page.contains("<p>login-1: <b>EIDF</b></p>") && page.contains("nbody_pods"), "{page}");
}

#[test]
fn a_mistake_in_a_sites_template_is_shown_with_its_line() {
    let mistake = |text: &str| chain(&Templates::new([("summary.md", text)]).unwrap_err());
    let texts = [mistake("## {{ verdict.word"), mistake("one\n{{ verdikt.word }}\n"), mistake("{{ session.id | shout }}")];
    assert_snapshot!(texts.join("\n\n"));
}
