//! Data sources of a descriptor as data sets of a check. What a check cannot name is listed, and not written.

use super::descriptor::{Descriptor, Said};
use crate::{Level, value::Value};

const SCHEMES: [&str; 2] = ["http://", "https://"];

/// A data source as it is written.
pub(super) struct Source {
    src: Said<String>,
    dest: Said<String>,
    sum: Option<Said<String>>,
}

/// A data source as a check names it.
struct Named {
    src: String,
    md5: Option<String>,
}

/// Data sets, for instances.
pub(super) fn data(descriptor: &mut Descriptor<'_>) -> Vec<Value> {
    let mut sets = Vec::new();
    for Source { src, dest, sum } in sources(descriptor) {
        let Some(Named { src, md5 }) = named(descriptor, src, sum) else { continue };
        let Some(dest) = destination(descriptor, dest) else { continue };
        let mut set = vec![("src", src), ("dest", dest)];
        set.extend(md5.map(|sum| ("md5", sum)));
        sets.push(Value::Dict(set.into_iter().map(|(key, value)| (Value::Str(key.to_owned()), Value::Str(value))).collect()));
    }
    sets
}

/// What the descriptor names as its data.
pub(super) fn sources(descriptor: &mut Descriptor<'_>) -> Vec<Source> {
    let mut sets = Vec::new();
    for at in 0.. {
        let path = format!("data.sources.{at}");
        if !descriptor.has(&format!("{path}.")) {
            return sets;
        }
        let line = descriptor.line_of(&path);
        let src = descriptor.text(&format!("{path}.src")).or_else(|| descriptor.text(&format!("{path}.uri")));
        let dest = descriptor.text(&format!("{path}.path"));
        let sum = descriptor.text(&format!("{path}.md5"));
        let (Some(src), Some(dest)) = (src, dest) else {
            descriptor.say(line, Level::Defect, "a data source needs `src` and `path`".to_owned(), None);
            continue;
        };
        sets.push(Source { src, dest, sum });
    }
    sets
}

/// The source of a data set, with its digest.
fn named(descriptor: &mut Descriptor<'_>, src: Said<String>, sum: Option<Said<String>>) -> Option<Named> {
    if SCHEMES.iter().any(|scheme| src.value.starts_with(scheme)) {
        return of_web(descriptor, src, sum);
    }
    let src = of_s3(descriptor, src, sum.is_some())?;
    let Some(Said { value, line }) = sum else { return Some(Named { src, md5: None }) };
    let why = if src.ends_with('/') {
        "a folder has no digest".to_owned()
    } else if is_md5(&value) {
        return Some(Named { src, md5: Some(value) });
    } else {
        format!("`{value}` is not a digest of MD5, which has 32 hex digits")
    };
    descriptor.say(line, Level::Dropped, why, Some("each file is verified by its size alone"));
    Some(Named { src, md5: None })
}

/// A file of the web, which is verified before it is used.
fn of_web(descriptor: &mut Descriptor<'_>, Said { value, line }: Said<String>, sum: Option<Said<String>>) -> Option<Named> {
    const WITH_DIGEST: &str = "add it to `data` with `sha256`, as `sha256sum FILE` prints it";
    let host = value.split('/').nth(2).unwrap_or_default();
    let mut refuse = |line, why: String, instead| {
        descriptor.say(line, Level::Refused, why, Some(instead));
        None
    };
    if host.is_empty() || value.contains("${{") || value.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return refuse(line, format!("`{value}` is not an address"), WITH_DIGEST);
    }
    if host.contains('@') {
        let why = "the address has a password, which is in the database and in what is printed".to_owned();
        return refuse(line, why, "copy the file to S3, and add it to `data`");
    }
    match sum {
        None => {
            let why = "a file of the web is verified before it is used, and the descriptor has no digest of it".to_owned();
            refuse(line, why, WITH_DIGEST)
        }
        Some(Said { value, line }) if !is_md5(&value) => {
            let why = format!("`{value}` is not a digest of MD5, and a file of the web is verified before it is used");
            refuse(line, why, WITH_DIGEST)
        }
        Some(Said { value: sum, .. }) => Some(Named { src: value, md5: Some(sum) }),
    }
}

/// Objects of S3 as a check names them. Anubis takes what has no digest and no ending for a folder.
fn of_s3(descriptor: &mut Descriptor<'_>, Said { value, line }: Said<String>, has_digest: bool) -> Option<String> {
    let mut refuse = |why: String, instead| {
        descriptor.say(line, Level::Refused, why, Some(instead));
        None
    };
    let Some(place) = value.strip_prefix("s3://") else {
        let why = format!("`{value}` is neither in S3 nor an address of the web");
        return refuse(why, "copy the files to S3, and add them to `data` as `s3://BUCKET/PREFIX/`");
    };
    let (bucket, key) = place.split_once('/').unwrap_or((place, ""));
    if !is_bucket(bucket) {
        return refuse(format!("`{value}` does not name a bucket"), "add them to `data` as `s3://BUCKET/PREFIX/`");
    }
    if !is_plain(key) && !key.is_empty() {
        let why = format!("`{value}` has letters that no key of a data set has");
        return refuse(why, "copy it to a key of letters, digits and `/_.-=+@:,`, and add it to `data`");
    }
    if key.is_empty() && has_digest {
        let why = format!("`{value}` is a bucket, and the descriptor has the digest of one file");
        return refuse(why, "add the file to `data` as `s3://BUCKET/KEY` with its `md5`");
    }
    let is_file = has_digest || key.ends_with('/') || key.rsplit('/').next().is_some_and(|last| last.contains('.'));
    if is_file {
        return Some(value);
    }
    let folder = format!("s3://{bucket}/{key}{}", if key.is_empty() { "" } else { "/" });
    let why = format!("`{value}` is taken for a folder: all that is below it is fetched");
    let instead = (!key.is_empty()).then_some("leave out the `/` at its end if it is one object");
    descriptor.say(line, Level::Note, why, instead);
    Some(folder)
}

/// Where a data set goes.
fn destination(descriptor: &mut Descriptor<'_>, Said { value, line }: Said<String>) -> Option<String> {
    let dest = match value.strip_prefix("~/") {
        Some(below) => {
            descriptor.say(line, Level::Note, "the script is root, whose home is /root".to_owned(), None);
            format!("/root/{below}")
        }
        None => value,
    };
    let is_place = is_plain(&dest) && dest != "/" && !dest.split('/').any(|part| part == "..");
    if !is_place {
        let why = format!("`{dest}` is not a path for a data set");
        descriptor.say(line, Level::Refused, why, Some("add it to `data` with a path of letters, digits and `/_.-=+@:,`"));
    }
    is_place.then_some(dest)
}

fn is_md5(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_bucket(name: &str) -> bool {
    let is_edge = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = name.as_bytes();
    (3..=63).contains(&bytes.len())
        && bytes.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
        && is_edge(bytes.first())
        && is_edge(bytes.last())
}

fn is_plain(path: &str) -> bool {
    !path.is_empty() && path.chars().all(|c| c.is_ascii_alphanumeric() || "/_.-=+@:,".contains(c))
}
