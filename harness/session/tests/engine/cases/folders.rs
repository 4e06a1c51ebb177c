//! Stage and output folders.

use crate::support::Bench;
use muster_core::result::Outcome;
use serde_json::{Value, json};
use std::{fs, os::unix::fs::symlink, path::PathBuf};

fn fails() -> Value {
    json!({ "statuses": [{ "state": "ended", "exit": 1 }] })
}

fn stage(bench: &Bench) -> PathBuf {
    bench.folder.path().join("stage/test/p/default/case_0123456789abcdef")
}

fn output(bench: &Bench) -> PathBuf {
    bench.folder.path().join("output/test/p/default/case_0123456789abcdef")
}

#[tokio::test(start_paused = true)]
async fn a_pass_keeps_its_stdout_in_output_and_drops_its_stage() {
    let bench = Bench::new().await;
    let result = bench.scenario(json!({})).await;
    assert_eq!(result.folder.as_deref(), Some(output(&bench).as_path()));
    assert!(output(&bench).join("rfm_job.out").exists() && output(&bench).join("pods.json").exists());
    assert!(!stage(&bench).exists());
    assert_eq!((result.look.len(), result.delete.len()), (0, 0));
    // Once more: the newer one stands.
    let again = bench.scenario(json!({})).await;
    let text = fs::read_to_string(output(&bench).join("rfm_job.out")).expect("a stdout");
    assert!(text.starts_with(again.identifier.as_ref().expect("planned").as_str()));
}

#[tokio::test(start_paused = true)]
async fn a_case_that_runs_again_replaces_what_it_left() {
    let bench = Bench::new().await;
    bench.scenario(fails()).await;
    fs::create_dir(stage(&bench).join("deep")).expect("a folder");
    fs::write(stage(&bench).join("deep/old"), "old").expect("a file");
    bench.scenario(fails()).await;
    assert!(stage(&bench).join("rfm_job.out").exists());
    assert!(!stage(&bench).join("deep").exists());
}

#[tokio::test(start_paused = true)]
async fn a_symbolic_link_in_the_way_never_leads_outside_the_stage() {
    let bench = Bench::new().await;
    let precious = bench.folder.path().join("precious");
    fs::create_dir_all(precious.join("case_0123456789abcdef")).expect("a folder");
    fs::write(precious.join("case_0123456789abcdef/file"), "keep me").expect("a file");
    // In the place of the case's own folder: the link goes, what it leads to stays.
    fs::create_dir_all(stage(&bench).parent().expect("a parent")).expect("a folder");
    symlink(precious.join("case_0123456789abcdef"), stage(&bench)).expect("a link");
    assert_eq!(bench.scenario(json!({})).await.outcome, Outcome::Pass);
    assert!(precious.join("case_0123456789abcdef/file").exists());
    // Above it: refused.
    let environ = stage(&bench).parent().expect("a parent").to_owned();
    fs::remove_dir_all(&environ).expect("removed");
    symlink(&precious, &environ).expect("a link");
    let result = bench.scenario(json!({})).await;
    assert_eq!(result.outcome.to_string(), "error{infra}");
    insta::assert_snapshot!(bench.relative(result.cause.as_deref().unwrap_or_default()), @"remove /stage/test/p/default/case_0123456789abcdef: it is not within the stage root /stage");
    assert!(precious.join("case_0123456789abcdef/file").exists());
}
