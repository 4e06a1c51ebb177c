//! What site staff ask in the morning.

use super::{asked, forty_nights, references::judge};
use insta::assert_snapshot;
use std::fs;

#[test]
fn two_fortnights_are_compared_the_worst_first() {
    let sandbox = forty_nights();
    assert_snapshot!(asked(&sandbox, &["compare", "2026-10-30..2026-11-12", "2026-11-14..2026-11-24"], 0));
    asked(&sandbox, &["compare", "2026-10-30..2026-11-12", "2026-11-14..2026-11-24", "--fail-on", "regression"], 1);
    let still = ["compare", "2026-10-16..2026-10-25", "2026-10-26..2026-11-05", "--fail-on", "regression"];
    asked(&sandbox, &still, 0);
    let of_one = asked(&sandbox, &["compare", "2026-10-30..2026-11-12", "2026-11-14..2026-11-24", "-n", "size=1G"], 0);
    assert!(of_one.contains("1 variable: 1 steady"), "{of_one}");
}

#[test]
fn sessions_nights_periods_tags_and_conditions_are_sides() {
    let sandbox = forty_nights();
    let first_line = |old: &str, new: &str| {
        let text = asked(&sandbox, &["compare", old, new], 0);
        text.lines().filter(|line| line.contains("variable")).map(str::to_owned).next_back().unwrap_or_default()
    };
    let lines = [
        first_line("20261101", "latest"),
        first_line("2026-11-01", "last-night"),
        first_line("20261101:20261108", "20261116:20261123"),
        first_line("2026-11-01..2026-11-12,tag=memory", "2026-11-14..2026-11-23,tag=memory"),
        first_line("?release == '26.10'", "?release == '26.11'"),
        first_line("?user == 'ada' && night < '2026-11-14'", "?user == 'bob' && night >= '2026-11-14'"),
    ];
    assert_snapshot!(lines.join("\n"));
}

#[test]
fn programs_get_json_and_csv() {
    let sandbox = forty_nights();
    let sides = ["compare", "2026-10-30..2026-11-12", "2026-11-14..2026-11-24", "--format"];
    let json: serde_json::Value = serde_json::from_str(&asked(&sandbox, &[&sides[..], &["json"]].concat(), 0)).expect("JSON");
    assert_eq!(json["variables"][0]["verdict"], "regressed");
    assert_eq!(json["variables"][0]["error_rate"], 0.05);
    let csv = asked(&sandbox, &[&sides[..], &["csv"]].concat(), 0);
    assert_eq!(csv.lines().count(), 5, "{csv}");
}

#[test]
fn a_history_is_a_chart_of_eighty_columns() {
    let sandbox = forty_nights();
    let mut command =
        sandbox.command(&["results", "history", "triad %size=1G", "--period", "2026-10-01..2026-11-24", "--db", "r.db"]);
    let chart = sandbox.ended(&command.env("COLUMNS", "80").env("LC_ALL", "C.UTF-8").output().expect("it runs"));
    assert_eq!(chart.code, Some(0), "{}", chart.stderr);
    assert_snapshot!(chart.stdout);
    assert!(chart.stdout.lines().all(|line| line.chars().count() <= 80), "{}", chart.stdout);
    let all = asked(&sandbox, &["history", ".", "--period", "2026-10-01..2026-11-24"], 0);
    assert!(all.contains("4 variables"), "{all}");
    let json = asked(&sandbox, &["history", "hpcg", "--var", "flops", "--period", "2026-10-01..2026-11-24", "--json"], 0);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json[0]["points"].as_array().map(Vec::len), Some(7));
}

