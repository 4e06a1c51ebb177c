//! Five ways and more to get it wrong: each gets one sentence that says what, where and what to do.

use crate::sandbox::Sandbox;
use insta::assert_snapshot;
use std::fmt::Write;

const GOOD: &str = "name: good\nvalid_systems: ['*']\nexecutable: echo hello\nsanity: [{ found: hello }]\n";

#[test]
fn all_mistakes_of_all_files_are_reported_at_once_and_nothing_is_launched() {
    let sandbox = Sandbox::new();
    sandbox.write("checks/good.check.yaml", GOOD);
    sandbox.write(
        "checks/bad.check.yaml",
        "name: bad\nvalid_systems: ['*']\nexecutabel: ./a.out\ntime_limit: 5 minutes\nsanity:\n  - found: '(unclosed'\n  - assert: max(extractal('x')) < 1\n",
    );
    sandbox.write(
        "checks/other.check.yaml",
        "name: other\nvalid_systems: ['*']\nexecutable: ./x ${{ blocks }}\nsanity: []\nvariables: { block: 1 }\n",
    );
    let ended = sandbox.muster(&["-c", "checks", "-r"]);
    assert_eq!(ended.code, Some(2));
    assert!(!sandbox.path("stage").exists(), "something was launched");
    assert_snapshot!(ended.stderr);
}

#[test]
fn a_listing_lists_what_is_right_and_no_check_with_a_mistake_and_ends_with_2() {
    let check = |name: &str, more: &str| format!("name: {name}\nvalid_systems: ['*']\nsanity: []\nexecutable: a\n{more}");
    let wrong = [
        ("a key that is none", check("bad", "description: x\n"), "write `descr`"),
        ("a value of another kind", check("bad", "time_limit: [1]\n"), "bad.check.yaml:5:"),
        ("a name that nothing has", check("bad", "executable_opts: ['${{ nothing }}']\n"), "nothing"),
        ("of some cases", check("bad", "parameters: { n: [1, 2] }\nexecutable_opts: ['${{ [1][n] }}']\n"), "bad.check.yaml:6:"),
        ("a base that is missing", check("bad", "extends: gone.yaml#base\n"), "gone.yaml"),
        ("a name that two have", check("bad", "---\n") + &check("bad", ""), "there are two checks called"),
        ("a fixture that is missing", check("bad", "fixtures: { b: { check: gone, scope: session } }\n"), "gone"),
        ("no YAML", "name: bad\nvalid_systems: ['*'\n".to_owned(), "bad.check.yaml:"),
    ];
    for (what, text, said) in wrong {
        let sandbox = Sandbox::new();
        sandbox.write("good.check.yaml", GOOD).write("bad.check.yaml", &text);
        for list in ["-l", "-lC", "-L", "--describe"] {
            let ended = sandbox.muster(&["-c", ".", list]);
            assert_eq!(ended.code, Some(2), "{what} {list}: {}{}", ended.stdout, ended.stderr);
            assert!(ended.stdout.contains("good"), "{what} {list}: {}{}", ended.stdout, ended.stderr);
            assert!(!ended.stdout.contains("bad"), "{what} {list}: {}", ended.stdout);
            assert!(ended.stderr.contains(said), "{what} {list}: {}", ended.stderr);
        }
        assert_eq!(sandbox.muster(&["-c", ".", "-r"]).code, Some(2), "{what}");
    }
}

#[test]
fn bad_usage_is_one_sentence() {
    let sandbox = Sandbox::with_check(GOOD);
    let rows: [&[&str]; 8] = [
        &["-r"],
        &["-c", "nowhere", "-l"],
        &["-c", "check.yaml", "-l", "-n", "good["],
        &["-c", "check.yaml", "-l", "-n", "godo"],
        &["-c", "check.yaml", "-l", "--system", "eidf"],
        &["-c", "check.yaml", "-l", "-E", "nme == 'a'"],
        &["-c", "check.yaml"],
        &["results", "show", "2026"],
    ];
    let mut text = String::new();
    for args in rows {
        let ended = sandbox.muster(args);
        let _ = writeln!(text, "$ muster {}\n[{}] {}", args.join(" "), ended.code.unwrap_or(-1), ended.stderr);
        assert_eq!(ended.code, Some(2), "{args:?}");
    }
    assert_snapshot!(text);
}

#[test]
fn a_partition_on_kubernetes_without_a_cluster_says_so_before_anything_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("check.yaml", "name: pod\nvalid_systems: [k]\nimage: busybox\ncommand: [true]\nsanity: []\n");
    sandbox.write(
        "site-config/k.yaml",
        "name: k\npartitions: [{ name: p, scheduler: k8s, environs: [default] }]\nenvironments: [{ name: default }]\n",
    );
    let mut command = sandbox.command(&["-c", "check.yaml", "--system", "k", "-r"]);
    command.env("KUBECONFIG", "missing").env_remove("KUBERNETES_SERVICE_HOST");
    let ended = sandbox.ended(&command.output().expect("runs"));
    assert_eq!(ended.code, Some(2));
    assert_snapshot!(ended.stderr);
}

#[test]
fn references_are_checked_when_they_are_loaded() {
    let sandbox = Sandbox::with_check(
        "name: r\nvalid_systems: ['*']\nexecutable: a\nsanity: []\nperf_variables: { bw: { pattern: '(\\d+)', unit: GB/s } }\nreference:\n  '*': { bw: [100, 0.1, 0.1, MB/s], bandwidth: [1, null, null] }\n",
    );
    let ended = sandbox.muster(&["-c", "check.yaml", "-r"]);
    assert_eq!(ended.code, Some(2));
    assert_snapshot!(ended.stderr);
}

