//! Tests of launches that EC2 refuses, answers late, or has done before.

use super::{World, job, job_of, lost, numbered};
use crate::poll::TURN;
use crate::{
    cloud::{CloudError, CredentialsEnd, action, fake::refused},
    plan::{
        Handle,
        testing::{site, workload},
    },
};
use muster_core::{
    error::{Class, chain},
    job::{
        inventory::Scope,
        scheduler::{Disposition, Launch, Scheduler},
        workload::{Staging, Workload},
    },
};
use muster_text::time::Timestamp;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};

#[tokio::test(start_paused = true)]
async fn a_launch_puts_script_and_addresses_into_s3_and_asks_for_all_instances_once() {
    let world = World::new();
    let launched = world.launched(&numbered(0, 3)).await;
    assert_eq!(Handle::of(&launched).unwrap().ids.len(), 3);
    let state = world.fake.state();
    assert_eq!(state.requests.len(), 1);
    let request = &state.requests[0];
    assert_eq!((&request["MinCount"], &request["MaxCount"]), (&json!(3), &json!(3)));
    assert_eq!(request["SecurityGroupIds"], json!(["sg-rfm-stream-triad-aaaaaaaa"]), "a group of its own");
    let names: Vec<&str> = state.objects.keys().map(|(_, key)| key.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["asked", "boot", "bundle"]);
    let list = String::from_utf8(state.objects.iter().find(|((_, key), _)| key.ends_with("boot")).unwrap().1.clone()).unwrap();
    assert_eq!(list.lines().count(), 1 + 3 + 3 * 65);
    assert!(list.lines().any(|line| line.starts_with("2 PUT log.063 https://bench.test/ci/")), "{list}");
}

#[tokio::test(start_paused = true)]
async fn without_room_anywhere_it_waits_and_says_what_was_tried_and_others_do_not_ask_again() {
    let world = World::new();
    world.is_full();
    let Launch::NotNow { why, retry_after, created } = world.ec2.launch(&numbered(0, 2)).await.unwrap() else { panic!() };
    insta::assert_snapshot!(why, @"no capacity (c7i.8xlarge in subnet-0a1b2c3d: InsufficientInstanceCapacity; c7i.8xlarge in subnet-1b2c3d4e: InsufficientInstanceCapacity)");
    assert_eq!(retry_after, TURN);
    // What it has in S3 goes before the next attempt.
    world.ec2.cleanup(&created.unwrap(), Disposition::Delete).await.unwrap();
    assert_eq!(world.there(), [0; 5]);
    assert_eq!(world.fake.state().requests.len(), 2);

    let Launch::NotNow { created, retry_after, .. } = world.ec2.launch(&numbered(1, 2)).await.unwrap() else { panic!() };
    assert_eq!((created, world.fake.state().requests.len()), (None, 2), "the same was refused before");
    assert_eq!(retry_after, TURN);
    // Fewer may fit.
    world.ec2.launch(&numbered(2, 1)).await.unwrap();
    assert_eq!(world.fake.state().requests.len(), 4);
    // A refusal of more says nothing new of fewer.
    tokio::time::advance(Duration::from_secs(61)).await;
    world.ec2.launch(&numbered(3, 2)).await.unwrap();
    world.ec2.launch(&numbered(4, 1)).await.unwrap();
    assert_eq!(world.fake.state().requests.len(), 6);

    tokio::time::advance(Duration::from_secs(61)).await;
    world.fake.state().capacity.clear();
    world.launched(&numbered(0, 2)).await;
    let tokens: Vec<String> =
        world.fake.state().requests.iter().map(|request| request["ClientToken"].as_str().unwrap().to_owned()).collect();
    assert_eq!(tokens[6], "rfm-20261125-120000-abcdefgh-aaaaaaaa-2", "no token is used twice");
}

