//! How a workload lives and ends when nothing is wrong with the cluster.

use crate::suite::{
    manifest::{check, container, job, pod},
    sandbox::{Sandbox, kubectl},
};
use serde_json::json;
use std::{os::unix::fs::PermissionsExt, path::Path, process::Command};

pub(crate) fn a_pod_passes_and_nothing_is_left() {
    let sandbox = Sandbox::new();
    let ended = sandbox.check(&check(&pod("echo hello"), "")).expect(0);
    assert_eq!(ended.outcome(), "pass");
    assert_eq!(sandbox.left(), [""; 0]);
}

pub(crate) fn a_failed_pod_is_kept_and_the_report_says_how_to_look() {
    let sandbox = Sandbox::new();
    let ended = sandbox.check(&check(&pod("echo hello; exit 3"), "")).expect(1);
    assert_eq!(ended.outcome(), "fail workload");
    assert!(ended.cause().contains("exit status 3") && ended.cause().contains(" on n"), "{}", ended.cause());
    let left = sandbox.left();
    assert_eq!(left.len(), 1, "{left:?}");
    let name = left[0].trim_start_matches("pod/");
    for commands in ["look", "delete"] {
        let output = ended.case()[commands].to_string();
        assert!(output.contains("kubectl") && output.contains(&sandbox.namespace) && output.contains(name), "{output}");
    }
    let folder = ended.case()["folder"].as_str().expect("a folder").to_owned();
    let mode = |path: &str| {
        let found =
            std::fs::metadata(std::path::Path::new(&folder).join(path)).unwrap_or_else(|error| panic!("{folder}: {error}"));
        std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o777
    };
    assert_eq!((mode("diag"), mode("diag/pods.yaml")), (0o700, 0o600));
}

pub(crate) fn a_job_of_three_pods_is_one_stdout_in_the_order_of_its_indices() {
    let sandbox = Sandbox::new();
    let spec = "completions: 3\n  parallelism: 3\n  completionMode: Indexed";
    let line = "sleep $((3 - JOB_COMPLETION_INDEX)); echo hello from $JOB_COMPLETION_INDEX";
    let ended = sandbox.check(&check(&job(spec, line), "sanity: [{ found: 'hello from \\d', count: 3 }]")).expect(0);
    let stdout = sandbox.stdout(&ended);
    let output: Vec<&str> = stdout.lines().filter(|line| line.starts_with("hello")).collect();
    assert_eq!(output, ["hello from 0", "hello from 1", "hello from 2"], "{stdout}");
    let identifier = ended.case()["identifier"].as_str().expect("an identifier");
    assert_eq!(stdout.lines().next(), Some(identifier));
    assert_eq!(stdout.matches("\n\n-------rfm-crew-").count(), 3, "{stdout}");
    assert_eq!(sandbox.left(), [""; 0]);
}

/// The shipped Job with a CPU stand-in for its image, which prints what one of its pods has printed on a GPU.
pub(crate) fn the_nbody_job_passes_its_references() {
    let (sandbox, _turn) = Sandbox::queued();
    let log = include_str!("../../../../harness/core/testdata/nbody/rfm-jobtest-aotugiob-6xdms.log");
    sandbox.write("nbody.log.txt", log);
    sandbox.copy_checks("nbody");
    let print = "printf '%s' \"$LOG\"";
    let env = json!([{ "name": "LOG", "value": log }]);
    let stand_in = json!({ "name": "cudasample", "image": "rfm.test/busybox:1", "command": ["sh", "-c", print], "env": env,
        "resources": { "requests": { "cpu": "100m", "memory": "8Mi" }, "limits": { "cpu": "1", "memory": "64Mi" } } });
    let patch = json!({ "spec": { "template": { "spec": { "containers": [stand_in] } } } });
    sandbox.write(
        "checks/nbody/stand-in.check.yaml",
        &format!("name: stand-in\nextends: 'nbody.check.yaml#nbody-job'\nvalid_systems: ['test:gpu-service']\nk8s_patch: {patch}\n\
                  reference: {{ 'test:gpu-service': {{ interactions: [250, -0.1, 0.1, Giter/s], flops: [7440, -0.1, 0.1, GFLOP/s] }} }}\n"),
    );
    let ended = sandbox.muster(&["-c", "checks/nbody/stand-in.check.yaml", "-r", "--performance-report"]).expect(0);
    let stdout = sandbox.stdout(&ended);
    assert_eq!(stdout.matches("double-precision GFLOP/s").count(), 3, "{stdout}");
    assert!(ended.stdout.contains("7439.68") && ended.stdout.contains("247.989"), "{}", ended.stdout);
    assert_eq!(sandbox.left(), [""; 0]);
}

