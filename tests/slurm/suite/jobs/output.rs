//! The log of a job, byte for byte, and the environment that it has.

use crate::suite::{cluster::Cluster, sandbox::Place};
use std::fmt::Write;

pub(crate) fn a_log_of_several_megabytes_is_whole() {
    let check = "executable: seq 700000\nsanity: [{ found: '^700000$' }, { found: '^1$' }]";
    let place = Place::new(Cluster::shared(), "long", "launcher: none", check);
    let ended = place.run(&[]).expect_case(0, "pass", &[]);
    let expected = (1..=700_000).fold(String::new(), |mut all, n| {
        let _ = writeln!(all, "{n}");
        all
    });
    assert!(ended.printed() == expected, "{} bytes, not {}", ended.printed().len(), expected.len());
}

/// Bytes that are no text, a line without an end (it gets one), and standard error in its place.
pub(crate) fn the_bytes_of_a_job_arrive_as_they_are() {
    let check =
        "executable: \"printf 'a\\\\000\\\\377\\\\033[31mb\\\\r\\\\n'; echo err >&2; printf last\"\nsanity: [{ found: err }]";
    let place = Place::new(Cluster::shared(), "bytes", "launcher: none", check);
    let ended = place.run(&[]).expect_case(0, "pass", &[]);
    assert_eq!(ended.stdout(), b"a\x00\xff\x1b[31mb\r\nerr\nlast\n");
}

/// What is missing cannot be judged, even if what is left has all that is looked for.
pub(crate) fn a_job_that_truncates_its_log_is_not_judged() {
    let check = "executable: echo lost; echo good > /dev/stderr\nsanity: [{ found: good }]";
    let place = Place::new(Cluster::shared(), "truncates", "launcher: none", check);
    place.run(&[]).expect_case(1, "invalid{logs}", &["truncated its log"]);
}

/// Variables of sbatch in the user's shell change no job; what the site passes on is there.
pub(crate) fn the_environment_of_the_user_changes_no_job() {
    let check = "executable: 'echo [$SECRET] [$PASSED] [$HOME]'\nsanity: [{ found: '^\\[\\] \\[on\\] \\[/.*alice\\]$' }]";
    let place = Place::new(Cluster::shared(), "clean", "launcher: none, pass_env: [PASSED]", check);
    let mut command = place.command(&["-c", "c.check.yaml", "-r"]);
    command.env("SBATCH_TIMELIMIT", "bad").env("SQUEUE_FORMAT", "%i").env("SLURM_JOB_ID", "1").env("SACCT_FORMAT", "user");
    place.to_end(command.env("SECRET", "shown").env("PASSED", "on")).expect(0);
}
