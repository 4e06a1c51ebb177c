"""Instances that really boot: Debian's cloud-init finds its user data, and instances reach each other. Needs root, and
debootstrap once. Without them the tests are skipped, unless MUSTER_EC2_TESTS=required."""

import os
import subprocess
import unittest

from test_fixture import Cloud, FixtureTest, until

IMAGE = os.path.join(os.path.dirname(__file__), "image")


def why_not():
    checked = subprocess.run([IMAGE, "--check"], capture_output=True, text=True)
    return checked.stderr.strip() if checked.returncode else None


def name_of(instance):
    """The host name, as cloud-init makes it."""
    return instance["PrivateDnsName"].split(".")[0]


class Image(FixtureTest):
    def setUp(self):
        if reason := why_not():
            if os.environ.get("MUSTER_EC2_TESTS") == "required":
                self.fail(reason)
            self.skipTest(reason)
        super().setUp()
        self.cloud.ask("set", sandbox="image")

    def ended(self, name):
        until("it has ended", lambda: self.cloud.state(name) == "terminated", 90)

    def test_cloud_init_runs_compressed_user_data_that_it_gets_with_a_token(self):
        script = f"""#!/bin/sh
shutdown -P +60
token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
curl -sf -H "X-aws-ec2-metadata-token: $token" http://169.254.169.254/latest/meta-data/local-ipv4 >/tmp/out
echo " $(cloud-init query cloud_id) $(hostname)" >>/tmp/out
curl -sfT /tmp/out '{self.cloud.put_url('out')}'
echo last word >/dev/console
poweroff
"""
        launched = self.cloud.launch(script)[0]
        self.ended(launched["InstanceId"])
        ip, cloud_id, hostname = self.cloud.object("out").split()
        self.assertEqual((launched["PrivateIpAddress"], "aws", name_of(launched)), (ip, cloud_id, hostname))
        self.assertEqual(["-P +60", "-P now"], self.cloud.ask("instances")["instances"][0]["shutdowns"])
        self.assertEqual("last word\n", self.cloud.ec2.get_console_output(InstanceId=launched["InstanceId"])["Output"])

    def test_user_data_without_its_first_line_does_nothing_in_silence(self):
        self.cloud.launch("shutdown -P now\n")
        folder = until("it boots", lambda: self.cloud.ask("instances")["instances"])[0]["folder"]
        until("cloud-init has ended", lambda: os.path.exists(os.path.join(folder, "booted")), 90)
        self.assertEqual([], self.cloud.ask("instances")["instances"][0]["shutdowns"])

    def test_instances_reach_each_other_under_their_addresses_and_nothing_else(self):
        serve = "#!/bin/sh\nshutdown -P +60\necho \"rank $(hostname)\" >/run/index.html\nexec busybox httpd -f -p 8000 -h /run\n"
        first = self.cloud.launch(serve)[0]
        endpoint = self.cloud.description["endpoint"]
        ask = f"""#!/bin/sh
until curl -sf http://{first['PrivateIpAddress']}:8000/index.html -o /tmp/out; do sleep 0.1; done
ip -o -4 address show dev eth0 >>/tmp/out
ip route show default >>/tmp/out
curl -sfT /tmp/out '{self.cloud.put_url('out')}'
shutdown -P now
"""
        second = self.cloud.launch(ask)[0]
        self.ended(second["InstanceId"])
        lines = self.cloud.object("out").splitlines()
        self.assertEqual(f"rank {name_of(first)}", lines[0])
        self.assertIn(f"{second['PrivateIpAddress']}/16", lines[1])
        self.assertEqual(2, len(lines), f"no route to anywhere but {endpoint}")
        self.assertEqual("running", self.cloud.state(first["InstanceId"]))

    def test_an_image_that_ends_leaves_no_process(self):
        other = Cloud()
        other.ask("set", sandbox="image")
        name = other.launch("#!/bin/sh\nexec sleep 612345\n")[0]["InstanceId"]
        alive = lambda: subprocess.run(["pgrep", "-f", "^sleep 612345"], capture_output=True).returncode == 0  # noqa: E731
        until("it runs", alive, 60)
        other.ec2.terminate_instances(InstanceIds=[name])
        until("it has ended", lambda: not alive())
        other.close()


if __name__ == "__main__":
    unittest.main()
