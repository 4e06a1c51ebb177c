//! What was selected, without running it.

use crate::sample::cases;
use insta::assert_snapshot;
use muster_report::{
    Paint,
    listing::{self, ListedCase, ListedNeed},
};

fn listed() -> Vec<ListedCase> {
    let named = ["nbody", "ior", "p2p"];
    let of = |environ: &'static str| {
        let chosen = cases().into_iter().filter(move |case| named.contains(&case.name.check.as_str()));
        chosen.map(move |case| {
            let mut listed = ListedCase { name: case.name, about: case.about, skip: None, is_fixture: false, needs: vec![] };
            listed.name.environ = environ.into();
            listed
        })
    };
    let mut listed: Vec<_> = of("default").chain(of("cuda-13").filter(|case| case.name.check == "nbody")).collect();
    listed[0].about.tags.push("gpu".into());
    listed
}

#[test]
fn checks_are_listed_once_whatever_their_places() {
    assert_snapshot!(listing::checks(&listed(), false, Paint::OFF), @"
    [List of matched checks]
    - p2p /992b18c0
    - nbody %num_bodies=1024000 /99a18000
    - ior %fs.dir=/lustre/my dir /29b785a6
    - nbody %num_bodies=512000 /798275c1
    Found 4 check(s)
    ");
    assert_snapshot!(listing::checks(&[], false, Paint::OFF), @"
    [List of matched checks]
    Found 0 check(s)
    ");
}

/// Two that use a fixture with one of its own, and one that depends on the first.
fn with_needs() -> Vec<ListedCase> {
    let of = |display: &str, is_fixture, needs: &[(usize, Option<&str>)]| {
        let mut listed = listed().remove(0);
        listed.name.display = display.into();
        listed.name.hash = format!("{:08x}", display.len());
        let needs = needs.iter().map(|(at, fixture)| ListedNeed { at: *at, fixture: fixture.map(str::to_owned) });
        ListedCase { is_fixture, needs: needs.collect(), ..listed }
    };
    vec![
        of("fetch ~eidf", true, &[]),
        of("build ~eidf:gpu-service", true, &[(0, Some("source"))]),
        of("write", false, &[(1, Some("binaries"))]),
        of("read", false, &[(1, Some("binaries")), (2, None)]),
        of("alone", false, &[]),
    ]
}

#[test]
fn what_a_check_needs_stands_beneath_it() {
    assert_snapshot!(listing::checks(&with_needs(), false, Paint::OFF), @"
    [List of matched checks]
    - read /00000004
        ^build ~eidf:gpu-service 'binaries /00000017
          ^fetch ~eidf 'source /0000000b
        ^write /00000005
          ^build ~eidf:gpu-service 'binaries /00000017
            ^fetch ~eidf 'source /0000000b
    - alone /00000005
    Found 3 check(s)
    ");
    assert_snapshot!(listing::cases(&with_needs()[..3], false, Paint::OFF), @"
    [List of matched checks]
    - write /00000005 @eidf:gpu-service+default
        ^build ~eidf:gpu-service 'binaries /00000017 @eidf:gpu-service+default
          ^fetch ~eidf 'source /0000000b @eidf:gpu-service+default
    Concretized 3 test case(s)
    ");
}

#[test]
fn cases_are_listed_with_their_places() {
    assert_snapshot!(listing::cases(&listed(), false, Paint::OFF), @"
    [List of matched checks]
    - p2p /992b18c0 @eidf:gpu-service+default
    - nbody %num_bodies=1024000 /99a18000 @eidf:gpu-service+default
    - ior %fs.dir=/lustre/my dir /29b785a6 @eidf:gpu-service+default
    - nbody %num_bodies=512000 /798275c1 @eidf:gpu-service+default
    - nbody %num_bodies=1024000 /99a18000 @eidf:gpu-service+cuda-13
    - nbody %num_bodies=512000 /798275c1 @eidf:gpu-service+cuda-13
    Concretized 6 test case(s)
    ");
}

#[test]
fn a_case_that_will_not_run_says_why_and_a_check_if_that_is_so_of_all_its_cases() {
    let mut cases = listed().split_off(3);
    for at in [0, 1] {
        cases[at].skip = Some("too slow\nhere".into());
    }
    assert_snapshot!(listing::cases(&cases, false, Paint::OFF), @r"
    [List of matched checks]
    - nbody %num_bodies=512000 /798275c1 @eidf:gpu-service+default (skip: too slow here)
    - nbody %num_bodies=1024000 /99a18000 @eidf:gpu-service+cuda-13 (skip: too slow here)
    - nbody %num_bodies=512000 /798275c1 @eidf:gpu-service+cuda-13
    Concretized 3 test case(s)
    ");
    assert_snapshot!(listing::checks(&cases, false, Paint::OFF), @r"
    [List of matched checks]
    - nbody %num_bodies=512000 /798275c1
    - nbody %num_bodies=1024000 /99a18000 (skip: too slow here)
    Found 2 check(s)
    ");
}

#[test]
fn details_of_checks_gather_their_places() {
    assert_snapshot!(listing::checks(&listed(), true, Paint::OFF), @"
    [List of matched checks]
    - p2p /992b18c0
        file:         checks/p2p/check.yaml
        tags:         performance, gpu
        maintainers:  hpc-support
        scheduler:    k8s, 1 task(s)
        systems:      eidf:gpu-service
        environments: default
    - nbody %num_bodies=1024000 /99a18000
        file:         checks/nbody/check.yaml
        tags:         performance
        maintainers:  hpc-support
        parameters:   num_bodies=1024000
        scheduler:    k8s, 1 task(s)
        systems:      eidf:gpu-service
        environments: default, cuda-13
    - ior %fs.dir=/lustre/my dir /29b785a6
        description:  Writes and reads one file for each process through MPI-IO and compares the bandwidth with what the file system showed in the acceptance test
        file:         my checks/ior.check.yaml
        tags:         performance
        maintainers:  hpc-support
        parameters:   fs.dir=/lustre/my dir
        scheduler:    k8s, 1 task(s)
        systems:      eidf:gpu-service
        environments: default
    - nbody %num_bodies=512000 /798275c1
        file:         checks/nbody/check.yaml
        tags:         performance
        maintainers:  hpc-support
        parameters:   num_bodies=512000
        scheduler:    k8s, 1 task(s)
        systems:      eidf:gpu-service
        environments: default, cuda-13
    Found 4 check(s)
    ");
}

#[test]
fn details_of_cases_repeat_the_check() {
    assert_snapshot!(listing::cases(&listed()[3..], true, Paint::OFF), @"
    [List of matched checks]
    - nbody %num_bodies=512000 /798275c1 @eidf:gpu-service+default
        file:         checks/nbody/check.yaml
        tags:         performance
        maintainers:  hpc-support
        parameters:   num_bodies=512000
        scheduler:    k8s, 1 task(s)
    - nbody %num_bodies=1024000 /99a18000 @eidf:gpu-service+cuda-13
        file:         checks/nbody/check.yaml
        tags:         performance
        maintainers:  hpc-support
        parameters:   num_bodies=1024000
        scheduler:    k8s, 1 task(s)
    - nbody %num_bodies=512000 /798275c1 @eidf:gpu-service+cuda-13
        file:         checks/nbody/check.yaml
        tags:         performance
        maintainers:  hpc-support
        parameters:   num_bodies=512000
        scheduler:    k8s, 1 task(s)
    Concretized 3 test case(s)
    ");
}

#[test]
fn tags_are_listed_once() {
    assert_snapshot!(listing::tags(&listed(), Paint::OFF), @"
    [List of unique tags]
    - gpu
    - performance
    Found 2 tag(s)
    ");
}

#[test]
fn a_description_is_json() {
    assert_snapshot!(listing::describe(&listed()[3..]).unwrap(), @r#"
    [
      {
        "name": "nbody %num_bodies=512000",
        "check": "nbody",
        "hash": "798275c1",
        "descr": "",
        "file": "checks/nbody/check.yaml",
        "tags": [
          "performance"
        ],
        "maintainers": [
          "hpc-support"
        ],
        "parameters": {
          "num_bodies": "512000"
        },
        "fixture": false,
        "needs": [],
        "cases": [
          {
            "system": "eidf",
            "partition": "gpu-service",
            "environ": "default",
            "scheduler": "k8s",
            "num_tasks": 1,
            "skip": null
          },
          {
            "system": "eidf",
            "partition": "gpu-service",
            "environ": "cuda-13",
            "scheduler": "k8s",
            "num_tasks": 1,
            "skip": null
          }
        ]
      },
      {
        "name": "nbody %num_bodies=1024000",
        "check": "nbody",
        "hash": "99a18000",
        "descr": "",
        "file": "checks/nbody/check.yaml",
        "tags": [
          "performance"
        ],
        "maintainers": [
          "hpc-support"
        ],
        "parameters": {
          "num_bodies": "1024000"
        },
        "fixture": false,
        "needs": [],
        "cases": [
          {
            "system": "eidf",
            "partition": "gpu-service",
            "environ": "cuda-13",
            "scheduler": "k8s",
            "num_tasks": 1,
            "skip": null
          }
        ]
      }
    ]
    "#);
}

#[test]
fn a_list_of_ten_thousand_is_one_text() {
    let case = listed().remove(0);
    let many: Vec<_> = (0..10_000)
        .map(|number| {
            let mut case = case.clone();
            case.name.display = format!("nbody %num_bodies={number}");
            case
        })
        .collect();
    let text = listing::checks(&many, false, Paint::OFF);
    assert_eq!(text.lines().count(), 10_002);
    assert!(text.ends_with("Found 10000 check(s)\n"));
}

#[test]
fn a_copy_of_what_a_copy_needs_has_its_number_too() {
    let mut cases = with_needs();
    cases.truncate(3);
    for case in &mut cases {
        case.name.hidden = "%.repeat_no=1".into();
    }
    let text = listing::cases(&cases, false, Paint::OFF);
    let numbered = text.lines().filter(|line| line.contains(" %.repeat_no=1 ")).count();
    assert_eq!(numbered, 3, "{text}");
    assert!(!listing::checks(&cases, false, Paint::OFF).contains("repeat_no"), "a check is one line whatever its copies");
}
