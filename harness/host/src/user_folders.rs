//! The folders of a user's files, by the XDG Base Directory Specification.

use std::{env, ffi::OsString, path::PathBuf};

/// The kinds of files that have a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Settings,
    State,
}

impl Kept {
    /// The variable that says where, and the folder in the home folder if it does not.
    fn places(self) -> (&'static str, &'static str) {
        match self {
            Self::Settings => ("XDG_CONFIG_HOME", ".config"),
            Self::State => ("XDG_STATE_HOME", ".local/state"),
        }
    }

    /// The folder that the variable names.
    pub fn named(self) -> Option<PathBuf> {
        valid(env::var_os(self.places().0))
    }

    /// `None`: neither the variable nor HOME says where.
    pub fn folder(self) -> Option<PathBuf> {
        let home = || env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        self.named().or_else(|| Some(home()?.join(self.places().1)))
    }
}

/// The specification has relative paths ignored: they would name another folder in each working folder.
fn valid(value: Option<OsString>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_empty_or_relative_counts_as_none() {
        for (value, folder) in
            [(Some("/state"), Some("/state")), (Some("state"), None), (Some("./state"), None), (Some(""), None)]
        {
            assert_eq!(valid(value.map(OsString::from)), folder.map(PathBuf::from), "{value:?}");
        }
        assert_eq!(valid(None), None);
    }
}
