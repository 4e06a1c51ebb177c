//! What an agent finds in the bucket: the bundle with the script, and the list of all addresses that it needs.

use flate2::{Compression, GzBuilder};
use muster_core::job::stage_folder::SCRIPT_FILE;
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

/// The script and the variables that are taken over from the harness, as a compressed archive. The same for the same job.
pub(crate) fn bundle(script: &str, env: &[(String, String)]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzBuilder::new().write(Vec::new(), Compression::best()));
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
    let mut compressed = archive.into_inner()?;
    compressed.flush()?;
    compressed.finish()
}

/// One line for each object: for which rank, what is done with it, its name and its address. `sign` makes the address of a key below the
/// job's prefix.
pub(crate) fn list(instances: u32, bundle: &[u8], mut sign: impl FnMut(Method, &str) -> String) -> String {
    let mut list = format!("* SHA bundle {}\n", hex(&Sha256::digest(bundle)));
    for name in ["bundle", "go", "stop"] {
        let _ = writeln!(list, "* GET {name} {}", sign(Method::Get, name));
    }
    for rank in 0..instances {
        let segments = (0..SEGMENTS).map(|number| format!("log.{number:03}"));
        for name in std::iter::once("status".to_owned()).chain(segments) {
            let _ = writeln!(list, "{rank} PUT {name} {}", sign(Method::Put, &format!("{rank}/{name}")));
        }
    }
    list
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
