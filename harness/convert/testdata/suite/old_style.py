import os

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class OldStyle(rfm.RunOnlyRegressionTest):
    def __init__(self):
        self.descr = 'Everything in the constructor'
        self.valid_systems = ['lab:cpu']
        self.valid_prog_environs = ['gnu']
        self.executable = 'old.x'
        self.executable_opts = '-a -b 3'.split()
        self.env_vars = {'HOME_OF': os.environ.get('HOME', '/root'), 'N': '4'}
        self.sanity_patterns = sn.assert_found(r'SUCCESS', self.stdout)
        self.perf_patterns = {
            'elapsed': sn.extractsingle(r'elapsed: (\S+)', self.stdout, 1, float),
        }
        self.reference = {
            'lab:cpu': {'elapsed': (12.5, None, 0.10, 's')},
            '*': {'elapsed': (0, None, None, 's')},
        }
        self.maintainers = ['me']
        self.tags = {'production', 'old'}
