//! Globs over the paths within one folder: `readonly_files`, `keep_files`, `file`.
//!
//! `*` and `?` stay within one component, `**` spans several, `[ab]` and `{a,b}` choose. A glob that fits a folder covers all
//! that is in it.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// The reason why a text is not a glob of paths within a folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// The path leads out of the folder, or is empty.
    #[error("`{0}` is not a path within the folder")]
    Outside(String),
    #[error("`{text}` is not a glob: {why}")]
    Syntax { text: String, why: String },
}

impl GlobError {
    /// Returns what to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Outside(_) => "write it relative to the folder, without `..`",
            Self::Syntax { .. } => "`*`, `?`, `**`, `[ab]` and `{a,b}` have a meaning; `\\` takes it away",
        }
    }
}

/// A set of globs.
#[derive(Debug, Clone)]
pub struct Globs(GlobSet);

impl Globs {
    /// Compiles globs.
    ///
    /// # Errors
    /// The first that is none.
    pub fn compile<T: AsRef<str>>(globs: &[T]) -> Result<Self, GlobError> {
        let mut set = GlobSetBuilder::new();
        let mut compiled = |text: &str, pattern: &str| -> Result<(), GlobError> {
            let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
            let why = |error: globset::Error| GlobError::Syntax { text: text.to_owned(), why: error.kind().to_string() };
            set.add(glob.map_err(why)?);
            Ok(())
        };
        for text in globs.iter().map(AsRef::as_ref) {
            let path = within(text)?;
            compiled(text, path)?;
            compiled(text, &format!("{path}/**"))?;
        }
        let too_many = |error: globset::Error| GlobError::Syntax { text: String::new(), why: error.to_string() };
        Ok(Self(set.build().map_err(too_many)?))
    }

    /// Returns whether one of the globs fits a path, or a folder above it.
    pub fn cover(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

/// Returns whether a glob fits no other path than the one it looks like.
pub fn is_literal(glob: &str) -> bool {
    !glob.contains(['*', '?', '[', '{', '\\'])
}

/// The path that a glob without wildcards means.
pub fn plain(glob: &str) -> &str {
    within(glob).unwrap_or(glob)
}

/// A glob without what does not matter, if it stays within its folder.
fn within(text: &str) -> Result<&str, GlobError> {
    let path = text.strip_prefix("./").unwrap_or(text).trim_end_matches('/');
    if path.is_empty() || path == "." || text.starts_with('/') || path.split('/').any(|part| part == "..") {
        return Err(GlobError::Outside(text.to_owned()));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_within_a_component_and_a_folder_covers_what_is_in_it() {
        let rows = [
            ("*.csv", "a.csv", true),
            ("*.csv", "d/a.csv", false),
            ("**/*.csv", "d/e/a.csv", true),
            ("**/*.csv", "a.csv", true),
            ("./out.txt", "out.txt", true),
            ("results/", "results/x/y", true),
            ("results", "results2/x", false),
            ("rank{0,1}.[ab]", "rank1.b", true),
            ("rank?", "rank12", false),
            (r"a\*b", "a*b", true),
            (r"a\*b", "aXb", false),
        ];
        for (glob, path, expected) in rows {
            assert_eq!(Globs::compile(&[glob]).unwrap().cover(path), expected, "{glob} {path}");
        }
    }

    #[test]
    fn what_leads_out_of_the_folder_is_no_glob() {
        for text in ["", ".", "/", "/etc/passwd", "../x", "a/../../b", "./"] {
            assert_eq!(Globs::compile(&[text]).unwrap_err(), GlobError::Outside(text.to_owned()));
        }
        insta::assert_snapshot!(Globs::compile(&["[a"]).unwrap_err(), @"`[a` is not a glob: unclosed character class; missing ']'");
    }
}
