//! Tests of what a sweep finds.

use super::{START, World, job};
use crate::{
    cloud::{Instance, Tags},
    plan::{Handle, testing::site},
};
use muster_core::{
    error::Class,
    job::{
        inventory::{Found, Kept, Scope},
        scheduler::{Disposition, Leftovers, Scheduler},
    },
};
use muster_text::{Value, time::Timestamp};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

fn instance(number: usize, expires: Option<i64>, is_ours: bool) -> Instance {
    let letters = [b'a' + u8::try_from(number / 26 % 26).unwrap(), b'a' + u8::try_from(number % 26).unwrap()];
    let identifier = format!("aaaaaa{}", String::from_utf8_lossy(&letters));
    let mut tags = Tags::from([
        ("rfm".to_owned(), identifier),
        ("rfm-session".to_owned(), "20261124-120000-abcdefgh".to_owned()),
        ("rfm-check".to_owned(), "stream".to_owned()),
    ]);
    tags.extend(is_ours.then(|| ("rfm-managed".to_owned(), "true".to_owned())));
    tags.extend(expires.map(|at| ("rfm-expires".to_owned(), at.to_string())));
    Instance {
        id: format!("i-{number:017x}"),
        index: 0,
        state: "running".to_owned(),
        reason: None,
        instance_type: "c7i.8xlarge".to_owned(),
        zone: "eu-west-1a".to_owned(),
        image: "ami-0abc1234def567890".to_owned(),
        private_ip: None,
        launched: Some(Timestamp::of_seconds(START - 7200)),
        is_spot: false,
        token: String::new(),
        tags,
    }
}

