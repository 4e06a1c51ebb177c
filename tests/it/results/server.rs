//! On a PostgreSQL server every question has the answer that it has on a file.

use super::{asked, empty, forty_nights};
use muster_test_database::server::Server;

/// Every question, with what it asks.
const QUESTIONS: [&[&str]; 15] = [
    &["results", "list"],
    &["results", "list", "2026-11-01..2026-11-14", "--tag", "memory"],
    &["results", "list", "--outcome", "failed", "-n", "triad"],
    &["results", "list", "?num_failures > 0"],
    &["results", "show", "latest"],
    &["results", "show", "triad"],
    &["results", "causes"],
    &["results", "causes", "2026-11-21"],
    &["results", "compare", "2026-10-30..2026-11-12", "2026-11-14..2026-11-24"],
    &["results", "history", ".", "--period", "2026-10-01..2026-11-24"],
    &["results", "history", "triad %size=1G", "--period", "2026-10-01..2026-11-24", "--json"],
    &["night"],
    &["results", "suggest-references", "triad", "--period", "2026-10-01..2026-11-24"],
    &["results", "export", "csv"],
    &["results", "export", "json", "2026-11-20..2026-11-24"],
];

#[test]
fn every_question_has_the_same_answer_on_a_server_as_on_a_file() {
    let Some(server) = Server::start(&[]) else { return };
    server.make_schema("questions");
    let sandbox = forty_nights();
    sandbox.write("export.json", &asked(&sandbox, &["export", "json"], 0));
    empty(&sandbox, "copy.db");
    let url = format!("{}&spool={}", server.url("questions"), sandbox.path("spool").display());
    let on = |database: &str, args: &[&str]| {
        let ended = sandbox.ended(&sandbox.command(args).env("MUSTER_DB", database).output().expect("it runs"));
        (ended.code, ended.stdout, ended.stderr)
    };
    let import = ["results", "import", "export.json"];
    assert_eq!(on(&url, &import), on("copy.db", &import));
    for question in QUESTIONS {
        let expected = on("copy.db", question);
        assert_eq!((expected.0, on(&url, question)), (Some(0), expected.clone()), "{question:?}");
    }
    // What changes what is stored.
    for change in [
        &["results", "annotate", "triad", "--kind", "maintenance", "--from", "2026-11-17", "--reason", "cooling"][..],
        &["results", "alias", "triad", "stream"],
        &["results", "rebuild"],
        &["results", "delete", "latest"],
        &["results", "history", "stream", "--period", "2026-10-01..2026-11-24"],
        &["night"],
    ] {
        let expected = on("copy.db", change);
        assert_eq!((expected.0, on(&url, change)), (Some(0), expected.clone()), "{change:?}");
    }
    let pruned = on(&url, &["results", "prune", "--keep", "1d", "--keep-last", "2"]);
    assert!(pruned.1.starts_with("removed 37 session(s)"), "{pruned:?}");
}
