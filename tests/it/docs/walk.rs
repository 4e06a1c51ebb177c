//! Pages that are followed as a reader would (`tests/common/walked.rs` says how), and what is printed is compared.
//! Programs that a test does not have (`kubectl`, `crontab`, `systemctl`) succeed and do nothing.

use crate::{
    sandbox::Sandbox,
    walked::{Step, missing, page, part, steps},
};
use muster_fake_api::FakeApi;
use tokio::runtime::Runtime;

/// Before each line: a home, and the programs that are not there.
const STANDINS: &str = "export HOME=$PWD; unset KUBERNETES_SERVICE_HOST; \
                        kubectl() { case \" $* \" in *' -f - '*) cat >> applied.yaml;; esac; }; systemctl() { :; }; loginctl() { :; }; ";

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
