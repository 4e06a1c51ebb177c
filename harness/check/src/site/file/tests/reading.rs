use super::*;

const EIDF: &str = r#"
name: eidf
hostnames: ["^eidf-"]
extras: { site: edinburgh }
env_vars: { A: system, B: system }
pass_env: [SCRATCH]
sched_options: { context: eidf-general, labels: { team: hpc } }
partitions:
  - name: gpu-service
    scheduler: k8s
    environs: [default, cuda]
    features: [gpu, a100]
    extras: { gpu: a100, version: "1.20" }
    time_limit: 30m
    env_vars: { B: partition, C: partition }
    pass_env: HOME_ON_SCRATCH
    sched_options: { namespace: eidf095ns, labels: { kueue.x-k8s.io/queue-name: eidf095ns-user-queue } }
    processor: { arch: zen3, num_cpus: 256, num_cores: 128, num_sockets: 2 }
    devices: [{ type: gpu, arch: sm_80, num_devices: 8 }]
  - { name: login, scheduler: local, max_jobs: 2 }
environments:
  - { name: default, env_vars: { OMP_NUM_THREADS: "8" } }
  - { name: cuda, features: [cuda], prepare_cmds: module load cuda }
"#;

#[test]
fn the_example_of_the_design_is_read() {
    let eidf = good(EIDF);
    assert_eq!((eidf.name.as_str(), eidf.extras["site"].clone()), ("eidf", json!("edinburgh")));
    let [gpu, login] = &eidf.partitions[..] else { panic!("{:?}", eidf.partitions) };
    assert_eq!((gpu.scheduler.name, gpu.max_jobs), ("k8s", 8));
    assert_eq!((login.scheduler.name, login.max_jobs), ("local", 2));
    assert_eq!(gpu.time_limit, Some(Duration::from_mins(30)));
    assert_eq!(gpu.extras["version"], json!("1.20"));
    assert_eq!(gpu.processor["num_cores"], json!(128));
    assert_eq!((gpu.devices[0].kind.as_str(), gpu.devices[0].num_devices), ("gpu", Some(8)));
    let environs: Vec<_> = gpu.environs.iter().map(|environ| environ.name.as_str()).collect();
    assert_eq!(environs, ["default", "cuda"]);
    assert_eq!(gpu.environs[1].prepare_cmds, ["module load cuda"]);
}

#[test]
fn a_job_waits_half_a_day_unless_the_site_says_more_or_null() {
    let pending = |key: &str| {
        good(&format!("{{ name: s, partitions: [{{ name: p, scheduler: local{key} }}] }}")).partitions[0].max_pending_time
    };
    assert_eq!(pending(""), Some(Duration::from_hours(12)));
    assert_eq!(pending(", max_pending_time: 2d"), Some(Duration::from_hours(48)));
    assert_eq!(pending(", max_pending_time: null"), None);
}

#[test]
fn the_settings_of_the_system_lie_under_those_of_its_partitions() {
    let eidf = good(EIDF);
    let [gpu, login] = &eidf.partitions[..] else { panic!("{:?}", eidf.partitions) };
    let env: Vec<_> = gpu.env_vars.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("A", "system"), ("B", "partition"), ("C", "partition")]);
    assert_eq!(gpu.pass_env, ["SCRATCH", "HOME_ON_SCRATCH"]);
    let labels = json!({ "team": "hpc", "kueue.x-k8s.io/queue-name": "eidf095ns-user-queue" });
    assert_eq!(gpu.sched_options, json!({ "context": "eidf-general", "labels": labels, "namespace": "eidf095ns" }));
    assert_eq!(login.sched_options, json!({}), "they are options of another scheduler");
}

#[test]
fn a_site_without_environments_has_one_that_sets_nothing() {
    for text in [
        "{ name: s, partitions: [{ name: p, scheduler: local }] }",
        "{ name: s, partitions: [{ name: p, scheduler: local, environs: default }] }",
        "{ name: s, partitions: [{ name: p, scheduler: local }], environments: [{ name: other }] }",
    ] {
        let site = good(text);
        let environs: Vec<_> = site.partitions[0].environs.iter().map(|environ| environ.name.as_str()).collect();
        assert_eq!(environs, ["default"], "{text}");
    }
}

#[test]
fn the_schema_in_the_repository_is_fresh() {
    crate::files::check_file::tests::assert_fresh("site.schema.json", &schema(&schedulers()));
}

#[test]
fn the_facts_that_may_be_missing_are_the_keys_of_processor_and_device() {
    let processor: Vec<_> = ProcessorFile::TABLE.keys.iter().map(|key| key.name).collect();
    let device: Vec<_> = DeviceFile::TABLE.keys.iter().map(|key| key.name).collect();
    assert_eq!((processor, device), (muster_core::fact::PROCESSOR.to_vec(), muster_core::fact::DEVICE.to_vec()));
}
