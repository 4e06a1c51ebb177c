//! Tests of scripts that end before their program: modules do not load, as every shell here and every kind of `module` says it.

use super::{Field, ending, launch};
use muster_check::{
    render::script::{Preparation, Script},
    site::modules::{Module, ModulesSystem},
};
use muster_core::{
    error::Class,
    job::{
        scheduler::{Chunk, JobStatus, Scheduler},
        stage_folder::LOG_FILE,
        workload::{Program, Workload},
    },
};
use muster_text::diagnostic::Span;
use std::{fs, process::Command};

fn module(name: &str) -> Module {
    Module { name: name.into(), collection: false, path: None, span: Span::default() }
}

/// A script that loads one module, with a `module` of the test's own.
fn script(system: ModulesSystem, definition: &str, name: &str) -> String {
    let (prepare, modules) = ([definition.to_owned()], [module(name)]);
    let preparations = [Preparation { prepare_cmds: &prepare, modules: &modules, exports: &[] }];
    let script =
        Script { modules_system: Some(system), preparations: &preparations, executable: Some("echo ran"), ..Script::default() };
    script.render().unwrap()
}

#[test]
fn a_load_that_fails_ends_the_script_whether_its_status_says_so_or_not() {
    let modern = "LOADEDMODULES=a/1; module() { [ \"$2\" = good ]; }";
    // Status 0 whatever happens; `alias` is loaded under another name.
    let version_3 = "LOADEDMODULES=a/1; module() { case $2 in good) LOADEDMODULES=$LOADEDMODULES:good/2 ;; \
                     alias) LOADEDMODULES=$LOADEDMODULES:real/1 ;; esac; }";
    let nowhere = "unset -f module 2> /dev/null; unalias module 2> /dev/null";
    let rows = [
        (ModulesSystem::Lmod, modern, "good", "ran"),
        (ModulesSystem::Lmod, modern, "bad", "`module load bad` failed on"),
        (ModulesSystem::Tmod, modern, "bad", "`module load bad` failed on"),
        (ModulesSystem::Tmod, version_3, "good", "ran"),
        (ModulesSystem::Tmod, version_3, "alias", "ran"),
        (ModulesSystem::Tmod, version_3, "a", "ran"),
        (ModulesSystem::Tmod, version_3, "a/1", "ran"),
        (ModulesSystem::Tmod, version_3, "a/2", "`module load a/2` failed on"),
        (ModulesSystem::Tmod, version_3, "bad", "`module load bad` failed on"),
        (ModulesSystem::Envmod, nowhere, "gcc", "`module load gcc` failed: there is no `module` on"),
    ];
    for (system, definition, name, said) in rows {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("job.sh"), script(system, definition, name)).unwrap();
        for shell in super::scripts::shells() {
            let ran = Command::new(shell[0]).args(&shell[1..]).arg("job.sh").current_dir(&folder).output().unwrap();
            let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
            assert!(out.contains(said) || err.contains(said), "{shell:?} {system:?} {name}: {out}{err}");
            assert_eq!(ran.status.success(), said == "ran", "{shell:?} {system:?} {name}");
        }
    }
}

#[test]
fn the_command_is_defined_by_what_the_environment_names() {
    let folder = tempfile::tempdir().unwrap();
    for part in ["init", "bin", "share/spack"] {
        fs::create_dir_all(folder.path().join(part)).unwrap();
    }
    fs::write(folder.path().join("init/sh"), "module() { echo \"module $*\"; }\n").unwrap();
    fs::write(folder.path().join("share/spack/setup-env.sh"), "spack() { echo \"function $*\"; }\n").unwrap();
    let rows = [
        (ModulesSystem::Envmod, "MODULESHOME", "module load x +y"),
        (ModulesSystem::Lmod, "MODULESHOME", "module load x +y"),
        (ModulesSystem::Lmod, "LMOD_PKG", "module load x +y"),
        (ModulesSystem::Spack, "SPACK_ROOT", "function load x +y"),
    ];
    for (system, variable, said) in rows {
        fs::write(folder.path().join("job.sh"), script(system, ":", "x +y")).unwrap();
        let mut command = Command::new("/bin/sh");
        let ran = command.arg("job.sh").current_dir(&folder).env(variable, folder.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), format!("{said}\nran\n"), "{system:?} {variable}");
        assert!(system.pass_env().contains(&variable));
    }
}

#[tokio::test]
async fn a_job_that_was_never_begun_is_an_error_of_its_request_and_its_log_is_there() {
    let field = Field::new();
    let text = script(ModulesSystem::Lmod, "module() { echo no such thing >&2; return 1; }", "gcc/99");
    let program = Program::Script { text, pass_env: vec![] };
    let workload = Workload { program, ..field.workload("true", &[]) };
    let job = launch(&field.scheduler, &field.scheduler.plan(&workload).unwrap()).await;
    let mut seen: Option<JobStatus> = None;
    let error = loop {
        match field.scheduler.wait(&job, seen.as_ref()).await {
            Ok(status) => seen = Some(status),
            Err(error) => break error,
        }
    };
    assert_eq!(error.class, Class::Config);
    assert!(error.to_string().starts_with("`module load gcc/99` failed on "), "{error}");
    let chunks = super::chunks(&field.scheduler, &job).await;
    assert!(chunks.iter().any(|chunk| matches!(chunk, Chunk::File { .. })), "{chunks:?}");
    assert!(fs::read_to_string(job.stage.join(LOG_FILE)).unwrap().contains("no such thing"));
    // A program's own status 1 is for the check to judge.
    let job = field.launch("exit 1").await;
    ending(&field.scheduler, &job).await;
}
