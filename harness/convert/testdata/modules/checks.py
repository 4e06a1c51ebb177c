import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class ModulesTest(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'mpirun'
    modules = [{'name': 'openmpi/4'}, {'name': 'hdf5', 'path': '/apps/modules'}]

    @run_before('run')
    def load_cuda(self):
        if self.current_partition.name == 'gpu':
            self.modules += [{'name': 'cuda'}]

    @sanity_function
    def validate(self):
        return sn.assert_found('ok', self.stdout)


@rfm.simple_test
class ContainerTest(rfm.RunOnlyRegressionTest):
    platform = parameter(['Singularity', 'Docker'])
    valid_systems = ['lab:cpu']
    valid_prog_environs = ['gnu']
    executable = './unused'

    @run_before('run')
    def set_container(self):
        self.container_platform = 'Singularity'
        self.container_platform.image = 'docker://ubuntu:22.04'
        self.container_platform.command = 'cat /etc/os-release'
        self.container_platform.options = ['--cleanenv']
        self.container_platform.mount_points = [('/scratch', '/data')]
        self.container_platform.with_cuda = True

    @sanity_function
    def validate(self):
        return sn.assert_found('Ubuntu', self.stdout)


@rfm.simple_test
class SometimesContainerTest(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = './native'

    @run_before('run')
    def set_container(self):
        if self.current_system.name == 'lab':
            self.container_platform.image = 'ubuntu:22.04'
            self.container_platform.command = './contained'

    @sanity_function
    def validate(self):
        return sn.assert_found('ok', self.stdout)
