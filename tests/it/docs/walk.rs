//! Pages that are followed from the first line to the last, each in one folder, as a reader would.
//!
//! ```text
//! ```yaml, ```sh, .. whose first line is `# FILE`   the file: a name with an ending and no blank
//! ```sh                                             each line is run; it ends with 0, or as `# exit N` behind it says
//! ```text                                           what the lines before it printed, in this order; `…` stands for anything
//! ```
//! Programs that a test does not have (`kubectl`, `crontab`, `systemctl`) succeed and do nothing.

use crate::sandbox::Sandbox;
use muster_fake_api::FakeApi;
use std::path::Path;
use tokio::runtime::Runtime;

/// Before each line: a home, and the programs that are not there.
const STANDINS: &str = "export HOME=$PWD; unset KUBERNETES_SERVICE_HOST; \
                        kubectl() { case \" $* \" in *' -f - '*) cat > applied.yaml;; esac; }; systemctl() { :; }; loginctl() { :; }; ";

/// What a page says, in its order.
#[derive(Debug)]
enum Step {
    Write { path: String, text: String },
    Run { line: String, code: i32 },
    Printed(String),
}

/// The text of a page.
pub(crate) fn page(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The steps of a page, or of a part of it.
fn steps(page: &str) -> Vec<Step> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks.flat_map(|block| of_block(block.split_once('\n').map_or((block, ""), |(kind, text)| (kind, text)))).collect()
}

fn of_block((kind, text): (&str, &str)) -> Vec<Step> {
    let first = text.lines().next().unwrap_or_default();
    let file = first.strip_prefix("# ").filter(|name| name.contains('.') && !name.contains([' ', '`']));
    match (kind, file) {
        (_, Some(path)) => vec![Step::Write { path: path.to_owned(), text: format!("{text}\n") }],
        ("sh", None) => {
            let lines = text.replace("\\\n", " ");
            let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            lines.map(|line| Step::Run { line: line.to_owned(), code: code_of(line) }).collect()
        }
        ("text", None) => vec![Step::Printed(text.to_owned())],
        _ => Vec::new(),
    }
}

/// The exit code that a line announces.
fn code_of(line: &str) -> i32 {
    line.split_once("# exit ").map_or(0, |(_, code)| code.split_whitespace().next().unwrap_or_default().parse().expect("a code"))
}

/// Whether a line has the parts of another, in their order.
fn fits(shown: &str, printed: &str) -> bool {
    let mut rest = printed.trim_end();
    let mut parts = shown.trim_end().split('…');
    let Some(first) = parts.next() else { return false };
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    let mut is_open = false;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        is_open = part.is_empty();
    }
    is_open || rest.is_empty()
}

/// The first line of a block that was not printed after those before it.
fn missing<'t>(shown: &'t str, printed: &str) -> Option<&'t str> {
    let mut lines = printed.lines();
    shown.lines().filter(|line| !matches!(line.trim(), "" | "…")).find(|shown| !lines.any(|printed| fits(shown, printed)))
}

/// Follows a page, or a part of it, with this before each line. Returns how many lines were run.
fn follow(sandbox: &Sandbox, part: &str, before: &str) -> usize {
    let (mut printed, mut is_fresh, mut runs) = (String::new(), true, 0);
    for step in steps(part) {
        match step {
            Step::Write { path, text } => drop(sandbox.write(&path, &text)),
            Step::Run { line, code } => {
                if !is_fresh {
                    printed.clear();
                }
                is_fresh = true;
                runs += 1;
                let ended = sandbox.paste(&format!("{STANDINS}{before}{line}"), "");
                assert_eq!(ended.code, Some(code), "{line}\n{}{}", ended.stdout, ended.stderr);
                printed.extend([ended.stdout, ended.stderr]);
            }
            Step::Printed(shown) => {
                is_fresh = false;
                let missing = missing(&shown, &printed);
                assert!(missing.is_none(), "not printed: {}\n{printed}", missing.unwrap_or_default());
            }
        }
    }
    runs
}

/// The part of a page from one heading to the next of this level.
fn part<'p>(page: &'p str, heading: &str) -> &'p str {
    let level = format!("\n{} ", heading.split(' ').next().unwrap_or_default());
    let (_, after) = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no heading `{heading}`"));
    after.find(&level).map_or(after, |end| &after[..=end])
}

#[test]
fn the_tutorial_of_checks_is_right_step_by_step() {
    assert!(follow(&Sandbox::new(), &page("docs/writing-checks.md"), "") >= 12);
}

#[test]
fn the_first_night_on_kubernetes_goes_as_the_guide_says() {
    let runtime = Runtime::new().expect("a runtime");
    let api = runtime.block_on(FakeApi::named("mycluster")).expect("a server");
    api.namespace("muster");
    let log = "run; log 8192+0 records out; log 32768+0 records out; log from 100.00 to 100.10 s; exit 0";
    api.script("", log).expect("a script");
    let sandbox = Sandbox::new();
    sandbox.write("cronjob.yaml", &page("deploy/cronjob.yaml"));
    let kubeconfig = format!("export KUBECONFIG={}; ", api.kubeconfig().display());
    let runs = follow(&sandbox, part(&page("docs/first-night.md"), "## On Kubernetes"), &kubeconfig);
    assert!(runs >= 12, "{runs}");
    let role = sandbox.read("applied.yaml");
    assert!(role.contains("kind: RoleBinding") && role.contains("namespace: muster"), "{role}");
    // What the CronJob would run, with the files where they are here.
    let cronjob = sandbox.read("cronjob.yaml");
    assert!(cronjob.contains("image: registry.example.com/nightly:1"), "{cronjob}");
    let args = cronjob.split("args: [").nth(1).and_then(|rest| rest.split(']').next()).expect("the arguments").replace(',', "");
    let args = args.replace("/site-config", "site-config").replace("/nightly", "checks").replace("/work", "work");
    let night = sandbox.paste(&format!("{STANDINS}{kubeconfig}mkdir empty && mv muster.yaml empty; muster {args}"), "");
    assert_eq!(night.code, Some(0), "{args}\n{}{}", night.stdout, night.stderr);
    assert!(night.stdout.contains("Ran 4/4 test case(s)"), "{}", night.stdout);
    assert!(api.list("pods", "muster").is_empty(), "the cases have left something");
}

#[test]
fn the_first_night_on_slurm_goes_as_the_guide_says_up_to_the_launch() {
    assert!(follow(&Sandbox::new(), part(&page("docs/first-night.md"), "## On Slurm"), "") >= 5);
}