#[tokio::test(start_paused = true)]
async fn instances_for_which_there_is_no_room_at_their_start_are_those_of_a_refused_offer() {
    let world = World::new();
    let zones: Vec<String> = world.fake.state().subnets.iter().map(|subnet| subnet.zone.clone()).collect();
    world.fake.state().full_at_start.insert(("c7i.8xlarge".to_owned(), zones[0].clone()), 2);
    let launched = world.launched(&numbered(0, 2)).await;
    let states = |world: &World| -> Vec<String> {
        world.fake.state().instances.iter().map(|instance| format!("{} {}", instance.zone, instance.state)).collect()
    };
    let (first, second) = (&zones[0], &zones[1]);
    let ended = format!("{first} terminated");
    assert_eq!(states(&world), [ended.clone(), ended, format!("{second} pending"), format!("{second} pending")]);
    assert_eq!(Handle::of(&launched).unwrap().ids.len(), 2);
    // The next job knows of it.
    world.launched(&numbered(1, 1)).await;
    assert_eq!(world.fake.state().requests.len(), 3);
    // What ended so was never launched, nor was the one beside it that had room.
    world.fake.state().capacity.insert(("c7i.8xlarge".to_owned(), "subnet-1b2c3d4e".to_owned()), 0);
    world.fake.state().full_at_start.values_mut().for_each(|left| *left = 1);
    tokio::time::advance(Duration::from_secs(61)).await;
    let Launch::NotNow { why, .. } = world.ec2.launch(&numbered(2, 2)).await.unwrap() else { panic!() };
    assert!(why.contains("Server.InsufficientInstanceCapacity") && why.contains("subnet-1b2c3d4e"), "{why}");
    let Launch::NotNow { .. } = world.ec2.launch(&numbered(2, 2)).await.unwrap() else { panic!("it has ended") };
}

/// Which of these jobs are launched when each of them is tried once, in this order.
async fn tried(world: &World, jobs: &[u8]) -> Vec<u8> {
    let mut launched = Vec::new();
    for number in jobs {
        match world.ec2.launch(&numbered(*number, 1)).await.unwrap() {
            Launch::Launched(_) => launched.push(*number),
            Launch::NotNow { created, .. } => {
                if let Some(created) = created {
                    world.ec2.cleanup(&created, Disposition::Delete).await.unwrap();
                }
            }
            Launch::Taken { .. } => panic!(),
        }
    }
    launched
}

#[tokio::test(start_paused = true)]
async fn of_those_that_wait_for_room_one_asks_at_a_time_and_an_own_instance_that_ends_makes_room() {
    let world = World::new();
    let first = world.launched(&numbered(99, 1)).await;
    world.is_full();
    let all: Vec<u8> = (0..20).collect();
    let asked = || world.fake.state().requests.len();
    assert_eq!(tried(&world, &all).await, [0; 0]);
    assert_eq!(asked(), 3, "one job asks for both offers");
    tokio::time::advance(TURN).await;
    assert_eq!(tried(&world, &all).await, [0; 0]);
    assert_eq!(asked(), 3, "the refusal is believed");
    tokio::time::advance(Duration::from_mins(1)).await;
    assert_eq!(tried(&world, &all).await, [0; 0]);
    assert_eq!(asked(), 5, "one job asks again");
    world.fake.state().calls.clear();
    tokio::time::advance(TURN).await;
    assert_eq!(tried(&world, &all).await, [0; 0]);
    let calls = world.fake.state().calls.clone();
    assert!(calls.len() <= 2, "who waits for its turn asks nobody; the region is looked at once: {calls:?}");

    world.ec2.cleanup(&first, Disposition::Delete).await.unwrap();
    world.fake.state().capacity.clear();
    let backwards: Vec<u8> = (0..20).rev().collect();
    assert_eq!(tried(&world, &backwards).await, [7, 6, 5, 4, 3, 2, 1, 0], "one of the first is next");
}

