//! The guide from a site file to the first nightly run, followed on a Slurm.

use crate::{
    suite::{
        cluster::{Accounting, Cluster, User, run_folder},
        sandbox::for_everybody,
    },
    walked::{Step, missing, page, part, steps},
};
use std::{fs, os::unix::fs::chown, path::Path, process::Command};

/// What the guide says of its own cluster, and what a reader writes for this one. Its figures are those of its own nodes, too.
const OURS: [(&str, &str); 5] = [
    ("--account=staff", "--account=proj"),
    ("-p gpu", "-p low"),
    ("[12, -0.3", "[0.001, -0.3"),
    ("[10, -0.3", "[0.001, -0.3"),
    ("[9, -0.3", "[0.001, -0.3"),
];

/// The part up to the schedule, with this cluster's names. Lines that no test without a Slurm can run are indented.
fn guide() -> String {
    let page = page("docs/first-night.md");
    let part = part(&page, "## On Slurm");
    let part = part.split_once("\n### Every night").expect("the schedule").0.to_owned();
    let ours = OURS.iter().fold(part, |text, (theirs, ours)| {
        assert!(text.contains(theirs), "the guide has no {theirs}");
        text.replace(theirs, ours)
    });
    // Copies show how much figures differ; two are enough here.
    let ours = ours.replace("--repeat 5", "--repeat 2");
    let fenced = |line: &str| match line.strip_prefix("    muster ") {
        Some(rest) => format!("```sh\nmuster {rest}\n```\n"),
        None => format!("{line}\n"),
    };
    ours.lines().map(fenced).collect()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// As Alice, with what stands in the folder.
fn paste(cluster: &Cluster, folder: &Path, line: &str) -> (Option<i32>, String) {
    let owned = Command::new("chown").args(["-R", &User::Alice.id().to_string()]).arg(folder).status();
    assert!(owned.expect("chown runs").success());
    let program = for_everybody().parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = cluster.command(User::Alice, "sh");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MUSTER_")) {
        shell.env_remove(name);
    }
    shell.args(["-c", line]).current_dir(folder).env("PATH", path).env("MUSTER_DB", folder.join("results.db"));
    let output = shell.output().expect("sh runs");
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

pub(crate) fn the_first_night_goes_as_the_guide_says() {
    let cluster = Cluster::own(Accounting::On);
    let folder = run_folder().join("first-night");
    fs::create_dir(&folder).expect("a folder");
    chown(&folder, Some(User::Alice.id()), None).expect("root may do this");
    let (mut printed, mut runs) = (String::new(), Vec::new());
    for step in steps(&guide()) {
        match step {
            Step::Write { path, text } => write(&folder.join(path), &text),
            Step::Run { line, code } => {
                let (ended, text) = paste(&cluster, &folder, &line);
                assert_eq!(ended, Some(code), "{line}\n{text}");
                printed += &text;
                runs.push((line, text));
            }
            Step::Printed(shown) => assert_eq!(missing(&shown, &printed), None, "{printed}"),
        }
    }
    let said = |begin: &str| runs.iter().find(|(line, _)| line.starts_with(begin)).map_or("", |(_, text)| text.as_str());
    assert!(said("muster doctor").contains("partition: low is UP"), "{}", said("muster doctor"));
    let measured = said("muster -S 'copy.reference=[]' -r --repeat");
    assert!(measured.contains("Ran 8/8 test case(s) from 2 check(s)"), "{measured}");
    assert!(said("muster -r --mode").contains("Ran 4/4 test case(s)"), "{}", said("muster -r --mode"));
    assert!(folder.join("night.html").exists(), "{}", said("muster -r --mode"));
    assert!(cluster.jobs(User::Alice).is_empty());
}