#[test]
fn annotations_and_changes_are_marks_and_maintenance_is_left_out() {
    let sandbox = forty_nights();
    let said = "INSERT INTO annotation (kind, system, name, from_night, until, author, reason, created)
            VALUES ('maintenance', 'eidf', 'triad', 20750, 20752, 'ada', 'new switches', 0), ('note', NULL, 'hpl', 20750, 20752, 'ada', 'of hpl', 0);
        INSERT INTO change (metric, opened, since, since_lo, since_hi, turn, before, after, effect, effect_lo, effect_hi, evidence,
            tempering, needed, method, state)
            VALUES (2, 20773, 20771, 20770, 20772, 'worse', 920.5, 874, -0.05, -0.06, -0.04, 900, 1, 48, 1, 'open');";
    muster_test_database::create(&sandbox.path("r.db"), said).expect("annotations");
    let chart = asked(&sandbox, &["history", "triad %size=2G", "--period", "2026-10-01..2026-11-24"], 0);
    assert!(chart.contains("37 runs, 3 left out"), "{chart}");
    let marks: Vec<&str> = chart.lines().filter(|line| line.starts_with(['1', '2'])).collect();
    assert_snapshot!("marks", marks.join("\n"));
    let yaml = asked(&sandbox, &["suggest-references", "triad", "--period", "2026-10-01..2026-11-24"], 0);
    assert!(yaml.contains("# 37 runs") && yaml.contains("# 25 runs"), "{yaml}");
    let compared = asked(&sandbox, &["compare", "2026-10-20..2026-10-31", "2026-11-01..2026-11-12"], 0);
    assert!(compared.contains("9 and 12 nights"), "{compared}");
}

#[test]
fn failures_of_a_night_are_grouped_with_the_last_good_night_and_what_changed() {
    let sandbox = forty_nights();
    assert_snapshot!(asked(&sandbox, &["causes"], 0));
    assert_snapshot!("earlier", asked(&sandbox, &["causes", "2026-11-21", "--tag", "daily"], 0));
    assert!(asked(&sandbox, &["causes", "2026-10-20"], 0).contains("0 of 6 cases failed in 1 session"));
}

