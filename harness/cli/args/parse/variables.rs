//! Variables of the environment that stand for flags: `MUSTER_EXEC_POLICY` is `--exec-policy`.

use crate::args::Cli;
use clap::{Arg, ArgAction, CommandFactory};
use std::ffi::OsString;

/// Reports variables that look like settings and are not: a typing mistake would go unnoticed.
pub fn unknown_variables(names: impl Iterator<Item = String>) -> Vec<String> {
    let command = Cli::command();
    let known: Vec<String> = command.get_arguments().filter_map(Arg::get_long).map(variable).collect();
    let is_known = |name: &String| known.contains(name) || OTHERS.iter().any(|other| name.starts_with(other));
    let unknown = names.filter(|name| name.starts_with("MUSTER_") && !is_known(name));
    let sentence = |name: String| match muster_text::diagnostic::nearest(&name, known.iter().map(String::as_str)) {
        Some(near) => format!("unknown variable {name}: did you mean {near}?"),
        None => format!("unknown variable {name}"),
    };
    unknown.map(sentence).collect()
}

/// Variables that are not flags: the log filter, and those of the tests, the gate and the benchmarks of this repository.
const OTHERS: [&str; 9] = [
    "MUSTER_LOG",
    "MUSTER_UPDATE",
    "MUSTER_CI_",
    "MUSTER_BENCH",
    "MUSTER_CLUSTER",
    "MUSTER_EC2",
    "MUSTER_POSTGRES",
    "MUSTER_SLURM",
    "MUSTER_TEST_KUBECONFIG",
];

/// The first variable of ours that nothing would be read from.
pub fn variable_that_is_no_text(mut variables: impl Iterator<Item = (OsString, OsString)>) -> Option<String> {
    variables.find_map(|(name, value)| {
        let is_wrong = name.as_encoded_bytes().starts_with(b"MUSTER_") && (name.to_str().is_none() || value.to_str().is_none());
        is_wrong.then(|| name.to_string_lossy().into_owned())
    })
}

/// `exec-policy` is `MUSTER_EXEC_POLICY`.
pub fn variable(long: &str) -> String {
    format!("MUSTER_{}", long.to_uppercase().replace('-', "_"))
}

/// Flags whose values may have commas.
pub(in crate::args) const SETTINGS: [&str; 3] = ["setvar", "parameterize", "job-option"];

/// The items of a list in a variable: settings are one a line, anything else is separated by commas.
pub fn listed<'a>(long: &str, value: &'a str) -> impl Iterator<Item = &'a str> {
    let separator = if SETTINGS.contains(&long) { '\n' } else { ',' };
    value.split(separator).map(|item| item.trim_end_matches('\r')).filter(|item| !item.is_empty())
}

/// Reports variables that may have several settings in one line: before, a comma divided them, and now it is part of a value.
pub fn doubtful_settings(env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let of = |long: &&str| {
        let name = variable(long);
        let doubtful =
            listed(long, &env(&name)?).filter(|line| has_another(line)).find_map(|line| line.split_once('='))?.0.to_owned();
        // Not more of the line: it may be a secret.
        Some(format!("{name}: the value of `{doubtful}` has `,NAME=` in it, and is one value: several settings are one a line"))
    };
    SETTINGS.iter().filter_map(of).collect()
}

/// Whether a setting is followed by what looks like another one: `a=1,b=2`.
fn has_another(line: &str) -> bool {
    let is_name = |text: &str| {
        let mut chars = text.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
    };
    line.split(',').skip(1).any(|item| item.split_once('=').is_some_and(|(name, _)| is_name(name.trim())))
}

/// What one variable would be on the command line.
pub(super) fn from_environment(arg: &Arg, long: &str, name: &str, value: &str) -> Result<Vec<OsString>, String> {
    let flag = || OsString::from(format!("--{long}"));
    match arg.get_action() {
        ArgAction::SetTrue => match value {
            "" | "0" | "false" | "no" => Ok(vec![]),
            "1" | "true" | "yes" => Ok(vec![flag()]),
            _ => Err(format!("{name}={value} is neither 1 nor 0")),
        },
        ArgAction::Count => {
            let count: usize = value.parse().map_err(|_| format!("{name}={value} is not a number"))?;
            Ok(vec![flag(); count.min(5)])
        }
        // It may be the rest of a secret: it is not printed.
        ArgAction::Append if SETTINGS.contains(&long) && listed(long, value).any(|item| !item.contains('=')) => {
            Err(format!("{name}: a line of it is not NAME=VALUE; it has one setting a line"))
        }
        ArgAction::Append => Ok(listed(long, value).map(|item| format!("--{long}={item}").into()).collect()),
        _ if value.is_empty() => Ok(vec![]),
        _ => Ok(vec![format!("--{long}={value}").into()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_settings_in_one_line_of_a_variable_are_doubted() {
        let rows = [
            ("MUSTER_SETVAR", "api_token=a,b=c", Some("api_token")),
            ("MUSTER_SETVAR", "n=1\nm=1,2", None),
            ("MUSTER_SETVAR", "flags=-O2,-Wl,-z=now", None),
            ("MUSTER_JOB_OPTION", "namespace=x,labels.team=hpc", Some("namespace")),
            ("MUSTER_PARAMETERIZE", "n=1,2,m=3", Some("n")),
            ("MUSTER_TAG", "a=1,b=2", None),
        ];
        for (variable, value, doubtful) in rows {
            let said = doubtful_settings(&|name| (name == variable).then(|| value.to_owned()));
            let expected = doubtful.map(|name| {
                format!("{variable}: the value of `{name}` has `,NAME=` in it, and is one value: several settings are one a line")
            });
            assert_eq!(said, Vec::from_iter(expected), "{variable}={value}");
        }
    }

    #[test]
    fn a_variable_that_is_not_a_setting_is_reported() {
        let names = ["MUSTER_TGA", "MUSTER_LOG", "MUSTER_TAG", "HOME", "MUSTER_XYZZY"];
        assert_eq!(
            unknown_variables(names.into_iter().map(str::to_owned)),
            ["unknown variable MUSTER_TGA: did you mean MUSTER_TAG?", "unknown variable MUSTER_XYZZY"]
        );
        // What the gate sets for the tests is set for the program, too.
        let gate =
            include_str!("../../../../.ci/run").split(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_');
        let of_gate: Vec<String> = gate.filter(|word| word.starts_with("MUSTER_")).map(str::to_owned).collect();
        assert!(of_gate.len() > 3, "{of_gate:?}");
        assert_eq!(unknown_variables(of_gate.into_iter()), [""; 0]);
    }
}
