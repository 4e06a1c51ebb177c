//! Ids, names and types of EC2, as they are written in files.

use super::{data::is_plain_path, regions};
use muster_text::{
    Value,
    decode::{Context, Decode},
    keys,
    yaml::{Kind, Node},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{fmt, num::NonZeroU32, ops::Deref};

const SSM: &str = "resolve:ssm:";

/// The image that instances start from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Image {
    Id(String),
    /// The parameter of the Systems Manager that holds the id.
    Parameter(String),
    /// The newest with this name, which may have `*`.
    Newest {
        owner: String,
        name: String,
    },
}

keys! {
    /// `ec2_config.ami` as a mapping
    struct Newest("`ami`") {
        /// The account that owns the image: 12 digits, `self`, `amazon` or `aws-marketplace`.
        @required owner: Owner,
        /// The name of the image, with `*` for the part that changes.
        @required name: String,
    }
}

impl Decode for Image {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        const HINT: &str = "write `ami-` and 8 or 17 hex digits, `resolve:ssm:/PATH`, or `{ owner, name }`";
        let text = match context.kind(node)? {
            Kind::Scalar { text, .. } if !node.is_null() => text,
            Kind::Map(_) => {
                let Newest { owner, name, .. } = Newest::decode(node, context)?;
                return Some(Self::Newest { owner: owner?.0, name: name? });
            }
            Kind::Scalar { .. } | Kind::Seq(_) | Kind::Bad => return context.expected(node, "an image", Some(HINT)),
        };
        match text.strip_prefix(SSM) {
            Some(name) if name.len() > 1 && name.chars().all(|c| c.is_ascii_alphanumeric() || "/_.-:".contains(c)) => {
                Some(Self::Parameter(name.to_owned()))
            }
            None if is_id(text, "ami-") => Some(Self::Id(text.clone())),
            Some(_) | None => context.wrong(node, format!("`{text}` is not an image"), Some(HINT)),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "string", "pattern": r"^(ami-([0-9a-f]{8}|[0-9a-f]{17})|resolve:ssm:[A-Za-z0-9/_.:-]{2,})$" },
            Newest::schema(),
            { "$ref": "#/$defs/placeholder" },
        ] })
    }
}

/// As it is written.
impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => f.write_str(id),
            Self::Parameter(name) => write!(f, "{SSM}{name}"),
            Self::Newest { owner, name } => write!(f, "the newest `{name}` of {owner}"),
        }
    }
}

/// Whether a text is an id of EC2: the prefix, and 8 or 17 hex digits.
fn is_id(text: &str, prefix: &str) -> bool {
    let digits = text.strip_prefix(prefix).unwrap_or_default();
    matches!(digits.len(), 8 | 17) && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_instance_type(text: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    text.split_once('.').is_some_and(|(family, size)| part(family) && part(size))
}

fn is_owner(text: &str) -> bool {
    matches!(text, "self" | "amazon" | "aws-marketplace") || (text.len() == 12 && text.bytes().all(|b| b.is_ascii_digit()))
}

fn is_profile(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || "+=,.@_-".contains(c))
}

fn is_key_name(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || "+=,.@_:/ -".contains(c))
}

pub(super) fn is_address(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|host| !host.is_empty()))
}

/// Declares types of text, each with what it is, what to write, a pattern for editors, and whether a text is one.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident, $what:literal, $hint:literal, $pattern:literal, $is:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub(crate) struct $name(pub String);

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Decode for $name {
            fn decode(node: &Node, context: &mut Context) -> Option<Self> {
                let text = String::decode(node, context)?;
                let is: fn(&str) -> bool = $is;
                if is(&text) { Some(Self(text)) } else { context.wrong(node, format!("`{text}` is not {}", $what), Some($hint)) }
            }

            fn schema() -> Value {
                json!({ "anyOf": [{ "type": "string", "pattern": $pattern }, { "$ref": "#/$defs/placeholder" }] })
            }
        }
    )*};
}

