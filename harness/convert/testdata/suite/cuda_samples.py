import reframe as rfm
import reframe.utility.sanity as sn


class cuda_sample(rfm.RunOnlyRegressionTest):
    valid_systems = ['+gpu']
    valid_prog_environs = ['+cuda']
    num_gpus_per_node = 1
    tags = {'gpu'}

    @sanity_function
    def passed(self):
        return sn.assert_found(self.passes, self.stdout)

    passes = variable(str, value=r'Result = PASS')


@rfm.simple_test
class device_query(cuda_sample):
    executable = './deviceQuery'

    @run_after('setup')
    def devices(self):
        self.expected = self.current_partition.select_devices('gpu')[0].num_devices

    @sanity_function
    def all_found(self):
        return sn.assert_eq(sn.count(sn.findall(r'^Device \d+: ', self.stdout)), self.expected)


@rfm.simple_test
class bandwidth_test(cuda_sample):
    executable = './bandwidthTest'
    mode = parameter(['h2d', 'd2h', 'd2d'])
    flags = {'h2d': '--htod', 'd2h': '--dtoh', 'd2d': '--dtod'}
    reference = {'lab:gpu': {'bw': (24.0, -0.2, None, 'GB/s')}}

    @run_before('run')
    def select(self):
        self.executable_opts = [self.flags[self.mode], '--csv']

    @performance_function('GB/s')
    def bw(self):
        return sn.max(sn.extractall(r'Bandwidth = (\S+) GB/s', self.stdout, 1, float))


@rfm.simple_test
class simple_p2p(cuda_sample):
    executable = './simpleP2P'
    passes = 'Test passed'
    num_gpus_per_node = 2
