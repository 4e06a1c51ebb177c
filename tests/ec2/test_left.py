"""What tests leave is found: nothing may be left of them when they have ended. `tests/ec2/run` runs these."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from fixture import left

HERE = os.path.dirname(__file__)
LISTENER = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); time.sleep(60)"


class Left(unittest.TestCase):
    def test_a_process_its_port_and_a_mount_are_named_and_nothing_is_when_they_are_gone(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(left.left(folder), [])
            # It has left the session and the folder, as those do that nobody looks for.
            environment = {"PATH": os.environ["PATH"], "RFM_ROOT": f"{folder}/root"}
            planted = subprocess.Popen([sys.executable, "-c", LISTENER], env=environment, start_new_session=True, stdout=subprocess.PIPE, text=True)
            try:
                port = planted.stdout.readline().strip()
                found = left.left(folder)
                self.assertEqual(len(found), 2, found)
                self.assertTrue(found[0].startswith(f"process {planted.pid} ({sys.executable} "), found)
                self.assertTrue(found[1].endswith(f" listens on port {port}"), found)
                # The fixture itself may be there while it is asked, and listens nowhere.
                self.assertEqual(left.left(folder, {planted.pid}), found[1:])
            finally:
                planted.kill()
                planted.wait()
                planted.stdout.close()
            os.mkdir(f"{folder}/disk")
            if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", f"{folder}/disk"], capture_output=True).returncode == 0:
                try:
                    self.assertEqual(left.left(folder), [f"mount {folder}/disk"])
                finally:
                    subprocess.run(["umount", f"{folder}/disk"], check=True)
            self.assertEqual(left.left(folder), [])

    def test_a_run_that_leaves_a_process_fails_and_names_it(self):
        command = [os.path.join(HERE, "run"), "--", "sh", "-c", "setsid sleep 61 >/dev/null 2>&1 & sleep 0.2"]
        ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MUSTER_EC2_PATIENCE": "1"})
        found = re.search(r"left by the tests: process (\d+) \(sleep 61\)", ended.stderr)
        self.assertTrue(found, ended.stderr)
        os.kill(int(found[1]), signal.SIGKILL)
        self.assertEqual(ended.returncode, 1, ended.stderr)
