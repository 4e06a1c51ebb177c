//! A credential plugin that fails, and how often it is run.

use crate::test_cluster::{TestCluster, is_over, is_running, pod};
use futures_util::future::join_all;
use muster_core::job::scheduler::Job;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const PODS: usize = 20;

pub(crate) async fn a_plugin_that_fails_for_a_while_ends_no_launch_and_is_run_once_for_all(cluster: TestCluster) {
    cluster.log_in_by_plugin(None);
    let jobs: Vec<Job> = (0..PODS).map(|_| cluster.plan(pod("", "run; exit 0"))).collect();
    let started = Instant::now();
    let working = async {
        sleep(Duration::from_secs(3)).await;
        let failed = cluster.plugin_runs();
        assert!((1..=4).contains(&failed), "{failed} runs while it failed");
        cluster.log_in_by_plugin(Some("from-plugin"));
        failed
    };
    let (launched, failed) = tokio::join!(join_all(jobs.iter().map(|job| cluster.launch(job))), working);
    assert!(started.elapsed() >= Duration::from_secs(3));
    for job in &launched {
        cluster.wait_for(job, is_over).await;
    }
    assert!(cluster.plugin_runs() <= failed + 2, "{} runs after {failed}", cluster.plugin_runs());
}

pub(crate) async fn a_token_that_ends_is_renewed_once_for_all_that_runs(cluster: TestCluster) {
    cluster.log_in_by_plugin(Some("first-of-plugin"));
    let jobs: Vec<Job> = (0..PODS).map(|_| cluster.plan(pod("", "run; lines 40 100ms; exit 0"))).collect();
    let jobs = join_all(jobs.iter().map(|job| cluster.launch(job))).await;
    let lives = join_all(jobs.iter().map(async |job| {
        let (_, logs) = tokio::join!(cluster.wait_for(job, is_over), cluster.logs(job));
        logs.gaps.len()
    }));
    let rotated = async {
        cluster.wait_for(&jobs[0], is_running).await;
        let before = cluster.plugin_runs();
        // It fails for a moment, and everything has to be opened again.
        cluster.log_in_by_plugin(None);
        cluster.fake().rotate_token("second-of-plugin").expect("a file");
        cluster.fake().cut("watch=true");
        cluster.fake().cut("/log");
        sleep(Duration::from_millis(1500)).await;
        cluster.log_in_by_plugin(Some("second-of-plugin"));
        before
    };
    let (gaps, before) = tokio::join!(lives, rotated);
    assert_eq!(gaps, [0; PODS]);
    assert!(cluster.plugin_runs() - before <= 5, "{} runs", cluster.plugin_runs() - before);
}
