import socket

site_configuration = {
    "systems": [
        {
            "name": "eidf",
            "descr": "Edinburgh International Data Facility",
            "hostnames": [socket.gethostname()],
            "modules_system": "nomod",
            "partitions": [
                {
                    "name": "gpu-service",
                    "descr": "Edinburgh International Data Facility GPU-Service",
                    "scheduler": "k8s",
                    "launcher": "k8s",
                    "environs": ["Default"],
                },
                {
                    "name": "graphcore",
                    "scheduler": "k8s",
                    "launcher": "k8s",
                    "environs": ["Default"],
                },
            ],
        }
    ],
    "environments": [
        {
            "name": "Default",
            "target_systems": ["*"],
        },
    ],
}
