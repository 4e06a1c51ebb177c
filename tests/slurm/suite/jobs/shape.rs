//! Tasks, nodes and what starts them.

use crate::suite::{cluster::Cluster, sandbox::Place};

/// A case that passes on a node, with its figure; nothing is left in the queue.
pub(crate) fn a_job_passes_with_its_figure_and_node() {
    let check = "executable: echo\nexecutable_opts: ['rate: 12.5']\nsanity: [{ found: rate }]\n\
                 perf_variables: { rate: { pattern: 'rate: (\\S+)', unit: GB/s } }";
    let place = Place::new(Cluster::shared(), "passes", "launcher: srun", check);
    let ended = place.run(&["--performance-report"]).expect_case(0, "pass", &[]);
    assert!(ended.text.contains("rate  12.5  GB/s") && ended.text.contains(" on n"), "{}", ended.text);
    assert_eq!(ended.printed(), "rate: 12.5\n");
    assert_eq!(ended.nodes().len(), 1, "{}", ended.report);
    place.await_empty_queue();
}

/// Tasks on nodes, a launcher of the check with options of its own. The job may end before it is seen at work.
pub(crate) fn tasks_run_on_as_many_nodes_as_the_check_says() {
    let check = "executable: hostname\nnum_tasks: 3\nnum_nodes: 3\nnum_tasks_per_node: 1\nlauncher: srun\n\
                 launcher_options: --label\nsanity: [{ found: '^\\d: n\\d', count: 3 }, { found: '2: n3' }]";
    let place = Place::new(Cluster::shared(), "shape", "launcher: none", check);
    let ended = place.run(&[]).expect(0);
    assert_eq!(ended.nodes(), ["n1", "n2", "n3"], "{}", ended.text);
    let script = String::from_utf8_lossy(&ended.kept("rfm_job.sh")).into_owned();
    for line in ["#SBATCH --ntasks=3\n", "#SBATCH --nodes=3\n", "#SBATCH --ntasks-per-node=1\n", "srun --label hostname\n"] {
        assert!(script.contains(line), "{line}: {script}");
    }
}

/// Each task writes a file of its own, and a command of the check starts tasks as the executable does.
pub(crate) fn the_output_of_each_task_can_be_judged_by_itself() {
    let check = "executable: sh\nexecutable_opts: [-c, \"'echo rank $SLURM_PROCID'\"]\nnum_tasks: 3\nlauncher: srun\n\
                 prerun_cmds: ['${{ launcher }} true && echo started by ${{ launcher }}']\n\
                 launcher_options: --output=task.%t.out\nkeep_files: ['task.*.out']\n\
                 sanity:\n- { file: 'task.*.out', found: 'rank \\d', count: 3 }\n- { file: task.2.out, found: '^rank 2$' }\n\
                 - { found: started by srun --output }\n- { found: rank, count: 0 }";
    let place = Place::new(Cluster::shared(), "each", "launcher: none", check);
    place.run(&[]).expect(0);
}

/// A partition that names no launcher has srun, which starts the tasks in a step.
pub(crate) fn without_a_launcher_srun_starts_the_tasks() {
    let check = "executable: sh\nexecutable_opts: [-c, \"'echo step $SLURM_STEP_ID rank $SLURM_PROCID of $SLURM_NTASKS'\"]\n\
                 num_tasks: 2\nsanity: [{ found: '^step 0 rank [01] of 2$', count: 2 }]";
    let place = Place::new(Cluster::shared(), "usual", "max_pending_time: 1m", check);
    place.run(&[]).expect(0);
}

/// The first task that fails ends the others, which would go on for a minute.
pub(crate) fn a_task_that_fails_ends_the_others() {
    let check = "executable: sh\nexecutable_opts: [-c, \"'[ $SLURM_PROCID = 1 ] && exit 3; sleep 60'\"]\nnum_tasks: 2\n\
                 time_limit: 40s\nsanity: []";
    let place = Place::new(Cluster::shared(), "onefails", "max_pending_time: 1m", check);
    let ended = place.run(&[]).expect_case(1, "fail{workload}", &[]);
    assert!(ended.printed().contains("exit code 3"), "{}", ended.printed());
    place.await_empty_queue();
}

/// Launchers are programs on the PATH: here they print what they get.
pub(crate) fn a_launcher_gets_the_shape_of_the_job() {
    let check = "executable: ./solve\nnum_tasks: 4\nnum_tasks_per_node: 2\nnum_cpus_per_task: 2\nsanity: []";
    for (name, launcher, printed) in [
        ("mpirun", "mpirun", "mpirun -np 4 ./solve\n"),
        ("openmpi", "mpirun-openmpi", "mpirun -np 4 --map-by ppr:2:node ./solve\n"),
        ("intelmpi", "mpirun-intelmpi", "mpirun -n 4 -ppn 2 ./solve\n"),
        ("own", "mpirun --tasks {num_tasks}x{num_cpus_per_task}", "mpirun --tasks 4x2 ./solve\n"),
    ] {
        let place = Place::new(Cluster::shared(), name, &format!("launcher: '{launcher}'"), check);
        let path = place.stub("mpirun", "echo mpirun \"$@\"");
        let ended = place.to_end(place.command(&["-c", "c.check.yaml", "-r"]).env("PATH", path)).expect_case(0, "pass", &[]);
        assert_eq!(ended.printed(), printed, "{launcher}");
    }
}

/// A command has no launcher, and a modifier stands before it.
pub(crate) fn a_modifier_stands_before_the_launcher_and_none_starts_one_process() {
    let check = "executable: echo\nexecutable_opts: [hello]\nnum_tasks: 2\nlauncher_modifier: env WITH=it\nsanity: []";
    for (name, launcher, printed) in [("modified", "srun", "hello\nhello\n"), ("single", "none", "hello\n")] {
        let place = Place::new(Cluster::shared(), name, &format!("launcher: {launcher}"), check);
        let ended = place.run(&[]).expect_case(0, "pass", &[]);
        assert_eq!(ended.printed(), printed, "{launcher}");
        let script = String::from_utf8_lossy(&ended.kept("rfm_job.sh")).into_owned();
        assert_eq!(script.contains("env WITH=it srun echo hello\n"), launcher == "srun", "{script}");
    }
}

/// Newer versions of srun pass over what sbatch was asked for.
pub(crate) fn the_processors_of_a_task_are_those_of_its_step() {
    let check = "executable: sh\nexecutable_opts: [-c, \"'echo cpus $SLURM_CPUS_PER_TASK'\"]\nnum_tasks: 2\n\
                 num_cpus_per_task: 2\npostrun_cmds: ['scontrol -o show job $SLURM_JOB_ID']\n\
                 sanity: [{ found: '^cpus 2$', count: 2 }, { found: ' NumCPUs=4 ' }, { found: ' CPUs/Task=2 ' }]";
    let place = Place::new(Cluster::shared(), "threads", "launcher: srun", check);
    place.run(&[]).expect(0);
}
