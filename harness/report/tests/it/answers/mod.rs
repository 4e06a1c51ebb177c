mod causes;
mod compared;
mod history;
mod suggested;

use muster_core::{night::Night, query::figures::Metric};

/// 2026-11-24
const NIGHT: Night = Night(20_781);

fn metric(case: &str, variable: &str) -> Metric {
    Metric {
        case: case.into(),
        system: "eidf".into(),
        partition: "gpu".into(),
        environ: "default".into(),
        variable: variable.into(),
        key: None,
    }
}
