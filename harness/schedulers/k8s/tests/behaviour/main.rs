//! What the scheduler promises, on a cluster: the fake one, or with `MUSTER_TEST_KUBECONFIG` a real one.
//!
//! The same functions run on both. Those that need a server which fails on demand run on the fake one only, and say so.
//! A kubeconfig reaches the scheduler as it reaches users, by KUBECONFIG: this program starts itself again with it set.

mod broken;
mod credentials;
mod lifecycle;
mod measure;
mod quota;
mod refused;
mod test_cluster;

use libtest_mimic::{Arguments, Failed, Trial};
use std::{
    env,
    future::Future,
    pin::Pin,
    process::{Command, ExitCode},
};
use test_cluster::TestCluster;

/// A kubeconfig of a real cluster.
const REAL: &str = "MUSTER_TEST_KUBECONFIG";

type Test = fn(TestCluster) -> Pin<Box<dyn Future<Output = ()>>>;

/// On any cluster.
const ANYWHERE: [(&str, Test); 6] = [
    ("what_has_the_name_already_is_left_alone", |cluster| Box::pin(lifecycle::what_has_the_name_already_is_left_alone(cluster))),
    ("a_pod_lives_and_leaves_nothing", |cluster| Box::pin(lifecycle::a_pod_lives_and_leaves_nothing(cluster))),
    ("a_jobs_pods_are_sections_in_order", |cluster| Box::pin(lifecycle::a_jobs_pods_are_sections_in_order(cluster))),
    ("a_failed_pod_is_reported_and_kept_until_it_is_deleted", |cluster| {
        Box::pin(lifecycle::a_failed_pod_is_reported_and_kept_until_it_is_deleted(cluster))
    }),
    ("a_pod_that_is_stopped_ends_and_stays", |cluster| Box::pin(lifecycle::a_pod_that_is_stopped_ends_and_stays(cluster))),
    ("every_container_has_its_section", |cluster| Box::pin(lifecycle::every_container_has_its_section(cluster))),
];

/// On a server that fails on demand, or in a namespace of its own.
const ON_THE_FAKE_ONE: [(&str, Test); 19] = [
    ("a_log_that_is_cut_five_times_is_byte_identical", |cluster| {
        Box::pin(broken::a_log_that_is_cut_five_times_is_byte_identical(cluster))
    }),
    ("a_pod_that_vanished_between_two_watches_is_gone", |cluster| {
        Box::pin(broken::a_pod_that_vanished_between_two_watches_is_gone(cluster))
    }),
    ("an_expired_watch_lists_again", |cluster| Box::pin(broken::an_expired_watch_lists_again(cluster))),
    ("too_many_requests_are_sent_again_later", |cluster| Box::pin(broken::too_many_requests_are_sent_again_later(cluster))),
    ("credentials_that_expire_are_read_again", |cluster| Box::pin(broken::credentials_that_expire_are_read_again(cluster))),
    ("a_token_file_that_is_rotated_is_read_again", |cluster| {
        Box::pin(broken::a_token_file_that_is_rotated_is_read_again(cluster))
    }),
    ("a_creation_whose_answer_is_lost_is_adopted", |cluster| {
        Box::pin(broken::a_creation_whose_answer_is_lost_is_adopted(cluster))
    }),
    ("a_server_that_restarts_does_not_end_a_run", |cluster| Box::pin(broken::a_server_that_restarts_does_not_end_a_run(cluster))),
    ("connections_that_fall_silent_are_opened_again", |cluster| {
        Box::pin(broken::connections_that_fall_silent_are_opened_again(cluster))
    }),
    ("a_refusal_that_passes_ends_no_running_case", |cluster| {
        Box::pin(refused::a_refusal_that_passes_ends_no_running_case(cluster))
    }),
    ("launches_wait_for_one_on_trial_while_they_are_refused", |cluster| {
        Box::pin(refused::launches_wait_for_one_on_trial_while_they_are_refused(cluster))
    }),
    ("what_was_never_granted_is_refused_at_once", |cluster| {
        Box::pin(refused::what_was_never_granted_is_refused_at_once(cluster))
    }),
    ("credentials_that_are_not_accepted_have_created_nothing", |cluster| {
        Box::pin(refused::credentials_that_are_not_accepted_have_created_nothing(cluster))
    }),
    ("a_selector_that_is_none_ends_its_own_case_alone", |cluster| {
        Box::pin(refused::a_selector_that_is_none_ends_its_own_case_alone(cluster))
    }),
    ("a_plugin_that_fails_for_a_while_ends_no_launch_and_is_run_once_for_all", |cluster| {
        Box::pin(credentials::a_plugin_that_fails_for_a_while_ends_no_launch_and_is_run_once_for_all(cluster))
    }),
    ("a_token_that_ends_is_renewed_once_for_all_that_runs", |cluster| {
        Box::pin(credentials::a_token_that_ends_is_renewed_once_for_all_that_runs(cluster))
    }),
    ("cases_that_wait_for_quota_get_it_in_turn", |cluster| Box::pin(quota::cases_that_wait_for_quota_get_it_in_turn(cluster))),
    ("a_case_of_one_container_takes_four_requests", |cluster| {
        Box::pin(measure::a_case_of_one_container_takes_four_requests(cluster))
    }),
    ("nothing_is_asked_while_nothing_changes", |cluster| Box::pin(measure::nothing_is_asked_while_nothing_changes(cluster))),
];

fn main() -> ExitCode {
    let real = env::var_os(REAL);
    if env::var_os(test_cluster::READY).is_none() {
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
        .env(test_cluster::READY, "1")
        .status();
    match status.map(|status| status.code()) {
        Ok(Some(0)) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn run(test: Test) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async { test(TestCluster::new().await).await });
    Ok(())
}
