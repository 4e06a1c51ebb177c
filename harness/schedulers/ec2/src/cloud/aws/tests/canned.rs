//! Against a server that says what a test wants, in the order of the requests.

use super::{super::s3, KEYS, client};
use crate::cloud::{Cloud, CloudError, CredentialsEnd, Tags, contract::filter};
use muster_text::time::Timestamp;
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

pub(super) struct Server {
    pub address: String,
    /// Head and body of each request.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// `answers`: whole answers of HTTP; an empty one closes the connection after the request was read. The last is given for ever.
    pub(super) async fn start(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        tokio::spawn(async move {
            for at in 0.. {
                let (mut connection, _) = listener.accept().await.unwrap();
                let request = read(&mut connection).await;
                seen.lock().unwrap().push(request);
                let answer: &String = answers.get(at).or(answers.last()).unwrap();
                connection.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { address, asked }
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn read(connection: &mut TcpStream) -> String {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        match connection.read(&mut part).await.unwrap() {
            0 => return text,
            count => bytes.extend_from_slice(&part[..count]),
        }
    }
}

pub(super) fn answer(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
}

fn refusal(status: u16, code: &str) -> String {
    let body = format!("<Response><Errors><Error><Code>{code}</Code><Message>no</Message></Error></Errors></Response>");
    answer(status, "", &body)
}

fn refusal_with(code: &str, message: &str) -> String {
    answer(
        400,
        "",
        &format!("<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors></Response>"),
    )
}

const NONE: &str = "<DescribeInstancesResponse><requestId>r</requestId><reservationSet/></DescribeInstancesResponse>";

#[tokio::test]
async fn what_can_be_asked_again_is_and_a_launch_is_not() {
    let failures = [String::new(), refusal(503, "RequestLimitExceeded"), refusal(500, "InternalError")];
    let server = Server::start(failures.iter().cloned().chain([answer(200, "", NONE)]).collect()).await;
    let cloud = client(&server.address, &KEYS);
    let started = Instant::now();
    assert_eq!(cloud.instances(&[]).await.unwrap(), []);
    assert_eq!(server.asked().len(), 4);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());

    for failure in failures {
        let server = Server::start(vec![failure]).await;
        let error = client(&server.address, &KEYS).run_instances(&json!({ "ClientToken": "a" })).await.unwrap_err();
        assert_eq!(server.asked().len(), 1, "{error}");
    }
}

#[tokio::test]
async fn credentials_that_have_ended_are_looked_for_again_once() {
    let ended = refusal(400, "RequestExpired");
    let server = Server::start(vec![ended.clone(), answer(200, "", NONE)]).await;
    client(&server.address, &KEYS).instances(&[]).await.unwrap();
    assert_eq!(server.asked().len(), 2);

    let server = Server::start(vec![ended]).await;
    let error = client(&server.address, &KEYS).instances(&[]).await.unwrap_err();
    assert!(matches!(error, CloudError::NoCredentials(_)), "{error:?}");
    let host = server.address.trim_start_matches("http://");
    insta::assert_snapshot!(error.to_string().replace(host, "HOST"));
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn credentials_that_have_worked_may_work_again() {
    let server = Server::start(vec![answer(200, "", NONE), refusal(400, "ExpiredToken")]).await;
    let client = client(&server.address, &KEYS);
    client.instances(&[]).await.unwrap();
    let error = client.run_instances(&json!({ "ClientToken": "a" })).await.unwrap_err();
    assert!(matches!(error, CloudError::CredentialsLost(_)), "{error:?}");
    assert_eq!(crate::failure::of_launch(error, "launch").class, muster_core::error::Class::Outage);
}

#[tokio::test]
async fn a_wrong_clock_is_said_with_the_difference() {
    let date = "date: Wed, 25 Nov 2020 12:00:00 GMT\r\n";
    let skewed = "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>";
    let server = Server::start(vec![answer(403, date, skewed)]).await;
    let error = client(&server.address, &KEYS).get("bench", "a", 0).await.unwrap_err().to_string();
    assert!(error.contains("the clock of this machine is ") && error.contains(" min ahead of Amazon's"), "{error}");
    assert_eq!(server.asked().len(), 1, "it is not asked again");
}

#[tokio::test]
async fn a_request_is_signed_for_its_region_and_its_service() {
    let server = Server::start(vec![answer(200, "", NONE)]).await;
    let variables = [KEYS[0], KEYS[1], ("AWS_SESSION_TOKEN", "a-session")];
    client(&server.address, &variables).instances(&[filter("tag:rfm-session", "a b")]).await.unwrap();
    let request = server.asked().remove(0);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        body,
        "Action=DescribeInstances&Version=2016-11-15&Filter.1.Name=tag%3Arfm-session&Filter.1.Value.1=a%20b&MaxResults=1000"
    );
    let header = |name: &str| head.lines().find_map(|line| line.split_once(": ").filter(|(key, _)| *key == name)).unwrap().1;
    let signed = header("authorization");
    assert!(signed.contains("/eu-west-1/ec2/aws4_request, SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature="), "{signed}");
    assert_eq!(header("x-amz-security-token"), "a-session");
    assert_eq!(header("x-amz-content-sha256"), super::super::wire::sha256(body.as_bytes()));
}

/// Moto has no placement groups.
#[tokio::test]
async fn placement_groups_are_created_found_and_deleted() {
    let listed = "<DescribePlacementGroupsResponse><placementGroupSet><item><groupName>rfm-a</groupName><strategy>cluster</strategy><state>available</state><groupId>pg-1</groupId><tagSet><item><key>rfm</key><value>a</value></item></tagSet></item></placementGroupSet></DescribePlacementGroupsResponse>";
    let done = "<CreatePlacementGroupResponse><requestId>r</requestId><return>true</return></CreatePlacementGroupResponse>";
    let server = Server::start(vec![
        answer(200, "", done),
        refusal(400, "InvalidPlacementGroup.Duplicate"),
        answer(200, "", listed),
        answer(200, "", done),
        refusal(400, "InvalidPlacementGroup.Unknown"),
    ])
    .await;
    let cloud = client(&server.address, &KEYS);
    let tags = Tags::from([("rfm".to_owned(), "a".to_owned())]);
    cloud.create_placement_group("rfm-a", &tags).await.unwrap();
    cloud.create_placement_group("rfm-a", &tags).await.unwrap();
    let groups = cloud.placement_groups(&[filter("tag:rfm", "a")]).await.unwrap();
    assert_eq!(groups.iter().map(|one| (&*one.id, &one.tags)).collect::<Vec<_>>(), [("rfm-a", &tags)]);
    cloud.delete_placement_group("rfm-a").await.unwrap();
    cloud.delete_placement_group("rfm-a").await.unwrap();
    let bodies = server.asked();
    let bodies: Vec<&str> = bodies.iter().map(|one| one.split_once("\r\n\r\n").unwrap().1).collect();
    insta::assert_snapshot!(bodies.join("\n"));
}

#[tokio::test]
async fn one_client_serves_several_tasks_at_the_same_time() {
    let server = Server::start(vec![answer(200, "", NONE)]).await;
    let cloud = Arc::new(client(&server.address, &KEYS));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let cloud = cloud.clone();
            tokio::spawn(async move { cloud.instances(&[]).await.unwrap().len() })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), 0);
    }
    assert_eq!(server.asked().len(), 8);
}

