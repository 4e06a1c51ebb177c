//! Large files: from the web or a bucket to a file here, and from a file here to a bucket, piece by piece.

use super::{http::Http, s3, wire::Wire};
use crate::cloud::{CloudError, Downloaded};
use md5::{Digest as _, Md5};
use sha2::{Digest, Sha256};
use std::{fmt::Write as _, path::Path, time::Duration};
use tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

/// A piece of an object: S3 takes 10,000 of them, none but the last under 5 MiB.
const PIECE: usize = 16 << 20;

/// A server that sends nothing for so long is given up.
const SILENCE: Duration = Duration::from_mins(1);

fn unreached(what: &str) -> impl Fn(String) -> CloudError {
    move |why| CloudError::Unreached { service: "HTTP", action: what.to_owned(), why }
}

/// What an address gives, in a new file. `shown`: the address as it may be printed.
pub(super) async fn download(http: &Http, address: &str, shown: &str, to: &Path) -> Result<Downloaded, CloudError> {
    let fail = unreached(shown);
    let file_error = |error: std::io::Error| fail(format!("write {}: {error}", to.display()));
    let mut answer = timeout(SILENCE, http.open(address)).await.map_err(|_| fail("no answer".to_owned()))?.map_err(&fail)?;
    if !answer.status().is_success() {
        let status = answer.status().as_u16();
        let (action, message) = (shown.to_owned(), answer.status().canonical_reason().unwrap_or_default().to_owned());
        let code = status.to_string();
        return Err(CloudError::Refused { service: "HTTP", action, code, message, status, origin: String::new() });
    }
    let whole = answer.content_length();
    let mut file = File::create(to).await.map_err(file_error)?;
    let (mut size, mut sha256, mut md5) = (0u64, Sha256::new(), Md5::new());
    loop {
        let piece = timeout(SILENCE, answer.chunk()).await.map_err(|_| fail(format!("silent after {size} bytes")))?;
        let Some(piece) = piece.map_err(|error| fail(error.without_url().to_string()))? else { break };
        sha256.update(&piece);
        md5.update(&piece);
        size += piece.len() as u64;
        file.write_all(&piece).await.map_err(file_error)?;
    }
    file.flush().await.map_err(file_error)?;
    if let Some(whole) = whole.filter(|whole| *whole != size) {
        return Err(fail(format!("{size} of {whole} bytes arrived")));
    }
    Ok(Downloaded { size, sha256: hex(&sha256.finalize()), md5: hex(&md5.finalize()) })
}

/// A file as an object.
pub(super) async fn upload(wire: &Wire, bucket: &str, key: &str, from: &Path) -> Result<(), CloudError> {
    let fail = |error: std::io::Error| unreached("a file here")(format!("read {}: {error}", from.display()));
    let mut file = File::open(from).await.map_err(fail)?;
    let size = file.metadata().await.map_err(fail)?.len();
    if size <= PIECE as u64 {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).await.map_err(fail)?;
        return s3::put(wire, bucket, key, bytes).await;
    }
    let upload = s3::begin(wire, bucket, key).await?;
    let mut tags = Vec::new();
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        (&mut file).take(PIECE as u64).read_to_end(&mut piece).await.map_err(fail)?;
        if piece.is_empty() {
            return s3::complete(wire, bucket, key, &upload, &tags).await;
        }
        tags.push(s3::piece(wire, bucket, key, (&upload, tags.len() + 1), piece).await?);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
