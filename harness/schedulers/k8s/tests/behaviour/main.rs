//! What the scheduler promises, on a cluster: the fake one, or with `MUSTER_TEST_KUBECONFIG` a real one.
//!
//! The same functions run on both. Those that need a server which fails on demand run on the fake one only, and say so.
//! A kubeconfig reaches the scheduler as it reaches users, by KUBECONFIG: this program starts itself again with it set.

mod broken;
mod credentials;
mod ground;
mod life;
mod measure;
mod quota;
mod refused;

use ground::Ground;
use libtest_mimic::{Arguments, Failed, Trial};
use std::{
    env,
    future::Future,
    pin::Pin,
    process::{Command, ExitCode},
};

/// A kubeconfig of a real cluster.
const REAL: &str = "MUSTER_TEST_KUBECONFIG";

type Test = fn(Ground) -> Pin<Box<dyn Future<Output = ()>>>;

/// On any cluster.
const ANYWHERE: [(&str, Test); 6] = [
    ("a4_what_has_the_name_already_is_left_alone", |ground| Box::pin(life::a4_what_has_the_name_already_is_left_alone(ground))),
    ("a_pod_lives_and_leaves_nothing", |ground| Box::pin(life::a_pod_lives_and_leaves_nothing(ground))),
    ("a_jobs_pods_are_sections_in_order", |ground| Box::pin(life::a_jobs_pods_are_sections_in_order(ground))),
    ("a_failed_pod_is_told_and_kept_until_it_is_deleted", |ground| {
        Box::pin(life::a_failed_pod_is_told_and_kept_until_it_is_deleted(ground))
    }),
    ("a_pod_that_is_stopped_ends_and_stays", |ground| Box::pin(life::a_pod_that_is_stopped_ends_and_stays(ground))),
    ("every_container_has_its_section", |ground| Box::pin(life::every_container_has_its_section(ground))),
];

/// On a server that fails on demand, or in a namespace of its own.
const ON_THE_FAKE_ONE: [(&str, Test); 18] = [
    ("a11_a_log_that_is_cut_five_times_is_byte_identical", |ground| {
        Box::pin(broken::a11_a_log_that_is_cut_five_times_is_byte_identical(ground))
    }),
    ("a_pod_that_vanished_while_nobody_watched_is_gone", |ground| {
        Box::pin(broken::a_pod_that_vanished_while_nobody_watched_is_gone(ground))
    }),
    ("an_expired_watch_lists_again", |ground| Box::pin(broken::an_expired_watch_lists_again(ground))),
    ("too_many_requests_are_sent_again_later", |ground| Box::pin(broken::too_many_requests_are_sent_again_later(ground))),
    ("credentials_that_expire_are_read_again", |ground| Box::pin(broken::credentials_that_expire_are_read_again(ground))),
    ("a_token_file_that_is_rotated_is_read_again", |ground| Box::pin(broken::a_token_file_that_is_rotated_is_read_again(ground))),
    ("a_creation_whose_answer_is_lost_is_adopted", |ground| Box::pin(broken::a_creation_whose_answer_is_lost_is_adopted(ground))),
    ("a_server_that_restarts_does_not_end_a_run", |ground| Box::pin(broken::a_server_that_restarts_does_not_end_a_run(ground))),
    ("connections_that_fall_silent_are_opened_again", |ground| {
        Box::pin(broken::connections_that_fall_silent_are_opened_again(ground))
    }),
    ("a_refusal_that_passes_ends_no_running_case", |ground| {
        Box::pin(refused::a_refusal_that_passes_ends_no_running_case(ground))
    }),
    ("launches_wait_for_one_on_trial_while_they_are_refused", |ground| {
        Box::pin(refused::launches_wait_for_one_on_trial_while_they_are_refused(ground))
    }),
    ("what_was_never_granted_is_refused_at_once", |ground| Box::pin(refused::what_was_never_granted_is_refused_at_once(ground))),
    ("a_selector_that_is_none_ends_its_own_case_alone", |ground| {
        Box::pin(refused::a_selector_that_is_none_ends_its_own_case_alone(ground))
    }),
    ("a_plugin_that_fails_for_a_while_ends_no_launch_and_is_run_once_for_all", |ground| {
        Box::pin(credentials::a_plugin_that_fails_for_a_while_ends_no_launch_and_is_run_once_for_all(ground))
    }),
    ("a_token_that_ends_is_renewed_once_for_all_that_runs", |ground| {
        Box::pin(credentials::a_token_that_ends_is_renewed_once_for_all_that_runs(ground))
    }),
    ("who_waits_for_quota_gets_it_in_turn", |ground| Box::pin(quota::who_waits_for_quota_gets_it_in_turn(ground))),
    ("a_case_takes_six_requests", |ground| Box::pin(measure::a_case_takes_six_requests(ground))),
    ("a14_nothing_is_asked_while_nothing_changes", |ground| {
        Box::pin(measure::a14_nothing_is_asked_while_nothing_changes(ground))
    }),
];

fn main() -> ExitCode {
    let real = env::var_os(REAL);
    if env::var_os(ground::READY).is_none() {
        return again(real.as_deref());
    }
    let mut arguments = Arguments::from_args();
    // Each has two threads of its own, and they wait most of the time.
    arguments.test_threads.get_or_insert(8);
    let trial = |(name, test): (&'static str, Test)| Trial::test(name, move || run(test));
    let mut trials: Vec<Trial> = ANYWHERE.into_iter().map(trial).collect();
    if real.is_none() {
        trials.extend(ON_THE_FAKE_ONE.into_iter().map(trial));
    } else {
        eprintln!("skipped on a real cluster, which cannot be made to fail: {} tests", ON_THE_FAKE_ONE.len());
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Starts this program again with its kubeconfig.
fn again(real: Option<&std::ffi::OsStr>) -> ExitCode {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kubeconfig = real.map_or_else(|| folder.path().join("kubeconfig"), Into::into);
    let status = Command::new(env::current_exe().expect("a program has a path"))
        .args(env::args_os().skip(1))
        .env("KUBECONFIG", kubeconfig)
        .env(ground::READY, "1")
        .status();
    match status.map(|status| status.code()) {
        Ok(Some(0)) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn run(test: Test) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async { test(Ground::new().await).await });
    Ok(())
}
