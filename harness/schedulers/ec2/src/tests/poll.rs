//! Tests of the status of jobs while they run.

use super::{START, World, job, numbered};
use crate::{
    cloud::{action, fake::refused},
    plan::Handle,
};
use muster_core::{
    error::Class,
    job::scheduler::{Disruption, Exit, Job, JobStatus, Scheduler},
};
use muster_text::time::Timestamp;
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_job_waits_boots_runs_and_ends_as_its_agent_says() {
    let world = World::new();
    let job = world.launched(&job()).await;
    let boots = world.next(&job, None).await;
    assert_eq!(boots, JobStatus::Pending { why: "boots".to_owned() });
    world.set(&job, "running", None);
    world.says(&job, 0, "running", None);
    let runs = world.next(&job, Some(&boots)).await;
    assert!(matches!(&runs, JobStatus::Running { nodes, .. } if nodes[0].ends_with("(c7i.8xlarge, eu-west-1a)")), "{runs:?}");
    world.says(&job, 0, "done", Some(7));
    let JobStatus::Ended(ending) = world.end(&job).await.unwrap() else { panic!() };
    assert_eq!((ending.exits[0].exit, ending.exits[0].image.as_deref()), (Exit::Code(7), Some("ami-0abc1234def567890")));
    assert_eq!(ending.exits[0].section, "rfm-stream-triad-aotugiob-0");
}

#[tokio::test(start_paused = true)]
async fn instances_that_are_listed_late_are_waited_for() {
    let world = World::new();
    // Longer than a launch waits for it.
    world.fake.state().listed_after = 18;
    let job = world.launched(&job()).await;
    let pending = |why: &str| JobStatus::Pending { why: why.to_owned() };
    let late = world.next(&job, None).await;
    assert_eq!(late, pending("EC2 does not list the instances yet"));
    assert_eq!(world.next(&job, Some(&late)).await, pending("boots"));
}

#[tokio::test(start_paused = true)]
async fn one_that_was_listed_and_is_not_for_a_while_is_still_there() {
    let world = World::new();
    let job = world.launched(&job()).await;
    world.set(&job, "running", None);
    world.says(&job, 0, "running", None);
    let boots = world.next(&job, None).await;
    let runs = if matches!(boots, JobStatus::Running { .. }) { boots } else { world.next(&job, Some(&boots)).await };
    let instances = std::mem::take(&mut world.fake.state().instances);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(world.next(&job, None).await, runs);
    world.fake.state().instances = instances;
    world.says(&job, 0, "done", Some(0));
    assert!(matches!(world.end(&job).await, Ok(JobStatus::Ended(_))));
}

