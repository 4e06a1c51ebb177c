//! The client against servers that speak as Amazon does: moto, and one that says what a test wants.

mod canned;
mod credentials;
mod fixture;
mod moto;

use super::{Aws, credentials::environment};
use crate::plan::Place;

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "not-a-secret")];

fn client(address: &str, variables: &[(&str, &str)]) -> Aws {
    let place = Place { region: "eu-west-1".to_owned(), endpoint_url: Some(address.to_owned()) };
    // The metadata service of the machine that tests is not asked.
    let variables: Vec<_> = variables.iter().copied().chain([("AWS_EC2_METADATA_DISABLED", "true")]).collect();
    Aws::new(&place, environment(&variables)).unwrap()
}
