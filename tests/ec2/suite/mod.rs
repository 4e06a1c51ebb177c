//! The table of all tests.

#[allow(dead_code, reason = "each test of the scheduler uses a part")]
mod cloud;
mod fixture;
mod image;
#[allow(dead_code, reason = "each test of the scheduler uses a part")]
mod place;

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
];
