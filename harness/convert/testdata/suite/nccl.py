import reframe as rfm
import reframe.utility.sanity as sn

OPERATIONS = ['all_reduce', 'all_gather', 'sendrecv']


@rfm.simple_test
class nccl_tests(rfm.RunOnlyRegressionTest):
    descr = 'NCCL: bus bandwidth of collectives'
    valid_systems = ['%mem=hbm', '+gpu']
    valid_prog_environs = ['*']
    op = parameter(OPERATIONS, loggable=True)
    size = parameter([1 << 3 if False else 1024, 1024 * 1024])
    num_tasks = 4

    @run_before('run')
    def command(self):
        self.executable = '{}_perf'.format(self.op)
        self.executable_opts = ['-b %d' % 8, f'-e {self.size}', '-f 2', '-g 1']
        self.env_vars.update({'NCCL_DEBUG': 'INFO'})
        if self.op == 'sendrecv':
            self.env_vars['NCCL_P2P_LEVEL'] = 'NVL'

    @sanity_function
    def no_wrong_values(self):
        errors = sn.extractsingle(r'# Out of bounds values : (\d+) OK', self.stdout, 1, int)
        return sn.assert_eq(errors, 0)

    @performance_function('GB/s')
    def bus_bandwidth(self):
        return sn.extractsingle(r'# Avg bus bandwidth\s+: (\S+)', self.stdout, 1, float)
