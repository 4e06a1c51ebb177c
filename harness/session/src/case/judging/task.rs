//! The messages between a session and its judge: frames of `MessagePack`, each after its length. JSON
//! would lose NaN, infinities and the last digit of some figures.
//!
//! ```text
//! session -Request::Judge(Task)-> judge        judge -Reply::Begins(what).. Reply::Done(Judged)-> session
//! session -Request::Where------->              judge -Reply::At(what it was doing)-> session, and it ends
//! ```

use crate::log::text::text_of;
use muster_core::{
    job::{
        outputs as fixture,
        scheduler::Ending,
        stdout::{Files, Section, Stdout},
    },
    judge::{self, Judgement, Monitor, Position},
    result::{Invalid, Outcome, Phase},
    rules::{Rules, sanity::Claim},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::PathBuf,
    sync::Arc,
};

/// A frame longer than this is none: a session and its judge are the same program, but a pipe may be anybody's.
const LONGEST: u32 = 1 << 30;

/// What a session says to a judge.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    Judge(Box<Task>),
    /// The limit is over: say what you are at, and end.
    Where,
}

/// What a judge answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// What it looks at from here on, for the case that it ends without a word. Searches of single sections are left out.
    Begins(Position),
    Done(Box<Judged>),
    At(Box<Judgement>),
    /// One sentence: the log could not be read, or judging panicked.
    Failed(String),
}

/// A log that is put together, and the rules that it is held against.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) rules: Arc<Rules>,
    pub(super) ending: Ending,
    /// The file with all sections.
    pub(super) log: PathBuf,
    pub(super) sections: Vec<Section>,
    pub(super) files: Option<Files>,
}

/// What came of it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Judged {
    pub(super) judgement: Judgement,
    /// What is read for other cases.
    pub(super) outputs: BTreeMap<String, String>,
}

/// Judges, and reads what others are to find.
pub(super) fn perform(rules: &Rules, stdout: &Stdout, ending: &Ending, monitor: &Monitor<'_>) -> Judged {
    let mut judgement = judge::judge(rules, stdout, ending, monitor);
    let outputs = outputs(rules, stdout, &mut judgement, monitor);
    Judged { judgement, outputs }
}

/// What a case that passed leaves for others, read from its stdout. One that does not say what it was to say has not passed.
fn outputs(rules: &Rules, stdout: &Stdout, judgement: &mut Judgement, monitor: &Monitor<'_>) -> BTreeMap<String, String> {
    let Some(planned) = rules.planned_outputs.as_ref().filter(|_| judgement.outcome == Outcome::Pass) else {
        return BTreeMap::new();
    };
    fixture::read_outputs(&planned.outputs, stdout, &|output| (monitor.report)(Position::Output(output))).unwrap_or_else(
        |cause| {
            judgement.outcome = Outcome::Invalid(Invalid::Metrics);
            judgement.phase = Phase::Sanity;
            judgement.cause = Some(cause);
            BTreeMap::new()
        },
    )
}

/// Whether judging takes no time worth a limit: there is no pattern and no expression.
pub(super) fn is_trivial(rules: &Rules) -> bool {
    rules.perf_variables.is_empty()
        && rules.sanity.iter().all(|item| matches!(item.claim, Claim::Exit(_)))
        && rules.planned_outputs.as_ref().is_none_or(|planned| planned.outputs.is_empty())
}

impl Task {
    /// The text that the task is about.
    pub(super) fn stdout(&self) -> io::Result<Stdout> {
        let stdout = Stdout::new(text_of(File::open(&self.log)?)?, self.sections.clone());
        Ok(match &self.files {
            Some(files) => stdout.with_files(files.clone()),
            None => stdout,
        })
    }
}

