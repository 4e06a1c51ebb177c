//! Against what plays EC2 for the whole program: moto, with what moto lacks (tests/ec2).

use super::{KEYS, client};
use crate::cloud::{
    Cloud, CloudError,
    contract::{self, World, filter, request},
};
use muster_text::Value;
use serde_json::json;
use std::{
    env,
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
};

/// A cloud of its own, which ends with its connection.
struct Fixture {
    connection: BufReader<UnixStream>,
    is: Value,
}

/// `None`: there is none, and that was said.
fn start(what: &str) -> Option<Fixture> {
    let Some(socket) = env::var_os("MUSTER_EC2") else {
        eprintln!("SKIPPED: {what}: run it with `tests/ec2/run cargo test -p muster-ec2`");
        return None;
    };
    let mut fixture = Fixture { connection: BufReader::new(UnixStream::connect(socket).unwrap()), is: Value::Null };
    fixture.is = fixture.line();
    // Nothing here runs on the instances.
    fixture.ask(&json!({ "do": "set", "executes": false }));
    Some(fixture)
}

impl Fixture {
    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.connection.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, question: &Value) -> Value {
        writeln!(self.connection.get_mut(), "{question}").unwrap();
        let answer = self.line();
        assert_eq!(answer.get("error"), None, "{question}");
        answer
    }

    fn text(&self, key: &str) -> String {
        self.is[key].as_str().unwrap().to_owned()
    }

    fn client(&self) -> super::Aws {
        client(&self.text("endpoint"), &KEYS)
    }

    async fn world(&self) -> World {
        let subnet = self.is["subnets"][0].as_str().unwrap().to_owned();
        World {
            image: self.text("image"),
            instance_type: "c7i.8xlarge".to_owned(),
            vpc: self.client().subnets(std::slice::from_ref(&subnet)).await.unwrap().remove(0).vpc,
            subnet,
            bucket: self.text("bucket"),
            parameter: (self.text("parameter"), self.text("image")),
        }
    }
}

#[tokio::test]
async fn the_client_does_what_every_region_does() {
    let Some(mut fixture) = start("the client of EC2 and S3, with tokens and capacity") else { return };
    let (cloud, world) = (fixture.client(), fixture.world().await);
    contract::what_exists_is_found_and_nothing_else(&cloud, &world).await;
    contract::instances_are_launched_found_by_their_tags_and_ended(&cloud, &world).await;
    contract::a_group_is_created_once_found_by_its_tags_and_deleted(&cloud, &world).await;
    contract::objects_are_kept_read_from_an_offset_listed_and_deleted(&cloud, &world).await;
    contract::a_token_launches_once(&cloud, &world).await;
    contract::a_group_is_deleted_when_nothing_live_uses_it(&cloud, &world).await;
    fixture.ask(&json!({ "do": "capacity", "n": 2 }));
    contract::capacity_ends_with_all_or_none(&cloud, &world).await;
}

#[tokio::test]
async fn a_launch_whose_answer_was_lost_is_found_by_its_token() {
    let Some(mut fixture) = start("a connection that is reset after a launch") else { return };
    let (cloud, world) = (fixture.client(), fixture.world().await);
    fixture.ask(&json!({ "do": "fault", "action": "RunInstances", "reset": "after" }));
    let request = request(&world, "rfm-lost-0", 2);
    let lost = cloud.run_instances(&request).await.unwrap_err();
    assert!(matches!(lost, CloudError::Unreached { .. }), "{lost:?}");
    assert_eq!(cloud.run_instances(&request).await.unwrap().len(), 2);
    assert_eq!(cloud.instances(&[filter("tag:rfm-session", "rfm-lost-0")]).await.unwrap().len(), 2);
    let sent = fixture.ask(&json!({ "do": "requests", "action": "RunInstances" }));
    assert_eq!(sent["requests"].as_array().unwrap().len(), 2, "one for each call: {sent}");
}

#[tokio::test]
async fn a_call_that_is_throttled_is_sent_again() {
    let Some(mut fixture) = start("throttled calls") else { return };
    let cloud = fixture.client();
    fixture.ask(&json!({ "do": "fault", "action": "DescribeInstances", "code": "RequestLimitExceeded", "status": 503, "n": 2 }));
    assert_eq!(cloud.instances(&[]).await.unwrap(), []);
    assert_eq!(fixture.ask(&json!({ "do": "calls" }))["calls"]["DescribeInstances"], 3);
}
