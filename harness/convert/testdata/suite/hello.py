import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class HelloShell(rfm.RunOnlyRegressionTest):
    '''The smallest test there is.'''

    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'echo'
    executable_opts = ['Hello, World!']

    @sanity_function
    def greets(self):
        return sn.assert_found(r'Hello, World\!', self.stdout)


@rfm.simple_test
class HelloNames(rfm.RunOnlyRegressionTest):
    descr = 'Greets everybody by name'
    valid_systems = ['lab:cpu']
    valid_prog_environs = ['gnu']
    name_of = parameter(['Ada', 'Grace', 'Edsger W.'])
    executable = 'echo'
    tags = {'smoke', 'hello'}
    maintainers = ['front desk']

    @run_before('run')
    def greet(self):
        self.executable_opts = [f'"Hello, {self.name_of}"']

    @sanity_function
    def greeted(self):
        return sn.assert_found(rf'^Hello, {self.name_of}$', self.stdout)
