//! The rights and resources that planned jobs need in an account: a policy, and commands for an administrator.

mod setup;

pub use setup::setup;

use crate::{
    config::{Image, Source, regions::partition},
    plan::Handle,
};
use muster_core::job::workload::Workload;
use muster_text::{Value, diagnostic::Diagnostic};
use serde_json::json;
use std::collections::BTreeSet;

/// The plan of a case on EC2.
#[derive(Debug, Clone)]
pub struct Plan(pub(crate) Handle);

/// Plans a case.
///
/// # Errors
/// Every reason why this workload cannot run on EC2.
pub fn plan(workload: &Workload) -> Result<Plan, Vec<Diagnostic>> {
    crate::plan::handle(workload).map(Plan)
}

/// A statement: what it is for, what it allows on what, and under which condition.
struct Statement {
    sid: &'static str,
    actions: BTreeSet<String>,
    resources: BTreeSet<String>,
    condition: Option<Value>,
}

/// The least rights with which the plans run, as a policy of IAM. `account`: its number, or `*`.
pub fn policy(plans: &[Plan], account: &str) -> Value {
    let handles: Vec<&Handle> = plans.iter().map(|Plan(handle)| handle).collect();
    let rights = Rights { handles: &handles, account };
    let statements = [
        rights.read(),
        rights.launch_from(),
        rights.launch_tagged(),
        rights.only_with_tokens(),
        rights.tag_on_create(),
        rights.move_expiry(),
        rights.own_only(),
        rights.make_groups(),
        rights.make_groups_in_networks(),
        rights.parameters(),
        rights.pass_roles(),
        rights.objects(),
        rights.list_objects(),
        rights.data(),
        rights.list_data(),
        rights.keys(),
    ];
    // Only one denies: what is not allowed is denied anyway.
    let written = |statement: Statement| {
        let effect = if statement.sid == DENIES { "Deny" } else { "Allow" };
        let Statement { sid, actions, resources, condition } = statement;
        let mut written = json!({ "Sid": sid, "Effect": effect, "Action": actions, "Resource": resources });
        if let Some(condition) = condition {
            written["Condition"] = condition;
        }
        written
    };
    let needed = statements.into_iter().filter(|statement| !statement.actions.is_empty() && !statement.resources.is_empty());
    json!({ "Version": "2012-10-17", "Statement": needed.map(written).collect::<Vec<_>>() })
}

const DENIES: &str = "OnlyWithTokens";

struct Rights<'a> {
    handles: &'a [&'a Handle],
    account: &'a str,
}

