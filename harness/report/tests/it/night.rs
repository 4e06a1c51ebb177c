//! `muster night`: an invented system whose memory is slower since Tuesday.

use crate::sample::screen;
use muster_core::{
    query::{causes::FactChange, figures::Basis},
    rules::perf::Direction,
};
use muster_judge::{
    night::{
        Metric, MetricName, Night, NightVerdicts, Plan, Remark, RemarkKind, Settings, System, Value, explain, judge, replay,
    },
    sample::Random,
};
use muster_report::night::{self, SystemNight};

/// Tue 17 Nov 2026
const STEP: i32 = 20_774;
const TONIGHT: Night = Night(STEP + 4);

fn metric(id: i64, check: &str, variable: &str, step: f64, random: &mut Random) -> Metric {
    let value = |night: i32| 1900.0 * (1.0 + if night >= STEP { step } else { 0.0 }) * (1.0 + 0.008 * random.normal());
    let nights = STEP - 45..=TONIGHT.0;
    let values =
        nights.clone().zip(nights.map(value)).map(|(night, value)| Value { night: Night(night), value, segment: 0 }).collect();
    let name = MetricName {
        partition: "gpu".into(),
        environ: "gnu".into(),
        case: format!("{check} %size=2G"),
        variable: variable.into(),
        ..MetricName::default()
    };
    Metric { id, name, unit: "GB/s".into(), direction: Some(Direction::Higher), values, ..Metric::default() }
}

fn system() -> System {
    let mut random = Random::new(4);
    let mut of = |id, check: &str, variable: &str, step| metric(id, check, variable, step, &mut random);
    let mut metrics = vec![
        of(1, "triad", "bandwidth", -0.05),
        of(2, "triad", "copy", -0.06),
        of(3, "stream|x", "bandwidth", -0.04),
        of(4, "gemm", "flops", 0.07),
        of(5, "fio", "write", -0.2),
        of(6, "hpcg", "flops", 0.0),
        of(7, "power", "draw", 0.3),
    ];
    metrics[6].direction = None;
    metrics.push(Metric { values: metrics[5].values[40..].to_vec(), ..of(8, "new", "flops", 0.0) });
    let missed = of(9, "login", "elapsed", 0.0);
    metrics.push(Metric { plan: Plan::Busy, values: missed.values[..48].to_vec(), ..missed });
    let annotation = Remark {
        kind: RemarkKind::Known,
        name: Some("fio".into()),
        from: Night(STEP),
        until: Some(Night(STEP + 30)),
        said: Some(Night(STEP)),
        reason: "OPS-17: a disk is replaced".into(),
        ..Remark::default()
    };
    System { name: "eidf".into(), metrics, annotations: vec![annotation] }
}

/// The system as the night found it, and its verdicts.
fn judged() -> (System, NightVerdicts) {
    let mut system = system();
    replay(&mut system, (STEP - 10..TONIGHT.0).map(Night), &Settings::default());
    let verdicts = judge(&system, TONIGHT, &Settings::default());
    (system, verdicts)
}

fn with<T>(use_it: impl FnOnce(&SystemNight<'_>) -> T) -> T {
    let (system, verdicts) = judged();
    let notes = ["the night is not over: so far 61 of 214 cases have ended".to_owned()];
    use_it(&SystemNight {
        system: &system,
        verdicts: &verdicts,
        settings: &Settings::default(),
        absent_since: None,
        notes: &notes,
    })
}

#[test]
fn a_line_a_change_and_the_error_rate() {
    insta::assert_snapshot!(with(|night| night::report(&[*night], &screen(160))));
}

#[test]
fn a_system_without_figures_says_so() {
    let (system, settings) = (System { name: "new".into(), ..System::default() }, Settings::default());
    let verdicts = judge(&system, TONIGHT, &settings);
    let night = SystemNight { system: &system, verdicts: &verdicts, settings: &settings, absent_since: None, notes: &[] };
    insta::assert_snapshot!(night::report(&[night], &screen(100)));
    insta::assert_snapshot!(night::markdown(&[night]));
}

#[test]
fn files_for_programs_and_tickets() {
    insta::assert_snapshot!("markdown", with(|night| night::markdown(&[*night])));
    insta::assert_snapshot!("junit", with(|night| night::junit(&[*night]).unwrap()));
    let json: serde_json::Value = serde_json::from_str(&with(|night| night::json(&[*night]).unwrap())).unwrap();
    let system = &json["systems"][0];
    assert_eq!((system["system"].as_str(), system["night"].as_str()), (Some("eidf"), Some("2026-11-21")));
    assert_eq!(
        (system["metrics"][0]["verdict"].as_str(), system["metrics"][8]["verdict"].as_str()),
        (Some("regressed"), Some("not measured"))
    );
    assert_eq!(system["events"][0]["metrics"].as_array().map(Vec::len), Some(4));
    let mut change = system["metrics"][0].clone();
    round(&mut change);
    insta::assert_snapshot!("change.json", serde_json::to_string_pretty(&change).unwrap());
}

/// Numbers to six places: the last digits of a logarithm are those of a machine.
fn round(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Array(items) => items.iter_mut().for_each(round),
        serde_json::Value::Object(entries) => entries.values_mut().for_each(round),
        serde_json::Value::Number(number) if number.is_f64() => {
            *value = ((number.as_f64().unwrap() * 1e6).round() / 1e6).into();
        }
        _ => {}
    }
}

