//! Objects for tests, written as YAML.

use crate::{
    handle::{ClusterPlace, Handle, Object, Resource},
    kind::WorkloadRules,
};
use k8s_openapi::api::core::v1::Pod;
use muster_core::Value;

/// Any object, as the server would show it.
pub(crate) fn yaml(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A pod; a spec without containers is completed.
pub(crate) fn pod(text: &str) -> Pod {
    let mut value = yaml(text);
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut)
        && !spec.contains_key("containers")
    {
        spec.insert("containers".into(), serde_json::json!([{"name": "main"}]));
    }
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A job `x` of one object of this kind.
pub(crate) fn handle(kind: &str) -> Handle {
    let api_version = match kind {
        "Pod" => "v1",
        "Job" => "batch/v1",
        _ => "example.org/v1",
    };
    Handle {
        place: ClusterPlace { context: Some("eidf".into()), namespace: "ns".into() },
        objects: vec![Object { resource: Resource::of(api_version, kind), name: "x".into(), manifest: Value::Null, uid: None }],
        workload: 0,
        expected_pods: None,
        rules: WorkloadRules::default(),
        keep_seconds: 86_400,
    }
}