#[tokio::test]
async fn when_credentials_end_is_known_and_nothing_asks_for_it() {
    let end = [KEYS[0], KEYS[1], ("AWS_CREDENTIAL_EXPIRATION", "2099-01-01T00:00:00Z")];
    let ends = client("http://127.0.0.1:1", &end).credentials_end(Timestamp::of_seconds(0)).await.unwrap();
    assert_eq!(ends, Some(CredentialsEnd { at: Timestamp::of_seconds(4_070_908_800), is_final: true }));
    assert_eq!(client("http://127.0.0.1:1", &KEYS).credentials_end(Timestamp::of_seconds(0)).await.unwrap(), None);
}

#[tokio::test]
async fn a_group_that_is_not_known_everywhere_yet_is_asked_for_again() {
    let created = "<CreateSecurityGroupResponse><requestId>r</requestId><groupId>sg-1</groupId></CreateSecurityGroupResponse>";
    let done = "<AuthorizeSecurityGroupIngressResponse><return>true</return></AuthorizeSecurityGroupIngressResponse>";
    let answers = [answer(200, "", created), refusal(400, "InvalidGroup.NotFound"), answer(200, "", done), answer(200, "", done)];
    let server = Server::start(answers.to_vec()).await;
    let tags = Tags::from([("rfm".to_owned(), "a".to_owned())]);
    assert_eq!(client(&server.address, &KEYS).create_security_group("g", "vpc-1", &tags).await.unwrap(), "sg-1");
    let actions = server.asked().into_iter().map(|request| {
        let body = request.split_once("\r\n\r\n").unwrap().1;
        body.split('&').next().unwrap().to_owned()
    });
    let (create, ingress, egress) =
        ("Action=CreateSecurityGroup", "Action=AuthorizeSecurityGroupIngress", "Action=AuthorizeSecurityGroupEgress");
    assert_eq!(actions.collect::<Vec<_>>(), [create, ingress, ingress, egress]);
}

