//! What becomes of whole files: the YAML and the refusals, as a user sees them; and that mangled Python ends nothing.

use muster_convert::{Conversion, Manifests, Source};
use muster_core::{
    job::descriptor::{Descriptor, Schedulers, SharedKey},
    launcher::Launchers,
};
use muster_text::{
    decode::{Documents, Key, Mapping},
    expr::{Arithmetic, Expr, Scope, Text},
};
use proptest::prelude::*;
use std::{fs, path::PathBuf};

fn testdata(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(folder)
}

/// Manifests that lie beside the checks.
#[derive(Debug)]
struct Beside(PathBuf);

impl Manifests for Beside {
    fn read(&self, _beside: &str, path: &str) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok()
    }

    fn folder(&self, _path: &str) -> Result<bool, String> {
        Ok(true)
    }
}

/// The files of a folder that are converted, by name.
fn sources(folder: &str) -> Vec<Source> {
    let entries = fs::read_dir(testdata(folder)).expect("testdata");
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "py" || extension == "toml"));
    paths.sort();
    let source = |path: &PathBuf| Source {
        path: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        text: fs::read_to_string(path).expect("a file of testdata"),
        ..Source::default()
    };
    paths.iter().map(source).collect()
}

fn shown(conversion: &Conversion) -> String {
    let outputs =
        conversion.outputs.iter().map(|output| format!("==> {} ({} checks)\n{}", output.name, output.checks, output.text));
    let refusals = conversion.refusals.iter().map(|refusal| format!("{refusal}\n"));
    outputs.chain(["\n==> refusals\n".to_owned()]).chain(refusals).collect()
}

#[test]
fn a_parameter_with_the_name_of_a_key_sets_it_or_stays_a_label() {
    let text = "import reframe as rfm\n@rfm.simple_test\nclass shape(rfm.RunOnlyRegressionTest):\n    valid_systems = ['*']\n    \
                valid_prog_environs = ['*']\n    executable = 'a'\n    num_tasks = parameter([1, 2])\n    image = parameter(['x'])\n    \
                when = parameter([1])\n";
    let source = Source { path: "shape.py".into(), text: text.into(), ..Source::default() };
    let conversion = convert(&[source], &Beside(PathBuf::new()));
    let lines: Vec<&str> = conversion.outputs[0].text.lines().collect();
    for line in ["num_tasks: ${{ num_tasks }}", "image: null"] {
        assert!(lines.contains(&line), "{lines:#?}");
    }
    let refusals: Vec<String> = conversion.refusals.iter().map(|refusal| format!("{} {}", refusal.line, refusal.why)).collect();
    assert!(refusals.contains(&"9 no parameter may be called `when`, which is a key of a check".to_owned()), "{refusals:#?}");
}

#[test]
fn an_absolute_path_stays_where_the_file_goes_elsewhere() {
    let rows = [
        ("sourcesdir = 'a'", "sourcesdir: ../in/a"),
        ("sourcesdir = '/a'", "sourcesdir: /a"),
        ("sourcesdir = f'/data/{self.n}'", "sourcesdir: /data/${{ n }}"),
        ("sourcesdir = f'data/{self.n}'", "sourcesdir: ../in/data/${{ n }}"),
        ("k8s_config = f'/{self.n}.yaml'", "k8s_config: /${{ n }}.yaml"),
        ("sourcesdir = self.n", "sourcesdir: \"${{ n.startsWith('/') ? '' : '../in/' }}${{ n }}\""),
    ];
    for (line, expected) in rows {
        let text = format!(
            "import reframe as rfm\n@rfm.simple_test\nclass t(rfm.RunOnlyRegressionTest):\n    valid_systems = ['*']\n    \
             n = parameter(['a', '/b'])\n    @run_after('init')\n    def h(self):\n        self.{line}\n"
        );
        let source = Source { path: "in/t.py".into(), text, folder: "out".into(), way: "../in".into(), ..Source::default() };
        let yaml = &convert(&[source], &Beside(PathBuf::new())).outputs[0].text;
        assert!(yaml.lines().any(|line| line == expected), "{expected}\n{yaml}");
    }
}

