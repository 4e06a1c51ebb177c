//! The client against servers that speak as Amazon does: moto, and one that says what a test wants.

mod canned;
mod credentials;
mod fixture;
mod moto;

use super::{Aws, credentials::environment};
use crate::plan::Place;
use std::{env, process::Command};

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "not-a-secret")];

fn client(address: &str, variables: &[(&str, &str)]) -> Aws {
    let place = Place { region: "eu-west-1".to_owned(), endpoint_url: Some(address.to_owned()) };
    // The metadata service of the machine that tests is not asked.
    let variables: Vec<_> = variables.iter().copied().chain([("AWS_EC2_METADATA_DISABLED", "true")]).collect();
    Aws::new(&place, environment(&variables)).unwrap()
}

/// Runs those of these tests that need an EC2, with one.
#[test]
fn the_client_works_on_what_plays_ec2() {
    if env::var_os("MUSTER_EC2").is_some() {
        return;
    }
    if env::var("MUSTER_EC2_TESTS").is_ok_and(|value| value == "required") {
        let run = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/ec2/run");
        let tests = Command::new(run).arg(env::current_exe().unwrap()).arg("cloud::aws::tests::").output().unwrap();
        let said = String::from_utf8_lossy(&tests.stdout).into_owned() + &String::from_utf8_lossy(&tests.stderr);
        assert!(tests.status.success() && !said.contains("SKIPPED"), "{said}");
    } else {
        eprintln!("SKIPPED: the client of EC2 and S3: run it with MUSTER_EC2_TESTS=required");
    }
}