#[test]
fn the_arithmetic_of_a_verdict() {
    let text = |place: usize, at: i32| {
        let mut system = system();
        replay(&mut system, (STEP - 10..at).map(Night), &Settings::default());
        let verdicts = judge(&system, Night(at), &Settings::default());
        let explanation = explain(&system, place, &verdicts.family, Night(at));
        let night =
            SystemNight { system: &system, verdicts: &verdicts, settings: &Settings::default(), absent_since: None, notes: &[] };
        night::explain(&night, place, explanation.as_ref(), &screen(100))
    };
    insta::assert_snapshot!("explain_changed", text(0, STEP + 2));
    insta::assert_snapshot!("explain_few", text(7, STEP - 2));
}

#[test]
fn the_arithmetic_of_a_constant_says_what_others_add() {
    let metrics = (0..10).map(|id| {
        let value =
            |night: i32| Value { night: Night(night), value: if id == 0 && night >= 12 { 90.0 } else { 100.0 }, segment: 0 };
        Metric { id, direction: Some(Direction::Higher), values: (0..14).map(value).collect(), ..Metric::default() }
    });
    let mut system = System { metrics: metrics.collect(), ..System::default() };
    let verdicts = replay(&mut system, (6..14).map(Night), &Settings::default()).pop().expect("a night was judged");
    let settings = Settings::default();
    let night = SystemNight { system: &system, verdicts: &verdicts, settings: &settings, absent_since: None, notes: &[] };
    let said = |place| night::explain(&night, place, explain(&system, place, &verdicts.family, Night(13)).as_ref(), &screen(200));
    let (moved, steady) = (said(0), said(1));
    assert!(moved.contains("M = 36.04. Other constant metrics of the system add 364.9."), "{moved}");
    assert!(!steady.contains("Other constant"), "{steady}");
}

#[test]
fn a_change_with_what_moved_beside_it() {
    let text = with(|night| {
        let change = night.verdicts.verdicts[0].change().unwrap();
        let [before, after] = ["550.1", "570.2"].map(|value| Some(value.to_owned()));
        let facts = [FactChange { fact: "driver on 3 nodes".to_owned(), before, after }];
        night::why(night, 0, change, &facts, &screen(100))
            + "---\n"
            + &night::why(night, 6, night.verdicts.verdicts[6].change().unwrap(), &[], &screen(100))
    });
    insta::assert_snapshot!(text);
}

#[test]
fn a_system_without_a_session_is_absent() {
    let said = "absent: no session in this night, the last one was in that of Thu 19 Nov 2026";
    with(|night| {
        let night = SystemNight { absent_since: Some(Night(TONIGHT.0 - 2)), ..*night };
        assert_eq!(night::report(&[night], &screen(160)).lines().nth(1), Some(said));
        assert!(night::markdown(&[night]).contains(said));
        let json: serde_json::Value = serde_json::from_str(&night::json(&[night]).unwrap()).unwrap();
        assert_eq!(json["systems"][0]["absent_since"], "2026-11-19");
    });
}

#[test]
fn what_has_not_been_measured_for_a_week_is_named() {
    let mut system = system();
    let rows = ["1", "2", "3", "4", "5"].map(|key| {
        let mut row = system.metrics[5].clone();
        row.name.key = Some(key.to_owned());
        let last = if key == "5" { 7 } else { 9 };
        row.values.retain(|value| value.night <= TONIGHT.before(last));
        row
    });
    system.metrics.extend(rows);
    let verdicts = judge(&system, TONIGHT, &Settings::default());
    let night =
        SystemNight { system: &system, verdicts: &verdicts, settings: &Settings::default(), absent_since: None, notes: &[] };
    let said = "4 metrics have not been measured for over 7 nights: hpcg %size=2G @eidf:gpu+gnu flops[1] (last on 2026-11-12), \
                hpcg %size=2G @eidf:gpu+gnu flops[2] (last on 2026-11-12), hpcg %size=2G @eidf:gpu+gnu flops[3] (last on 2026-11-12) \
                and 1 more";
    assert_eq!(night::report(&[night], &screen(160)).lines().nth(1), Some(&*format!("note: {said}")));
    assert!(night::markdown(&[night]).contains("4 metrics have not been measured"));
    let json: serde_json::Value = serde_json::from_str(&night::json(&[night]).unwrap()).unwrap();
    assert_eq!(json["systems"][0]["notes"][0], said);
    let absent = SystemNight { absent_since: Some(TONIGHT.before(5)), ..night };
    assert!(!night::report(&[absent], &screen(160)).contains("not been measured"));
}

