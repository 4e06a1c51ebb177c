//! The table of all tests.

mod access;
mod manifest;
mod sandbox;
mod sessions;
mod workloads;

use access::{in_cluster, permissions, preflight, proxies, restricted};
use sessions::{interruptions, outages, owners};
use workloads::{custom_resources, failures, lifecycle, limits};

/// A test on the cluster.
#[derive(Clone, Copy)]
pub(crate) struct Test {
    /// A sentence.
    pub(crate) name: &'static str,
    /// Whether it may share the cluster.
    pub(crate) alone: Alone,
    /// Panics when it fails.
    pub(crate) run: fn(),
}

/// Whether a test breaks the cluster for others.
#[derive(Clone, Copy)]
pub(crate) enum Alone {
    /// Many at once.
    No,
    /// It stops components.
    Yes,
}

macro_rules! tests {
    ($($alone:ident $module:ident :: $name:ident),* $(,)?) => {
        &[$(Test { name: stringify!($name), alone: Alone::$alone, run: $module::$name }),*]
    };
}

/// All of them.
pub(crate) const TESTS: &[Test] = tests![
    No lifecycle::a_pod_passes_and_nothing_is_left,
    No lifecycle::a_failed_pod_is_kept_and_the_report_says_how_to_look,
    No lifecycle::a_job_of_three_pods_is_one_stdout_in_the_order_of_its_indices,
    No lifecycle::the_nbody_job_passes_its_references,
    No lifecycle::a_job_that_passes_after_a_retry_says_so,
    No lifecycle::every_container_has_its_section_init_containers_too,
    No lifecycle::documents_that_refer_to_each_other_are_renamed_together,
    No lifecycle::an_image_and_an_executable_make_a_pod,
    No lifecycle::the_files_of_a_check_with_an_image_are_sent_to_its_pod,
    No lifecycle::the_check_stream_runs_in_a_pod_with_its_static_program,
    No lifecycle::a_copy_of_a_case_runs_on_each_node_of_the_cluster,
    No lifecycle::a_line_of_a_mebibyte_and_binary_output_arrive_unchanged,
    No lifecycle::thirty_cases_share_one_watch,
    No failures::a_container_out_of_memory_says_so_with_its_limit,
    No failures::an_image_that_is_not_there_ends_the_case_in_time,
    No failures::an_image_that_one_of_two_containers_lacks_ends_the_case_and_is_named,
    No failures::an_image_name_that_is_none_ends_the_case_at_once,
    No failures::an_image_that_must_not_be_pulled_ends_the_case_at_once,
    No failures::a_missing_config_map_ends_the_case_after_a_grace,
    No failures::a_pod_that_fits_no_node_waits_no_longer_than_it_may,
    No failures::a_job_that_fails_for_good_reports_the_output_of_its_pods,
    No failures::a_running_case_ends_at_its_time_limit_and_frees_its_compute,
    No failures::a_quota_that_never_fits_ends_the_case_at_once,
    No failures::pods_wait_for_quota_and_run_in_turn,
    No failures::jobs_wait_for_quota_and_run_in_turn,
    No failures::a_gang_larger_than_the_quota_is_a_mistake_at_once,
    No failures::a_gang_waits_until_all_of_it_has_room,
    No failures::a_gang_that_gets_only_a_part_of_its_pods_waits_and_names_the_quota,
    No failures::an_injected_sidecar_is_not_waited_for,
    No failures::a_time_limit_says_which_containers_had_ended,
    No failures::a_site_names_the_containers_that_decide,
    No failures::a_pod_that_somebody_deletes_is_disrupted,
    No failures::a_pod_that_only_looks_like_one_of_the_job_is_ignored,
    No failures::an_evicted_pod_is_disrupted,
    Yes failures::a_program_that_ends_with_0_because_its_pod_is_told_to_end_is_disrupted,
    No failures::a_container_that_its_node_kills_and_that_ends_with_0_has_failed,
    No failures::a_preempted_pod_is_disrupted,
    No failures::a_namespace_that_is_not_there_is_named,
    No failures::a_namespace_that_is_going_away_is_named,
    No failures::an_object_that_the_server_refuses_says_which_field,
    No failures::the_server_says_beforehand_what_it_would_refuse,
    No failures::a_kind_that_the_cluster_does_not_know_is_named,
    No limits::what_a_killed_session_left_ends_by_itself,
    No limits::a_deadline_in_the_cluster_is_a_time_limit_and_no_failure,
    No limits::a_pod_that_no_node_can_ever_take_is_a_mistake_after_a_while,
    No limits::a_node_that_is_only_full_is_waited_for,
    No custom_resources::a_jobset_ends_by_its_own_conditions,
    No custom_resources::of_a_jobset_that_was_restarted_only_the_last_life_is_judged,
    No custom_resources::an_ipujob_of_three_instances_ends_when_its_pods_have,
    No custom_resources::a_failed_instance_of_a_custom_resource_fails_the_case,
    No custom_resources::of_pods_that_had_one_name_only_the_last_is_judged,
    No custom_resources::a_pod_whose_log_fills_the_limit_is_not_judged_in_the_place_of_the_last,
    No custom_resources::a_queued_pod_and_a_queued_job_wait_for_quota_and_run,
    No custom_resources::a_case_that_ends_in_a_queue_leaves_it,
    No custom_resources::what_a_queue_would_resume_is_deleted_at_its_time_limit,
    No custom_resources::a_queue_that_is_not_there_is_named,
    No interruptions::an_interrupt_deletes_what_runs_and_reports_it,
    No interruptions::what_a_killed_session_left_is_swept,
    No interruptions::after_a_kill_at_any_step_attach_finishes_each_case_once,
    No interruptions::after_a_kill_at_any_step_sweep_leaves_nothing,
    No interruptions::a_log_that_was_being_put_together_is_whole_even_if_its_pods_are_gone,
    No interruptions::an_interrupt_at_any_step_leaves_nothing,
    No interruptions::a_session_that_was_killed_with_a_secret_is_attached_or_swept,
    No interruptions::a_name_that_another_session_has_is_left_alone_and_the_case_goes_on,
    No in_cluster::a_night_within_the_cluster_leaves_its_results_and_its_exit_code,
    No proxies::a_cluster_behind_a_proxy_is_reached_through_it,
    No restricted::a_sites_patch_of_pods_satisfies_the_restricted_level_of_pod_security,
    No restricted::the_shipped_check_of_a_pod_passes_with_another_image,
    No in_cluster::a_night_whose_pod_is_killed_is_finished_by_the_next_pod,
    No owners::a_session_lives_and_dies_by_the_clock_of_the_server,
    No owners::a_session_that_was_killed_in_another_container_is_attached_and_its_lease_taken,
    No owners::of_two_that_attach_at_the_same_time_with_two_databases_one_gets_the_lease,
    No owners::what_sweep_has_removed_is_disrupted_when_it_is_attached,
    No preflight::all_rights_that_an_account_misses_are_named_at_once,
    No preflight::a_namespace_and_a_kind_that_are_missing_are_found_and_other_cases_run,
    No permissions::the_role_of_a_pod_is_enough_and_each_verb_is_needed,
    No permissions::the_role_of_a_pod_with_an_account_of_its_own_is_enough,
    No permissions::the_role_of_a_job_is_enough_and_each_verb_is_needed,
    No permissions::the_role_of_a_jobset_is_enough_and_each_verb_is_needed,
    No permissions::the_role_of_a_custom_resource_with_helpers_is_enough_and_each_verb_is_needed,
    Yes outages::a_session_outlives_a_restart_of_the_api_server,
    No outages::a_binding_that_is_absent_for_seconds_loses_no_case,
    Yes outages::five_restarts_of_the_api_server_under_load_lose_no_case,
    Yes outages::a_lost_node_disrupts_its_cases_and_is_named,
    No outages::a_log_that_was_rotated_has_no_file_less_or_says_so,
    No outages::a_long_log_that_is_printed_slowly_passes_whole,
    No outages::four_long_logs_that_end_together_are_read_to_their_ends,
];
