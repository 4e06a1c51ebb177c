//! Where a case runs: a partition with one of its environments.

use crate::site::{Device, Environment, Partition, System};
use muster_text::{Value, expr::Scope};
use std::sync::Arc;

/// A partition with one of its environments, and what expressions see of them.
#[derive(Debug)]
pub struct Place {
    pub system: Arc<System>,
    pub partition: Arc<Partition>,
    pub environ: Arc<Environment>,
    /// `system`, `partition`, `environ` and `scheduler` in expressions.
    pub scope: Arc<Scope>,
}

impl Place {
    pub(crate) fn new(system: &Arc<System>, partition: &Arc<Partition>, environ: &Arc<Environment>, parent: &Arc<Scope>) -> Self {
        let mut scope = Scope::under(parent.clone());
        scope.set("partition", partition_value(partition));
        scope.set("environ", environ_value(environ));
        scope.set("scheduler", partition.scheduler.as_str());
        Self { system: system.clone(), partition: partition.clone(), environ: environ.clone(), scope: Arc::new(scope) }
    }
}

fn partition_value(partition: &Partition) -> Value {
    let device = |device: &Device| {
        let facts = [
            ("arch", device.arch.clone().map(Value::from)),
            ("model", device.model.clone().map(Value::from)),
            ("num_devices", device.num_devices.map(Value::from)),
        ];
        facts.into_iter().filter_map(|(key, fact)| fact.map(|fact| (key.to_owned(), fact))).collect::<serde_json::Map<_, _>>()
    };
    let devices: serde_json::Map<_, _> = partition.devices.iter().map(|d| (d.kind.clone(), Value::Object(device(d)))).collect();
    serde_json::json!({
        "name": partition.name,
        "descr": partition.descr,
        "scheduler": partition.scheduler.as_str(),
        "max_jobs": partition.max_jobs,
        "features": partition.features,
        "extras": partition.extras,
        "processor": partition.processor,
        "devices": devices,
    })
}

fn environ_value(environ: &Environment) -> Value {
    serde_json::json!({ "name": environ.name, "features": environ.features, "extras": environ.extras })
}