texts! {
    /// `c7i.8xlarge`
    InstanceType, "an instance type", "write a family and a size: `c7i.8xlarge`", r"^[a-z0-9-]+\.[a-z0-9-]+$", is_instance_type;
    /// `cr-0123456789abcdef0`
    ReservationId, "a capacity reservation", "write `cr-` and 8 or 17 hex digits", "^cr-([0-9a-f]{8}|[0-9a-f]{17})$", |text| is_id(text, "cr-");
    /// `subnet-0123456789abcdef0`
    SubnetId, "a subnet", "write `subnet-` and 8 or 17 hex digits", "^subnet-([0-9a-f]{8}|[0-9a-f]{17})$", |text| is_id(text, "subnet-");
    /// `sg-0123456789abcdef0`
    SecurityGroupId, "a security group", "write `sg-` and 8 or 17 hex digits", "^sg-([0-9a-f]{8}|[0-9a-f]{17})$", |text| is_id(text, "sg-");
    Owner, "an account", "write its 12 digits in quotes, `self`, `amazon` or `aws-marketplace`", "^([0-9]{12}|self|amazon|aws-marketplace)$", is_owner;
    /// The name of an instance profile.
    ProfileName, "an instance profile", "write its name, not its ARN", "^[A-Za-z0-9+=,.@_-]{1,128}$", is_profile;
    /// The name of a key pair.
    KeyName, "a key pair", "write the name that it has on EC2", "^[A-Za-z0-9+=,.@_:/ -]{1,255}$", is_key_name;
    /// `USD`
    Currency, "a currency", "write its three letters: `USD`", "^[A-Z]{3}$", |text| text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase());
    /// Where disks are mounted.
    Folder, "a folder for disks", "write an absolute path: `/scratch`", "^/[A-Za-z0-9/_.=+@:,-]+$", is_folder_for_disks;
    /// `https://host:port`
    Address, "an address", "write `https://HOST:PORT`", "^https?://.+", is_address;
}

/// `eu-west-1`. Behind an `endpoint_url` regions have any name: `wrong_options` knows whether there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region(pub String);

impl Decode for Region {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let text = String::decode(node, context)?;
        let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
        if is_name { Some(Self(text)) } else { context.wrong(node, regions::wrong(&text), Some(&regions::hint(&text))) }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$" }, { "$ref": "#/$defs/placeholder" }] })
    }
}

/// `s3://bucket/prefix`
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Bucket {
    pub name: String,
    /// The prefix of keys, without slashes at its ends.
    pub prefix: String,
}

/// Where a site names none. A rule for what is old would be one for the whole bucket.
const PREFIX: &str = "muster";

impl Bucket {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("s3://")?;
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let (is_plain, is_edge) = (
            |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'),
            |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit()),
        );
        let bytes = name.as_bytes();
        let is_name = (3..=63).contains(&bytes.len())
            && bytes.iter().all(|b| is_plain(*b))
            && is_edge(bytes.first())
            && is_edge(bytes.last());
        let prefix = prefix.trim_end_matches('/');
        let is_prefix = !prefix.starts_with('/')
            && !prefix.contains("//")
            && prefix.chars().all(|c| c.is_ascii_alphanumeric() || "/_.-".contains(c));
        (is_name && is_prefix).then(|| Self { name: name.to_owned(), prefix: prefix.to_owned() })
    }

    /// The key of an object below the prefix.
    pub(crate) fn key(&self, path: &str) -> String {
        if self.prefix.is_empty() { path.to_owned() } else { format!("{}/{path}", self.prefix) }
    }
}

impl Decode for Bucket {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let text = String::decode(node, context)?;
        let hint = "write `s3://BUCKET/PREFIX`: a bucket has 3 to 63 lower-case letters, digits, `-` and `.`";
        let prefix = |bucket: Self| if bucket.prefix.is_empty() { Self { prefix: PREFIX.to_owned(), ..bucket } } else { bucket };
        Self::parse(&text).map(prefix).or_else(|| context.wrong(node, format!("`{text}` is not a place in S3"), Some(hint)))
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "string", "pattern": r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9/_.-]*)?$" },
            { "$ref": "#/$defs/placeholder" },
        ] })
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.name, self.prefix)
    }
}

/// Checks what an hour costs. `Prices::of` reads the number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Price;

