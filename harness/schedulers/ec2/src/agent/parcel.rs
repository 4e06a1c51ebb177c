//! The objects for an agent in the bucket: the bundle with the script, and the list of all addresses that it needs.

use flate2::{Compression, GzBuilder};
use muster_core::job::stage_folder::SCRIPT_FILE;
use muster_stage::SentFile;
use muster_text::shell::quote;
use sha2::{Digest, Sha256};
use std::{
    fmt::Write as _,
    io::{self, Write as _},
};

/// The most segments that a log has.
pub(crate) const SEGMENTS: u32 = 64;

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Put,
}

/// An object that agents read or write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its instance; `None`: all of them.
    pub rank: Option<u32>,
    pub method: Method,
    pub name: String,
}

impl Entry {
    /// Below the prefix of the job.
    pub(crate) fn key(&self) -> String {
        let Self { rank, name, .. } = self;
        rank.map_or_else(|| name.clone(), |rank| format!("{rank}/{name}"))
    }
}

/// The script, the variables that are taken over from the harness, and what was staged, as a compressed archive. The same for the same
/// job.
pub(crate) fn bundle(script: &str, env: &[(String, String)], files: &[SentFile]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzBuilder::new().write(Vec::new(), Compression::default()));
    let mut exports = String::new();
    for (name, value) in env {
        let _ = writeln!(exports, "export {name}={}", quote(value));
    }
    for (name, text) in [(SCRIPT_FILE, script), ("rfm_env.sh", exports.as_str())] {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        archive.append_data(&mut header, name, text.as_bytes())?;
    }
    for SentFile { path, mode, data } in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        header.set_mode(*mode);
        archive.append_data(&mut header, path, &data[..])?;
    }
    let mut compressed = archive.into_inner()?;
    compressed.flush()?;
    compressed.finish()
}

/// The list of all addresses, which is written last before a launch.
pub(crate) const LIST: &str = "boot";
/// The script, the files that are sent with it, and the values of `pass_env`.
pub(crate) const BUNDLE: &str = "bundle";

/// What the script leaves, as a compressed archive.
pub(crate) const OUTPUTS: &str = "outputs";

/// Everything of a job in the bucket but the list itself. `keeps_files`: what the script leaves is sent.
pub(crate) fn entries(instances: u32, keeps_files: bool) -> Vec<Entry> {
    let for_all = [BUNDLE, "go", "stop"].map(|name| Entry { rank: None, method: Method::Get, name: name.to_owned() });
    let of_rank = |rank| {
        let segments = (0..SEGMENTS).map(|number| format!("log.{number:03}"));
        std::iter::once("status".to_owned()).chain(segments).map(move |name| Entry {
            rank: Some(rank),
            method: Method::Put,
            name,
        })
    };
    let outputs = keeps_files.then(|| Entry { rank: Some(0), method: Method::Put, name: OUTPUTS.to_owned() });
    for_all.into_iter().chain(outputs).chain((0..instances).flat_map(of_rank)).collect()
}

/// One line for each object: for which rank, what is done with it, its name and its address. `digest`: that of the bundle. The addresses
/// are of the same order.
pub(crate) fn list(digest: &str, entries: &[Entry], addresses: &[String]) -> String {
    let mut list = format!("* SHA bundle {digest}\n");
    for (Entry { rank, method, name }, address) in entries.iter().zip(addresses) {
        let rank = rank.map_or_else(|| "*".to_owned(), |rank| rank.to_string());
        let method = match method {
            Method::Get => "GET",
            Method::Put => "PUT",
        };
        let _ = writeln!(list, "{rank} {method} {name} {address}");
    }
    list
}

/// By what an agent verifies a bundle.
pub(crate) fn digest(bundle: &[u8]) -> String {
    Sha256::digest(bundle).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