#[test]
fn a_new_baseline_is_said_until_it_has_ten_values() {
    let mut system = system();
    system.metrics.truncate(6);
    system.metrics.drain(..5);
    system.annotations.clear();
    let basis = |check: &str| Basis { check_hash: check.to_owned(), ..Basis::default() };
    system.metrics[0].segments = vec![basis("a"), basis("b")];
    let said = |system: &System| {
        let verdicts = judge(system, TONIGHT, &Settings::default());
        let settings = Settings::default();
        let night = SystemNight { system, verdicts: &verdicts, settings: &settings, absent_since: None, notes: &[] };
        let json: serde_json::Value = serde_json::from_str(&night::json(&[night]).unwrap()).unwrap();
        let table = night::report(&[night], &screen(160)).lines().nth(1).unwrap_or_default().to_owned();
        (table, night::markdown(&[night]), night::junit(&[night]).unwrap(), json["systems"][0].clone())
    };
    system.metrics[0].values.iter_mut().rev().take(9).for_each(|value| value.segment = 1);
    let why = "since 2026-11-13 the check is another: a new baseline";
    let note = format!("1 metric is not compared with earlier nights: hpcg %size=2G @eidf:gpu+gnu flops ({why})");
    let (table, markdown, junit, json) = said(&system);
    assert_eq!(table, format!("note: {note}"));
    assert!(
        markdown.contains("\n1 metric, 1 of 1 planned")
            && markdown.contains("1 metric is not compared")
            && markdown.ends_with("\nNothing else has changed.\n"),
        "{markdown}"
    );
    assert!(junit.contains(&format!("too few nights ({why})")), "{junit}");
    assert_eq!((&json["notes"][0], &json["metrics"][0]["reason"]), (&note.into(), &why.into()));
    system.metrics[0].values.iter_mut().rev().take(10).for_each(|value| value.segment = 1);
    let (table, markdown, _, json) = said(&system);
    assert!(table == "1 steady" && markdown.ends_with("\nNothing has changed.\n"), "{table}\n{markdown}");
    assert_eq!((&json["notes"], &json["metrics"][0]["reason"]), (&serde_json::json!([]), &serde_json::Value::Null));
}

#[test]
fn half_of_the_metrics_see_no_smaller_steps_than_nine_of_ten() {
    let (mut system, mut verdicts) = judged();
    system.metrics.truncate(2);
    verdicts.verdicts.truncate(2);
    verdicts.events.clear();
    for (verdict, step) in verdicts.verdicts.iter_mut().zip([0.097, 0.081]) {
        verdict.smallest_step = Some(step);
    }
    let settings = Settings::default();
    let night = SystemNight { system: &system, verdicts: &verdicts, settings: &settings, absent_since: None, notes: &[] };
    let text = night::report(&[night], &screen(160));
    assert!(text.contains("a step of 8.1 % is seen in half of the metrics, of 9.7 % in nine of ten"), "{text}");
}

#[test]
fn an_open_change_whose_values_were_pruned_is_not_explained() {
    let (mut system, _) = judged();
    system.metrics[0].values.retain(|value| value.night >= Night(STEP));
    let later = (1..12).map(|night| Value { night: Night(TONIGHT.0 + night), ..system.metrics[0].values[0] }).collect::<Vec<_>>();
    system.metrics[0].values.extend(later);
    let tonight = Night(TONIGHT.0 + 11);
    let verdicts = judge(&system, tonight, &Settings::default());
    let explanation = explain(&system, 0, &verdicts.family, tonight);
    let settings = Settings::default();
    let night = SystemNight { system: &system, verdicts: &verdicts, settings: &settings, absent_since: None, notes: &[] };
    insta::assert_snapshot!(night::explain(&night, 0, explanation.as_ref(), &screen(100)).lines().skip(3).collect::<Vec<_>>().join("\n"), @"Too few of the values that showed 1@2026-11-18 are still stored: their sessions were pruned");
}
