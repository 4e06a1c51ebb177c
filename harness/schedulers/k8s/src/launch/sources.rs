//! The files of `sourcesdir` for a Pod that is made from `image`: in a ConfigMap, whose keys become paths in the volume.

use crate::{job::Handle, plan::container::SOURCES};
use base64::{Engine, prelude::BASE64_STANDARD};
use muster_core::error::SchedulerError;
use muster_stage::{SentFile, sent_files};
use muster_text::Value;
use serde_json::{Map, json};
use std::path::Path;

/// What the API server takes as the data of a ConfigMap, without room for keys: 1 MiB.
const MOST_BYTES: u64 = (1 << 20) - (32 << 10);

/// Puts what was staged into the ConfigMap of a job. What is there already is replaced.
pub(super) async fn fill(handle: &mut Handle, stage: &Path) -> Result<(), SchedulerError> {
    if handle.sources.is_none() {
        return Ok(());
    }
    let files = sent_files(stage.to_owned(), MOST_BYTES).await?;
    put(handle, &files);
    Ok(())
}

/// A handle is stored, and the files are still in their folder.
pub(super) fn empty(handle: &mut Handle) {
    if handle.sources.is_some() {
        put(handle, &[]);
    }
}

fn put(handle: &mut Handle, files: &[SentFile]) {
    // A key has few letters that may be in it: the path is in the volume.
    let key = |at: usize| format!("f{at}");
    let items: Vec<Value> = files
        .iter()
        .enumerate()
        .map(|(at, file)| json!({ "key": key(at), "path": file.path, "mode": shared(file.mode) }))
        .collect();
    let data: Map<String, Value> =
        files.iter().enumerate().map(|(at, file)| (key(at), BASE64_STANDARD.encode(&file.data).into())).collect();
    let volumes = handle.objects.get_mut(handle.workload).and_then(|pod| pod.manifest["spec"]["volumes"].as_array_mut());
    let volume = volumes.and_then(|volumes| volumes.iter_mut().find(|volume| volume["name"] == SOURCES));
    let Some(source) = volume.map(|volume| &mut volume["configMap"]) else { return };
    source["items"] = items.into();
    let name = source["name"].as_str().unwrap_or_default().to_owned();
    let config_map = handle.objects.iter_mut().find(|object| object.resource.kind == "ConfigMap" && object.name == name);
    if let Some(config_map) = config_map {
        config_map.manifest["binaryData"] = data.into();
    }
}

/// A mode for a file that belongs to root, and that an image reads whose user is another: what its owner may is for all.
fn shared(mode: u32) -> u32 {
    let owner = mode >> 6 & 0o5;
    mode | owner << 3 | owner
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api::Resource, job::Object};

    fn handle() -> Handle {
        let object = |kind: &str, name: &str, manifest| Object {
            resource: Resource::of("v1", kind),
            name: name.to_owned(),
            manifest,
            uid: None,
        };
        let volumes = json!([{ "name": "own" }, { "name": SOURCES, "configMap": { "name": "m" } }]);
        Handle {
            objects: vec![
                object("ConfigMap", "other", json!({ "data": { "a": "b" } })),
                object("ConfigMap", "m", json!({})),
                object("Pod", "p", json!({ "spec": { "volumes": volumes } })),
            ],
            workload: 2,
            sources: Some(muster_core::job::workload::Staging { folder: "src".into(), readonly_files: vec![], limit: None }),
            ..Handle::default()
        }
    }

    #[test]
    fn files_become_keys_of_the_config_map_and_paths_of_the_volume() {
        let mut filled = handle();
        let file = |path: &str, mode, data: &[u8]| SentFile { path: path.to_owned(), mode, data: data.to_vec() };
        put(&mut filled, &[file("a b/run.sh", 0o755, b"true"), file("x", 0o600, &[0, 255])]);
        assert_eq!(filled.objects[0], handle().objects[0]);
        assert_eq!(filled.objects[1].manifest["binaryData"], json!({ "f0": "dHJ1ZQ==", "f1": "AP8=" }));
        let items = &filled.objects[2].manifest["spec"]["volumes"][1]["configMap"]["items"];
        assert_eq!(
            *items,
            json!([{ "key": "f0", "path": "a b/run.sh", "mode": 0o755 }, { "key": "f1", "path": "x", "mode": 0o644 }])
        );
        empty(&mut filled);
        assert_eq!(filled.objects[1].manifest["binaryData"], json!({}));
    }
}
