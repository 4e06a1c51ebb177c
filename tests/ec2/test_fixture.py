"""The fixture keeps its promises: each row of what it adds to moto. `tests/ec2/run` runs these."""

import gzip
import json
import os
import socket
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import boto3
import botocore.config
import botocore.exceptions

from fixture import left


class Cloud:
    """A client of one cloud. The cloud ends with it."""

    def __init__(self):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(os.environ["MUSTER_EC2"])
        self.lines = self.connection.makefile("rw")
        self.description = json.loads(self.lines.readline())
        self.ec2, self.s3 = self.client("ec2"), self.client("s3")
        self.bucket, self.image, self.subnets = (self.description[key] for key in ("bucket", "image", "subnets"))

    def client(self, service, key="AKIAIOSFODNN7EXAMPLE", secret="secret"):
        once = botocore.config.Config(retries={"total_max_attempts": 1}, signature_version="v4" if service != "s3" else "s3v4", s3={"addressing_style": "path"})
        return boto3.client(
            service,
            endpoint_url=self.description["endpoint"],
            region_name=self.description["region"],
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            config=once,
        )

    def ask(self, do, **arguments):
        self.lines.write(json.dumps({"do": do, **arguments}) + "\n")
        self.lines.flush()
        answer = json.loads(self.lines.readline())
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer

    def launch(self, script="#!/bin/sh\nsleep 600\n", count=1, **more):
        parameters = {
            "ImageId": self.image,
            "InstanceType": "c7i.large",
            "MinCount": count,
            "MaxCount": count,
            "SubnetId": self.subnets[0],
            "UserData": gzip.compress(script.encode(), mtime=0) if isinstance(script, str) else script,
            "InstanceInitiatedShutdownBehavior": "terminate",
            **more,
        }
        return self.ec2.run_instances(**{key: value for key, value in parameters.items() if value is not None})["Instances"]

    def listed(self, **how):
        return [one for each in self.ec2.describe_instances(**how)["Reservations"] for one in each["Instances"]]

    def state(self, name):
        return self.listed(InstanceIds=[name])[0]["State"]["Name"]

    def put_url(self, key, **how):
        return self.s3.generate_presigned_url("put_object", Params={"Bucket": self.bucket, "Key": key}, **how)

    def get_url(self, key, **how):
        return self.s3.generate_presigned_url("get_object", Params={"Bucket": self.bucket, "Key": key}, **how)

    def object(self, key):
        try:
            return self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read().decode()
        except botocore.exceptions.ClientError:
            return None

    def close(self):
        self.lines.close()
        self.connection.close()


def until(what, holds, seconds=20):
    end = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)
    return found


def fetch(url, method="GET", headers=None, body=None):
    """The status and the text."""
    request = urllib.request.Request(url, data=body, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class FixtureTest(unittest.TestCase):
    def setUp(self):
        self.cloud = Cloud()
        self.addCleanup(self.cloud.close)

    def refused(self, code, status, call, *arguments, **more):
        with self.assertRaises(botocore.exceptions.ClientError) as caught:
            call(*arguments, **more)
        answer = caught.exception.response
        self.assertEqual((code, status), (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]))


