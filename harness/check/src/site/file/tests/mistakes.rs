use super::*;

#[test]
fn every_mistake_is_named_with_its_place() {
    let (_, mistakes) = read_site(
        r#"
name: my site
hostnames: ["^eidf-(", fine]
extras: { version: 1.20 }
systems: []
partitions:
  - name: a
    scheduler: pbs
    environs: [gnuu]
    launcher: srun
    max_jobs: 0
  - name: a
    scheduler: lokal
    acces: []
    access: [--account=x]
    resources: []
    sched_options: { label: "${{ x }}", on: yes }
    devices: [{ arch: sm_80 }]
    processor: { num_cpu: 4 }
  - scheduler: local
environments:
  - { name: gnu, modules: [gcc], target_systems: ["*"] }
  - { name: gnu, cc: gcc }
"#,
    );
    insta::assert_snapshot!(mistakes);
}

#[test]
fn a_mistake_in_a_list_is_marked_where_its_item_is() {
    let (_, mistakes) = read_site(
        r"
name: c
partitions:
  - name: p
    scheduler: slurm
    access:
      - -p main
      - --output=x
      - --account=y
      - --output=x
    resources:
      - name: a
        options: ['--gres=gpu:{num}']
      - name: b
        options: ['-t {t}']
  - name: q
    scheduler: slurm
    access: -o x
    launcher: mpirun -np {num_taks} {tasks}
",
    );
    insta::assert_snapshot!(mistakes, @r"
    site.yaml:8:9: error: `access`: `--output=x` is not taken (the log is `rfm_job.out` in the stage folder)
    site.yaml:10:9: error: `access`: `--output=x` is not taken (the log is `rfm_job.out` in the stage folder)
    site.yaml:14:9: error: `resources`: `-t` is not taken (write `time_limit` in the check or the partition)
    site.yaml:18:13: error: `access`: `-o` is not taken (the log is `rfm_job.out` in the stage folder)
    site.yaml:19:15: error: `launcher` names `num_taks`, which is no value of a job (did you mean `num_tasks`?)
    ");
}

#[test]
fn a_file_that_is_not_a_site_file_is_refused() {
    for (text, expected) in [
        ("[]", "site.yaml:1:1: error: expected a mapping with the keys of a site file, found a list\n"),
        (
            "name: x\n",
            "site.yaml:1:1: error: a site file needs `partitions` (The parts of the system, each with one scheduler)\n",
        ),
    ] {
        assert_eq!(read_site(text).1, expected, "{text}");
    }
}
