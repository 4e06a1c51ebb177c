//! Logs of instances: whole, or with what is missing of them.

use super::{World, job, numbered};
use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::StreamExt;
use muster_core::{
    job::scheduler::{Chunk, Job, LogMarks, Scheduler},
    judge::lines::Lines,
};
use std::fmt::Write;

const SEGMENT: usize = 16 << 20;

/// What an agent writes to the console at the end.
pub(super) fn frame(world: &World, job: &Job, exit: i32, log: &[u8], from: usize) {
    let id = job.identifier.as_str();
    let mut text = format!("[  1.0] boot\nrfm-log {id} 0 exit={exit} total={} from={from}\n", log.len());
    for (number, line) in log[from..].chunks(57).enumerate() {
        let _ = writeln!(text, "rfm-log {id} 0 {number} {}", BASE64_STANDARD.encode(line));
    }
    let instance = world.fake.state().instances[0].id.clone();
    world.fake.state().console.insert(instance, text);
}

#[tokio::test(start_paused = true)]
async fn forty_mebibytes_in_three_segments_come_byte_for_byte_while_they_grow() {
    let world = World::new();
    let job = world.launched(&job()).await;
    world.set(&job, "running", None);
    world.says(&job, 0, "running", None);
    let log: Vec<u8> = (0..40_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let writes = async {
        // A log that is read while it grows, across the ends of segments.
        for size in [5_000_000, SEGMENT + 7, log.len()] {
            for (number, segment) in log[..size].chunks(SEGMENT).enumerate() {
                world.put(&job, &format!("0/log.{number:03}"), segment);
            }
            tokio::time::sleep(std::time::Duration::from_secs(6)).await;
        }
        world.says_all(&job, 0, "done", Some(0), log.len() as u64);
    };
    let ((sections, gaps), ()) = tokio::join!(world.log(&job), writes);
    assert_eq!((sections.len(), gaps), (1, Vec::new()));
    assert!(sections[0].1 == log, "{} bytes of {}", sections[0].1.len(), log.len());
}

#[tokio::test(start_paused = true)]
async fn each_instance_has_a_section_in_the_order_of_ranks() {
    let world = World::new();
    let job = world.launched(&numbered(0, 3)).await;
    world.set(&job, "running", None);
    for rank in [2, 0, 1] {
        world.put(&job, &format!("{rank}/log.000"), format!("I am {rank}").as_bytes());
        world.says_all(&job, rank, "done", Some(0), 6);
    }
    let (sections, gaps) = world.log(&job).await;
    let text = |(name, bytes): &(String, Vec<u8>)| format!("{name}: {}", String::from_utf8_lossy(bytes));
    let expected = [0, 1, 2].map(|rank| format!("rfm-stream-triad-aaaaaaaa-{rank}: I am {rank}"));
    assert_eq!((sections.iter().map(text).collect::<Vec<_>>(), gaps), (expected.to_vec(), Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn what_s3_has_not_got_comes_from_the_console_without_a_line_twice() {
    let world = World::new();
    let job = world.launched(&job()).await;
    let log: Vec<u8> = (0..100).fold(String::new(), |text, number| text + &format!("line {number}\n")).into_bytes();
    world.says(&job, 0, "running", None);
    world.put(&job, "0/log.000", &log[..400]);
    frame(&world, &job, 0, &log, 200);
    world.set(&job, "terminated", Some(("Client.InstanceInitiatedShutdown", "")));
    let (sections, gaps) = world.log(&job).await;
    assert_eq!((sections[0].1 == log, gaps), (true, Vec::new()));
    assert!(matches!(world.end(&job).await, Ok(muster_core::job::scheduler::JobStatus::Ended(_))));
}

#[tokio::test(start_paused = true)]
async fn bytes_that_nobody_has_are_a_gap_with_their_number_and_nothing_stands_in_their_place() {
    let world = World::new();
    let job = world.launched(&job()).await;
    let log = vec![b'x'; 1000];
    world.put(&job, "0/log.000", &log[..100]);
    world.says_all(&job, 0, "done", Some(0), 1000);
    let (sections, gaps) = world.log(&job).await;
    assert_eq!((sections[0].1.len(), gaps), (100, vec!["900 bytes were lost: neither S3 nor the console has them".to_owned()]));

    let world = World::new();
    let job = world.launched(&job_again()).await;
    world.put(&job, "0/log.000", &log[..100]);
    frame(&world, &job, 0, &log, 400);
    world.says_all(&job, 0, "done", Some(0), 1000);
    let (sections, gaps) = world.log(&job).await;
    assert_eq!(
        (sections[0].1.len(), gaps),
        (1000, vec!["300 bytes were lost: neither S3 nor the console has them".to_owned(), "300 before 400".to_owned(),])
    );
}

/// A slow way to S3 takes little at a time, and what has come is not asked for again.
#[tokio::test(start_paused = true)]
async fn a_log_comes_in_pieces_and_goes_on_where_it_was_interrupted() {
    let world = World::new();
    let job = world.launched(&job()).await;
    let log: Vec<u8> = (0..5_500_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    world.put(&job, "0/log.000", &log);
    world.says_all(&job, 0, "done", Some(0), log.len() as u64);
    world.end(&job).await.unwrap();
    let before = world.count(crate::cloud::action::GET_OBJECT);
    let (sections, gaps) = world.log(&job).await;
    assert_eq!((sections[0].1 == log, gaps), (true, Vec::new()));
    assert_eq!(world.count(crate::cloud::action::GET_OBJECT) - before, 6);
}

fn job_again() -> Job {
    job()
}

/// Its stream breaks after the first piece, and begins again.
#[tokio::test(start_paused = true)]
async fn who_listens_has_every_line_once_while_the_log_grows_and_after_it_begins_again() {
    let world = World::new();
    let job = world.launched(&job()).await;
    world.set(&job, "running", None);
    world.put(&job, "0/log.000", b"one\ntw");
    let (mut lines, mut heard) = (Lines::default(), Vec::new());
    for is_whole in [false, true] {
        let mut chunks = world.ec2.collect_logs(&job, LogMarks::default());
        while let Some(chunk) = chunks.next().await {
            let Chunk::Bytes { at, data, .. } = chunk.unwrap() else { continue };
            heard.push(String::from_utf8(lines.add(at, &data)).unwrap());
            if !is_whole {
                break;
            }
        }
        world.put(&job, "0/log.000", b"one\ntwo\nthree");
        world.says_all(&job, 0, "done", Some(0), 13);
    }
    heard.push(String::from_utf8(lines.end()).unwrap());
    assert_eq!(heard, ["one\n", "two\n", "three\n"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_shorter_than_asked_is_read_on() {
    let log: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    for total in [log.len() as u64, 0] {
        let world = World::new();
        let job = world.launched(&job()).await;
        world.set(&job, "running", None);
        world.put(&job, "0/log.000", &log);
        world.says_all(&job, 0, "done", Some(0), total);
        world.fake.state().most_bytes = Some(400_000);
        let (sections, gaps) = world.log(&job).await;
        assert!(sections[0].1 == log && gaps.is_empty(), "{} of {} bytes, {gaps:?}", sections[0].1.len(), log.len());
    }
    // What is listed, and never comes.
    let world = World::new();
    let job = world.launched(&job()).await;
    world.set(&job, "running", None);
    world.put(&job, "0/log.000", &log);
    world.says_all(&job, 0, "done", Some(0), log.len() as u64);
    world.fake.state().most_bytes = Some(0);
    let (_, gaps) = world.log(&job).await;
    assert_eq!(gaps, ["3000000 bytes were lost: S3 lists them, and does not give them"]);
}
