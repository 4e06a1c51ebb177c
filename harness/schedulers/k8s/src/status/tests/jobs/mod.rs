//! Jobs: their conditions, whatever their pods look like.

mod failed;
mod going;
mod succeeded;

use crate::status::testing::Scene;

fn container(state: &str, restarts: u32) -> String {
    format!("containerStatuses: [{{name: main, image: i, imageID: '', ready: false, restartCount: {restarts}, state: {state}}}]")
}

fn ended(phase: &str, code: u32) -> String {
    let state = format!("{{terminated: {{exitCode: {code}, startedAt: '@3', finishedAt: '@9'}}}}");
    format!("status: {{phase: {phase}, {}}}", container(&state, 0))
}

fn good() -> String {
    ended("Succeeded", 0)
}

fn running() -> String {
    format!("status: {{phase: Running, {}}}", container("{running: {startedAt: '@3'}}", 0))
}

/// A Job with this condition since @10.
fn job(kind: &str, reason: &str, more: &str) -> Scene {
    Scene::job(&format!(
        "status: {{conditions: [{{type: {kind}, status: 'True', reason: {reason}, message: detail so, lastTransitionTime: '@10'}}]}}\n{more}"
    ))
    .at(30)
}

fn complete() -> Scene {
    job("Complete", "CompletionsReached", "")
}

// Success.
