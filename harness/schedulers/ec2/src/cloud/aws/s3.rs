//! Objects in buckets.

use super::wire::{Ask, Service, Wire, query};
use crate::cloud::{CloudError, Method, Object, PIECE, Piece, action, piece_of};
use ::http::{Method as Verb, StatusCode};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use muster_text::time::Timestamp;
use quick_xml::escape::escape;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The most that S3 deletes in one call.
const MOST_KEYS: usize = 1000;

#[derive(Debug, Deserialize)]
struct Listing {
    #[serde(rename = "Contents", default)]
    objects: Vec<Listed>,
    #[serde(rename = "NextContinuationToken", default)]
    next: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    key: String,
    size: u64,
    #[serde(rename = "ETag")]
    etag: String,
    last_modified: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Deleted {
    #[serde(rename = "Error", default)]
    errors: Vec<NotDeleted>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NotDeleted {
    key: String,
    code: String,
    #[serde(default)]
    message: String,
}

pub(super) async fn put(wire: &Wire, bucket: &str, key: &str, bytes: Vec<u8>) -> Result<(), CloudError> {
    let headers = vec![("content-type", "application/octet-stream".to_owned())];
    let ask = ask(action::PUT_OBJECT, Verb::PUT, wire.object(bucket, key), headers, bytes.into());
    wire.call(ask, |status| status.is_success()).await.map(drop)
}

pub(super) async fn get(wire: &Wire, bucket: &str, key: &str, from: u64) -> Result<Option<Piece>, CloudError> {
    let range = ("range", format!("bytes={from}-{}", from + PIECE - 1));
    let ask = ask(action::GET_OBJECT, Verb::GET, wire.object(bucket, key), vec![range], Bytes::new());
    let answer = match wire.call(ask, |status| status.is_success() || status == StatusCode::RANGE_NOT_SATISFIABLE).await {
        Ok(answer) => answer,
        Err(error) if error.code() == Some("NoSuchKey") => return Ok(None),
        Err(error) => return Err(error),
    };
    let bytes = match answer.status {
        StatusCode::RANGE_NOT_SATISFIABLE => Vec::new(),
        StatusCode::PARTIAL_CONTENT => answer.body.to_vec(),
        // A server that knows no ranges sends all of it.
        _ => piece_of(&answer.body, from),
    };
    let modified = jiff::fmt::rfc2822::parse(&answer.modified).ok().map(|at| Timestamp(at.timestamp().as_microsecond()));
    Ok(Some(Piece { bytes, etag: plain_etag(&answer.etag), modified }))
}

/// Listings and answers put it in quotes.
fn plain_etag(etag: &str) -> String {
    etag.trim_matches('"').to_owned()
}

pub(super) async fn objects(wire: &Wire, bucket: &str, prefix: &str) -> Result<Vec<Object>, CloudError> {
    let (mut objects, mut next) = (Vec::new(), None::<String>);
    loop {
        let mut pairs = vec![("list-type", "2"), ("prefix", prefix)];
        pairs.extend(next.as_deref().map(|token| ("continuation-token", token)));
        let address = format!("{}{}", wire.object(bucket, ""), query(&pairs));
        let ask = ask(action::LIST_OBJECTS, Verb::GET, address, Vec::new(), Bytes::new());
        let answer = wire.call(ask, |status| status.is_success()).await?;
        let listing: Listing = super::xml("S3", action::LIST_OBJECTS, &answer.body)?;
        let at = |text: String| Some(Timestamp(text.parse::<jiff::Timestamp>().ok()?.as_microsecond()));
        let object = |Listed { key, size, etag, last_modified }| Object {
            key,
            size,
            etag: plain_etag(&etag),
            modified: last_modified.and_then(at),
        };
        objects.extend(listing.objects.into_iter().map(object));
        next = listing.next.filter(|token| !token.is_empty());
        if next.is_none() {
            return Ok(objects);
        }
    }
}

pub(super) async fn delete(wire: &Wire, bucket: &str, keys: &[String]) -> Result<(), CloudError> {
    for some in keys.chunks(MOST_KEYS) {
        let mut body = r#"<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet>"#.to_owned();
        for key in some {
            let _ = write!(body, "<Object><Key>{}</Key></Object>", escape(key.as_str()));
        }
        body.push_str("</Delete>");
        // S3 deletes nothing without a checksum of the list.
        let checksum = BASE64_STANDARD.encode(Sha256::digest(body.as_bytes()));
        let headers = vec![("content-type", "application/xml".to_owned()), ("x-amz-checksum-sha256", checksum)];
        let address = format!("{}?delete=", wire.object(bucket, ""));
        let ask = ask(action::DELETE_OBJECTS, Verb::POST, address, headers, body.into());
        let answer = wire.call(ask, |status| status.is_success()).await?;
        let deleted: Deleted = super::xml("S3", action::DELETE_OBJECTS, &answer.body)?;
        if let Some(NotDeleted { key, code, message }) = deleted.errors.into_iter().next() {
            // The answer is fine, and this part of it is not: a failure of S3's passes.
            let status = if matches!(&*code, "InternalError" | "ServiceUnavailable") { 500 } else { answer.status.as_u16() };
            let (service, action) = ("S3", action::DELETE_OBJECTS.to_owned());
            let message = format!("{key}: {message}");
            let origin = format!("at {}", wire.host_of(&wire.object(bucket, "")));
            return Err(CloudError::Refused { service, action, code, message, status, origin });
        }
    }
    Ok(())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Begun {
    upload_id: String,
}

/// Begins an object that is sent in pieces, and returns what names it. One that is not completed costs its space until the lifecycle
/// rule of the bucket removes it.
pub(super) async fn begin(wire: &Wire, bucket: &str, key: &str) -> Result<String, CloudError> {
    let headers = vec![("content-type", "application/octet-stream".to_owned())];
    let address = format!("{}?uploads=", wire.object(bucket, key));
    let ask = ask(action::PUT_OBJECT, Verb::POST, address, headers, Bytes::new());
    let answer = wire.call(ask, |status| status.is_success()).await?;
    super::xml::<Begun>("S3", action::PUT_OBJECT, &answer.body).map(|begun| begun.upload_id)
}

/// Sends a piece, and returns its tag.
pub(super) async fn piece(
    wire: &Wire,
    bucket: &str,
    key: &str,
    (upload, number): (&str, usize),
    bytes: Vec<u8>,
) -> Result<String, CloudError> {
    let number = number.to_string();
    let address = format!("{}{}", wire.object(bucket, key), query(&[("partNumber", &number), ("uploadId", upload)]));
    let ask = ask(action::PUT_OBJECT, Verb::PUT, address, Vec::new(), bytes.into());
    let answer = wire.call(ask, |status| status.is_success()).await?;
    Ok(answer.etag)
}

/// The root is that of an error where it has a code.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Completed {
    code: Option<String>,
    #[serde(default)]
    message: String,
}

/// Makes the pieces an object.
pub(super) async fn complete(wire: &Wire, bucket: &str, key: &str, upload: &str, tags: &[String]) -> Result<(), CloudError> {
    let mut body = r#"<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">"#.to_owned();
    for (at, tag) in tags.iter().enumerate() {
        let _ = write!(body, "<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", at + 1, escape(tag.as_str()));
    }
    body.push_str("</CompleteMultipartUpload>");
    let address = format!("{}{}", wire.object(bucket, key), query(&[("uploadId", upload)]));
    let headers = vec![("content-type", "application/xml".to_owned())];
    let ask = ask(action::PUT_OBJECT, Verb::POST, address, headers, body.into());
    let answer = wire.call(ask, |status| status.is_success()).await?;
    // S3 answers before it is done, and may say in the body that it has failed.
    let completed: Completed = super::xml("S3", action::PUT_OBJECT, &answer.body)?;
    let Some(code) = completed.code else { return Ok(()) };
    let (service, action, status) = ("S3", action::PUT_OBJECT.to_owned(), answer.status.as_u16());
    let origin = format!("at {}", wire.host_of(&wire.object(bucket, key)));
    Err(CloudError::Refused { service, action, code, message: completed.message, status, origin })
}

pub(super) async fn presign(
    wire: &Wire,
    bucket: &str,
    wanted: &[(Method, String)],
    until: Timestamp,
) -> Result<Vec<String>, CloudError> {
    let mut addresses = Vec::with_capacity(wanted.len());
    for (method, key) in wanted {
        let verb = match method {
            Method::Get => Verb::GET,
            Method::Put => Verb::PUT,
        };
        addresses.push(wire.presigned(verb, wire.object(bucket, key), until).await?);
    }
    Ok(addresses)
}

fn ask(action: &'static str, method: Verb, address: String, headers: Vec<(&'static str, String)>, body: Bytes) -> Ask {
    Ask { service: Service::S3, action, method, address, headers, body, is_repeated: true }
}