class Launches(FixtureTest):
    def test_the_same_token_launches_once(self):
        first = self.cloud.launch(ClientToken="token")
        again = self.cloud.launch(ClientToken="token")
        self.assertEqual(first[0]["InstanceId"], again[0]["InstanceId"])
        self.assertEqual(1, len(self.cloud.listed()))
        self.refused("IdempotentParameterMismatch", 400, self.cloud.launch, ClientToken="token", InstanceType="c7i.xlarge")
        self.refused("InvalidParameterValue", 400, self.cloud.launch, ClientToken="t" * 65)

    def test_a_token_finds_its_instances(self):
        mine = self.cloud.launch(ClientToken="mine")[0]["InstanceId"]
        self.cloud.launch(ClientToken="other")
        found = self.cloud.listed(Filters=[{"Name": "client-token", "Values": ["mine"]}])
        self.assertEqual([mine], [one["InstanceId"] for one in found])

    def test_as_many_as_there_is_room_for(self):
        first, second = self.cloud.subnets[:2]
        self.cloud.ask("capacity", n=3, subnet=first)
        self.assertEqual(3, len(self.cloud.launch(MinCount=1, MaxCount=5)))
        self.refused("InsufficientInstanceCapacity", 500, self.cloud.launch)
        self.assertEqual(2, len(self.cloud.launch(count=2, SubnetId=second)), "another subnet has room")
        self.refused("InvalidParameterValue", 400, self.cloud.launch, MinCount=2, MaxCount=1)

    def test_a_type_can_be_scarce(self):
        self.cloud.ask("capacity", n=0, type="c7i.large")
        self.refused("InsufficientInstanceCapacity", 500, self.cloud.launch)
        self.assertEqual(1, len(self.cloud.launch(InstanceType="c7i.xlarge")))

    def test_user_data_has_at_most_16_kib(self):
        self.cloud.launch(script=b"#!" + b"x" * 16382)
        self.refused("InvalidParameterValue", 400, self.cloud.launch, script=b"#!" + b"x" * 16383)

    def test_what_does_not_exist_is_refused(self):
        self.refused("InvalidAMIID.NotFound", 400, self.cloud.launch, ImageId="ami-0123456789abcdeff")
        self.refused("InvalidInstanceType.NotFound", 400, self.cloud.launch, InstanceType="c7i.lrge")
        self.refused("InvalidSubnetID.NotFound", 400, self.cloud.launch, SubnetId="subnet-0123")

    def test_a_dry_run_launches_nothing(self):
        self.refused("DryRunOperation", 412, self.cloud.launch, DryRun=True)
        self.assertEqual([], self.cloud.listed())

    def test_the_reply_has_ranks_addresses_and_tags_of_all(self):
        tags = [{"Key": "rfm", "Value": "x"}]
        kinds = ("instance", "volume", "network-interface")
        disk = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 16, "DeleteOnTermination": True}}
        launched = self.cloud.launch(
            count=3, TagSpecifications=[{"ResourceType": kind, "Tags": tags} for kind in kinds], BlockDeviceMappings=[disk]
        )
        self.assertEqual([0, 1, 2], [one["AmiLaunchIndex"] for one in launched])
        self.assertEqual(3, len({one["NetworkInterfaces"][0]["PrivateIpAddress"] for one in launched}))
        self.assertEqual({"pending"}, {one["State"]["Name"] for one in launched})
        filters = [{"Name": "tag:rfm", "Values": ["x"]}]
        self.assertEqual(3, len(self.cloud.listed(Filters=filters)))
        self.assertEqual(3, len(self.cloud.ec2.describe_volumes(Filters=filters)["Volumes"]))
        self.assertEqual(3, len(self.cloud.ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]))

    def test_an_instance_may_be_listed_late(self):
        self.cloud.ask("set", visible=1.0)
        self.cloud.launch()
        self.assertEqual([], self.cloud.listed())
        until("it is listed", self.cloud.listed)

    def test_every_call_is_recorded_with_its_parameters(self):
        self.cloud.launch(ClientToken="recorded", Placement={"AvailabilityZone": "eu-west-1a"})
        recorded = self.cloud.ask("requests", action="RunInstances")["requests"]
        self.assertEqual(1, len(recorded))
        parameters = recorded[0]["parameters"]
        self.assertEqual(("recorded", "eu-west-1a"), (parameters["ClientToken"], parameters["Placement.AvailabilityZone"]))
        self.cloud.listed()
        self.assertEqual({"RunInstances": 1, "DescribeInstances": 1}, self.cloud.ask("calls")["calls"])


