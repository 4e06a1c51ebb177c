//! Tests of the places where credentials are found.

use super::{
    super::{credentials::Credentials, http::Http},
    canned::{Server, answer},
    environment,
};
use crate::cloud::CloudError;
use muster_text::time::Timestamp;
use std::{fs, os::unix::fs::PermissionsExt};
use tempfile::TempDir;

const END: &str = "2099-01-01T00:00:00Z";

async fn found(variables: &[(&str, &str)]) -> String {
    let credentials = Credentials::new(Http::new().unwrap(), environment(variables));
    match credentials.get().await {
        Ok(found) => {
            let end = found.expires_in.map(|end| format!(" until {end}")).unwrap_or_default();
            format!("{} {}{end}", found.access_key_id, found.secret_access_key)
        }
        Err(error) => error.to_string(),
    }
}

/// A home with the files of the AWS CLI.
fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let aws = home.path().join(".aws");
    fs::create_dir(&aws).unwrap();
    let keys = |name: &str| format!("aws_access_key_id = {name}\naws_secret_access_key = s-{name}\n");
    fs::write(aws.join("credentials"), format!("[default]\n{}[other]\n{}", keys("file"), keys("other"))).unwrap();
    let process = home.path().join("process");
    let output = format!(r#"{{"Version":1,"AccessKeyId":"asked","SecretAccessKey":"s-asked","Expiration":"{END}"}}"#);
    fs::write(&process, format!("#!/bin/sh\necho '{output}'\n")).unwrap();
    fs::set_permissions(&process, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(aws.join("config"), format!("[profile asks]\ncredential_process = {}\n", process.display())).unwrap();
    home
}

#[tokio::test]
async fn credentials_are_found_where_the_tools_of_amazon_find_them() {
    let home = home();
    let home = ("HOME", home.path().to_str().unwrap());
    let far = ("AWS_EC2_METADATA_DISABLED", "true");
    let variables = [("AWS_ACCESS_KEY_ID", "env"), ("AWS_SECRET_ACCESS_KEY", "s-env")];
    assert_eq!(found(&[home, far, variables[0], variables[1]]).await, "env s-env", "the environment is first");
    assert_eq!(found(&[home, far]).await, "file s-file");
    let empty = [home, far, ("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", "")];
    assert_eq!(found(&empty).await, "file s-file", "an empty variable is not there");
    assert_eq!(found(&[home, far, ("AWS_PROFILE", "other")]).await, "other s-other");
    assert_eq!(found(&[home, far, ("AWS_PROFILE", "asks")]).await, format!("asked s-asked until {END}"));

    let keys = format!(r#"{{"AccessKeyId":"c","SecretAccessKey":"s-c","Token":"t","Expiration":"{END}"}}"#);
    let container = Server::start(vec![answer(200, "", &keys)]).await;
    let address = format!("{}/keys", container.address);
    let full = [far, ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &*address), ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "a-token")];
    assert_eq!(found(&full).await, format!("c s-c until {END}"));
    assert!(container.asked()[0].contains("authorization: a-token"), "{}", container.asked()[0]);

    let keys = keys.replacen('{', r#"{"Code":"Success","#, 1);
    let instance = Server::start(["a-token", "a-role", &*keys].map(|body| answer(200, "", body)).to_vec()).await;
    let metadata = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", &*instance.address)];
    assert_eq!(found(&metadata).await, format!("c s-c until {END}"));
    assert!(instance.asked()[0].starts_with("PUT /latest/api/token "), "{}", instance.asked()[0]);
}

/// A program gives those that it has while they are valid, and then others.
#[tokio::test]
async fn credentials_that_are_too_short_are_looked_for_again() {
    let home = home();
    let variables = [("HOME", home.path().to_str().unwrap()), ("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_PROFILE", "asks")];
    let mut credentials = Credentials::new(Http::new().unwrap(), environment(&variables));
    let first = credentials.get().await.unwrap();
    let program = home.path().join("process");
    let text = fs::read_to_string(&program).unwrap();
    fs::write(&program, text.replace("asked", "later").replace("2099", "2999")).unwrap();
    let (soon, late) = (Timestamp::of_seconds(4_000_000_000), Timestamp::of_seconds(5_000_000_000));
    assert_eq!(credentials.lasting(late).await.unwrap().0.access_key_id, "asked", "it was asked a moment ago");
    credentials.forget_the_time();
    assert_eq!(credentials.lasting(soon).await.unwrap().0.access_key_id, first.access_key_id);
    assert_eq!(credentials.lasting(late).await.unwrap().0.access_key_id, "later");
    // One that fails takes nothing away.
    credentials.forget_the_time();
    fs::remove_file(&program).unwrap();
    assert_eq!(credentials.lasting(Timestamp::of_seconds(99_000_000_000)).await.unwrap().0.access_key_id, "later");
}

#[tokio::test]
async fn a_program_that_fails_once_has_lost_nothing_for_good() {
    let home = home();
    let variables = [("HOME", home.path().to_str().unwrap()), ("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_PROFILE", "asks")];
    let credentials = Credentials::new(Http::new().unwrap(), environment(&variables));
    let (program, away) = (home.path().join("process"), home.path().join("away"));
    fs::rename(&program, &away).unwrap();
    assert!(matches!(credentials.get().await, Err(CloudError::NoCredentials(_))), "none have worked");
    fs::rename(&away, &program).unwrap();
    let found = credentials.get().await.unwrap();
    credentials.work();
    credentials.forget(&found).await;
    fs::rename(&program, &away).unwrap();
    assert!(matches!(credentials.get().await, Err(CloudError::CredentialsLost(_))));
    fs::rename(&away, &program).unwrap();
    credentials.get().await.unwrap();
}

#[tokio::test]
async fn who_finds_none_is_told_what_failed_and_not_what_is_not_set_up() {
    let far = ("AWS_EC2_METADATA_DISABLED", "true");
    let none = "no AWS credentials found in the environment, the profile or the instance role";
    assert_eq!(found(&[far]).await, none);
    let home = home();
    let home = ("HOME", home.path().to_str().unwrap());
    assert_eq!(found(&[home, far, ("AWS_PROFILE", "unknown")]).await, none);
    let broken = Server::start(vec![answer(500, "", "broken")]).await;
    let said = found(&[far, ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &*broken.address)]).await;
    assert!(said.starts_with(&format!("{none} (the container: ")) && said.contains("broken"), "{said}");
}
