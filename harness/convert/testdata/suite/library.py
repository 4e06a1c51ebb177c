import reframe as rfm
import reframe.utility.sanity as sn
from base_checks import hpct_base, hpct_scaling


@rfm.simple_test
class lib_single(hpct_base):
    valid_systems = ['lab']
    executable = 'single.x'
    label = 'single node'


@rfm.simple_test
class lib_weak(hpct_scaling):
    nodes = parameter([1, 2, 4])
    valid_systems = ['lab:cpu']
    executable = 'weak.x'
    flags = ['--csv', '--weak']
    ranks = 8


@rfm.simple_test
class lib_strong(hpct_scaling):
    nodes = parameter([1, 2])
    valid_systems = ['lab:cpu']
    executable = 'strong.x'
    size = 4096

    @run_before('run')
    def arguments(self):
        super().arguments()
        self.executable_opts += ['--strong']

    @performance_function('s')
    def time(self):
        return sn.extractsingle(r'time: (\S+)', self.stdout, 1, float, item=-1)
