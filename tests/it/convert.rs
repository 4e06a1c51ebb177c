//! `muster convert`: what it writes, what it says, and that the cases are those of ReFrame.

use crate::sandbox::Sandbox;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const REFRAME: &str = "4.10.4";

const CHECK: &str = r"import reframe as rfm
import reframe.utility.sanity as sn

@rfm.simple_test
class hello(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'echo hello'

    @sanity_function
    def greets(self):
        return sn.assert_found(r'hello', self.stdout)
";

fn testdata(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("harness/convert/testdata").join(folder)
}

#[test]
fn a_converted_check_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.py", CHECK);
    let converted = sandbox.muster(&["convert", "hello.py"]);
    assert_eq!((converted.code, &*converted.stdout), (Some(0), "hello.check.yaml\n"), "{}", converted.stderr);
    let run = sandbox.muster(&["-c", "hello.check.yaml", "--system", "local", "-r", "--nocolor"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
}

#[test]
fn what_goes_to_another_folder_finds_its_files_and_compares_numbers() {
    let sandbox = Sandbox::new();
    let sanity = "        one = sn.extractsingle(r'one (\\S+)', self.stdout, 1, float)
        other = sn.extractsingle(r'other (\\S+)', self.stdout, 1, conv=int)
        ranks = sn.extractall(r'rank (\\d+)', self.stdout, 1, int)
        return sn.all([sn.assert_eq(one, other), sn.assert_eq(sn.count_uniq(ranks), 1)])\n";
    let (head, _) = CHECK.split_once("        return").expect("what it returns");
    let check = head.replace("echo hello", "cat numbers") + sanity;
    let test = check.split_once("@rfm").map(|(_, test)| format!("@rfm{test}")).expect("a test");
    let named = |name: &str, folder: &str| {
        test.replace("class hello", &format!("class {name}"))
            .replace("    executable", &format!("    sourcesdir = '{folder}'\n    executable"))
    };
    sandbox.write("suite/x/hello.py", &(check.clone() + &named("named", "input") + &named("gone", "gone")));
    for folder in ["src", "input"] {
        sandbox.write(&format!("suite/x/{folder}/numbers"), "one 1.0\nother 1\nrank 02\nrank 2\n");
    }
    let converted = sandbox.muster(&["convert", "suite", "-o", "new/deep"]);
    assert_eq!((converted.code, &*converted.stdout), (Some(1), "new/deep/x/hello.check.yaml\n"), "{}", converted.stderr);
    let line = "hello.py:33: refused: the folder suite/x/gone of `sourcesdir` does not exist, so `sourcesdir` is left out";
    assert!(converted.stderr.contains(line), "{}", converted.stderr);
    let run = sandbox.muster(&["-c", "new", "--system", "local", "-r", "--nocolor", "-x", "gone"]);
    assert_eq!(run.code, Some(0), "{}{}", sandbox.read("new/deep/x/hello.check.yaml"), run.stdout);
    assert!(run.stdout.contains("Ran 2/2 test case(s)"), "{}", run.stdout);
}

#[test]
fn an_existing_file_is_overwritten_only_with_force() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.py", CHECK).write("hello.check.yaml", "mine");
    let refused = sandbox.muster(&["convert", "hello.py"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("hello.check.yaml is there already"), "{}", refused.stderr);
    assert_eq!(sandbox.read("hello.check.yaml"), "mine");
    assert_eq!(sandbox.muster(&["convert", "hello.py", "--force"]).code, Some(0));
    assert!(sandbox.read("hello.check.yaml").starts_with("name: hello\n"));
}

#[test]
fn a_check_only_reports_and_standard_output_is_the_yaml() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.py", &CHECK.replace("    executable =", "    local = True\n    executable ="));
    let check = sandbox.muster(&["convert", "--check", "hello.py"]);
    assert_eq!((check.code, &*check.stdout), (Some(1), ""));
    assert!(check.stderr.contains("hello.py:8: dropped: `local` is the scheduler's"), "{}", check.stderr);
    assert!(!sandbox.path("hello.check.yaml").exists());
    let printed = sandbox.muster(&["convert", "-o", "-", "hello.py"]);
    assert_eq!(printed.code, Some(1));
    assert!(
        printed.stdout.starts_with("# Not carried over from ReFrame:\n") && printed.stdout.contains("\nname: hello\n"),
        "{}",
        printed.stdout
    );
}

#[test]
fn what_is_converted_from_a_descriptor_of_anubis_loads_whatever_its_sources_are() {
    let sandbox = Sandbox::new();
    let path = testdata("anubis").join("sources.toml");
    let text = fs::read_to_string(&path).expect("a descriptor");
    // Its image and its type are refused as well, and each is in any check for EC2.
    let text = text.replace("ami-one", "ami-0abc1234").replace("\"large\"", "\"c7i.large\"");
    sandbox.write("sources.toml", &text);
    let converted = sandbox.muster(&["convert", "sources.toml"]);
    assert_eq!(converted.code, Some(1), "{}", converted.stderr);
    let sources = text.matches("[[data.sources]]").count();
    let (written, refused) =
        (sandbox.read("sources.check.yaml").matches("- src:").count(), converted.stderr.matches(": refused: ").count());
    assert_eq!(written + refused, sources, "{}", converted.stderr);
    let options = "{ region: eu-west-1, bucket: s3://bucket/muster, subnets: [subnet-0abc1234] }";
    sandbox.write(
        "site-config/aws.yaml",
        &format!("name: aws\npartitions: [{{ name: cloud, scheduler: ec2, environs: [default], time_limit: 1h, sched_options: {options} }}]\nenvironments: [{{ name: default }}]\n"),
    );
    let listed = sandbox.muster(&["-c", "sources.check.yaml", "--system", "aws", "--dry-run"]);
    assert_eq!(listed.code, Some(0), "{}{}", listed.stdout, listed.stderr);
}

#[test]
fn folders_keep_their_shape_and_files_without_checks_are_reported() {
    let sandbox = Sandbox::new();
    sandbox.write("suite/a/hello.py", CHECK).write("suite/b/hello.py", CHECK).write("suite/tool.py", "def f():\n    return 1\n");
    let converted = sandbox.muster(&["convert", "suite", "-o", "new"]);
    assert_eq!(
        (converted.code, &*converted.stdout),
        (Some(0), "new/a/hello.check.yaml\nnew/b/hello.check.yaml\n"),
        "{}",
        converted.stderr
    );
    let nothing = sandbox.muster(&["convert", "suite/tool.py"]);
    assert!(nothing.stderr.contains("neither tests nor a site configuration of ReFrame"), "{}", nothing.stderr);
    std::fs::write(sandbox.path("latin1.py"), b"# gr\xfcn\n").expect("a file");
    for (file, why) in [
        ("missing.py", "No such file or directory (os error 2)"),
        ("latin1.py", "line 1 is not UTF-8 text; save the file as UTF-8"),
    ] {
        let refused = sandbox.muster(&["convert", file]);
        assert_eq!((refused.code, refused.stderr), (Some(2), format!("error: {file} cannot be read: {why}\n")));
    }
}

/// ReFrame in a virtual environment outside of the checkout, as the benchmarks have it; or why there is none.
fn reframe() -> Result<PathBuf, String> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let folder = cache.ok_or("there is no HOME")?.join(format!("muster-bench/reframe-{REFRAME}"));
    let program = folder.join("bin/reframe");
    if program.exists() {
        return Ok(program);
    }
    let run = |command: &mut Command| match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))
        .map_err(|why| format!("no virtual environment of Python: {why}"))?;
    run(Command::new(folder.join("bin/pip")).args(["install", "--quiet", &format!("reframe-hpc=={REFRAME}")]))
        .map_err(|why| format!("ReFrame cannot be installed: {why}"))?;
    Ok(program)
}

