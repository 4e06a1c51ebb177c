//! Ends: what goes by itself, what is ended, what stays.

use super::{START, World, job, numbered};
use crate::{
    cloud::{action, fake::refused},
    plan::Handle,
};
use muster_core::job::scheduler::{Disposition, Leftovers, Scheduler};
use muster_text::time::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

const BY_ITSELF: Option<(&str, &str)> = Some(("Client.InstanceInitiatedShutdown", ""));

#[tokio::test(start_paused = true)]
async fn a_job_that_passed_ends_its_instance_itself_and_everything_else_of_it_is_removed() {
    let world = World::new();
    let job = world.launched(&numbered(0, 2)).await;
    world.set(&job, "running", None);
    world.says(&job, 0, "done", Some(0));
    world.says(&job, 1, "done", Some(0));
    world.end(&job).await.unwrap();
    let ends = async {
        tokio::time::sleep(Duration::from_secs(12)).await;
        world.set(&job, "terminated", BY_ITSELF);
    };
    let (left, ()) = tokio::join!(world.ec2.cleanup(&job, Disposition::Delete), ends);
    assert_eq!(left.unwrap(), Leftovers { is_gone: true, ..Leftovers::default() });
    assert_eq!((world.there(), world.count(action::TERMINATE_INSTANCES)), ([0; 5], 0));
}

