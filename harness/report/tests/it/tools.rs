//! Validators that are programs: used where they are, and missed aloud where they are not.

use std::{io::Write, process::Command};

/// Holds a text against a schema with a program, to which the text's file is the last argument.
pub(crate) fn validated(what: &str, text: &str, extension: &str, command: &[&str]) {
    let mut file = tempfile::Builder::new().suffix(&format!(".{extension}")).tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let (program, arguments) = command.split_first().unwrap();
    match Command::new(program).args(arguments).arg(file.path()).output() {
        Ok(ended) => {
            let said = [ended.stdout, ended.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
            assert!(ended.status.success(), "{what} does not keep to its schema: {said}\n{text}");
        }
        Err(error) => {
            // Past the test harness' capture: a check that did not happen must be seen.
            let _ = writeln!(
                std::io::stderr(),
                "!!! SKIPPED: {what} is not held against its schema, for there is no `{program}`: {error}"
            );
        }
    }
}