impl Decode for Price {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match f64::decode(node, context)? {
            price if price < 0.0 => context.wrong(node, "a price is not negative", Some("write what an hour costs")),
            _ => Some(Self),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "type": "number", "minimum": 0 }, { "$ref": "#/$defs/placeholder" }] })
    }
}

/// EC2 knows 1 and 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadsPerCore(pub u32);

impl Decode for ThreadsPerCore {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match NonZeroU32::decode(node, context)?.get() {
            threads @ (1 | 2) => Some(Self(threads)),
            threads => context.wrong(node, format!("a core of EC2 has no {threads} threads"), Some("write 1 or 2")),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "enum": [1, 2] }, { "$ref": "#/$defs/placeholder" }] })
    }
}

/// GiB; `None`: by the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VolumeSize(pub Option<u32>);

impl Decode for VolumeSize {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        context.kind(node)?;
        match node.text() {
            Some("auto") => Some(Self(None)),
            Some(_) if node.what() != "a number" => {
                context.expected(node, "a whole number of GiB, or `auto`", Some("write `size: 100` for 100 GiB"))
            }
            Some(_) | None => NonZeroU32::decode(node, context).map(|size| Self(Some(size.get()))),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "const": "auto" }, { "type": "integer", "minimum": 1 }, { "$ref": "#/$defs/placeholder" }] })
    }
}

/// Folders in which a running system has its files: disks over them would hide these.
const OF_THE_SYSTEM: &[&str] = &[
    "bin",
    "boot",
    "dev",
    "etc",
    "lib",
    "lib64",
    "proc",
    "root",
    "run",
    "sbin",
    "sys",
    "usr",
    "usr/bin",
    "usr/lib",
    "usr/lib64",
    "usr/sbin",
    "var",
    "var/lib",
    "var/lib/muster",
];

fn is_folder_for_disks(text: &str) -> bool {
    let Some(below) = text.strip_prefix('/').filter(|_| is_plain_path(text)) else { return false };
    !OF_THE_SYSTEM.contains(&below) && below.split('/').all(|part| !part.is_empty() && part != ".")
}

/// Tags of a site: what EC2 takes, and not what Muster sets itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tags(pub Vec<(String, String)>);

/// EC2 takes 50; the others are Muster's.
const MOST_TAGS: usize = 40;

impl Decode for Tags {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let Kind::Map(entries) = context.kind(node)? else { return context.expected(node, "a mapping of texts", None) };
        if entries.len() > MOST_TAGS {
            let what = format!("{} tags: a site may set {MOST_TAGS}", entries.len());
            context.wrong::<()>(node, what, Some("EC2 takes 50, and Muster needs some of them"));
        }
        let mut tags = Vec::new();
        for (key, value) in entries {
            let Some(name) = key.text().filter(|_| !value.is_null()) else { continue };
            if name == "Name" || name.starts_with("aws:") || name == "rfm" || name.starts_with("rfm-") {
                let hint = "choose another name: by these Muster and AWS find what they have created";
                context.wrong::<()>(key, format!("the tag `{name}` is reserved"), Some(hint));
            } else if name.chars().count() > 128 {
                context.wrong::<()>(key, "the name of a tag has at most 128 characters", Some("shorten it"));
            }
            let Some(text) = String::decode(value, context) else { continue };
            if text.chars().count() > 256 {
                context.wrong::<()>(value, "the value of a tag has at most 256 characters", Some("shorten it"));
            }
            tags.push((name.to_owned(), text));
        }
        Some(Self(tags))
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "object", "additionalProperties": { "type": ["string", "number", "boolean", "null"] } },
            { "$ref": "#/$defs/placeholder" },
        ] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_mounted_over_no_folder_of_the_system() {
        for (folder, is_one) in [
            ("/scratch", true),
            ("/mnt/local", true),
            ("/var/scratch", true),
            ("scratch", false),
            ("/", false),
            ("//", false),
            ("/.", false),
            ("/var", false),
            ("/usr", false),
            ("/usr/bin", false),
            ("/var/lib/muster", false),
            ("/a/../etc", false),
        ] {
            assert_eq!(is_folder_for_disks(folder), is_one, "{folder}");
        }
    }
}
