//! Commands that a person can paste into a shell.

use crate::text::secret::MASK;
use muster_core::{
    case::CaseName,
    result::{CaseResult, Session},
};
use muster_text::shell;
use std::path::Path;

/// Returns the command that runs one case again, wherever it is pasted: its file and those of its needs, in the session's folder,
/// its hash, its place, its node (`--distribute`), and before them the options that the site and the check were found and changed with (`-C`, `-S`, `-J`), which
/// only the caller knows.
pub fn rerun(case: &CaseResult, workdir: &Path, options: &[String]) -> String {
    let files = [&case.about.file].into_iter().chain(&case.about.other_files).map(|file| workdir.join(file));
    let files: Vec<_> = files.map(|file| file.to_string_lossy().into_owned()).collect();
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    let node = case.name.hidden.split(' ').find_map(|hidden| hidden.strip_prefix("%.nid="));
    let node = node.iter().flat_map(|node| ["--distribute".to_owned(), (*node).to_owned()]);
    let options: Vec<String> = options.iter().cloned().chain(node).collect();
    let command = of_case(&case.name, &files, &options);
    let is_masked = options.iter().any(|option| option.contains(MASK));
    if is_masked { format!("{command}  # write the secret out in place of {MASK}") } else { command }
}

/// The same for a case of a session; of one that ran in ReFrame, that it did.
pub(crate) fn rerun_in(session: &Session, case: &CaseResult, options: &[String]) -> String {
    if session.is_of_reframe() {
        return format!("{}, where it ran", session.version);
    }
    rerun(case, &session.workdir, options)
}

/// The same for a case that has not run yet, in the folder in which its files are found.
pub(crate) fn of_case(name: &CaseName, files: &[&str], options: &[String]) -> String {
    let mut words = vec!["muster".to_owned()];
    words.extend(options.iter().cloned());
    let files = files.iter().map(|file| ("-c", (*file).to_owned()));
    let place = [("--system", name.system_partition()), ("-p", whole(&name.environ))];
    for (flag, value) in files.chain([("-n", format!("/{}", name.hash))]).chain(place) {
        words.extend([flag.to_owned(), value]);
    }
    words.push("-r".to_owned());
    words.iter().map(|word| shell::quote_in_line(word)).collect::<Vec<_>>().join(" ")
}

/// `-p` takes a regex that is searched for: a `+` in an environment's name must not act as one, and `gcc` is not `gcc13`.
fn whole(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len() + 2);
    pattern.push('^');
    for c in name.chars() {
        if r"\.+*?()|[]{}^$#&-~!".contains(c) && c != '-' {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('$');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_environment_is_not_a_pattern_and_not_a_part_of_a_name() {
        for (name, pattern) in [("default", "^default$"), ("gcc-13.2", r"^gcc-13\.2$"), ("gcc+mpi", r"^gcc\+mpi$")] {
            assert_eq!(whole(name), pattern);
        }
    }

    #[test]
    fn what_ran_in_reframe_is_run_again_there() {
        let session = |version: &str| Session { version: version.into(), workdir: "/w".into(), ..Session::default() };
        let rerun = |version: &str| rerun_in(&session(version), &CaseResult::default(), &[]);
        assert_eq!(rerun("ReFrame 4.9.1"), "ReFrame 4.9.1, where it ran");
        assert!(rerun("1.0").starts_with("muster -c "), "{}", rerun("1.0"));
    }

    #[test]
    fn a_command_reproduces_its_case_wherever_it_is_pasted() {
        let name = CaseName {
            hash: "b542e2db".into(),
            system: "s".into(),
            partition: "p".into(),
            environ: "e".into(),
            ..CaseName::default()
        };
        let of_files = |files: &[&str]| {
            let mut case = CaseResult { name: name.clone(), ..CaseResult::default() };
            (case.about.file, case.about.other_files) = (files[0].into(), files[1..].iter().map(|file| (*file).into()).collect());
            rerun(&case, Path::new("/home/ada"), &[])
        };
        assert_eq!(
            of_files(&["a.yaml", "b.yaml", "/c.yaml"]),
            "muster -c /home/ada/a.yaml -c /home/ada/b.yaml -c /c.yaml -n /b542e2db --system s:p -p '^e$' -r"
        );
        let of = |hidden: &str, file: &str, options: &[&str]| {
            let mut case = CaseResult { name: CaseName { hidden: hidden.into(), ..name.clone() }, ..CaseResult::default() };
            case.about.file = file.into();
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            rerun(&case, Path::new("/home/ada"), &options)
        };
        assert_eq!(of("", "a.yaml", &["-J", "q=1"]), "muster -J q=1 -c /home/ada/a.yaml -n /b542e2db --system s:p -p '^e$' -r");
        assert_eq!(
            of("%.nid=node-1 %.repeat_no=2", "/checks/a.yaml", &[]),
            "muster --distribute node-1 -c /checks/a.yaml -n /b542e2db --system s:p -p '^e$' -r"
        );
        assert_eq!(of("%.repeat_no=2", "/a.yaml", &[]), "muster -c /a.yaml -n /b542e2db --system s:p -p '^e$' -r");
        assert_eq!(
            of("", "/a.yaml", &["-S", "text=two\nlines"]),
            r"muster -S $'text=two\nlines' -c /a.yaml -n /b542e2db --system s:p -p '^e$' -r"
        );
        assert_eq!(
            of("", "/a.yaml", &["-S", "token=***"]),
            "muster -S 'token=***' -c /a.yaml -n /b542e2db --system s:p -p '^e$' -r  # write the secret out in place of ***"
        );
    }
}