/// The cases of a listing, dependencies included and fixtures not, without their hashes: a case's hash is each program's own.
fn cases(listing: &str) -> BTreeSet<String> {
    let lines = listing.lines().map(str::trim_start).filter_map(|line| line.strip_prefix("- ").or(line.strip_prefix('^')));
    let lines = lines.filter(|line| !line.contains(" ~"));
    let case = |line: &str| {
        let (name, rest) = line.rsplit_once(" /").unwrap_or((line, ""));
        format!("{name} {}", rest.split_once(' ').map_or("", |(_, place)| place))
    };
    lines.map(case).collect()
}

/// Converts a folder of checks and its site, and compares what both programs list.
fn same_cases(checks: &str, site: &str, system: &str, least: usize) {
    let program = match reframe() {
        Ok(program) => program,
        Err(why) => return eprintln!("!!! SKIPPED: not compared with ReFrame {REFRAME}: {why}"),
    };
    let sandbox = Sandbox::new();
    for entry in fs::read_dir(testdata(checks)).expect("testdata").map(|entry| entry.expect("an entry")) {
        let name = entry.file_name().to_string_lossy().into_owned();
        sandbox.write(&format!("checks/{name}"), &fs::read_to_string(entry.path()).expect("a file"));
    }
    // The `sourcesdir` of one of them.
    sandbox.write("checks/input/mesh.bin", "");
    let settings = fs::read_to_string(testdata(site).join("settings.py")).expect("a site");
    sandbox.write("site/settings.py", &settings);
    for folder in ["checks", "site"] {
        let converted = sandbox.muster(&["convert", folder]);
        assert!(matches!(converted.code, Some(0 | 1)), "{}", converted.stderr);
    }
    // ReFrame itself knows no Kubernetes, and starts only where its module system is installed; neither changes which cases there are.
    sandbox.write("theirs.py", &settings.replace("\"k8s\"", "\"local\"").replace("'tmod4'", "'nomod'"));
    let mut theirs = Command::new(program);
    theirs.args(["-C", "../theirs.py", "--system", system, "-c", ".", "-R", "-lC", "--nocolor", "--prefix", "../rfm"]);
    // A check opens its manifest from the folder that ReFrame runs in.
    theirs.current_dir(sandbox.path("checks")).env("HOME", sandbox.path("")).env("PYTHONDONTWRITEBYTECODE", "1");
    let theirs = theirs.output().expect("ReFrame runs");
    let theirs = String::from_utf8_lossy(&theirs.stdout).into_owned();
    let ours = sandbox.muster(&["-C", "site", "--system", system, "-c", "checks", "-l=C", "--nocolor"]);
    assert_eq!(ours.code, Some(0), "{}", ours.stderr);
    assert!(!ours.stderr.contains("error"), "{}", ours.stderr);
    assert!(cases(&theirs).len() >= least, "ReFrame lists\n{theirs}");
    assert_eq!(cases(&ours.stdout), cases(&theirs));
}