#[tokio::test]
async fn an_object_of_many_pieces_that_s3_does_not_complete_is_an_error() {
    let failed = "<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>";
    let server = Server::start(vec![answer(200, "", failed)]).await;
    let cloud = client(&server.address, &KEYS);
    let error = s3::complete(&cloud.wire, "bench", "a", "u", &["\"a\"".to_owned()]).await.unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("S3 refuses PutObject: InternalError: We encountered an internal error. (at 127.0.0.1:"), "{said}");
    let body = server.asked().remove(0);
    assert!(
        body.ends_with("<Part><PartNumber>1</PartNumber><ETag>&quot;a&quot;</ETag></Part></CompleteMultipartUpload>"),
        "{body}"
    );
}

#[tokio::test]
async fn an_option_that_a_type_refuses_is_left_out_for_it_and_for_no_other() {
    let done = answer(200, "", "<TerminateInstancesResponse><requestId>r</requestId></TerminateInstancesResponse>");
    let refused = refusal_with("OperationNotPermitted", "SkipOsShutdown is not supported on Xen instance types.");
    let protected = refusal_with("OperationNotPermitted", "The instance 'i-3' may not be terminated. Modify its attribute.");
    let answers = [refused, done.clone(), done.clone(), done.clone(), protected.clone(), protected, done];
    let server = Server::start(answers.to_vec()).await;
    let cloud = client(&server.address, &KEYS);
    for (instance_type, id) in [("t2.micro", "i-1"), ("t2.micro", "i-2"), ("c7i.large", "i-4")] {
        cloud.terminate(instance_type, &[id.to_owned()]).await.unwrap();
    }
    // Without any option it is refused all the same: that answer counts.
    let error = cloud.terminate("c7i.large", &["i-3".to_owned()]).await.unwrap_err().to_string();
    assert!(error.contains("OperationNotPermitted: The instance 'i-3' may not be terminated."), "{error}");
    cloud.terminate("c7i.large", &["i-5".to_owned()]).await.unwrap();
    let sent = server.asked().into_iter().map(|request| request.rsplit_once("&Version=2016-11-15&").unwrap().1.to_owned());
    let (all, some) = ("&Force=true&SkipOsShutdown=true", "&Force=true");
    let expected = [("1", all), ("1", some), ("2", some), ("4", all), ("3", all), ("3", ""), ("5", all)];
    assert_eq!(sent.collect::<Vec<_>>(), expected.map(|(id, options)| format!("InstanceId.1=i-{id}{options}")));
}

#[tokio::test]
async fn a_launch_goes_on_without_an_option_that_is_not_known_there() {
    let launched = "<RunInstancesResponse><instancesSet/></RunInstancesResponse>";
    let unknown = |name: &str| refusal_with("UnknownParameter", &format!("The parameter {name} is not recognized"));
    let server = Server::start(vec![unknown("InstanceMetadataTags"), unknown("Monitoring"), answer(200, "", launched)]).await;
    let cloud = client(&server.address, &KEYS);
    let metadata = json!({ "HttpTokens": "required", "InstanceMetadataTags": "disabled" });
    let request = json!({ "InstanceType": "c7i.large", "MetadataOptions": metadata, "Monitoring": { "Enabled": true } });
    // What was tried with `DryRun` is known.
    cloud.try_run_instances(&request).await.unwrap();
    cloud.run_instances(&request).await.unwrap();
    let sent = server.asked();
    assert_eq!(sent.len(), 4);
    assert!(sent[3].ends_with("&InstanceType=c7i.large&MetadataOptions.HttpTokens=required"), "{}", sent[3]);
}

#[tokio::test]
async fn an_object_that_s3_fails_to_delete_may_be_deleted_later() {
    let failed = "<DeleteResult><Error><Key>a</Key><Code>InternalError</Code><Message>again</Message></Error></DeleteResult>";
    let server = Server::start(vec![answer(200, "", failed)]).await;
    let error = client(&server.address, &KEYS).delete("bench", &["a".to_owned()]).await.unwrap_err();
    assert!(crate::failure::may_pass(&error), "{error}");
}
