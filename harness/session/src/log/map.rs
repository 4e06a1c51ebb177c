//! A finished file as bytes: small ones are read, large ones mapped, so that a log of gigabytes costs no memory.

use memmap2::Mmap;
use muster_core::job::stdout::Text;
use std::{
    fs::File,
    io::{self, Read, Seek},
    sync::Arc,
};

/// Below this, reading costs less than setting up a map.
const SMALL: u64 = 64 * 1024;

/// The whole of a file that nobody writes any more.
pub(crate) fn text_of(mut file: File) -> io::Result<Text> {
    let len = file.metadata()?.len();
    if len < SMALL {
        let mut text = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
        // After a newline was added, the cursor is at the end.
        file.rewind()?;
        file.read_to_end(&mut text)?;
        return Ok(Arc::new(text));
    }
    Ok(Arc::new(map(&file)?))
}

#[allow(unsafe_code, reason = "the only way to map a file; see SAFETY")]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: a map is sound as long as nobody changes the file under it. Callers pass a log of a job that is over: its
    // scheduler said that nobody writes it any more, or the spool closed it. It lies in a stage folder of this session,
    // which no other session takes while this one lives.
    unsafe { Mmap::map(file) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_that_was_just_written_to_is_read_from_its_beginning() {
        for len in [10, 100 * 1024] {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&vec![b'x'; len]).expect("written");
            assert_eq!((*text_of(file).expect("read")).as_ref().len(), len);
        }
    }
}