#[test]
fn a_converted_suite_has_the_cases_that_reframe_lists() {
    same_cases("suite", "site", "lab", 100);
}

#[test]
fn builds_fixtures_and_dependencies_have_the_cases_that_reframe_lists() {
    same_cases("builds", "site", "lab", 8);
}

#[test]
fn what_judges_files_has_the_cases_that_reframe_lists() {
    same_cases("files", "site", "lab", 8);
}

#[test]
fn modules_and_containers_have_the_cases_that_reframe_lists() {
    same_cases("modules", "modules", "lab", 3);
}

#[test]
fn checks_of_pods_jobs_and_ipujobs_have_the_cases_that_reframe_lists() {
    same_cases("k8s", "k8s-site", "eidf", 12);
}

/// A partition with keys and values that Muster does not take.
const SLIPS: &str = "site_configuration = {'systems': [{'name': 'c', 'hostnames': ['c'], 'partitions': [{
    'name': 'p', 'scheduler': 'slurm', 'launcher': 'srun', 'environs': ['e'],
    'acess': ['-p x'],
    'access': ['--qos', 'x', '-t 10'],
    'sched_options': {'job_submit_timeout': 120, 'mem': '2G'},
    'resources': [{'name': 'gpu', 'options': ['--gres=gpu:{num}']}, {'name': 'dw', 'options': [
        '#DW jobdw capacity={capacity} type=scratch', '#DW stage_in source={source}']}],
}]}], 'environments': [{'name': 'e'}]}
";

