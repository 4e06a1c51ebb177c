//! Commands that a person can paste into a shell.

use muster_core::{case::CaseName, result::CaseResult};
use muster_text::shell;

/// What runs one case again: its file, its hash, its place, and before them the options that the site and the check
/// were found and changed with (`-C`, `-S`, `--prefix`), which only the caller knows.
pub fn rerun(case: &CaseResult, options: &[String]) -> String {
    of_case(&case.name, &case.about.file, options)
}

/// The same for a case that has not run yet.
pub(crate) fn of_case(name: &CaseName, file: &str, options: &[String]) -> String {
    let mut words = vec!["muster".to_owned()];
    words.extend(options.iter().cloned());
    let (hash, place) = (format!("/{}", name.hash), name.system_partition());
    for (flag, value) in [("-c", file), ("-n", &hash), ("--system", &place), ("-p", &literal(&name.environ))] {
        words.extend([flag.to_owned(), value.to_owned()]);
    }
    words.push("-r".to_owned());
    words.iter().map(|word| shell::quote(word)).collect::<Vec<_>>().join(" ")
}

/// `-p` takes a regex: a `+` in an environment's name must not act as one.
fn literal(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for c in name.chars() {
        if r"\.+*?()|[]{}^$#&-~!".contains(c) && c != '-' {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_environment_is_not_a_pattern() {
        for (name, pattern) in [("default", "default"), ("gcc-13.2", r"gcc-13\.2"), ("gcc+mpi", r"gcc\+mpi")] {
            assert_eq!(literal(name), pattern);
        }
    }
}
