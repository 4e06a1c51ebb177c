import yaml

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class CudaPodPath(rfm.RunOnlyRegressionTest):
    valid_systems = ['eidf:gpu-service']
    valid_prog_environs = ["*"]
    k8s_config = "cuda-pod.yml"
    sanity_patterns = sn.assert_true(True)


@rfm.simple_test
class CudaPodDict(rfm.RunOnlyRegressionTest):
    valid_systems = ['eidf:gpu-service']
    valid_prog_environs = ["*"]
    sanity_patterns = sn.assert_true(True)

    @run_after("init")
    def k8s_setup(self):
        k8s_config_path = "cuda-pod.yml"
        with open(k8s_config_path, "r") as stream:
            pod_info = yaml.safe_load(stream)
        self.k8s_config = pod_info


@rfm.simple_test
class CudaPodTest(rfm.RunOnlyRegressionTest):
    valid_systems = ['eidf:gpu-service']
    valid_prog_environs = ["*"]

    num_bodies = parameter([1024000, 512000])

    @run_after("init")
    def k8s_setup(self):
        k8s_config_path = "cuda-pod.yml"
        with open(k8s_config_path, "r") as stream:
            pod_info = yaml.safe_load(stream)
        pod_info["spec"]["containers"][0]["args"] = [
            "-benchmark",
            f"-numbodies={self.num_bodies}",
            "-fp64",
            "-fullscreen"
        ]
        self.k8s_config = pod_info

    @performance_function("Iters/s", perf_key="Interactions per second")
    def extract_interactions_per_second(self):
        return sn.extractsingle(r"= (\d+\.\d+) billion interactions per second", self.stdout, tag= 1, conv=float)

    @performance_function("GLOP/s", perf_key="Flops")
    def extract_gflops(self):
        return sn.extractsingle(r"= (\d+\.\d+) double-precision GFLOP/s", self.stdout, tag= 1, conv=float)

    @sanity_function
    def assert_sanity(self):
        return sn.assert_found(r'double-precision GFLOP/s', filename=self.stdout)

    @run_before("performance")
    def set_perf_variables(self):
        self.perf_variables = {
            "Interactions per second": self.extract_interactions_per_second(),
            "Flops": self.extract_gflops(),
        }
