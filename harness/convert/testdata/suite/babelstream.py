import reframe as rfm
import reframe.utility.sanity as sn


class BabelMixin(rfm.RegressionMixin):
    model = parameter(['omp', 'cuda'])
    kernel = variable(str, value='Triad')


@rfm.simple_test
class babelstream(rfm.RunOnlyRegressionTest, BabelMixin):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    precision = parameter(['float', 'double'])

    @run_after('init')
    def places(self):
        if self.model == 'cuda':
            self.valid_prog_environs = ['+cuda']
            self.descr = 'BabelStream on GPUs'
        else:
            self.valid_prog_environs = ['+openmp']
            self.descr = 'BabelStream on CPUs'

    @run_before('run')
    def command(self):
        self.executable = f'{self.model}-stream'
        opts = ['--arraysize', '33554432']
        if self.precision == 'float':
            opts.append('--float')
        self.executable_opts = opts

    @sanity_function
    def validated(self):
        return sn.assert_not_found(r'Validation failed', self.stdout)

    @run_before('performance')
    def figures(self):
        self.perf_variables = {
            name: self.bandwidth(name) for name in ('Copy', 'Mul', 'Add', 'Triad', 'Dot')
        }

    @performance_function('MB/s')
    def bandwidth(self, name='Triad'):
        return sn.extractsingle(rf'^{name}\s+(\S+)', self.stdout, 1, float)
