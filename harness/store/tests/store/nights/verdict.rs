//! What the verdict of a night is made of, from rows as sessions leave them.

use crate::support::{database, execute};
use muster_core::rules::perf::Direction;
use muster_judge::night::{AnnotationKind, Night, Plan, SegmentKey, Value};
use muster_store::{NightProgress, Reader, Store, StoredNights};

const ROWS: &str = "
INSERT INTO night VALUES ('eidf', 99, 0, 1, 'UTC', 'ended'), ('eidf', 100, 0, 1, 'UTC', 'running'), ('other', 90, 0, 1, 'UTC', 'ended');
INSERT INTO subject VALUES (1, 'eidf', 'gpu', 'gnu', 'triad %size=2G'), (2, 'eidf', 'gpu', 'gnu', 'login'), (3, 'other', 'gpu', 'gnu', 'login');
INSERT INTO metric VALUES (10, 1, 'latency', '8', 'us', 'lower'), (11, 1, 'copy', '', 'GB/s', NULL), (12, 2, 'elapsed', '', 's', 'lower'),
    (13, 3, 'elapsed', '', 's', 'lower'), (14, 1, 'gone', '', 's', NULL);
INSERT INTO basis VALUES (1, 'us', 'a', ''), (2, 'us', 'b', 'm'), (3, 's', 'a', '');
INSERT INTO night_figure VALUES (10, 50, 9.0, 1, NULL, 0, 1), (10, 99, 1.5, 1, NULL, 0, 1), (10, 100, 1.25, 2, 0.1, 0, 2),
    (11, 100, NULL, 0, NULL, 2, 3), (12, 98, 0.5, 1, NULL, 0, 3), (13, 80, 7.0, 1, NULL, 0, 3);
INSERT INTO planned VALUES (100, 1, 0, 'run'), (100, 3, 0, 'busy'), (90, 1, 0, 'run');
INSERT INTO annotation VALUES (1, 'known', 'eidf', NULL, NULL, 'triad', 'latency', NULL, NULL, 90, 110, 'me', 'OPS-7', NULL, 0),
    (2, 'note', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, NULL, 'me', 'a note', NULL, 0),
    (3, 'maintenance', 'other', NULL, NULL, NULL, NULL, NULL, NULL, 1, NULL, 'me', 'of another', NULL, 0);
";

#[tokio::test]
async fn a_system_is_read_with_its_figures_plan_and_annotations() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    Store::open(&path).await.unwrap().close().await.unwrap();
    execute(&path, ROWS).await;
    let reader = Reader::open(&path).await.unwrap();

    let stored = |system: &str, first, last| StoredNights { system: system.into(), first: Night(first), last: Night(last) };
    assert_eq!(reader.nights().await.unwrap(), [stored("eidf", 99, 100), stored("other", 90, 90)]);
    let running = NightProgress { is_running: true, ended: 0, cases: 0 };
    assert_eq!(reader.night_progress("eidf", Night(100)).await.unwrap(), running);
    assert_eq!(reader.night_progress("eidf", Night(99)).await.unwrap(), NightProgress::default());

    let system = reader.night_system("eidf", Night(60), Night(100)).await.unwrap();
    let names: Vec<_> = system.metrics.iter().map(|metric| (metric.id, metric.name.label(), metric.plan)).collect();
    // Those without a figure in these nights are left out.
    let expected =
        [(12, "elapsed".into(), Plan::Unplanned), (10, "latency[8]".into(), Plan::Run), (11, "copy".into(), Plan::Run)];
    assert_eq!(names, expected);
    let latency = &system.metrics[1];
    assert_eq!((latency.direction, latency.name.check.as_str(), latency.unit.as_str()), (Some(Direction::Lower), "triad", "us"));
    let value = |night, value, segment| Value { night: Night(night), value, segment };
    assert_eq!(latency.values, [value(99, 1.5, 0), value(100, 1.25, 1)]);
    let key = |check: &str, manifest: &str| SegmentKey { check: check.into(), manifest: manifest.into(), unit: "us".into() };
    assert_eq!(latency.segments, [key("a", ""), key("b", "m")]);
    assert!(system.metrics[2].values[0].value.is_nan());
    let [annotation] = system.annotations.as_slice() else { panic!("{:?}", system.annotations) };
    assert_eq!(
        (annotation.kind, annotation.until, annotation.reason.as_str()),
        (AnnotationKind::Known, Some(Night(110)), "OPS-7")
    );
    // The plan of another system is none of this one.
    let other = reader.night_system("other", Night(60), Night(90)).await.unwrap();
    assert_eq!(other.metrics.iter().map(|metric| metric.plan).collect::<Vec<_>>(), [Plan::Unknown]);
    assert!(annotation.scope.covers(&latency.name) && !annotation.scope.covers(&system.metrics[0].name));

    // A night without a plan: nobody knows what was to run.
    let system = reader.night_system("eidf", Night(60), Night(99)).await.unwrap();
    assert!(system.metrics.iter().all(|metric| metric.plan == Plan::Unknown));
}