/// A test with these lines from line 8 on: its YAML without comments, and the lines and reasons of what is missing.
fn converted(lines: &str) -> (String, Vec<String>) {
    let mut text =
        "import reframe as rfm\nimport reframe.utility.sanity as sn\n@rfm.simple_test\nclass t(rfm.RunOnlyRegressionTest):\n"
            .to_owned();
    let head = ["valid_systems = ['*']", "valid_prog_environs = ['*']", "executable = 'a'"];
    for line in head.into_iter().chain(lines.split('|')) {
        let line = line.replace("one(", r"sn.extractsingle('(\d+)', self.stdout, 1, ");
        text.extend(["    ", &line.replace("all(", r"sn.extractall('(\d+)', self.stdout, 1, "), "\n"]);
    }
    let conversion = convert(&[Source { path: "t.py".into(), text, ..Source::default() }], &Beside(PathBuf::new()));
    let told = conversion.refusals.iter().filter(|refusal| refusal.level.is_missing());
    let yaml = conversion.outputs.first().map_or("", |output| &output.text).lines().filter(|line| !line.starts_with('#'));
    (yaml.collect::<Vec<_>>().join("\n"), told.map(|refusal| format!("{} {}", refusal.line, refusal.why)).collect())
}

/// The arguments of `assert_eq`, and what is written or told.
const CONVERSIONS: &str = r"
one(float), one(conv=int)         => double(extractsingle(r'(\d+)')) == int(extractsingle(r'(\d+)'))
one(lambda x: int(x) + 1), 2      => int(extractsingle(r'(\d+)')) + 1 == 2
one(str), '1'                     => string(extractsingle(r'(\d+)')) == '1'
int(one(float)), 1                => int(double(extractsingle(r'(\d+)'))) == 1
sn.sorted(all(int)), [1, 2]       => sorted(extractall(r'(\d+)').map(x, int(x))) == [1, 2]
all(float)[0], all(None)[0]       => extractall(r'(\d+)').map(x, double(x))[0] == extractall(r'(\d+)')[0]
sn.map(float, all(None)), [1]     => extractall(r'(\d+)').map(x, double(x)) == [1]
all(lambda x: float(x)), [1]      => extractall(r'(\d+)').map(x, double(x)) == [1]
int(sn.avg(all(int))), 2          => int(avg(extractall(r'(\d+)').map(x, int(x)))) == 2
sn.count(all(int)), 2             => count: 2
sn.extractsingle(r'(n) (-?[0-9]+)', self.stdout, 2, int), 3 => int(extractsingle('(n) (-?[0-9]+)', 2).matches(
all(lambda x: int(x)), [1]        => extractall(r'(\d+)').map(x, int(x.matches(r'^\s*[+-]?\d+\s*$') ? x : 'no integer')) == [1]
one(lambda x: int(x, 16)), 2      => 10 `int` of the output with another base has no counterpart
";

#[test]
fn a_conversion_of_what_is_captured_stays() {
    for (arguments, expected) in CONVERSIONS.lines().filter_map(|row| row.split_once("=> ")) {
        let (yaml, told) = converted(&format!("@sanity_function|def ok(self):|    return sn.assert_eq({arguments})"));
        assert!(yaml.contains(expected) || told == [expected], "{expected}\n{yaml}{told:#?}");
    }
}

#[test]
fn an_integer_of_what_is_captured_is_no_decimal() {
    let (yaml, _) = converted(
        r"@sanity_function|def ok(self):|    return sn.assert_ge(sn.extractsingle(r'n=(\S+)', self.stdout, 1, int), 3)",
    );
    let assertion = yaml.split("assert: |-").nth(1).expect("an assertion").trim();
    let expression = Expr::compile(assertion, Arithmetic::Doubles).expect(assertion);
    let judged = |log: &'static str| {
        let mut scope = Scope::new();
        scope.set_text(Text::new(std::sync::Arc::new(log.as_bytes()), [("stdout".to_owned(), 0..log.len())]));
        expression.eval(&scope).map(|value| value.to_string()).map_err(|error| error.message)
    };
    assert_eq!((judged("n=3"), judged("n=-3")), (Ok("true".to_owned()), Ok("false".to_owned())), "{assertion}");
    for wrong in ["n=3.7", "n=4e0", "n=x"] {
        assert_eq!(judged(wrong), Err("`int` cannot read this: invalid digit found in string".to_owned()), "{wrong}");
    }
}

#[test]
fn what_is_left_out_does_not_come_back_from_a_base() {
    let head = "import reframe as rfm\nclass b(rfm.RunOnlyRegressionTest):\n    descr = 'x'\n    valid_prog_environs = ['*']\n    \
                executable = 'a'\n    sanity_patterns = True\n";
    let rows = [
        (
            "    valid_systems = ['*']\n    time_limit = '5m'\n",
            "    time_limit = '1x'\n",
            Some("time_limit: 5m"),
            "12 time_limit",
        ),
        ("    valid_systems = ['a : b']\n    time_limit = '5m'\n", "    valid_systems = ['*']\n", Some("extends:"), "7 b"),
        ("    valid_systems = ['a : b']\n", "    num_tasks = 2\n", None, "7 b, 7 t"),
    ];
    for (base, derived, absent, lines) in rows {
        let text = format!("{head}{base}@rfm.simple_test\nclass t(b):\n    tags = {{'q'}}\n{derived}");
        let conversion = convert(&[Source { path: "t.py".into(), text, ..Source::default() }], &Beside(PathBuf::new()));
        let of = |why: &str| why.rsplit('`').nth(1).unwrap_or_default().to_owned();
        let told: Vec<_> = conversion.refusals.iter().map(|told| format!("{} {}", told.line, of(&told.why))).collect();
        let is_right = match (&conversion.outputs[..], absent) {
            ([output], Some(absent)) => output.text.contains("executable: a") && !output.text.contains(absent),
            (outputs, absent) => outputs.is_empty() && absent.is_none(),
        };
        assert!(is_right && told.join(", ") == lines, "{}", shown(&conversion));
    }
}

/// Lines of Python, a part of the result, what is not in it, and what is told.
const LEFT_OUT: &str = r"
readonly_files = [''] => executable: a => readonly_files => 8 `` is not a path within the folder, so `readonly_files` is left out
valid_systems = [''] => => t => 8 an empty selector matches nothing; `*` matches everything, so all of `t` is left out
n = parameter([1, 2])|@run_after('init')|def h(self):|    if self.n == 1:|        self.valid_systems = ['a : b'] => => t => 12 `:` has no name, so all of `t` is left out
time_limit = '1x'|@run_before('run')|def h(self):|    if self.current_system.name == 's':|        self.time_limit = '2y' => executable: a => time_limit => 8 `1x` is not a duration, so `time_limit` is|12 `2y` is not a duration, so `time_limit` is
time_limit = '5m'|@run_before('run')|def h(self):|    if self.current_system.name == 's':|        self.time_limit = '2y'|    elif self.current_system.name == 't':|        self.time_limit = '7m' => executable: a => time_limit => 12 `2y` is not a duration
F|    return one(float)|n = parameter([1, 2])|@run_after('init')|def h(self):|    self.reference = {'s': {'f': (1, -0.1, None, 's')}}|    if self.n == 1:|        self.reference['s:p'] = {'f': (9, 0.1, None, 's')}|    else:|        self.reference['s:p'] = {'f': (2, -0.1, None, 's')} => f: { pattern => reference => 16 the lower threshold is 0.1
n = parameter([1, 2])|@run_after('init')|def h(self):|    if self.n == 1:|        self.time_limit = '${{ x'|    else:|        self.time_limit = '5m' => executable: a => time_limit => 12 `time_limit`: `${{` would be a placeholder
n = parameter([1, 2])|@run_after('init')|def h(self):|    if self.n == 1:|        self.reference = {'s': {'f': (3, -0.1)}}|    else:|        self.reference = {'s': {'f': (2, -0.1, None, 's')}}|F|    return one(float) => f: { pattern => reference => 12 the reference of `f` is no `(value
reference = {'s': {'f': (None, None, None, 's')}}|F|    return one(float) => s: { f: [0, null, null, s] } => refused =>
reference = {'s': {'f': (None, -0.1, None, 's')}, '*': {'f': (1, -0.1, None, 's')}}|F|    return one(float) => f: { pattern => reference => 8 expected a number, found nothing, so each `reference` of `f` is left out
n = parameter([1, 2])|@run_after('init')|def h(self):|    if self.n == 1:|        self.reference = {'s:p': {'f': (9, 0.1, None, 's')}}|    else:|        self.reference = {'s:p': {'f': (2, -0.1, None, 's')}}|F|    return one(float) => f: { pattern => reference => 12 the lower threshold is 0.1
n = parameter([1, 2])|@run_after('init')|def h(self):|    if self.n == 1:|        self.num_tasks = 0|        self.tags = {'a'}|    else:|        self.num_tasks = 64 => tags+: [a] => num_tasks => 12 expected a whole number from 1, found 0, so `num_tasks` is
reference = {'*': {'f': (1, None, None, 's')}}|F|    return all(float) => executable: a => reference => 8 the figure `f` is not carried over, and so is its reference|10 `f`: a list is no figure
@run_before('run')|def h(self):|    self.skip_if(self.current_partition.name == 'p', 'no')|    self.skip_if(self.current_system.name == 's', '${{ nope }') => skip: 'no' => nope => 11 a placeholder
S|    return sn.assert_eq(one(int), 4, f'{one(int)}') => - assert: int(extractsingle(r'(\d+)')) == 4 => msg => 10 the message shows what is in the output
S|    return sn.assert_lt(one(int), 4, msg='{0}!') => - assert: int(extractsingle(r'(\d+)')) < 4 => msg => 10 the message shows what is in the output
S|    return sn.assert_found('a', self.stdout, one(int)) => - found: a => msg => 10 the message shows what is in the output
S|    return sn.assert_true(one(int), 'no {n}') => msg: no {n} => refused =>
S|    return sn.assert_found('a', self.stdout, msg='{{}} braces') => msg: '{{}} braces' => refused =>
S|    return sn.assert_found('a', self.stdout, msg='{{{0}}}') => found: a => msg => 10 the message shows what is in the output
";

#[test]
fn what_the_loader_refuses_is_told_at_its_line_and_left_out() {
    for row in LEFT_OUT.trim().lines() {
        let [python, part, absent, expected] = row.split(" =>").collect::<Vec<_>>()[..] else { panic!("{row}") };
        let python =
            python.replace("F|", "@performance_function('s')|def f(self):|").replace("S|", "@sanity_function|def ok(self):|");
        let (yaml, told) = converted(&python);
        assert!(yaml.contains(part.trim()) && !yaml.contains(absent.trim()), "{python}\n{yaml}");
        let expected: Vec<&str> = expected.trim().split('|').filter(|part| !part.is_empty()).collect();
        let is_told = told.len() == expected.len() && told.iter().zip(&expected).all(|(told, part)| told.starts_with(part));
        assert!(is_told, "{expected:#?}\n{told:#?}");
    }
}

fn convert(sources: &[Source], manifests: &dyn Manifests) -> Conversion {
    static ALL: &[&Descriptor] = &[&PODS, &BATCH, &HERE];
    muster_convert::convert(sources, manifests, &Schedulers::new(ALL))
}

/// Schedulers that differ in what they take.
static PODS: Descriptor = Descriptor {
    names: &["k8s", "ipu"],
    own_keys: &[
        Key::of::<Documents>("k8s_config", "The objects."),
        Key::of::<Mapping>("k8s_patch", "What is laid over them."),
        Key::of::<String>("k8s_resource", "The resource."),
        Key::of::<String>("namespace", "The namespace."),
        Key::of::<String>("context", "The context."),
        Key::of::<String>("image", "An image."),
    ],
    documents: &["k8s_config"],
    shared_keys: &[
        ("launcher", SharedKey::Refuses("the manifest says what starts the tasks")),
        ("access", SharedKey::Refuses("write `sched_options`")),
    ],
    ..Descriptor::NONE
};
static BATCH: Descriptor = Descriptor {
    names: &["slurm", "squeue"],
    shared_keys: &[("launcher", SharedKey::Takes), ("access", SharedKey::Takes), ("resources", SharedKey::Takes)],
    launchers: Launchers { usual: "srun --kill-on-bad-exit=1", named: &[("srun", "srun"), ("mpirun", "mpirun -np {num_tasks}")] },
    options: &[Key::of::<bool>("use_nodes_option", "Whether the number of nodes is an option.")],
    refused_options: &[("ignore_reqnodenotavail", "a job that waits for a node is never cancelled for that")],
    ..Descriptor::NONE
};
static HERE: Descriptor = Descriptor {
    names: &["local"],
    shared_keys: &[("launcher", SharedKey::Refuses("write the program that starts the tasks into `executable`"))],
    ..Descriptor::NONE
};

#[test]
fn every_file_of_the_suite_becomes_the_yaml_that_a_person_would_write() {
    let all = sources("suite");
    for source in &all {
        // A file is converted with what it imports.
        let imports = |other: &&Source| source.text.contains(&format!("from {} import", other.path.trim_end_matches(".py")));
        let files: Vec<Source> = std::iter::once(source).chain(all.iter().filter(imports)).cloned().collect();
        let conversion = convert(&files, &Beside(testdata("suite")));
        insta::assert_snapshot!(source.path.trim_end_matches(".py"), shown(&conversion));
    }
}

#[test]
fn checks_of_pods_jobs_and_ipujobs_are_carried_over() {
    let conversion = convert(&sources("k8s"), &Beside(testdata("k8s")));
    insta::assert_snapshot!("k8s", shown(&conversion));
}

#[test]
fn builds_fixtures_and_dependencies_are_carried_over() {
    let conversion = convert(&sources("builds"), &Beside(testdata("builds")));
    insta::assert_snapshot!("builds", shown(&conversion));
}

#[test]
fn files_that_a_test_brings_searches_and_keeps_are_carried_over() {
    let conversion = convert(&sources("files"), &Beside(testdata("files")));
    insta::assert_snapshot!("files", shown(&conversion));
    // A folder `src` is the default of both; no folder at all has to be said where there is one.
    let beside_src: Vec<Source> = sources("files").into_iter().map(|source| Source { has_src: true, ..source }).collect();
    let text = &convert(&beside_src, &Beside(testdata("files"))).outputs[0].text;
    assert_eq!((text.matches("sourcesdir: input").count(), text.matches("sourcesdir: null").count()), (1, 1), "{text}");
    assert_eq!(text.matches("sourcesdir: src").count(), 1, "{text}");
}

#[test]
fn a_site_configuration_becomes_a_file_for_each_system() {
    let conversion = convert(&sources("site"), &Beside(testdata("site")));
    insta::assert_snapshot!("site", shown(&conversion));
}

#[test]
fn partitions_of_a_batch_system_keep_what_their_scheduler_takes() {
    let conversion = convert(&sources("batch"), &Beside(testdata("batch")));
    insta::assert_snapshot!("batch", shown(&conversion));
}

#[test]
fn every_entry_of_a_configuration_is_in_the_result_or_listed() {
    let conversion = convert(&sources("lost"), &Beside(testdata("lost")));
    insta::assert_snapshot!("lost", shown(&conversion));
    // A variable that a file is loaded with is text that nothing expands there.
    let partition = conversion.outputs[0].text.split("environments:").next().unwrap_or_default();
    for key in ["access:", "resources:", "sched_options:", "time_limit:", "hostnames:", "features:"] {
        assert!(!partition.contains(key), "{key} is written in part: {partition}");
    }
}

#[test]
fn a_site_configuration_in_yaml_is_read_as_one_in_python() {
    let text = "systems:\n  - name: daint\n    hostnames: ['daint\\d+']\n    partitions:\n      - name: gpu\n        scheduler: pbs\n        \
                environs: [gnu]\n      - name: login\n        scheduler: local\n        launcher: mpirun\n        environs: [gnu]\n        \
                max_jobs: 4\n        time_limit: never\nenvironments:\n  - {name: gnu, cc: gcc}\nlogging: []\n";
    let source = |text: &str| Source { path: "settings.yaml".to_owned(), text: text.to_owned(), ..Source::default() };
    insta::assert_snapshot!(shown(&convert(&[source(text)], &Beside(PathBuf::new()))), @r"
    ==> daint.yaml (0 checks)
    name: daint
    hostnames: [daint\d+]

    partitions:
      - name: login
        scheduler: local
        environs: [gnu]
        max_jobs: 4

    environments:
      - name: gnu
        env_vars: { CC: gcc }

    ==> refusals
    settings.yaml:6: refused: Muster has no scheduler `pbs`, so the partition `gpu` is left out; describe it with one of k8s, slurm, local
        scheduler: pbs
    settings.yaml:10: dropped: the launcher `mpirun` is not carried over; write the program that starts the tasks into `executable`
        launcher: mpirun
    settings.yaml:13: refused: `never` is not a duration, so `partitions.time_limit` is left out; write 1d2h3m4s, any part may be left out, or a number of seconds
        time_limit: never
    settings.yaml:16: dropped: `logging` is ReFrame's own; settings of the program are options of the command line and `MUSTER_` variables
        logging: []
    ");
    for (text, refusal) in [
        ("systems: [", "settings.yaml:1: refused: this is no YAML"),
        ("a: 1\nb: {{ host }}\n", "settings.yaml:2: refused: Jinja is computed while ReFrame loads it"),
    ] {
        let conversion = convert(&[source(text)], &Beside(PathBuf::new()));
        assert!(conversion.outputs.is_empty() && shown(&conversion).contains(refusal), "{}", shown(&conversion));
    }
}

#[test]
fn every_key_of_a_descriptor_of_anubis_is_in_the_check_or_listed() {
    let conversion = convert(&sources("anubis"), &Beside(testdata("anubis")));
    insta::assert_snapshot!("anubis", shown(&conversion));
}

#[test]
fn modules_and_containers_are_carried_over() {
    let conversion = convert(&sources("modules"), &Beside(testdata("modules")));
    insta::assert_snapshot!("modules", shown(&conversion));
}

#[test]
fn what_cannot_be_carried_over_is_told_line_by_line() {
    let conversion = convert(&sources("refused"), &Beside(testdata("refused")));
    insta::assert_snapshot!("refused", shown(&conversion));
}

#[test]
fn deep_and_long_files_are_refused_and_end_nothing() {
    let nested = |open: &str, close: &str, times: usize| format!("x = {}1{}\n", open.repeat(times), close.repeat(times));
    let texts = [
        nested("[", "]", 50_000),
        nested("-", "", 100_000),
        nested("not ", "", 50_000),
        nested("(", ")", 100_000),
        format!("x = a{}\n", ".b".repeat(100_000)),
        format!("x = 1{}\n", " + 1".repeat(50_000)),
        format!("x = f{}\n", "()".repeat(60_000)),
        (0..400).map(|level| " ".repeat(level) + "if a:\n").collect::<Vec<_>>().concat(),
        "x = 1\n".repeat(100_000),
        "x = 'a' * 99999999999\ny = [0] * 99999999999\nz = 9 ** 9 ** 9\n".to_owned(),
        "x = 'a'\n".to_owned() + &"x = x + x\n".repeat(80),
    ];
    for text in texts {
        let source = Source { path: "deep.py".to_owned(), text: text.clone(), ..Source::default() };
        let conversion = convert(&[source], &Beside(PathBuf::new()));
        assert!(conversion.refusals.len() < 200_000, "{}", &text[..40]);
    }
}

#[test]
fn branches_that_multiply_are_refused_before_they_cost_anything() {
    let body = "        if self.current_system.name == 's#':\n            self.executable = self.executable + 'a'\n        else:\n            \
                self.executable = self.executable + 'b'\n";
    let hook = (0..60).map(|at: u32| body.replace('#', &at.to_string())).collect::<Vec<_>>().concat();
    let text = format!(
        "import reframe as rfm\n@rfm.simple_test\nclass t(rfm.RunOnlyRegressionTest):\n    valid_systems = ['*']\n    executable = 'x'\n    @run_before('run')\n    def h(self):\n{hook}"
    );
    let conversion = convert(&[Source { path: "t.py".to_owned(), text, ..Source::default() }], &Beside(PathBuf::new()));
    assert!(conversion.refusals.iter().any(|refusal| refusal.why.contains("too many branches")), "{:?}", conversion.refusals);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Files cut, doubled and mixed at any place are converted or refused.
    #[test]
    fn mangled_python_never_ends_the_converter(
        which in 0usize..64,
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..60, "[\\[\\](){}:.,=+\n '\"a-z0-9@*%#\\\\-]{0,12}"), 1..8),
    ) {
        let files: Vec<Source> = ["suite", "refused", "site", "k8s"].into_iter().flat_map(sources).collect();
        let mut source = files[which % files.len()].clone();
        for (place, length, new) in cuts {
            let mut letters: Vec<char> = source.text.chars().collect();
            let from = place.index(letters.len() + 1);
            let to = (from + length).min(letters.len());
            letters.splice(from..to, new.chars());
            source.text = letters.into_iter().collect();
        }
        let conversion = convert(&[source], &Beside(PathBuf::new()));
        for refusal in conversion.refusals {
            prop_assert!(refusal.line >= 1);
        }
    }
}
