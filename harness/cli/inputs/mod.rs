//! Reads the user's files and options: settings, site files, check files, modes, quarantine, and the cases that they select.

pub mod documents;
pub mod expansion;
pub mod files;
pub mod modes;
pub mod quarantine;
pub mod rehearse;
pub mod selection;
pub mod settings_files;
pub mod unanswered;