class Faults(FixtureTest):
    def test_an_error_has_its_status_and_is_used_up(self):
        self.cloud.ask("fault", action="DescribeInstances", code="RequestLimitExceeded", status=503, n=2)
        for _ in range(2):
            self.refused("RequestLimitExceeded", 503, self.cloud.listed)
        self.assertEqual([], self.cloud.listed())

    def test_an_error_hits_one_subnet(self):
        first, second = self.cloud.subnets[:2]
        self.cloud.ask("fault", action="RunInstances", code="InsufficientInstanceCapacity", subnet=first, n=9)
        self.refused("InsufficientInstanceCapacity", 500, self.cloud.launch)
        self.cloud.launch(SubnetId=second)

    def test_a_connection_is_reset_after_the_call_was_executed(self):
        self.cloud.ask("fault", action="RunInstances", reset="after")
        with self.assertRaises(botocore.exceptions.HTTPClientError):
            self.cloud.launch(ClientToken="token")
        self.assertEqual(1, len(self.cloud.listed()))
        self.cloud.launch(ClientToken="token")
        self.assertEqual(1, len(self.cloud.listed()), "the answer comes again")

    def test_a_connection_is_reset_before_the_call_is_executed(self):
        self.cloud.ask("fault", action="RunInstances", reset="before")
        with self.assertRaises(botocore.exceptions.HTTPClientError):
            self.cloud.launch()
        self.assertEqual([], self.cloud.listed())

    def test_an_instance_can_fail_to_launch(self):
        self.cloud.ask("set", launch_failure=["Client.InternalError", "a key that may not be used", 1])
        name = self.cloud.launch()[0]["InstanceId"]
        until("it has ended", lambda: self.cloud.state(name) == "terminated")
        self.assertEqual("Client.InternalError", self.cloud.listed()[0]["StateReason"]["Code"])


