use super::{
    testing::{load, load_asked, messages},
    *,
};

#[test]
fn a_base_in_another_file_is_asked_for_relative_to_the_file_that_names_it() {
    let (loaded, asked) = load_asked(&[
        ("checks/a/check.yaml", "name: a\nextends: ../base.yaml#gpu\ntags: [x]"),
        ("checks/base.yaml", "name: gpu\nabstract: true\ntime_limit: 5m\nk8s_config: pod.yaml"),
        ("checks/pod.yaml", "kind: Pod"),
    ]);
    assert_eq!(messages(&loaded), [""; 0]);
    assert_eq!(asked, ["checks/base.yaml", "checks/pod.yaml"]);
    let check = &loaded.checks[0];
    assert_eq!(check.tree.get("time_limit").and_then(Node::text), Some("5m"));
    assert!(check.tree.get("abstract").is_none());
    let config = check.tree.get("k8s_config").expect("inherited");
    let manifest = loaded.manifests.get(config.span.file, "pod.yaml").expect("read");
    assert_eq!(manifest[0].get("kind").and_then(Node::text), Some("Pod"));
}

#[test]
fn a_circle_of_bases_is_shown_as_a_path() {
    let loaded = load(&[("c.yaml", "name: a\nextends: '#b'\n---\nname: b\nextends: '#a'\n")]);
    assert!(messages(&loaded).contains(&"a check cannot extend itself: a -> b -> a"), "{:?}", messages(&loaded));
}

#[test]
fn a_base_may_have_the_name_of_what_extends_it() {
    let loaded = load(&[("a/c.yaml", "name: x\nextends: ../b.yaml#x\n"), ("b.yaml", "name: x\ndescr: base\n")]);
    assert_eq!(messages(&loaded), [""; 0]);
    assert_eq!(loaded.checks[0].tree.get("descr").and_then(Node::text), Some("base"));
}

#[test]
fn a_base_may_append_to_what_comes_before_it_in_the_list() {
    let bases = "name: a\nabstract: true\ntags: [x]\n---\nname: b\nabstract: true\ntags+: [y]\n---\n";
    for (order, expected) in [("['#a', '#b']", vec!["x", "y"]), ("['#b', '#a']", vec!["x"]), ("'#b'", vec!["y"])] {
        let loaded = load(&[("c.yaml", &format!("{bases}name: c\nextends: {order}\n"))]);
        assert_eq!(messages(&loaded), [""; 0], "{order}");
        let tags = loaded.checks[2].tree.get("tags").expect("inherited");
        assert_eq!(tags.items().iter().filter_map(Node::text).collect::<Vec<_>>(), expected, "{order}");
        assert!(loaded.checks[2].tree.get("tags+").is_none());
    }
}

#[test]
fn a_base_that_cannot_be_read_is_reported_once_and_nothing_is_missed_in_the_check() {
    let loaded = load(&[("c.yaml", "name: b\nextends: base.yaml#a\n")]);
    assert_eq!(messages(&loaded), ["the check file base.yaml could not be read: no such file"]);
    assert!(!loaded.checks[0].is_whole);
}

#[test]
fn a_name_is_text_fit_for_folders() {
    let rows = [
        ("name: [a]", "a check's `name` is text, found a list"),
        ("name:", "a check's `name` is text, found nothing"),
        ("name: _a", "`_a` cannot be a check's name"),
        ("name: '${{ 1 }}'", "`${{ 1 }}` cannot be a check's name"),
        ("tags: a", "this check has no `name`"),
        ("- a", "a check is a mapping, found a list"),
    ];
    for (text, expected) in rows {
        assert_eq!(messages(&load(&[("c.yaml", text)])), [expected]);
    }
}

#[test]
fn a_slip_in_the_key_name_is_pointed_at() {
    for (text, hint, start) in
        [("tags: a\nnam: x", "did you mean `name`?", 8), ("tags: a", "write `name: stream`, for instance", 0)]
    {
        let loaded = load(&[("c.yaml", text)]);
        assert_eq!(loaded.diagnostics[0].hint.as_deref(), Some(hint), "{text}");
        assert_eq!(loaded.diagnostics[0].span.map(|span| span.start), Some(start), "{text}");
    }
}

#[test]
fn a_missing_base_names_the_nearest_one() {
    let loaded = load(&[("c.yaml", "name: basis\nabstract: true\n---\nname: b\nextends: '#bassis'\n")]);
    assert_eq!(loaded.diagnostics[0].hint.as_deref(), Some("did you mean `basis`?"));
}

#[test]
fn a_file_that_cannot_be_read_is_reported_once_at_its_mention() {
    let loaded = load(&[("c.yaml", "name: b\nk8s_config: pod.yaml\n")]);
    assert_eq!(messages(&loaded), ["the manifest pod.yaml could not be read: no such file"]);
}

#[test]
fn a_broken_document_is_reported_by_the_reader_alone_and_a_misnamed_check_is_read_on() {
    let loaded = load(&[("c.yaml", "name: [b\nsanity: []\n")]);
    assert!(!messages(&loaded).iter().any(|message| message.contains("is a mapping")), "{:?}", messages(&loaded));
    let loaded = load(&[("c.yaml", "name: a b\nextends: '#x'\n")]);
    assert_eq!((loaded.checks.len(), loaded.num_documents, loaded.diagnostics.len()), (1, 1, 1));
}

#[test]
fn two_checks_of_one_name_are_refused() {
    let loaded = load(&[("c.yaml", "name: b\n---\nname: b\n")]);
    assert_eq!(messages(&loaded), ["there are two checks called `b`"]);
}

#[test]
fn a_null_names_no_manifest() {
    let check = "name: a\nk8s_config: pod.yaml\nwhen: [{ system: s, k8s_config: null }]\n";
    let (loaded, asked) = load_asked(&[("c.yaml", check), ("pod.yaml", "kind: Pod\n")]);
    assert_eq!((messages(&loaded), asked), (vec![], vec!["pod.yaml".to_owned()]));
}
