//! The regions of Amazon. New ones come, so that the list alone proves nothing: a region that is not in it may be there.

use muster_text::diagnostic::did_you_mean;

const KNOWN: &[&str] = &[
    "af-south-1",
    "ap-east-1",
    "ap-east-2",
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-south-2",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-6",
    "ap-southeast-7",
    "ca-central-1",
    "ca-west-1",
    "cn-north-1",
    "cn-northwest-1",
    "eu-central-1",
    "eu-central-2",
    "eu-isoe-west-1",
    "eu-north-1",
    "eu-south-1",
    "eu-south-2",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "eusc-de-east-1",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "mx-central-1",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-gov-east-1",
    "us-gov-west-1",
    "us-iso-east-1",
    "us-iso-west-1",
    "us-isob-east-1",
    "us-isob-west-1",
    "us-isof-east-1",
    "us-isof-south-1",
    "us-west-1",
    "us-west-2",
];

/// Amazon's separate clouds, as botocore's list of endpoints has them: what the names of their regions begin with, the name of the
/// cloud in an ARN, and its domain.
const PARTITIONS: &[(&str, Partition)] = &[
    ("cn-", Partition { name: "aws-cn", domain: "amazonaws.com.cn" }),
    ("us-gov-", Partition { name: "aws-us-gov", domain: "amazonaws.com" }),
    ("eusc-", Partition { name: "aws-eusc", domain: "amazonaws.eu" }),
    ("us-iso-", Partition { name: "aws-iso", domain: "c2s.ic.gov" }),
    ("us-isob-", Partition { name: "aws-iso-b", domain: "sc2s.sgov.gov" }),
    ("eu-isoe-", Partition { name: "aws-iso-e", domain: "cloud.adc-e.uk" }),
    ("us-isof-", Partition { name: "aws-iso-f", domain: "csp.hci.ic.gov" }),
];

/// One of Amazon's separate clouds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partition {
    /// The name in an ARN.
    pub name: &'static str,
    /// The domain of its services.
    pub domain: &'static str,
}

/// Where a region is. A region that is not known is in the first of the clouds.
pub(crate) fn partition(region: &str) -> Partition {
    let found = PARTITIONS.iter().find(|(begin, _)| region.starts_with(begin));
    found.map_or(Partition { name: "aws", domain: "amazonaws.com" }, |(_, partition)| *partition)
}

/// What the names of all regions have before their number.
const DIRECTIONS: &[&str] = &["north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest", "central"];

/// `eu-west-1`: places, a direction and a number.
pub(super) fn is_region(text: &str) -> bool {
    let mut parts = text.rsplit('-');
    let number = parts.next().is_some_and(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let direction = parts.next().is_some_and(|part| DIRECTIONS.contains(&part));
    let places: Vec<&str> = parts.collect();
    let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
    number && direction && !places.is_empty() && places.iter().all(is_word)
}

pub(super) fn wrong(region: &str) -> String {
    format!("`{region}` is not a region")
}

pub(crate) fn is_known(region: &str) -> bool {
    KNOWN.contains(&region)
}

/// The known region that is meant; else what to write.
pub(crate) fn hint(region: &str) -> String {
    did_you_mean(region, KNOWN.iter().copied()).unwrap_or_else(|| "write its code: `eu-west-1`".to_owned())
}