class Lives(FixtureTest):
    def reason(self, name):
        return self.cloud.listed(InstanceIds=[name])[0]["StateReason"]["Code"]

    def test_user_data_runs_and_shutdown_ends_the_instance(self):
        self.cloud.ask("set", boot=0.4)
        script = f"#!/bin/sh\nshutdown -P +60\necho word >f\ncurl -sST f '{self.cloud.put_url('out')}'\necho said\nsleep 0.5\nshutdown -P now\n"
        name = self.cloud.launch(script)[0]["InstanceId"]
        seen = []

        def has_ended():
            state = self.cloud.state(name)
            if seen[-1:] != [state]:
                seen.append(state)
            return state == "terminated"

        until("it has ended", has_ended)
        self.assertEqual(["pending", "running", "shutting-down", "terminated"], seen)
        self.assertEqual("Client.InstanceInitiatedShutdown", self.reason(name))
        self.assertEqual("word\n", self.cloud.object("out"))
        self.assertEqual("said\n", self.cloud.ec2.get_console_output(InstanceId=name)["Output"])
        self.assertEqual(["-P +60", "-P now"], self.cloud.ask("instances")["instances"][0]["shutdowns"])
        self.assertEqual([], self.cloud.ask("left")["volumes"])

    def test_shutdown_may_stop_an_instance_instead(self):
        name = self.cloud.launch("#!/bin/sh\nshutdown -P now\n", InstanceInitiatedShutdownBehavior="stop")[0]["InstanceId"]
        until("it has stopped", lambda: self.cloud.state(name) == "stopped")

    def test_a_timer_ends_an_instance_unless_it_is_cancelled(self):
        self.cloud.ask("set", minute=0.5)
        ends = self.cloud.launch("#!/bin/sh\nshutdown -P +2\nsleep 600\n")[0]["InstanceId"]
        stays = self.cloud.launch("#!/bin/sh\nshutdown -P +2\nshutdown -c\nsleep 600\n")[0]["InstanceId"]
        until("its timer has ended it", lambda: self.cloud.state(ends) == "terminated")
        time.sleep(0.5)
        self.assertEqual("running", self.cloud.state(stays))

    def test_what_does_not_begin_as_a_script_does_not_run_and_nobody_says_so(self):
        self.cloud.ask("set", boot=0.0)
        name = self.cloud.launch("\n#!/bin/sh\nshutdown -P now\n")[0]["InstanceId"]
        until("it runs", lambda: self.cloud.state(name) == "running")
        time.sleep(0.5)
        self.assertEqual("running", self.cloud.state(name))
        self.assertNotIn("Output", self.cloud.ec2.get_console_output(InstanceId=name))

    def test_whoever_terminates_an_instance_kills_what_runs_in_it(self):
        beat = "#!/bin/sh\nsetsid sh -c 'while :; do echo beat >>beats; sleep 0.05; done' &\n"
        name = self.cloud.launch(beat)[0]["InstanceId"]
        path = os.path.join(until("it boots", lambda: self.cloud.ask("instances")["instances"])[0]["folder"], "beats")
        until("its heart beats", lambda: os.path.exists(path))
        self.cloud.ec2.terminate_instances(InstanceIds=[name])
        until("it has ended", lambda: self.cloud.state(name) == "terminated")
        size = os.path.getsize(path)
        time.sleep(0.3)
        self.assertEqual(size, os.path.getsize(path))
        self.assertEqual("Client.UserInitiatedShutdown", self.reason(name))

    def test_a_crash_says_why_and_shuts_nothing_down(self):
        name = self.cloud.launch()[0]["InstanceId"]
        until("it runs", lambda: self.cloud.state(name) == "running")
        self.cloud.ask("crash", id=name, code="Server.InternalError")
        until("it has ended", lambda: self.cloud.state(name) == "terminated")
        self.assertEqual(("Server.InternalError", []), (self.reason(name), self.cloud.ask("instances")["instances"][0]["shutdowns"]))

    def test_an_image_may_be_silent(self):
        self.cloud.ask("set", executes=False)
        name = self.cloud.launch("#!/bin/sh\nshutdown -P now\n")[0]["InstanceId"]
        until("it runs", lambda: self.cloud.state(name) == "running")
        time.sleep(0.5)
        self.assertEqual("running", self.cloud.state(name))

    def test_a_cloud_ends_with_its_connection_and_leaves_nothing(self):
        other = Cloud()
        other.launch("#!/bin/sh\nsleep 600\n")
        folder = until("it boots", lambda: other.ask("instances")["instances"])[0]["folder"]
        until("it runs", lambda: os.path.exists(os.path.join(folder, "user-data")))
        address = urllib.parse.urlparse(other.description["endpoint"])
        other.close()
        until("its folder is gone", lambda: not os.path.exists(os.path.dirname(folder)))
        with self.assertRaises(ConnectionRefusedError):
            until("its port is closed", lambda: socket.create_connection((address.hostname, address.port)).close(), 5)

    def test_a_cloud_that_ends_while_instances_boot_leaves_none(self):
        clouds = [Cloud() for _ in range(4)]
        for other in clouds:
            other.ask("set", boot=0)
            other.launch(count=6)
            other.close()
        folders = [other.description["folder"] for other in clouds]
        until("their folders are gone", lambda: not any(map(os.path.exists, folders)))
        time.sleep(1)
        self.assertEqual([], [each for folder in folders for each in left.left(folder)])


