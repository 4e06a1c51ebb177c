//! Ending the instances of a job, seeing that they have ended, and removing what it had beside them.
//!
//! ```text
//! Delete: terminate --> seen to be terminated --> groups, volumes, objects
//! Stop:   a script that failed leaves its instance for a while --> its tag is moved, the others end, the objects stay
//!         nothing is kept --> as Delete, but the objects stay until the log was read
//! ```
//! What has ended well ends its instance by itself, and is waited for.

use crate::{
    agent::parcel,
    cloud::{CloudError, Filter, Instance, Kind, Object},
    decide::{LISTED_WITHIN, UNTIL_LISTED, block::shown, seen::State, stay},
    failure, objects,
    plan::Handle,
    poll::{Asked, Region, Sight, Tracked, of_job, state},
};
use muster_core::{
    decisions::backoff::Backoff,
    error::SchedulerError,
    job::scheduler::{Disposition, Job, JobStatus, Leftovers},
};
use muster_text::{
    shell,
    time::{Timestamp, format_duration},
};
use std::{collections::BTreeMap, slice, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout_at};

/// The last state of an instance.
const TERMINATED: &str = "terminated";
/// How long instances may take to end. Bare metal takes minutes.
pub(crate) const ENDS_WITHIN: Duration = Duration::from_mins(8);
/// How long an instance that ends itself may take to begin with it.
const BY_ITSELF: Duration = Duration::from_secs(30);
/// An agent ends its script at the limit: so long after it, it has said so.
const LAST_WORD: Duration = Duration::from_secs(20);
/// An end that was asked for and has not begun is asked for again.
const AGAIN: Duration = Duration::from_mins(1);
/// For so long S3 is asked to remove objects while it fails.
const S3_WITHIN: Duration = Duration::from_mins(1);
const S3_PAUSES: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(8) };
/// How often a group is deleted that is still in use, and the pause.
const IN_USE: (u32, Duration) = (30, Duration::from_secs(2));

/// Ends a job.
pub(crate) async fn clean(region: &Arc<Region>, job: &Job, how: Disposition) -> Result<Leftovers, SchedulerError> {
    let (tracked, _watching) = region.watch(job)?;
    let handle = tracked.handle();
    let attempts = region.attempts(job);
    let was_never_there = handle.launched.is_none() && attempts.asked != Asked::Doubtful;
    let had_instances = handle.launched.is_some();
    let cleanup = Cleanup { region, job, handle: Arc::clone(&handle), tracked };
    let cleaned = match how {
        Disposition::Stop => cleanup.stop().await,
        Disposition::Delete => {
            cleanup.delete_all().await.map(|left| Leftovers { is_gone: left.is_empty(), items: left, ..Leftovers::default() })
        }
    };
    let nothing = Leftovers { is_gone: true, ..Leftovers::default() };
    let cleaned = match cleaned {
        Err(error) if CloudError::is_no_region(&error) && was_never_there => Ok(nothing),
        // EC2 refuses, or is away, and was never asked for anything.
        Err(error)
            if handle.launched.is_none() && attempts.asked == Asked::Elsewhere && was_never_asked(region, &handle).await =>
        {
            objects::remove(region, job, &handle).await.map(|()| nothing).map_err(|_| error)
        }
        cleaned => cleaned,
    };
    if had_instances && cleaned.is_ok() {
        region.freed();
    }
    if how == Disposition::Delete && cleaned.as_ref().is_ok_and(|left| left.is_gone) {
        region.forget(job);
    }
    cleaned
}

struct Cleanup<'a> {
    region: &'a Arc<Region>,
    job: &'a Job,
    handle: Arc<Handle>,
    tracked: Arc<Tracked>,
}

