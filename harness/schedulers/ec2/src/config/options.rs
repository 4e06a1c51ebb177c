//! `sched_options` of a partition on EC2.

use super::{
    regions,
    values::{Address, Bucket, Currency, KeyName, Price, ProfileName, Region, SecurityGroupId, SubnetId, Tags},
    without_places,
};
use muster_core::{
    job::descriptor::WrongOption,
    usage::{CURRENCY, PRICES, Prices},
};
use muster_text::{
    Value,
    decode::{Context, Decode, Key, Ordered, Placeholders, Within},
    diagnostic::{Diagnostic, Span},
    yaml::Node,
};
use std::time::Duration;

/// The keys of `sched_options`.
pub(crate) const OPTIONS: &[Key<()>] = &[
    Key::of::<Region>(REGION, "The region of the instances: `eu-west-1`. With `endpoint_url`, the name that it has there."),
    Key::of::<Bucket>("bucket", "Where scripts go and logs come from: `s3://bucket/prefix`. Default of the prefix: muster."),
    Key::of::<Vec<SubnetId>>("subnets", "Subnets of the instances, tried in order. Instances reach S3 through them."),
    Key::of::<Vec<SecurityGroupId>>(
        "security_groups",
        "Security groups of the instances. Default: that of the network, and for several instances one that lives as long as they do.",
    ),
    Key::of::<ProfileName>("instance_profile", "The instance profile, whose role the job has. Default: none."),
    Key::of::<KeyName>("key_name", "The key pair with which people log in to what is kept, over ssh. Default: none."),
    Key::of::<Tags>("tags", "Tags of all that is created, beside Muster's own."),
    Key::of::<Duration>("max_keep", "The longest that a failed instance is kept, whatever `keep_failed` says."),
    Key::of::<Ordered<Price>>(
        PRICES,
        "What an hour of an instance costs, by its type: reports say what cases have cost, and `--max-cost` limits it.",
    ),
    Key::of::<Currency>(CURRENCY, "What prices are in. Default: USD."),
    Key::of::<Within>(
        "poll_interval",
        "How often EC2 and S3 are asked for all jobs of a region, and how often an instance sends its log. Default: 5s. In the first minutes of a job EC2 and S3 are asked more often.",
    ),
    Key::of::<Address>("endpoint_url", "The address of EC2 and S3, for tests."),
];

const REGION: &str = "region";

const AT_SITE: &str = "write it in the partition's `sched_options`";

/// What a check cannot set: where things go, under whose role, and what limits the cost.
pub(crate) const SITE_OPTIONS: &[(&str, &str)] = &[
    ("bucket", AT_SITE),
    ("instance_profile", AT_SITE),
    ("max_keep", AT_SITE),
    (PRICES, AT_SITE),
    (CURRENCY, AT_SITE),
    ("poll_interval", AT_SITE),
    ("endpoint_url", AT_SITE),
];

/// See [`Descriptor::wrong_options`](muster_core::job::descriptor::Descriptor::wrong_options).
pub(crate) fn wrong_options(options: &Value) -> Vec<WrongOption> {
    let own_endpoint = options.get("endpoint_url").is_some_and(|address| !address.is_null());
    let region = options.get(REGION).and_then(Value::as_str);
    let Some(region) = region.filter(|region| !own_endpoint && !regions::is_region(region)) else { return Vec::new() };
    vec![WrongOption { name: REGION, mistake: Diagnostic::general(regions::wrong(region)).hint(regions::hint(region)) }]
}

/// The options that a plan reads.
#[derive(Debug)]
pub(crate) struct Options {
    pub region: Region,
    pub bucket: Bucket,
    pub subnets: Vec<SubnetId>,
    pub security_groups: Vec<SecurityGroupId>,
    pub instance_profile: Option<ProfileName>,
    pub key_name: Option<KeyName>,
    pub tags: Tags,
    pub max_keep: Option<Duration>,
    pub prices: Prices,
    pub poll_interval: Option<Duration>,
    pub endpoint_url: Option<Address>,
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    /// Every mistake, and every option without which nothing can be launched. `place`: `system:partition`, or nothing.
    pub(crate) fn read(options: &Value, place: &str) -> Result<Self, Vec<Diagnostic>> {
        let mut reader = Reader { options, context: Context::new(Placeholders::Refuse), place };
        let (region, bucket) = (reader.needed("region", "eu-west-1"), reader.needed("bucket", "s3://BUCKET/PREFIX"));
        let subnets: Option<Vec<SubnetId>> = reader.needed("subnets", "[subnet-...]");
        if subnets.as_ref().is_some_and(Vec::is_empty) {
            reader.missing("subnets", "[subnet-...]");
        }
        let (security_groups, instance_profile) = (reader.read("security_groups"), reader.read("instance_profile"));
        let key_name = reader.read("key_name");
        let (tags, max_keep, endpoint_url) = (reader.read("tags"), reader.read("max_keep"), reader.read("endpoint_url"));
        let poll_interval = reader.read::<Within>("poll_interval").map(Into::into);
        let mut mistakes = without_places(reader.context.diagnostics);
        mistakes.extend(wrong_options(options).into_iter().map(|wrong| wrong.mistake));
        match (region, bucket, subnets) {
            (Some(region), Some(bucket), Some(subnets)) if mistakes.is_empty() => Ok(Self {
                region,
                bucket,
                subnets,
                security_groups: security_groups.unwrap_or_default(),
                instance_profile,
                key_name,
                tags: tags.unwrap_or_default(),
                max_keep,
                prices: Prices::of(options),
                poll_interval,
                endpoint_url,
            }),
            _ => Err(mistakes),
        }
    }
}

struct Reader<'a> {
    options: &'a Value,
    context: Context,
    place: &'a str,
}

impl Reader<'_> {
    fn read<T: Decode>(&mut self, key: &str) -> Option<T> {
        let value = self.options.get(key).filter(|value| !value.is_null())?;
        T::decode(&Node::from_value(value, Span::default()), &mut self.context)
    }

    fn needed<T: Decode>(&mut self, key: &str, example: &str) -> Option<T> {
        if self.options.get(key).is_none_or(Value::is_null) {
            self.missing(key, example);
        }
        self.read(key)
    }

    fn missing(&mut self, key: &str, example: &str) {
        let named = if self.place.is_empty() { String::new() } else { format!(" {}", self.place) };
        let what = format!("the partition{named} has no `{key}`, without which nothing starts on EC2");
        self.context
            .push(Diagnostic::general(what).hint(format!("write `sched_options: {{ {key}: {example} }}` in the site file")));
    }
}
