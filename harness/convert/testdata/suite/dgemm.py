import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class dgemm(rfm.RunOnlyRegressionTest):
    valid_systems = ['lab:cpu', 'lab:gpu']
    valid_prog_environs = ['gnu']
    executable = 'dgemm.x'
    executable_opts = ['5000', '5000', '5000']
    nodes = parameter(range(1, 4))
    arch_refs = {
        'zen3': (820.0, -0.15, None, 'Gflop/s'),
        'haswell': (350.0, -0.15, None, 'Gflop/s'),
    }

    @run_after('setup')
    def by_architecture(self):
        arch = self.current_partition.processor.arch
        if arch in ('zen3', 'haswell'):
            self.reference = {self.current_partition.fullname: {'gflops': self.arch_refs[arch]}}
        self.num_tasks = self.nodes

    @sanity_function
    def every_node(self):
        return sn.assert_eq(self.num_tasks, sn.count(sn.findall(r'Time for \d+ DGEMM', self.stdout)))

    @performance_function('Gflop/s')
    def gflops(self):
        return sn.avg(sn.extractall(r'Flops based on.*:\s+(?P<gflops>\S+)\sGFlops', self.stdout, 'gflops', float))

    @performance_function('s')
    def slowest(self):
        times = sn.extractall(r'Time for \d+ DGEMM operations \(s\):\s+(\S+)', self.stdout, 1, float)
        return sn.max(times)
