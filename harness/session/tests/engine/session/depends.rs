//! Cases that depend on others.

use crate::support::{Bench, Case, Options, all, case, tally};
use muster_core::result::Outcome;
use muster_fake::Call;
use muster_session::engine::ExecPolicy;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::sleep;

fn takes(ms: u64) -> Value {
    json!({ "statuses": [{ "state": "running" }, { "after_ms": ms, "state": "ended" }] })
}

fn fails(ms: u64) -> Value {
    json!({ "statuses": [{ "state": "running" }, { "after_ms": ms, "state": "ended", "exit": 1 }] })
}

fn turns(bench: &mut Bench) -> Vec<String> {
    let lines = bench.drain();
    lines.into_iter().filter(|line| line.starts_with("begun") || line.starts_with("finished")).collect()
}

fn stage(bench: &Bench, name: &str) -> PathBuf {
    bench.folder.path().join(format!("stage/test/p/default/{name}_0123456789abcdef"))
}

#[tokio::test(start_paused = true)]
async fn a_case_begins_when_all_that_it_needs_has_passed() {
    let mut bench = Bench::new().await;
    let wide = |case: Case| Case { max_jobs: 8, ..case };
    all(
        &bench,
        [
            wide(case("last", takes(1)).after(&["middle", "slow"])),
            wide(case("middle", takes(10)).after(&["first"])),
            wide(case("first", takes(10))),
            wide(case("slow", takes(100))),
        ],
    )
    .await;
    // Two that begin at once may be told of in any order.
    let turns: Vec<_> = turns(&mut bench).into_iter().filter(|line| line != "begun first" && line != "begun slow").collect();
    insta::assert_snapshot!(turns.join("\n"), @"
    finished first pass
    begun middle
    finished middle pass
    finished slow pass
    begun last
    finished last pass
    ");
}

#[tokio::test(start_paused = true)]
async fn one_slot_is_enough_for_any_chain() {
    for policy in [ExecPolicy::Async, ExecPolicy::Serial] {
        let bench = Bench::with(Options { policy, ..Options::default() }).await;
        let name = |n: usize| format!("c{n}");
        let chain = (0..20).rev().map(|n| {
            let one = case(&name(n), takes(10));
            if n == 0 { one } else { one.after(&[&name(n - 1)]) }
        });
        bench.engine.submit_all(chain.map(Case::queued));
        let results = bench.engine.finish().await;
        assert_eq!(tally(&results), BTreeMap::from([("pass".to_owned(), 20)]));
        let ended: Vec<String> = results.iter().map(|result| result.name.display.clone()).collect();
        assert_eq!(ended, (0..20).map(name).collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn what_depends_on_a_failure_is_skipped_and_says_so() {
    let mut bench = Bench::new().await;
    let results = all(
        &bench,
        [
            case("bad", fails(10)),
            case("user", takes(1)).after(&["bad"]),
            case("its-user", takes(1)).after(&["user"]),
            case("other", takes(1)),
            Case { skip: Some("no GPU here".into()), ..case("left-out", takes(1)) },
            case("without", takes(1)).after(&["left-out"]),
            case("lost", takes(1)).after(&["nowhere"]),
        ],
    )
    .await;
    let told: Vec<String> = results
        .iter()
        .map(|result| {
            let words = [result.cause.as_deref(), result.blocked_by.as_deref()].map(Option::unwrap_or_default);
            format!("{} {}: {} <{}>", result.name.display, result.outcome, words[0], words[1])
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    bad fail{workload}: exit status 1 <>
    user skip: it depends on bad @test:p+default, which ended as fail{workload} <bad @test:p+default>
    its-user skip: it depends on user @test:p+default, not run because bad @test:p+default ended as fail{workload} <bad @test:p+default>
    other pass:  <>
    left-out skip: no GPU here <>
    without skip: it depends on left-out @test:p+default, which was skipped: no GPU here <left-out @test:p+default>
    lost skip: it depends on nowhere @test:p+default, which is not part of this session <nowhere @test:p+default>
    ");
    assert_eq!(bench.fake.created(), 2);
    assert!(turns(&mut bench).contains(&"finished other pass".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_case_is_given_what_those_before_it_have_said_and_left() {
    let bench = Bench::new().await;
    let says = json!({ "statuses": [{ "state": "running" }, { "state": "ended" }],
        "logs": [{ "text": "STORAGE=/scratch/1\n" }] });
    let outputs = BTreeMap::from([("dir".to_owned(), "STORAGE=(.*)".to_owned())]);
    let notes: Arc<Mutex<Vec<String>>> = Arc::default();
    let results = all(
        &bench,
        [
            Case { outputs, ..case("storage", says) },
            Case { notes: Arc::clone(&notes), ..case("user", takes(1)).after(&["storage"]) },
        ],
    )
    .await;
    assert_eq!(tally(&results), BTreeMap::from([("pass".to_owned(), 2)]), "{results:?}");
    let note = bench.relative(&notes.lock().unwrap()[0]);
    insta::assert_snapshot!(note, @r#"user: {"storage":{"stagedir":"/stage/test/p/default/storage_0123456789abcdef","outputs":{"dir":"/scratch/1"}}}"#);
}

#[tokio::test(start_paused = true)]
async fn a_case_that_does_not_say_what_others_need_has_not_passed() {
    let bench = Bench::new().await;
    let outputs = BTreeMap::from([("dir".to_owned(), "STORAGE=(.*)".to_owned())]);
    let storage = Case { outputs, ..case("storage", takes(1)) };
    let results = all(&bench, [storage, case("user", takes(1)).after(&["storage"])]).await;
    let told: Vec<_> = results.iter().map(|r| format!("{}: {}", r.outcome, r.cause.as_deref().unwrap_or_default())).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    invalid{metrics}: output `dir` was not found: no match of 'STORAGE=(.*)', which other cases depend on
    skip: it depends on storage @test:p+default, which ended as invalid{metrics}
    ");
}

#[tokio::test(start_paused = true)]
async fn a_stage_folder_stays_until_its_last_user_is_over() {
    let bench = Bench::new().await;
    let wide = |case: Case| Case { max_jobs: 8, ..case };
    let results = bench.submit_all(
        [
            wide(case("build", takes(10))),
            wide(case("short", takes(10)).after(&["build"])),
            wide(case("long", takes(1000)).after(&["build"])),
        ]
        .map(Case::queued),
    );
    let build = stage(&bench, "build");
    sleep(Duration::from_millis(500)).await;
    assert!(build.is_dir());
    for result in results {
        assert_eq!(result.await.expect("a result").outcome, Outcome::Pass);
    }
    bench.engine.finish().await;
    assert!(!build.exists());
    let kept = bench.folder.path().join("output/test/p/default/build_0123456789abcdef/rfm_job.out");
    assert!(kept.is_file(), "what it wrote is kept as of any that passed");
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_case_was_given_stays_to_be_looked_at() {
    let bench = Bench::new().await;
    all(&bench, [case("build", takes(10)), case("user", fails(10)).after(&["build"])]).await;
    bench.engine.finish().await;
    bench.engine.tear_down().await;
    assert!(stage(&bench, "build").is_dir());
}

#[tokio::test(start_paused = true)]
async fn a_later_round_counts_on_what_has_passed() {
    let mut bench = Bench::new().await;
    all(&bench, [case("build", takes(10)), case("user", fails(10)).after(&["build"])]).await;
    let again = all(&bench, [case("user", takes(10)).after(&["build"])]).await;
    assert_eq!(again[0].outcome, Outcome::Pass);
    assert_eq!(turns(&mut bench).iter().filter(|line| *line == "begun build").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_case_of_another_session_is_counted_on_as_long_as_what_it_left_is_there() {
    let bench = Bench::new().await;
    let before = all(&bench, [case("build", takes(10)), case("user", fails(10)).after(&["build"])]).await;
    bench.engine.finish().await;
    for is_there in [true, false] {
        if !is_there {
            // Somebody who was killed had begun to tear it down.
            std::fs::write(stage(&bench, "build").join(".torn-down"), "").unwrap();
        }
        let heir = Bench::new().await;
        heir.engine.recall(Arc::clone(&before[0]));
        let user = all(&heir, [case("user", takes(10)).after(&["build"])]).await;
        let expected = if is_there { Outcome::Pass } else { Outcome::Skip };
        assert_eq!(user[0].outcome, expected, "{:?}", user[0].cause);
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_aborts_what_is_held() {
    let bench = Bench::new().await;
    let results = bench.submit_all(
        [case("build", takes(1000)), case("user", takes(1)).after(&["build"]), case("its-user", takes(1)).after(&["user"])]
            .map(Case::queued),
    );
    sleep(Duration::from_millis(100)).await;
    bench.engine.cancel("Ctrl-C");
    let mut outcomes = Vec::new();
    for result in results {
        outcomes.push(result.await.expect("a result").outcome.to_string());
    }
    assert_eq!(outcomes, ["abort"; 3]);
    bench.engine.finish().await;
    assert_eq!(bench.fake.jobs().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn after_maxfail_what_is_held_is_aborted_too() {
    let bench = Bench::with(Options { maxfail: Some(1), ..Options::default() }).await;
    let wide = |case: Case| Case { max_jobs: 8, ..case };
    let results = all(
        &bench,
        [wide(case("slow", takes(1000))), wide(case("bad", fails(10))), wide(case("user", takes(1)).after(&["slow"]))],
    )
    .await;
    assert_eq!(tally(&results), BTreeMap::from([("abort".into(), 1), ("fail{workload}".into(), 1), ("pass".into(), 1)]));
}

/// The calls that change something, each by the place of its case in the order of plans.
fn changes(bench: &Bench) -> Vec<String> {
    let calls = bench.fake.calls();
    let mut known = Vec::new();
    let mut lines = Vec::new();
    for (call, identifier) in calls {
        if call == Call::Plan {
            known.push(identifier.clone());
        }
        let number = known.iter().position(|other| *other == identifier).unwrap_or_default();
        if matches!(call, Call::Launch | Call::Delete | Call::Stop) {
            lines.push(format!("{call:?} {number}"));
        }
    }
    lines
}

#[tokio::test(start_paused = true)]
async fn a_teardown_runs_after_the_last_user_and_before_its_slot_is_free() {
    let bench = Bench::new().await;
    let build = Case { teardown: Some(takes(10)), ..case("build", takes(10)) };
    let user = |name: &str| case(name, takes(10)).after(&["build"]);
    let results = all(&bench, [build, user("one"), user("two"), case("other", takes(10))]).await;
    assert_eq!(tally(&results), BTreeMap::from([("pass".to_owned(), 4)]));
    bench.engine.finish().await;
    let lines = changes(&bench);
    // build, other, one, two in the order of their turns; then the teardown.
    assert_eq!(lines.len(), 10, "{lines:?}");
    assert_eq!(lines[8..], ["Launch 4", "Delete 4"], "{lines:?}");
    assert!(!stage(&bench, "build").exists());
    assert_eq!(bench.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_failed_or_served_a_failure_is_torn_down_at_the_end_and_a_case_without_users_at_once() {
    let bench = Bench::new().await;
    let build = |name: &str, scenario| Case { teardown: Some(takes(10)), ..case(name, scenario) };
    let bad_user = case("user", fails(10)).after(&["build"]);
    all(&bench, [build("build", takes(10)), bad_user, build("bad", fails(10)), build("alone", takes(10))]).await;
    bench.engine.finish().await;
    assert_eq!(bench.fake.created(), 6, "two are torn down: {:?}", changes(&bench));
    bench.engine.tear_down().await;
    assert_eq!(bench.fake.created(), 7);
    assert!(stage(&bench, "bad").is_dir() && !stage(&bench, "build").exists());
}

#[tokio::test(start_paused = true)]
async fn after_an_interrupt_what_was_built_is_still_torn_down() {
    let bench = Bench::new().await;
    let build = Case { teardown: Some(takes(10)), ..case("build", takes(10)) };
    let results = bench.submit_all([build, case("user", takes(60_000)).after(&["build"])].map(Case::queued));
    sleep(Duration::from_millis(500)).await;
    bench.engine.cancel("Ctrl-C");
    for result in results {
        result.await.expect("a result");
    }
    bench.engine.finish().await;
    bench.engine.tear_down().await;
    assert_eq!((bench.fake.created(), bench.left()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn after_an_interrupt_what_stays_is_named_with_how_to_remove_it() {
    let bench = Bench::new().await;
    let torn = Case { teardown: Some(takes(10)), ..case("torn", takes(10)) };
    let stuck = Case { teardown: Some(fails(10)), ..case("stuck", takes(10)) };
    let user = Case { max_jobs: 8, ..case("user", takes(60_000)).after(&["build", "torn", "stuck"]) };
    let results = bench.submit_all([case("build", takes(10)), torn, stuck, user].map(Case::queued));
    sleep(Duration::from_millis(500)).await;
    let standing = |bench: &Bench| bench.engine.not_torn_down().iter().map(|case| case.name.display.clone()).collect::<Vec<_>>();
    assert_eq!(standing(&bench), ["build", "torn", "stuck"], "what a second signal would leave");
    bench.engine.cancel("Ctrl-C");
    for result in results {
        result.await.expect("a result");
    }
    bench.engine.finish().await;
    bench.engine.tear_down().await;
    assert_eq!(standing(&bench), [""; 0]);
    let kept = bench.engine.with_leftovers().await;
    let kept: Vec<_> =
        kept.iter().map(|case| bench.relative(&format!("{}: {}", case.name.display, case.delete.join("; ")))).collect();
    insta::assert_snapshot!(kept.join("\n"), @"
    build: rm -r /stage/test/p/default/build_0123456789abcdef
    stuck: rm -r /stage/test/p/default/stuck_0123456789abcdef; rm -r /stage/test/p/default/stuck_0123456789abcdef.teardown
    ");
}

#[tokio::test(start_paused = true)]
async fn a_teardown_that_hangs_or_fails_ends_no_session_and_is_told() {
    let mut bench = Bench::new().await;
    let hangs = Case { teardown: Some(json!({ "statuses": [{ "state": "running" }] })), ..case("hangs", takes(10)) };
    let breaks = Case { teardown: Some(fails(10)), ..case("breaks", takes(10)) };
    let results = all(&bench, [hangs, breaks]).await;
    assert_eq!(tally(&results), BTreeMap::from([("pass".to_owned(), 2)]));
    bench.engine.finish().await;
    let mut warnings: Vec<_> = bench.drain().into_iter().filter(|line| line.starts_with("warning")).collect();
    warnings.sort();
    let told: Vec<_> = warnings.iter().map(|line| line.split(';').next().unwrap_or_default()).collect();
    assert_eq!(
        told,
        [
            "warning the teardown of breaks @test:p+default failed: exit status 1",
            "warning the teardown of hangs @test:p+default failed: still running after 5m",
        ]
    );
    assert_eq!(bench.left(), 0);
}
