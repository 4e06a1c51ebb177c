//! Files by name instead of a disk.

use super::{Loaded, Loader};

/// Loads the first file with all that it asks for, and returns what that was.
pub(crate) fn load_asked(files: &[(&str, &str)]) -> (Loaded, Vec<String>) {
    let mut loader = Loader::new(crate::testing::schedulers());
    let mut asked = vec![];
    loader.add(files[0].0, files[0].1);
    while let Some(path) = loader.wanted().pop() {
        let text = files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
        loader.provide(&path, text.ok_or_else(|| "no such file".to_owned()));
        asked.push(path);
    }
    (loader.finish(), asked)
}

/// Loads the first file with all that it asks for.
pub(crate) fn load(files: &[(&str, &str)]) -> Loaded {
    load_asked(files).0
}

/// The messages of all mistakes.
pub(crate) fn messages(loaded: &Loaded) -> Vec<&str> {
    loaded.diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).collect()
}
