//! The course of a session: rounds of cases, what a person or a tool sees of them, and the reports in the end.
//!
//! ```text
//! cases -> engine <- submit a round      the view prints what happens as it happens
//!            '-> results -> rounds::next -> the next round, or the end
//!                        '-> front: libtest's harness, one trial a case, told when nothing can change it any more
//! all over -> store: end -> reports -> clusters and daemons let go of -> exit code
//! ```
//! Signals: the first cancels, the second leaves at once.

pub mod daemons;
pub mod leave;
pub mod relaunch;
pub mod restore;
pub mod takeover;

use crate::{
    args::{self, Cli},
    commands::session::run,
    reports::{files::ReportFiles, session},
    settings::{self, Places},
    terminal::{self, Terminal, view::View},
    wiring::{self, Wired},
};
use anyhow::Context;
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments, site::quarantine::List};
use muster_core::{
    case::CaseName,
    decisions::rounds::{self, Next, Policy, Round},
    result::{CaseResult, Session},
};
use muster_host::{clock, owner};
use muster_report::progress;
use muster_session::{
    case::{QueuedCase, judging::JudgeIn},
    engine::{Engine, EngineConfig, ExecPolicy, Ownership},
    folders,
    front::{
        libtest::{self, Submitted},
        signals::Signals,
    },
};
use muster_store::{Store, StoreError};
use relaunch::Known;
use std::{
    collections::{BTreeMap, BTreeSet},
    panic,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};
use tokio::{
    runtime::Runtime,
    sync::{mpsc, oneshot},
};

/// A session that is about to run, from its beginning or from where a process that is gone has left it.
pub struct Course {
    /// Who began it, where, and how.
    pub session: Session,
    /// The database in which it was taken over from a process that is gone; `None`: it begins now.
    pub taken: Option<Store>,
    /// Another session is about to use the folders of the same cases.
    pub is_beside_another: bool,
    /// Results that are there already, of this session or restored from another.
    pub before: Vec<Arc<CaseResult>>,
    /// Attempts that were begun already.
    pub begun: Vec<QueuedCase>,
    /// The cases of the first round that have no result yet, and those that may run again.
    pub cases: Vec<TestCase>,
    /// What makes them run again.
    pub policy: Policy,
    /// Whose outcome does not count.
    pub quarantine: List,
    /// What the command line changes of all of them.
    pub adjustments: Arc<Adjustments>,
    /// Who launches in which partition.
    pub wired: Wired,
}

impl Course {
    /// Tests: checks with their parameters, without their places.
    fn num_checks(&self) -> u32 {
        let names = self.before.iter().map(|result| &result.name).chain(self.begun.iter().map(|turn| &*turn.name));
        let names = names.chain(self.cases.iter().map(|case| &*case.name));
        let titles: BTreeSet<_> = names.map(CaseName::title).collect();
        u32::try_from(titles.len()).unwrap_or(u32::MAX)
    }

    /// What has no result yet.
    fn ahead(&self) -> BTreeSet<&CaseName> {
        let over: BTreeSet<&CaseName> = self.before.iter().map(|result| &result.name).collect();
        let names = self.begun.iter().map(|turn| &*turn.name).chain(self.cases.iter().map(|case| &*case.name));
        names.filter(|name| !over.contains(name)).collect()
    }

    /// What has a result already and runs all the same: it is gone.
    fn anew(&self) -> BTreeSet<CaseName> {
        let over: BTreeSet<&CaseName> = self.before.iter().map(|result| &result.name).collect();
        let fresh = self.cases.iter().map(|case| (&*case.name, case.needs())).filter(|(name, _)| !over.contains(name));
        let begin = self.begun.iter().map(relaunch::needs).chain(fresh).collect();
        Known::new(&self.cases, self.before.iter().map(AsRef::as_ref)).anew(&begin)
    }

    /// Nothing of a rehearsal is kept among the results of what really ran.
    fn is_rehearsal(&self) -> bool {
        self.adjustments.play.is_some()
    }
}

