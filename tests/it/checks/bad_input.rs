//! Everything that people and editors do to a check file: each ends with 2, says what, where and what to do, and
//! launches nothing.

use crate::sandbox::Sandbox;
use std::{fmt::Write, fs};

/// What every check below has and none of them is about.
const HEAD: &str = "name: bad\nvalid_systems: ['*']\nexecutable: echo hello\n";
const SANITY: &str = "sanity: [{ found: hello }]\n";

/// A title, and the content of `check.yaml`. [`whole`] puts [`HEAD`] before content without a name.
type Inputs = &'static [(&'static str, &'static str)];

/// Text that YAML or Muster cannot read as a check.
const YAML: Inputs = &[
    ("an empty file", ""),
    ("only comments", "# nothing\n---\n# here\n"),
    ("a list", "- name: a\n"),
    ("one word", "name\n"),
    ("windows line ends", "time_limit: 5 minutes\r\nsanity: []\r\n"),
    ("a tab", "sanity:\n\t- found: a\n"),
    ("a key twice", "sanity: []\ntags: [a]\nsanity: []\n"),
    ("an alias without an anchor", "tags: *tags\nsanity: []\n"),
    ("an anchor that holds itself", "tags: &a [*a]\nsanity: []\n"),
    ("a merge of text", "k8s_patch: { <<: text }\nsanity: []\n"),
    ("a key that is a list", "? [a]\n: b\nsanity: []\n"),
    ("a tag", "descr: !!binary aGVsbG8=\nsanity: []\n"),
    ("an open bracket", "tags: [a, b\nsanity: []\n"),
    ("an open quote", "descr: \"a\nsanity: []\n"),
];

/// Keys, and the types of their values.
const KEYS: Inputs = &[
    ("an unknown key", "sanity: []\nexecutible: b\n"),
    ("a key of another system", "sanity: []\nsourcepath: a.c\n"),
    ("text for a list", "sanity: hello\n"),
    ("a list for text", "descr: [a]\nsanity: []\n"),
    ("a number for a mapping", "parameters: 5\nsanity: []\n"),
    ("yes for a boolean", "strict_check: yes\nsanity: []\n"),
    ("a duration that is none", "time_limit: soon\nsanity: []\n"),
    ("a number that would be printed otherwise", "parameters: { version: [1.20] }\nsanity: []\n"),
    ("a parameter without values", "parameters: { n: [] }\nsanity: []\n"),
    ("a value twice", "parameters: { n: [1, 1] }\nsanity: []\n"),
    ("a parameter and a variable of one name", "parameters: { n: [1] }\nvariables: { n: 2 }\nsanity: []\n"),
    ("something that cannot be printed", "descr: \"a\u{7}\"\nsanitty: []\n"),
];

/// Placeholders and the expressions in them.
const EXPRESSIONS: Inputs = &[
    ("an open placeholder", "descr: ${{ 1 + 2\nsanity: []\n"),
    ("a placeholder in brackets", "tags: [${{ 1 }}]\nsanity: []\n"),
    ("an expression with a slip", "descr: ${{ 1 + }}\nsanity: []\n"),
    ("an unknown function", "descr: ${{ lenght('a') }}\nsanity: []\n"),
    ("an unknown name", "variables: { blocks: 1 }\ndescr: ${{ block }}\nsanity: []\n"),
    ("text and number", "descr: ${{ 1 + 'a' }}\nsanity: []\n"),
    ("a division by nothing", "descr: ${{ 1 / 0 }}\nsanity: []\n"),
    ("variables in a circle", "variables: { a: '${{ b }}', b: '${{ a }}' }\ndescr: ${{ a }}\nsanity: []\n"),
    ("an extra that is missing", "descr: ${{ partition.extras.gpu }}\nsanity: []\n"),
];

/// Rules that judge the output.
const RULES: Inputs = &[
    ("an open group", "sanity: [{ found: '(a' }]\n"),
    ("a look-ahead", "sanity: [{ found: 'a(?=b)' }]\n"),
    ("a back-reference", "sanity: [{ found: '(a)\\1' }]\n"),
    ("a group that is not there", "sanity: []\nperf_variables: { p: { pattern: '(\\d+)', tag: 2 } }\n"),
    ("an expression for a regex", "sanity: [{ assert: 'count(found' }]\n"),
    ("no sanity", "descr: a\n"),
    ("an item that claims nothing", "sanity: [{ msg: hello }]\n"),
    ("an exit status of nobody", "sanity: [{ exit: 300 }]\n"),
    ("a figure without a source", "sanity: []\nperf_variables: { p: { unit: s } }\n"),
];

