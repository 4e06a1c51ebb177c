//! Decides the status of a job, from what EC2 and the agents say.
//!
//! ```text
//! listed -> booted -> [ready, go] -> running -> [sending] -> done | timeout      as the agent says
//!    |         |______________|_________|__________|
//!    boot timeout, launch failed        interrupted | lost | disk full | ended by somebody | shut down by itself
//! ```

use super::{
    LISTED_WITHIN,
    seen::{Console, Member, Phase, Said, State},
};
use muster_core::{
    error::Class,
    job::{
        scheduler::{Disruption, Ending, Exit, JobStatus, SectionExit},
        workload::Clock,
    },
};
use muster_text::time::{Timestamp, format_duration};
use std::time::Duration;

/// How long the instances of a case wait for each other: as long as their agents do.
const READY_WITHIN: Duration = Duration::from_mins(15);

/// How far clocks may differ: an instance whose timer should have ended it so long ago has none.
pub(crate) const OVERDUE: Duration = Duration::from_mins(10);

/// The exit status of an agent that could not run the script.
const AGENT_FAILED: i32 = 125;

/// A job that was launched.
#[derive(Debug, Clone)]
pub(crate) struct Launched {
    /// The first part of section names: the rank follows.
    pub name: String,
    pub instances: u32,
    pub at: Timestamp,
    /// The longest time from the launch to the first sign of life.
    pub boot: Duration,
    /// The longest time for fetching data sets.
    pub fetch: Duration,
    /// The time from the launch to when its own timer has ended it.
    pub lives: Duration,
}

impl Launched {
    /// A time that an agent says, which is not before its launch whatever its clock is.
    fn not_before(&self, seconds: i64) -> Timestamp {
        Timestamp::of_seconds(seconds).max(self.at)
    }

    /// An instance, for people.
    fn who(&self, member: &Member) -> String {
        if self.instances > 1 { format!("rank {} ({})", member.rank, member.id) } else { member.id.clone() }
    }

    /// When a script has begun and ended, as an agent says. What begins before its launch is moved behind it, and lasts as long.
    fn ran(&self, said: &Said) -> (Timestamp, Timestamp) {
        let end = said.ended.unwrap_or(said.t);
        let begin = said.started.unwrap_or(end).min(end);
        let started = self.not_before(begin);
        (started, started.plus(Duration::from_secs(end.abs_diff(begin))))
    }
}

/// What a look has seen of a job in S3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bucket {
    /// All that is there, with these objects or without.
    Seen { has_go: bool, has_stop: bool },
    /// It did not answer: what an agent has not said, it may have said by now. Nothing follows from its silence.
    Hidden,
}

/// A look at a job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub status: Result<JobStatus, Failure>,
    pub acts: Vec<Act>,
}

/// What has to be done. Each is harmless if it is done twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// Write `go`, with the addresses of all in the order of their ranks.
    Go(String),
    /// Write `stop`: all agents end.
    Stop,
    ReadConsole(u32),
}

/// Why a job cannot be followed to an end of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub class: Class,
    pub why: String,
}

/// What is known of a job now. `members` in the order of ranks.
pub(crate) fn step(launched: &Launched, members: &[Member], bucket: Bucket, now: Timestamp) -> Step {
    let mut acts = Vec::new();
    let status = look(launched, members, bucket, now, &mut acts);
    // Written twice, it is the same.
    let has_stop = matches!(bucket, Bucket::Seen { has_stop: true, .. });
    let is_over = status.as_ref().map_or(true, |status| matches!(status, JobStatus::Ended(_) | JobStatus::Gone { .. }));
    let first_has_ended = members.first().is_some_and(|first| first.exit().is_some());
    if launched.instances > 1 && !has_stop && (is_over || first_has_ended) && !members.is_empty() {
        acts.push(Act::Stop);
    }
    Step { status, acts }
}

