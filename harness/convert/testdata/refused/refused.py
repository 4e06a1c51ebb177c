import subprocess
import reframe as rfm
import reframe.utility.sanity as sn

nodes = subprocess.check_output(['sinfo', '-h']).split()

if nodes:
    first = nodes[0]


@rfm.simple_test
class loops(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'echo'
    size = parameter([1, 2])

    for x in range(3):
        pass

    @run_before('run')
    def forever(self):
        n = 1
        while n < self.size:
            n *= 2
        self.executable_opts = [str(n)]

    @run_before('run')
    def nested(self):
        def inner(x):
            return x + 1

        self.env_vars['INNER'] = inner(1)

    @run_before('run')
    def reads(self):
        with open('/proc/cpuinfo') as f:
            self.cpus = f.read().count('processor')

    @run_after('run')
    def wrong_name(self):
        self.env_vars['X'] = undefined_name

    @run_after('cleanup')
    def afterwards(self):
        subprocess.run(['rm', '-rf', self.stagedir])

    @sanity_function
    def looks_ahead(self):
        return sn.assert_found(r'a(?=b)', self.stdout)

    @performance_function('s')
    def from_file(self):
        return sn.extractsingle(r'(\d+)', 'result.txt', 1, float)


@rfm.simple_test
class probes(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    node = parameter(nodes)
    executable = 'hostname'
    sanity_patterns = sn.assert_true(1)
    reference = {'*': {'nothing': (1, None, None, 's'), 'time': (1, -0.1, 0.1, 'ms')}}

    @performance_function('s')
    def time(self):
        return sn.extractsingle(r'real\s+(\S+)', self.stdout, 1, float)


@rfm.simple_test
class stranger(UnknownBase):
    valid_systems = ['*']
