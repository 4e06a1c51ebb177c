"""Runs jobs on a cloud of tests/ec2/fixture, and counts what was asked. Called by ec2.sh."""

import json
import os
import resource
import socket
import subprocess
import sys
import time


class Cloud:
    def __init__(self, path):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        self.lines = connection.makefile("rw")
        self.said = json.loads(self.lines.readline())

    def ask(self, what, **arguments):
        self.lines.write(json.dumps({"do": what, **arguments}) + "\n")
        self.lines.flush()
        answer = json.loads(self.lines.readline())
        if answer.get("error"):
            raise RuntimeError(answer["error"])
        return answer


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def main(path, folder, count, seconds, program):
    cloud = Cloud(path)
    said = cloud.said
    options = (
        f"region: {said['region']}, bucket: s3://{said['bucket']}/ci, subnets: [{', '.join(said['subnets'])}], "
        f"endpoint_url: '{said['endpoint']}'"
    )
    partition = f"name: ec2, scheduler: ec2, environs: [default], max_jobs: {count}, sched_options: {{ {options} }}"
    write(folder, "site.yaml", f"name: aws\npartitions: [{{ {partition} }}]\nenvironments: [{{ name: default }}]\n")
    write(
        folder,
        "c.check.yaml",
        f"name: c\nvalid_systems: ['*']\nparameters: {{ n: {list(range(count))} }}\ntime_limit: 10m\n"
        f"ec2_config: {{ ami: {said['image']}, instance_type: c7i.large }}\nexecutable: sleep {seconds}\nsanity: []\n",
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MUSTER_", "AWS_"))}
    environment |= {"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "MUSTER_DB": f"{folder}/results.db"}
    arguments = [program, "-C", "site.yaml", "--system", "aws", "--nocolor", "-c", "c.check.yaml", "-r"]
    began = time.monotonic()
    ended = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    wall = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    calls = cloud.ask("calls")["calls"]
    left = {name: len(things) for name, things in cloud.ask("left").items() if things}
    print(f"{count} jobs of {seconds} s: {wall:.1f} s, {used.ru_utime + used.ru_stime:.2f} CPU s of Muster, {used.ru_maxrss // 1024} MB")
    print(", ".join(f"{name} {count}" for name, count in sorted(calls.items())))
    print(f"left: {left or 'nothing'}; load {os.getloadavg()[0]:.1f}")
    if ended.returncode != 0:
        print(ended.stdout[-2000:], ended.stderr[-2000:], sep="\n")
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]))
