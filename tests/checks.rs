//! A folder of checks as a test binary: `cargo test --test checks`, `cargo nextest run --test checks`.
//!
//! The selection comes from `MUSTER_*` (`MUSTER_CHECKPATH`, `MUSTER_SYSTEM`, ..), by default the checks of this repository;
//! the arguments are libtest's. See docs/nextest.md.

fn main() -> std::process::ExitCode {
    muster::tests("checks", env!("CARGO_BIN_EXE_muster"))
}
