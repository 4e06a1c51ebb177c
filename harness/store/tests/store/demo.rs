//! Example data are what sessions would have left: figures, nights, and a truth that the verdicts of nights find.

use crate::{
    nights::history::summaries,
    support::{database, execute, owner},
};
use muster_core::case::check_of;
use muster_judge::{
    night::{Metric, Night, Settings, Word, judge, replay},
    sample::year::{Happened, Year, YearSpec},
};
use muster_store::{Judged, Reader, Store, Upkeep, demo};
use muster_text::time::Timestamp;
use std::collections::HashMap;

#[tokio::test]
async fn a_year_is_written_as_sessions_write_and_a_step_in_it_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let year = Year::new(YearSpec { systems: 8, nights: 90, ..YearSpec::default() });
    let store = Store::open(&path).await.unwrap();
    let written = store.write_year(&year, &owner(1), &|_| ()).await.unwrap();
    store.close().await.unwrap();
    assert!(written.sessions > 100 && written.figures > written.attempts, "{written:?}");
    assert!(!summaries(&path).await.is_empty());
    let reader = Reader::open(&path).await.unwrap();
    let nights = reader.nights(Timestamp(i64::MAX)).await.unwrap();
    let names: Vec<&str> = nights.iter().map(|nights| nights.system.as_str()).collect();
    assert_eq!(names, ["alder1", "birch1", "cedar1", "elm1", "hazel1", "larch1", "maple1", "rowan1"]);
    let mut checked = 0;
    for (place, of) in year.systems().iter().enumerate() {
        let last = Night(year.evening(89));
        let mut system = reader.night_system(&of.name, Night(year.evening(0)), last).await.unwrap();
        assert!(system.metrics.len() >= 3, "{}", of.name);
        let measured: usize = (0..90).map(|night| usize::from(!year.sessions(place, night).is_empty())).sum();
        let most = system.metrics.iter().map(|metric| metric.values.len()).max().unwrap();
        assert_eq!(most, measured, "a value for each night with a session: {}", of.name);
        let found: Vec<_> = replay(&mut system, (30..90).map(|night| Night(year.evening(night))), &Settings::default())
            .into_iter()
            .flat_map(|night| night.verdicts.into_iter().enumerate())
            .filter(|(_, verdict)| verdict.is_new && matches!(verdict.word, Word::Regressed | Word::Improved))
            .map(|(metric, _)| check_of(&system.metrics[metric].name.case).to_owned())
            .collect();
        // A step that has twenty nights before it and after it.
        let steps = of.truth.iter().filter(|truth| {
            matches!(truth.happened, Happened::Step { by } if by.abs() > 0.05)
                && (25..75).contains(&truth.from)
                && truth.until > truth.from + 14
        });
        for step in steps {
            assert!(found.contains(&step.check), "{}: {step:?} is not among {found:?}", of.name);
            checked += 1;
        }
    }
    assert!(checked >= 2, "{checked} steps");
    let truth = demo::truth(&year);
    assert_eq!(truth.lines().count(), year.truth().count() + 1);
    assert!(truth.starts_with("system,happened,check,variable,from,until,percent,name\n"));
}

#[tokio::test]
async fn a_night_that_goes_on_from_kept_figures_comes_to_the_same_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let year = Year::new(YearSpec { systems: 1, nights: 150, ..YearSpec::default() });
    let store = Store::open(&path).await.unwrap();
    store.write_year(&year, &owner(1), &|_| ()).await.unwrap();
    store.close().await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    let mut upkeep = Upkeep::open(path.clone()).await.unwrap();
    let (mut goes_on, mut has_older) = (0, 0);
    let system = &year.systems()[0].name;
    // Not every night is judged.
    for night in (5..150).filter(|night| night % 4 != 0).map(|night| Night(year.evening(night))) {
        let judged = reader.judged(system).await.unwrap();
        let changes = reader.changes_before(system, night).await.unwrap();
        let from_rows = Judged { until: None, ..judged };
        let rows = reader.judged_system(system, (night, night), &changes, from_rows).await.unwrap().system;
        let mut looked = reader.judged_system(system, (night, night), &changes, judged).await.unwrap();
        let expected = judge(&rows, night, &Settings::default());
        let verdicts = judge(&looked.system, night, &Settings::default());
        assert_eq!(verdicts, expected, "{night}");
        goes_on += usize::from(judged.until.is_some());
        let is_older = |metric: &&Metric| metric.values.iter().any(|value| value.night < night.before(100));
        has_older += rows.metrics.iter().filter(is_older).count();
        for (metric, verdict) in looked.system.metrics.iter_mut().zip(&verdicts.verdicts) {
            metric.changes.clone_from(&verdict.changes);
        }
        let found: Vec<_> = looked.system.metrics.iter().flat_map(|metric| metric.changes.clone()).collect();
        assert!(upkeep.keep_changes(judged, night, &found, &looked).await.unwrap());
    }
    assert!(goes_on > 80 && has_older > 0, "{goes_on} {has_older}");
    // Without rows it is seen that what was kept is read, and another history removes it.
    let last = Night(year.evening(149));
    let judged = reader.judged(system).await.unwrap();
    execute(&path, "DELETE FROM night_figure").await;
    let kept = reader.judged_system(system, (last, last), &HashMap::new(), judged).await.unwrap().system;
    assert!(kept.metrics.iter().any(|metric| metric.values.len() > 80));
    let session = reader.sessions(1, &|_| Some(false)).await.unwrap().remove(0).session;
    upkeep.delete(&[session.id], Timestamp(session.started.0 + 7 * 86_400_000_000), |_| Some(false)).await.unwrap();
    upkeep.close().await.unwrap();
    let judged = reader.judged(system).await.unwrap();
    let forgotten = reader.judged_system(system, (last, last), &HashMap::new(), judged).await.unwrap().system;
    // What is left of the night is written again, of all sessions that are left.
    assert!(forgotten.metrics.iter().all(|metric| metric.values.len() <= 1), "{forgotten:?}");
}