impl Cleanup<'_> {
    async fn delete_all(&self) -> Result<Vec<String>, SchedulerError> {
        self.delete(self.next_sight().await?, true).await
    }

    async fn delete(&self, sight: Arc<Sight>, with_objects: bool) -> Result<Vec<String>, SchedulerError> {
        let sight = self.end(sight, &|_| false).await?;
        let mut left = self.unended(&sight, &|_| false);
        if left.is_empty() {
            self.groups(&mut left).await;
        }
        for volume in &self.handle.volumes {
            if let Err(error) = self.region.cloud.delete_volume(volume).await {
                left.push(self.line(&format!("volume {volume}"), &error, &format!("ec2 delete-volume --volume-id {volume}")));
            }
        }
        if with_objects && let Err(error) = self.objects().await {
            let place = format!("s3://{}/{}", self.handle.bucket.name, self.handle.prefix);
            left.push(self.line(&format!("objects in {place}"), &error, &format!("s3 rm --recursive {place}")));
        }
        Ok(left)
    }

    /// Removes what it has in S3. An S3 that fails for a moment is asked again.
    async fn objects(&self) -> Result<(), CloudError> {
        let started = Instant::now();
        let mut pause = S3_PAUSES.first;
        loop {
            let removed = objects::remove(self.region, self.job, &self.handle).await;
            let is_final = removed.as_ref().err().is_none_or(|error| !failure::may_pass(error));
            if is_final || started.elapsed() + pause > S3_WITHIN {
                return removed;
            }
            sleep(pause).await;
            pause = S3_PAUSES.next(pause);
        }
    }

    async fn stop(&self) -> Result<Leftovers, SchedulerError> {
        let sight = self.last_word().await?;
        let kept = kept(&self.handle, &sight);
        if kept.is_empty() {
            // Nobody reads the log of what was never launched.
            let objects_go = self.tracked.let_objects_go() || self.handle.launched.is_none();
            let left = self.delete(sight, objects_go).await?;
            return Ok(Leftovers { is_gone: left.is_empty(), items: left, ..Leftovers::default() });
        }
        let keep = Duration::from_secs(self.handle.lifetime.keep);
        let until = self.region.now().plus(keep);
        let tag = ("rfm-expires", until.seconds().to_string());
        // Whatever is refused here, the others end.
        if let Err(error) = self.region.cloud.tag(&kept, (tag.0, &tag.1)).await {
            tracing::warn!(%error, case = self.job.case, "the time of kept instances was not extended: that of their launch holds");
        }
        if let Err(error) = objects::note_kept(self.region, &self.handle, until).await {
            tracing::warn!(%error, case = self.job.case, "it could not be noted that instances are kept: a sweep takes them for running ones");
        }
        // Its timer began when its agent said how the script had ended.
        let said = sight.members.iter().filter(|member| kept.contains(&member.id)).filter_map(|member| member.said.as_ref());
        let until = said.map(|said| Timestamp::of_seconds(said.t).plus(keep)).fold(until, Timestamp::min);
        let is_kept = |instance: &Instance| kept.contains(&instance.id);
        let sight = self.end(self.next_sight().await?, &is_kept).await?;
        let mut items = self.unended(&sight, &is_kept);
        if let Err(error) = objects::remove_orders(self.region, self.job, &self.handle).await {
            let place = format!("s3://{}/{}", self.handle.bucket.name, self.handle.prefix);
            let (list, bundle) = (parcel::LIST, parcel::BUNDLE);
            let command = format!("s3 rm --recursive {place} --exclude '*' --include {list} --include {bundle}");
            items.push(self.line(&format!("what may hold secrets in {place}"), &error, &command));
        }
        let region = self.aws_region();
        // The agent of the Systems Manager gets its right to answer from the role.
        let with_a_role = kept.iter().filter(|_| self.handle.instance_profile.is_some());
        let mut look: Vec<String> = with_a_role.map(|id| format!("aws ssm start-session{region} --target {id}")).collect();
        look.extend(self.logins(&kept, &sight).await);
        Ok(Leftovers { items, look, until: Some(shown(until)), ..Leftovers::default() })
    }

    /// The commands that log in to what is kept, with the key pair of the site.
    async fn logins(&self, kept: &[String], sight: &Sight) -> Vec<String> {
        let Some(key) = &self.handle.key_name else { return Vec::new() };
        let image = self.region.resolver.image(&self.handle.image).await;
        let user = image.map_or("ec2-user", |image| login_of(&image.name));
        let is_kept = |instance: &&Instance| kept.contains(&instance.id);
        let addresses = sight.instances.iter().filter(is_kept).filter_map(|instance| instance.private_ip.as_ref());
        let file = shell::quote(&format!("{key}.pem"));
        addresses.map(|address| format!("ssh -i {file} {user}@{address}")).collect()
    }

    /// What is seen of the job now; if its limit is over, when its agent has said how it ended.
    async fn last_word(&self) -> Result<Arc<Sight>, SchedulerError> {
        let mut sights = self.tracked.sight();
        if sights.borrow_and_update().number == 0 {
            // Another process has followed it.
            let _ = timeout_at(Instant::now() + 2 * self.handle.poll_interval, sights.changed()).await;
        }
        let sight = self.next_sight().await?;
        let status = self.tracked.known().borrow().status.clone();
        let Some(JobStatus::Running { since, .. }) = status else { return Ok(sight) };
        let limit = Duration::from_secs(self.handle.lifetime.limit);
        if self.region.now().since(since) < limit {
            return Ok(sight);
        }
        let by = Instant::now() + LAST_WORD + 2 * self.handle.poll_interval;
        let mut known = self.tracked.known();
        while !known.borrow_and_update().is_over() {
            if !matches!(timeout_at(by, known.changed()).await, Ok(Ok(()))) {
                break;
            }
        }
        self.next_sight().await
    }

    /// A look that began after this call, or one that has seen the end of all instances that there can be: that is for good.
    async fn next_sight(&self) -> Result<Arc<Sight>, SchedulerError> {
        let seen = Arc::clone(&self.tracked.sight().borrow());
        let attempts = self.region.attempts(self.job);
        // All requests had the same token, or each was answered.
        let are_known = attempts.requests == 1 || attempts.asked == Asked::Answered;
        let have_ended = !seen.instances.is_empty() && seen.instances.iter().all(|one| one.state == TERMINATED);
        if self.handle.launched.is_some() && are_known && self.lists_all(&seen) && have_ended {
            return Ok(seen);
        }
        let listed = self.region.listed(&self.job.session).await;
        let listed = listed.map_err(|error| failure::of_running(error, "look for the instances"))?;
        let instances = of_job(&self.tracked, &listed);
        self.region.used.saw(self.job.id(), &instances, self.region.now());
        Ok(Arc::new(Sight { instances, ..(*seen).clone() }))
    }

    /// Whether each instance that the launch has named is listed.
    fn lists_all(&self, sight: &Sight) -> bool {
        self.handle.ids.iter().all(|id| sight.instances.iter().any(|one| one.id == *id))
    }

    /// Ends all instances that are not kept, and waits until EC2 says so. `sight`: what was seen last.
    async fn end(
        &self,
        mut sight: Arc<Sight>,
        is_kept: &(dyn Fn(&Instance) -> bool + Sync),
    ) -> Result<Arc<Sight>, SchedulerError> {
        let started = Instant::now();
        if sight.instances.is_empty() && self.handle.launched.is_none() {
            let within = self.may_be_listed_within().await;
            while sight.instances.is_empty() && started.elapsed() < within {
                sleep(UNTIL_LISTED).await;
                sight = self.next_sight().await?;
            }
        }
        let mut asked: BTreeMap<String, Instant> = BTreeMap::new();
        let mut sights = self.tracked.sight();
        loop {
            let going: Vec<&Instance> = sight.instances.iter().filter(|one| one.state != TERMINATED && !is_kept(one)).collect();
            let is_young = self.handle.launched.is_some_and(|at| self.region.now().since(at) < LISTED_WITHIN);
            let all_listed = !is_young || self.lists_all(&sight);
            if (going.is_empty() && all_listed) || started.elapsed() >= ENDS_WITHIN {
                return Ok(sight);
            }
            let is_asked = |id: &String| asked.get(id).is_some_and(|at| at.elapsed() < AGAIN);
            let mut live: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for one in going.iter().filter(|one| one.state != "shutting-down" && !is_asked(&one.id)) {
                live.entry(&one.instance_type).or_default().push(one.id.clone());
            }
            let waits =
                asked.is_empty() && started.elapsed() < BY_ITSELF && stay::ends_itself(self.handle.lifetime.keep, &sight.members);
            if !live.is_empty() && !waits {
                self.tracked.end();
                let mut refused = Ok(());
                for (instance_type, ids) in live {
                    let (ended, error) = self.terminate(instance_type, ids).await;
                    asked.extend(ended.into_iter().map(|id| (id, Instant::now())));
                    if let Some(error) = error {
                        refused = Err(failure::of_running(error, "terminate the instances"));
                    }
                }
                refused?;
                self.region.look_soon();
            }
            let next = Instant::now() + self.handle.poll_interval * 4;
            if timeout_at(next, sights.changed()).await.is_ok() {
                sight = Arc::clone(&sights.borrow_and_update());
            } else {
                // The region does not answer those who look.
                sight = self.next_sight().await?;
            }
        }
    }

    /// Asks for the end of instances: for which of them EC2 takes it, and why not of others. It refuses a whole request for one that is
    /// protected against it.
    async fn terminate(&self, instance_type: &str, ids: Vec<String>) -> (Vec<String>, Option<CloudError>) {
        let cloud = &self.region.cloud;
        let error = match cloud.terminate(instance_type, &ids).await {
            Ok(()) => return (ids, None),
            Err(error) => error,
        };
        if ids.len() == 1 || !matches!(error, CloudError::Refused { .. }) || error.kind() == Kind::Throttled {
            return (Vec::new(), Some(error));
        }
        let (mut ended, mut refused) = (Vec::new(), None);
        for id in ids {
            match cloud.terminate(instance_type, slice::from_ref(&id)).await {
                Ok(()) => ended.push(id),
                Err(error) => refused = Some(error),
            }
        }
        (ended, refused)
    }

    /// For how long EC2 may still list what was launched without an answer: by this process, or one that was killed then. Each notes
    /// in the bucket that it asks.
    async fn may_be_listed_within(&self) -> Duration {
        match self.region.attempts(self.job).asked {
            Asked::Answered => return Duration::ZERO,
            Asked::Doubtful => return LISTED_WITHIN,
            Asked::Elsewhere => {}
        }
        // Without its bucket, the groups of a job can go all the same.
        let Ok(asked) = asked_note(self.region, &self.handle).await else { return LISTED_WITHIN };
        let Some(asked) = asked else { return Duration::ZERO };
        asked.modified.map_or(LISTED_WITHIN, |at| LISTED_WITHIN.saturating_sub(self.region.now().since(at)))
    }

    /// A line for each instance that has not ended.
    fn unended(&self, sight: &Sight, is_kept: &dyn Fn(&Instance) -> bool) -> Vec<String> {
        let left = sight.instances.iter().filter(|one| one.state != TERMINATED && !is_kept(one));
        let line = |one: &Instance| {
            let (id, region) = (&one.id, self.aws_region());
            format!(
                "instance {id} ({}) is {} {} after its end was asked for; `aws ec2 terminate-instances{region} --instance-ids {id}`",
                one.instance_type,
                one.state,
                format_duration(ENDS_WITHIN)
            )
        };
        left.map(line).collect()
    }

    /// Removes the groups of the job. EC2 takes its time to see that nothing uses them.
    async fn groups(&self, left: &mut Vec<String>) {
        let cloud = &self.region.cloud;
        if self.handle.needs_group() {
            let tag = |name: &str, value: &str| Filter { name: format!("tag:{name}"), values: vec![value.to_owned()] };
            let filters = [tag("rfm", self.job.identifier.as_str()), tag("rfm-session", &self.job.session.0)];
            match cloud.security_groups(&filters).await {
                Ok(groups) => {
                    for group in groups {
                        if let Err(error) = unless_in_use(|| cloud.delete_security_group(&group.id)).await {
                            let command = format!("ec2 delete-security-group --group-id {}", group.id);
                            left.push(self.line(&format!("security group {}", group.id), &error, &command));
                        }
                    }
                }
                Err(error) => {
                    let name = &self.handle.name;
                    let command = format!("ec2 describe-security-groups --filters Name=group-name,Values={name}");
                    left.push(self.line(&format!("security group {name}"), &error, &command));
                }
            }
        }
        if self.handle.in_cluster() {
            let name = &self.handle.name;
            if let Err(error) = unless_in_use(|| cloud.delete_placement_group(name)).await {
                let command = format!("ec2 delete-placement-group --group-name {name}");
                left.push(self.line(&format!("placement group {name}"), &error, &command));
            }
        }
    }

    /// What is left, why, and the command that removes it.
    fn line(&self, what: &str, error: &CloudError, command: &str) -> String {
        format!("{what} is not removed: {error}; `aws {command}{}`", self.aws_region())
    }

    fn aws_region(&self) -> String {
        format!(" --region {}", self.handle.place.region)
    }
}