class MetadataService(FixtureTest):
    def setUp(self):
        super().setUp()
        self.launched = self.cloud.launch("#!/bin/sh\nsleep 600\n", count=2)
        self.second = self.launched[1]
        self.base = f"{self.cloud.description['endpoint']}/_imds/{self.second['InstanceId']}/latest"

    def token(self):
        return fetch(f"{self.base}/api/token", "PUT", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})[1]

    def fact(self, path):
        return fetch(f"{self.base}/{path}", headers={"X-aws-ec2-metadata-token": self.token()})

    def test_nothing_is_told_without_a_token(self):
        self.assertEqual(401, fetch(f"{self.base}/meta-data/instance-id")[0])
        self.assertEqual(401, fetch(f"{self.base}/meta-data/instance-id", headers={"X-aws-ec2-metadata-token": "x"})[0])
        self.assertEqual(400, fetch(f"{self.base}/api/token", "PUT")[0])

    def test_an_instance_knows_itself(self):
        facts = {
            "instance-id": self.second["InstanceId"],
            "ami-launch-index": "1",
            "local-ipv4": self.second["PrivateIpAddress"],
            "instance-type": "c7i.large",
            "placement/availability-zone": "eu-west-1a",
        }
        self.assertEqual(facts, {path: self.fact(f"meta-data/{path}")[1] for path in facts})
        document = json.loads(self.fact("dynamic/instance-identity/document")[1])
        self.assertEqual((self.second["InstanceId"], "eu-west-1"), (document["instanceId"], document["region"]))
        self.assertEqual("document", self.fact("dynamic/instance-identity/")[1])
        self.assertIn("placement/", self.fact("meta-data/")[1].splitlines())

    def test_user_data_arrives_byte_for_byte(self):
        answer = urllib.request.urlopen(
            urllib.request.Request(f"{self.base}/user-data", headers={"X-aws-ec2-metadata-token": self.token()}), timeout=20
        )
        self.assertEqual(b"#!/bin/sh\nsleep 600\n", gzip.decompress(answer.read()))

    def test_a_spot_notice_comes_before_the_end(self):
        self.assertEqual(404, self.fact("meta-data/spot/instance-action")[0])
        until("it runs", lambda: self.cloud.state(self.second["InstanceId"]) == "running")
        self.cloud.ask("spot", id=self.second["InstanceId"], after=0.5)
        self.assertEqual("terminate", json.loads(self.fact("meta-data/spot/instance-action")[1])["action"])
        until("it is taken", lambda: self.cloud.state(self.second["InstanceId"]) == "terminated")
        reason = self.cloud.listed(InstanceIds=[self.second["InstanceId"]])[0]["StateReason"]["Code"]
        self.assertEqual("Server.SpotInstanceTermination", reason)


class Groups(FixtureTest):
    def test_a_security_group_in_use_is_not_deleted(self):
        group = self.cloud.ec2.create_security_group(GroupName="rfm-x", Description="x")["GroupId"]
        name = self.cloud.launch(SecurityGroupIds=[group])[0]["InstanceId"]
        self.refused("DependencyViolation", 400, self.cloud.ec2.delete_security_group, GroupId=group)
        self.assertEqual(["rfm-x"], self.cloud.ask("left")["groups"])
        self.cloud.ec2.terminate_instances(InstanceIds=[name])
        until("it has ended", lambda: self.cloud.state(name) == "terminated")
        self.cloud.ec2.delete_security_group(GroupId=group)
        self.assertEqual([], self.cloud.ask("left")["groups"])

    def test_a_placement_group_is_created_used_found_and_deleted(self):
        ec2 = self.cloud.ec2
        tags = [{"ResourceType": "placement-group", "Tags": [{"Key": "rfm", "Value": "x"}]}]
        self.refused("InvalidPlacementGroup.Unknown", 400, self.cloud.launch, Placement={"GroupName": "pg"})
        created = ec2.create_placement_group(GroupName="pg", Strategy="cluster", TagSpecifications=tags)["PlacementGroup"]
        self.assertEqual(("pg", "cluster"), (created["GroupName"], created["Strategy"]))
        self.refused("InvalidPlacementGroup.Duplicate", 400, ec2.create_placement_group, GroupName="pg")
        found = ec2.describe_placement_groups(Filters=[{"Name": "tag:rfm", "Values": ["x"]}])["PlacementGroups"]
        self.assertEqual(["pg"], [group["GroupName"] for group in found])
        self.assertEqual([], ec2.describe_placement_groups(Filters=[{"Name": "tag:rfm", "Values": ["y"]}])["PlacementGroups"])
        name = self.cloud.launch(Placement={"GroupName": "pg"})[0]["InstanceId"]
        self.refused("InvalidPlacementGroup.InUse", 400, ec2.delete_placement_group, GroupName="pg")
        ec2.terminate_instances(InstanceIds=[name])
        until("it has ended", lambda: self.cloud.state(name) == "terminated")
        ec2.delete_placement_group(GroupName="pg")
        self.refused("InvalidPlacementGroup.Unknown", 400, ec2.delete_placement_group, GroupName="pg")

    def test_a_capacity_reservation_is_what_the_test_says(self):
        self.cloud.ask("set", reservations=[{"capacityReservationId": "cr-1", "state": "active", "endDate": "2030-01-01T00:00:00Z"}])
        found = self.cloud.ec2.describe_capacity_reservations(CapacityReservationIds=["cr-1"])["CapacityReservations"]
        self.assertEqual([("cr-1", 2030)], [(each["CapacityReservationId"], each["EndDate"].year) for each in found])


