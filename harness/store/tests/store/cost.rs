//! What the store costs. A measurement, not a test: `cargo test --release -p muster-store --test store -- --ignored
//! --nocapture cost`.

use crate::support::{begin_in_night, database, intend, launched, owner, result, session};
use muster_core::result::Outcome;
use muster_store::Store;
use muster_text::time::Timestamp;
use std::{sync::Arc, time::Instant};

/// Processor time of this process so far, in milliseconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<f64> = stat[stat.rfind(')').unwrap() + 2..].split(' ').map(|x| x.parse().unwrap_or(0.0)).collect();
    (fields[11] + fields[12]) * 10.0
}

/// Resident memory in MB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn cost_of_a_case() {
    for producers in [1, 4, 32, 256] {
        let (cpu_before, began) = (cpu(), Instant::now());
        run_cases(5_000, producers).await;
        let (cpu, wall) = ((cpu() - cpu_before) / 5e3, began.elapsed().as_secs_f64() / 5.0);
        println!("{producers:3} at once: {cpu:.3} CPU ms, {wall:.3} ms a case");
    }
}

async fn run_cases(cases: u32, producers: u32) {
    let folder = tempfile::tempdir_in(".").unwrap();
    let store = Store::open(database(&folder)).await.unwrap();
    let session = Arc::new(begin_in_night(&store, session("0199cost", 1), &owner(1)).await);
    let tasks: Vec<_> = (0..producers)
        .map(|producer| {
            let (store, session) = (store.clone(), Arc::clone(&session));
            tokio::spawn(async move {
                for number in (producer..cases).step_by(producers as usize) {
                    let job = intend(&store, &session.id, number, 1).await.unwrap();
                    store.launched(&launched(&job), Timestamp(7));
                    tokio::task::yield_now().await;
                    store.cleaned(&job);
                    store.finished(&session.id, &result(number, 1, Outcome::Pass)).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    store.end(&session.id, &owner(1), Timestamp(2), false).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn memory_of_ten_thousand_waiting_cases() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let store = Store::open(database(&folder)).await.unwrap();
    let session = Arc::new(session("0199wait", 1));
    store.begin(&session, &owner(1)).await.unwrap();
    let before = resident();
    let waiting: Vec<_> = (0..10_000)
        .map(|number| {
            let (store, session) = (store.clone(), Arc::clone(&session));
            tokio::spawn(async move { intend(&store, &session.id, number, 1).await.map(drop) })
        })
        .collect();
    for case in waiting {
        case.await.unwrap().unwrap();
    }
    println!("{:.1} MB before, {:.1} MB at most", before, resident());
    store.close().await.unwrap();
}
