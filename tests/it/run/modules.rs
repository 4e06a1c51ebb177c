//! Environment modules in job scripts, with the real Lmod and the real Environment Modules where they are installed, and
//! modulefiles of the test's own.

use crate::sandbox::{Ended, Sandbox};
use std::path::{Path, PathBuf};

/// Debian's packages exclude each other: the gate unpacks one of them and says where.
const TMOD: &str = "MUSTER_CI_TMOD";

/// The systems that are here: the word of the site file, and the home of what is not found by itself.
fn installed() -> Vec<(&'static str, Option<PathBuf>)> {
    let mut found = Vec::new();
    if Path::new("/usr/share/lmod/lmod/init/sh").exists() {
        found.push(("lmod", None));
    } else {
        eprintln!("!!! SKIPPED: nothing was loaded with Lmod, which is not installed (apt-get install lmod)");
    }
    let unpacked = std::env::var_os(TMOD).map(PathBuf::from).filter(|home| home.join("init/sh").exists());
    if Path::new("/usr/share/modules/init/sh").exists() {
        found.push(("tmod", None));
    } else if let Some(home) = unpacked {
        found.push(("tmod", Some(home)));
    } else {
        eprintln!("!!! SKIPPED: nothing was loaded with Environment Modules, which are not installed (or set {TMOD})");
    }
    found
}

/// A site that loads modules at every level, and its modulefiles.
fn site(system: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["system", "partition", "environment", "check"] {
        let text = format!("#%Module1.0\nappend-path ORDER {name}\nsetenv {}_ROOT /opt/{name}\n", name.to_uppercase());
        sandbox.write(&format!("modulefiles/{name}/1.0"), &text);
    }
    sandbox.write("more/own/2", "#%Module1.0\nappend-path ORDER own\n");
    sandbox.write("modulefiles/broken/1", "#%Module1.0\nnosuchcommand\n");
    let modulefiles = sandbox.path("modulefiles");
    let site = format!(
        "name: here
hostnames: ['.*']
modules_system: {system}
modules: system
partitions:
  - name: p
    scheduler: local
    environs: [e]
    prepare_cmds: 'module use {}'
    modules: [partition/1.0]
environments:
  - {{ name: e, modules: [environment], env_vars: {{ FROM: $ENVIRONMENT_ROOT }} }}
",
        modulefiles.display()
    );
    sandbox.write("site.yaml", &site);
    sandbox
}

/// Runs the check there, with nothing of the surroundings of this test.
fn run(sandbox: &Sandbox, home: Option<&Path>, check: &str) -> Ended {
    sandbox.write("check.yaml", check);
    let mut command = sandbox.command(&["-C", "site.yaml", "-c", "check.yaml", "-r", "--nocolor"]);
    for name in ["MODULESHOME", "MODULEPATH", "LMOD_PKG", "LOADEDMODULES", "LMOD_CMD", "MODULES_CMD"] {
        command.env_remove(name);
    }
    if let Some(home) = home {
        command.env("MODULESHOME", home);
    }
    sandbox.ended(&command.output().expect("the binary runs"))
}

#[test]
fn modules_of_all_levels_are_loaded_in_order_before_the_variables_that_use_them() {
    for (system, home) in installed() {
        let sandbox = site(system);
        let more = sandbox.path("more");
        let check = format!(
            "name: loads\nvalid_systems: ['*']\nvalid_prog_environs: ['*']\nmodules: [check, {{ name: own, path: '{}' }}]\nenv_vars: {{ MINE: $CHECK_ROOT }}\n\
             executable: echo \"order=$ORDER from=$FROM mine=$MINE\"\nsanity: [{{ found: '^order=system:partition:environment:check:own from=/opt/environment mine=/opt/check$' }}]\n",
            more.display()
        );
        let ended = run(&sandbox, home.as_deref(), &check);
        assert_eq!(ended.code, Some(0), "{system}: {}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn a_module_that_does_not_load_ends_the_case_whatever_status_the_check_allows() {
    for (system, home) in installed() {
        let rows = [
            ("nosuch/1", "`module load nosuch/1` failed on"),
            ("broken", "`module load broken` failed on"),
            ("{ name: gone, collection: true }", "`module restore gone` failed on"),
        ];
        for (module, cause) in rows {
            let sandbox = site(system);
            let check = format!(
                "name: fails\nvalid_systems: ['*']\nvalid_prog_environs: ['*']\nmodules: [{module}]\nexecutable: echo ran anyway\nsanity: [{{ exit: any }}]\n"
            );
            let ended = run(&sandbox, home.as_deref(), &check);
            assert_eq!(ended.code, Some(3), "{system}: {}{}", ended.stdout, ended.stderr);
            assert!(ended.stdout.contains(cause), "{system}: {}", ended.stdout);
            assert!(!ended.stdout.contains("ran anyway"), "{system}: {}", ended.stdout);
        }
    }
}

#[test]
fn where_nobody_says_what_loads_modules_the_case_is_skipped_and_nomod_runs_without() {
    let sandbox = Sandbox::with_check("name: m\nvalid_systems: ['*']\nmodules: gcc/12\nexecutable: echo ran\nsanity: []\n");
    let ended = sandbox.muster(&["-c", "check.yaml", "-r", "--nocolor", "--system", "local"]);
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("the check loads modules, and local does not set `modules_system`"), "{}", ended.stdout);
    sandbox.write(
        "site.yaml",
        "name: here\nhostnames: ['.*']\nmodules_system: nomod\npartitions: [{ name: p, scheduler: local }]\n",
    );
    let ended = sandbox.muster(&["-C", "site.yaml", "-c", "check.yaml", "-r", "--nocolor"]);
    assert!(ended.code == Some(0) && ended.stdout.contains("[       OK ]"), "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn a_machine_without_the_modules_that_its_site_promises_says_so() {
    let sandbox =
        Sandbox::with_check("name: m\nvalid_systems: ['*']\nmodules: hdf5@1.14 +mpi\nexecutable: echo ran\nsanity: []\n");
    sandbox.write(
        "site.yaml",
        "name: here\nhostnames: ['.*']\nmodules_system: spack\npartitions: [{ name: p, scheduler: local }]\n",
    );
    let mut command = sandbox.command(&["-C", "site.yaml", "-c", "check.yaml", "-r", "--nocolor"]);
    let ended = sandbox.ended(&command.env("PATH", "/usr/bin:/bin").env_remove("SPACK_ROOT").output().expect("the binary runs"));
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("`spack load hdf5@1.14 +mpi` failed: there is no `spack` on"), "{}", ended.stdout);
}