/// The note in the bucket that instances are asked for. Each process that asks writes it first.
async fn asked_note(region: &Region, handle: &Handle) -> Result<Option<Object>, CloudError> {
    let note = format!("{}{}", handle.prefix, objects::ASKED);
    let listed = region.cloud.objects(&handle.bucket.name, &note).await?;
    Ok(listed.into_iter().find(|object| object.key == note))
}

/// Whether no process has asked EC2 for anything of a job, as the bucket says for certain. Groups are made before the note is written.
async fn was_never_asked(region: &Region, handle: &Handle) -> bool {
    !handle.in_cluster() && !handle.needs_group() && matches!(asked_note(region, handle).await, Ok(None))
}

async fn unless_in_use<'a>(delete: impl Fn() -> crate::cloud::Call<'a, ()>) -> Result<(), CloudError> {
    let (tries, pause) = IN_USE;
    for _ in 1..tries {
        match delete().await {
            Err(error) if matches!(error.code(), Some("DependencyViolation" | "InvalidPlacementGroup.InUse")) => {
                sleep(pause).await;
            }
            answer => return answer,
        }
    }
    delete().await
}

/// The instances that are kept.
fn kept(handle: &Handle, sight: &Sight) -> Vec<String> {
    let has_ended = |id: &str| sight.members.iter().any(|member| member.id == id && member.state == State::Ended);
    let live = sight.instances.iter().filter(|one| state(&one.state) != State::Ended && !has_ended(&one.id));
    stay::kept(handle.lifetime.keep, &sight.members, &live.map(|one| &*one.id).collect())
}

/// The user of an image, as those who make images name it.
fn login_of(image: &str) -> &'static str {
    let name = image.to_lowercase();
    let known = [("ubuntu", "ubuntu"), ("debian", "admin"), ("fedora", "fedora"), ("centos", "centos"), ("rocky", "rocky")];
    known.iter().find(|(part, _)| name.contains(part)).map_or("ec2-user", |(_, user)| user)
}
