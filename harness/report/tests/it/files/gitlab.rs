//! The child pipeline: its text, GitLab's schema, and what it refuses.

use crate::{sample::case, tools::validated};
use insta::assert_snapshot;
use muster_core::{
    case::CaseName,
    error::chain,
    result::{Outcome, Phase},
};
use muster_report::gitlab::{Planned, of_cases, of_shards};

fn name(check: &str, parameter: &str) -> CaseName {
    case(check, &[("n", parameter)], Outcome::Pass, Phase::Sanity).name
}

fn options() -> Vec<String> {
    ["-C", "site.yaml", "-S", "blocks=16"].map(String::from).into()
}

fn planned(names: &[CaseName]) -> Vec<Planned<'_>> {
    let plan =
        |(at, name)| Planned { name, files: vec!["my checks/io.check.yaml"], needs: if at == 2 { vec![0, 1] } else { vec![] } };
    names.iter().enumerate().map(plan).collect()
}

#[test]
fn every_case_is_a_job_that_needs_what_it_stands_on() {
    let names = [name("build", "1"), name("write", "it's $HOME"), name("read", "1")];
    let text = of_cases(&planned(&names), &options()).unwrap();
    assert_snapshot!(text, @"
    # Written by muster --ci-generate, version 0.1.0: generate it again instead of changing it.
    stages:
    - muster
    .muster:
      stage: muster
      artifacts:
        when: always
        expire_in: 1 week
        paths:
        - muster-report/
        - reports/out/
        - output/
        - stage/
        reports:
          junit: muster-report/junit.xml
    build %n=1 @eidf:gpu-service+default:
      extends: .muster
      script:
      - muster -C site.yaml -S blocks=16 -c 'my checks/io.check.yaml' -n /c8bd3a9d --system eidf:gpu-service -p '^default$' -r --report-junit muster-report/junit.xml --report-html muster-report/report.html
      needs: []
    write %n=it's $HOME @eidf:gpu-service+default:
      extends: .muster
      script:
      - muster -C site.yaml -S blocks=16 -c 'my checks/io.check.yaml' -n /d32aec72 --system eidf:gpu-service -p '^default$' -r --report-junit muster-report/junit.xml --report-html muster-report/report.html
      needs: []
    read %n=1 @eidf:gpu-service+default:
      extends: .muster
      script:
      - muster -C site.yaml -S blocks=16 -c 'my checks/io.check.yaml' -n /7f4e5535 --system eidf:gpu-service -p '^default$' -r --report-junit muster-report/junit.xml --report-html muster-report/report.html
      needs:
      - job: build %n=1 @eidf:gpu-service+default
        artifacts: false
      - job: write %n=it's $HOME @eidf:gpu-service+default
        artifacts: false
    ");
}

#[test]
fn a_shard_is_a_job() {
    let text = of_shards(2, &["-c".to_owned(), "checks".to_owned()]).unwrap();
    let (_, jobs) = text.split_at(text.find("muster 1/2:").unwrap());
    assert_snapshot!(jobs, @"
    muster 1/2:
      extends: .muster
      script:
      - muster -c checks --shard 1/2 -r --report-junit muster-report/junit.xml --report-html muster-report/report.html
      needs: []
    muster 2/2:
      extends: .muster
      script:
      - muster -c checks --shard 2/2 -r --report-junit muster-report/junit.xml --report-html muster-report/report.html
      needs: []
    ");
}

#[test]
fn a_pipeline_keeps_to_the_schema_of_gitlab() {
    let names = [
        name("build", "1"),
        name("write", "2"),
        name("read", "1"),
        name("long", &"x".repeat(400)),
        name("long", &"x".repeat(400)),
    ];
    for text in [of_cases(&planned(&names), &options()).unwrap(), of_shards(3, &options()).unwrap()] {
        let file: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
        let file = file.as_mapping().unwrap();
        for (name, job) in file.iter().filter(|(name, _)| !["stages", ".muster"].contains(&name.as_str().unwrap())) {
            assert!(name.as_str().unwrap().len() <= 255 && job["script"][0].is_string(), "{text}");
            for need in job["needs"].as_sequence().unwrap() {
                assert!(file.contains_key(&need["job"]), "{need:?} is no job of {text}");
            }
        }
        validated("the pipeline", &text, "gitlab-ci.yml", &["check-jsonschema", "--builtin-schema", "vendor.gitlab-ci"]);
    }
}

#[test]
fn a_secret_does_not_go_into_a_pipeline() {
    let options = ["-S", "api_token=f00dcafe1234"].map(String::from);
    let text = chain(&of_shards(2, &options).unwrap_err());
    assert_snapshot!(text, @"the command of the job 'muster 1/2' holds what looks like a secret: set it as a variable of the CI system instead (MUSTER_SETVAR)");
}