/// A message with its length before it.
pub(super) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    rmp_serde::encode::write_named(&mut frame, message).map_err(io::Error::other)?;
    let length = u32::try_from(frame.len() - 4).ok().filter(|length| *length <= LONGEST);
    frame[..4].copy_from_slice(&length.ok_or(io::ErrorKind::FileTooLarge)?.to_le_bytes());
    Ok(frame)
}

/// The length that a frame begins with.
pub(super) fn length(bytes: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(bytes);
    if length > LONGEST { Err(io::ErrorKind::InvalidData.into()) } else { Ok(length as usize) }
}

/// What a frame holds.
pub(super) fn message<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    rmp_serde::from_slice(bytes).map_err(io::Error::other)
}

/// The next message; `None`: there is none any more.
pub(super) fn read<T: DeserializeOwned>(source: &mut impl Read) -> io::Result<Option<T>> {
    let mut bytes = [0; 4];
    match source.read_exact(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut text = vec![0; length(bytes)?];
    source.read_exact(&mut text)?;
    message(&text).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::{
        job::scheduler::{Exit, SectionExit},
        rules::{
            perf::{Bounds, Measurement, Verdict as Held},
            sanity::{Assertion, ExitRule},
        },
    };
    use muster_text::time::Timestamp;

    #[test]
    fn every_figure_arrives_as_it_was() {
        let figure = |value: f64, bounds| Measurement {
            variable: "x".into(),
            key: None,
            section: None,
            node: None,
            value,
            unit: String::new(),
            bounds,
            verdict: Held::None,
            direction: None,
        };
        let measurements = vec![
            figure(f64::NAN, None),
            figure(f64::NEG_INFINITY, Some(Bounds { reference: f64::INFINITY, lower: None, upper: Some(f64::INFINITY) })),
            figure(0.1, Some(Bounds { reference: 0.3, lower: Some(-0.0), upper: None })),
        ];
        let judgement =
            Judgement { outcome: Outcome::Pass, phase: Phase::Performance, cause: None, measurements, warnings: vec![] };
        let judged = Judged { judgement, outputs: BTreeMap::new() };
        let sent = format!("{judged:?}");
        let bytes = frame(&Reply::Done(Box::new(judged))).unwrap();
        let Some(Reply::Done(back)) = read(&mut bytes.as_slice()).unwrap() else { panic!("another reply") };
        assert_eq!(format!("{back:?}"), sent);
    }

    #[test]
    fn a_task_arrives_as_it_was() {
        let value = serde_json::json!({ "z": [1, -1, 1.0, 0.1 + 0.2, u64::MAX, null, true, "é"], "a": {} });
        let rules = Rules {
            sanity: vec![Assertion { claim: Claim::Exit(ExitRule::OneOf(vec![0, 3])), file: None, msg: None }],
            facts: BTreeMap::from([("n".to_owned(), value)]),
            ..Rules::default()
        };
        let stdout = Stdout::of("text");
        let exits = vec![SectionExit { section: "stdout".into(), exit: Exit::Signal(9), ..SectionExit::default() }];
        let ending = Ending { started: Timestamp(1), ended: Timestamp(2), exits, ..Ending::default() };
        let files = Some(Files { sections: stdout.sections().to_vec(), unread: vec!["core (binary)".into()] });
        let task = Task { rules: Arc::new(rules), ending, log: "/log".into(), sections: stdout.sections().to_vec(), files };
        let sent = format!("{task:?}");
        let bytes = frame(&Request::Judge(Box::new(task))).unwrap();
        let Some(Request::Judge(back)) = read(&mut bytes.as_slice()).unwrap() else { panic!("another request") };
        assert_eq!(format!("{back:?}"), sent);
    }

    #[test]
    fn what_is_no_frame_is_an_error_and_an_end_is_none() {
        assert!(read::<Request>(&mut &b""[..]).unwrap().is_none());
        assert!(read::<Request>(&mut &b"\xff\xff\xff\xff"[..]).is_err());
        assert!(read::<Request>(&mut &b"\x05\0\0\0??"[..]).is_err());
    }
}
