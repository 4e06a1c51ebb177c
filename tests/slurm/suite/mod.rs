//! The table of all tests.

mod cluster;
mod clusters;
mod faults;
mod jobs;
mod sandbox;
mod sessions;

use faults::{controller, files, limits, nodes, queue, submission};
use jobs::{ends, options, output, shape};
use sessions::{interruptions, owners, rounds, selection};

macro_rules! tests {
    ($($module:ident :: $name:ident),* $(,)?) => {
        &[$((stringify!($name), $module::$name)),*]
    };
}

/// All of them, by name. They start in this order: those that take long come first.
pub(crate) const TESTS: &[(&str, fn())] = tests![
    interruptions::after_a_kill_at_any_step_attach_finishes_each_case_once,
    interruptions::after_a_kill_at_any_step_sweep_leaves_nothing,
    interruptions::an_interrupt_at_any_step_leaves_nothing,
    queue::a_job_that_is_cancelled_before_an_epilog_is_disrupted,
    options::constraints_of_three_places_hold,
    options::constraints_and_excluded_nodes_of_both_sched_options_hold,
    options::a_hidden_partition_is_used_like_any_other,
    controller::a_controller_that_hangs_for_half_a_minute_fails_no_case,
    controller::a_controller_that_is_killed_and_comes_back_fails_no_case,
    controller::a_controller_that_comes_late_gets_the_job_then,
    controller::a_submission_whose_answer_is_lost_runs_once,
    controller::a_submission_that_takes_too_long_runs_once,
    controller::jobs_run_and_end_while_the_accounting_is_down,
    controller::who_cancelled_a_job_is_known_although_the_accounting_is_late,
    limits::a_job_that_slurm_ends_at_its_own_time_limit_says_so,
    limits::a_job_that_uses_more_memory_than_it_may_says_how_much,
    clusters::a_job_of_a_user_runs_on_a_node_that_calls_itself_so,
    clusters::accounting_knows_how_a_job_ended_and_whose_it_may_be,
    clusters::a_node_that_is_stopped_takes_its_jobs_with_it_and_comes_back,
    clusters::a_controller_that_hangs_answers_no_more_until_it_is_resumed,
    shape::a_job_passes_with_its_figure_and_node,
    shape::tasks_run_on_as_many_nodes_as_the_check_says,
    shape::the_output_of_each_task_can_be_judged_by_itself,
    shape::without_a_launcher_srun_starts_the_tasks,
    shape::a_task_that_fails_ends_the_others,
    shape::a_launcher_gets_the_shape_of_the_job,
    shape::a_modifier_stands_before_the_launcher_and_none_starts_one_process,
    shape::the_processors_of_a_task_are_those_of_its_step,
    options::the_options_of_a_check_reach_slurm,
    options::a_job_runs_on_the_node_that_is_asked_for_in_its_reservation,
    options::commands_of_slurm_run_through_a_remote_shell,
    options::the_access_of_a_reframe_site_becomes_options,
    options::constraints_and_excluded_nodes_of_site_and_check_both_hold,
    options::a_resource_gets_the_values_of_the_check,
    options::gpus_and_a_node_of_its_own_are_asked_for,
    ends::the_task_that_failed_first_gives_the_status,
    ends::the_status_of_an_earlier_step_is_not_that_of_the_program,
    ends::a_failed_job_names_its_status_and_the_commands_to_look_further,
    ends::the_exit_status_is_that_of_the_program,
    ends::a_signal_that_ends_a_job_is_named,
    ends::a_job_that_runs_too_long_ends_at_its_time_limit,
    ends::what_can_never_run_is_a_mistake_before_or_at_its_launch,
    ends::an_account_that_is_not_ones_own_is_a_mistake_at_the_launch,
    output::a_log_of_several_megabytes_is_whole,
    output::the_bytes_of_a_job_arrive_as_they_are,
    output::a_job_that_truncates_its_log_is_not_judged,
    output::the_environment_of_the_user_changes_no_job,
    nodes::a_node_that_dies_disrupts_its_job,
    nodes::a_job_whose_other_node_dies_is_disrupted,
    nodes::a_case_whose_node_dies_runs_again_elsewhere,
    nodes::a_node_that_is_drained_meanwhile_ends_its_job_in_peace,
    nodes::a_node_that_is_drained_is_left_out_and_named,
    queue::a_job_that_root_cancels_is_disrupted,
    queue::a_job_for_two_partitions_is_waited_for_while_one_is_busy,
    queue::another_user_may_not_cancel_a_job,
    queue::a_job_that_is_preempted_is_disrupted,
    queue::a_case_that_is_preempted_runs_again_afterwards,
    queue::a_job_that_slurm_starts_again_is_judged_by_its_last_start,
    queue::a_job_that_is_held_waits_until_it_is_released,
    queue::a_job_that_root_suspends_ends_later_and_says_so,
    queue::cases_wait_where_a_site_takes_no_more_jobs,
    queue::a_reason_of_the_site_ends_the_waiting_at_once,
    files::an_exit_file_that_comes_late_is_waited_for,
    files::a_job_whose_exit_file_never_comes_does_not_pass,
    files::a_folder_that_the_node_does_not_see_is_named,
    files::a_job_that_fills_the_disk_of_its_stage_is_an_error,
    files::clocks_that_differ_by_hours_change_no_limit,
    submission::one_case_asks_a_full_site_for_all,
    submission::cases_wait_their_turn_at_a_slow_sbatch,
    submission::a_time_limit_may_be_that_of_the_partition,
    submission::a_time_limit_may_be_that_of_the_quality_of_service,
    submission::a_launch_that_failed_half_way_is_completed,
    submission::sbatch_gets_what_it_needs_to_reach_the_cluster_and_its_job_does_not,
    selection::a_copy_of_a_case_runs_on_each_node_of_a_state,
    selection::copies_run_on_the_nodes_that_are_named_or_meet_the_constraint,
    selection::a_reserved_node_gets_copies_only_with_its_reservation,
    selection::options_of_the_command_line_count_last,
    selection::a_dry_run_shows_the_script_that_is_submitted,
    selection::a_dry_run_of_a_server_that_is_away_validates_nothing,
    selection::a_dry_run_of_the_server_says_what_would_be_refused_and_launches_nothing,
    rounds::no_more_jobs_are_submitted_than_a_partition_allows,
    rounds::a_job_that_waits_too_long_is_given_up,
    rounds::a_failed_case_is_run_again_in_another_folder,
    rounds::a_disruption_is_run_again_only_if_it_may_be,
    rounds::a_fixture_runs_as_a_job_before_those_that_need_it,
    owners::a_living_session_is_not_swept_and_a_dead_one_is,
    owners::a_killed_session_is_attached_and_each_case_runs_once,
    owners::a_killed_session_is_resumed_by_the_same_command,
    owners::a_restored_session_ends_the_old_job_and_runs_the_case_again,
    owners::two_sessions_at_once_do_not_disturb_each_other,
    interruptions::an_interrupt_cancels_what_runs_and_reports_it,
    interruptions::a_second_interrupt_leaves_at_once_and_names_what_is_left,
];
