//! The commands that change what is stored.

mod annotate;
mod rebuild;
mod remove;

pub use annotate::{alias, annotate};
pub use rebuild::rebuild;
pub use remove::{backup, delete, delete_selected, prune};

use crate::{args::Cli, settings::Places};
use muster_session::runtime;
use muster_store::{StoreError, Upkeep};

/// Opens the database, does something with it and closes it.
fn with<T>(cli: &Cli, work: impl AsyncFnOnce(&mut Upkeep) -> anyhow::Result<T>) -> anyhow::Result<T> {
    runtime::build()?.block_on(async {
        let mut upkeep = Upkeep::open(Places::of(cli).database).await?;
        let done = work(&mut upkeep).await;
        let closed: Result<(), StoreError> = upkeep.close().await;
        let done = done?;
        closed?;
        Ok(done)
    })
}

/// `4.2 MB`
#[allow(clippy::cast_precision_loss, reason = "a size for people")]
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
