use super::*;
use crate::testing::schedulers;
use crate::{
    files::load::Loader,
    site::{
        facts::{KnownSystems, SystemFacts},
        file as site_file,
    },
};
use muster_text::{
    decode::{Context, Placeholders},
    diagnostic::{Severity, render_short},
    yaml,
};
use std::sync::Arc;

const SITE: &str = "name: here
partitions:
  - { name: cpu, scheduler: local, environs: [default], features: [cpu] }
  - { name: pods, scheduler: k8s, environs: [default], features: [gpu] }
  - { name: limited, scheduler: k8s, environs: [default], time_limit: 5m }
environments: [{ name: default }]
";

/// The findings of a file, one line each, after the mistakes that there should not be.
fn findings(text: &str) -> String {
    let mut loader = Loader::new(schedulers());
    loader.add("check.yaml", text);
    while let Some(path) = loader.wanted().pop() {
        let pod = "kind: Pod\nspec: { containers: [{ name: a, image: 'tools', args: ['${{ size }}'] }] }\n";
        loader.provide(&path, Ok(pod.to_owned()));
    }
    let all = loader.finish();
    let mut context = Context::new(Placeholders::Refuse);
    let site = yaml::parse(muster_text::diagnostic::FileId(99), SITE).documents.swap_remove(0);
    let system = Arc::new(site_file::read(&site, &schedulers(), &mut context).expect("a site"));
    let facts = SystemFacts::new(system.clone(), KnownSystems::of([&*system]));
    let mut mistakes = all.diagnostics.clone();
    let mut checks = vec![];
    for document in &all.checks {
        if let Some(check) = Check::new(document, None, all.manifests.clone(), &facts.known, &mut mistakes) {
            let check = Arc::new(check);
            let cases = check.cases(&facts, &mut mistakes);
            checks.push(Loaded { document, check, cases });
        }
    }
    let silence = Silence::of(&all.sources);
    mistakes.retain(|mistake| mistake.severity == Severity::Error);
    let mut text = render_short(&mistakes, &all.sources);
    let found = lint(&checks, &all.manifests, Some(&facts.known))
        .into_iter()
        .filter(|finding| !silence.covers(finding))
        .chain(silence.unknown.iter().cloned());
    for finding in found {
        text += finding.lint;
        text += " ";
        text += &render_short(std::slice::from_ref(&finding.diagnostic), &all.sources);
    }
    text
}

const HEAD: &str = "name: a\nvalid_systems: ['*']\nexecutable: a\nimage: tools:1.2\ntime_limit: 5m\n";

