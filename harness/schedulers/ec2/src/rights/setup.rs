//! The commands that prepare an account, to be read and run by somebody who may.

use super::Plan;
use muster_text::shell::quote;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// How long objects stay that nobody has removed.
const DAYS: u32 = 7;

/// Commands of the AWS CLI: buckets with their rules, and a way from the subnets to S3.
pub fn setup(plans: &[Plan]) -> String {
    let mut buckets: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    let mut subnets: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Plan(handle) in plans {
        let region = handle.place.region.as_str();
        buckets.entry((region, &handle.bucket.name)).or_default().insert(&handle.bucket.prefix);
        subnets.entry(region).or_default().extend(handle.offers.iter().map(|offer| offer.subnet.as_str()));
    }
    let mut text = String::new();
    for ((region, bucket), prefixes) in buckets {
        text += &bucket_commands(region, bucket, &prefixes);
    }
    for (region, subnets) in subnets {
        text += &endpoint_commands(region, &subnets);
    }
    text
}

fn bucket_commands(region: &str, bucket: &str, prefixes: &BTreeSet<&str>) -> String {
    // In the oldest region, the place of a bucket is not said.
    let place =
        if region == "us-east-1" { String::new() } else { format!(" --create-bucket-configuration LocationConstraint={region}") };
    let rule = |prefix: &&str| {
        json!({
            "ID": format!("muster {prefix}"), "Status": "Enabled", "Filter": { "Prefix": format!("{prefix}/") },
            "Expiration": { "Days": DAYS }, "AbortIncompleteMultipartUpload": { "DaysAfterInitiation": 1 },
        })
    };
    let rules = json!({ "Rules": prefixes.iter().map(rule).collect::<Vec<_>>() }).to_string();
    let bucket = quote(bucket);
    format!(
        "# The bucket {bucket}: skip the first command if it exists.\n\
         aws s3api create-bucket --region {region} --bucket {bucket}{place}\n\
         aws s3api put-public-access-block --region {region} --bucket {bucket} --public-access-block-configuration \\\n  \
         BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true\n\
         # What nobody has removed goes after {DAYS} days. This replaces all rules that the bucket has.\n\
         aws s3api put-bucket-lifecycle-configuration --region {region} --bucket {bucket} --lifecycle-configuration \\\n  {}\n",
        quote(&rules),
    )
}

fn endpoint_commands(region: &str, subnets: &BTreeSet<&str>) -> String {
    let subnets: Vec<&str> = subnets.iter().copied().collect();
    format!(
        "# A way from the subnets in {region} to S3 without a public address: one endpoint for each network.\n\
         for subnet in {}; do\n  \
         network=$(aws ec2 describe-subnets --region {region} --subnet-ids \"$subnet\" --query 'Subnets[0].VpcId' --output text)\n  \
         table=$(aws ec2 describe-route-tables --region {region} --query 'RouteTables[0].RouteTableId' --output text \\\n    \
         --filters Name=association.subnet-id,Values=\"$subnet\")\n  \
         # A subnet without a table of its own has the main one of its network.\n  \
         if [ \"$table\" = None ]; then\n    \
         table=$(aws ec2 describe-route-tables --region {region} --query 'RouteTables[0].RouteTableId' --output text \\\n      \
         --filters Name=association.main,Values=true Name=vpc-id,Values=\"$network\")\n  \
         fi\n  \
         endpoint=$(aws ec2 describe-vpc-endpoints --region {region} --query 'VpcEndpoints[0].VpcEndpointId' --output text \\\n    \
         --filters Name=vpc-id,Values=\"$network\" Name=service-name,Values=com.amazonaws.{region}.s3)\n  \
         if [ \"$endpoint\" = None ]; then\n    \
         aws ec2 create-vpc-endpoint --region {region} --vpc-id \"$network\" --service-name com.amazonaws.{region}.s3 \\\n      \
         --route-table-ids \"$table\"\n  \
         else\n    \
         aws ec2 modify-vpc-endpoint --region {region} --vpc-endpoint-id \"$endpoint\" --add-route-table-ids \"$table\"\n  \
         fi\n\
         done\n",
        subnets.join(" "),
    )
}
