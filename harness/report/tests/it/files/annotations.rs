//! GitHub's workflow commands.

use crate::sample::{case, session, with};
use insta::assert_snapshot;
use muster_core::result::{CaseResult, Failure, Outcome, Phase};
use muster_report::{
    Results,
    annotations::{Position, github},
};

fn at(case: &CaseResult) -> Position {
    Position { file: case.about.file.clone(), line: Some(3) }
}

#[test]
fn every_failure_has_its_note_and_a_flaky_pass_too() {
    assert_snapshot!(with(|results| github(results, at)), @"
    ::error file=checks/babelstream/check.yaml,line=3,title=ERROR babelstream::babelstream @eidf:gpu-service+default%0Aerror (config) during 'launch': namespace 'eidf095n' does not exist
    ::error file=checks/hpcg/check.yaml,line=3,title=TIMEOUT hpcg::hpcg @eidf:gpu-service+default%0Awaited longer than max_pending_time during 'run': 0/12 nodes are available: 12 Insufficient nvidia.com/gpu
    ::error file=checks/hpl/check.yaml,line=3,title=INVALID hpl::hpl @eidf:gpu-service+default%0Acannot be judged (metrics) during 'performance': variable 'bandwidth' matched nothing
    ::error file=my checks/ior.check.yaml,line=3,title=FAIL ior %25fs.dir=/lustre/my dir::ior %25fs.dir=/lustre/my dir @eidf:gpu-service+default%0Afailed during 'sanity': pattern 'Max Write: .* MiB/sec' was not found in any of 2 sections%0A
    ::error file=checks/nbody_pods/check.yaml,line=3,title=FAIL nbody_pods::nbody_pods @eidf:gpu-service+default%0Afailed during 'performance': node_flops on gpu-18: 1893.4 GFLOP/s, expected 2480 (l:2356)
    ::warning file=checks/smoke/check.yaml,line=3,title=FLAKY smoke::smoke @eidf:gpu-service+default%0Apassed in attempt 2 only
    ");
}

#[test]
fn nothing_that_a_job_says_becomes_a_command() {
    let evil = "100%\n::set-output name=x::y\r\n,line=7:,\u{1b}[2J";
    let cases = [CaseResult { cause: Some(evil.into()), ..case(evil, &[], Outcome::Fail(Failure::Sanity), Phase::Sanity) }];
    let session = session();
    let text = github(&Results::new(&session, &cases), |_| Position { file: evil.into(), line: None });
    assert_eq!(text.lines().count(), 1, "{text}");
    assert_snapshot!(text, @"::error file=100%25 %3A%3Aset-output name=x%3A%3Ay %2Cline=7%3A%2C,title=FAIL 100%25 %3A%3Aset-output name=x%3A%3Ay %2Cline=7%3A%2C::100%25%0A::set-output name=x::y%0A,line=7:, @eidf:gpu-service+default%0Afailed during 'sanity': 100%25%0A::set-output name=x::y%0A,line=7:,");
}

#[test]
fn github_shows_ten_and_the_tenth_counts_the_others() {
    let cases: Vec<_> = (0..25).map(|n| case(&format!("bad{n}"), &[], Outcome::Fail(Failure::Sanity), Phase::Sanity)).collect();
    let session = session();
    let text = github(&Results::new(&session, &cases), at);
    assert_eq!(text.lines().count(), 10);
    assert_eq!(text.lines().last(), Some("::error title=Muster::... and 16 more"));
}
