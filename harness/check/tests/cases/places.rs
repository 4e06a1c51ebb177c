//! Where a check runs, and why a case of it does not.

use super::*;

#[test]
fn places_are_chosen_by_systems_and_environments() {
    let places = |selectors: &str| {
        let (all, _) = cases(&format!("name: c\n{selectors}\n{PLAIN}"));
        all.iter().map(|case| format!("{}+{}", case.name.partition, case.name.environ)).collect::<Vec<_>>().join(" ")
    };
    let rows = [
        ("valid_systems: ['*']", "gpu+gnu gpu+cray cpu+gnu k+gnu ipu+gnu batch+mpi"),
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
fn a_check_may_name_other_sites_but_no_partition_that_a_known_system_does_not_have() {
    let head = "name: c\nvalid_systems: ['eidff', 'eidf:gppu', 'somewhere-else:x', 'eidf:cpu']\nexecutable: a\nsanity: []";
    let reference = "reference: { 'eidff:cpu': { p: [1, null, null, s] }, 'elsewhere': { p: [2, null, null, s] } }";
    let (all, found) = cases(&format!("{head}\nperf_variables: {{ p: {{ pattern: a }} }}\n{reference}"));
    assert_eq!(found, ["system `eidf` has no partition `gppu`"]);
    assert_eq!(all.len(), 1);
    let known = KnownSystems::of([&site_file::built_in_local(&schedulers())]);
    let (message, hint) = known.unknown_system("lokal").expect("unknown");
    assert_eq!((message.as_str(), hint.as_str()), ("no site file defines a system `lokal`", "did you mean `local`?"));
    assert_eq!(known.unknown_system("local"), None);
}

#[test]
fn a_fact_that_the_site_does_not_know_skips_the_case_and_is_named() {
    for (expression, fact) in [
        ("partition.processor.num_sockets", "processor.num_sockets"),
        ("partition.devices.npu.num_devices", "devices.npu.num_devices"),
    ] {
        let rendered = only(&check(&format!("executable: run ${{{{ {expression} }}}}\nsanity: []")));
        assert_eq!(rendered.skip.as_deref(), Some(format!("eidf:gpu does not define {fact}").as_str()));
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
        let (all, found) = cases(&check(rest));
        assert_eq!(found, [""; 0], "{rest}");
        all[0].render(&LaunchFacts::rehearsal()).map(|rendered| rendered.skip).map_err(|mistakes| mistakes.len())
    };
    let npu = Ok(Some("eidf:gpu does not define devices.npu.num_devices".to_owned()));
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
    assert_eq!(only(manifest).skip.as_deref(), Some("eidf:k does not define processor.num_cores"));
}

/// Whether a case of this check on `eidf:gpu` is skipped, and why; or the mistakes.
fn skip_of(rest: &str) -> Result<Option<String>, Vec<String>> {
    let (all, found) = cases(&check(rest));
    assert_eq!(found, [""; 0], "{rest}");
    let rendered = all[0].render(&LaunchFacts::rehearsal());
    rendered.map(|rendered| rendered.skip).map_err(|mistakes| mistakes.into_iter().map(|mistake| mistake.message).collect())
}

#[test]
fn a_fact_skips_only_where_the_evaluation_needs_it() {
    let npu = "partition.devices.npu.num_devices";
    let runs = [
        format!("'npu' in partition.devices ? {npu} : 1"),
        format!("has(partition.devices.npu) ? {npu} : 1"),
        format!("true || {npu} > 1 ? 1 : 2"),
        format!("{npu} > 1 || true ? 1 : 2"),
        format!("'npu' in partition.devices && {npu} > 1 ? 2 : 1"),
        format!("size([].map(x, {npu}))"),
        "size(partition.devices.filter(k, partition.devices[k].num_devices > 99))".to_owned(),
        "['cpu', 'npu'].exists(k, k == 'cpu' || partition.devices[k].num_devices > 1) ? 1 : 2".to_owned(),
        "get(partition.devices, 'npu', 'num_devices', 1)".to_owned(),
        "'partition.devices.npu.num_devices' == '' ? 0 : 1".to_owned(),
    ];
    let skips = [
        npu.to_owned(),
        "partition['devices']['npu']['num_devices']".to_owned(),
        format!("'gpu' in partition.devices ? {npu} : 1"),
        format!("true && {npu} > 1 ? 1 : 2"),
        "['gpu', 'npu'].map(k, partition.devices[k].num_devices)[0]".to_owned(),
        format!("max([1, {npu}])"),
        format!("1.5 * {npu}"),
    ];
    let wanted = |skips: bool| skips.then(|| "eidf:gpu does not define devices.npu.num_devices".to_owned());
    let rows = runs.iter().map(|text| (text, false)).chain(skips.iter().map(|text| (text, true)));
    for (expression, is_skipped) in rows {
        let quoted = format!("\"{}\"", expression.replace('"', "\\\""));
        let lone = format!("\"${{{{ {expression} }}}}\"");
        let places = [
            format!("executable: run\nexecutable_opts: [{lone}]\nsanity: []"),
            format!("executable: run ${{{{ v }}}}\nvariables: {{ v: {lone} }}\nsanity: []"),
            format!("executable: run\nwhen: [{{ if: \"({expression}) != 77\", time_limit: 1m }}]\nsanity: []"),
            format!("executable: run\nsanity: [{{ assert: \"({expression}) != 77\" }}]"),
            format!("executable: run\nsanity: []\nperf_variables: {{ p: {{ value: {quoted}, unit: s }} }}"),
        ];
        for place in places {
            assert_eq!(skip_of(&place), Ok(wanted(is_skipped)), "{place}");
        }
    }
}

#[test]
fn what_waits_for_the_text_skips_before_the_launch_only_if_it_is_certain() {
    let npu = "partition.devices.npu.num_devices > 1";
    let rows = [
        (format!("count('x') > 0 && {npu}"), false),
        (format!("{npu} && count('x') > 0"), false),
        (format!("count('x') > 0 || {npu}"), false),
        (format!("count('x') > 0 ? {npu} : true"), false),
        (format!("count('x') > 0 ? {npu} : partition.devices.npu.arch == 'x'"), true),
        (format!("(count('x') > 0) == ({npu})"), true),
        ("count('x') > partition.devices.npu.num_devices".to_owned(), true),
        (format!("'gpu' in partition.devices && ({npu}) == (count('x') > 0)"), true),
        (format!("'npu' in partition.devices && ({npu}) == (count('x') > 0)"), false),
        ("extractall('x').all(x, x < partition.devices.npu.num_devices)".to_owned(), false),
    ];
    for (expression, is_skipped) in rows {
        let place = format!("executable: run\nsanity: [{{ assert: \"{expression}\" }}]");
        assert_eq!(skip_of(&place).map(|skip| skip.is_some()), Ok(is_skipped), "{expression}");
    }
    let optional = "executable: run\nsanity: []\nperf_variables: { p: { value: partition.devices.npu.num_devices, unit: s, optional: true } }";
    assert_eq!(skip_of(optional), Ok(None), "an optional variable may be missing");
}

#[test]
fn a_variable_without_its_fact_is_missed_only_where_it_is_read() {
    let check = |opts: &str, when: &str| {
        format!(
            "variables: {{ npus: '${{{{ partition.devices.npu.num_devices }}}}', twice: '${{{{ npus * 2 }}}}' }}\nsanity: []\n\
             executable: run\nexecutable_opts: [\"{opts}\"]\nwhen: [{when}]"
        )
    };
    let skipped = Ok(Some("eidf:gpu does not define devices.npu.num_devices".to_owned()));
    let set = "{ if: \"!('npu' in partition.devices)\", variables: { npus: 0 } }";
    let rows = [
        (check("plain", ""), Ok(None)),
        (check("${{ 'npu' in partition.devices ? twice : 1 }}", ""), Ok(None)),
        (check("${{ twice }}", ""), skipped.clone()),
        (check("${{ twice }}", set), Ok(None)),
        (check("plain", "{ if: npus > 0, time_limit: 1m }"), skipped),
    ];
    for (rest, expected) in rows {
        assert_eq!(skip_of(&rest), expected, "{rest}");
    }
}

#[test]
fn a_misspelt_fact_is_a_mistake() {
    for name in ["processor.num_coers", "devices.gpu.number", "devises.gpu"] {
        let mistakes = skip_of(&format!("executable: run ${{{{ partition.{name} }}}}\nsanity: []")).expect_err(name);
        assert!(mistakes[0].starts_with("there is no key"), "{mistakes:?}");
    }
}
