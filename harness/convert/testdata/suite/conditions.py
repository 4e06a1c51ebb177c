import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class by_place(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = './app'

    @run_after('setup')
    def choose(self):
        part = self.current_partition
        if part.fullname == 'lab:gpu':
            self.executable_opts = ['--gpu']
        elif self.current_system.name == 'lab' and self.current_environ.name in ['gnu', 'clang']:
            self.executable_opts = ['--cpu']
        else:
            self.executable_opts = ['--unknown']
        if 'a100' in part.features:
            self.env_vars['CUDA_ARCH'] = 'sm_80'
        cores = part.processor.num_cores
        if cores > 8:
            self.num_tasks = cores // 2
        self.env_vars['MEM'] = part.extras.get('mem', 'unknown')

    @run_after('setup')
    def leave(self):
        if self.current_environ.name == 'cuda':
            return
        self.env_vars['HOST_ONLY'] = '1'

    @sanity_function
    def fine(self):
        return sn.assert_found('ok', self.stdout)


@rfm.simple_test
class skipping(rfm.RunOnlyRegressionTest):
    valid_systems = ['lab']
    valid_prog_environs = ['gnu']
    executable = './app'
    ranks = parameter([1, 2, 4])
    mode = parameter(['serial', 'mpi'])

    @run_after('init')
    def sense(self):
        self.skip_if(self.mode == 'serial' and self.ranks > 1, 'one rank is enough')
        if self.mode == 'mpi':
            self.skip_if(self.ranks == 1, 'needs ranks')
        self.num_tasks = self.ranks
        self.time_limit = {1: '10m', 2: '5m', 4: '3m'}[self.ranks]

    @sanity_function
    def ranks_said(self):
        return sn.assert_eq(sn.count(sn.findall(r'^rank', self.stdout)), self.num_tasks)


@rfm.simple_test
class helper_methods(rfm.RunOnlyRegressionTest):
    valid_systems = ['lab:cpu']
    valid_prog_environs = ['gnu']
    executable = 'bench'
    ops = ['read', 'write']
    block = parameter(['4k', '1m'])

    def bandwidth(self, op):
        return sn.extractsingle(rf'{op}: (\S+) MB/s', self.stdout, 1, float)

    def _flags(self, *, depth=4):
        return [f'--bs={self.block}', f'--depth={depth}']

    @property
    def label(self):
        return f'bs{self.block}'

    @run_before('run')
    def prepare(self):
        self.executable_opts = self._flags(depth=8)
        self.prerun_cmds = [f'mkdir -p {self.label}', 'cd %s' % self.label]

    @run_before('performance')
    def figures(self):
        for op in self.ops:
            self.perf_variables[op] = sn.make_performance_function(self.bandwidth(op), 'MB/s')
        self.reference = {'lab:cpu': {op: (100 if op == 'read' else 50, -0.2, None, 'MB/s') for op in self.ops}}

    @sanity_function
    def no_errors(self):
        return sn.and_(sn.assert_not_found(r'error', self.stdout), sn.assert_found(r'total', self.stderr))