fn look(
    launched: &Launched,
    members: &[Member],
    bucket: Bucket,
    now: Timestamp,
    acts: &mut Vec<Act>,
) -> Result<JobStatus, Failure> {
    let Some(first) = members.first() else { return Ok(unlisted(launched, bucket, now)) };
    if let Some(lost) = members.iter().find(|member| member.has_ended_silently() || is_taken(member)) {
        // A script may have ended, and only its console say so. Of another rank nothing more is to be learned.
        if lost.rank == first.rank && lost.console == Console::NotRead && !is_taken(lost) {
            acts.push(Act::ReadConsole(lost.rank));
            return Ok(ending_soon(launched, members));
        }
        if bucket == Bucket::Hidden && !is_taken(lost) {
            return Ok(ending_soon(launched, members));
        }
        // A worker that is gone when the first has ended takes nothing from the result.
        if lost.rank == first.rank || first.exit().is_none() {
            return gone(launched, lost);
        }
    }
    if let Some(failed) = members.iter().find(|member| member.phase() == Some(Phase::Failed)) {
        return Err(infra(format!("the agent on {} could not begin: its log says why", launched.who(failed))));
    }
    if let Some(full) = members.iter().find(|member| member.phase() == Some(Phase::Full)) {
        let who = launched.who(full);
        return Err(Failure { class: Class::Config, why: format!("the disk of {who} is full: give `volume` a larger `size`") });
    }
    if let Some(cut_off) = members.iter().find(|member| member.said.is_none() && member.console == Console::Exit(AGENT_FAILED)) {
        let who = launched.who(cut_off);
        return Err(infra(format!(
            "{who} got nothing from S3, and its log has the answer: is there a route, and may it be read?"
        )));
    }
    if first.exit().is_some() {
        let open = members.iter().filter(|member| member.exit().is_none() && member.state != State::Ended).count();
        return Ok(if open > 0 { ending_soon(launched, members) } else { ended(launched, members, now) });
    }
    let overdue = launched.lives + OVERDUE;
    if let Some(member) = members.iter().find(|member| member.state != State::Ended && now.since(launched.at) > overdue) {
        let (who, lives) = (launched.who(member), format_duration(launched.lives));
        return Err(infra(format!("{who} still runs, and its timer should have ended it {lives} after its launch")));
    }
    if let Some(silent) = silent(launched, members, now) {
        if bucket == Bucket::Hidden {
            return Ok(no_sign_yet(launched, silent));
        }
        return no_sign_of_life(launched, silent, acts);
    }
    match first.said.as_ref() {
        Some(Said { state: Phase::Running, .. }) => return Ok(running(launched, members, None, false)),
        Some(Said { state: Phase::Sending, exit, .. }) => {
            let exit = exit.map_or_else(String::new, |exit| format!(" with {exit}"));
            let what = format!("{} has ended{exit}, and sends its files", launched.who(first));
            return Ok(running(launched, members, Some(what), true));
        }
        _ => {}
    }
    waiting(launched, members, bucket, now, acts)
}

fn infra(why: String) -> Failure {
    Failure { class: Class::Infra, why }
}

/// EC2 lists nothing: at first, because it is slow.
fn unlisted(launched: &Launched, bucket: Bucket, now: Timestamp) -> JobStatus {
    if now.since(launched.at) < LISTED_WITHIN || bucket == Bucket::Hidden {
        return JobStatus::Pending { why: "EC2 does not list the instances yet".to_owned() };
    }
    JobStatus::Gone { why: Disruption::Deleted, cause: "EC2 lists none of its instances any more".to_owned() }
}

/// Spot capacity that was taken away, as the agent said.
fn is_taken(member: &Member) -> bool {
    member.phase() == Some(Phase::Interrupted)
}

/// An instance has ended without a result.
fn gone(launched: &Launched, lost: &Member) -> Result<JobStatus, Failure> {
    let (code, message) = lost.reason.as_ref().map_or(("", ""), |(code, message)| (code, message));
    let who = launched.who(lost);
    // The message mostly begins with the code.
    let because = match (code, message.strip_prefix(code)) {
        ("", _) => String::new(),
        (_, Some(_)) => format!(": {message}"),
        _ => format!(": {code} {message}"),
    };
    let gone = |why, what: &str| Ok(JobStatus::Gone { why, cause: format!("{who} {what}{because}") });
    match code {
        _ if is_taken(lost) => gone(Disruption::Preempted, "was a spot instance and was taken away"),
        "Server.SpotInstanceTermination" | "Server.SpotInstanceShutdown" => {
            gone(Disruption::Preempted, "was a spot instance and was taken away")
        }
        "Client.InstanceInitiatedShutdown" if lost.said.is_some() => {
            let what = "shut itself down without a result: its timer ended it, or the script called shutdown";
            Ok(JobStatus::Ended(Ending {
                cause: Some(format!("{who} {what}")),
                ..with_exits(launched, std::slice::from_ref(lost))
            }))
        }
        "Client.UserInitiatedShutdown" | "Client.UserInitiatedHibernate" => {
            gone(Disruption::Deleted, "was stopped or terminated by somebody else")
        }
        // Without a word of its agent it never worked: a key that may not be used, a limit of volumes, a snapshot that is gone.
        _ if lost.said.is_none() => Err(infra(format!("{who} did not start{because}"))),
        _ if code.starts_with("Client.") => gone(Disruption::Deleted, "was ended"),
        _ => gone(Disruption::Node, "was lost"),
    }
}

