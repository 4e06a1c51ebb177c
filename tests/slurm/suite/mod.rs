//! The table of all tests.

mod cluster;
mod clusters;
mod jobs;

macro_rules! tests {
    ($($module:ident :: $name:ident),* $(,)?) => {
        &[$((stringify!($name), $module::$name)),*]
    };
}

/// All of them, by name.
pub(crate) const TESTS: &[(&str, fn())] = tests![
    clusters::a_job_of_a_user_runs_on_a_node_that_calls_itself_so,
    clusters::accounting_knows_how_a_job_ended_and_whose_it_may_be,
    clusters::a_node_that_is_stopped_takes_its_jobs_with_it_and_comes_back,
    clusters::a_controller_that_hangs_answers_no_more_until_it_is_resumed,
    jobs::a_job_passes_with_its_figure_and_node,
    jobs::tasks_run_on_as_many_nodes_as_the_check_says,
    jobs::the_output_of_each_task_can_be_judged_by_itself,
    jobs::a_failed_job_names_its_status_and_the_commands_to_look_further,
    jobs::a_job_that_runs_too_long_ends_at_its_time_limit,
    jobs::what_can_never_run_is_a_mistake_before_or_at_its_launch,
    jobs::a_job_that_somebody_cancels_is_disrupted,
    jobs::a_node_that_dies_disrupts_its_job,
    jobs::a_controller_that_is_away_for_a_while_fails_no_case,
    jobs::a_submission_whose_answer_is_lost_runs_once,
    jobs::a_copy_of_a_case_runs_on_each_node_of_a_state,
    jobs::a_node_that_is_drained_is_left_out_and_named,
    jobs::the_environment_of_the_user_changes_no_job,
    jobs::a_session_that_is_killed_at_any_step_leaves_nothing_behind,
];
