//! `data` of `ec2_config`: what instances fetch before their script begins, and by what it is verified.

use super::{Bucket, values};
use muster_text::{
    Value,
    decode::{Context, Decode, Spanned, object},
    diagnostic::Diagnostic,
    keys,
    yaml::Node,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

keys! {
    /// An entry of `ec2_config.data`
    pub(crate) struct Entry("a data set") {
        /// Where it is: `s3://BUCKET/KEY`, `s3://BUCKET/PREFIX/` with all that is below it, or `https://..`, which is copied once
        /// into the bucket of the site. S3 has to be in the region of the instances.
        @required src: Spanned<Source>,
        /// Where the instances have it: a path, relative to the folder of the script or absolute. With a `/` at its end it is a
        /// folder.
        @required dest: Spanned<Destination>,
        /// The digest of the file: 64 hex digits. A source of `https` needs one.
        sha256: Spanned<Sha256>,
        /// The same as MD5: 32 hex digits.
        md5: Spanned<Md5>,
        /// Whether the file is an archive of `tar`, compressed or not, that is unpacked into `dest`. Default: false.
        unpack: bool,
    }
    decode Entry::checked;
}

/// A data set, as it is planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DataSet {
    pub source: Source,
    pub dest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    #[serde(default)]
    pub unpack: bool,
}

/// Where a data set is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    /// An object; all that is below it, if it ends with a slash.
    S3 {
        bucket: String,
        key: String,
    },
    Http(String),
}

/// By what a file is verified.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Digest {
    Sha256(String),
    Md5(String),
}

/// A path without anything that has a meaning for a shell or in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination(pub String);

impl Source {
    pub(crate) fn is_folder(&self) -> bool {
        matches!(self, Self::S3 { key, .. } if key.is_empty() || key.ends_with('/'))
    }
}

/// As it is written, for people: what is behind a `?` may be a key to it.
impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::S3 { bucket, key } => write!(f, "s3://{bucket}/{key}"),
            Self::Http(address) => f.write_str(address.split('?').next().unwrap_or_default()),
        }
    }
}

/// As an agent takes it: `sha256:..`.
impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sha256(digest) => write!(f, "sha256:{digest}"),
            Self::Md5(digest) => write!(f, "md5:{digest}"),
        }
    }
}

impl From<Entry> for Option<DataSet> {
    /// `None`: a key that is required is missing, which was reported.
    fn from(entry: Entry) -> Self {
        let Entry { src, dest, sha256, md5, unpack, .. } = entry;
        let digest = sha256.map(|sum| Digest::Sha256(sum.value.0)).or_else(|| md5.map(|sum| Digest::Md5(sum.value.0)));
        Some(DataSet { source: src?.value, dest: dest?.value.0, digest, unpack: unpack.unwrap_or_default() })
    }
}

impl Entry {
    fn checked(node: &Node, context: &mut Context) -> Option<Self> {
        let entry: Self = object(node, context)?;
        let wrong = |span, what: &str, hint: &str| Diagnostic::error(span, what).hint(hint);
        let Some(src) = &entry.src else { return Some(entry) };
        let digest = entry.sha256.as_ref().map(|sum| sum.span).or_else(|| entry.md5.as_ref().map(|sum| sum.span));
        let is_written = ["sha256", "md5"].iter().any(|key| node.get(key).is_some());
        if let (Source::Http(_), false) = (&src.value, is_written) {
            let hint = "write `sha256`, as `sha256sum FILE` prints it: what comes from elsewhere is verified before it is used";
            context.push(wrong(src.span, "a data set of `https` needs its digest", hint));
        }
        if src.value.is_folder() {
            if let Some(span) = digest {
                context.push(wrong(span, "a folder has no digest", "leave it out, or name one object"));
            }
            if entry.unpack == Some(true) {
                context.push(wrong(src.span, "a folder cannot be unpacked", "leave `unpack` out, or name the archive"));
            }
        }
        Some(entry)
    }
}

impl Decode for Source {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        const HINT: &str = "write `s3://BUCKET/KEY`, `s3://BUCKET/PREFIX/` or `https://HOST/PATH`";
        let text = String::decode(node, context)?;
        if values::is_address(&text) && !text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            // The address is in the database and in what is printed.
            let has_password = text.split('/').nth(2).is_some_and(|host| host.contains('@'));
            let hint = "leave it out, and copy the file to S3 yourself";
            return if has_password {
                context.wrong(node, "an address with a password", Some(hint))
            } else {
                Some(Self::Http(text))
            };
        }
        let place = text.strip_prefix("s3://").and_then(|rest| rest.split_once('/'));
        let is_key = |key: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || "/_.-=+@:,".contains(c));
        match place.and_then(|(bucket, key)| Some((Bucket::parse(&format!("s3://{bucket}"))?, key))) {
            Some((bucket, key)) if is_key(key) => Some(Self::S3 { bucket: bucket.name, key: key.to_owned() }),
            _ => context.wrong(node, format!("`{text}` is not the place of a data set"), Some(HINT)),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "string", "pattern": r"^(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[A-Za-z0-9/_.=+@:,-]*|https?://\S+)$" },
            { "$ref": "#/$defs/placeholder" },
        ] })
    }
}

/// Whether a path, or the key of an object, can be written to a list with blanks, and to a shell.
pub(crate) fn is_plain_path(path: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "/_.-=+@:,".contains(c);
    !path.is_empty() && path.chars().all(is_letter) && !path.split('/').any(|part| part == "..")
}

impl Decode for Destination {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let text = String::decode(node, context)?;
        let hint = "use letters, digits and `/_.-=+@:,`, without `..`";
        let is = is_plain_path(&text) && text != "/";
        if is { Some(Self(text)) } else { context.wrong(node, format!("`{text}` is not a path for a data set"), Some(hint)) }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "type": "string", "pattern": "^[A-Za-z0-9/_.=+@:,-]+$" }, { "$ref": "#/$defs/placeholder" }] })
    }
}

/// Declares a digest of so many hex digits.
macro_rules! digests {
    ($($name:ident, $digits:literal, $pattern:literal, $what:literal;)*) => {$(
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) struct $name(pub String);

        impl Decode for $name {
            fn decode(node: &Node, context: &mut Context) -> Option<Self> {
                let text = String::decode(node, context)?.to_ascii_lowercase();
                let is = text.len() == $digits && text.bytes().all(|b| b.is_ascii_hexdigit());
                let hint = concat!("write its ", $digits, " hex digits");
                if is { Some(Self(text)) } else { context.wrong(node, format!("`{text}` is not {}", $what), Some(hint)) }
            }

            fn schema() -> Value {
                json!({ "anyOf": [{ "type": "string", "pattern": $pattern }, { "$ref": "#/$defs/placeholder" }] })
            }
        }
    )*};
}

digests! {
    Sha256, 64, "^[0-9a-fA-F]{64}$", "a digest of SHA-256";
    Md5, 32, "^[0-9a-fA-F]{32}$", "a digest of MD5";
}
