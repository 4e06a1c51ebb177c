//! Tests of what is refused, where and with which hint.

use super::*;
use muster_text::{
    diagnostic::{Sources, render_short},
    yaml::parse,
};
use serde_json::json;
use std::fmt::Write;

/// Every mistake of `ec2_config: TEXT`, as a user sees it.
fn mistakes(text: &str) -> String {
    let mut sources = Sources::default();
    let file = sources.add("check.yaml", text);
    let parsed = parse(file, text);
    let mut context = Context::new(Placeholders::Defer);
    for document in &parsed.documents {
        Config::decode(document, &mut context);
    }
    render_short(&context.diagnostics, &sources)
}

#[test]
fn each_mistake_in_ec2_config_is_reported_at_its_place_with_what_to_do() {
    let rows = [
        "instance_type: c7i.large",
        "ami: ami-0abc1234\ninstance_typ: c7i.large",
        "{ ami: foo, instance_type: c7i.large }",
        "{ ami: ami-0abc123, instance_type: c7i.large }",
        "{ ami: 'resolve:ssm:', instance_type: c7i.large }",
        "{ ami: { owner: Amazon, name: al2023-* }, instance_type: c7i.large }",
        "{ ami: { owner: amazon }, instance_type: c7i.large }",
        "{ ami: [ami-0abc1234], instance_type: c7i.large }",
        "{ ami: ami-0abc1234, instance_type: C7i.large }",
        "{ ami: ami-0abc1234, instance_type: [] }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, instances: 0 }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, volume_gb: 4 }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, volume: { size: 0 } }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, volume: { size: 20GiB } }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, volume: { type: gp2, iops: 3000, throughput: 125 } }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, volume: { type: io2 } }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, market: spots }",
        "{ ami: ami-0abc1234, instance_type: p5.48xlarge, capacity_reservation: cr-0abc1234 }",
        "{ ami: ami-0abc1234, instance_type: p5.48xlarge, market: capacity-block }",
        "{ ami: ami-0abc1234, instance_type: [p5.48xlarge, p4d.24xlarge], market: capacity-block, capacity_reservation: cr-0abc1234, placement: cluster }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, keep_failed: 30m, key_name: k }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, boot_timeout: 0s }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, cpu_options: { threads_per_core: 0 } }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, cpu_options: { threads_per_core: 3 } }",
        "{ ami: ami-0abc1234, instance_type: c7id.large, instance_store: scratch }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, data: [{ src: data/x }] }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, data: [{ src: 'https://example.org/x', dest: x }] }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, data: [{ src: 'https://me:secret@example.org/x', dest: x, md5: 12 }] }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, data: [{ src: 's3://sets/x y', dest: a/../b }] }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, data: [{ src: 's3://sets/x/', dest: x, unpack: true, md5: 0123456789abcdef0123456789abcdef }] }",
    ];
    let mut text = String::new();
    for row in rows {
        let found = mistakes(row);
        assert!(!found.is_empty(), "{row}");
        let _ = writeln!(text, "{row}\n{found}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn what_ec2_has_is_taken() {
    for row in [
        "{ ami: ami-0abc1234, instance_type: c7i.8xlarge }",
        "{ ami: ami-0abc1234def567890, instance_type: [u-6tb1.56xlarge, mac2-m2.metal, c7i.metal-24xl] }",
        "{ ami: 'resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64', instance_type: m7g.large }",
        "{ ami: { owner: '099720109477', name: ubuntu/images/* }, instance_type: m7g.large }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, volume: { size: auto } }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, volume: { size: 100, type: gp3, iops: 4000, throughput: 250 } }",
        "{ ami: ami-0abc1234, instance_type: p5.48xlarge, market: capacity-block, capacity_reservation: cr-0abc1234, network: efa }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, data: [{ src: 's3://sets/imagenet/', dest: /data/imagenet }] }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, data: [{ src: 'https://example.org/x.tar', dest: x, unpack: true, sha256: '${{ digest }}' }] }",
        // What a placeholder will be is not known when the file is read.
        "{ ami: '${{ image }}', instance_type: '${{ type }}', market: '${{ market }}', capacity_reservation: cr-0abc1234 }",
        "{ ami: ami-0abc1234, instance_type: c7i.large, volume: { type: '${{ type }}', iops: 3000 } }",
    ] {
        assert_eq!(mistakes(row), "", "{row}");
    }
}

#[test]
fn each_mistake_in_sched_options_is_reported_at_its_place_with_what_to_do() {
    let text = "region: eu wset 1
bucket: my-bucket
subnets: [subnet-1, subnet-0a1b2c3d]
security_groups: [default]
instance_profile: arn:aws:iam::123456789012:instance-profile/x
tags: { Name: mine, aws:x: y, rfm-session: z, rfmx: fine, team: [a] }
max_keep: long
price_per_hour: { c7i.large: cheap }
endpoint_url: localhost:5555
";
    let mut sources = Sources::default();
    let parsed = parse(sources.add("site.yaml", text), text);
    let mut context = Context::new(Placeholders::Refuse);
    for (name, value) in parsed.documents[0].entries() {
        let option = OPTIONS.iter().find(|option| Some(option.name) == name.text()).expect("an option");
        (option.set)(&mut (), value, &mut context);
    }
    let found = render_short(&context.diagnostics, &sources);
    insta::assert_snapshot!(found);
}

#[test]
fn a_region_is_one_of_amazon_unless_an_endpoint_has_others() {
    let wrong = |region: &str, endpoint_url: Value| {
        let wrong = wrong_options(&json!({ "region": region, "endpoint_url": endpoint_url }));
        wrong
            .into_iter()
            .map(|wrong| format!("{}: {} ({})", wrong.name, wrong.mistake.message, wrong.mistake.hint.unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(wrong("eu-wset-1", Value::Null), ["region: `eu-wset-1` is not a region (did you mean `eu-west-1`?)"]);
    assert_eq!(wrong("RegionOne", Value::Null), ["region: `RegionOne` is not a region (write its code: `eu-west-1`)"]);
    for region in ["eu-west-1", "RegionOne", "default", "us_lab.2"] {
        assert_eq!(wrong(region, "https://ec2.example.org".into()), [""; 0], "{region}");
    }
    let options = |region: &str, endpoint_url: Value| {
        Options::read(
            &json!({ "region": region, "endpoint_url": endpoint_url, "bucket": "s3://bench", "subnets": ["subnet-0a1b2c3d"] }),
            "",
        )
    };
    assert_eq!(options("RegionOne", "https://ec2.example.org".into()).unwrap().region.0, "RegionOne");
    assert_eq!(options("RegionOne", Value::Null).unwrap_err().len(), 1);
    assert_eq!(options("eu west", "https://ec2.example.org".into()).unwrap_err().len(), 1);
}

#[test]
fn a_bucket_may_have_a_prefix() {
    let key = |text: &str| {
        let mut context = Context::new(Placeholders::Refuse);
        let bucket = Bucket::decode(&Node::from_value(&text.into(), Span::default()), &mut context)?;
        Some((bucket.name.clone(), bucket.key("s/a/boot")))
    };
    let expect = |name: &str, key: &str| Some((name.to_owned(), key.to_owned()));
    for (text, expected) in [
        ("s3://bench", expect("bench", "muster/s/a/boot")),
        ("s3://bench/", expect("bench", "muster/s/a/boot")),
        ("s3://bench-rfm.eu/ci/x/", expect("bench-rfm.eu", "ci/x/s/a/boot")),
        ("s3://Bench/x", None),
        ("s3://be/x", None),
        ("s3://bench//x", None),
        ("s3://bench/a b", None),
        ("bench", None),
    ] {
        assert_eq!(key(text), expected, "{text}");
    }
}
