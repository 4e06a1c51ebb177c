//! Kubernetes without a cluster, partly on the API server of `tests/fake-api`.

mod doctor;
mod dry_run;
mod first_steps;
mod open_files;
mod preflight;
mod proxy;
