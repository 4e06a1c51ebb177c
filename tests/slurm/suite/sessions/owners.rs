//! Sessions beside and after each other: what a dead one left is swept, attached or resumed; what lives is left alone.

use crate::suite::{cluster::Cluster, sandbox::Place};
use std::thread;

const LONG: &str = "executable: echo mark >> $SLURM_SUBMIT_DIR/marks; sleep 5; echo done\nsanity: [{ found: done }]";

pub(crate) fn a_living_session_is_not_swept_and_a_dead_one_is() {
    let place = Place::new(Cluster::shared(), "swept", "launcher: none", "executable: sleep 100\nsanity: []");
    let running = place.started(&[]);
    let job = place.job("RUNNING");
    let swept = place.muster(&["sweep"]).expect(0);
    assert_eq!(place.jobs().len(), 1, "a living session was swept: {}", swept.text);
    running.signal("KILL");
    running.ended();
    let dry = place.muster(&["sweep", "--dry-run"]).expect(0);
    assert!(dry.text.contains("would remove swept") && dry.text.contains(&format!("job {job}")), "{}", dry.text);
    assert_eq!(place.jobs().len(), 1, "{}", dry.text);
    place.muster(&["sweep"]).expect(0);
    place.await_empty_queue();
    let again = place.muster(&["sweep", "--dry-run"]).expect(0);
    assert!(!again.text.contains("would remove"), "{}", again.text);
}

/// A job that runs is followed, one that has ended meanwhile is judged, and one that never started is run.
pub(crate) fn a_killed_session_is_attached_and_each_case_runs_once() {
    let check = "executable: echo mark >> $SLURM_SUBMIT_DIR/marks; sleep ${{ n }}; echo done\nparameters: { n: [1, 6, 7] }\n\
                 sanity: [{ found: done }]";
    let place = Place::new(Cluster::shared(), "attached", "launcher: none", check);
    let site = std::fs::read_to_string(place.file("site.yaml")).expect("a site");
    place.write("site.yaml", &site.replace("max_jobs: 100", "max_jobs: 2"));
    let running = place.started(&["--exec-order=rname"]);
    place.job("RUNNING");
    running.signal("KILL");
    running.ended();
    let ended = place.muster(&["attach"]).expect(0);
    assert_eq!((ended.report["totals"]["passed"].as_u64(), place.marks()), (Some(3), 3), "{}", ended.text);
    let again = place.muster(&["attach"]);
    assert_ne!(again.code, Some(0), "there is nothing to attach any more: {}", again.text);
}

/// `-r --resume` of the same cases goes on with the session; another one is new.
pub(crate) fn a_killed_session_is_resumed_by_the_same_command() {
    let place = Place::new(Cluster::shared(), "resumed", "launcher: none", LONG);
    let running = place.started(&["--resume"]);
    place.job("RUNNING");
    running.signal("KILL");
    running.ended();
    let ended = place.run(&["--resume"]).expect(0);
    assert_eq!((ended.cases().len(), place.marks()), (1, 1), "{}", ended.text);
    let new = place.run(&["--resume"]).expect(0);
    assert_eq!((new.cases().len(), place.marks()), (1, 2), "{}", new.text);
    assert_ne!(new.report["session"]["id"], ended.report["session"]["id"]);
}

/// `--restore-session` ends the job that still runs, and runs the case again.
pub(crate) fn a_restored_session_ends_the_old_job_and_runs_the_case_again() {
    let check =
        "executable: echo mark >> $SLURM_SUBMIT_DIR/marks; [ $(wc -l < $SLURM_SUBMIT_DIR/marks) = 2 ] || sleep 100\nsanity: []";
    let place = Place::new(Cluster::shared(), "restored", "launcher: none", check);
    let running = place.started(&[]);
    let old = place.job("RUNNING");
    crate::common::eventually("its mark", std::time::Duration::from_secs(10), || place.marks() == 1);
    running.signal("KILL");
    running.ended();
    let ended = place.run(&["--restore-session"]).expect(0);
    assert_eq!((ended.outcome().as_str(), place.marks()), ("pass", 2), "{}", ended.text);
    assert!(place.jobs().iter().all(|(id, _)| *id != old), "{}", ended.text);
    place.await_empty_queue();
}

/// Two sessions of one check, one database and one folder: each follows its own jobs.
pub(crate) fn two_sessions_at_once_do_not_disturb_each_other() {
    let check = "executable: echo mark >> $SLURM_SUBMIT_DIR/marks; sleep 3\nparameters: { n: [1, 2] }\nsanity: []";
    let place = Place::new(Cluster::shared(), "both", "launcher: none", check);
    thread::scope(|scope| {
        let runs = ["one", "two"].map(|name| {
            let place = &place;
            scope.spawn(move || place.run(&["--prefix", name]).expect(0))
        });
        for run in runs {
            let ended = run.join().expect("a session");
            assert_eq!(ended.report["totals"]["passed"], 2, "{}", ended.text);
        }
    });
    assert_eq!(place.marks(), 4);
}
