//! The guides' examples do what the guides say: every check in them is run as it stands.

use crate::sandbox::Sandbox;
use std::path::Path;

/// The blocks of YAML in a page that define a check, all of them, or a site.
fn blocks(page: &str, is_site: bool) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = std::fs::read_to_string(path).expect(page);
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(block, _)| block.to_owned());
    let defines = |block: &String| block.lines().any(|line| line.starts_with("name: "));
    blocks.filter(|block| defines(block) && block.contains("\npartitions:") == is_site).collect()
}

#[test]
fn every_check_of_the_guide_runs_as_it_stands_and_ends_well() {
    let checks = blocks("docs/checks.md", false);
    assert!(checks.len() >= 8, "{} checks in the guide", checks.len());
    for check in checks {
        let sandbox = Sandbox::with_check(&check);
        sandbox.write("input/run.txt", "ready\n").write("input/big.mesh", "mesh\n");
        let run = sandbox.muster(&["-c", ".", "--system", "local", "-r", "--nocolor"]);
        assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{check}\n{}", run.stdout);
    }
}

#[test]
fn the_scenario_of_the_guide_runs_on_the_site_beside_it() {
    let (scenarios, sites) = (blocks("docs/fake.md", false), blocks("docs/fake.md", true));
    assert_eq!((scenarios.len(), sites.len()), (1, 1));
    let sandbox = Sandbox::with_check(&scenarios[0]);
    sandbox.write("stage.yaml", &sites[0]);
    let run = sandbox.muster(&["-C", "stage.yaml", "--system", "stage", "-c", ".", "-r", "--nocolor"]);
    assert_eq!(run.code, Some(3), "an eviction is the site's doing\n{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("the node ran out of memory"), "{}", run.stdout);
}

#[test]
fn the_site_of_the_guide_loads_and_shows_its_partitions() {
    let sites = blocks("docs/site.md", true);
    assert_eq!(sites.len(), 1);
    let sandbox =
        Sandbox::with_check("name: hello\nvalid_systems: [\"mycluster\"]\nexecutable: echo hello\nimage: hello\nsanity: []\n");
    sandbox.write("mycluster.yaml", &sites[0]);
    let list = sandbox.muster(&["-C", "mycluster.yaml", "--system", "mycluster", "-c", ".", "-l=C", "--nocolor"]);
    assert_eq!((list.code, &*list.stderr), (Some(0), ""), "{}", list.stdout);
    for place in ["@mycluster:login+default", "@mycluster:login+tuned", "@mycluster:gpu+default"] {
        assert!(list.stdout.contains(place), "no {place} in\n{}", list.stdout);
    }
}

#[test]
fn the_quarantine_the_modes_and_the_scenario_of_the_guide_to_running_are_read() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/running.md")).expect("the page");
    let block = |begins: &str| {
        let found = page.split("```yaml\n").find(|block| block.starts_with(begins)).and_then(|block| block.split("```").next());
        found.unwrap_or_else(|| panic!("no block that begins with {begins}")).to_owned()
    };
    let disrupted = block("on_disruption");
    let sandbox = Sandbox::with_check(&format!(
        "name: hello\nvalid_systems: ['*']\nexecutable: echo\ntags: nightly\nsanity: []\n{disrupted}"
    ));
    sandbox.write("site.yaml", &block("name: mycluster").replace(", \"--perflogdir $SCRATCH/perflogs\"", ""));
    sandbox.write("quarantine.yaml", &block("- { name: \"^ior"));
    sandbox.write("scenario.yaml", &block("statuses:"));
    sandbox.write("pod-0.log", "hello\n");
    let site = ["-C", "site.yaml", "--system", "mycluster", "-c", ".", "-r", "--nocolor"];
    let run = sandbox.muster(&[&site[..], &["--mode", "nightly", "--quarantine", "quarantine.yaml"]].concat());
    assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{}", run.stdout);
    let run = sandbox.muster(&[&site[..], &["--rehearse", "scenario.yaml"]].concat());
    assert_eq!(run.code, Some(3), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("(retry 2)") && run.stdout.contains("the node ran out of memory"), "{}", run.stdout);
}

#[test]
fn the_checks_of_the_guide_to_kubernetes_plan_on_the_site_beside_them() {
    let (checks, sites) = (blocks("docs/kubernetes.md", false), blocks("docs/kubernetes.md", true));
    assert_eq!((checks.len(), sites.len()), (1, 1));
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kubernetes.md")).expect("the page");
    let options = page.split("```yaml\n").filter_map(|block| block.strip_prefix("sched_options:\n")?.split("```").next());
    let rules: String = options.flat_map(|block| block.split_inclusive('\n')).flat_map(|line| ["    ", line]).collect();
    let sandbox = Sandbox::with_check(&checks[0]);
    sandbox.write("site.yaml", &format!("{}{rules}", sites[0]));
    let mut command = sandbox.command(&["-C", "site.yaml", "--system", "cluster", "-c", ".", "--dry-run"]);
    command.env("KUBECONFIG", sandbox.path("missing")).env_remove("KUBERNETES_SERVICE_HOST");
    let plan = sandbox.ended(&command.output().expect("the binary runs"));
    assert_eq!((plan.code, &*plan.stderr), (Some(0), ""), "{}", plan.stdout);
    assert_eq!(plan.stdout.matches("name: rfm-solve-aaaaaaaa").count(), 2, "{}", plan.stdout);
    assert_eq!(plan.stdout.matches("allowPrivilegeEscalation: false").count(), 3, "{}", plan.stdout);
    assert!(plan.stdout.contains("namespace bench, 2 pod(s)") && plan.stdout.contains("nvidia.com/gpu: 1"), "{}", plan.stdout);
}