#[test]
fn references_are_suggested_from_what_passed() {
    let sandbox = forty_nights();
    judge(&sandbox);
    let period = ["--period", "2026-10-01..2026-11-24"];
    assert_snapshot!(asked(&sandbox, &[&["suggest-references"], &period[..]].concat(), 0));
    // A case that failed before it passed did not pass at once.
    std::fs::copy(sandbox.path("r.db"), sandbox.path("copy.db")).expect("the database");
    let failed = "UPDATE attempt SET outcome = 'fail', reason = 'sanity' WHERE id = (SELECT a.id FROM attempt a
        JOIN \"case\" c ON c.id = a.\"case\" WHERE c.display = 'triad %size=1G' ORDER BY a.id DESC LIMIT 1)";
    muster_test_database::create(&sandbox.path("copy.db"), failed).expect("a failure");
    let of = |database: &str| {
        let arguments =
            ["results", "suggest-references", "triad %size=1G", "--period", "2026-10-01..2026-11-24", "--db", database];
        sandbox.muster(&arguments).stdout
    };
    assert!(of("r.db").contains("# 40 runs") && of("copy.db").contains("# 39 runs"), "{}{}", of("r.db"), of("copy.db"));
    std::fs::create_dir(sandbox.path("my checks")).expect("a folder");
    let path = "my checks/of: may, 'all'.yaml";
    let written = asked(&sandbox, &[&["suggest-references", "triad", "--write", path], &period[..]].concat(), 0);
    let key =
        written.strip_prefix(&format!("wrote {path}: a check file in the same folder reads its part with\n")).expect(&written);
    sandbox.write(
        "my checks/triad.check.yaml",
        &format!(
            "name: triad\nvalid_systems: ['eidf:gpu']\nparameters: {{ size: [1G, 2G] }}\nexecutable: echo bandwidth 905\nsanity: []\n\
             perf_variables: {{ bandwidth: {{ pattern: 'bandwidth (\\d+)', unit: GB/s, direction: higher }} }}\n{key}"
        ),
    );
    sandbox.write(
        "site.yaml",
        "name: eidf\npartitions: [{ name: gpu, scheduler: local, environs: [default] }]\nenvironments: [{ name: default }]\n",
    );
    let run = sandbox.muster(&["-C", "site.yaml", "--system", "eidf", "-c", "my checks", "-r", "--nocolor", "--db", "run.db"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("(r:910, l:889.98)"), "{}", run.stdout);
    sandbox.write("mine.yaml", "triad: {}\n");
    let refused = asked(&sandbox, &[&["suggest-references", "--write", "mine.yaml"], &period[..]].concat(), 2);
    assert_eq!(refused, "error: mine.yaml is there already, and was not written by this command: choose another file\n");
    assert_eq!(sandbox.read("mine.yaml"), "triad: {}\n");
    let unwritten = asked(&sandbox, &[&["suggest-references", "triad", "--write", "no/refs.yaml"], &period[..]].concat(), 3);
    assert_eq!(unwritten, "error: the file no/refs.yaml could not be written: No such file or directory (os error 2)\n");
}

#[test]
fn a_case_is_shown_as_it_was_in_its_newest_session() {
    let sandbox = forty_nights();
    let hpl = asked(&sandbox, &["show", "^hpl"], 0);
    assert!(hpl.contains("20261112-220000-abcdefgh") && hpl.contains("1 case in"), "{hpl}");
    assert!(asked(&sandbox, &["show", "/00000004"], 0).contains("hpcg"));
    assert_eq!(
        asked(&sandbox, &["show", "nosuch"], 2),
        "error: no session begins with `nosuch`, and no stored case matches `nosuch`: there are hpcg, hpl, ior, osu, smoke, triad\n"
    );
}

#[test]
fn what_is_shown_is_of_the_system_that_is_typed() {
    let sandbox = forty_nights();
    sandbox.write(
        "elm.yaml",
        "name: elm\npartitions: [{ name: cpu, scheduler: local, environs: [e] }]\nenvironments: [{ name: e }]\n",
    );
    sandbox.write("true.check.yaml", "name: elmo\nvalid_systems: ['*']\nexecutable: echo\nsanity: []\n");
    let run = sandbox.muster(&["-C", "elm.yaml", "--system", "elm", "-c", "true.check.yaml", "-r", "--db", "r.db"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let shown = |args: &[&str], code| asked(&sandbox, &[&["show"], args].concat(), code);
    assert!(shown(&[], 0).contains("@elm:cpu"));
    for args in [&["--system", "eidf"][..], &["latest", "--system", "eidf:gpu"]] {
        let text = shown(args, 0);
        assert!(text.contains("@eidf:gpu") && !text.contains("elm"), "{args:?}: {text}");
    }
    assert!(shown(&["hpl", "--system", "eidf"], 0).contains("1 case in"));
    assert!(shown(&["hpl", "--system", "elm"], 2).contains("no session begins with `hpl`"));
    let other = shown(&["20261112-220000-abcdefgh", "--system", "elm"], 2);
    assert!(other.contains("session 20261112-220000-abcdefgh ran on `eidf`: leave out --system"), "{other}");
    assert!(shown(&["--system", "eidff"], 2).contains("did you mean `eidf`?"));
}

#[test]
fn sessions_are_listed_by_time_night_case_and_outcome() {
    let sandbox = forty_nights();
    let count = |args: &[&str]| {
        let text = asked(&sandbox, &[&["list", "-N", "100"], args].concat(), 0);
        text.lines().last().unwrap_or_default().to_owned()
    };
    let rows: [(&[&str], &str); 10] = [
        (&[], "40 session(s)"),
        (&["2026-11-24"], "1 session(s)"),
        (&["2026-11-01..2026-11-07"], "7 session(s)"),
        (&["20261101:20261108"], "7 session(s)"),
        (&["-n", "^hpcg"], "7 session(s)"),
        (&["--tag", "io", "--outcome", "disrupted"], "1 session(s)"),
        (&["--outcome", "fail{sanity}"], "5 session(s)"),
        (&["system=eidf,partition=gpu", "--outcome", "failed"], "5 session(s)"),
        (&["?num_failures > 1"], "1 session(s)"),
        (&["--tag", "io", "--outcome", "abort"], "No stored session matches"),
    ];
    for (args, line) in rows {
        assert_eq!(count(args), line, "{args:?}");
    }
}

#[test]
fn a_list_is_a_table_json_or_csv_and_says_that_it_is_cut() {
    let sandbox = forty_nights();
    let cut = asked(&sandbox, &["list", "-N", "5"], 0);
    assert!(cut.ends_with("\n5 session(s), the newest: there are more, `-N all` lists them\n"), "{cut}");
    for most in ["40", "all"] {
        let whole = asked(&sandbox, &["list", "-N", most], 0);
        assert!(whole.ends_with("\n40 session(s)\n"), "{whole}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&asked(&sandbox, &["list", "--format", "json", "-N", "all"], 0)).expect("JSON");
    let newest = &json[0];
    assert_eq!((json.as_array().map(Vec::len), newest["session"].as_str()), (Some(40), Some("20261124-220000-abcdefgh")));
    assert_eq!((newest["night"].as_str(), newest["system"].as_str()), (Some("2026-11-24"), Some("eidf")));
    let csv = asked(&sandbox, &["list", "--format", "csv", "-N", "2", "2026-11-20..2026-11-24"], 0);
    assert!(csv.starts_with("session,state,started_unix_us,"), "{csv}");
    assert!(csv.ends_with("note: only the newest 2 session(s): there are more, `-N all` lists them\n"), "{csv}");
    assert_eq!(csv.lines().count(), 4);
    assert_eq!(asked(&sandbox, &["list", "--format", "json", "2031-01-01"], 0), "[]\n");
}

#[test]
fn of_several_nights_a_cause_is_dated_by_the_night_in_which_it_was_seen_last() {
    let sandbox = forty_nights();
    let well_again = r#"UPDATE attempt SET outcome = 'pass', reason = NULL WHERE "case" IN
        (SELECT c.id FROM "case" c JOIN session s ON s.number = c.session WHERE c.check_name = 'smoke' AND s.night >= 20779)"#;
    muster_test_database::create(&sandbox.path("r.db"), well_again).expect("forty nights");
    let causes = asked(&sandbox, &["causes", "2026-11-10..2026-11-24", "-n", "smoke"], 0);
    assert!(causes.starts_with("Nights of 2026-11-10 to 2026-11-24 on eidf: 1 of 1 case failed"), "{causes}");
    assert!(causes.contains("first bad night 2026-11-20, last good night 2026-11-19"), "{causes}");
}

#[test]
fn a_session_that_is_dated_in_the_future_is_not_last_night() {
    let sandbox = forty_nights();
    let sides = ["compare", "2026-11-01", "last-night"];
    let (before, compared) = (asked(&sandbox, &["causes"], 0), asked(&sandbox, &sides, 0));
    let future = "INSERT INTO session (number, id, started, ended, command, system, user_name, host, workdir, version, num_cases,
            interrupted, owner_host, owner_pid, owner_start_time, owner_boot_id, extras, night)
        SELECT 100, '20990101-220000-abcdefgh', 47117 * 86400000000, 47117 * 86400000000 + 1, command, system, user_name, host, workdir,
            version, 1, 0, owner_host, owner_pid, owner_start_time, owner_boot_id, extras, 47117 FROM session WHERE number = 1;
        INSERT INTO night (system, night, begins, ends, time_zone, state)
        VALUES ('eidf', 47117, 47117 * 86400000000, 47118 * 86400000000, 'UTC', 'ended');";
    muster_test_database::create(&sandbox.path("r.db"), future).expect("a session of 2099");
    let note = "note: a session is dated 2099-01-01, in the future, and is not looked at: is the clock of its machine right?\n";
    assert_eq!(asked(&sandbox, &["causes"], 0), format!("{before}{note}"));
    assert_eq!(asked(&sandbox, &sides, 0), compared);
}

#[test]
fn two_checks_in_the_first_bad_night_are_both_said_whichever_is_written_first() {
    let lines = [("bbbb", "cccc"), ("cccc", "bbbb")].map(|(first, second)| {
        let sandbox = forty_nights();
        let two = format!(
            r#"UPDATE "case" SET about = json_set(about, '$.check_hash', 'aaaa') WHERE check_name = 'smoke' AND session < 36;
            UPDATE "case" SET about = json_set(about, '$.check_hash', '{first}') WHERE check_name = 'smoke' AND session >= 36;
            INSERT INTO session (number, id, started, ended, command, system, user_name, host, workdir, version, num_cases, interrupted,
                owner_host, owner_pid, owner_start_time, owner_boot_id, extras, night)
            SELECT 100, 'again', started, ended, command, system, user_name, host, workdir, version, 1, 0, owner_host, owner_pid,
                owner_start_time, owner_boot_id, extras, night FROM session WHERE number = 36;
            INSERT INTO "case" (id, session, display, check_name, hash, system, partition, environ, about)
            SELECT 1000, 100, display, check_name, hash, system, partition, environ, json_set(about, '$.check_hash', '{second}')
            FROM "case" WHERE check_name = 'smoke' AND session = 36;
            INSERT INTO attempt (id, "case", number, outcome, reason, phase, cause, begun, finished, detail)
            SELECT 1000, 1000, 1, outcome, reason, phase, cause, begun, finished, detail FROM attempt
            WHERE "case" = (SELECT id FROM "case" WHERE check_name = 'smoke' AND session = 36);"#
        );
        muster_test_database::create(&sandbox.path("r.db"), &two).expect("a second session of the night");
        asked(&sandbox, &["causes", "-n", "smoke"], 0)
    });
    assert!(lines[0].contains("aaaa -> bbbb and cccc"), "{}", lines[0]);
    assert_eq!(lines[0], lines[1]);
}

#[test]
fn other_filters_narrow_the_cases_that_a_question_names() {
    let sandbox = forty_nights();
    let year = ["--period", "2026-10-01..2026-11-24"];
    let history = |filters: &[&str], code| asked(&sandbox, &[&["history"], filters, &year].concat(), code);
    let all = history(&["triad"], 0);
    assert!(all.contains("size=1G") && all.contains("size=2G"), "{all}");
    let one = history(&["triad", "-n", "size=1G"], 0);
    assert!(one.contains("size=1G") && !one.contains("size=2G"), "{one}");
    let tagged = history(&[".", "-t", "memory"], 0);
    assert!(tagged.contains("triad") && !tagged.contains("hpcg"), "{tagged}");
    assert!(history(&["triad", "-n", "size=9G"], 2).contains("no stored case matches `size=9G`"));
    assert!(history(&["triad", "-t", "memroy"], 2).contains("did you mean `memory`?"));
    assert!(history(&["triad", "--system", "eidg"], 2).contains("no stored case has the system `eidg`: did you mean `eidf`?"));
    assert!(history(&["triad", "--system", "eidf", "--on", "other"], 2).contains("choose different systems"));
    assert_eq!(history(&["triad", "--system", "eidf"], 0), all);
    let suggested = asked(&sandbox, &[&["suggest-references", "triad", "-n", "size=1G"][..], &year].concat(), 0);
    assert!(suggested.contains("size: \"1G\"") && !suggested.contains("size: \"2G\""), "{suggested}");
}

#[test]
fn filters_see_the_names_after_aliases() {
    let sandbox = forty_nights();
    asked(&sandbox, &["alias", "triad %size", "triad %bytes"], 0);
    for question in [&["export", "csv", "2026-11-24"][..], &["causes", "2026-11-24"], &["compare", "2026-11-23", "2026-11-24"]] {
        asked(&sandbox, &[question, &["-n", "bytes=1G"]].concat(), 0);
        let old = asked(&sandbox, &[question, &["-n", "size=1G"]].concat(), 2);
        assert!(old.contains("no stored case matches `size=1G`"), "{old}");
    }
}

#[test]
fn references_of_what_was_renamed_are_those_of_its_new_name() {
    let sandbox = forty_nights();
    asked(&sandbox, &["alias", "triad %size", "triad %bytes"], 0);
    let suggested = asked(&sandbox, &["suggest-references", "triad", "--period", "2026-10-01..2026-11-24"], 0);
    assert!(suggested.contains("bytes: \"1G\"") && !suggested.contains("%bytes"), "{suggested}");
}

#[test]
fn only_a_system_that_is_typed_chooses_what_is_annotated_and_judged() {
    let sandbox = forty_nights();
    let ended = |args: &[&str]| {
        let mut command = sandbox.command(&[args, &["--db", "r.db"]].concat());
        sandbox.ended(&command.env("MUSTER_SYSTEM", "nowhere").output().expect("muster"))
    };
    let night = ended(&["night"]);
    assert_eq!(night.code, Some(0), "{}", night.stderr);
    let annotate = ["results", "annotate", "--kind", "note", "--from", "2026-11-17", "--reason", "x"];
    let all = ended(&annotate);
    assert!(all.stdout.ends_with(": note for the night of 2026-11-17: all systems\n"), "{}{}", all.stdout, all.stderr);
    let one = ended(&[&annotate[..], &["--system", "eidf:gpu"]].concat());
    let place = ": note for the night of 2026-11-17: system eidf, partition gpu\n";
    assert!(one.stdout.ends_with(place), "{}{}", one.stdout, one.stderr);
}

#[test]
fn what_names_nothing_is_answered_with_the_nearest() {
    let sandbox = forty_nights();
    let last = |args: &[&str]| asked(&sandbox, args, 2).lines().next_back().unwrap_or_default().to_owned();
    let rows = [
        (&["list", "--outcome", "fial"][..], "no outcome is called `fial`: did you mean `fail`?"),
        (&["list", "2026-13-01"], "`2026-13-01` is not a day of the calendar"),
        (&["list", "20261231"], "no session begins with `20261231`: the night is `2026-12-31`"),
        (&["list", "now-1w"], "`now-1w` is a moment: a period is `now-1w:now`"),
        (&["show", "^triadd"], "no session begins with `^triadd`, and no stored case matches `^triadd`: did you mean `triad`?"),
    ];
    for (args, why) in rows {
        let said = last(args);
        assert!(said.contains(why), "{args:?}: {said}");
    }
}

#[test]
fn an_annotation_that_touches_no_change_says_so() {
    let sandbox = forty_nights();
    let said = |args: &[&str]| asked(&sandbox, &[&["annotate", "triad", "--reason", "x"], args].concat(), 0);
    // As long as nobody has judged these nights, a change may be found in them.
    assert!(!said(&["--kind", "accept", "--from", "2026-10-25"]).contains("note:"));
    let judged = sandbox.muster(&["night", "--db", "r.db"]);
    assert_eq!(judged.code, Some(0), "{}", judged.stderr);
    assert!(said(&["--kind", "accept", "--from", "2026-10-25"]).contains("note: it touches no change that was found so far"));
    assert!(said(&["--kind", "known", "--from", "2001-01-01"]).contains("alone, and that is over: --until says"));
    asked(&sandbox, &["demo", "year.db", "--systems", "1", "--nights", "150"], 0);
    let ended = sandbox.muster(&["night", "--format", "json", "--db", "year.db"]);
    let night: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let metrics = night["systems"][0]["metrics"].as_array().expect("metrics");
    let change = metrics.iter().find_map(|one| one["change"].as_object()).unwrap_or_else(|| panic!("no change in {metrics:#?}"));
    let since = change["since"].as_str().expect("a night");
    let words = ["results", "annotate", "--reason", "x", "--kind", "accept", "--from", since, "--db", "year.db"];
    let touched = sandbox.muster(&words);
    assert!(touched.code == Some(0) && !touched.stderr.contains("note:"), "{}", touched.stderr);
}

#[test]
fn what_a_process_that_is_gone_has_kept_is_written_before_an_answer() {
    let sandbox = forty_nights();
    let database = fs::canonicalize(sandbox.path("r.db")).expect("the database").display().to_string();
    let word = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let hash =
        database.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let name = format!("{}-{hash:016x}.0.spool", database.chars().map(word).take(60).collect::<String>());
    for question in [&["results", "list"][..], &["results", "causes"], &["night"]] {
        let spool = sandbox.write(&format!("state/muster/spool/{name}"), "").path(&format!("state/muster/spool/{name}"));
        assert!(spool.exists());
        sandbox.muster(&[question, &["--db", "r.db"]].concat());
        assert!(!spool.exists(), "{question:?}");
    }
}
