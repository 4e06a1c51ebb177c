import reframe as rfm
import reframe.utility.sanity as sn

SIZES = {'small': 4, 'large': 1024}
PATTERNS = [f'rand{op}' for op in ('read', 'write')]


def size_of(kind, unit='k'):
    if kind in SIZES:
        return f'{SIZES[kind]}{unit}'
    return '1k'


@rfm.simple_test
class fio(rfm.RunOnlyRegressionTest):
    descr = 'fio'
    valid_systems = ['+cpu -gpu', 'lab:gpu']
    valid_prog_environs = ['+openmp -cuda']
    rw = parameter(PATTERNS)
    kind = parameter(['small', 'large'])
    executable = 'fio'
    postrun_cmds = ['rm -f data']
    time_limit = '1d2h3m4s'
    max_pending_time = 600

    @run_before('run')
    def write_job(self):
        self.size = {k: size_of(k) for k in SIZES}
        self.executable_opts = ['--rw', self.rw, '--bs=' + self.size[self.kind], '--name=' + '-'.join([self.rw, self.kind])]

    @sanity_function
    def ran(self):
        return sn.assert_found(r'Run status group \d+ \(all jobs\):', self.stdout)

    @performance_function('MiB/s')
    def bw(self):
        return sn.extractsingle(r'bw=(?P<value>\S+)MiB/s', self.stdout, 'value', float)

    @run_before('performance')
    def reference_by_parameter(self):
        key = f'{self.rw}-{self.kind}'
        refs = {'randread-small': 10, 'randwrite-small': 5, 'randread-large': 900, 'randwrite-large': 500}
        if key in refs:
            self.reference = {'lab': {'bw': (refs[key], -0.3, None, 'MiB/s')}}
