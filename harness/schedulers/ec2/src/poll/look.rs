//! One look: what EC2 lists and what agents say, of all jobs that somebody waits for.

use super::{
    region::{Region, SessionPlace},
    tracked::{Known, ReadConsole, Sight, Tracked},
};
use crate::{
    cloud::{CloudError, Filter, Instance, Object, Piece},
    decide::{
        clock::behind,
        log::{Tail, read_console},
        seen::{Console, Member, Said, State},
        status::{Act, Bucket, Launched, Step, step},
    },
    plan::Handle,
};
use futures_util::{StreamExt, future::join_all, stream};
use muster_core::job::{
    inventory::JobId,
    scheduler::{Disruption, JobStatus},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::Instant;

/// How many objects are read at once.
const AT_ONCE: usize = 16;
/// An instance that was listed, and is not, is still there for so long.
const UNLISTED: Duration = Duration::from_mins(1);
/// A console lags: for so many usual pauses there may be nothing on it.
const CONSOLE_LOOKS: u32 = 12;
/// A console that EC2 has not given for so long is not waited for.
const NOT_GIVEN: Duration = Duration::from_mins(15);
/// Of a console without the end of a log.
const LAST_LINES: usize = 30;

/// Why something was not seen.
type Why = Arc<str>;

/// Looks once, and tells what has changed; of jobs that EC2 or S3 says nothing of, why. What agents say counts without EC2, too.
pub(super) async fn look(region: &Region) {
    let jobs = region.watched();
    let sessions: BTreeSet<String> = jobs.iter().map(|job| job.job.session.to_string()).collect();
    let filter = Filter { name: "tag:rfm-session".to_owned(), values: sessions.into_iter().collect() };
    let instances = region.cloud.instances(&[filter]).await.map_err(|error| Why::from(error.to_string()));
    let number = region.looks.fetch_add(1, Ordering::Relaxed) + 1;
    let unlisted = list_objects(region, &jobs).await;
    let new = jobs.iter().flat_map(|job| {
        let objects = objects_of(region, &job.handle());
        new_statuses(job, &objects).into_iter().map(move |(rank, object)| (Arc::clone(job), rank, object))
    });
    let reads: Vec<_> = new.map(|(job, rank, object)| read_status(region, job, rank, object)).collect();
    let read = stream::iter(reads).buffer_unordered(AT_ONCE);
    let unread: BTreeMap<JobId, Why> = read.filter_map(|read| async { read.err() }).collect().await;
    let hidden = |job: &Tracked| unlisted.get(&place_of(&job.handle())).or_else(|| unread.get(&job.job.id())).cloned();
    join_all(jobs.iter().map(|job| update(region, job, (&instances, hidden(job)), number))).await;
}

/// Lists each session once. Returns where that failed.
async fn list_objects(region: &Region, jobs: &[Arc<Tracked>]) -> BTreeMap<SessionPlace, Why> {
    // What is only ended needs no objects.
    let open = jobs.iter().filter(|job| !job.is_over());
    let places: BTreeSet<SessionPlace> = open.map(|job| place_of(&job.handle())).collect();
    let mut failed = BTreeMap::new();
    for place in places {
        match region.cloud.objects(&place.0, &place.1).await {
            Ok(objects) => {
                region.objects.lock().insert(place, Arc::new(objects));
            }
            Err(error) => {
                failed.insert(place, Why::from(error.to_string()));
            }
        }
    }
    failed
}

/// Where all jobs of its session are.
fn place_of(handle: &Handle) -> SessionPlace {
    let session = handle.prefix.trim_end_matches('/').rsplit_once('/').map_or("", |(session, _)| session);
    (handle.bucket.name.clone(), format!("{session}/"))
}

fn objects_of(region: &Region, handle: &Handle) -> BTreeMap<String, Object> {
    let listed = region.objects.lock().get(&place_of(handle)).cloned().unwrap_or_default();
    // They are sorted by their keys.
    let first = listed.partition_point(|object| object.key < handle.prefix);
    let of_job =
        listed[first..].iter().map_while(|object| Some((object.key.strip_prefix(&handle.prefix)?.to_owned(), object.clone())));
    of_job.collect()
}

/// What agents have said since it was read.
fn new_statuses(job: &Tracked, objects: &BTreeMap<String, Object>) -> Vec<(u32, Object)> {
    let memory = job.memory.lock();
    let new = (0..job.handle().instances).filter_map(|rank| {
        let object = objects.get(&format!("{rank}/status"))?;
        let is_known = memory.said.get(&rank).is_some_and(|(etag, _)| *etag == object.etag);
        (!is_known).then(|| (rank, object.clone()))
    });
    new.collect()
}

/// What cannot be read is read again with the next look.
///
/// # Errors
/// Of which job it does not come, and why.
async fn read_status(region: &Region, job: Arc<Tracked>, rank: u32, object: Object) -> Result<(), (JobId, Why)> {
    let bucket = job.handle().bucket.name.clone();
    match region.cloud.get(&bucket, &object.key, 0).await {
        // It may have been written again since it was listed: its time and version are those of what was read.
        Ok(Some(Piece { bytes, etag, modified })) => match serde_json::from_slice::<Said>(&bytes) {
            Ok(said) => {
                let mut memory = job.memory.lock();
                let by = memory.behind.entry(rank).or_default();
                *by = behind(&said, modified, *by);
                let said = said.by_clock(*by);
                memory.said.insert(rank, (etag, said));
            }
            Err(error) => tracing::debug!(%error, key = object.key, "the status of an agent cannot be read"),
        },
        Ok(None) => {}
        Err(error) => return Err((job.job.id(), Why::from(error.to_string()))),
    }
    Ok(())
}

/// Decides what is known of a job, and does what has to be done. `hidden`: why S3 did not say all that its agents have said.
async fn update(region: &Region, job: &Tracked, (listed, hidden): (&Result<Vec<Instance>, Why>, Option<Why>), number: u64) {
    let handle = job.handle();
    let instances = match listed {
        Ok(listed) => of_job(job, listed),
        // As they were seen last.
        Err(_) => job.sight().borrow().instances.clone(),
    };
    if listed.is_ok() {
        region.used.saw(job.job.id(), &instances, region.now());
    }
    let unlisted = listed.as_ref().err().cloned();
    let objects = objects_of(region, &handle);
    let bucket = match hidden {
        None => Bucket::Seen { has_go: objects.contains_key("go"), has_stop: objects.contains_key("stop") },
        Some(_) => Bucket::Hidden,
    };
    let launched = Launched {
        name: handle.name.clone(),
        instances: handle.instances,
        at: handle.launched.or_else(|| instances.iter().filter_map(|one| one.launched).min()).unwrap_or_else(|| region.now()),
        boot: Duration::from_secs(handle.lifetime.boot),
        fetch: Duration::from_secs(handle.lifetime.fetch),
        lives: Duration::from_secs(handle.lifetime.expires_after()),
    };
    let is_listed = unlisted.is_none();
    let mut members = members(region, job, (&instances, is_listed), &launched);
    let mut known = job.known().borrow().clone();
    if members.is_empty() && !is_listed {
        // That EC2 lists nothing says nothing.
        known.outage = unlisted;
    } else if !known.is_over() {
        let mut taken = step(&launched, &members, bucket, region.now());
        if !job.was_ended() && act(region, job, &handle, &members, &taken.acts).await {
            // What was read may say how it ended.
            members = self::members(region, job, (&instances, is_listed), &launched);
            taken = step(&launched, &members, bucket, region.now());
            act(region, job, &handle, &members, &taken.acts).await;
        }
        known = Known { outage: unlisted.or(hidden), ..told(taken, &instances) };
    }
    if !known.is_over() && job.was_ended() && members.iter().all(|member| member.state == State::Ended) {
        let cause = "its instances were terminated by Muster".to_owned();
        known.status = Some(JobStatus::Gone { why: Disruption::Deleted, cause });
    }
    job.saw(Sight { number, members, instances, objects });
    job.tell(known);
}

/// What is told of a step: with the image that ran.
fn told(step: Step, instances: &[Instance]) -> Known {
    match step.status {
        Err(failure) => Known { failure: Some((failure.class, failure.why)), ..Known::default() },
        Ok(mut status) => {
            if let JobStatus::Ended(ending) = &mut status {
                for (exit, instance) in ending.exits.iter_mut().zip(instances) {
                    exit.image = Some(instance.image.clone());
                }
                for node in &mut ending.described {
                    let instance = instances.iter().find(|instance| instance.id == node.uid);
                    node.facts.extend(instance.map(|instance| ("image".to_owned(), instance.image.clone())));
                }
            }
            Known { status: Some(status), ..Known::default() }
        }
    }
}

/// The instances of a job, in the order of their ranks. Of several requests those of the last that has some alive.
pub(crate) fn of_job(job: &Tracked, listed: &[Instance]) -> Vec<Instance> {
    let id = job.job.identifier.as_str();
    let is_ours = |instance: &&Instance| {
        let tag = |name: &str| instance.tags.get(name).map_or("", String::as_str);
        tag("rfm") == id && tag("rfm-session") == &*job.job.session.0
    };
    let mut ours: Vec<Instance> = listed.iter().filter(is_ours).cloned().collect();
    let is_live = |instance: &Instance| state(&instance.state) != State::Ended;
    let last = ours.iter().max_by_key(|instance| (is_live(instance), instance.launched)).map(|instance| instance.token.clone());
    ours.sort_by_key(|instance| (Some(&instance.token) != last.as_ref(), instance.index));
    ours
}

/// All that is known of each rank. Where EC2 lists nothing, instances are as they were.
fn members(region: &Region, job: &Tracked, (instances, is_listed): (&[Instance], bool), launched: &Launched) -> Vec<Member> {
    let mut memory = job.memory.lock();
    if !is_listed {
        memory.seen.values_mut().for_each(|(_, at)| *at = Instant::now());
    }
    let token = instances.first().map(|first| first.token.clone());
    for instance in instances.iter().filter(|instance| Some(&instance.token) == token.as_ref()) {
        memory.seen.insert(instance.index, (instance.clone(), Instant::now()));
    }
    let is_young = region.now().since(launched.at) < UNLISTED;
    let member = |rank: u32| {
        let seen = memory.seen.get(&rank);
        let instance = seen.map(|(instance, _)| instance);
        let known_id = job.handle().ids.get(rank as usize).cloned();
        let id = instance.map(|instance| instance.id.clone()).or(known_id).unwrap_or_default();
        // What an instance of an earlier request has said is still there.
        let is_its_own = |said: &&Said| said.instance.is_empty() || id.is_empty() || said.instance == id;
        let said = memory.said.get(&rank).map(|(_, said)| said).filter(is_its_own).cloned();
        if seen.is_none() && said.is_none() {
            return None;
        }
        let state = match seen {
            Some((instance, at)) if at.elapsed() < UNLISTED => state(&instance.state),
            None if is_young || !is_listed => State::Running,
            Some(_) | None => State::Ended,
        };
        Some(Member {
            rank,
            id,
            state,
            reason: instance.and_then(|instance| instance.reason.clone()).filter(|_| state == State::Ended),
            said,
            console: memory.consoles.get(&rank).map(|read| read.console.clone()).unwrap_or_default(),
        })
    };
    (0..launched.instances).filter_map(member).collect()
}

/// The state of an instance, of the words of EC2.
pub(crate) fn state(word: &str) -> State {
    match word {
        "pending" => State::Pending,
        "running" => State::Running,
        _ => State::Ended,
    }
}

/// `true`: a console has something to say.
async fn act(region: &Region, job: &Tracked, handle: &Handle, members: &[Member], acts: &[Act]) -> bool {
    let mut has_read = false;
    for act in acts {
        let put = |name: &str, text: &str| {
            let (bucket, key, bytes) = (handle.bucket.name.clone(), format!("{}{name}", handle.prefix), text.as_bytes().to_vec());
            async move { region.cloud.put(&bucket, &key, bytes).await }
        };
        let done = match act {
            Act::Go(hosts) => put("go", hosts).await,
            Act::Stop => put("stop", "").await,
            Act::ReadConsole(rank) => {
                let member = members.iter().find(|member| member.rank == *rank);
                has_read |= match member {
                    Some(member) => read_again(region, job, handle, member).await,
                    None => false,
                };
                Ok(())
            }
        };
        if let Err(error) = done {
            tracing::debug!(%error, "an act on a job of EC2 is tried again");
        }
    }
    has_read
}

/// Reads a console, which lags. `true`: what it says counts. While EC2 does not give it, it says nothing, but not for ever.
async fn read_again(region: &Region, job: &Tracked, handle: &Handle, member: &Member) -> bool {
    let given = console(region, job, member.rank, &member.id).await;
    let mut memory = job.memory.lock();
    let read = memory.consoles.entry(member.rank).or_insert_with(|| ReadConsole {
        asked: Instant::now(),
        first: None,
        console: Console::NotRead,
        tail: None,
    });
    let Some((text, tail)) = given else {
        if read.asked.elapsed() >= NOT_GIVEN {
            read.console = Console::Lines("EC2 does not give it".to_owned());
        }
        return read.console != Console::NotRead;
    };
    let first = *read.first.get_or_insert_with(Instant::now);
    read.console = match &tail {
        Some(tail) => Console::Exit(tail.exit),
        None if first.elapsed() < handle.poll_interval * CONSOLE_LOOKS => Console::NotRead,
        None => Console::Lines(last_lines(&text)),
    };
    read.tail = tail.or(read.tail.take());
    read.console != Console::NotRead
}

/// The console of an instance, and the end of a log that it has. One that is refused is empty; `None`: EC2 does not answer.
pub(crate) async fn console(region: &Region, job: &Tracked, rank: u32, id: &str) -> Option<(String, Option<Tail>)> {
    // Only Nitro has all of it at once; others say so.
    let mut text = region.cloud.console(id, true).await;
    if matches!(&text, Err(CloudError::Refused { .. })) {
        text = region.cloud.console(id, false).await;
    }
    if let Err(error) = &text {
        tracing::debug!(%error, id, "a console is not there");
    }
    let text = match text {
        Ok(text) => text,
        Err(CloudError::Refused { status, .. }) if status < 500 => String::new(),
        Err(_) => return None,
    };
    let tail = read_console(&text, job.job.identifier.as_str(), rank);
    Some((text, tail))
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
    if last.is_empty() { "empty".to_owned() } else { last }
}
