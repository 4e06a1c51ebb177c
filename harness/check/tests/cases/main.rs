//! From the text of check and site files to rendered cases: the rules of the format, as tables.

mod judging;
mod layers;
mod modules;
mod needs;
mod parameters;
mod places;
mod selection;
#[path = "../schedulers/mod.rs"]
mod testing;
mod workloads;

use muster_check::{
    cases::{
        check::Check,
        test_case::{LaunchFacts, Rendered, TestCase},
    },
    files::load::Loader,
    site::{
        facts::{KnownSystems, SystemFacts},
        file as site_file,
    },
};
use muster_core::job::workload::Program;
use muster_text::{
    decode::{Context, Placeholders},
    diagnostic::{Diagnostic, FileId},
    yaml,
};
use std::{sync::Arc, time::Duration};
use testing::schedulers;

const SITE: &str = r#"
name: eidf
extras: { region: north }
modules_system: lmod
env_vars: { FROM_SYSTEM: "1" }
partitions:
  - name: gpu
    scheduler: local
    environs: [gnu, cray]
    features: [gpu, a100]
    extras: { cores: 64 }
    time_limit: 30m
    env_vars: { FROM_PARTITION: "2" }
    prepare_cmds: [". /etc/profile"]
    processor: { num_cores: 128 }
    devices: [{ type: gpu, arch: sm_80, num_devices: 8 }]
  - { name: cpu, scheduler: local, environs: [gnu], modules: base, stage_limit: 2m, container_platforms: [{ type: Sarus, modules: sarus }] }
  - { name: k, scheduler: k8s, environs: [gnu], sched_options: { namespace: site, max_lifetime: 2h } }
  - name: ipu
    scheduler: ipu
    environs: [gnu]
    sched_options: { labels: { team: hpc, queue: q }, policy: { max_pods: 4 }, k8s_workloads: [{ match: { kind: A } }] }
  - { name: batch, scheduler: slurm, launcher: mpirun, environs: [mpi] }
environments:
  - { name: mpi }
  - { name: gnu, features: [mpi], env_vars: { FROM_ENVIRON: "3" } }
  - { name: cray }
"#;

/// All cases of the checks in `text`, and the messages of all mistakes.
fn cases(text: &str) -> (Vec<TestCase>, Vec<String>) {
    let facts = facts();
    let (checks, mut diagnostics) = loaded(text, &facts);
    let all = checks.into_iter().flat_map(|check| check.cases(&facts, &mut diagnostics)).collect();
    (all, diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect())
}

/// The site.
fn facts() -> SystemFacts {
    let parsed = yaml::parse(FileId::default(), SITE);
    let mut context = Context::new(Placeholders::Refuse);
    let system = site_file::read(&parsed.documents[0], &schedulers(), &mut context).expect("a sound site");
    assert_eq!(context.diagnostics, []);
    let known = KnownSystems::of([&system]);
    SystemFacts::new(Arc::new(system), known)
}

/// The sound checks in `text`, and all mistakes so far.
fn loaded(text: &str, facts: &SystemFacts) -> (Vec<Arc<Check>>, Vec<Diagnostic>) {
    let mut loader = Loader::new(schedulers());
    loader.add("check.yaml", text);
    loader.provide("job.yaml", Ok("kind: Job\nspec: { size: '${{ n }}' }\n".to_owned()));
    loader.provide_folder("input", Ok(true));
    let read = loader.finish();
    let mut diagnostics = read.diagnostics;
    let mut check = |document| Check::new(document, None, read.manifests.clone(), &facts.known, &mut diagnostics);
    let checks = read.checks.iter().filter_map(|document| check(document).map(Arc::new)).collect();
    (checks, diagnostics)
}

/// A check on one place, with whatever else is given.
fn check(rest: &str) -> String {
    format!("name: c\nvalid_systems: ['eidf:gpu']\nvalid_prog_environs: [gnu]\n{rest}\n")
}

fn rendered(text: &str) -> Vec<Rendered> {
    let (cases, mistakes) = cases(text);
    assert_eq!(mistakes, [""; 0], "{text}");
    cases.iter().map(|case| case.render(&LaunchFacts::rehearsal()).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))).collect()
}

fn only(text: &str) -> Rendered {
    let mut all = rendered(text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

/// The mistakes of loading and of rendering every case.
fn mistakes(text: &str) -> Vec<String> {
    let (cases, mut mistakes) = cases(text);
    let of_cases = cases.iter().filter_map(|case| case.render(&LaunchFacts::rehearsal()).err()).flatten();
    mistakes.extend(of_cases.map(|diagnostic| diagnostic.message));
    // As they are printed: equal ones once.
    let mut seen = std::collections::HashSet::new();
    mistakes.retain(|message| seen.insert(message.clone()));
    mistakes
}

fn script(rendered: &Rendered) -> &str {
    match &rendered.workload.program {
        Program::Script { text, .. } => text,
        other => panic!("{other:?}"),
    }
}

const PLAIN: &str = "executable: run\nsanity: []";
