//! Tests of the status of a job after observations.

use crate::decide::{
    seen::{Console, Member, Phase, Said, State},
    status::{Act, Bucket, Launched, Step, step},
};
use muster_core::job::{
    scheduler::{Disruption, Exit, JobStatus},
    workload::Clock,
};
use muster_text::time::Timestamp;
use std::time::Duration;

fn launched(instances: u32) -> Launched {
    Launched {
        name: "rfm-x-aotugiob".into(),
        instances,
        at: Timestamp::of_seconds(1000),
        boot: Duration::from_mins(10),
        fetch: Duration::ZERO,
        lives: Duration::from_mins(75),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it stands for the field")]
fn said(state: Phase, exit: Option<i32>) -> Option<Said> {
    let (instance_type, zone) = ("c7i.large".to_owned(), "eu-west-1a".to_owned());
    Some(Said {
        instance: "i-0".to_owned(),
        state,
        exit,
        ip: "10.0.0.1".into(),
        key: String::new(),
        instance_type,
        zone,
        kernel: "6.1".to_owned(),
        microcode: "0x1".to_owned(),
        started: exit.map(|_| 1100),
        ended: None,
        log_bytes: 4,
        outputs: super::super::seen::Outputs::None,
        t: 1200,
    })
}

fn member(rank: u32, state: State, said: Option<Said>) -> Member {
    let said = said.map(|said| Said { ip: format!("10.0.0.1{rank}"), ..said });
    Member { rank, id: format!("i-{rank}"), state, said, ..Member::default() }
}

/// An instance that has ended with nothing on its console.
fn lost(rank: u32, code: &str, said: Option<Said>) -> Member {
    let console = Console::Lines(String::new());
    Member { reason: Some((code.to_owned(), "why".to_owned())), console, ..member(rank, State::Ended, said) }
}

/// S3 has said all, and has neither `go` nor `stop`.
const SEEN: Bucket = Bucket::Seen { has_go: false, has_stop: false };

fn at(members: &[Member], seconds: i64) -> Step {
    look(members, SEEN, seconds)
}

fn look(members: &[Member], bucket: Bucket, seconds: i64) -> Step {
    let instances = u32::try_from(members.len().max(1)).unwrap();
    step(&launched(instances), members, bucket, Timestamp::of_seconds(1000 + seconds))
}

/// A look in one line.
fn told(step: &Step) -> String {
    let status = match &step.status {
        Ok(JobStatus::NotSeen) => "not seen".to_owned(),
        Ok(JobStatus::Pending { why }) => format!("pending: {why}"),
        Ok(JobStatus::Running { has_ended, .. }) => if *has_ended { "ending" } else { "running" }.to_owned(),
        Ok(JobStatus::Ended(ending)) => {
            let exits: Vec<Exit> = ending.exits.iter().map(|exit| exit.exit).collect();
            format!("ended {exits:?}{}", ending.cause.as_ref().map_or_else(String::new, |cause| format!(": {cause}")))
        }
        Ok(JobStatus::Gone { why, cause }) => format!("gone {why}: {cause}"),
        Err(failure) => format!("error {:?}: {}", failure.class, failure.why),
    };
    let acts: String = step.acts.iter().map(|act| format!(" -> {act:?}")).collect::<Vec<_>>().concat();
    status + &acts
}

#[test]
fn one_instance_is_followed_from_its_launch_to_its_end() {
    use Phase::{Booted, Done, Failed, Full, Interrupted, Rebooted, Running as Runs, Sending, Timeout};
    use State::{Ended, Pending, Running};
    let one = |state, said| vec![member(0, state, said)];
    let read = |console| vec![Member { console, ..member(0, Ended, said(Runs, None)) }];
    let rows: Vec<(Vec<Member>, i64)> = vec![
        (vec![], 5),
        (vec![], 61),
        (one(Pending, None), 5),
        (one(Running, None), 599),
        (one(Running, None), 601),
        (vec![Member { console: Console::Lines("kernel panic".into()), ..member(0, Running, None) }], 601),
        (vec![Member { console: Console::Exit(125), ..member(0, Running, None) }], 601),
        (one(Running, said(Booted, None)), 30),
        (one(Running, said(Runs, None)), 60),
        (one(Running, said(Done, Some(0))), 90),
        (one(Ended, said(Done, Some(0))), 90),
        (one(Running, said(Done, Some(7))), 90),
        (one(Running, said(Timeout, Some(124))), 90),
        (one(Running, said(Rebooted, Some(125))), 90),
        (one(Running, said(Failed, Some(125))), 90),
        (one(Running, said(Interrupted, Some(125))), 90),
        (one(Ended, said(Runs, None)), 90),
        (read(Console::Exit(3)), 90),
        (vec![lost(0, "Server.SpotInstanceTermination", said(Runs, None))], 90),
        (vec![lost(0, "Server.InternalError", said(Runs, None))], 90),
        (vec![lost(0, "Server.InternalError", None)], 90),
        (vec![lost(0, "Client.VolumeLimitExceeded", None)], 90),
        (vec![lost(0, "Client.InstanceInitiatedShutdown", said(Runs, None))], 90),
        (vec![lost(0, "Client.InstanceInitiatedShutdown", None)], 90),
        (vec![lost(0, "Client.UserInitiatedShutdown", said(Runs, None))], 90),
        (vec![lost(0, "", said(Runs, None))], 90),
        (one(Running, said(Sending, Some(7))), 90),
        (one(Running, said(Full, Some(1))), 90),
        (one(Running, said(Runs, None)), 5099),
        (one(Running, said(Runs, None)), 5101),
        (one(Running, said(Sending, Some(0))), 5101),
        (one(Ended, said(Done, Some(0))), 5101),
    ];
    let text: Vec<String> = rows.iter().map(|(members, seconds)| told(&at(members, *seconds))).collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn while_s3_is_hidden_nothing_follows_from_the_silence_of_an_agent() {
    use Phase::{Booted, Done, Interrupted, Ready, Running as Runs};
    use State::{Ended, Running};
    let lost = |said| vec![lost(0, "Client.InstanceInitiatedShutdown", said)];
    let console = |console| vec![Member { console, ..member(0, Ended, said(Runs, None)) }];
    let dumb = Member { console: Console::Lines("kernel panic".into()), ..member(0, Running, None) };
    let rows: Vec<(Vec<Member>, i64)> = vec![
        (vec![], 61),
        (vec![dumb], 601),
        (lost(said(Runs, None)), 90),
        (lost(None), 90),
        (console(Console::NotRead), 90),
        (vec![member(0, Running, said(Ready, None)), self::lost(1, "Server.InternalError", said(Ready, None))], 90),
        (vec![member(0, Running, said(Ready, None)), member(1, Running, said(Booted, None))], 1501),
        // What was said counts.
        (console(Console::Exit(3)), 90),
        (vec![member(0, Ended, said(Done, Some(0)))], 90),
        (vec![member(0, Ended, said(Interrupted, Some(125)))], 90),
        (vec![member(0, Running, said(Runs, None))], 5101),
    ];
    let text: Vec<String> = rows.iter().map(|(members, seconds)| told(&look(members, Bucket::Hidden, *seconds))).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    pending: EC2 does not list the instances yet
    pending: i-0 gives no sign of life
    ending
    ending
    ending -> ReadConsole(0)
    ending
    pending: 1 of 2 instances are ready
    ended [Code(3)]
    ended [Code(0)]
    gone preempted: i-0 was a spot instance and was taken away
    error Infra: i-0 still runs, and its timer should have ended it 1h15m after its launch
    ");
}

#[test]
fn an_end_has_times_nodes_sections_and_the_limit_that_it_reached() {
    let Ok(JobStatus::Ended(ending)) = at(&[member(0, State::Ended, said(Phase::Timeout, Some(124)))], 90).status else {
        panic!("it has ended")
    };
    assert_eq!((ending.started, ending.ended), (Timestamp::of_seconds(1100), Timestamp::of_seconds(1200)));
    assert_eq!(ending.limit, Some(Clock::Run));
    assert_eq!(ending.exits[0].section, "rfm-x-aotugiob-0");
    assert_eq!(ending.exits[0].node.as_deref(), Some("i-0 (c7i.large, eu-west-1a)"));
}

#[test]
fn no_time_is_before_the_launch() {
    let early = |phase, exit| said(phase, exit).map(|said| Said { started: Some(-9000), ended: Some(-8000), t: -8000, ..said });
    let at = |said| at(&[member(0, State::Running, said)], 90).status;
    let Ok(JobStatus::Running { since, .. }) = at(early(Phase::Running, None)) else { panic!("it runs") };
    let Ok(JobStatus::Ended(ending)) = at(early(Phase::Done, Some(0))) else { panic!("it has ended") };
    assert_eq!([since, ending.started, ending.ended], [1000, 1000, 2000].map(Timestamp::of_seconds));
}

#[test]
fn an_end_is_never_before_its_start_and_a_script_lasts_as_long_as_it_did() {
    // What the agent says of both, and what is told of them.
    for (started, ended, expected) in [
        (Some(1100), Some(1150), (1100, 1150)),
        // It began before its launch, by its clock, and ended after it.
        (Some(900), Some(1010), (1000, 1110)),
        (Some(-9000), Some(-8000), (1000, 2000)),
        // Somebody has set its clock back meanwhile.
        (Some(1100), Some(1050), (1050, 1050)),
        (None, Some(1150), (1150, 1150)),
        (None, None, (1200, 1200)),
    ] {
        let said = said(Phase::Done, Some(0)).map(|said| Said { started, ended, ..said });
        let Ok(JobStatus::Ended(ending)) = at(&[member(0, State::Ended, said)], 90).status else { panic!("it has ended") };
        let told = (ending.started, ending.ended);
        assert_eq!(told, (Timestamp::of_seconds(expected.0), Timestamp::of_seconds(expected.1)), "{started:?} {ended:?}");
    }
}

#[test]
fn fetching_data_sets_is_not_being_late() {
    let members = [member(0, State::Running, said(Phase::Ready, None)), member(1, State::Running, said(Phase::Booted, None))];
    let at = |fetch| {
        let launched = Launched { fetch: Duration::from_mins(fetch), lives: Duration::from_hours(9), ..launched(2) };
        step(&launched, &members, SEEN, Timestamp::of_seconds(1000 + 2000)).status
    };
    assert!(at(0).is_err_and(|failure| failure.why.starts_with("not ready within 25m")));
    assert!(matches!(at(60), Ok(JobStatus::Pending { .. })));
}

#[test]
fn an_end_is_that_of_the_script_and_not_of_what_is_sent_after_it() {
    let said = said(Phase::Done, Some(0)).map(|said| Said { ended: Some(1150), ..said });
    let Ok(JobStatus::Ended(ending)) = at(&[member(0, State::Ended, said)], 90).status else { panic!("it has ended") };
    assert_eq!(ending.ended, Timestamp::of_seconds(1150));
}

#[test]
fn several_instances_go_together_and_a_lost_one_ends_the_case() {
    use Phase::{Booted, Done, Ready, Running as Runs};
    let all = |phases: [Option<Said>; 3]| -> Vec<Member> {
        (0..).zip(phases).map(|(rank, said)| member(rank, State::Running, said)).collect()
    };
    let with_lost = |first: Option<Said>| {
        vec![
            member(0, State::Running, first),
            member(1, State::Running, said(Ready, None)),
            lost(2, "Server.InternalError", said(Ready, None)),
        ]
    };
    let ready = || said(Ready, None);
    let rows: Vec<(Vec<Member>, i64)> = vec![
        (all([said(Booted, None), None, None]), 60),
        (all([ready(), ready(), said(Booted, None)]), 60),
        (all([ready(), ready(), said(Booted, None)]), 1501),
        (all([ready(), ready(), ready()]), 60),
        (all([said(Runs, None), ready(), ready()]), 60),
        (all([said(Done, Some(0)), ready(), ready()]), 60),
        (all([said(Done, Some(0)), said(Done, Some(0)), said(Done, Some(0))]), 60),
        (with_lost(said(Runs, None)), 60),
        (with_lost(said(Done, Some(0))), 60),
    ];
    let text: Vec<String> = rows.iter().map(|(members, seconds)| told(&at(members, *seconds))).collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn what_is_written_already_is_not_written_again() {
    let ready: Vec<Member> = (0..2).map(|rank| member(rank, State::Running, said(Phase::Ready, None))).collect();
    let look = |members: &[Member], (has_go, has_stop)| look(members, Bucket::Seen { has_go, has_stop }, 60).acts;
    assert_eq!(look(&ready, (false, false)), [Act::Go("10.0.0.10\n10.0.0.11\n".into())]);
    assert_eq!(look(&ready, (true, false)), []);
    let with_key = |one: &Member| {
        let key = format!("ssh-ed25519 AAAA{}", one.rank);
        Member { said: one.said.clone().map(|said| Said { key, ..said }), ..one.clone() }
    };
    let ready: Vec<Member> = ready.iter().map(with_key).collect();
    let hosts = "10.0.0.10 ssh-ed25519 AAAA0\n10.0.0.11 ssh-ed25519 AAAA1\n";
    assert_eq!(look(&ready, (false, false)), [Act::Go(hosts.into())], "public keys come to all");
    let done = [member(0, State::Running, said(Phase::Done, Some(0))), ready[1].clone()];
    assert_eq!(look(&done, (true, false)), [Act::Stop]);
    assert_eq!(look(&done, (true, true)), []);
}

#[test]
fn every_disruption_that_is_preemption_is_told_apart_from_a_lost_host() {
    let why = |code: &str| match at(&[lost(0, code, said(Phase::Running, None))], 90).status {
        Ok(JobStatus::Gone { why, .. }) => why,
        other => panic!("{code}: {other:?}"),
    };
    assert_eq!(why("Server.SpotInstanceShutdown"), Disruption::Preempted);
    assert_eq!(why("Server.ScheduledStop"), Disruption::Node);
    assert_eq!(why("Client.UserInitiatedHibernate"), Disruption::Deleted);
}

#[test]
fn the_status_of_an_agent_is_read_as_it_writes_it() {
    let text = r#"{"v":1,"id":"aotugiob","rank":0,"instance":"i-0","ip":"10.0.0.1","type":"c7i.large","zone":"eu-west-1a","kernel":"6.1","microcode":"0x1","state":"done","exit":7,"started":1100,"log_bytes":4,"t":1200}"#;
    let read: Said = serde_json::from_str(text).unwrap();
    assert_eq!(Some(read), said(Phase::Done, Some(7)));
    let early = text.replace("\"done\",\"exit\":7,\"started\":1100", "\"booted\",\"exit\":null,\"started\":null");
    assert_eq!(Some(serde_json::from_str(&early).unwrap()), said(Phase::Booted, None));
}