#[tokio::test(start_paused = true)]
async fn what_a_look_has_seen_terminated_is_not_listed_again() {
    for (state, lists) in [("terminated", false), ("running", true)] {
        let world = World::new();
        let job = world.launched(&numbered(0, 2)).await;
        world.set(&job, state, BY_ITSELF.filter(|_| state == "terminated"));
        (0..2).for_each(|rank| world.says(&job, rank, "done", Some(0)));
        world.end(&job).await.unwrap();
        let before = world.count(action::DESCRIBE_INSTANCES);
        world.ec2.cleanup(&job, Disposition::Delete).await.unwrap();
        assert_eq!(world.count(action::DESCRIBE_INSTANCES) > before, lists, "{state}");
        assert_eq!(world.there(), [0; 5], "{state}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_look_has_seen_terminated_is_listed_again_where_more_can_be_there() {
    // One of two is not listed for a while.
    let world = World::new();
    let two = world.launched(&numbered(0, 2)).await;
    let ids = Handle::of(&two).unwrap().ids.clone();
    tokio::time::sleep(Duration::from_mins(2)).await;
    world.fake.set(&ids[0], "terminated", BY_ITSELF);
    world.fake.state().hidden.insert(ids[1].clone(), 99);
    (0..2).for_each(|rank| world.says(&two, rank, "done", Some(0)));
    world.end(&two).await.unwrap();
    world.fake.state().hidden.clear();
    world.ec2.cleanup(&two, Disposition::Delete).await.unwrap();
    assert_eq!(world.there(), [0; 5]);

    // What a request whose answer was lost has launched is listed only when the other instance has ended.
    let world = World::new();
    (0..6).for_each(|_| world.fake.refuse(super::lost(action::RUN_INSTANCES)));
    let first = job();
    world.ec2.launch(&first).await.unwrap_err();
    let job = world.launched(&first).await;
    world.set(&job, "terminated", BY_ITSELF);
    world.says(&job, 0, "done", Some(0));
    world.end(&job).await.unwrap();
    let of_lost = {
        let mut state = world.fake.state();
        let mut late = state.instances[0].clone();
        (late.id, late.token, late.state) = ("i-0000000000000late".to_owned(), "another".to_owned(), "running".to_owned());
        state.instances.push(late.clone());
        late.id
    };
    world.ec2.cleanup(&job, Disposition::Delete).await.unwrap();
    assert_eq!(world.there(), [0; 5], "{of_lost} has ended, too");
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_end_itself_is_ended() {
    let world = World::new();
    let job = world.launched(&job()).await;
    world.set(&job, "running", None);
    world.says(&job, 0, "done", Some(0));
    world.end(&job).await.unwrap();
    let started = Instant::now();
    world.ec2.cleanup(&job, Disposition::Delete).await.unwrap();
    assert_eq!((world.there(), world.count(action::TERMINATE_INSTANCES)), ([0; 5], 1));
    assert!(started.elapsed() >= Duration::from_secs(30), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_group_that_is_still_in_use_is_deleted_when_it_is_not() {
    let world = World::new();
    let job = world.launched(&numbered(0, 2)).await;
    let in_use = || refused(action::DELETE_SECURITY_GROUP, "DependencyViolation", "resource sg has a dependent object", 400);
    (0..10).for_each(|_| world.fake.refuse(in_use()));
    let left = world.ec2.cleanup(&job, Disposition::Delete).await.unwrap();
    assert_eq!((left.items, world.there()), (Vec::new(), [0; 5]));

    let job = world.launched(&numbered(1, 2)).await;
    (0..30).for_each(|_| world.fake.refuse(in_use()));
    let left = world.ec2.cleanup(&job, Disposition::Delete).await.unwrap();
    insta::assert_snapshot!(left.items.join("\n"), @"security group sg-rfm-stream-triad-aaaaaaab is not removed: EC2 refuses DeleteSecurityGroup: DependencyViolation: resource sg has a dependent object; `aws ec2 delete-security-group --group-id sg-rfm-stream-triad-aaaaaaab --region eu-west-1`");
    assert!(!left.is_gone);
}

#[tokio::test(start_paused = true)]
async fn a_script_that_failed_keeps_its_instance_and_the_others_end() {
    let world = World::new();
    let job = world.launched(&numbered(0, 3)).await;
    world.set(&job, "running", None);
    world.says(&job, 0, "done", Some(7));
    world.says(&job, 1, "done", Some(0));
    world.says(&job, 2, "done", Some(0));
    world.end(&job).await.unwrap();
    world.log(&job).await;
    let left = world.ec2.cleanup(&job, Disposition::Stop).await.unwrap();
    assert_eq!((left.items.len(), left.is_gone), (0, false));
    assert_eq!(left.look, [""; 0], "without a role nobody can open a session, and there is no key pair");
    // A sweep removes its group and its objects, too.
    assert_eq!((left.delete.len(), left.until.as_deref()), (0, Some("2026-11-30 01:23 UTC")));
    let state = world.fake.state();
    let states: Vec<&str> = state.instances.iter().map(|instance| instance.state.as_str()).collect();
    assert_eq!(states, ["running", "terminated", "terminated"]);
    let expires: i64 = state.instances[0].tags["rfm-expires"].parse().unwrap();
    assert!((expires - START - 1800).abs() < 60, "{expires}");
}

#[tokio::test(start_paused = true)]
async fn what_is_cancelled_is_ended_at_once_and_its_log_is_what_has_come() {
    let world = World::new();
    let job = world.launched(&job()).await;
    world.set(&job, "running", None);
    world.says(&job, 0, "running", None);
    world.put(&job, "0/log.000", b"so far\n");
    world.next(&job, None).await;
    let started = Instant::now();
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.ec2.cleanup(&job, Disposition::Stop).await.unwrap()
    };
    let ((sections, _), left) = tokio::join!(world.log(&job), cancel);
    assert!(left.is_gone && started.elapsed() < Duration::from_secs(10), "{left:?} {:?}", started.elapsed());
    assert_eq!(sections[0].1, b"so far\n");
    assert_eq!(world.there(), [0; 5], "its objects have gone with its log");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_every_state_of_an_agent_leaves_nothing() {
    let goes_on = ["", "booted", "ready", "running", "sending"].map(|state| (state, None));
    let has_ended = ["full", "interrupted", "failed", "stopped"].map(|state| (state, Some(125)));
    for (state, exit) in goes_on.into_iter().chain(has_ended).chain([("done", Some(0))]) {
        let world = World::new();
        let job = world.launched(&numbered(0, 2)).await;
        if !state.is_empty() {
            world.set(&job, "running", None);
            (0..2).for_each(|rank| world.says(&job, rank, state, exit));
            let _ = world.ec2.wait(&job, None).await;
        }
        for how in [Disposition::Stop, Disposition::Delete] {
            let left = world.ec2.cleanup(&job, how).await.unwrap();
            assert_eq!((left.items.len(), left.is_gone), (0, true), "{state}: {left:?}");
        }
        assert_eq!(world.there(), [0; 5], "{state}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_launch_whose_answer_was_lost_is_looked_for_before_it_counts_as_nothing() {
    let world = World::new();
    let job = job();
    (0..6).for_each(|_| world.fake.refuse(super::lost(action::RUN_INSTANCES)));
    world.ec2.launch(&job).await.unwrap_err();
    // EC2 has taken it all the same, and lists it late.
    let other = World::with(world.fake.clone());
    world.fake.state().listed_after = 24;
    other.launched(&job).await;
    world.ec2.cleanup(&job, Disposition::Delete).await.unwrap();
    assert_eq!(world.there(), [0; 5]);
}

#[tokio::test(start_paused = true)]
async fn what_a_process_has_launched_that_was_killed_then_is_waited_for_by_who_sweeps() {
    // A launch looks 16 times whether it starts.
    for (age, listed_after, is_found) in [(0, 24, true), (50, 18, true), (70, 24, false)] {
        let world = World::new();
        let mut options = crate::plan::testing::site();
        options["poll_interval"] = "10m".into();
        let job = super::job_of(&crate::plan::testing::workload(crate::plan::testing::plain(), options));
        world.fake.state().listed_after = listed_after;
        // Its answer is stored nowhere.
        world.launched(&job).await;
        let handle = Handle::of(&job).unwrap();
        let written = |name: &str, age: i64| {
            let key = format!("{}{name}", handle.prefix);
            world.fake.state().modified.insert((handle.bucket.name.clone(), key), Timestamp::of_seconds(START - age));
        };
        // Groups and answers that were lost took their time between both.
        written("boot", 600);
        written("asked", age);
        let other = World::with(world.fake.clone());
        other.ec2.cleanup(&job, Disposition::Delete).await.unwrap();
        assert_eq!(world.there()[0], usize::from(!is_found), "{age}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_ec2_has_refused_is_not_waited_for() {
    let world = World::new();
    world.is_full();
    let planned = job();
    world.ec2.launch(&planned).await.unwrap();
    let handle = Handle::of(&planned).unwrap();
    let asked = (handle.bucket.name.clone(), format!("{}asked", handle.prefix));
    world.fake.state().modified.insert(asked, Timestamp::of_seconds(START));
    let started = Instant::now();
    world.ec2.cleanup(&planned, Disposition::Delete).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_was_never_asked_for_is_not_waited_for_by_who_sweeps() {
    let world = World::new();
    let planned = job();
    let handle = Handle::of(&planned).unwrap();
    let list = (handle.bucket.name.clone(), format!("{}boot", handle.prefix));
    world.put(&planned, "boot", b"x");
    world.fake.state().modified.insert(list, Timestamp::of_seconds(START));
    let started = Instant::now();
    world.ec2.cleanup(&planned, Disposition::Delete).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(world.there(), [0; 5]);
}

#[tokio::test(start_paused = true)]
async fn of_a_case_whose_instance_is_kept_no_secret_stays_in_the_bucket_and_all_that_is_read_later() {
    let world = World::new();
    let job = world.launched(&job()).await;
    world.set(&job, "running", None);
    for name in ["go", "stop", "0/outputs", "0/log.000"] {
        world.put(&job, name, b"x");
    }
    world.says_all(&job, 0, "done", Some(7), 1);
    world.end(&job).await.unwrap();
    let left = world.ec2.cleanup(&job, Disposition::Stop).await.unwrap();
    assert_eq!((left.items.len(), left.until.is_some()), (0, true));
    let names: Vec<String> = world.fake.state().objects.keys().map(|(_, key)| key.clone()).collect();
    let prefix = &Handle::of(&job).unwrap().prefix;
    assert_eq!(
        names,
        ["0/log.000", "0/outputs", "0/status", "asked", "go", "kept", "stop"].map(|name| format!("{prefix}{name}"))
    );
    // Its log can still be read.
    assert_eq!(world.log(&job).await.0[0].1, b"x");
}

#[tokio::test(start_paused = true)]
async fn one_that_has_ended_before_it_is_listed_is_waited_for() {
    let world = World::new();
    world.fake.state().listed_after = 3;
    let job = world.launched(&job()).await;
    world.set(&job, "running", None);
    world.says(&job, 0, "done", Some(0));
    world.end(&job).await.unwrap();
    world.ec2.cleanup(&job, Disposition::Delete).await.unwrap();
    assert_eq!(world.there(), [0; 5]);
}

#[tokio::test(start_paused = true)]
async fn what_its_instances_were_used_for_is_known_after_its_cleanup() {
    let world = World::new();
    let mut options = crate::plan::testing::site();
    options["price_per_hour"] = serde_json::json!({ "c7i.8xlarge": 1.5 });
    let mut workload = crate::plan::testing::workload(crate::plan::testing::plain(), options);
    workload.num_tasks = 2;
    let job = world.launched(&super::job_of(&workload)).await;
    world.set(&job, "running", None);
    world.says(&job, 0, "done", Some(0));
    world.says(&job, 1, "done", Some(0));
    tokio::time::sleep(Duration::from_mins(10)).await;
    world.end(&job).await.unwrap();
    world.set(&job, "terminated", BY_ITSELF);
    world.ec2.cleanup(&job, Disposition::Delete).await.unwrap();
    let usage = world.ec2.usage(&job);
    let time = &usage.instances[0];
    assert_eq!((usage.instances.len(), time.kind.as_str(), time.per_hour), (1, "c7i.8xlarge", Some(1.5)));
    assert!((1200..1260).contains(&time.seconds), "two instances for ten minutes: {}", time.seconds);
    assert!(usage.cost().is_some_and(|cost| (0.5..0.53).contains(&cost)), "{usage}");
    // Boot, limit, keep and what is added for ending: 75 minutes of both.
    assert_eq!(world.ec2.most_usage(&workload).to_string(), "2.50 instance-hours of c7i.8xlarge, 3.75 USD");
    let mut dearer = workload;
    dearer.own["ec2_config"]["instance_type"] = serde_json::json!(["c7i.8xlarge", "c7a.8xlarge"]);
    assert_eq!(world.ec2.most_usage(&dearer).to_string(), "2.50 instance-hours of c7a.8xlarge, price unknown");
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_logged_in_to_with_the_key_of_the_site() {
    let world = World::new();
    world.fake.state().images[0].name = "ubuntu/images/hvm-ssd/ubuntu-noble-24.04-amd64-server-20261101".to_owned();
    let mut options = crate::plan::testing::site();
    options["key_name"] = "bench team".into();
    options["instance_profile"] = "host".into();
    let planned = super::job_of(&crate::plan::testing::workload(crate::plan::testing::plain(), options));
    let job = world.launched(&planned).await;
    world.set(&job, "running", None);
    world.says(&job, 0, "done", Some(7));
    world.end(&job).await.unwrap();
    let left = world.ec2.cleanup(&job, Disposition::Stop).await.unwrap();
    let address = world.fake.state().instances[0].private_ip.clone().unwrap();
    let id = Handle::of(&job).unwrap().ids[0].clone();
    assert_eq!(left.look[0], format!("aws ssm start-session --region eu-west-1 --target {id}"));
    assert_eq!(left.look[1], format!("ssh -i 'bench team.pem' ubuntu@{address}"));
    assert_eq!(world.fake.state().requests[0]["KeyName"], "bench team");
}

#[tokio::test(start_paused = true)]
async fn one_of_several_that_is_listed_late_is_ended_too_and_soon() {
    let world = World::new();
    let job = world.launched(&numbered(0, 2)).await;
    let late = Handle::of(&job).unwrap().ids[1].clone();
    world.fake.state().hidden.insert(late, 3);
    let started = Instant::now();
    world.ec2.cleanup(&job, Disposition::Delete).await.unwrap();
    assert_eq!((world.there(), world.count(action::TERMINATE_INSTANCES)), ([0; 5], 2));
    assert!(started.elapsed() < Duration::from_mins(1), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_end_that_does_not_begin_is_asked_for_again() {
    let world = World::new();
    let job = world.launched(&job()).await;
    world.set(&job, "running", None);
    let id = world.fake.state().instances[0].id.clone();
    let revive = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        world.fake.set(&id, "running", None);
    };
    let (left, ()) = tokio::join!(world.ec2.cleanup(&job, Disposition::Delete), revive);
    assert!(left.unwrap().is_gone);
}

#[tokio::test(start_paused = true)]
async fn whatever_is_refused_for_the_one_that_is_kept_the_others_end() {
    for action in [action::CREATE_TAGS, action::PUT_OBJECT] {
        let world = World::new();
        let job = world.launched(&numbered(0, 3)).await;
        world.set(&job, "running", None);
        for (rank, exit) in [(0, 7), (1, 0), (2, 0)] {
            world.says(&job, rank, "done", Some(exit));
        }
        // What its end writes is not what is refused.
        world.put(&job, "stop", b"");
        world.end(&job).await.unwrap();
        world.fake.refuse(refused(action, "UnauthorizedOperation", "no", 403));
        let left = world.ec2.cleanup(&job, Disposition::Stop).await.unwrap();
        assert_eq!((left.until.is_some(), world.there()[0]), (true, 1), "{action}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_objects_of_a_job_are_removed_whatever_they_are_called_and_none_of_others() {
    let world = World::new();
    let job = world.launched(&job()).await;
    world.put(&job, "3/metrics.000", b"x");
    let other = Handle::of(&job).unwrap().prefix.replace("aotugiob", "aotugiobx");
    world.fake.put_now("bench", &format!("{other}boot"), b"of another");
    world.ec2.cleanup(&job, Disposition::Delete).await.unwrap();
    assert_eq!(world.there(), [0, 0, 0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn what_a_refused_launch_has_put_in_the_bucket_is_removed() {
    let world = World::new();
    let planned = job();
    world.fake.refuse(refused(action::RUN_INSTANCES, "InvalidKeyPair.NotFound", "no", 400));
    let error = world.ec2.launch(&planned).await.unwrap_err();
    assert!(!error.nothing_created && world.there()[4] > 0, "{error}: {:?}", world.there());
    assert!(world.ec2.cleanup(&planned, Disposition::Stop).await.unwrap().is_gone);
    assert_eq!(world.there(), [0; 5]);
}

#[tokio::test(start_paused = true)]
async fn objects_are_removed_when_s3_works_again_within_a_minute() {
    for (action, code, status, times, left) in [
        (action::DELETE_OBJECTS, "InternalError", 500, 4, 0),
        (action::LIST_OBJECTS, "SlowDown", 503, 4, 0),
        (action::DELETE_OBJECTS, "InternalError", 500, 50, 1),
        (action::DELETE_OBJECTS, "AccessDenied", 403, 1, 1),
    ] {
        let world = World::new();
        let job = world.launched(&job()).await;
        world.set(&job, "terminated", BY_ITSELF);
        world.ec2.cleanup(&job, Disposition::Stop).await.unwrap();
        world.put(&job, "0/log.000", b"x");
        (0..times).for_each(|_| world.fake.refuse(refused(action, code, "no", status)));
        let cleaned = world.ec2.cleanup(&job, Disposition::Delete).await.unwrap();
        assert_eq!((cleaned.items.len(), cleaned.is_gone), (left, left == 0), "{action} {code} {times}: {cleaned:?}");
    }
}

/// EC2 refuses a whole request for one of its instances.
#[tokio::test(start_paused = true)]
async fn an_instance_that_is_protected_does_not_keep_the_others_running() {
    let world = World::new();
    let job = world.launched(&numbered(0, 3)).await;
    let protected = || refused(action::TERMINATE_INSTANCES, "OperationNotPermitted", "disableApiTermination is set", 400);
    // All at once, and then the first.
    (0..2).for_each(|_| world.fake.refuse(protected()));
    let cleaned = world.ec2.cleanup(&job, Disposition::Delete).await;
    let states: Vec<String> = world.fake.state().instances.iter().map(|instance| instance.state.clone()).collect();
    assert_eq!(states, ["running", "terminated", "terminated"], "{cleaned:?}");
    assert!(cleaned.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_was_never_asked_for_is_not_cleaned_up() {
    let away = || refused(action::DESCRIBE_INSTANCES, "RequestExpired", "Request has expired.", 400);
    for is_asked in [false, true] {
        let world = World::new();
        (0..1000).for_each(|_| world.fake.refuse(away()));
        world.ec2.launch(&job()).await.unwrap_err();
        if is_asked {
            // By another process, which was killed.
            world.put(&job(), crate::objects::ASKED, b"");
        }
        let cleaned = world.ec2.cleanup(&job(), Disposition::Delete).await;
        assert_eq!(cleaned.is_ok_and(|left| left.is_gone), !is_asked, "asked: {is_asked}");
    }
    // Its groups may be there.
    let world = World::new();
    (0..1000).for_each(|_| world.fake.refuse(away()));
    let cleaned = world.ec2.cleanup(&numbered(0, 2), Disposition::Delete).await;
    assert!(!cleaned.is_ok_and(|left| left.is_gone));
}
