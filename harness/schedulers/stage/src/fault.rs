//! The reason why a program did not start.

use crate::blocking;
use muster_core::job::{
    scheduler::{Ending, Exit, Job},
    stage_folder,
};
use muster_host::files::open_regular;
use std::io;

/// Returns why the program of a job that is over was never started, for example because its script could not load a module.
/// Then there is nothing to judge, whatever statuses the check allows.
pub async fn fault(job: &Job, ending: &Ending) -> Option<String> {
    // What passes need not be asked.
    ending.exits.iter().find(|section| section.exit == Exit::Code(stage_folder::FAULT_STATUS))?;
    let path = job.stage.join(stage_folder::FAULT_FILE);
    let text = blocking(move || open_regular(&path).and_then(io::read_to_string)).await.ok()?;
    Some(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_job::job;
    use muster_core::job::scheduler::SectionExit;
    use std::process::Command;

    #[tokio::test]
    async fn a_pipe_in_the_place_of_the_file_is_not_waited_for() {
        let (_folder, job) = job();
        let exit = Exit::Code(stage_folder::FAULT_STATUS);
        let ending = Ending { exits: vec![SectionExit { exit, ..SectionExit::default() }], ..Ending::default() };
        let path = job.stage.join(stage_folder::FAULT_FILE);
        std::fs::write(&path, "module load gcc failed\n").unwrap();
        assert_eq!(fault(&job, &ending).await.as_deref(), Some("module load gcc failed"));
        std::fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!(fault(&job, &ending).await, None);
    }
}