/// Runs a session to its end and reports it.
pub fn course(cli: &Cli, runtime: &Runtime, course: Course, terminal: Terminal) -> anyhow::Result<u8> {
    let mut places = Places::of(cli);
    if course.is_rehearsal() {
        places = places.of_a_rehearsal();
    }
    let folders = folders::Folders::open(&places.stage, &places.output)
        .context("no place for running cases: choose another with --prefix, --stage or --output")?
        .keeping_stages(cli.rounds.keep_stage_files)
        .beside_another(course.is_beside_another);
    let file = ReportFiles::prepare(cli, &places, &course.session)?;
    let is_new = course.taken.is_none();
    let store = match &course.taken {
        Some(store) => Some(store.clone()),
        None if course.is_rehearsal() => None,
        None => Some(store(cli, &places, runtime, terminal)?),
    };
    let header = progress::Header {
        session: &course.session,
        num_checks: course.num_checks(),
        stage: &places.stage.to_string_lossy(),
        output: &places.output.to_string_lossy(),
        database: &if store.is_some() { places.database.to_string_lossy() } else { "none: a rehearsal is not stored".into() },
    };
    for expired in course.quarantine.expired(&course.cases.iter().map(|case| &*case.name).collect::<Vec<_>>()) {
        terminal.note(&format!("note: {expired}"));
    }
    let anew = course.anew();
    let done = course.before.len() - anew.len().min(course.before.len());
    let view = View::new(terminal, cli.output.format.is_some(), course.session.num_cases, done)
        .planned(course.ahead().into_iter().chain(&anew));
    view.header(&header);

    let Course { session, taken: _, is_beside_another: _, before, begun, cases, policy, quarantine, adjustments, wired } = course;
    let (events, receiver) = mpsc::unbounded_channel();
    let config = EngineConfig {
        session,
        folders,
        ownership: store.map(|store| Ownership { store, owner: owner::this_owner(), is_new }),
        schedulers: wired.schedulers.clone(),
        events,
        policy: match cli.run.exec_policy {
            args::ExecPolicy::Serial => ExecPolicy::Serial,
            args::ExecPolicy::Async => ExecPolicy::Async,
        },
        maxfail: cli.run.maxfail,
        quarantine,
        judge: JudgeIn::Processes(wiring::judge_program().context("find this program, which judges in processes of its own")?),
        sweep: settings::on_this_database(cli, "sweep"),
    };
    let work = Work { before, begun, cases, policy, adjustments };
    let (session, results) = conduct(runtime, config, work, cli, terminal, || view.watch(receiver))?;
    let code = session::report(cli, &file, &session, &results, terminal);
    // A cluster that does not answer any more must not keep the report from its reader.
    runtime.block_on(wired.close());
    runtime.block_on(daemons::end(cli, &session.id, &results, terminal));
    code
}

/// Opens the database for writing, and says what there is to know of it.
pub fn store(cli: &Cli, places: &Places, runtime: &Runtime, terminal: Terminal) -> anyhow::Result<Store> {
    let store = runtime.block_on(Store::open(&places.database)).context("no place for results: choose another with --db")?;
    for note in settings::note_on_database(cli).iter().map(String::as_str).chain(store.notes().iter().map(AsRef::as_ref)) {
        terminal.note(&format!("note: {note}"));
    }
    Ok(store.hiding(run::secrets(cli)))
}

/// What is to be done, and what is done already.
struct Work {
    before: Vec<Arc<CaseResult>>,
    begun: Vec<QueuedCase>,
    cases: Vec<TestCase>,
    policy: Policy,
    adjustments: Arc<Adjustments>,
}

