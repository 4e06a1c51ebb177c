//! The layout of the code base: which file imports which, read with `syn`.
//!
//! `cargo test -p muster-layout` holds the rules (`tests/layout.rs`); `cargo run -p muster-layout [FOLDER]` prints the figures of a
//! workspace: lines, files of a directory, import levels, cycles.
//!
//! Imports are read from `use` trees, from paths anywhere in the code and from the tokens of macros. A path is followed through
//! `crate`, `self`, `super`, child modules, earlier `use` items and globs of the module. What test code imports does not count:
//! items under `#[cfg(test)]` and `#[test]`, and the modules `tests` and `testing`.

pub mod comments;
pub mod cycles;
pub mod figures;
pub mod imports;
pub mod modules;
mod source;
pub mod workspace;