fn scope(options: Value) -> Scope {
    Scope { jobs: Vec::new(), partitions: vec![options] }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ours_or_has_not_expired_stays_whatever_the_number() {
    let world = World::new();
    for number in 0..250 {
        let is_over = number % 2 == 0;
        let expires = START + if is_over { -601 } else { -599 };
        world.fake.state().instances.push(instance(number, Some(expires), number % 5 != 0));
    }
    // The first launch of a process removes what has expired.
    world.launched(&job()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let state = world.fake.state();
    for (number, instance) in state.instances.iter().enumerate() {
        let goes = number < 250 && number % 2 == 0 && number % 5 != 0;
        assert_eq!(instance.state == "terminated", goes, "{number}: {:?}", instance.tags);
    }
}

#[tokio::test(start_paused = true)]
async fn each_of_ours_is_found_with_its_age_its_cost_and_until_when_it_stays() {
    let world = World::new();
    let stored = job();
    let running = world.launched(&stored).await;
    {
        let mut state = world.fake.state();
        state.instances.extend([
            instance(31, Some(START - 3600), true),
            instance(32, Some(START + 60), true),
            instance(33, None, true),
            instance(34, Some(START), false),
        ]);
        let tags = state.instances[1].tags.clone();
        state.groups.insert("g".to_owned(), tags.clone());
        state.volumes.push(crate::cloud::Thing { id: "vol-1".to_owned(), tags });
    }
    world.fake.put_now("bench", "ci/20261124-120000-abcdefgh/aaaaaabg/kept", b"");
    world.fake.put_now("bench", "ci/somebody/else", b"");
    let mut options = site();
    options["price_per_hour"] = json!({ "c7i.8xlarge": 1.5 });
    let gone = crate::plan::planned(&muster_core::job::workload::Workload {
        identifier: muster_core::case::Identifier::from_letters([9; 8]),
        ..crate::plan::testing::workload(crate::plan::testing::plain(), site())
    })
    .unwrap();
    let scope = Scope { jobs: vec![stored.clone(), gone.clone()], ..scope(options) };
    let looked = world.ec2.inventory(&scope).await.unwrap();
    assert_eq!(looked.absent.into_iter().collect::<Vec<_>>(), [gone.id()]);
    assert!(looked.blind.is_empty());
    let kept = |found: &Found| format!("{:?} {}", found.kept, found.line());
    insta::assert_snapshot!(looked.found.iter().map(kept).collect::<Vec<_>>().join("\n"));
    for found in looked.found.iter().filter(|found| found.kept == Some(Kept::Over)) {
        assert_eq!(world.ec2.cleanup(&found.job, Disposition::Delete).await.unwrap().items, [""; 0]);
    }
    assert_eq!(world.there()[1..4], [0, 0, 0], "the group and the volume have gone with their instance");
    assert_eq!(Handle::of(&running).unwrap().ids.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_kept_case_has_left_in_the_bucket_goes_with_the_next_session_when_its_time_is_over() {
    let world = World::new();
    // Their clocks are the same.
    let next = [World::with(world.fake.clone()), World::with(world.fake.clone())];
    let failed = world.launched(&super::numbered(0, 1)).await;
    world.set(&failed, "running", None);
    world.put(&failed, "0/log.000", b"x");
    world.says_all(&failed, 0, "done", Some(7), 1);
    world.end(&failed).await.unwrap();
    let left = world.ec2.cleanup(&failed, Disposition::Stop).await.unwrap();
    assert!(left.until.is_some(), "{left:?}");
    // Its timer ends it.
    world.set(&failed, "terminated", Some(("Client.InstanceInitiatedShutdown", "")));
    let prefix = Handle::of(&failed).unwrap().prefix.clone();
    let of_failed = || world.fake.state().objects.keys().filter(|(_, key)| key.starts_with(&prefix)).count();
    let there = of_failed();
    assert!(there > 1, "{there}");
    // What runs, or was launched without a session that ends, has no mark, and one that says nothing never expires.
    world.fake.put_now("bench", "ci/20261124-120000-abcdefgh/aaaaaaaa/0/log.000", b"x");
    world.fake.put_now("bench", "ci/20261124-120000-abcdefgh/aaaaaaab/kept", b"");
    for (number, (minutes, stays)) in [(30, there), (15, 0)].into_iter().enumerate() {
        tokio::time::sleep(Duration::from_mins(minutes)).await;
        next[number].launched(&super::numbered(u8::try_from(number + 1).unwrap(), 1)).await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(of_failed(), stays, "{minutes}");
    }
    let others = world.fake.state().objects.keys().filter(|(_, key)| key.contains("20261124")).count();
    assert_eq!(others, 2);
}

#[tokio::test(start_paused = true)]
async fn of_a_region_that_does_not_exist_nothing_is_left_and_nothing_waits_for_it() {
    let world = World::new();
    world.fake.is_nowhere();
    let job = job();
    let error = world.ec2.launch(&job).await.unwrap_err();
    assert_eq!((error.class, error.nothing_created), (Class::Config, true), "{error}");
    let started = Instant::now();
    for how in [Disposition::Stop, Disposition::Delete] {
        assert_eq!(world.ec2.cleanup(&job, how).await.unwrap(), Leftovers { is_gone: true, ..Leftovers::default() });
    }
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    let looked = world.ec2.inventory(&Scope { jobs: vec![job.clone()], ..scope(site()) }).await.unwrap();
    assert_eq!((looked.blind.len(), looked.absent.into_iter().collect::<Vec<_>>()), (0, vec![job.id()]));
    assert_eq!(looked.notes, ["AWS has no region `eu-west-1`, so that nothing was launched there (did you mean `eu-west-1`?)"]);
}

#[tokio::test]
async fn a_partition_whose_options_do_not_read_is_not_looked_at_and_that_is_said() {
    let options = json!({ "region": "eu-west-1", "bucket": "s3://bench/muster" });
    let looked = World::new().ec2.inventory(&scope(options)).await.unwrap();
    let blind: Vec<String> = looked.blind.iter().map(ToString::to_string).collect();
    let expected = "look for what is left of an EC2 partition in eu-west-1: the partition has no `subnets`, without which nothing starts on EC2";
    assert_eq!(blind, [expected]);
}
