//! Containers on `local`: what is run, shown by a program of the test's own in the place of each platform; and a real
//! podman where it can run, with an image made of a busybox.

use crate::sandbox::Sandbox;
use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

const SITE: &str = "name: here
hostnames: ['.*']
partitions:
  - name: p
    scheduler: local
    container_platforms:
      - { type: Singularity, env_vars: { CACHE: /tmp/cache } }
      - { type: podman, default: true }
";

/// A program that prints its words, one a line, in the place of a platform.
fn stub(sandbox: &Sandbox, program: &str) {
    let path = format!("bin/{program}");
    sandbox.write(&path, "#!/bin/sh\nfor word; do echo \"<$word>\"; done\necho cache=$CACHE\n");
    fs::set_permissions(sandbox.path(&path), fs::Permissions::from_mode(0o755)).expect("executable");
}

#[test]
fn the_platform_gets_reframes_words_with_the_stage_folder_mounted() {
    let rows = [
        (
            "",
            "<run>\n<--rm>\n<-v>\n</data dir:/data>\n<-v>\n<STAGE:/rfm_workdir>\n<-w>\n</rfm_workdir>\n<-q>\n<box>\n<ls>\n</data>\ncache=\n",
        ),
        (
            "type: singularity, ",
            "<exec>\n<-B/data dir:/data>\n<-BSTAGE:/rfm_workdir>\n<--pwd>\n</rfm_workdir>\n<-q>\n<box>\n<ls>\n</data>\ncache=/tmp/cache\n",
        ),
    ];
    for (platform, words) in rows {
        let sandbox = Sandbox::with_check(&format!(
            "name: c\nvalid_systems: ['*']\nprerun_cmds: echo before\nsanity: []\npostrun_cmds: [echo after]\ncontainer_platform: \
             {{ {platform}image: box, command: ls /data, options: -q, mount_points: [['/data dir', /data]], pull_image: false }}\n"
        ));
        sandbox.write("site.yaml", SITE);
        for program in ["podman", "singularity"] {
            stub(&sandbox, program);
        }
        let path = format!("{}:/usr/bin:/bin", sandbox.path("bin").display());
        let args = ["-C", "site.yaml", "-c", "check.yaml", "-r", "--nocolor", "--keep-stage-files"];
        let ended = sandbox.ended(&sandbox.command(&args).env("PATH", path).output().expect("the binary runs"));
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        let log = log(&sandbox.path("stage"));
        let stage = log.1.parent().expect("a folder").canonicalize().expect("there");
        let expected = format!("before\n{words}after\n").replace("STAGE", &stage.to_string_lossy());
        assert!(log.0.ends_with(&expected), "{}\n{expected}", log.0);
    }
}

/// The only log below a folder, and its path.
fn log(folder: &Path) -> (String, std::path::PathBuf) {
    let entries = fs::read_dir(folder).expect("a folder").filter_map(|entry| Some(entry.ok()?.path()));
    for path in entries {
        if path.file_name().is_some_and(|name| name == "rfm_job.out") {
            return (fs::read_to_string(&path).expect("a log"), path);
        }
        if path.is_dir() {
            return log(&path);
        }
    }
    panic!("no log in {}", folder.display())
}

#[test]
fn a_platform_that_is_not_installed_is_named_and_nothing_is_judged() {
    let sandbox = Sandbox::with_check(
        "name: c\nvalid_systems: ['*']\nsanity: [{ exit: any }]\ncontainer_platform: { type: shifter, image: box, command: ls }\n",
    );
    sandbox.write("site.yaml", SITE);
    let ended = sandbox.muster(&["-C", "site.yaml", "-c", "check.yaml", "-r", "--nocolor"]);
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("shifter is not installed on "), "{}", ended.stdout);
}

#[test]
fn where_nobody_says_what_runs_containers_the_case_is_skipped() {
    let sandbox =
        Sandbox::with_check("name: c\nvalid_systems: ['*']\nsanity: []\ncontainer_platform: { image: box, command: ls }\n");
    let ended = sandbox.muster(&["-c", "check.yaml", "--system", "local", "-r", "--nocolor"]);
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    assert!(
        ended.stdout.contains("runs in a container of no type, and local:default has no container_platforms"),
        "{}",
        ended.stdout
    );
}

/// An image of a busybox in a store of the test's own, or why there is none. The configuration asks for the least: no
/// overlay, no systemd, limits that may be set without being root of the machine.
fn image(sandbox: &Sandbox) -> Result<(), String> {
    let at = |path: &str| sandbox.path(path).display().to_string();
    sandbox.write(
        "containers.conf",
        "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\nnetns = \"none\"\n\
         [engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n",
    );
    let storage = format!("[storage]\ndriver = \"vfs\"\ngraphroot = \"{}\"\nrunroot = \"{}\"\n", at("graph"), at("run"));
    sandbox.write("storage.conf", &storage);
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
    let busybox = busybox.ok_or("there is no busybox (apt-get install busybox-static)")?;
    let script = format!(
        "mkdir -p root/bin && cp {busybox} root/bin/busybox && for name in sh cat echo pwd; do ln -s busybox root/bin/$name; done\n\
         tar -C root -cf root.tar . && podman import root.tar muster-box:1 && podman run --rm muster-box:1 echo fine"
    );
    let mut command = Command::new("sh");
    command.args(["-ec", &script]).current_dir(sandbox.path(""));
    command.env("CONTAINERS_CONF", at("containers.conf")).env("CONTAINERS_STORAGE_CONF", at("storage.conf"));
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(text.lines().last().unwrap_or("podman does not run").to_owned()) }
}

#[test]
fn a_real_podman_runs_the_command_in_the_stage_folder() {
    let sandbox = Sandbox::with_check(
        "name: boxed\nvalid_systems: ['*']\nenv_vars: { WORD: from-the-host }\nprerun_cmds: echo made outside > file\n\
         container_platform: { image: 'muster-box:1', command: \"sh -c 'pwd; cat file; echo made inside > other; echo $WORD'\", pull_image: false, options: [-e, WORD] }\n\
         postrun_cmds: [cat other]\nsanity:\n  - found: '^/rfm_workdir$'\n  - found: '^made outside$'\n  - found: '^made inside$'\n",
    );
    if let Err(why) = image(&sandbox) {
        return eprintln!("!!! SKIPPED: no container was run by a real podman: {why}");
    }
    let site = format!(
        "name: here\nhostnames: ['.*']\npartitions:\n  - name: p\n    scheduler: local\n    container_platforms:\n      - type: podman\n        \
         env_vars: {{ CONTAINERS_CONF: '{}', CONTAINERS_STORAGE_CONF: '{}' }}\n",
        sandbox.path("containers.conf").display(),
        sandbox.path("storage.conf").display()
    );
    sandbox.write("site.yaml", &site);
    let ended = sandbox.muster(&["-C", "site.yaml", "-c", "check.yaml", "-r", "--nocolor"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
}
