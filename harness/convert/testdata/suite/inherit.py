import reframe as rfm
import reframe.utility.sanity as sn


class lattice(rfm.RunOnlyRegressionTest):
    valid_systems = ['lab:cpu']
    valid_prog_environs = ['gnu']
    executable = 'lattice'
    dims = parameter([16, 32, 64])
    threads = parameter([1, 8])

    @sanity_function
    def converged(self):
        residuals = sn.extractall(r'residual = (\S+)', self.stdout, 1, float)
        return sn.assert_lt(sn.min(residuals), 1e-6)


@rfm.simple_test
class lattice_all(lattice):
    pass


@rfm.simple_test
class lattice_few(lattice):
    dims = parameter(inherit_params=True, filter_params=lambda x: [v for v in x if v < 64])
    threads = parameter([4], inherit_params=True)
    fraction = parameter([0.5, 1.0, 1e-6])


@rfm.simple_test
class lattice_flags(lattice):
    dims = parameter([16])
    threads = parameter([1])
    fast = parameter([True, False])
    comm = parameter([None, 'mpi'])
    where = parameter([{'dev': 'cpu', 'n': 2}, {'dev': 'gpu', 'n': 4}], fmt=lambda d: d['dev'])

    @run_before('run')
    def flags(self):
        opts = []
        if self.fast:
            opts.append('--fast')
        if self.comm is not None:
            opts += ['--comm', self.comm]
        opts.append(f"-n {self.where['n']}")
        self.executable_opts = opts
        self.num_tasks = self.where['n']
