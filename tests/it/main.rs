//! Behaviour of the whole program, as its users see it: every test runs the real binary in a folder of its own.

#[path = "../common/mod.rs"]
mod common;
mod sandbox;

mod attach;
mod author;
mod bad_input;
mod containers;
mod convert;
mod deploy;
mod docs;
mod facts;
mod file_modes;
mod files;
mod fixtures;
mod guide;
mod judging;
mod k8s;
mod kept;
mod libtest;
mod listing;
mod log_limit;
mod mistakes;
mod modules;
mod open_files;
mod owners;
mod proxy;
mod readme;
mod redraw;
mod reference_files;
mod reports;
mod resume;
mod rounds;
mod running;
mod signals;
mod staging;
mod surroundings;
