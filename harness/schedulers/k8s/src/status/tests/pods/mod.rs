//! Pods: what a `status` says.

mod disruption;
mod ends;
mod kills;
mod phases;
mod several;
mod waiting;

use crate::status::testing::Scene;

/// A Pod whose only container has this state.
fn container(state: &str) -> Scene {
    Scene::own_pod(&format!(
        "status: {{phase: Running, containerStatuses: [{{name: main, image: i, imageID: '', ready: false, restartCount: 0, state: {state}}}]}}"
    ))
}

/// A Pod in phase Failed whose only container ended so.
fn failed(end: &str, more: &str) -> Scene {
    Scene::own_pod(&format!(
        "status: {{phase: Failed, {more} containerStatuses: [{{name: main, image: i, imageID: '', ready: false, restartCount: 0, \
         state: {{terminated: {{startedAt: '@3', finishedAt: '@9', {end}}}}}}}]}}"
    ))
}

/// A Pod whose only container waits so.
fn waiting(reason: &str, message: &str) -> Scene {
    Scene::own_pod(&format!(
        "status: {{phase: Pending, containerStatuses: [{{name: main, image: 'reg/i:1', imageID: '', ready: false, restartCount: 0, \
         state: {{waiting: {{reason: {reason}, message: '{message}'}}}}}}]}}"
    ))
}

const RUNNING: &str = "{running: {startedAt: '@3'}}";
