//! Several rounds of one engine: what each result is worth, and what begins anew.

use crate::support::{Bench, Options, case};
use muster_check::site::quarantine::{self, List};
use muster_core::result::{CaseResult, Counting, Outcome};
use muster_session::{case::QueuedCase, engine::ExecPolicy};
use muster_text::{
    decode::{Context, Placeholders},
    diagnostic::Sources,
    time::Date,
    yaml,
};
use serde_json::json;
use std::sync::Arc;

fn list(text: &str, today: &str) -> List {
    let parsed = yaml::parse(Sources::default().add("quarantine.yaml", text), text);
    let mut context = Context::new(Placeholders::Refuse);
    let entries = quarantine::read(&parsed.documents[0], &mut context);
    List::new(entries, Date::parse(today).expect("a day"))
}

async fn attempt(bench: &Bench, name: &str, exit: i32, attempt: u32) -> Arc<CaseResult> {
    let scenario = json!({ "statuses": [{ "state": "ended", "exit": exit }] });
    let queued = QueuedCase { attempt, ..case(name, scenario).queued() };
    bench.submit(queued).await.expect("a result")
}

#[tokio::test(start_paused = true)]
async fn a_pass_after_a_retry_is_flaky() {
    for (counting, flaky) in [(Counting::Last, true), (Counting::Every, false)] {
        let bench = Bench::with(Options { counting, ..Options::default() }).await;
        let [first, second] = [attempt(&bench, "a", 1, 1).await, attempt(&bench, "a", 0, 2).await];
        assert_eq!((first.flaky, second.flaky, &second.outcome), (false, flaky, &Outcome::Pass), "{counting:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_says_whether_it_counts() {
    let quarantine = list(
        "[{ name: ^a, reason: ticket 1, until: 2026-06-30 }, { name: ^b, reason: ticket 2, until: 2026-06-29 }]",
        "2026-06-30",
    );
    let bench = Bench::with(Options { quarantine, maxfail: Some(2), ..Options::default() }).await;
    let held = attempt(&bench, "a", 1, 1).await;
    assert_eq!(held.quarantine.as_ref().map(|quarantine| quarantine.reason.as_str()), Some("ticket 1"));
    let over = attempt(&bench, "b", 1, 1).await;
    assert_eq!(
        (over.quarantine.as_ref(), over.warnings.as_slice()),
        (None, &["it was in quarantine until 2026-06-29 and counts again (ticket 2)".to_owned()][..])
    );
    assert_eq!(attempt(&bench, "c", 0, 1).await.quarantine, None);
    assert!(!bench.engine.is_closed(), "one failure counts");
}

#[tokio::test(start_paused = true)]
async fn failures_are_counted_anew_in_each_round() {
    let options = Options { maxfail: Some(2), policy: ExecPolicy::Serial, ..Options::default() };
    let mut bench = Bench::with(options).await;
    attempt(&bench, "a", 1, 1).await;
    bench.engine.finish().await;
    bench.engine.begin_round(&[case("a", json!({})).queued()], "once more".into()).await;
    attempt(&bench, "a", 1, 2).await;
    assert!(!bench.engine.is_closed());
    assert!(bench.drain().contains(&"round of 1: once more".to_owned()));
    attempt(&bench, "b", 1, 2).await;
    assert_eq!(attempt(&bench, "c", 0, 2).await.outcome, Outcome::Abort);
    assert!(bench.engine.is_closed());
}