impl Rights<'_> {
    fn any(&self, is: fn(&Handle) -> bool) -> bool {
        self.handles.iter().any(|handle| is(handle))
    }

    /// `arn:aws:ec2:REGION:ACCOUNT:KIND` of each region, for those jobs of which `names` says some.
    fn arns(&self, names: impl Fn(&Handle) -> Vec<String>) -> BTreeSet<String> {
        let mut arns = BTreeSet::new();
        for handle in self.handles {
            let region = &handle.place.region;
            arns.extend(names(handle).into_iter().map(|name| format!("arn:{}:ec2:{region}:{name}", partition(region).name)));
        }
        arns
    }

    /// The same for all objects of these kinds.
    fn all_of(&self, kinds: &[&str]) -> BTreeSet<String> {
        self.arns(|_| kinds.iter().map(|kind| format!("{}:{kind}/*", self.account)).collect())
    }

    fn read(&self) -> Statement {
        let mut actions = actions(
            "ec2",
            &[
                "DescribeImages",
                "DescribeInstances",
                "DescribeInstanceTypes",
                "DescribeInstanceTypeOfferings",
                "DescribeSubnets",
                "DescribeVolumes",
            ],
        );
        for (is, action) in [
            (Handle::needs_group as fn(&Handle) -> bool, "DescribeSecurityGroups"),
            (Handle::in_cluster, "DescribePlacementGroups"),
            (has_reservation, "DescribeCapacityReservations"),
        ] {
            if self.any(is) {
                actions.insert(format!("ec2:{action}"));
            }
        }
        // EC2 has no narrower rights to read.
        let resources = if self.handles.is_empty() { BTreeSet::new() } else { BTreeSet::from(["*".to_owned()]) };
        Statement { sid: "Read", actions, resources, condition: None }
    }

    fn launch_from(&self) -> Statement {
        let account = self.account;
        let resources = self.arns(|handle| {
            let image = if let Image::Id(id) = &handle.image { id } else { "*" };
            let mut names = vec![format!(":image/{image}"), ":snapshot/*".to_owned(), format!("{account}:network-interface/*")];
            names.extend(handle.offers.iter().map(|offer| format!("{account}:subnet/{}", offer.subnet)));
            if handle.security_groups.is_empty() {
                names.push(format!("{account}:security-group/*"));
            }
            names.extend(handle.security_groups.iter().map(|group| format!("{account}:security-group/{group}")));
            names.extend(handle.key_name.iter().map(|key| format!("{account}:key-pair/{key}")));
            if handle.in_cluster() {
                names.push(format!("{account}:placement-group/*"));
            }
            names.extend(handle.capacity_reservation.iter().map(|id| format!("{account}:capacity-reservation/{id}")));
            names
        });
        Statement { sid: "LaunchFrom", actions: actions("ec2", &["RunInstances"]), resources, condition: None }
    }

    fn launch_tagged(&self) -> Statement {
        let condition = Some(json!({ "StringEquals": { "aws:RequestTag/rfm-managed": "true" } }));
        let resources = self.all_of(&["instance", "volume"]);
        Statement { sid: "LaunchTagged", actions: actions("ec2", &["RunInstances"]), resources, condition }
    }

    fn only_with_tokens(&self) -> Statement {
        let condition = Some(json!({ "StringNotEquals": { "ec2:MetadataHttpTokens": "required" } }));
        let resources = self.all_of(&["instance"]);
        Statement { sid: DENIES, actions: actions("ec2", &["RunInstances"]), resources, condition }
    }

    fn tag_on_create(&self) -> Statement {
        let mut creating = vec!["RunInstances"];
        creating.extend(self.any(Handle::needs_group).then_some("CreateSecurityGroup"));
        creating.extend(self.any(Handle::in_cluster).then_some("CreatePlacementGroup"));
        let condition = json!({ "StringEquals": { "ec2:CreateAction": creating, "aws:RequestTag/rfm-managed": "true" } });
        let mut kinds = vec!["instance", "volume", "network-interface"];
        kinds.extend(self.any(Handle::needs_group).then_some("security-group"));
        kinds.extend(self.any(Handle::in_cluster).then_some("placement-group"));
        let resources = self.all_of(&kinds);
        Statement { sid: "TagOnCreate", actions: actions("ec2", &["CreateTags"]), resources, condition: Some(condition) }
    }

    fn move_expiry(&self) -> Statement {
        let condition = json!({
            "StringEquals": { "aws:ResourceTag/rfm-managed": "true" },
            "ForAllValues:StringEquals": { "aws:TagKeys": ["rfm-expires"] },
        });
        let resources = self.all_of(&["instance"]);
        Statement { sid: "MoveExpiry", actions: actions("ec2", &["CreateTags"]), resources, condition: Some(condition) }
    }

    fn own_only(&self) -> Statement {
        let (mut all, mut kinds) =
            (actions("ec2", &["TerminateInstances", "GetConsoleOutput", "DeleteVolume"]), vec!["instance", "volume"]);
        if self.any(Handle::needs_group) {
            all.extend(actions("ec2", &["DeleteSecurityGroup", "AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress"]));
            kinds.push("security-group");
        }
        if self.any(Handle::in_cluster) {
            all.extend(actions("ec2", &["DeletePlacementGroup"]));
            kinds.push("placement-group");
        }
        let condition = Some(json!({ "StringEquals": { "aws:ResourceTag/rfm-managed": "true" } }));
        Statement { sid: "OwnOnly", actions: all, resources: self.all_of(&kinds), condition }
    }

    fn make_groups(&self) -> Statement {
        let (mut all, mut kinds) = (BTreeSet::new(), Vec::new());
        for (is, action, kind) in [
            (Handle::needs_group as fn(&Handle) -> bool, "CreateSecurityGroup", "security-group"),
            (Handle::in_cluster, "CreatePlacementGroup", "placement-group"),
        ] {
            if self.any(is) {
                all.extend(actions("ec2", &[action]));
                kinds.push(kind);
            }
        }
        let condition = Some(json!({ "StringEquals": { "aws:RequestTag/rfm-managed": "true" } }));
        Statement { sid: "MakeGroups", actions: all, resources: self.all_of(&kinds), condition }
    }

    fn make_groups_in_networks(&self) -> Statement {
        let resources = if self.any(Handle::needs_group) { self.all_of(&["vpc"]) } else { BTreeSet::new() };
        Statement { sid: "MakeGroupsIn", actions: actions("ec2", &["CreateSecurityGroup"]), resources, condition: None }
    }

    /// Parameters of Amazon's own have no account.
    fn parameters(&self) -> Statement {
        let arn = |handle: &&&Handle| {
            let (region, account) = (&handle.place.region, self.account);
            match &handle.image {
                Image::Parameter(name) => {
                    let account = if name.starts_with("/aws/") { "" } else { account };
                    Some(format!(
                        "arn:{}:ssm:{region}:{account}:parameter/{}",
                        partition(region).name,
                        name.trim_start_matches('/')
                    ))
                }
                Image::Id(_) | Image::Newest { .. } => None,
            }
        };
        let resources = self.handles.iter().filter_map(|handle| arn(&handle)).collect();
        Statement { sid: "Parameters", actions: actions("ssm", &["GetParameter"]), resources, condition: None }
    }

    /// The role of a profile mostly has its name.
    fn pass_roles(&self) -> Statement {
        let arn = |handle: &&&Handle| {
            let profile = handle.instance_profile.as_ref()?;
            Some(format!("arn:{}:iam::{}:role/{profile}", partition(&handle.place.region).name, self.account))
        };
        let resources = self.handles.iter().filter_map(|handle| arn(&handle)).collect();
        let services = self.handles.iter().map(|handle| format!("ec2.{}", partition(&handle.place.region).domain));
        let services: BTreeSet<String> = services.chain(["ec2.amazonaws.com".to_owned()]).collect();
        let condition = Some(json!({ "StringEquals": { "iam:PassedToService": services } }));
        Statement { sid: "PassRoles", actions: actions("iam", &["PassRole"]), resources, condition }
    }

    fn objects(&self) -> Statement {
        let arn = |handle: &&Handle| {
            format!("arn:{}:s3:::{}/{}", partition(&handle.place.region).name, handle.bucket.name, handle.bucket.key("*"))
        };
        let resources = self.handles.iter().map(arn).collect();
        Statement {
            sid: "Objects",
            actions: actions("s3", &["GetObject", "PutObject", "DeleteObject"]),
            resources,
            condition: None,
        }
    }

    fn list_objects(&self) -> Statement {
        let arn = |handle: &&Handle| format!("arn:{}:s3:::{}", partition(&handle.place.region).name, handle.bucket.name);
        let prefixes: BTreeSet<String> = self.handles.iter().map(|handle| handle.bucket.key("*")).collect();
        let condition = Some(json!({ "StringLike": { "s3:prefix": prefixes } }));
        let resources = self.handles.iter().map(arn).collect();
        Statement { sid: "List", actions: actions("s3", &["ListBucket"]), resources, condition }
    }

    /// Buckets and keys of data sets, with the region that they are in.
    fn sets(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let sets = self.handles.iter().flat_map(|handle| handle.data.iter().map(|set| (handle.place.region.as_str(), set)));
        sets.filter_map(|(region, set)| match &set.source {
            Source::S3 { bucket, key } => Some((region, bucket.as_str(), key.as_str())),
            Source::Http(_) => None,
        })
    }

    /// The addresses that instances get are signed with these rights.
    fn data(&self) -> Statement {
        let arn = |(region, bucket, key): (&str, &str, &str)| {
            let below = if key.is_empty() || key.ends_with('/') { "*" } else { "" };
            format!("arn:{}:s3:::{bucket}/{key}{below}", partition(region).name)
        };
        Statement {
            sid: "Data",
            actions: actions("s3", &["GetObject"]),
            resources: self.sets().map(arn).collect(),
            condition: None,
        }
    }

    fn list_data(&self) -> Statement {
        let resources = self.sets().map(|(region, bucket, _)| format!("arn:{}:s3:::{bucket}", partition(region).name)).collect();
        let prefixes: BTreeSet<String> = self.sets().map(|(_, _, key)| format!("{key}*")).collect();
        let condition = Some(json!({ "StringLike": { "s3:prefix": prefixes } }));
        Statement { sid: "ListData", actions: actions("s3", &["ListBucket"]), resources, condition }
    }

    /// Where volumes or the bucket are encrypted with a key of the account's own. Keys of Amazon's need no rights.
    fn keys(&self) -> Statement {
        let of = |handle: &&Handle| {
            let region = &handle.place.region;
            format!("arn:{}:kms:{region}:{}:key/*", partition(region).name, self.account)
        };
        let services = |handle: &&Handle| ["ec2", "s3"].map(|service| format!("{service}.{}.*", handle.place.region));
        let services: BTreeSet<String> = self.handles.iter().flat_map(services).collect();
        let names = &["CreateGrant", "Decrypt", "DescribeKey", "GenerateDataKey*", "ReEncrypt*"];
        let condition = Some(json!({ "StringLike": { "kms:ViaService": services } }));
        Statement { sid: "Keys", actions: actions("kms", names), resources: self.handles.iter().map(of).collect(), condition }
    }
}

fn has_reservation(handle: &Handle) -> bool {
    handle.capacity_reservation.is_some()
}

fn actions(service: &str, names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| format!("{service}:{name}")).collect()
}

#[cfg(test)]
mod tests;
