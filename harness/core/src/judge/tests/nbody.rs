//! Judges what three pods of nbody have printed on a GPU, by the references of the shipped check.

use super::*;
use crate::result::Outcome;

const LOGS: [(&str, &str); 3] = [
    ("rfm-jobtest-aotugiob-97w5g", include_str!("../../../testdata/nbody/rfm-jobtest-aotugiob-97w5g.log")),
    ("rfm-jobtest-aotugiob-6xdms", include_str!("../../../testdata/nbody/rfm-jobtest-aotugiob-6xdms.log")),
    ("rfm-jobtest-aotugiob-jfbcd", include_str!("../../../testdata/nbody/rfm-jobtest-aotugiob-jfbcd.log")),
];

fn nbody() -> Stdout {
    let identifier = Identifier::parse("aotugiob").unwrap();
    Stdout::assemble(&identifier, LOGS.map(|(name, log)| (origin(name, Some("gpu01")), log.as_bytes().to_vec())).into())
}

fn rules() -> Rules {
    Rules {
        sanity: vec![count("double-precision GFLOP/s", 3)],
        perf_variables: vec![
            variable("interactions", r"= (\d+\.\d+) billion interactions per second", "Iters/s", Pick::Item(0)),
            variable("flops", r"= (\d+\.\d+) double-precision GFLOP/s", "GFLOP/s", Pick::Reduce(Reduce::Mean)),
            PerfVariable {
                file: None,
                per_section: true,
                ..variable("node_flops", r"= (\d+\.\d+) double-precision GFLOP/s", "GFLOP/s", Pick::Item(0))
            },
        ],
        references: vec![row("interactions", 250.0, -0.1, 0.1), row("flops", 7440.0, -0.1, 0.1)],
        ..Rules::default()
    }
}

#[test]
fn the_stdout_of_three_pods_is_the_documented_one() {
    let golden = include_str!("../../../testdata/nbody/stdout.txt");
    assert_eq!(std::str::from_utf8(nbody().bytes()), Ok(golden));
}

#[test]
fn the_sanity_count_is_three_and_the_references_hold() {
    let judgement = judge_stdout(&rules(), &nbody());
    assert_eq!((judgement.outcome, judgement.cause), (Outcome::Pass, None));
    let lines: Vec<_> = judgement
        .measurements
        .iter()
        .map(|m| format!("{} {} {} {:?} {:?}", m.label(), m.value, m.unit, m.verdict, m.section))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    interactions 247.989 Iters/s Pass None
    flops 7439.438333333333 GFLOP/s Pass None
    node_flops 7439.683 GFLOP/s None Some("rfm-jobtest-aotugiob-6xdms")
    node_flops 7438.646 GFLOP/s None Some("rfm-jobtest-aotugiob-97w5g")
    node_flops 7439.986 GFLOP/s None Some("rfm-jobtest-aotugiob-jfbcd")
    "#);
}

#[test]
fn the_framing_is_not_part_of_any_section() {
    for framing in ["aotugiob", "jobtest", "-------", r"\A\s*\z"] {
        let judgement = judge_stdout(&sanity([not_found(framing)]), &nbody());
        assert_eq!(judgement.outcome, Outcome::Pass, "{:?}", judgement.cause);
    }
}
