import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class hello_c(rfm.RegressionTest):
    descr = 'C, one file'
    valid_systems = ['*']
    valid_prog_environs = ['gnu']
    sourcepath = 'hello.c'
    opt = parameter(['-O1', '-O3'])

    @run_before('compile')
    def flags(self):
        self.build_system = 'SingleSource'
        self.build_system.cflags = [self.opt, '-g']

    @sanity_function
    def greets(self):
        return sn.assert_found(r'Hello', self.stdout)


@rfm.simple_test
class made(rfm.RegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['gnu']
    build_system = 'Make'
    prebuild_cmds = ['make clean']
    executable = './made.x'

    @run_before('compile')
    def options(self):
        self.build_system.options = ['all', 'FAST=1']
        self.build_system.max_concurrency = 4

    @sanity_function
    def fine(self):
        return sn.assert_found(r'fine', self.stdout)


@rfm.simple_test
class configured(rfm.RegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['gnu']
    sourcesdir = 'https://example.org/app.git'
    build_system = 'CMake'
    executable = './build/app'

    @run_before('compile')
    def options(self):
        self.build_system.builddir = 'build'
        self.build_system.config_opts = ['-DUSE_MPI=ON']

    @sanity_function
    def fine(self):
        return sn.assert_found(r'fine', self.stdout)


class fetch(rfm.RunOnlyRegressionTest):
    version = variable(str, value='7.2')
    executable = 'wget'

    @run_before('run')
    def url(self):
        self.executable_opts = [f'https://example.org/osu-{self.version}.tar.gz']

    @sanity_function
    def there(self):
        return sn.assert_not_found('error', self.stderr)


class built(rfm.CompileOnlyRegressionTest):
    sources = fixture(fetch, scope='session')
    build_system = 'Autotools'

    @run_before('compile')
    def unpack(self):
        self.prebuild_cmds = [f'tar xf {self.sources.stagedir}/osu-{self.sources.version}.tar.gz', 'cd osu']
        self.build_system.max_concurrency = 8


@rfm.simple_test
class osu_with_fixture(rfm.RunOnlyRegressionTest):
    valid_systems = ['lab:cpu']
    valid_prog_environs = ['gnu']
    binaries = fixture(built, scope='environment')

    @run_before('run')
    def program(self):
        self.executable = f'{self.binaries.stagedir}/osu/osu_bw'

    @sanity_function
    def header(self):
        return sn.assert_found(r'# OSU', self.stdout)


@rfm.simple_test
class after_it(rfm.RunOnlyRegressionTest):
    valid_systems = ['lab:cpu']
    valid_prog_environs = ['gnu']
    executable = 'cat'

    @run_after('init')
    def order(self):
        self.depends_on('osu_with_fixture')

    @require_deps
    def result(self, osu_with_fixture):
        self.executable_opts = [f'{osu_with_fixture().stagedir}/rfm_job.out']

    @sanity_function
    def header(self):
        return sn.assert_found(r'# OSU', self.stdout)
