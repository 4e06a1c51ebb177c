import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class gromacs_water(rfm.RunOnlyRegressionTest):
    descr = 'GROMACS, water in a box'
    valid_systems = ['lab']
    valid_prog_environs = ['gnu']
    executable = 'gmx_mpi mdrun'
    maintainers = ['md-team']
    tags = {'science', 'md'}
    scale = parameter(['small', 'large'])
    nb_impl = parameter(['cpu', 'gpu'])

    energies = {
        'small': -12071400.0,
        'large': -3270799.9,
    }
    perf_refs = {
        'small': {'lab:cpu': {'perf': (120.0, -0.05, None, 'ns/day')}},
        'large': {'lab:cpu': {'perf': (42.0, -0.05, None, 'ns/day')}, 'lab:gpu': {'perf': (142.0, -0.05, None, 'ns/day')}},
    }

    @run_after('init')
    def only_where_it_can(self):
        self.skip_if(self.scale == 'small' and self.nb_impl == 'gpu', 'too small for a GPU')
        if self.nb_impl == 'gpu':
            self.valid_systems = ['+gpu']

    @run_before('run')
    def options(self):
        self.executable_opts = ['-dlb yes', '-ntomp 1', f'-nb {self.nb_impl}', '-s benchmark.tpr']
        if self.scale == 'small':
            self.num_tasks = 8
        elif self.nb_impl == 'gpu':
            self.num_tasks = 4
            self.executable_opts.append('-update gpu')
        else:
            self.num_tasks = 64
        self.reference = self.perf_refs[self.scale]

    @sanity_function
    def energy(self):
        value = sn.extractsingle(r'\s+Potential\s+Kinetic En\.\s+Total Energy.*\n(\s+\S+){2}\s+(?P<e>\S+)', self.stdout, 'e', float)
        wanted = self.energies[self.scale]
        return sn.all([
            sn.assert_found('Finished mdrun', self.stdout, 'it did not finish'),
            sn.assert_lt(sn.abs((value - wanted) / wanted), 0.001),
        ])

    @performance_function('ns/day')
    def perf(self):
        return sn.extractsingle(r'Performance:\s+(?P<perf>\S+)', self.stdout, 'perf', float)
