import yaml

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class IPUTest(rfm.RunOnlyRegressionTest):
    valid_systems = ['eidf:graphcore']
    valid_prog_environs = ["*"]
    k8s_config = "ipu_job.yml"
    k8s_resource = "ipujob"
    sanity_patterns = sn.assert_true(True)


@rfm.simple_test
class IPUNamed(rfm.RunOnlyRegressionTest):
    valid_systems = ['eidf:graphcore']
    valid_prog_environs = ["*"]
    k8s_resource = "ipujob"
    n = parameter([1,2,3])
    sanity_patterns = sn.assert_true(True)

    @run_after("init")
    def k8s_setup(self):
        k8s_config_path = "ipu_job.yml"
        with open(k8s_config_path, "r") as stream:
            job_info = yaml.safe_load(stream)
        job_info["metadata"]["generateName"] = f'{job_info["metadata"]["generateName"]}{self.n}-'
        self.k8s_config = job_info


@rfm.simple_test
class IPUThrice(rfm.RunOnlyRegressionTest):
    valid_systems = ['eidf:graphcore']
    valid_prog_environs = ["*"]
    k8s_resource = "ipujob"
    k8s_config = "ipu_job.yml"
    n = parameter([1,2,3])
    sanity_patterns = sn.assert_true(True)
