import os
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class ior_rates(rfm.RunOnlyRegressionTest):
    descr = 'IOR: writing and reading'
    valid_systems = ['lab:cpu']
    valid_prog_environs = ['gnu']
    base_dir = parameter(['/scratch', '/tmp'])
    api = variable(str, value='POSIX')
    executable = 'ior'
    prerun_cmds = ['mkdir -p $IOR_DIR']
    postrun_cmds = ['rm -rf "$IOR_DIR"']
    num_tasks = 4
    exclusive_access = True

    @run_before('run')
    def places(self):
        self.test_dir = os.path.join(self.base_dir, os.environ['USER'], '.ior')
        self.env_vars = {'IOR_DIR': self.test_dir}
        self.executable_opts = ['-vv', '-b 1g', '-t 4m', '-a', self.api, '-o', '$IOR_DIR/data', '-w', '-r']

    @run_before('run')
    def launcher(self):
        self.job.options += ['--constraint=ssd']
        self.job.launcher.options = ['--cpu-bind=cores']

    @sanity_function
    def both(self):
        return sn.all([sn.assert_found(r'^write\s+', self.stdout), sn.assert_found(r'^read\s+', self.stdout)])

    @performance_function('MiB/s')
    def write_bw(self):
        return sn.extractsingle(r'^Max Write:\s+(\S+) MiB/sec', self.stdout, 1, float)

    @performance_function('MiB/s')
    def read_bw(self):
        return sn.extractsingle(r'^Max Read:\s+(\S+) MiB/sec', self.stdout, 1, float)
