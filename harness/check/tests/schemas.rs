//! The JSON schemas as another validator reads them: they are schemas, they take every file that is shipped, and
//! they refuse what an editor should underline.

use jsonschema::{Validator, meta};
use muster_text::{
    Value,
    diagnostic::FileId,
    yaml::{parse, to_parameter_value},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema(file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(root().join(file)).expect(file)).expect(file)
}

fn validator(file: &str) -> Validator {
    let schema = schema(file);
    assert!(meta::is_valid(&schema), "{file}: {}", meta::validate(&schema).expect_err("a mistake"));
    jsonschema::draft202012::new(&schema).expect(file)
}

/// The documents of a text, as JSON.
fn documents(text: &str) -> Vec<Value> {
    let parsed = parse(FileId::default(), text);
    assert!(parsed.diagnostics.is_empty(), "{:?}\n{text}", parsed.diagnostics);
    parsed.documents.iter().map(|document| to_parameter_value(document).expect(text)).collect()
}

fn mistakes(validator: &Validator, document: &Value) -> Vec<String> {
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn files(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = vec![];
    for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            found.extend(files(&path, wanted));
        } else if path.file_name().is_some_and(|name| wanted(&name.to_string_lossy())) {
            found.push(path);
        }
    }
    found
}

/// The YAML of a page that has a name: checks or, with partitions, sites.
fn examples(page: &str, is_site: bool) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).expect(page);
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(block, _)| block.to_owned());
    let named = blocks.filter(|block| block.lines().any(|line| line.starts_with("name: ")));
    named.filter(|block| block.contains("\npartitions:") == is_site).collect()
}

#[test]
fn every_check_that_is_shipped_is_valid() {
    let validator = validator("check.schema.json");
    let is_check = |name: &str| name == "check.yaml" || name.ends_with(".check.yaml");
    let mut texts: Vec<String> =
        files(&root().join("checks"), &is_check).iter().map(|path| fs::read_to_string(path).expect("text")).collect();
    assert!(texts.len() >= 8, "{} files", texts.len());
    for page in ["docs/checks.md", "docs/fake.md", "docs/kubernetes.md"] {
        texts.extend(examples(page, false));
    }
    for document in texts.iter().flat_map(|text| documents(text)) {
        assert_eq!(mistakes(&validator, &document), [""; 0], "{document}");
    }
}

#[test]
fn every_site_that_is_shipped_is_valid() {
    let validator = validator("site.schema.json");
    let mut texts: Vec<String> =
        files(&root().join("site-config"), &|name| Path::new(name).extension().is_some_and(|ending| ending == "yaml"))
            .iter()
            .map(|path| fs::read_to_string(path).expect("text"))
            .collect();
    for page in ["docs/site.md", "docs/fake.md", "docs/kubernetes.md"] {
        texts.extend(examples(page, true));
    }
    assert!(texts.len() >= 4, "{} files", texts.len());
    for document in texts.iter().flat_map(|text| documents(text)) {
        assert_eq!(mistakes(&validator, &document), [""; 0], "{document}");
    }
}

#[test]
fn what_an_editor_should_underline_is_refused() {
    let validator = validator("check.schema.json");
    let refused = [
        "descr: no name\n",
        "name: a\nvalid_system: [x]\n",
        "name: a\nsourcepath: a.c\n",
        "name: [a]\n",
        "name: a\ndescr: [x]\n",
        "name: a\ncommand: echo hello\n",
        "name: a\nparameters: 5\n",
        "name: a\nparameters: [a]\n",
        "name: a\nnum_tasks: 0\n",
        "name: a\nnum_tasks: 1.5\n",
        "name: a\nnum_tasks: many\n",
        "name: a\nstrict_check: 'yes'\n",
        "name: a\ntime_limit: [10]\n",
        "name: a\nk8s_config: 5\n",
        "name: a\nk8s_patch: patch.yaml\n",
        "name: a\nsanity: [ok]\n",
        "name: a\nsanity: { found: ok }\n",
        "name: a\nsanity: [{ fuond: a }]\n",
        "name: a\nsanity: [{ exit: none }]\n",
        "name: a\nsanity: [{ exit: 300 }]\n",
        "name: a\nperf_variables: { x: 'a' }\n",
        "name: a\nperf_variables: { x: { patern: a } }\n",
        "name: a\nperf_variables: { x: { pattern: a, reduce: maen } }\n",
        "name: a\nperf_variables: { x: { pattern: a, direction: up } }\n",
        "name: a\nreference: { sys: { x: 10 } }\n",
        "name: a\nreference: { sys: { x: [10] } }\n",
        "name: a\nreference: { sys: { x: [10, low, null] } }\n",
        "name: a\nreference: [{ system: sys }]\n",
        "name: a\nwhen: { system: x }\n",
        "name: a\nwhen: [{ sytem: x, num_tasks: 1 }]\n",
        "name: a\nwhen: [{ system: x, num_tasks: many }]\n",
        "name: a\nwhen: [{ system: x, parameters: { a: [1] } }]\n",
    ];
    for text in refused {
        for document in documents(text) {
            assert_ne!(mistakes(&validator, &document), [""; 0], "{text}");
        }
    }
    let site = self::validator("site.schema.json");
    let refused = [
        "name: s\n",
        "name: s\npartitoins: []\n",
        "name: s\npartitions: [{ scheduler: local }]\n",
        "name: s\npartitions: [{ name: p, scheduler: pbs }]\n",
        "name: s\npartitions: [{ name: p, scheduler: local, max_jobs: 0 }]\n",
        "name: s\npartitions: [{ name: p, scheduler: local, resources: [{ options: a }] }]\n",
    ];
    for text in refused {
        for document in documents(text) {
            assert_ne!(mistakes(&site, &document), [""; 0], "{text}");
        }
    }
}

#[test]
fn a_file_of_references_holds_one_block_or_several_by_name() {
    let validator = validator("references.schema.json");
    let scopes = "'*': { speed: [100, -0.1, null, MB/s], wait: { value: 2, upper: 1 } }\n";
    let rules = "- { system: s, with: { n: 1 }, values: { speed: [100, -0.1, 0.1] } }\n";
    let named = "stream:\n  '*': { speed: [100, null, null] }\nosu:\n  - { values: { wait: [2, null, 0.1] } }\n";
    for document in [scopes, rules, named].into_iter().flat_map(documents) {
        assert_eq!(mistakes(&validator, &document), [""; 0], "{document}");
    }
    for document in
        ["'*': { speed: [100] }\n", "- { sytem: s, values: {} }\n", "stream: 5\n", "text\n"].into_iter().flat_map(documents)
    {
        assert_ne!(mistakes(&validator, &document), [""; 0], "{document}");
    }
}

#[test]
fn what_waits_for_rendering_is_valid_whatever_its_type() {
    let validator = validator("check.schema.json");
    let waiting = "name: a\nnum_tasks: ${{ n }}\ntime_limit: '${{ t }}'\nsanity: ${{ s }}\ntags: '${{ t }}'\nextends: '#b'\ntags+: [x]\n\
                   perf_variables: { x: { pattern: a, item: '${{ i }}' } }\nreference: { s: { x: ['${{ v }}', null, null] } }\ndescr: null\n";
    for document in documents(waiting) {
        assert_eq!(mistakes(&validator, &document), [""; 0], "{document}");
    }
}
