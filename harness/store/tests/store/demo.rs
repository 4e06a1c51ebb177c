//! Example data are what sessions would have left: figures, nights, and a truth that the verdicts of nights find.

use crate::{
    nights::history::summaries,
    support::{database, owner},
};
use muster_judge::{
    night::{Night, Settings, Word, replay},
    sample::year::{Happened, Year, YearSpec},
};
use muster_store::{Reader, Store, demo};

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
    let nights = reader.nights().await.unwrap();
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
            .map(|(metric, _)| system.metrics[metric].name.check.clone())
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
