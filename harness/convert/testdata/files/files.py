import os

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class solver(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    sourcesdir = 'input'
    readonly_files = ['mesh.bin', 'tables']
    keep_files = ['results', '*.log']
    executable = './solve.sh'

    @sanity_function
    def converged(self):
        return sn.all([
            sn.assert_found(r'^done$', self.stdout),
            sn.assert_found(r'converged', 'solver.log', 'it did not converge'),
            sn.assert_not_found(r'nan', os.path.join(self.stagedir, 'results/field.txt')),
            sn.assert_eq(sn.count(sn.findall(r'^step', 'trace.txt')), 10),
            sn.assert_lt(sn.max(sn.extractall(r'err (\S+)', 'trace.txt', 1, float)), 1e-3),
        ])

    @performance_function('s')
    def runtime(self):
        return sn.extractsingle(r'time (\S+)', 'solver.log', 1, float)

    @performance_function('MB/s')
    def mean_rate(self):
        return sn.avg(sn.extractall(r'rate (\S+)', f'{self.stagedir}/rates.csv', 1, float))


@rfm.simple_test
class per_size(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    size = parameter([1, 2])
    sourcesdir = None
    executable = './run.sh'

    @run_before('run')
    def options(self):
        self.executable_opts = ['-o', f'out_{self.size}.txt']

    @sanity_function
    def fine(self):
        return sn.assert_found('ok', f'out_{self.size}.txt')


@rfm.simple_test
class mixed(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = './run.sh'

    @sanity_function
    def fine(self):
        return sn.assert_eq(sn.extractsingle(r'(\d+)', self.stdout, 1, int),
                            sn.extractsingle(r'(\d+)', 'out.txt', 1, int))

    @performance_function('s')
    def elsewhere(self):
        return sn.extractsingle(r'(\d+)', '/var/log/run.log', 1, float)
