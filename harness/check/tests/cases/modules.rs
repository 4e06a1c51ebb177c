//! Modules and containers: which lines a case's script has, and where they have no place.

use super::*;

/// The lines of a script that load or run something, in order.
fn steps(script: &str) -> Vec<&str> {
    let is_step = |line: &&str| ["rfm_load ", "sarus ", "docker ", "pre", "echo "].iter().any(|start| line.starts_with(start));
    script.lines().filter(is_step).filter(|line| !line.contains("$rfm_status")).collect()
}

#[test]
fn modules_come_from_partition_platform_and_check_before_the_container() {
    let text = "name: c\nvalid_systems: ['eidf:cpu']\nmodules: [own]\nprerun_cmds: pre\nsanity: []\n\
                container_platform: { image: box, command: ls, mount_stagedir: null, workdir: null }";
    let rendered = only(text);
    let expected = [
        "rfm_load module load base",
        "rfm_load module load sarus",
        "rfm_load module load own",
        "pre",
        "sarus pull box",
        "sarus run box ls",
    ];
    assert_eq!(steps(script(&rendered)), expected);
    assert!(script(&rendered).contains("\ncommand -v sarus > /dev/null || rfm_fault"), "{}", script(&rendered));
    let Program::Script { pass_env, .. } = &rendered.workload.program else { panic!("a script") };
    assert!(pass_env.iter().any(|name| name == "MODULEPATH"), "{pass_env:?}");
}

#[test]
fn an_entry_of_when_may_choose_the_platform_and_take_the_executable_back() {
    let text = "name: c\nvalid_systems: ['eidf:gpu', 'eidf:cpu']\nvalid_prog_environs: [gnu]\nexecutable: echo native\nsanity: []\nwhen:\n\
                - { system: 'eidf:cpu', executable: null, container_platform: { type: docker, image: box, pull_image: false, mount_stagedir: null } }";
    let scripts: Vec<Rendered> = rendered(text);
    assert_eq!(steps(script(&scripts[0])), ["echo native"]);
    assert_eq!(steps(script(&scripts[1])).last(), Some(&"docker run --rm -w /rfm_workdir box"));
}

#[test]
fn on_kubernetes_modules_need_a_script_and_containers_no_platform() {
    let on_k8s = |rest: &str| format!("name: c\nvalid_systems: ['eidf:k']\nsanity: []\n{rest}");
    match only(&on_k8s("image: i\ncommand: [echo, a]\nmodules: gcc")).workload.program {
        Program::Container { command, script, .. } => {
            assert_eq!(command, None);
            assert_eq!(steps(&script), ["rfm_load module load gcc", "echo a"]);
        }
        other => panic!("{other:?}"),
    }
    let rows = [
        ("k8s_config: job.yaml\nmodules: gcc", "`modules` of `c` cannot be loaded: `k8s_config` defines what runs"),
        (
            "container_platform: { type: docker, image: box }",
            "`container_platform` of `c` cannot run on `k8s`, where all jobs are containers",
        ),
    ];
    for (rest, message) in rows {
        assert_eq!(mistakes(&on_k8s(rest)), [message], "{rest}");
    }
}

#[test]
fn a_check_whose_container_has_no_type_is_skipped_where_the_partition_has_none() {
    let rendered = only(&check("sanity: []\ncontainer_platform: { image: box }"));
    let why = "the check runs in a container of no type, and eidf:gpu has no container_platforms";
    assert_eq!(rendered.skip.as_deref(), Some(why));
}
