import reframe as rfm
import reframe.utility.sanity as sn


class osu_base(rfm.RunOnlyRegressionTest):
    '''Point-to-point figures of MPI.'''

    valid_systems = ['*']
    valid_prog_environs = ['gnu']
    num_tasks = 2
    num_tasks_per_node = 1
    benchmark = parameter([
        ('osu_bw', 'bandwidth'),
        ('osu_latency', 'latency'),
    ], fmt=lambda x: x[0])

    @run_before('run')
    def prepare(self):
        self.executable = self.benchmark[0]
        self.executable_opts = ['-x', '10', '-i', '1000']

    @sanity_function
    def header(self):
        return sn.assert_found(r'^# OSU MPI', self.stdout)


@rfm.simple_test
class osu_pt2pt(osu_base):
    message = parameter([8, 1048576])

    @run_before('run')
    def size(self):
        self.executable_opts += ['-m', f'{self.message}:{self.message}']

    @run_before('performance')
    def figures(self):
        kind = self.benchmark[1]
        unit = 'us' if kind == 'latency' else 'MB/s'
        self.perf_variables = {
            'figure': sn.make_performance_function(
                sn.extractsingle(rf'^{self.message}\s+(\S+)', self.stdout, 1, float), unit
            )
        }
