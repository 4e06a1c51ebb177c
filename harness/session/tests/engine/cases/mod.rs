//! One case: its outcome, log, folders and row in the store.

mod folders;
mod lines;
mod local;
mod logs;
mod outcomes;
mod redraw;
mod stored;