#[test]
fn what_is_probably_not_meant_is_found_with_its_place_and_what_to_do() {
    let rows = [
        "sanity: [{ found: 'x*' }, { not_found: '.*' }, { found: '^$' }, { found: '^\\s*$' }, { found: 'time' }]",
        "sanity: []\nperf_variables: { a: { pattern: 'a=(\\d*)' }, b: { pattern: 'b=(?<value>\\d+)(?<unit>\\w*)' } }",
        "sanity: []\nperf_variables: { a: { pattern: 'a=(\\d+.\\d+)' }, b: { pattern: 'b=(\\d+\\.\\d+).\\d' } }",
        "sanity: [{ found: '(?s)x(.*)y' }]",
        "sanity: [{ not_found: 'FAILED\\r$' }, { found: 'a\\r?\\n' }]\noutputs: { dir: 'DIR=(.+)\\r\\n' }",
        "sanity: [{ assert: 'count(r\"FAILED\\r\") == 0 && count(r\"a\\r?$\") == 0' }]",
        "sanity: [{ assert: \"extractsingle('v=(.*)') < '3.9' && extractsingle('a=([0-9.]+)') == extractsingle('b=([0-9.]+)')\" }]",
        "sanity: [{ assert: \"extractsingle('v=(.*)') == '3.9' && extractsingle('a=(.*)') == extractsingle('b=(.*)') && extractsingle('a=(.)') + 'x' < 'a'\" }]",
        "sanity: []",
        "sanity: [{ exit: any }]",
        "sanity: [{ found: x }]\ncommand: [a, '|', b, 'a|b']\nwhen: [{ system: x, command: [a, '>'] }]",
        "sanity: [{ found: x }]\ncommand: [echo started; sleep 1]\nwhen: [{ system: here, command: ['${{ launcher }} x', a b] }]",
        "sanity: [{ found: x }]\nimage: tools\nwhen: [{ system: +gpu, image: 'reg:5000/tools:latest' }]",
        "sanity: [{ found: x }]\nimage: 'reg:5000/tools@sha256:abc'",
        "sanity: [{ found: x }]\nk8s_config: pod.yaml\nvariables: { size: 1 }\nimage: null",
        "sanity: [{ found: x }]\nparameters: { p: [1], q: [2], r: [3], num_nodes: [1] }\nexecutable_opts: ['${{ q }}']\nwhen: [{ with: { r: 3 }, num_tasks: 2 }]",
        "sanity: [{ assert: 'c > 1' }]\nvariables: { a: 1, b: '${{ c }}', c: 2, num_x: 3 }\nenv_vars: { X: '${{ b }}' }",
        "sanity: []\nperf_variables: { p: { pattern: a, unit: s } }\nreference: { +gpu: { p: [1, -0.1, null, s] }, +fpga: { p: [1, -0.1, null, s] } }",
        "sanity: []\nparameters: { n: [1, 2] }\nexecutable_opts: ['${{ n }}']\nperf_variables: { p: { pattern: a } }\nreference: [{ with: { n: 1 }, values: { p: [1, null, 0] } }, { system: here:cpu, environ: other, values: { p: [1, null, 0] } }]",
        "sanity: []\nperf_variables: { p: { pattern: a }, q: { pattern: b } }\nreference: { '*': { p: [1, null, null], q: { value: 2 } } }",
    ];
    let mut all = String::new();
    for row in rows {
        let head = if row.contains("image:") { HEAD.replace("image: tools:1.2\n", "") } else { HEAD.to_owned() };
        all.extend([row, "\n", &findings(&format!("{head}{row}\n")), "\n"]);
    }
    for lint in LINTS.iter().filter(|lint| !["no-time-limit", "runs-nowhere"].contains(&lint.name)) {
        assert!(all.contains(&format!("\n{} ", lint.name)), "{} is never found", lint.name);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_job_on_a_cluster_has_an_end_or_says_that_it_has_none() {
    let check = |more: &str| findings(&format!("name: a\nexecutable: a\nimage: a:1\nsanity: [{{ found: x }}]\n{more}\n"));
    insta::assert_snapshot!(check("valid_systems: [+gpu]"), @"no-time-limit check.yaml:1:7: warning: this job has no time limit on here:pods (write `time_limit: 30m`, or null if that is intended)");
    for more in ["valid_systems: [+gpu]\ntime_limit: null", "valid_systems: [+cpu]", "valid_systems: [here:limited]"] {
        assert_eq!(check(more), "", "{more}");
    }
}

#[test]
fn a_check_that_no_partition_takes_is_reported_once() {
    let text = "name: a\nvalid_systems: [+fpga]\nexecutable: a\nsanity: []\nperf_variables: { p: { pattern: a } }\nreference: { '*': { p: [1, 0, 0] } }\n";
    insta::assert_snapshot!(findings(text), @"runs-nowhere check.yaml:2:16: warning: no partition of the known sites takes this check (look at the features and names of the site files, or give the right ones with -C)");
}

#[test]
fn what_one_check_derived_from_a_base_reads_is_read() {
    let base = "name: base\nabstract: true\nvariables: { x: 1, y: 2 }\nsanity: [{ found: a }]\nvalid_systems: [+cpu]\n";
    let derived = "---\nname: a\nextends: '#base'\nexecutable: a ${{ x }}\n---\nname: b\nextends: '#base'\nexecutable: b\n";
    insta::assert_snapshot!(findings(&format!("{base}{derived}")), @"unused-variable check.yaml:3:20: warning: `y` is never read (read it with ${{ }}, or leave it out)");
}

#[test]
fn a_comment_silences_a_line_a_block_or_a_file() {
    let with = |first: &str, above: &str, trailing: &str| {
        findings(&format!(
            "{first}\nname: a\nvalid_systems: ['*']\nexecutable: a\ntime_limit: 5m\nsanity: [{{ found: x }}]\nimage: tools {trailing}\n{above}\nvariables:\n  # of x\n  x: 1\n\n  y: 2\n"
        ))
    };
    let (image, variables) = ("# muster: allow moving-image", "# muster: allow unused-variable, moving-image");
    assert_eq!(with("", "", "").lines().count(), 3);
    assert_eq!(with("", "", image).lines().count(), 2);
    assert_eq!(with("", variables, "").lines().count(), 1);
    assert_eq!(with("", variables, image), "");
    assert_eq!(with("# muster: allow-file moving-image unused-variable", "", ""), "");
    insta::assert_snapshot!(with("# muster: allow-file moving-imgae", variables, image), @"unknown-lint check.yaml:1:1: warning: there is no lint `moving-imgae` (did you mean `moving-image`?)");
}
