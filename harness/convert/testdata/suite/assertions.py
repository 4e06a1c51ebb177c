import reframe as rfm
import reframe.utility.sanity as sn


class asserting(rfm.RunOnlyRegressionTest):
    valid_systems = ['lab:cpu']
    valid_prog_environs = ['gnu']
    executable = 'solver'


@rfm.simple_test
class bounded(asserting):
    @sanity_function
    def energy(self):
        e = sn.extractsingle(r'E = (\S+)', self.stdout, 1, float)
        return sn.assert_bounded(e, -1.5, -1.2, 'the energy is off')


@rfm.simple_test
class referenced(asserting):
    @sanity_function
    def energy(self):
        e = sn.extractsingle(r'E = (?P<e>\S+)', self.stdout, 'e', float)
        return sn.assert_reference(e, -100.0, -0.01, 0.02)


@rfm.simple_test
class mean_of_all(asserting):
    @sanity_function
    def several(self):
        times = sn.extractall(r'step (\d+): (\S+) s', self.stdout, 2, float)
        return sn.all([
            sn.assert_ge(sn.len(times), 10),
            sn.assert_lt(sn.avg(times), 2.5, msg='slow steps'),
            sn.assert_gt(sn.sum(times), 0),
            sn.assert_le(sn.max(times) - sn.min(times), 1.0),
            sn.assert_ne(sn.extractsingle(r'status (\w+)', self.stdout, 1), 'failed'),
            sn.assert_true(sn.extractall(r'node (\S+)', self.stdout, 1)),
        ])


@rfm.simple_test
class unique_nodes(asserting):
    num_tasks = 4

    @sanity_function
    def nodes(self):
        names = sn.extractall(r'^host (\S+)', self.stdout, 1)
        total = sn.extractsingle(r'^total (\S+)', self.stdout, 1, float)
        checked = sn.extractsingle(r'^checked (\S+)', self.stdout, 1, float)
        return sn.all([sn.assert_eq(sn.count_uniq(names), self.num_tasks), sn.assert_eq(total, checked)])


@rfm.simple_test
class converted_units(asserting):
    @sanity_function
    def ok(self):
        return sn.assert_found('ok', self.stdout)

    @performance_function('MB/s')
    def from_gb(self):
        return sn.extractsingle(r'BW: (\S+) GB/s', self.stdout, 1, lambda x: float(x) * 1024)

    @performance_function('s')
    def per_step(self):
        return sn.extractsingle(r'total: (\S+)', self.stdout, 1, float) / 100

    @performance_function('')
    def steps(self):
        return sn.count(sn.findall(r'^step', self.stdout))
