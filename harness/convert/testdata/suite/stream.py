import os
import reframe as rfm
import reframe.utility.sanity as sn


class stream_base(rfm.RunOnlyRegressionTest):
    valid_systems = ['+cpu']
    valid_prog_environs = ['+openmp']
    executable = 'stream.x'
    num_tasks = 1
    num_cpus_per_task = 8
    time_limit = '5m'
    tags = {'memory'}

    array_size = variable(int, value=100000000)

    @run_before('run')
    def threads(self):
        self.env_vars = {'OMP_NUM_THREADS': '8', 'OMP_PLACES': 'cores'}
        self.executable_opts = ['-n', str(self.array_size)]

    @sanity_function
    def validates(self):
        return sn.assert_found(r'Solution Validates', self.stdout)

    @performance_function('MB/s')
    def copy_bw(self):
        return sn.extractsingle(r'Copy:\s+(\S+)\s+.*', self.stdout, 1, float)

    @performance_function('MB/s', perf_key='Triad')
    def triad_bw(self):
        return sn.extractsingle(r'Triad:\s+(?P<bw>\S+)\s+.*', self.stdout, 'bw', float)


@rfm.simple_test
class stream_small(stream_base):
    descr = 'STREAM, small arrays'
    reference = {
        'lab:cpu': {
            'copy_bw': (23540, -0.10, None, 'MB/s'),
            'Triad': (16441, -0.05, 0.05, 'MB/s'),
        }
    }


@rfm.simple_test
class stream_binding(stream_base):
    descr = 'STREAM, threads bound in two ways'
    places = parameter(['close', 'spread'])

    @run_before('run')
    def binding(self):
        self.env_vars['OMP_PROC_BIND'] = self.places