#[tokio::test(start_paused = true)]
async fn a_script_has_begun_when_it_did_whatever_the_clock_of_its_instance_says() {
    for off in [0, 40, -40, 3 * 3600, -3 * 3600] {
        let world = World::new();
        let job = world.launched(&job()).await;
        world.set(&job, "running", None);
        let status = |state: &str, started: i64, t: i64| {
            let said = json!({ "state": state, "exit": null, "started": START + started + off, "t": START + t + off });
            let handle = Handle::of(&job).unwrap();
            let key = format!("{}0/status", handle.prefix);
            world.fake.put_now(&handle.bucket.name, &key, said.to_string().as_bytes());
            world.fake.state().modified.insert((handle.bucket.name.clone(), key), Timestamp::of_seconds(START + t + 1));
        };
        status("running", 30, 90);
        let first = world.next(&job, None).await;
        let runs = if matches!(first, JobStatus::Running { .. }) { first } else { world.next(&job, Some(&first)).await };
        let JobStatus::Running { since, .. } = &runs else { panic!("{runs:?}") };
        assert!((since.seconds() - START - 30).abs() <= 1, "{off}: {since:?}");
        // The next word of the agent changes nothing.
        status("running", 30, 93);
        tokio::time::sleep(Duration::from_secs(20)).await;
        let next = tokio::time::timeout(Duration::from_secs(20), world.next(&job, Some(&runs))).await;
        assert!(next.is_err(), "{off}: {next:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_says_while_its_objects_are_listed_is_read_with_its_own_time() {
    let world = World::new();
    let job = world.launched(&job()).await;
    world.set(&job, "running", None);
    let handle = Handle::of(&job).unwrap();
    let at = (handle.bucket.name.clone(), format!("{}0/status", handle.prefix));
    let said = |t: i64| json!({ "state": "running", "exit": null, "started": START + 30, "t": START + t }).to_string();
    world.fake.put_now(&at.0, &at.1, said(90).as_bytes());
    world.fake.state().modified.insert(at.clone(), Timestamp::of_seconds(START + 91));
    // A minute lies between what is listed and what is read.
    let next = (said(150).into_bytes(), Timestamp::of_seconds(START + 151));
    world.fake.state().written_after_listing.insert(at, next);
    let first = world.next(&job, None).await;
    let runs = if matches!(first, JobStatus::Running { .. }) { first } else { world.next(&job, Some(&first)).await };
    let JobStatus::Running { since, .. } = &runs else { panic!("{runs:?}") };
    assert_eq!(*since, Timestamp::of_seconds(START + 30));
    let read = world.count(action::GET_OBJECT);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(world.count(action::GET_OBJECT), read, "the version that was read is known");
}

#[tokio::test(start_paused = true)]
async fn a_look_that_fails_ends_no_job() {
    let world = World::new();
    let job = world.launched(&job()).await;
    let boots = world.next(&job, None).await;
    for action in [action::DESCRIBE_INSTANCES, action::LIST_OBJECTS] {
        world.fake.refuse(refused(action, "InternalError", "", 500));
        let error = world.ec2.wait(&job, Some(&boots)).await.unwrap_err();
        assert_eq!(error.class, Class::Outage, "{action}");
        // Until a look works again.
        tokio::time::sleep(Duration::from_secs(6)).await;
    }
    world.fake.refuse(refused(action::GET_OBJECT, "InternalError", "", 500));
    world.says(&job, 0, "done", Some(0));
    assert!(matches!(world.end(&job).await, Ok(JobStatus::Ended(_))));
}

/// A job that runs, and the status that says so.
async fn running(world: &World) -> (Job, JobStatus) {
    let job = world.launched(&job()).await;
    world.set(&job, "running", None);
    world.says(&job, 0, "running", None);
    let mut runs = world.next(&job, None).await;
    if !matches!(runs, JobStatus::Running { .. }) {
        runs = world.next(&job, Some(&runs)).await;
    }
    (job, runs)
}

#[tokio::test(start_paused = true)]
async fn what_s3_does_not_show_is_no_end_however_long_that_takes() {
    for action in [action::LIST_OBJECTS, action::GET_OBJECT] {
        let world = World::new();
        let (job, runs) = running(&world).await;
        (0..60).for_each(|_| world.fake.refuse(refused(action, "AccessDenied", "Access Denied", 403)));
        world.says(&job, 0, "done", Some(0));
        world.set(&job, "terminated", Some(("Client.InstanceInitiatedShutdown", "")));
        tokio::time::sleep(Duration::from_secs(10)).await;
        // Not before S3 shows it: neither what EC2 says nor an empty console is an answer.
        while !world.fake.state().refusals.is_empty() {
            let error = world.ec2.wait(&job, Some(&runs)).await.unwrap_err();
            assert_eq!(error.class, Class::Outage, "{action}: {error}");
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        tokio::time::sleep(Duration::from_secs(6)).await;
        let JobStatus::Ended(ending) = world.end(&job).await.unwrap() else { panic!("{action}") };
        assert_eq!(ending.exits[0].exit, Exit::Code(0), "{action}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_silent_for_good_ends_a_case_when_its_timer_is_over() {
    let world = World::new();
    let (job, runs) = running(&world).await;
    (0..9_000).for_each(|_| world.fake.refuse(refused(action::LIST_OBJECTS, "AccessDenied", "Access Denied", 403)));
    let lives = Duration::from_secs(Handle::of(&job).unwrap().lifetime.expires_after());
    for (after, class) in [(lives, Class::Outage), (Duration::from_mins(11), Class::Infra)] {
        tokio::time::sleep(after).await;
        assert_eq!(world.ec2.wait(&job, Some(&runs)).await.unwrap_err().class, class);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_is_one_question_to_ec2_and_one_to_s3_for_all_jobs_of_a_session() {
    let world = World::new();
    let mut jobs = Vec::new();
    for number in 0..20 {
        jobs.push(world.launched(&numbered(number, 1)).await);
        world.says(&jobs[jobs.len() - 1], 0, "running", None);
    }
    for job in &jobs {
        world.set(job, "running", None);
        world.next(job, None).await;
    }
    tokio::time::sleep(Duration::from_secs(6)).await;
    // More often while they are young.
    for (age, ticks) in [(0, 25), (40, 12), (300, 10)] {
        tokio::time::sleep(Duration::from_secs(age)).await;
        world.fake.state().calls.clear();
        tokio::time::sleep(Duration::from_secs(50)).await;
        let (ec2, s3) = (world.count(action::DESCRIBE_INSTANCES), world.count(action::LIST_OBJECTS));
        let all = world.fake.state().calls.len();
        assert_eq!((ec2, s3, all), (ticks, ticks, 2 * ticks), "{age}: what agents say is read when it changes");
    }
    for job in &jobs {
        world.says(job, 0, "done", Some(0));
        world.end(job).await.unwrap();
    }
    world.fake.state().calls.clear();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(world.fake.state().calls, [""; 0], "nobody waits for anything");
}

#[tokio::test(start_paused = true)]
async fn several_begin_when_all_are_ready_and_end_when_one_is_lost() {
    let world = World::new();
    let job = world.launched(&numbered(0, 3)).await;
    world.set(&job, "running", None);
    for rank in 0..3 {
        world.says(&job, rank, "ready", None);
    }
    world.next(&job, None).await;
    let go = world.fake.object("bench", "ci/20261125-120000-abcdefgh/aaaaaaaa/go").unwrap();
    assert_eq!(String::from_utf8(go).unwrap(), "10.0.0.0\n10.0.0.1\n10.0.0.2\n");
    world.says(&job, 0, "running", None);
    tokio::time::sleep(Duration::from_secs(6)).await;
    let lost = &world.fake.state().instances[2].id.clone();
    world.fake.set(lost, "terminated", Some(("Server.SpotInstanceTermination", "no capacity")));
    let began = tokio::time::Instant::now();
    let JobStatus::Gone { why, cause } = world.end(&job).await.unwrap() else { panic!() };
    assert_eq!((why, cause.starts_with(&format!("rank 2 ({lost})"))), (Disruption::Preempted, true), "{cause}");
    assert!(world.fake.object("bench", "ci/20261125-120000-abcdefgh/aaaaaaaa/stop").is_some());
    assert!(began.elapsed() < Duration::from_secs(15), "its console is not waited for: {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn one_that_never_speaks_ends_with_the_last_lines_of_its_console() {
    let world = World::new();
    let job = world.launched(&job()).await;
    world.set(&job, "running", None);
    let id = world.fake.state().instances[0].id.clone();
    world.fake.state().console.insert(id, "[ 1.0] Linux\ncurl: not found\n".to_owned());
    let why = world.end(&job).await.unwrap_err();
    insta::assert_snapshot!(why, @"
    i-00000000000000001 gave no sign of life within 10m: has the image cloud-init, curl and a route to S3? Its console: [ 1.0] Linux
    curl: not found
    ");
}

#[tokio::test(start_paused = true)]
async fn a_console_that_ec2_does_not_give_is_not_an_empty_one() {
    let world = World::new();
    let job = world.launched(&job()).await;
    world.set(&job, "terminated", Some(("Client.InstanceInitiatedShutdown", "it shut itself down")));
    super::logs::frame(&world, &job, 0, b"done\n", 0);
    // Longer than an empty one is believed: each look asks twice.
    (0..60).for_each(|_| world.fake.refuse(refused(action::GET_CONSOLE_OUTPUT, "InternalError", "no", 500)));
    let JobStatus::Ended(ending) = world.end(&job).await.unwrap() else { panic!() };
    assert_eq!(ending.exits[0].exit, Exit::Code(0));
}

#[tokio::test(start_paused = true)]
async fn what_another_instance_has_said_in_its_place_does_not_count() {
    let world = World::new();
    let job = job();
    let said = |instance: &str, exit: i32| {
        format!(r#"{{"instance":"{instance}","state":"done","exit":{exit},"started":1796000000,"log_bytes":0,"t":1796000060}}"#)
    };
    world.put(&job, "0/status", said("i-0fedcba9876543210", 0).as_bytes());
    let job = world.launched(&job).await;
    world.set(&job, "running", None);
    assert_eq!(world.next(&job, None).await, JobStatus::Pending { why: "boots".to_owned() });
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(world.next(&job, None).await, JobStatus::Pending { why: "boots".to_owned() });
    let own = world.fake.state().instances[0].id.clone();
    world.put(&job, "0/status", said(&own, 3).as_bytes());
    let JobStatus::Ended(ending) = world.end(&job).await.unwrap() else { panic!() };
    assert_eq!(ending.exits[0].exit, Exit::Code(3));
}

#[tokio::test(start_paused = true)]
async fn sending_and_fetching_files_is_no_time_of_the_script() {
    let workload = muster_core::job::workload::Workload {
        keep_files: vec!["out/**".to_owned()],
        ..crate::plan::testing::workload(crate::plan::testing::plain(), crate::plan::testing::site())
    };
    let world = World::new();
    let job = world.launched(&super::job_of(&workload)).await;
    world.set(&job, "running", None);
    world.says(&job, 0, "running", None);
    let mut seen = world.next(&job, None).await;
    if !matches!(seen, JobStatus::Running { .. }) {
        seen = world.next(&job, Some(&seen)).await;
    }
    assert!(matches!(seen, JobStatus::Running { has_ended: false, .. }), "{seen:?}");
    world.says(&job, 0, "sending", Some(3));
    let sends = world.next(&job, Some(&seen)).await;
    assert!(matches!(&sends, JobStatus::Running { has_ended: true, partly_ended: Some(_), .. }), "{sends:?}");
    // One that sends so fast that nobody sees it.
    world.says(&job, 0, "done", Some(3));
    tokio::time::sleep(Duration::from_secs(6)).await;
    let fetches = world.next(&job, Some(&seen)).await;
    assert!(matches!(&fetches, JobStatus::Running { has_ended: true, .. }), "{fetches:?}");
    assert!(matches!(world.next(&job, Some(&fetches)).await, JobStatus::Ended(_)));
}

#[tokio::test(start_paused = true)]
async fn what_s3_knows_ends_a_job_of_which_ec2_says_nothing() {
    let world = World::new();
    let job = world.launched(&job()).await;
    world.set(&job, "running", None);
    world.says(&job, 0, "running", None);
    let boots = world.next(&job, None).await;
    if !matches!(boots, JobStatus::Running { .. }) {
        world.next(&job, Some(&boots)).await;
    }
    (0..1000).for_each(|_| world.fake.refuse(refused(action::DESCRIBE_INSTANCES, "Unavailable", "", 503)));
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(world.ec2.wait(&job, None).await.unwrap_err().class, Class::Outage, "it runs, as far as is known");
    world.says(&job, 0, "done", Some(0));
    assert!(matches!(world.end(&job).await, Ok(JobStatus::Ended(_))));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_ec2_has_never_listed_is_not_gone_while_ec2_says_nothing() {
    let world = World::new();
    let job = world.launched(&job()).await;
    (0..1000).for_each(|_| world.fake.refuse(refused(action::DESCRIBE_INSTANCES, "Unavailable", "", 503)));
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_mins(2)).await;
        let error = world.ec2.wait(&job, None).await.unwrap_err();
        assert_eq!(error.class, Class::Outage, "{error}");
    }
}