const SITE: &str = "\
name: site
hostnames: ['.*']
partitions:
  - name: gpu
    scheduler: k8s
    sched_options:
      max_lifetime: 24h
  - name: here
    scheduler: local
environments: [{ name: default }]
";

const CHECK: &str = "\
name: pod
valid_systems: ['site:gpu']
image: 'rfm.test/busybox:1'
executable: echo
time_limit: 1m
sched_options:
  hopeless_after: 15m
sanity: []
---
name: script
valid_systems: ['site:here']
executable: echo
sanity: []
";

/// Whether it is listed, shown or run: the same sentence, where the option is written.
#[test]
fn an_option_that_a_scheduler_refuses_is_a_mistake_where_it_is_written() {
    let sandbox = Sandbox::with_check(CHECK);
    let rules = "k8s_workloads: [{ kind: Gang }]";
    let rows: [(&str, &str, &[&str], &str, &str); 6] = [
        (SITE, CHECK, &[], "", ""),
        (&SITE.replace("24h", "0"), CHECK, &[], "site.yaml:7:21", "`sched_options.max_lifetime`: 0 would end every workload"),
        (&SITE.replace("max_lifetime: 24h", rules), CHECK, &[], "site.yaml:7:22", "k8s_workloads[0]: it has no `match`"),
        (SITE, &CHECK.replace("hopeless_after: 15m", rules), &[], "check.yaml:7:18", "k8s_workloads[0]: it has no `match`"),
        (SITE, CHECK, &["-J", "max_lifetime=0"], "", "-J max_lifetime: `sched_options.max_lifetime`: 0 would end every"),
        (SITE, CHECK, &["-J", "node=nowhere"], "", "-J node: `sched_options.node`: nowhere is not this machine"),
    ];
    for (site, check, flags, place, message) in rows {
        sandbox.write("site.yaml", site).write("check.yaml", check);
        let flags = [&["-C", "site.yaml", "--system", "site", "-c", "check.yaml"], flags].concat();
        for action in ["-l", "-L", "--describe", "--dry-run", "-r"] {
            if message.is_empty() && action == "-r" {
                continue;
            }
            let ended = sandbox.muster(&[&flags[..], &[action]].concat());
            let is_right = ended.stderr.contains(place) && ended.stderr.contains(message);
            assert!(is_right, "{action} {flags:?} {place} {message}: {}", ended.stderr);
            assert_eq!(ended.code, Some(if message.is_empty() { 0 } else { 2 }), "{action} {flags:?}: {}", ended.stderr);
        }
        assert!(!sandbox.path("stage").exists());
    }
}

/// They are mistakes of the site file, with all others of it, and not of the checks that run there.
#[test]
fn a_partition_of_slurm_is_looked_at_with_its_file() {
    let sandbox = Sandbox::with_check(CHECK);
    let site = |keys: &str| format!("name: c\npartitions:\n  - name: p\n    scheduler: slurm\n{keys}");
    sandbox.write(
        "site.yaml",
        &site("    launcher: srum\n    access: [-p x, --output=y]\n    resources: [{ name: r, options: ['-t {t}'] }]\n    max_jobs: 0\n    \
                 sched_options: { job_submit_timeout: 100s }\n  - { name: q, scheduler: slurm }\nsched_options: { policy: { poll: 1s } }\n"),
    );
    for args in [&["-c", "check.yaml", "-l"][..], &["config", "show"]] {
        let ended = sandbox.muster(&[&["-C", "site.yaml", "--system", "c"], args].concat());
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        for (message, line) in [
            ("there is no launcher `srum`", "site.yaml:5:"),
            ("`access`: `--output=y` is not taken", "site.yaml:6:"),
            ("`resources`: `-t` is not taken", "site.yaml:7:"),
            ("`sched_options.job_submit_timeout`: the most is 60s", "site.yaml:9:"),
            ("`sched_options.policy`: there is no `poll`", "site.yaml:11:"),
        ] {
            assert_eq!(ended.stderr.matches(message).count(), 1, "{message}: {}", ended.stderr);
            assert!(ended.stderr.contains(line), "{line}: {}", ended.stderr);
        }
        assert!(ended.stderr.contains("site.yaml:8:"), "{}", ended.stderr);
    }
}

#[test]
fn what_a_site_decides_on_slurm_is_limited_and_not_for_the_command_line() {
    let check = "name: a\nvalid_systems: ['*']\nexecutable: echo\nsanity: []\n";
    let sandbox = Sandbox::with_check(check);
    let site =
        |options: &str| format!("name: c\npartitions: [{{ name: p, scheduler: slurm, sched_options: {{ {options} }} }}]\n");
    let listed =
        |more: &[&str]| sandbox.muster(&[&["-C", "site.yaml", "--system", "c", "-c", "check.yaml", "-l"], more].concat());
    sandbox.write("site.yaml", &site("job_submit_timeout: 60s"));
    let fine = listed(&[]);
    assert_eq!(fine.code, Some(0), "{}", fine.stderr);
    let refused = listed(&["-J", "policy.requeue=true"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("-J policy.requeue: `policy` belongs to the site file"), "{}", refused.stderr);
    assert!(refused.stderr.contains("write it in the partition's `sched_options`"), "{}", refused.stderr);
    sandbox.write("site.yaml", &site("job_submit_timeout: 100s"));
    let long = listed(&[]);
    assert_eq!(long.code, Some(2), "{}", long.stderr);
    assert!(long.stderr.contains("`sched_options.job_submit_timeout`: the most is 60s"), "{}", long.stderr);
    assert!(long.stderr.contains("site.yaml:2:"), "{}", long.stderr);
}
