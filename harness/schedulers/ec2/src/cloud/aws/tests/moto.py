"""Moto on a free port, with what the tests of the client need. Prints what is there as JSON.

Each line of the standard input is a policy for the user `harness`, and is answered by one line. It ends with its input."""

import json
import os
import sys
import tempfile

# One image instead of 1300: the start takes a third of the time.
image = {
    "ami_id": "ami-0abc1234def567890",
    "name": "bench-2026-11-01",
    "description": "for tests",
    "owner_id": "123456789012",
    "public": False,
    "virtualization_type": "hvm",
    "architecture": "x86_64",
    "state": "available",
    "platform": "",
    "image_type": "machine",
    "hypervisor": "xen",
    "root_device_name": "/dev/xvda",
    "root_device_type": "ebs",
    "sriov": "simple",
}
images = tempfile.NamedTemporaryFile("w", suffix=".json")
json.dump([image], images)
images.flush()
os.environ["MOTO_AMIS_PATH"] = images.name
os.environ["MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION"] = "1"
os.environ["MOTO_ENABLE_AMI_VALIDATION"] = "1"
os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = "50"

import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
sys.stdout, out = sys.stderr, sys.stdout
server.start()
host, port = server.get_host_and_port()
address = f"http://{host}:{port}"
client = lambda service: boto3.client(
    service, endpoint_url=address, region_name="eu-west-1", aws_access_key_id="test", aws_secret_access_key="test"
)
ec2, s3, ssm, iam = client("ec2"), client("s3"), client("ssm"), client("iam")
subnet = ec2.describe_subnets()["Subnets"][0]
s3.create_bucket(Bucket="bench", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
ssm.put_parameter(Name="/images/bench", Value=image["ami_id"], Type="String")
tagged = [{"ResourceType": "volume", "Tags": [{"Key": "rfm", "Value": "volume"}]}]
volume = ec2.create_volume(AvailabilityZone=subnet["AvailabilityZone"], Size=1, TagSpecifications=tagged)
# Who may read images and write objects, and nothing else, once moto checks rights and signatures.
iam.create_user(UserName="reader")
allowed = [
    {"Effect": "Allow", "Action": "ec2:DescribeImages", "Resource": "*"},
    {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::bench/ci/*"},
]
policy = json.dumps({"Version": "2012-10-17", "Statement": allowed})
iam.put_user_policy(UserName="reader", PolicyName="reads", PolicyDocument=policy)
key = iam.create_access_key(UserName="reader")["AccessKey"]
iam.create_user(UserName="harness")
harness = iam.create_access_key(UserName="harness")["AccessKey"]
world = {
    "address": address,
    "image": image["ami_id"],
    "subnet": subnet["SubnetId"],
    "vpc": subnet["VpcId"],
    "volume": volume["VolumeId"],
    "key": key["AccessKeyId"],
    "secret": key["SecretAccessKey"],
    "harness": [harness["AccessKeyId"], harness["SecretAccessKey"]],
}
print(json.dumps(world), file=out, flush=True)
for policy in sys.stdin:
    iam.put_user_policy(UserName="harness", PolicyName="harness", PolicyDocument=policy)
    print("set", file=out, flush=True)
server.stop()