class Storage(FixtureTest):
    def test_a_presigned_address_ends(self):
        self.cloud.s3.put_object(Bucket=self.cloud.bucket, Key="a", Body=b"text")
        self.assertEqual((200, "text"), fetch(self.cloud.get_url("a")))
        self.assertEqual(403, fetch(self.cloud.get_url("a", ExpiresIn=-1))[0])

    def test_who_may_not_list_is_not_told_that_there_is_nothing(self):
        self.assertEqual(403, fetch(self.cloud.get_url("missing"))[0])
        self.refused("NoSuchKey", 404, self.cloud.s3.get_object, Bucket=self.cloud.bucket, Key="missing")

    def test_s3_may_fail_for_guests_alone_or_for_all(self):
        self.cloud.ask("outage", mode="503", who="guests")
        self.assertEqual(503, fetch(self.cloud.put_url("a"), "PUT", body=b"x")[0])
        self.cloud.s3.put_object(Bucket=self.cloud.bucket, Key="a", Body=b"text")
        self.cloud.ask("outage", mode="refuse", who="all", methods=["PUT"])
        with self.assertRaises(botocore.exceptions.HTTPClientError):
            self.cloud.s3.put_object(Bucket=self.cloud.bucket, Key="b", Body=b"text")
        self.assertEqual("text", self.cloud.object("a"))
        self.assertEqual(["a"], self.cloud.ask("left")["objects"])
        self.cloud.ask("outage")
        self.assertEqual(200, fetch(self.cloud.put_url("a"), "PUT", body=b"x")[0])

    def test_calls_of_objects_are_recorded_without_their_signature(self):
        fetch(self.cloud.put_url("a", ExpiresIn=77), "PUT", body=b"text")
        (entry,) = self.cloud.ask("requests", action="PutObject")["requests"]
        self.assertEqual(("/bench/a", True, "77", 4), tuple(entry["parameters"][key] for key in ("path", "guest", "X-Amz-Expires", "bytes")))
        self.assertNotIn("X-Amz-Signature", entry["parameters"])

    def test_sts_and_ssm_answer(self):
        self.assertEqual("123456789012", self.cloud.client("sts").get_caller_identity()["Account"])
        parameter = self.cloud.client("ssm").get_parameter(Name=self.cloud.description["parameter"])
        self.assertEqual(self.cloud.image, parameter["Parameter"]["Value"])


class Policies(FixtureTest):
    def test_what_a_policy_does_not_allow_is_refused(self):
        statements = [
            {"Effect": "Allow", "Action": ["ec2:Describe*", "s3:GetObject"], "Resource": "*"},
            {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::bench/ci/*"},
            {"Effect": "Deny", "Action": "ec2:DescribeVolumes", "Resource": "*"},
        ]
        self.cloud.ask("set", policy={"Statement": statements})
        self.cloud.listed()
        self.refused("UnauthorizedOperation", 403, self.cloud.launch)
        self.refused("UnauthorizedOperation", 403, self.cloud.ec2.describe_volumes)
        self.assertEqual(200, fetch(self.cloud.put_url("ci/a"), "PUT", body=b"x")[0])
        self.assertEqual(403, fetch(self.cloud.put_url("other"), "PUT", body=b"x")[0])
        self.assertEqual("123456789012", self.cloud.client("sts").get_caller_identity()["Account"], "always allowed")


if __name__ == "__main__":
    unittest.main()
