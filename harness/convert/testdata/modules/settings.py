# A site with modules and containers.
site_configuration = {
    'systems': [
        {
            'name': 'lab',
            'hostnames': ['.*'],
            'modules_system': 'tmod4',
            'modules': ['site-defaults'],
            'partitions': [
                {
                    'name': 'cpu',
                    'scheduler': 'local',
                    'launcher': 'local',
                    'environs': ['gnu'],
                    'modules': [{'name': 'cpu', 'collection': True}],
                    'container_platforms': [
                        {'type': 'Singularity', 'modules': ['singularity/3'], 'env_vars': [['SINGULARITY_CACHEDIR', '/tmp']]},
                        {'type': 'Docker', 'default': True},
                    ],
                },
            ],
        },
        {
            'name': 'desk',
            'hostnames': ['desk'],
            'partitions': [{'name': 'p', 'scheduler': 'local', 'launcher': 'local', 'environs': ['gnu']}],
        },
    ],
    'environments': [
        {'name': 'gnu', 'modules': ['gcc/12', {'name': 'own', 'path': '/apps/modules'}]},
    ],
}
