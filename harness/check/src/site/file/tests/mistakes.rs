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
