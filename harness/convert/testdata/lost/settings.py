import os

# Whatever stands here is in the result, whole, or in a line of the report.
site_configuration = {
    'systems': [
        {
            'name': 'one',
            'hostnames': ['head', os.environ['HOST']],
            'max_lcal_jobs': 3,
            'env_vars': [['A', os.environ['X'] + '/x'], ['B', f'{os.environ["X"]}x'], ['C', unknown()], ['D']],
            'partitions': [
                {
                    'name': 'cn',
                    'scheduler': 'slurm',
                    'launcher': 'srun',
                    'environs': ['gnu', 'both'],
                    'access': [
                        '-p main',
                        f'--account={os.environ["SLURM_ACCOUNT"]}',
                    ],
                    'resources': [{'name': 'x', 'options': ['--mem=' + os.environ.get('MEM', '1G')]}],
                    'sched_options': {'use_nodes_option': os.environ['NODES']},
                    'env_vars': [['SCRATCH', os.environ['SCRATCH']], ['SCRATCH', '/tmp']],
                    'prepare_cmds': ['source /etc/profile', 'module load ' + os.environ['MODS']],
                    'features': ['a', unknown()],
                    'extras': {'known': 1, 'not': unknown()},
                    'time_limit': os.path.expandvars('$LIMIT'),
                    'processor': {'num_cpus': 4, 'nmu_x': 3},
                    'devices': [{'type': 'gpu', 'num_devices': 2, 'modle': 'a100'}],
                    'container_platforms': [{'type': 'Docker', 'moduls': ['x']}],
                },
                {'name': 'nameless', 'environs': ['gnu']},
                {'name': 'rest', 'scheduler': 'local', 'devices': ['gpu'], 'sched_options': 3, 'access': unknown()},
            ],
        },
        {'hostnames': ['nowhere']},
    ],
    'environments': [
        {'name': 'gnu', 'foo': 1, 'cppflags': ['-I', os.environ['INC']], 'ldflags': ['-L', unknown()]},
        {'name': 'both', 'cc': 'gcc', 'env_vars': [['CC', 'clang']]},
        {'name': 'nobody', 'cc': 'gcc'},
    ],
    'modes': [{'name': 'night', 'options': ['-n x']}],
    'enviroments': [],
}
