# A site with a batch system beside pods and processes.
site_configuration = {
    "systems": [
        {
            "name": "eidf",
            "descr": "A facility with several services",
            "hostnames": ["login.*"],
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "gpu-service",
                    "scheduler": "k8s",
                    "launcher": "k8s",
                    "access": ["--context=general"],
                    "environs": ["Default"],
                },
                {
                    "name": "login",
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["Default"],
                },
                {
                    "name": "cluster",
                    "descr": "Nodes of the batch system",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "access": ["--partition=standard", "--account=proj", "-C a100"],
                    "environs": ["Default", "gnu"],
                    "max_jobs": 16,
                    "time_limit": "20m",
                    "resources": [
                        {"name": "qos", "options": ["--qos={qos}"]},
                        {"name": "gpu", "options": ["--gres=gpu:{num_gpus_per_node}"]},
                    ],
                    "sched_options": {
                        "use_nodes_option": True,
                        "ignore_reqnodenotavail": True,
                        "max_sacct_failures": 5,
                    },
                    "prepare_cmds": ["module load site"],
                },
                {
                    "name": "mpi",
                    "scheduler": "squeue",
                    "launcher": "mpirun",
                    "access": [],
                    "environs": ["gnu"],
                },
                {
                    "name": "old",
                    "scheduler": "squeue",
                    "launcher": "alps",
                    "environs": ["gnu"],
                },
                {
                    "name": "elsewhere",
                    "scheduler": "pbs",
                    "launcher": "mpirun",
                    "environs": ["gnu"],
                },
            ],
        }
    ],
    "environments": [
        {"name": "Default"},
        {"name": "gnu", "cc": "gcc", "modules": ["gcc/13"], "resources": {"qos": {"qos": "short"}}},
    ],
}