/// References of figures.
const REFERENCES: Inputs = &[
    ("a unit clash", "sanity: []\nperf_variables: { p: { pattern: a, unit: GB/s } }\nreference: { '*': { p: [1, 0, 0, s] } }\n"),
    ("a reference of nothing", "sanity: []\nreference: { '*': { p: [1, 0, 0] } }\n"),
    (
        "a bound on the wrong side",
        "sanity: []\nperf_variables: { p: { pattern: a } }\nreference: { '*': { p: [1, 0.1, 0.1] } }\n",
    ),
    (
        "two references that tie",
        "sanity: []\nparameters: { n: [1] }\nexecutable_opts: ['${{ n }}']\nperf_variables: { p: { pattern: a } }\nreference:\n  - { with: { n: 1 }, values: { p: [1, 0, 0] } }\n  - { system: '*', with: { n: 1 }, values: { p: [2, 0, 0] } }\n",
    ),
    ("a file of references that is not there", "sanity: []\nreference: refs.yaml#stream\n"),
    ("a key of references without a file", "sanity: []\nreference: '#stream'\n"),
];

/// Modules, containers, names, systems and programs.
const PROGRAMS: Inputs = &[
    ("a module without a name", "sanity: []\nmodules: ['']\n"),
    (
        "a module of a version apart",
        "name: bad\nvalid_systems: ['*']\nexecutable: echo hello\nsanity: []\nmodules: [{ name: gcc, version: '12' }]\n",
    ),
    ("a container beside an executable", "sanity: []\ncontainer_platform: { type: podman, image: box }\n"),
    ("a container of an unknown kind", "sanity: []\ncontainer_platform: { type: pdoman, image: box }\n"),
    ("a mount point of one path", "sanity: []\ncontainer_platform: { mount_points: [/data] }\n"),
    ("a parameter nobody declares", "sanity: []\nwhen: [{ with: { n: 1 }, skip: no }]\n"),
    ("a selector that is none", "name: bad\nvalid_systems: ['a b:']\nexecutable: a\nsanity: []\n"),
    ("no systems", "name: bad\nexecutable: a\nsanity: []\n"),
    ("no program", "name: bad\nvalid_systems: ['*']\nsanity: []\n"),
    ("no name", "valid_systems: ['*']\nexecutable: a\nsanity: []\n# name:\n"),
    ("a name with a blank", "name: my check\nvalid_systems: ['*']\nexecutable: a\nsanity: []\n"),
    (
        "two checks of one name",
        "name: a\nvalid_systems: ['*']\nexecutable: a\nsanity: []\n---\nname: a\nvalid_systems: ['*']\nexecutable: b\nsanity: []\n",
    ),
];

/// Other files and checks that a check names.
const BASES: Inputs = &[
    ("a circle of bases", "name: a\nextends: '#b'\n---\nname: b\nextends: '#a'\n"),
    ("a base that is not there", "extends: '#bse'\nsanity: []\n---\nname: base\nabstract: true\n"),
    ("a base file that is not there", "extends: base.yaml#base\nsanity: []\n"),
    ("a fixture's file that is not there", "fixtures: { b: { check: build.yaml#build } }\nsanity: []\n"),
    ("a fixture that is not in its file", "fixtures: { b: { check: '#build' } }\nsanity: []\n"),
    ("a manifest that is not there", "k8s_config: pod.yaml\nsanity: []\n"),
    ("a base file that is a folder", "extends: stateless#base\nsanity: []\n"),
];

/// Sources and the files that a case keeps.
const SOURCES: Inputs = &[
    ("sources that are not there", "sourcesdir: nowhere\nsanity: []\n"),
    ("sources that are a file", "sourcesdir: check.yaml\nsanity: []\n"),
    ("sources that are a repository", "sourcesdir: https://example.org/app.git\nsanity: []\n"),
    ("read-only files of no sources", "readonly_files: ['*.bin']\nsanity: []\n"),
    ("a glob that leads out of its folder", "sourcesdir: stateless\nreadonly_files: [../data]\nsanity: []\n"),
    ("a glob that is open", "sourcesdir: stateless\nreadonly_files: ['[a']\nsanity: []\n"),
    ("a search in files that nobody keeps", "sanity: [{ found: a, file: out.txt }]\n"),
    (
        "a search in a file that is not kept",
        "keep_files: ['*.csv']\nsanity: []\nperf_variables: { p: { pattern: a, file: out.txt } }\n",
    ),
    ("an exit status in a file", "keep_files: out.txt\nsanity: [{ exit: 0, file: out.txt }]\n"),
    ("a kept file of another folder", "keep_files: /etc/passwd\nsanity: []\n"),
];