#[tokio::test(start_paused = true)]
async fn a_zone_without_room_is_asked_once_and_the_next_one_at_once() {
    let world = World::new();
    world.fake.state().capacity.insert(("c7i.8xlarge".to_owned(), "subnet-0a1b2c3d".to_owned()), 0);
    let started = Instant::now();
    world.launched(&job()).await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    let subnets: Vec<String> =
        world.fake.state().requests.iter().map(|request| request["SubnetId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(subnets, ["subnet-0a1b2c3d", "subnet-1b2c3d4e"]);
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_too_small_for_ever_fails_at_once_and_one_that_is_used_up_waits() {
    let message = |limit: u32| format!("You have requested more vCPU capacity than your current vCPU limit of {limit} allows");
    let world = World::new();
    world.fake.refuse(refused(action::RUN_INSTANCES, "VcpuLimitExceeded", &message(32), 400));
    let error = world.ec2.launch(&numbered(0, 2)).await.unwrap_err();
    assert_eq!(error.class, Class::Config);
    insta::assert_snapshot!(chain(&error), @"launch instances: it needs 64 vCPUs and the quota of this account is 32, so that it can never run (VcpuLimitExceeded)");
    let world = World::new();
    world.fake.refuse(refused(action::RUN_INSTANCES, "VcpuLimitExceeded", &message(64), 400));
    let Launch::NotNow { why, .. } = world.ec2.launch(&numbered(1, 2)).await.unwrap() else { panic!() };
    insta::assert_snapshot!(why, @"no capacity (c7i.8xlarge in subnet-0a1b2c3d: VcpuLimitExceeded)");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_ec2_is_too_busy_for_or_whose_answer_was_lost_is_sent_again_with_its_token() {
    let world = World::new();
    for error in [
        refused(action::RUN_INSTANCES, "RequestLimitExceeded", "Request limit exceeded.", 503),
        lost(action::RUN_INSTANCES),
        refused(action::RUN_INSTANCES, "Unavailable", "", 503),
    ] {
        world.fake.refuse(error);
    }
    world.launched(&job()).await;
    let state = world.fake.state();
    assert_eq!((state.requests.len(), state.instances.len()), (1, 1), "those that were refused are not recorded");
    assert_eq!(state.calls.iter().filter(|call| **call == action::RUN_INSTANCES).count(), 4);
    assert_eq!(state.requests[0]["ClientToken"], "rfm-20261125-120000-abcdefgh-aotugiob-0");
}

#[tokio::test(start_paused = true)]
async fn what_is_launched_is_found_and_not_launched_twice() {
    let world = World::new();
    let job = job();
    let launched = world.launched(&job).await;
    let other = World::with(Arc::clone(&world.fake));
    let found = other.launched(&job).await;
    assert_eq!(Handle::of(&found).unwrap().ids, Handle::of(&launched).unwrap().ids);
    let state = world.fake.state();
    assert_eq!((state.requests.len(), state.instances.len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_is_launched_and_not_listed_yet_is_found_by_its_token() {
    let world = World::new();
    let mut options = site();
    options["poll_interval"] = "5m".into();
    let job = job_of(&workload(crate::plan::testing::plain(), options));
    // Longer than its launch waits for its start.
    world.fake.state().listed_after = 25;
    world.launched(&job).await;
    // Another process has other addresses, so that its request is another.
    let other = World::with(Arc::clone(&world.fake));
    tokio::time::advance(Duration::from_secs(3)).await;
    let began = Instant::now();
    let found = other.launched(&job).await;
    assert_eq!((world.fake.state().instances.len(), Handle::of(&found).unwrap().ids.len()), (1, 1));
    assert_eq!(world.count(action::RUN_INSTANCES), 2, "its refusal says that one is there");
    let waited = began.elapsed();
    assert!(waited > Duration::from_secs(10) && waited < Duration::from_secs(30), "{waited:?}");
    // What has ended so long ago that EC2 does not list it is not waited for without an end.
    let world = World::new();
    world.launched(&job).await;
    world.fake.state().instances.clear();
    let other = World::with(Arc::clone(&world.fake));
    tokio::time::advance(Duration::from_secs(3)).await;
    other.launched(&job).await;
    let tokens: Vec<String> = world.fake.state().requests.iter().map(|one| one["ClientToken"].to_string()).collect();
    assert_eq!((tokens.len(), tokens[0] == tokens[1], tokens[1] == tokens[2]), (3, true, false));
}

#[tokio::test(start_paused = true)]
async fn what_can_never_work_is_a_mistake_and_has_created_nothing() {
    let config = json!({ "ami": "ami-0123456789abcdef0", "instance_type": "c7i.8xlarge" });
    let world = World::new();
    let error = world.ec2.launch(&job_of(&workload(config, site()))).await.unwrap_err();
    assert_eq!((error.class, error.nothing_created), (Class::Config, true));
    insta::assert_snapshot!(chain(&error), @"image ami-0123456789abcdef0 does not exist in eu-west-1, or is not shared with this account");
    assert_eq!(world.there(), [0; 5]);
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_too_short_are_waited_for_where_others_can_come() {
    let world = World::new();
    let end = |seconds: i64, is_final| Some(CredentialsEnd { at: Timestamp::of_seconds(super::START + seconds), is_final });
    world.fake.state().credentials_end = end(600, true);
    let error = world.ec2.launch(&job()).await.unwrap_err();
    assert_eq!(error.class, Class::Config);
    insta::assert_snapshot!(chain(&error), @"the AWS credentials end in 10m, and the instances need their addresses for up to 30m: use credentials that last longer");
    world.fake.state().credentials_end = end(600, false);
    let Launch::NotNow { why, created: None, .. } = world.ec2.launch(&job()).await.unwrap() else { panic!("launched") };
    insta::assert_snapshot!(why, @"the AWS credentials end in 10m, and the instances need their addresses for up to 30m: waits for some that last longer");
    assert_eq!(world.there(), [0; 5]);
    world.fake.state().credentials_end = end(3600, false);
    world.launched(&job()).await;
}

#[tokio::test(start_paused = true)]
async fn what_s3_refuses_is_not_written_and_what_it_fails_to_do_may_be() {
    let refused = |status: u16| refused(action::PUT_OBJECT, "SlowDown", "no", status);
    // The bundle, the list, the note that instances are asked for.
    for (number, error, nothing_created) in [
        (0, refused(403), true),
        (0, refused(503), false),
        (0, lost(action::PUT_OBJECT), false),
        (1, refused(403), false),
        (2, refused(403), false),
    ] {
        let world = World::new();
        let what = format!("{number} {error}");
        world.fake.state().passes.insert(action::PUT_OBJECT, number);
        world.fake.refuse(error);
        let error = world.ec2.launch(&job()).await.unwrap_err();
        assert_eq!((error.nothing_created, world.count(action::RUN_INSTANCES)), (nothing_created, 0), "{what}");
        world.ec2.cleanup(&job(), Disposition::Delete).await.unwrap();
        assert_eq!(world.there(), [0; 5], "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_was_not_sent_is_tried_again_and_not_looked_for() {
    let (world, job) = (World::new(), job());
    let lost = CloudError::CredentialsLost("connection timed out".to_owned());
    world.fake.state().refusals.push((action::RUN_INSTANCES, lost));
    assert_eq!(world.ec2.launch(&job).await.unwrap_err().class, Class::Outage);
    let started = Instant::now();
    world.ec2.cleanup(&job, Disposition::Delete).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    world.launched(&job).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_is_packed_once_however_often_there_is_no_capacity() {
    let (world, stage) = (World::new(), tempfile::tempdir().unwrap());
    let staging = Staging { folder: "src".into(), readonly_files: Vec::new(), limit: None };
    let config = json!({ "ami": "ami-0abc1234def567890", "instance_type": "c7i.8xlarge" });
    let job = job_of(&Workload { stage: stage.path().into(), staging: Some(staging), ..workload(config, site()) });
    std::fs::write(stage.path().join("a"), "1").unwrap();
    world.is_full();
    let bundle = || {
        let known = world.fake.state();
        known.objects.iter().find(|((_, key), _)| key.ends_with("/bundle")).map(|(_, bytes)| bytes.clone())
    };
    // Files are read on a thread, for which a clock that stands still does not wait.
    tokio::time::resume();
    let Launch::NotNow { created, .. } = world.ec2.launch(&job).await.unwrap() else { panic!() };
    tokio::time::pause();
    let first = bundle();
    world.ec2.cleanup(&created.unwrap(), Disposition::Delete).await.unwrap();
    // It would be another, if it was packed again.
    std::fs::write(stage.path().join("a"), "2").unwrap();
    tokio::time::advance(Duration::from_mins(4)).await;
    world.fake.state().capacity.clear();
    world.launched(&job).await;
    assert!(first.is_some() && bundle() == first);
    assert!(!stage.path().join("rfm_job.bundle").exists(), "it is not needed any more");
}

#[tokio::test]
async fn files_are_read_before_the_launch_which_no_signal_ends() {
    let (world, source, stage) = (World::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(source.path().join("a"), "1").unwrap();
    let staging = Staging { folder: source.path().into(), readonly_files: Vec::new(), limit: None };
    let config = json!({ "ami": "ami-0abc1234def567890", "instance_type": "c7i.8xlarge" });
    let of = |folder: &std::path::Path| {
        job_of(&Workload { stage: folder.into(), staging: Some(staging.clone()), ..workload(config.clone(), site()) })
    };
    let folder = |name: &str| {
        let folder = stage.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        folder
    };
    let job = of(&folder("whole"));
    world.ec2.stage(&job, Box::pin(std::future::pending())).unwrap().done.await.unwrap();
    let waiting = std::fs::read(job.stage.join("rfm_job.bundle")).unwrap();
    // What has changed since then is not read.
    std::fs::write(job.stage.join("a"), "2").unwrap();
    world.launched(&job).await;
    let sent = |((_, key), bytes): (&(String, String), &Vec<u8>)| key.ends_with("/bundle").then(|| bytes.clone());
    assert_eq!(world.fake.state().objects.iter().find_map(sent), Some(waiting));
    let job = of(&folder("stopped"));
    assert!(world.ec2.stage(&job, Box::pin(std::future::ready(()))).unwrap().done.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn data_sets_have_time_of_their_own_in_the_life_of_an_instance() {
    let config = json!({
        "ami": "ami-0abc1234def567890", "instance_type": "c7i.8xlarge", "data": [{ "src": "s3://sets/one", "dest": "x" }],
    });
    let world = World::new();
    world.fake.put_now("sets", "one", &vec![0; 21 << 20]);
    let launched = world.launched(&job_of(&workload(config, site()))).await;
    assert_eq!(Handle::of(&launched).unwrap().lifetime.fetch, 2);
    let expires: i64 = world.fake.state().instances[0].tags["rfm-expires"].parse().unwrap();
    // 10 minutes to boot, 20 to run, 30 to be kept, 15, and one that has begun.
    assert_eq!(expires - super::START, (10 + 20 + 30 + 15 + 1) * 60);
}

#[tokio::test(start_paused = true)]
async fn what_may_be_fetched_is_in_the_most_that_a_case_costs_and_more_is_not_launched() {
    let with = |more: serde_json::Value| {
        let mut config = json!({ "ami": "ami-0abc1234def567890", "instance_type": "c7i.8xlarge" });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        workload(config, site())
    };
    let data = json!([{ "src": "s3://sets/one", "dest": "x" }]);
    let world = World::new();
    let most = |more| world.ec2.most_usage(&with(more)).instances[0].seconds;
    let without = most(json!({}));
    assert_eq!(most(json!({ "fetch_timeout": "1h" })), without, "nothing is fetched");
    assert_eq!(most(json!({ "data": data })), without + 2 * 3600);
    assert_eq!(most(json!({ "data": data, "fetch_timeout": "1m" })), without + 60);
    // 21 MiB may take two seconds.
    world.fake.put_now("sets", "one", &vec![0; 21 << 20]);
    let error = world.ec2.launch(&job_of(&with(json!({ "data": data, "fetch_timeout": "1s" })))).await.unwrap_err();
    assert_eq!((error.class, error.nothing_created, world.there()[4]), (Class::Config, true, 1));
    insta::assert_snapshot!(chain(&error), @"fetching the data sets may take 2.0s, and `fetch_timeout` of `ec2_config` is 1.0s: write a longer one, or fetch less");
    world.launched(&job_of(&with(json!({ "data": data, "fetch_timeout": "2s" })))).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_killed_at_any_step_of_a_launch_leaves_nothing_after_the_deadline() {
    let config = json!({ "ami": "ami-0abc1234def567890", "instance_type": "c7i.8xlarge", "placement": "cluster" });
    let workload = Workload { num_tasks: 2, ..workload(config, site()) };
    let job = job_of(&workload);
    let mut left_something = 0;
    for step in 0.. {
        let world = World::new();
        world.fake.state().stops_after = Some(step);
        if timeout(Duration::from_secs(1), world.ec2.launch(&job)).await.is_ok() {
            assert!(step > 6 && left_something > 3, "{step} {left_something}");
            return;
        }
        world.fake.state().stops_after = None;
        left_something += usize::from(world.there() != [0; 5]);
        // Any process that launches something removes what has expired; one that knows the job removes it at once.
        tokio::time::advance(Duration::from_secs(Handle::of(&job).unwrap().lifetime.expires_after() + 900)).await;
        let other = World { ec2: World::with(Arc::clone(&world.fake)).ec2, fake: Arc::clone(&world.fake) };
        let scope = Scope { jobs: vec![job.clone()], partitions: vec![site()] };
        for found in world.ec2.inventory(&scope).await.unwrap().found {
            let is_over = found.kept == Some(muster_core::job::inventory::Kept::Over);
            assert!(is_over || !found.what.contains("instance "), "{}", found.what);
            let left = other.ec2.cleanup(&found.job, Disposition::Delete).await.unwrap();
            assert_eq!(left.items, [""; 0], "step {step}");
        }
        assert_eq!(world.there(), [0; 5], "step {step}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_capacity_block_that_begins_later_is_waited_for_and_one_that_ends_too_early_is_a_mistake() {
    let world = World::new();
    let mut config = crate::plan::testing::plain();
    config["market"] = "capacity-block".into();
    config["capacity_reservation"] = "cr-0123456789abcdef0".into();
    let job = super::job_of(&crate::plan::testing::workload(config, crate::plan::testing::site()));
    let at = |minutes: i64| Some(Timestamp::of_seconds(super::START + minutes * 60));
    let reserve = |starts, ends| {
        world.fake.state().reservations = vec![crate::cloud::Reservation {
            id: "cr-0123456789abcdef0".to_owned(),
            state: "scheduled".to_owned(),
            zone: "eu-west-1a".to_owned(),
            starts: at(starts),
            ends: at(ends),
        }];
    };
    assert_eq!(world.ec2.launch(&job).await.unwrap_err().class, Class::Config, "there is none");
    reserve(20, 100);
    let Launch::NotNow { why, retry_after, created } = world.ec2.launch(&job).await.unwrap() else { panic!("it is too early") };
    assert_eq!((retry_after, created), (Duration::from_mins(5), None));
    assert!(why.starts_with("the capacity block cr-0123456789abcdef0 begins at 2026-"), "{why}");
    reserve(-20, 45);
    let error = world.ec2.launch(&job).await.unwrap_err();
    assert_eq!((error.class, world.there()), (Class::Config, [0; 5]), "{error}");
    reserve(-20, 100);
    world.launched(&job).await;
}
