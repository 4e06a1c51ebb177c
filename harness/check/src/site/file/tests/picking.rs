use super::*;

fn systems() -> Vec<System> {
    let site = |name: &str, hostname: &str| {
        let text = "{ partitions: [{ name: p, scheduler: local }, { name: queue, scheduler: local }]";
        good(&format!("{text}, name: {name}, hostnames: '{hostname}' }}"))
    };
    vec![site("eidf", "eidf-"), site("aws", "ip-|ec2-"), site("archer", "ln0[0-9]")]
}

#[test]
fn a_system_is_picked_by_name_then_by_host_name_then_the_built_in_one() {
    let rows = [
        ("eidf-login", None, "eidf", 2),
        ("ec2-10", None, "aws", 2),
        ("my-ec2-10", None, "local", 1),
        ("nowhere", None, "local", 1),
        ("eidf-login", Some("aws"), "aws", 2),
        ("eidf-login", Some("aws:queue"), "aws", 1),
        ("eidf-login", Some("local"), "local", 1),
    ];
    for (hostname, wanted, name, partitions) in rows {
        let picked = pick(&systems(), &schedulers(), hostname, wanted).unwrap();
        assert_eq!((picked.name.as_str(), picked.partitions.len()), (name, partitions), "{hostname} {wanted:?}");
    }
}

#[test]
fn an_unknown_system_or_partition_is_answered_with_the_nearest() {
    let rows = [
        ("edif", "no system `edif`", "did you mean `eidf`?"),
        ("perlmutter", "no system `perlmutter`", "there is `eidf`, `aws`, `archer`, `local`"),
        ("aws:quue", "system `aws` has no partition `quue`", "did you mean `queue`?"),
        ("aws:", "system `aws` has no partition ``", "there is `p`, `queue`"),
    ];
    for (wanted, message, hint) in rows {
        let error = pick(&systems(), &schedulers(), "x", Some(wanted)).unwrap_err();
        assert_eq!((error.message.as_str(), error.hint.as_deref()), (message, Some(hint)), "{wanted}");
    }
}

#[test]
fn the_built_in_system_has_one_local_partition() {
    let local = built_in_local(&schedulers());
    assert_eq!((local.name.as_str(), local.span), ("local", None));
    let [default] = &local.partitions[..] else { panic!("{:?}", local.partitions) };
    assert_eq!((default.name.as_str(), default.scheduler.name, default.span), ("default", "local", None));
    assert_eq!(default.environs[0].name, "default");
    let (_, mistakes) = read_site(include_str!("../../../../../../site-config/local.yaml"));
    assert_eq!(mistakes, "");
}

#[test]
fn two_files_about_one_system_are_a_mistake() {
    let mut systems = systems();
    assert_eq!(duplicates(&systems), []);
    systems.push(systems[0].clone());
    let messages: Vec<_> = duplicates(&systems).into_iter().map(|Diagnostic { message, .. }| message).collect();
    assert_eq!(messages, ["two site files are about the system `eidf`"]);
}
