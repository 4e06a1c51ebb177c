//! The table of all tests.

#[allow(dead_code, reason = "each test of the scheduler uses a part")]
mod cloud;
mod ends;
mod files;
mod fixture;
mod image;
#[allow(dead_code, reason = "each test of the scheduler uses a part")]
mod place;
mod run;

macro_rules! tests {
    ($($module:ident :: $name:ident),* $(,)?) => {
        &[$((stringify!($name), $module::$name)),*]
    };
}

/// All of them, by name. They start in this order: those that take long come first.
pub(crate) const TESTS: &[(&str, fn())] = tests![
    fixture::the_fixture_keeps_its_promises,
    fixture::a_cloud_answers_who_asks_it,
    image::mpirun_runs_on_all_instances_of_a_case,
    image::a_host_with_another_key_is_refused,
    image::cloud_init_takes_user_data_as_one_script_and_the_agent_runs_the_job,
    ends::an_outage_of_s3_at_the_end_loses_nothing_that_the_console_has,
    run::a_log_of_forty_mebibytes_is_whole,
    ends::a_script_that_ignores_term_is_killed_at_its_limit,
    ends::a_case_whose_capacity_was_taken_away_is_launched_again,
    ends::an_instance_that_never_reaches_s3_is_given_up_with_its_console,
    ends::a_host_that_is_lost_ends_its_case_with_the_log_so_far,
    ends::spot_capacity_that_is_taken_away_is_said_to_be,
    ends::a_script_that_fails_keeps_its_instance_for_a_while,
    ends::a_session_that_was_killed_is_finished_by_the_next_one_and_nothing_is_launched_twice,
    ends::an_interrupt_ends_all_instances,
    ends::instances_without_room_at_their_start_are_asked_for_elsewhere,
    ends::a_second_interrupt_says_what_may_be_left,
    ends::a_rank_that_is_lost_ends_its_case_at_once_and_is_named,
    ends::a_sweep_says_what_is_left_and_what_it_costs_and_removes_it,
    run::fabric_groups_and_capacity_blocks_are_asked_for_as_documented,
    run::the_printed_policy_allows_every_call_of_a_run_and_no_other,
    run::a_run_says_what_it_has_used_and_what_that_cost,
    run::a_converted_descriptor_runs,
    run::a_launch_that_ec2_is_too_busy_for_is_sent_again_with_its_token,
    run::three_instances_have_three_sections_and_the_first_begins_when_all_are_ready,
    run::a_group_that_is_still_in_use_is_deleted_when_it_is_not,
    run::a_connection_that_breaks_after_the_launch_leads_to_one_set_of_instances,
    run::instances_that_are_listed_late_are_waited_for,
    run::a_request_that_ec2_is_too_busy_for_is_sent_again,
    run::a_zone_without_capacity_is_asked_once_and_the_next_one_at_once,
    run::a_passing_script_leaves_its_log_and_nothing_else,
    files::the_check_stream_runs_unchanged_on_an_instance,
    files::data_sets_of_the_web_are_copied_once_and_those_of_s3_are_read_in_place,
    files::sources_travel_with_the_script_and_what_it_leaves_comes_back,
    files::a_data_set_that_is_another_launches_nothing,
];