/// The instance that has not said anything for too long.
fn silent<'a>(launched: &Launched, members: &'a [Member], now: Timestamp) -> Option<&'a Member> {
    let too_long = now.since(launched.at) > launched.boot;
    members.iter().find(|member| too_long && member.said.is_none())
}

fn no_sign_of_life(launched: &Launched, silent: &Member, acts: &mut Vec<Act>) -> Result<JobStatus, Failure> {
    let within = format_duration(launched.boot);
    match &silent.console {
        Console::NotRead => {
            acts.push(Act::ReadConsole(silent.rank));
            Ok(no_sign_yet(launched, silent))
        }
        Console::Exit(_) => Err(infra(format!("{} says nothing to S3, and has ended: may it be written?", launched.who(silent)))),
        Console::Lines(lines) => Err(infra(format!(
            "{} gave no sign of life within {within}: has the image cloud-init, curl and a route to S3? Its console: {lines}",
            launched.who(silent)
        ))),
    }
}

fn no_sign_yet(launched: &Launched, silent: &Member) -> JobStatus {
    JobStatus::Pending { why: format!("{} gives no sign of life", launched.who(silent)) }
}

/// Until the first runs: how far they are, and `go` when all are ready.
fn waiting(
    launched: &Launched,
    members: &[Member],
    bucket: Bucket,
    now: Timestamp,
    acts: &mut Vec<Act>,
) -> Result<JobStatus, Failure> {
    let count = |phase| members.iter().filter(|member| member.phase() == Some(phase)).count();
    let (all, ready) = (launched.instances as usize, count(Phase::Ready));
    if ready == all && all > 1 && !matches!(bucket, Bucket::Seen { has_go: true, .. }) {
        let addresses = members.iter().filter_map(|member| member.said.as_ref()).map(Said::host);
        acts.push(Act::Go(addresses.collect()));
    }
    let within = launched.boot + launched.fetch + READY_WITHIN;
    if now.since(launched.at) > within && ready < all && all > 1 && bucket != Bucket::Hidden {
        let missing = members.iter().filter(|member| member.phase() != Some(Phase::Ready));
        let missing: Vec<String> = missing.map(|member| launched.who(member)).collect();
        return Err(infra(format!("not ready within {}: {}", format_duration(within), missing.join(", "))));
    }
    let why = match members.iter().filter(|member| member.said.is_none()).count() {
        0 if all == 1 => "fetches the script".to_owned(),
        0 => format!("{ready} of {all} instances are ready"),
        _ if all == 1 => "boots".to_owned(),
        silent => format!("{silent} of {all} instances boot"),
    };
    Ok(JobStatus::Pending { why })
}

fn running(launched: &Launched, members: &[Member], partly_ended: Option<String>, has_ended: bool) -> JobStatus {
    let said = members.first().and_then(|first| first.said.as_ref());
    let since = said.map_or(launched.at, |said| launched.not_before(said.started.unwrap_or(said.t)));
    let nodes = members.iter().map(Member::node).collect();
    JobStatus::Running { since, nodes, partly_ended, has_ended }
}

/// It has ended, and how is not known yet, or the others have not followed.
fn ending_soon(launched: &Launched, members: &[Member]) -> JobStatus {
    let Some(first) = members.first() else { return JobStatus::NotSeen };
    let ended = first.exit().map(|exit| format!("{} has ended with {exit}", launched.who(first)));
    running(launched, members, ended, true)
}

fn ended(launched: &Launched, members: &[Member], now: Timestamp) -> JobStatus {
    let first = members.first();
    let phase = first.and_then(Member::phase);
    let rebooted = "the instance booted a second time, and the script was lost".to_owned();
    let (started, ended) = first.and_then(|first| first.said.as_ref()).map_or((now, now), |said| launched.ran(said));
    JobStatus::Ended(Ending {
        started,
        ended,
        limit: (phase == Some(Phase::Timeout)).then_some(Clock::Run),
        cause: (phase == Some(Phase::Rebooted)).then_some(rebooted),
        ..with_exits(launched, members)
    })
}

fn with_exits(launched: &Launched, members: &[Member]) -> Ending {
    let exit = |member: &Member| SectionExit {
        section: format!("{}-{}", launched.name, member.rank),
        section_id: None,
        node: Some(member.node()),
        exit: member.exit().map_or(Exit::Unknown, Exit::Code),
        image: None,
        started: None,
        ended: None,
    };
    Ending {
        exits: members.iter().map(exit).collect(),
        nodes: members.iter().map(Member::node).collect(),
        described: members.iter().filter_map(Member::described).collect(),
        ..Ending::default()
    }
}
