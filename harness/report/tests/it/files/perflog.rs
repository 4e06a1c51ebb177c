//! Perflogs: rows by file, RFC 4180.

use crate::sample::{after, case, figure, session, with};
use insta::assert_snapshot;
use muster_core::result::{CaseResult, Failure, Outcome, Phase};
use muster_report::{
    Results,
    perflog::{Addition, COLUMNS, Continued, additions, appended},
};

#[test]
fn every_figure_is_a_row_and_a_failure_without_figures_too() {
    let text: String = with(|results| {
        let file = |addition: &Addition| {
            let text = appended(addition, Continued::New).unwrap().unwrap().replace("\r\n", "\n");
            [addition.file.join("/"), text].join("\n") + "\n"
        };
        additions(results).iter().map(file).collect()
    });
    assert_snapshot!(text);
}

#[test]
fn a_field_with_commas_quotes_and_lines_stays_one_field() {
    let odd = CaseResult {
        cause: Some("said \"no\",\nthen left".into()),
        measurements: vec![figure("=1+1", 0.1 + 0.2, "a,b", None)],
        ..case("odd", &[("p", "x,y")], Outcome::Fail(Failure::Sanity), Phase::Sanity)
    };
    let (session, cases) = (session(), [odd]);
    let addition = additions(&Results::new(&session, &cases)).remove(0);
    let text = appended(&addition, Continued::New).unwrap().unwrap();
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>(), COLUMNS.map(|(name, _)| name));
    let row = reader.records().next().unwrap().unwrap();
    let of = |column: &str| row.get(COLUMNS.iter().position(|(name, _)| *name == column).unwrap()).unwrap();
    assert_eq!((of("name"), of("punit"), of("pvar"), of("pval")), ("odd %p=x,y", "a,b", "'=1+1", "0.30000000000000004"));
    assert_eq!(of("cause"), "said \"no\", then left");
}

#[test]
fn a_file_of_an_older_version_keeps_its_columns() {
    let (session, cases) = (session(), [case("smoke", &[], Outcome::Pass, Phase::Sanity)]);
    let addition = additions(&Results::new(&session, &cases)).remove(0);
    for (how, cells) in [(Continued::With(20), 20), (Continued::With(24), 24), (Continued::With(26), 26)] {
        let text = appended(&addition, how).unwrap().unwrap();
        assert_eq!((text.matches(',').count() + 1, text.lines().count()), (cells, 1), "no second header: {text}");
    }
    assert_eq!(appended(&addition, Continued::Foreign).unwrap(), None);
}

#[test]
fn what_never_ran_is_no_part_of_a_history() {
    let skipped = case("skipped", &[], Outcome::Skip, Phase::Plan);
    let unborn = CaseResult { identifier: None, ..case("unborn", &[], Outcome::Abort, Phase::Plan) };
    let mut session = session();
    session.ended = Some(after(1.0));
    assert_eq!(additions(&Results::new(&session, [&skipped, &unborn])), []);
}
