import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ


class hpct_base(rfm.RunOnlyRegressionTest):
    '''What the library says of every benchmark.'''

    size = variable(int, value=64)
    label = variable(str, value='default')
    flags = variable(typ.List[str], value=['--csv'])
    ranks = variable(int)

    valid_prog_environs = ['gnu']

    @run_after('init')
    def common(self):
        self.descr = f'{self.label} benchmark'
        self.tags = {'library'}

    @run_before('run')
    def arguments(self):
        self.executable_opts = ['--size', f'{self.size}'] + self.flags

    @sanity_function
    def finished(self):
        return sn.assert_found(r'^done$', self.stdout)


class hpct_scaling(hpct_base):
    ranks = 1
    nodes = parameter()

    @run_after('init')
    def tasks(self):
        self.num_tasks = self.nodes * self.ranks