#[test]
fn keys_and_values_of_a_partition_that_are_not_taken_are_listed() {
    let sandbox = Sandbox::new();
    sandbox.write("settings.py", SLIPS);
    let ended = sandbox.muster(&["convert", "settings.py", "-o", "-"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    for line in [
        "settings.py:3: dropped: `acess` is not carried over; did you mean `access`?",
        "settings.py:4: refused: `access`: `x` is not an option of sbatch, so `partitions.access` is left out",
        "settings.py:5: refused: `sched_options.job_submit_timeout`: the most is 60s",
        "settings.py:6: refused: `resources`: `#DW` begins a directive, which is not an option of sbatch",
    ] {
        assert!(ended.stderr.contains(line), "{line}\n{}", ended.stderr);
    }
    assert!(ended.stderr.ends_with("4 line(s) not converted, 0 note(s); not checked against ReFrame\n"), "{}", ended.stderr);
    sandbox.write("check.yaml", "name: a\nvalid_systems: [c]\nexecutable: a\nsanity: []\n").write("c.yaml", &ended.stdout);
    let shown = sandbox.muster(&["-C", "c.yaml", "--system", "c", "config", "show"]);
    let (listed, is_there) =
        (sandbox.muster(&["-C", "c.yaml", "-c", "check.yaml", "--system", "c", "-l"]), ended.stdout.contains("gres"));
    assert!(shown.code == Some(0) && listed.code == Some(0) && is_there, "{}{}{}", ended.stdout, shown.stderr, listed.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn converted_text_that_cannot_be_printed_counts_more_than_a_line_that_was_not_converted() {
    let sandbox = Sandbox::new();
    sandbox.write("settings.py", SLIPS);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = sandbox.command(&["convert", "settings.py", "-o", "-"]).stdout(full).output().expect("runs");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
}

/// docs/convert.md lists what is read in another way, or not at all: each of these, so that a mended one is struck off there.
#[test]
fn what_the_converter_does_not_see_is_as_the_page_says() {
    let head =
        "import reframe as rfm\nimport reframe.utility.sanity as sn\nfrom reframe.utility.sanity import assert_found as af\n\n\n";
    let class = |base: &str, body: &str, sanity: &str| {
        format!(
            "{head}base = rfm.RunOnlyRegressionTest\nfound = sn.assert_found\n\n@rfm.simple_test\nclass A({base}):\n    valid_systems = ['*']\n    \
             valid_prog_environs = ['*']\n    executable = 'if [[ -n \"$X\" ]]; then echo hi; fi'\n    {body}\n    @sanity_function\n    \
             def check(self):\n        return {sanity}\n"
        )
    };
    let usual = "rfm.RunOnlyRegressionTest";
    let hook = "@run_before('compile')\n    def source(self):\n        self.sourcepath = 'x.' + self.n";
    let source = format!("n = parameter(['c'])\n    {hook}");
    let rows = [
        (class(usual, "pass", "sn.assert_found(r'hi', self.stderr)"), 0, "  - found: hi"),
        (class(usual, "pass", "af(patt=r'hi', filename=self.stdout)"), 0, "  - found: hi"),
        (class(usual, "n = parameter(sorted([1, 3, 2], reverse=True))", "af(r'hi', self.stdout)"), 0, "  'n': [1, 2, 3]"),
        (class(usual, "n = parameter(sorted([1, 3, 2], key=lambda x: -x))", "af(r'hi', self.stdout)"), 0, "  'n': [1, 2, 3]"),
        (class(usual, "pass", "found(r'hi', self.stdout)"), 0, "  - found: hi"),
        (class("rfm.RegressionTest", &source, "found(r'hi', self.stdout)"), 1, "# Not carried"),
        (class(usual, "pass", "af(r'hi', self.stdout)"), 0, "executable: if [[ -n \"$X\" ]]; then echo hi; fi"),
        (class("base", "pass", "af(r'hi', self.stdout)"), 1, ""),
        (
            class(usual, "pass", "sn.assert_eq(sn.max(iterable=sn.extractall(r'(\\d+)', self.stdout, 1, int)), 3)"),
            1,
            "# Not carried",
        ),
    ];
    for (text, code, line) in rows {
        let sandbox = Sandbox::new();
        sandbox.write("a.py", &text);
        let ended = sandbox.muster(&["convert", "a.py", "-o", "-"]);
        assert_eq!(ended.code, Some(code), "{text}\n{}{}", ended.stdout, ended.stderr);
        assert!(line.is_empty() || ended.stdout.lines().any(|shown| shown.starts_with(line)), "{line}\n{}", ended.stdout);
        assert!(ended.stderr.trim_end().ends_with("; not checked against ReFrame"), "{}", ended.stderr);
    }
}

#[test]
fn a_descriptor_of_instances_becomes_a_check_that_loads_whatever_its_data_sets_are() {
    let sandbox = Sandbox::new();
    let options = "{ region: eu-west-1, bucket: 's3://bench', subnets: [subnet-0a1b2c3d] }";
    let partition = format!("{{ name: p, scheduler: ec2, environs: [e], time_limit: 1h, sched_options: {options} }}");
    sandbox.write("site.yaml", &format!("name: c\npartitions: [{partition}]\nenvironments: [{{ name: e }}]\n"));
    let sets = [
        ("s3://sets/imagenet/train", "~/data/train", ""),
        ("s3://sets/folder/", "~/folder/", "8a61469f7ea1b51cbae51d4f78837e45"),
        ("s3://sets", "/all", ""),
        ("s3://sets/a b", "/ab", ""),
        ("s3://sets/one.tar", "$HOME/one", ""),
        ("s3://sets/two.tar", "/two", "no digest"),
    ];
    let head = "[info]\nexecution_engine = \"aws.ec2\"\n[aws.ec2]\nimage = \"ami-0abc1234\"\n[hardware]\n\
                instance_type = \"c7i.large\"\n[ml]\nbenchmark_code = \"./run\"\n";
    let sets = sets.map(|(src, path, md5)| {
        let md5 = if md5.is_empty() { String::new() } else { format!("md5 = \"{md5}\"\n") };
        format!("[[data.sources]]\nsrc = \"{src}\"\npath = \"{path}\"\n{md5}")
    });
    sandbox.write("instances.toml", &(head.to_owned() + &sets.concat()));
    let converted = sandbox.muster(&["convert", "instances.toml"]);
    assert_eq!(converted.code, Some(1), "{}", converted.stderr);
    for part in
        ["`s3://sets/a b` has letters", "`$HOME/one` is not a path", "`no digest` is not a digest", "a folder has no digest"]
    {
        assert!(converted.stderr.contains(part), "{part}\n{}", converted.stderr);
    }
    let shown = sandbox.muster(&["-C", "site.yaml", "--system", "c", "-c", "instances.check.yaml", "--dry-run"]);
    assert_eq!(shown.code, Some(0), "{}{}", shown.stdout, shown.stderr);
    for part in [
        "# fetches s3://sets/imagenet/train/ as /root/data/train",
        "# fetches s3://sets/folder/ as /root/folder/",
        "# fetches s3://sets/ as /all",
        "# fetches s3://sets/two.tar as /two",
        "s3://bench/muster/",
    ] {
        assert!(shown.stdout.contains(part), "{part}\n{}", shown.stdout);
    }
}

#[test]
fn a_descriptor_of_anubis_becomes_a_check_that_loads_and_shows_its_pod() {
    let sandbox = Sandbox::new();
    let site = "name: c\npartitions:\n  - { name: p, scheduler: k8s, environs: [e] }\nenvironments: [{ name: e }]\n";
    let pods = fs::read_to_string(testdata("anubis/pods.toml")).expect("a descriptor");
    sandbox.write("pods.toml", &pods).write("site.yaml", site);
    let converted = sandbox.muster(&["convert", "pods.toml"]);
    assert_eq!((converted.code, &*converted.stdout), (Some(1), "pods.check.yaml\n"), "{}", converted.stderr);
    assert!(converted.stderr.trim_end().ends_with("; not checked against Anubis"), "{}", converted.stderr);
    let shown = sandbox.muster(&["-C", "site.yaml", "--system", "c", "-c", "pods.check.yaml", "--dry-run"]);
    assert_eq!(shown.code, Some(0), "{}{}", shown.stdout, shown.stderr);
    for part in ["node.kubernetes.io/instance-type: p3.8xlarge", "privileged: true", "mountPath: /dev/shm"] {
        assert!(shown.stdout.contains(part), "{part}\n{}", shown.stdout);
    }
}