/// From the first launch until everything is over and stored, and everything that happened is shown.
fn conduct(
    runtime: &Runtime,
    config: EngineConfig,
    work: Work,
    cli: &Cli,
    terminal: Terminal,
    watch: impl FnOnce() -> JoinHandle<()>,
) -> anyhow::Result<(Session, Vec<Arc<CaseResult>>)> {
    let (begun, lease) = (config.session.clone(), config.ownership.clone());
    let _guard = runtime.enter();
    let signals = Signals::listen().context("listen to signals")?;
    let engine = runtime.block_on(Engine::begin(config))?;
    if let Some(Ownership { store, is_new: true, .. }) = &lease {
        runtime.block_on(restore::adopt(store, &begun, &work.before))?;
    }
    let heart = lease.clone().map(|lease| runtime.spawn(leave::when_taken(lease, begun.id.clone(), terminal)));
    let (supervised, commands) = (engine.clone(), leave::Commands::of(cli, &begun.id));
    let supervisor = runtime.spawn(async move {
        signals.supervise(supervised.clone()).await;
        leave::at_once(&supervised, &commands, terminal).await;
    });
    let watching = watch();

    let (front, waiting) = Front::of(&work);
    let arguments = arguments(cli, waiting.len());
    let trials = std::thread::spawn(move || {
        terminal::guarded(|| {
            libtest::run(&arguments, waiting);
        });
    });
    let mut results = all_rounds(runtime, &engine, &begun, work, &front, terminal);
    front.close(&results);
    if let Err(panic) = trials.join() {
        panic::resume_unwind(panic);
    }
    let ended = runtime.block_on(async {
        if let Some(Ownership { store, owner, .. }) = &lease {
            heart.iter().for_each(tokio::task::JoinHandle::abort);
            if let Err(StoreError::Taken { .. }) = store.beat(&begun.id, owner).await {
                leave::taken(&begun.id, terminal);
            }
        }
        let session = engine.end().await?;
        leave::name_what_is_kept(&mut results, engine.with_leftovers().await);
        if let Some(Ownership { store, .. }) = lease {
            store.close().await?;
        }
        Ok::<_, StoreError>(session)
    });
    let session = ended.unwrap_or_else(|error| {
        terminal.error(&anyhow::Error::new(error).context("the end of the session could not be stored"));
        Session { ended: Some(clock::now()), interrupted: engine.is_cancelled(), ..begun }
    });
    supervisor.abort();
    // The view ends when nobody is left who could tell it something.
    drop(engine);
    let _ = watching.join();
    Ok((session, results))
}

/// Round after round, until there is nothing to run again. All results, in the order of their endings.
fn all_rounds(
    runtime: &Runtime,
    engine: &Engine,
    session: &Session,
    work: Work,
    front: &Front,
    terminal: Terminal,
) -> Vec<Arc<CaseResult>> {
    let Work { before, mut begun, cases, policy, adjustments } = work;
    let mut due: Vec<&TestCase> = cases.iter().collect();
    let mut number = 1;
    let mut results = before.clone();
    for result in &before {
        engine.recall(Arc::clone(result));
    }
    // What is gone and ran again is told of once.
    let mut gone: BTreeSet<(CaseName, u32)> = BTreeSet::new();
    let mut why = None;
    loop {
        let turns = turns_of(number, &due, &mut begun, &results, &adjustments);
        let turns = {
            let known = Known::new(&cases, results.iter().map(AsRef::as_ref));
            let anew = known.anew(&turns.iter().map(relaunch::needs).collect());
            gone.extend(
                results.iter().filter(|result| anew.contains(&result.name)).map(|result| (result.name.clone(), result.attempt)),
            );
            known.joined(turns, &anew, &adjustments)
        };
        if let Some(why) = why.take() {
            engine.begin_round(u32::try_from(turns.len()).unwrap_or(u32::MAX), why);
        }
        for result in engine.submit_all(turns) {
            front.follow(runtime, result);
        }
        results.clone_from(&before);
        results.extend(runtime.block_on(engine.finish()));
        results.retain(|result| !gone.contains(&(result.name.clone(), result.attempt)));
        let all: Vec<&CaseResult> = results.iter().map(AsRef::as_ref).collect();
        let elapsed = clock::now().since(session.started);
        match rounds::next(policy, Round { number, results: &all, elapsed, cut_short: engine.is_closed() }) {
            Next::Over(why) => {
                if let Some(why) = why {
                    terminal.note(&format!("note: {why}"));
                }
                return results;
            }
            Next::Again(names) => {
                due = cases.iter().filter(|case| names.contains(&case.name)).collect();
                if due.is_empty() {
                    return results;
                }
                number += 1;
                why = Some(said_of(policy, number, due.len()));
            }
        }
    }
}

