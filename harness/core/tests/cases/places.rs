//! Where a check runs, and why a case of it does not.

use super::*;

#[test]
fn places_are_chosen_by_systems_and_environments() {
    let places = |selectors: &str| {
        let (all, _) = cases(&format!("name: c\n{selectors}\n{PLAIN}"));
        all.iter().map(|case| format!("{}+{}", case.name.partition, case.name.environ)).collect::<Vec<_>>().join(" ")
    };
    let rows = [
        ("valid_systems: ['*']", "gpu+gnu gpu+cray cpu+gnu k+gnu ipu+gnu"),
        ("valid_systems: eidf:cpu", "cpu+gnu"),
        ("valid_systems: [+gpu]\nvalid_prog_environs: [cray]", "gpu+cray"),
        ("valid_systems: ['+gpu %cores=64', 'eidf:cpu']\nvalid_prog_environs: [+mpi]", "gpu+gnu cpu+gnu"),
        ("valid_systems: ['%gpu=sm_80']\nvalid_prog_environs: [-mpi]", "gpu+cray"),
        ("valid_systems: ['%scheduler=k8s']", "k+gnu"),
        (
            "valid_systems: ['*']\nparameters: { p: [cpu, k] }\nwhen: [{ with: { p: k }, valid_systems: ['eidf:k'] }, { with: { p: cpu }, valid_systems: ['eidf:cpu'] }]",
            "cpu+gnu k+gnu",
        ),
        ("valid_systems: ['eidf:${{ p }}']\nparameters: { p: [cpu, k] }", "cpu+gnu k+gnu"),
    ];
    for (selectors, expected) in rows {
        assert_eq!(places(selectors), expected, "{selectors}");
    }
}

#[test]
fn names_of_systems_that_nobody_knows_are_told() {
    let (_, told) = cases("name: c\nvalid_systems: ['eidff', 'eidf:gppu', 'somewhere-else:x']\nexecutable: a\nsanity: []");
    let expected = [
        "no site file defines a system `eidff`",
        "system `eidf` has no partition `gppu`",
        "no site file defines a system `somewhere-else`",
    ];
    assert_eq!(told, expected);
    // Another site's name is no mistake of this one.
    let known = KnownSystems::of([&site_file::built_in_local()]);
    let mut diagnostics = Vec::new();
    known.check_name("somewhere-else", muster_core::diagnostic::Span::default(), &mut diagnostics);
    assert_eq!(diagnostics[0].severity, Severity::Warning);
}

#[test]
fn a_fact_that_the_site_does_not_know_skips_the_case_and_is_named() {
    for (expression, fact) in [
        ("partition.processor.num_sockets", "processor.num_sockets"),
        ("partition.devices.npu.num_devices", "devices.npu.num_devices"),
    ] {
        let rendered = only(&check(&format!("executable: run ${{{{ {expression} }}}}\nsanity: []")));
        assert_eq!(rendered.skip.as_deref(), Some(format!("eidf:gpu does not say {fact}").as_str()));
    }
    // An extra is the site's own promise: without it the file is wrong.
    assert_ne!(mistakes(&check("executable: run ${{ partition.extras.missing }}\nsanity: []")), [""; 0]);
}

#[test]
fn a_reason_to_skip_sees_variables_and_a_null_is_none() {
    let skip = |entry: &str| {
        let all = rendered(&check(&format!(
            "{PLAIN}\nparameters: {{ n: [1] }}\nvariables: {{ v: '${{{{ n + 1 }}}}' }}\nwhen: [{entry}]"
        )));
        all.first().map(|rendered| rendered.skip.clone())
    };
    let rows = [
        ("{ if: v > 1, skip: 'v is ${{ v }}' }", Some(Some("v is 2"))),
        ("{ if: n == 1, skip: never }", None),
        ("{ skip: null }", Some(None)),
        ("{ if: v > 1, skip: '${{ null }}' }", Some(None)),
        ("{ if: n == 1, skip: \"${{ n > 1 ? 'large' : null }}\" }", Some(None)),
        ("{ if: n == 1, skip: \"${{ n > 0 ? 'small' : null }}\" }", None),
        ("{ if: n == 1, skip: 'v is ${{ v }}' }", Some(Some("v is 2"))),
    ];
    for (entry, expected) in rows {
        assert_eq!(skip(entry), expected.map(|reason| reason.map(str::to_owned)), "{entry}");
    }
}

#[test]
fn only_a_missing_fact_skips_and_wherever_it_is_read() {
    let skip = |rest: &str| {
        let (all, told) = cases(&check(rest));
        assert_eq!(told, [""; 0], "{rest}");
        all[0].render(&LaunchFacts::rehearsal()).map(|rendered| rendered.skip).map_err(|mistakes| mistakes.len())
    };
    let npu = Ok(Some("eidf:gpu does not say devices.npu.num_devices".to_owned()));
    let rows = [
        ("executable: run ${{ partition.devices['npu'].num_devices }}\nsanity: []", npu.clone()),
        ("executable: run\nsanity: [{ assert: partition.devices.npu.num_devices > 1 }]", npu.clone()),
        (
            "executable: run\nsanity: [{ assert: '!has(partition.devices.npu) || partition.devices.npu.num_devices > 1' }]",
            Ok(None),
        ),
        (
            "executable: run ${{ v }}\nvariables: { v: '${{ partition.devices.npu.num_devices }}' }\nnum_tasks: ${{ v }}\nsanity: []",
            npu,
        ),
        // Another mistake beside it stays one.
        ("executable: run ${{ partition.devices.npu.num_devices }}\nexecutable_opts: ${{ 1 + 'x' }}\nsanity: []", Err(1)),
        (
            "executable: run ${{ partition.extras.npu }}\nexecutable_opts: ${{ get(partition.processor, 'num_sockets', 1) }}\nsanity: []",
            Err(1),
        ),
    ];
    for (rest, expected) in rows {
        assert_eq!(skip(rest), expected, "{rest}");
    }
    let manifest = "name: c\nvalid_systems: ['eidf:k']\nvariables: { n: 1 }\nk8s_config: { kind: Pod, spec: { n: '${{ partition.processor.num_cores }}' } }\nsanity: []";
    assert_eq!(only(manifest).skip.as_deref(), Some("eidf:k does not say processor.num_cores"));
}
