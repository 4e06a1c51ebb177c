import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class HPCG(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['gnu', 'clang']
    executable = 'xhpcg'
    executable_opts = ['--nx=104', '--rt=60']
    strict_check = False
    refs = {'lab': 58.0, 'elsewhere': 70.5}

    @run_after('setup')
    def ranks(self):
        self.num_tasks = self.current_partition.processor.num_cores
        if self.current_environ.name == 'clang':
            self.env_vars['OMP_NUM_THREADS'] = 2
        else:
            self.env_vars['OMP_NUM_THREADS'] = 1

    @run_before('performance')
    def references(self):
        self.reference = {
            '*': {'gflops': (self.refs.get(self.current_system.name, 10.0), -0.1, None, 'GFLOP/s')}
        }

    @sanity_function
    def valid(self):
        return sn.all([
            sn.assert_eq(4, sn.count(sn.findall(r'PASSED', self.stdout))),
            sn.assert_eq(0, sn.count(sn.findall(r'FAILED', self.stdout))),
            sn.assert_not_found(r'nan', self.stdout),
        ])

    @performance_function('GFLOP/s')
    def gflops(self):
        return sn.extractsingle(r'HPCG result is VALID with a GFLOP\/s rating of\s*(\S+)', self.stdout, 1, float)
