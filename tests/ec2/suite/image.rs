//! Instances that boot with the real cloud-init, and have a network, sshd and Open MPI.

use super::{cloud::Cloud, place::Place};
use serde_json::json;
use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
    sync::OnceLock,
};

/// Options of a site that is asked often.
const OFTEN: &str = "poll_interval: 1s";

/// What cloud-init makes of user data: the types of its parts.
const PARSED: &str = r#"
import sys
from cloudinit import user_data, helpers
paths = helpers.Paths({"cloud_dir": "/tmp/cloud", "run_dir": "/tmp/run"})
parts = user_data.UserDataProcessor(paths).process(sys.stdin.buffer.read()).walk()
print([part.get_content_type() for part in parts if not part.is_multipart()])
"#;

/// Of every process the rank, and the sum of the ranks of all: each has told the others.
const SUM: &str = r#"
import ctypes as c
mpi = c.CDLL("libmpi.so.40", mode=c.RTLD_GLOBAL)
of = lambda name: c.byref(c.c_char.in_dll(mpi, name))
mpi.MPI_Init(None, None)
rank, total = c.c_int(), c.c_int()
mpi.MPI_Comm_rank(of("ompi_mpi_comm_world"), c.byref(rank))
mpi.MPI_Allreduce(c.byref(rank), c.byref(total), 1, of("ompi_mpi_int"), of("ompi_mpi_op_sum"), of("ompi_mpi_comm_world"))
print("rank", rank.value, "of", open("/etc/hostname").read().strip(), "sum", total.value)
mpi.MPI_Finalize()
"#;

/// Another host answers at the address of the second: its key is not the one that came with `go`. A server goes to the background
/// before it listens.
const CHANGED: &str = r#"
host=$(sed -n "2s/ .*//p" $RFM_HOSTFILE)
$RFM_SSH $host true && echo let in
$RFM_SSH $host 'cd /var/lib/muster && rm key key.pub && ssh-keygen -q -t ed25519 -N "" -f key && kill $(cat sshd.pid) && sleep 1 &&
  /usr/sbin/sshd -f /var/lib/muster/sshd_config' </dev/null
until $RFM_SSH $host true 2>said || ! grep -q 'Connection refused' said; do sleep 1; done
$RFM_SSH $host true || echo refused
"#;

/// The root file system of the instances; `None`: it cannot be made here, which was said.
fn image() -> Option<&'static Path> {
    static IMAGE: OnceLock<Result<String, String>> = OnceLock::new();
    let made = IMAGE.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ec2/image");
        let made = Command::new(script).stdin(Stdio::null()).output().expect("the script of the image");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if made.status.success() { Ok(text(&made.stdout)) } else { Err(text(&made.stderr)) }
    });
    let required = env::var("MUSTER_EC2_TESTS").is_ok_and(|value| value == "required");
    match made {
        Ok(path) => Some(Path::new(path)),
        Err(why) if required => panic!("{why}"),
        Err(why) => {
            eprintln!("!!! SKIPPED: nothing was tested on instances that really boot: {why}");
            None
        }
    }
}

/// The keys of a check whose script first writes a file.
fn with_file(name: &str, text: &str) -> String {
    let lines = text.trim().replace('\n', "\n    ");
    format!("prerun_cmds:\n  - |\n    cat >{name} <<'END'\n    {lines}\n    END\n")
}

fn cloud() -> Cloud {
    let cloud = Cloud::start();
    cloud.set(json!({ "sandbox": "image" }));
    cloud
}

/// Statements 18 and 19.
pub(crate) fn cloud_init_takes_user_data_as_one_script_and_the_agent_runs_the_job() {
    let Some(image) = image() else { return };
    let cloud = cloud();
    let check = "time_limit: 2m\nexecutable: 'cloud-init query cloud_id; id -un'\nsanity: [{ found: ^aws$ }, { found: ^root$ }]";
    Place::new(&cloud, OFTEN, check, "").run(&[]).expect_case(0, "pass", &[]);
    let instances = cloud.instances();
    assert_eq!(instances[0]["reason"], "Client.InstanceInitiatedShutdown", "{}", instances[0]);
    let folder = tempfile::TempDir::new().expect("a folder");
    let data = folder.path().join("user-data");
    fs::write(&data, instances[0]["user_data"].as_str().unwrap_or_default()).expect("a file");
    let data = Command::new("base64").arg("-d").arg(&data).output().expect("base64").stdout;
    assert!(data.starts_with(&[0x1f, 0x8b]) && data.len() <= 16_384, "{} bytes", data.len());
    fs::write(folder.path().join("data"), data).expect("a file");
    let parsed = Command::new("chroot")
        .arg(image)
        .args(["python3", "-W", "ignore", "-c", PARSED])
        .stdin(fs::File::open(folder.path().join("data")).expect("a file"))
        .output()
        .expect("chroot");
    let error = String::from_utf8_lossy(&parsed.stderr);
    assert_eq!(String::from_utf8_lossy(&parsed.stdout), "['text/x-shellscript']\n", "{error}");
}

/// Statement 3.
pub(crate) fn mpirun_runs_on_all_instances_of_a_case() {
    if image().is_none() {
        return;
    }
    let cloud = cloud();
    // The program goes with the command: only the first instance has the file.
    let script = "cat $RFM_HOSTFILE && mpirun --map-by ppr:1:node python3 -c \"$(cat sum.py)\"";
    let check =
        format!("time_limit: 3m\nnum_tasks: 3\n{}executable: '{script}'\nsanity: [{{ found: sum 3 }}]", with_file("sum.py", SUM));
    let place = Place::new(&cloud, OFTEN, &check, "");
    let ended = place.run(&[]).expect_case(0, "pass", &[]);
    let printed = String::from_utf8_lossy(&ended.kept("rfm_job.out")).into_owned();
    let instances = cloud.instances();
    let ips: Vec<&str> = instances.iter().filter_map(|one| one["ip"].as_str()).collect();
    let hosts: Vec<&str> = printed.lines().filter_map(|line| line.split_once(" slots=")).map(|(host, _)| host).collect();
    assert_eq!(hosts, ips, "in the order of ranks");
    for rank in 0..3 {
        let said = printed.lines().find(|line| line.starts_with(&format!("rank {rank} ")));
        assert!(said.is_some_and(|line| line.ends_with("sum 3")), "{printed}");
    }
    assert_eq!(cloud.await_state("terminated", 3).len(), 3);
}

/// Statement 3: a host that is not the one it should be.
pub(crate) fn a_host_with_another_key_is_refused() {
    if image().is_none() {
        return;
    }
    let cloud = cloud();
    let check = format!(
        "time_limit: 3m\nnum_tasks: 2\n{}executable: sh run.sh\nsanity: [{{ found: let in }}, {{ found: ^refused$ }}]",
        with_file("run.sh", CHANGED)
    );
    let place = Place::new(&cloud, OFTEN, &check, "");
    let ended = place.run(&[]).expect_case(0, "pass", &[]);
    let printed = String::from_utf8_lossy(&ended.kept("rfm_job.out")).into_owned();
    assert!(printed.contains("Host key verification failed"), "{printed}");
}
