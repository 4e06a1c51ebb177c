# The site of these tests: one system with two partitions and three environments.
site_configuration = {
    'systems': [
        {
            'name': 'lab',
            'descr': 'A laboratory',
            'hostnames': ['.*'],
            'modules_system': 'nomod',
            'partitions': [
                {
                    'name': 'cpu',
                    'descr': 'Plain nodes',
                    'scheduler': 'local',
                    'launcher': 'local',
                    'environs': ['gnu', 'clang'],
                    'max_jobs': 4,
                    'time_limit': '10m',
                    'features': ['cpu', 'omp'],
                    'extras': {'mem': 'ddr4', 'cores_wanted': 8},
                    'env_vars': [['SITE', 'lab'], ['WHERE', '$HOME']],
                    'prepare_cmds': ['ulimit -s unlimited'],
                    'processor': {
                        'arch': 'zen3',
                        'num_cpus': 16,
                        'num_cpus_per_core': 2,
                        'num_cpus_per_socket': 16,
                        'num_sockets': 1,
                    },
                },
                {
                    'name': 'gpu',
                    'scheduler': 'local',
                    'launcher': 'local',
                    'environs': ['gnu', 'cuda'],
                    'features': ['gpu', 'a100'],
                    'devices': [{'type': 'gpu', 'arch': 'sm_80', 'num_devices': 4}],
                    'processor': {'num_cpus': 64, 'num_cpus_per_core': 1, 'num_cpus_per_socket': 32, 'num_sockets': 2},
                },
            ],
        },
    ],
    'environments': [
        {'name': 'gnu', 'cc': 'gcc', 'cxx': 'g++', 'features': ['openmp'], 'target_systems': ['lab']},
        {'name': 'clang', 'cc': 'clang', 'features': ['openmp'], 'extras': {'vendor': 'llvm'}},
        {'name': 'cuda', 'features': ['cuda'], 'env_vars': [['CUDA_HOME', '/usr/local/cuda']]},
    ],
    'logging': [{'handlers': [{'type': 'stream', 'level': 'info', 'format': '%(message)s'}]}],
}