pub(crate) fn a_job_that_passes_after_a_retry_says_so() {
    let sandbox = Sandbox::new();
    // A folder of the node that the second pod finds as the first has left it.
    let shared = sandbox.path("shared");
    std::fs::create_dir(&shared).expect("a folder");
    let line = "[ -e /shared/tried ] || { touch /shared/tried; echo first attempt; exit 1; }; echo hello";
    let volumes = format!("volumes: [{{ name: shared, hostPath: {{ path: {} }} }}]", shared.display());
    // Another pod, or another start of the container.
    for (policy, title, why) in [("Never", "#not-judged", " on n"), ("OnFailure", "#2", "was restarted")] {
        let manifest = job("backoffLimit: 2", line)
            .replace("command:", "volumeMounts: [{ name: shared, mountPath: /shared }], command:")
            .replace("restartPolicy: Never", &format!("restartPolicy: {policy}\n      {volumes}"));
        // Its log is kept, and nothing sees it: not to be found there is what a check may ask.
        let ended = sandbox.check(&check(&manifest, "sanity: [{ found: hello }, { not_found: first attempt }]")).expect(0);
        let warnings = ended.case()["warnings"].to_string();
        assert!(warnings.contains("failed attempt") && warnings.contains(why), "{policy}: {warnings}");
        let stdout = sandbox.stdout(&ended);
        assert!(stdout.ends_with(&format!("{title}-------\nfirst attempt\n")), "{policy}: {stdout}");
        std::fs::remove_file(shared.join("tried")).expect("a file");
        let ended = sandbox.check(&check(&manifest, "sanity: [{ found: first attempt }]")).expect(1);
        assert_eq!(ended.outcome(), "fail sanity", "{policy}: {}", ended.cause());
        std::fs::remove_file(shared.join("tried")).expect("a file");
    }
}

pub(crate) fn every_container_has_its_section_init_containers_too() {
    let sandbox = Sandbox::new();
    let manifest = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{ name: crowd }}\nspec:\n  restartPolicy: Never\n  initContainers:\n    - {}\n  \
         containers:\n    - {}\n    - {}\n",
        container("echo prepared").replace("main", "prepare"),
        container("echo hello"),
        container("echo beside").replace("main", "side"),
    );
    let ended = sandbox.check(&check(&manifest, "sanity: [{ found: prepared }, { found: hello }, { found: beside }]")).expect(0);
    let stdout = sandbox.stdout(&ended);
    let titles: Vec<&str> = stdout.lines().filter(|line| line.starts_with("-------")).collect();
    assert_eq!(titles.len(), 3, "{stdout}");
    for (title, container) in titles.iter().zip(["/main-------", "/prepare-------", "/side-------"]) {
        assert!(title.ends_with(container), "{titles:?}");
    }
}

pub(crate) fn documents_that_refer_to_each_other_are_renamed_together() {
    let sandbox = Sandbox::new();
    let manifest = format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: words }}\ndata: {{ word: hello }}\n---\n{}",
        pod("echo $WORD")
            .replace("command:", "env: [{ name: WORD, valueFrom: { configMapKeyRef: { name: words, key: word } } }], command:")
    );
    sandbox.write("objects.yaml", &manifest);
    sandbox.write("check.yaml", "name: two\nvalid_systems: ['*']\nk8s_config: objects.yaml\nsanity: [{ found: hello }]\n");
    sandbox.muster(&["-c", "check.yaml", "-r"]).expect(0);
    assert_eq!(sandbox.left(), [""; 0]);
}

pub(crate) fn an_image_and_an_executable_make_a_pod() {
    let sandbox = Sandbox::new();
    let text = "name: plain\nvalid_systems: ['*']\nimage: 'rfm.test/busybox:1'\nenv_vars: { WORD: hello }\n\
                executable: 'echo'\nexecutable_opts: ['$WORD', 'and more']\nsanity: [{ found: hello and more }]\n";
    sandbox.check(text).expect(0);
    assert_eq!(sandbox.left(), [""; 0]);
}

/// A folder of a folder, a file whose name begins with a dot, a program, and bytes that are no text.
pub(crate) fn the_files_of_a_check_with_an_image_are_sent_to_its_pod() {
    let sandbox = Sandbox::new();
    sandbox.write("src/sub/say.sh", "#!/bin/sh\ncat sub/word .hidden; wc -c < zero > made; cat made\n");
    sandbox.write("src/sub/word", "hello\n").write("src/.hidden", "and more\n").write("src/zero", "\0\0\0");
    let program = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sandbox.path("src/sub/say.sh"), program).expect("permissions");
    let head =
        "valid_systems: ['*']\nimage: 'rfm.test/busybox:1'\nsourcesdir: src\nsanity: [{ found: 'hello\\nand more\\n3' }]\n";
    for program in ["name: script\nexecutable: ./sub/say.sh\n", "name: argv\ncommand: [./sub/say.sh]\n"] {
        sandbox.check(&format!("{program}{head}")).expect(0);
    }
    assert_eq!(sandbox.left(), [""; 0]);
    sandbox.write("src/large", &"x".repeat(1 << 20));
    let ended = sandbox.check(&format!("name: large\nexecutable: ./sub/say.sh\n{head}")).expect(3);
    assert_eq!(ended.outcome(), "error config");
    assert!(ended.cause().contains("1015808 bytes of them: with large there are more"), "{}", ended.cause());
    assert_eq!(sandbox.left(), [""; 0]);
}

