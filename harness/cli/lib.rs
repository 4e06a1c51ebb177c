//! The command line: arguments, files, wiring and commands. It imports everything and decides nothing.

pub mod args;