/// What is left to do of a round: what was begun of it, and the cases that are `due` and neither begun nor over.
fn turns_of(
    number: u32,
    due: &[&TestCase],
    begun: &mut Vec<QueuedCase>,
    results: &[Arc<CaseResult>],
    adjustments: &Arc<Adjustments>,
) -> Vec<QueuedCase> {
    let taken_up: Vec<QueuedCase> = begun.extract_if(.., |turn| turn.attempt == number).collect();
    let over = results.iter().filter(|result| result.attempt == number).map(|result| &result.name);
    let known: BTreeSet<&CaseName> = over.chain(taken_up.iter().map(|turn| &*turn.name)).collect();
    let fresh: Vec<QueuedCase> =
        due.iter().filter(|case| !known.contains(&*case.name)).map(|case| QueuedCase::of(case, adjustments, number)).collect();
    taken_up.into_iter().chain(fresh).collect()
}

/// `Retrying 2 failed case(s) (retry 1/3)`: ReFrame's line.
fn said_of(policy: Policy, number: u32, cases: usize) -> String {
    match policy {
        // With `on_disruption: retry` there are retries that nobody has counted beforehand.
        Policy::Retry { max, .. } if max >= number - 1 => format!("Retrying {cases} failed case(s) (retry {}/{max})", number - 1),
        Policy::Retry { .. } => format!("Retrying {cases} disrupted case(s) (retry {})", number - 1),
        Policy::Rerun { times } => format!("Running {cases} case(s) again (run {number}/{})", times + 1),
        Policy::Until(_) => format!("Running {cases} case(s) again (run {number})"),
    }
}

/// What libtest's harness waits for: a case's result when no round can change it any more.
struct Front {
    policy: Policy,
    waiting: Arc<Mutex<BTreeMap<CaseName, oneshot::Sender<Arc<CaseResult>>>>>,
}

impl Front {
    /// One trial for every case that runs.
    fn of(work: &Work) -> (Self, Vec<Submitted>) {
        let taken_up = work.begun.iter().map(|turn| (&turn.name, turn.scheduler));
        let fresh = work.cases.iter().map(|case| (&case.name, case.place.partition.scheduler));
        let known: BTreeSet<&CaseName> = work.before.iter().map(|result| &result.name).collect();
        let (mut waiting, mut submitted) = (BTreeMap::new(), Vec::new());
        for (name, scheduler) in taken_up.chain(fresh) {
            if !known.contains(&**name) && !waiting.contains_key(&**name) {
                let (sender, result) = oneshot::channel();
                waiting.insert((**name).clone(), sender);
                submitted.push(Submitted { case: (**name).clone(), scheduler, result });
            }
        }
        (Self { policy: work.policy, waiting: Arc::new(Mutex::new(waiting)) }, submitted)
    }

    /// Hands an attempt's result on if it is the case's last.
    fn follow(&self, runtime: &Runtime, result: oneshot::Receiver<Arc<CaseResult>>) {
        let (policy, waiting) = (self.policy, Arc::clone(&self.waiting));
        runtime.spawn(async move {
            if let Ok(result) = result.await
                && rounds::is_settled(policy, &result)
            {
                tell(&waiting, result);
            }
        });
    }

    /// Hands on what is left: nothing runs any more.
    fn close(self, results: &[Arc<CaseResult>]) {
        results.iter().rev().for_each(|result| tell(&self.waiting, Arc::clone(result)));
    }
}

fn tell(waiting: &Mutex<BTreeMap<CaseName, oneshot::Sender<Arc<CaseResult>>>>, result: Arc<CaseResult>) {
    let waits = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&result.name);
    waits.map(|waits| waits.send(result));
}

/// A person reads our lines; a tool that asked for a format reads libtest's.
fn arguments(cli: &Cli, cases: usize) -> libtest_mimic::Arguments {
    use libtest_mimic::FormatSetting;
    if let Some(arguments) = &cli.output.libtest {
        let test_threads = arguments.test_threads.or_else(|| Some(libtest::threads(cases)));
        return libtest_mimic::Arguments { test_threads, ..arguments.clone() };
    }
    match cli.output.format {
        None => libtest::silent(),
        Some(args::TestFormat::Pretty) => libtest::printing(FormatSetting::Pretty, cases),
        Some(args::TestFormat::Terse) => libtest::printing(FormatSetting::Terse, cases),
        Some(args::TestFormat::Json) => libtest::printing(FormatSetting::Json, cases),
    }
}