/// The shipped check, with an image that has no compiler: it takes the static program.
pub(crate) fn the_check_stream_runs_in_a_pod_with_its_static_program() {
    let sandbox = Sandbox::new();
    let of_check = Path::new(env!("CARGO_MANIFEST_DIR")).join("checks/stream");
    let read = |name: &str| std::fs::read_to_string(of_check.join(name)).expect("a file of the check");
    let check = read("stream.check.yaml").replace("image: gcc:14", "image: rfm.test/busybox:1");
    sandbox.write("stream/stream.check.yaml", &check);
    for name in ["stream.c", "run.sh", "Makefile"] {
        sandbox.write(&format!("stream/src/{name}"), &read(&format!("src/{name}")));
    }
    let program = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sandbox.path("stream/src/run.sh"), program).expect("permissions");
    let run = ["-c", "stream/stream.check.yaml", "-S", "mib=16", "-r"];
    let ended = sandbox.muster(&run).expect(1);
    assert!(sandbox.stdout(&ended).contains("there is no cc here, and no program ./stream."), "{}", ended.stdout);
    let built = Command::new("make").arg("-C").arg(sandbox.path("stream/src")).arg("static").output().expect("make");
    assert!(built.status.success(), "{built:?}");
    let ended = sandbox.muster(&run).expect(0);
    let triad = &ended.case()["measurements"][0];
    assert!(triad["value"].as_f64().is_some_and(|value| value > 0.1), "{}", ended.case());
}

pub(crate) fn a_copy_of_a_case_runs_on_each_node_of_the_cluster() {
    // Nodes belong to no namespace.
    let sandbox = Sandbox::as_admin();
    sandbox.write("check.yaml", &check(&pod("echo hello"), "sanity: [{ found: hello }]"));
    let ended = sandbox.muster(&["-c", "check.yaml", "--distribute=all", "-r"]).expect(0);
    let cases = ended.report["cases"].as_array().expect("cases");
    let mut nodes: Vec<&str> = cases.iter().filter_map(|case| case["nodes"][0].as_str()).collect();
    nodes.sort_unstable();
    let all = kubectl(&["get", "nodes", "-o", "name"]);
    assert_eq!(nodes, all.lines().map(|node| node.trim_start_matches("node/")).collect::<Vec<_>>());
    assert_eq!(sandbox.left(), [""; 0]);
    // What they are is stored, for an account that may list them.
    let template = "{range .items[*]}{.metadata.name} {.metadata.uid} {.status.nodeInfo.kubeletVersion}{\"\\n\"}{end}";
    let described = kubectl(&["get", "nodes", "-o", &format!("jsonpath={template}")]);
    let mut described: Vec<&str> = described.lines().collect();
    described.sort_unstable();
    let facts = "SELECT n.name || ' ' || n.uid || ' ' || f.value FROM node n JOIN node_fact f ON f.node = n.id
        WHERE f.key = 'kubelet' AND f.until IS NULL ORDER BY 1";
    assert_eq!(muster_test_database::rows(&sandbox.path("state/muster/results.db"), facts).expect("facts"), described);
}

pub(crate) fn a_line_of_a_mebibyte_and_binary_output_arrive_unchanged() {
    let sandbox = Sandbox::new();
    let line = "head -c 1048576 /dev/zero | tr '\\000' x; echo; printf 'a\\000b\\377\\033[31mc\\n'; echo hello";
    let ended = sandbox.check(&check(&pod(line), "sanity: [{ found: hello }, { found: 'x{1000}' }]"));
    let ended = ended.expect(0);
    let stdout = sandbox.stdout_bytes(&ended);
    assert!(stdout.windows(11).any(|bytes| bytes == b"a\0b\xff\x1b[31mc\n"), "the bytes are not all there");
    assert_eq!(stdout.split(|byte| *byte != b'x').map(<[u8]>::len).max(), Some(1_048_576));
}

pub(crate) fn thirty_cases_share_one_watch() {
    let sandbox = Sandbox::new();
    let values = (0..30).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let ended = sandbox.check(&check(&pod("echo hello; sleep 1"), &format!("parameters: {{ n: [{values}] }}"))).expect(0);
    assert_eq!(ended.report["totals"]["passed"], 30, "{}", ended.report["totals"]);
    assert_eq!(sandbox.left(), [""; 0]);
}