fn whole(text: &str) -> String {
    let has_name = text.contains("name: ") || text.contains("name:\n") || !text.contains("sanity") || text.starts_with('-');
    if has_name && !text.starts_with("descr: a\n") { text.to_owned() } else { format!("{HEAD}{text}") }
}

/// What goes beyond a limit: the message names it.
fn beyond() -> Vec<(&'static str, String, &'static str)> {
    let nested = |depth: usize| format!("{HEAD}{SANITY}k8s_patch: {}{}\n", "{a: ".repeat(depth), "}".repeat(depth));
    let lines = |count: usize, line: &dyn Fn(usize) -> String| (1..count).map(line).collect::<Vec<_>>().concat();
    let bomb = lines(9, &|n| format!("  a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", ")));
    let chain = lines(400, &|n| format!("---\nname: n{n}\nabstract: true\nextends: '#n{}'\n", n - 1));
    let twice = lines(40, &|n| format!("---\nname: n{n}\nabstract: true\nextends: ['#n{0}', '#n{0}']\n", n - 1));
    let twice = format!("name: n0\nabstract: true\n{twice}---\n{HEAD}{SANITY}extends: '#n39'\n");
    vec![
        ("a file of 5 MiB", format!("{HEAD}{SANITY}descr: {}\n", "x".repeat(5 << 20)), "4194304 bytes"),
        ("brackets in brackets", nested(101), "more than 100 deep"),
        ("brackets without end", format!("{HEAD}tags: {}", "[".repeat(100_000)), "more than 100 deep"),
        (
            "blocks in blocks",
            format!("{HEAD}k8s_patch:\n{}", lines(150, &|n| format!("{}a:\n", " ".repeat(n)))),
            "more than 100 deep",
        ),
        (
            "aliases of aliases",
            format!("{HEAD}{SANITY}k8s_patch:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n{bomb}"),
            "more than 250000 values",
        ),
        ("a regex that grows", format!("{HEAD}sanity: [{{ found: '\\w{{1000}}{{100}}' }}]\n"), "larger than 10 MiB"),
        ("groups in groups", format!("{HEAD}sanity: [{{ found: '{}a{}' }}]\n", "(".repeat(300), ")".repeat(300)), "250"),
        ("an expression of 20 kB", format!("{HEAD}{SANITY}descr: ${{{{ 1{} }}}}\n", " + 1".repeat(5_000)), "16 KiB"),
        ("an expression that nests", format!("{HEAD}{SANITY}descr: ${{{{ {}1{} }}}}\n", "(".repeat(80), ")".repeat(80)), "64"),
        (
            "a million cases",
            format!(
                "{HEAD}{SANITY}parameters: {{ a: '${{{{ range(1000) }}}}', b: '${{{{ range(1000) }}}}' }}\nexecutable_opts: ['${{{{ a + b }}}}']\n"
            ),
            "100000 variants",
        ),
        ("bases of bases", format!("name: n0\nabstract: true\n{chain}---\n{HEAD}{SANITY}extends: '#n399'\n"), "longer than 64"),
        ("bases that are reached again and again", twice, "more than 1000 bases"),
    ]
}

/// Runs Muster on one text and returns its messages. Nothing may have been launched.
fn reported(title: &str, bytes: &[u8]) -> String {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("check.yaml"), bytes).expect("a file");
    fs::create_dir(sandbox.path("stateless")).expect("a folder");
    let ended = sandbox.muster(&["-c", "check.yaml", "--system", "local", "-r"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{title}: {}", ended.stderr);
    assert!(ended.stderr.starts_with("error: ") || ended.stderr.starts_with("warning: "), "{title}: {}", ended.stderr);
    for word in ["panicked", "backtrace", "RUST_", "src/", "called `Result", "called `Option"] {
        assert!(!ended.stderr.contains(word), "{title}: {}", ended.stderr);
    }
    assert!(!sandbox.path("stage").exists() && !sandbox.path("state").exists(), "{title}: a session was started");
    assert!(!ended.stderr.contains(|c: char| c.is_control() && c != '\n'), "{title}: {:?}", ended.stderr);
    ended.stderr
}

/// What Muster reports of each input, under its title.
fn all_reported(inputs: Inputs) -> String {
    let mut all = String::new();
    for (title, text) in inputs {
        let _ = writeln!(all, "## {title}\n\n{}", reported(title, whole(text).as_bytes()));
    }
    all
}

#[test]
fn yaml_that_is_no_check() {
    insta::assert_snapshot!(all_reported(YAML));
}

#[test]
fn wrong_keys_and_values() {
    insta::assert_snapshot!(all_reported(KEYS));
}

#[test]
fn wrong_placeholders() {
    insta::assert_snapshot!(all_reported(EXPRESSIONS));
}

#[test]
fn wrong_sanity_and_figures() {
    insta::assert_snapshot!(all_reported(RULES));
}

#[test]
fn wrong_references() {
    insta::assert_snapshot!(all_reported(REFERENCES));
}

#[test]
fn wrong_programs_names_and_systems() {
    insta::assert_snapshot!(all_reported(PROGRAMS));
}

#[test]
fn wrong_bases_fixtures_and_manifests() {
    insta::assert_snapshot!(all_reported(BASES));
}

#[test]
fn wrong_sources_and_kept_files() {
    insta::assert_snapshot!(all_reported(SOURCES));
}

#[test]
fn files_that_are_not_text_are_reported_beside_all_other_mistakes() {
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(HEAD.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let files: [(&str, &[u8]); 5] = [
        ("utf16.check.yaml", &utf16),
        ("latin1.check.yaml", b"name: a\ndescr: caf\xe9\n"),
        ("binary.check.yaml", b"\x7fELF\x02\x01\x01\x00\x00\x00"),
        ("zeros.check.yaml", &[0; 64]),
        ("slip.check.yaml", b"name: slip\nvalid_systems: ['*']\nexecutible: a\nexecutable: b\nsanity: []\n"),
    ];
    let sandbox = Sandbox::new();
    for (name, bytes) in files {
        fs::write(sandbox.path(name), bytes).expect("a file");
    }
    sandbox.write("good.check.yaml", &format!("{HEAD}{SANITY}"));
    let list = sandbox.muster(&["-c", ".", "--system", "local", "-l"]);
    assert_eq!(list.code, Some(2));
    assert!(list.stdout.contains("- bad /"), "what is right is listed: {}", list.stdout);
    insta::assert_snapshot!(list.stderr);
}

#[test]
fn a_file_without_end_is_left_at_the_limit() {
    let ended = Sandbox::new().muster(&["-c", "/dev/zero", "-l"]);
    assert_eq!(ended.code, Some(2));
    assert_eq!(
        ended.stderr.lines().next(),
        Some("error: /dev/zero cannot be read: it has more than 4194304 bytes, which is the limit")
    );
}

#[test]
fn every_limit_is_named_with_its_number() {
    let mut all = String::new();
    for (title, text, limit) in beyond() {
        let stderr = reported(title, text.as_bytes());
        assert!(stderr.contains(limit), "{title}: {}", &stderr[..stderr.len().min(2_000)]);
        assert!(stderr.len() < 20_000, "{title}: {} bytes of message", stderr.len());
        let first = stderr.lines().next().unwrap_or_default();
        let hint = stderr.lines().find(|line| line.contains("= help:")).unwrap_or_default();
        let _ = writeln!(all, "{title}: {first} {}", hint.trim_start_matches([' ', '|']));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn the_same_mistakes_in_a_site_file_are_reported_alike() {
    let mut all = String::new();
    for (title, text) in [
        ("an unknown key", "name: s\npartitoins: []\n"),
        (
            "an unknown scheduler",
            "name: s\npartitions: [{ name: p, scheduler: pbs, environs: [default] }]\nenvironments: [{ name: default }]\n",
        ),
        (
            "an environment that is not there",
            "name: s\npartitions: [{ name: p, scheduler: local, environs: [gnu] }]\nenvironments: [{ name: default }]\n",
        ),
        ("a bad host name", "name: s\nhostnames: ['(']\npartitions: [{ name: p, scheduler: local }]\n"),
        ("a placeholder", "name: ${{ s }}\npartitions: [{ name: p, scheduler: local }]\n"),
        ("an alias bomb", "name: &a [*a]\n"),
        ("modules that nobody loads", "name: s\npartitions: [{ name: p, scheduler: local, modules: gcc }]\n"),
        ("an unknown system of modules", "name: s\nmodules_system: lmodd\npartitions: [{ name: p, scheduler: local }]\n"),
        (
            "a platform without a type",
            "name: s\npartitions: [{ name: p, scheduler: local, container_platforms: [{ name: podman }] }]\n",
        ),
        ("nothing", ""),
    ] {
        let sandbox = Sandbox::with_check(&format!("{HEAD}{SANITY}"));
        sandbox.write("site.yaml", text);
        let ended = sandbox.muster(&["-C", "site.yaml", "-c", "check.yaml", "-r"]);
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{title}");
        let _ = writeln!(all, "## {title}\n\n{}", ended.stderr);
    }
    insta::assert_snapshot!(all);
}
