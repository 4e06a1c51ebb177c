//! Putting `sourcesdir` into a stage folder: a copy of what its `.gitignore` files do not name, links in the place of what is
//! read only.
//!
//! A link within the folder is copied as what it leads to, as ReFrame does: the job may change its files, and none of the
//! source's. Times of change are kept, for `make` compares them. What was staged before is replaced, so that a launch can be
//! tried again.

use crate::places;
use ignore::WalkBuilder;
use muster_core::{
    glob::{GlobError, Globs},
    staging::Staging,
};
use muster_host::files;
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Staging is part of a launch, whose answer is awaited for a minute.
const LIMIT: Duration = Duration::from_secs(50);

/// Why a folder was not staged.
#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    /// It was there when the files were loaded, or its path was computed for this case.
    #[error("the folder {} is not there, which `sourcesdir` names", .0.display())]
    Missing(PathBuf),
    /// A file in it would be mistaken for one of Muster's.
    #[error("the folder {} cannot be staged: {why}", folder.display())]
    Unusable {
        /// The folder.
        folder: PathBuf,
        /// A fragment.
        why: String,
    },
    /// One of its globs is none.
    #[error("`readonly_files`")]
    Glob(#[from] GlobError),
    /// What nothing fits is misspelt, or was forgotten.
    #[error("`readonly_files`: nothing in {} fits `{glob}`", folder.display())]
    Unused {
        /// The folder.
        folder: PathBuf,
        /// The glob.
        glob: String,
    },
    /// A link that leads nowhere or round in circles, a folder that may not be read.
    #[error("read what is in {}", folder.display())]
    Walk {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        #[source]
        source: ignore::Error,
    },
    /// One entry.
    #[error("stage {} as {}", from.display(), to.display())]
    Copy {
        /// From here.
        from: PathBuf,
        /// To here.
        to: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// There is too much of it.
    #[error(
        "staging {} took more than {} s, which is the limit: name its large files under `readonly_files`, which are linked instead of copied",
        .0.display(),
        LIMIT.as_secs()
    )]
    Slow(PathBuf),
}

impl StagingError {
    /// Whether another attempt would end alike.
    pub(crate) fn is_lasting(&self) -> bool {
        !matches!(self, Self::Copy { .. })
    }
}

/// Whether there is a folder to be staged, or what is wrong with it, as a fragment.
///
/// # Errors
/// What is there cannot be staged.
pub fn look(folder: &Path) -> Result<bool, String> {
    match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error.to_string()),
        Ok(there) if !there.is_dir() => return Err("it is no folder".to_owned()),
        Ok(_) => {}
    }
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut ours = entries.flatten().map(|entry| entry.file_name()).filter(|name| places::is_ours(name));
    match ours.next() {
        Some(name) => Err(format!("it holds {}, which Muster itself writes into a stage folder", name.display())),
        None => Ok(true),
    }
}

/// Puts a copy of the folder into a stage folder.
pub(crate) fn stage(staging: &Staging, stage: &Path) -> Result<(), StagingError> {
    let Staging { folder, readonly_files } = staging;
    match look(folder) {
        Ok(true) => {}
        Ok(false) => return Err(StagingError::Missing(folder.clone())),
        Err(why) => return Err(StagingError::Unusable { folder: folder.clone(), why }),
    }
    let copying = Copying { folder, stage, begun: Instant::now(), linked: Globs::compile(readonly_files)? };
    let linked = copying.run()?;
    for glob in readonly_files {
        let fits = Globs::compile(&[glob])?;
        if !linked.iter().any(|path| fits.cover(path)) {
            return Err(StagingError::Unused { folder: folder.clone(), glob: glob.clone() });
        }
    }
    Ok(())
}

struct Copying<'a> {
    folder: &'a Path,
    stage: &'a Path,
    begun: Instant,
    linked: Globs,
}

impl Copying<'_> {
    /// Says what was linked.
    fn run(&self) -> Result<Vec<String>, StagingError> {
        let mut walk = WalkBuilder::new(self.folder);
        walk.standard_filters(false).git_ignore(true).require_git(false).follow_links(true);
        let (folder, globs) = (self.folder.to_owned(), self.linked.clone());
        // What is linked is linked as a whole.
        walk.filter_entry(move |entry| {
            let parent = entry.path().parent().and_then(|parent| parent.strip_prefix(&folder).ok());
            parent.is_none_or(|parent| !globs.cover(&parent.to_string_lossy()))
        });
        let mut linked = Vec::new();
        for entry in walk.build() {
            let entry = entry.map_err(|source| StagingError::Walk { folder: self.folder.to_owned(), source })?;
            let Ok(path) = entry.path().strip_prefix(self.folder) else { continue };
            if path.as_os_str().is_empty() {
                continue;
            }
            if self.begun.elapsed() > LIMIT {
                return Err(StagingError::Slow(self.folder.to_owned()));
            }
            let to = self.stage.join(path);
            let shown = path.to_string_lossy();
            let done = if self.linked.cover(&shown) {
                linked.push(shown.into_owned());
                link(entry.path(), &to)
            } else if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                make_folder(&to)
            } else {
                copy(entry.path(), &to)
            };
            done.map_err(|source| StagingError::Copy { from: entry.path().to_owned(), to, source })?;
        }
        Ok(linked)
    }
}

fn make_folder(to: &Path) -> io::Result<()> {
    match files::create_dir(to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && to.is_dir() => Ok(()),
        made => made,
    }
}

fn link(from: &Path, to: &Path) -> io::Result<()> {
    make_way(to)?;
    std::os::unix::fs::symlink(std::path::absolute(from)?, to)
}

/// With its permissions and its time of change.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let source = fs::metadata(from)?;
    if !source.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a file nor a folder"));
    }
    make_way(to)?;
    fs::copy(from, to)?;
    let times = fs::FileTimes::new().set_modified(source.modified()?);
    // Who may not write to the copy still owns it.
    fs::File::open(to)?.set_times(times)
}

/// Removes what an earlier attempt has put there.
fn make_way(to: &Path) -> io::Result<()> {
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    /// Two folders, `src` and `stage`.
    fn folders(files: &[(&str, &str)]) -> (TempDir, Staging, PathBuf) {
        let folder = TempDir::new().unwrap();
        let (src, stage) = (folder.path().join("src"), folder.path().join("stage"));
        for path in [&src, &stage] {
            fs::create_dir(path).unwrap();
        }
        for (path, text) in files {
            let path = src.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        (folder, Staging { folder: src, readonly_files: Vec::new() }, stage)
    }

    /// All paths below a folder; a link with where it leads.
    fn tree(folder: &Path) -> Vec<String> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                paths.extend(tree(&entry.path()).into_iter().map(|path| format!("{name}/{path}")));
                paths.push(format!("{name}/"));
            } else {
                paths.push(if kind.is_symlink() { format!("{name} ->") } else { name });
            }
        }
        paths.sort();
        paths
    }

    fn says(staged: Result<(), StagingError>, folder: &TempDir) -> String {
        muster_core::error::chain(&staged.unwrap_err()).replace(&folder.path().display().to_string(), "")
    }

    #[test]
    fn a_folder_is_copied_with_permissions_and_times_and_staged_again_over_itself() {
        let (_folder, staging, stage) = folders(&[("Makefile", "all:"), ("bin/run.sh", "true"), ("empty/.keep", "")]);
        let script = staging.folder.join("bin/run.sh");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o555)).unwrap();
        let old = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        fs::File::open(&script).unwrap().set_times(fs::FileTimes::new().set_modified(old)).unwrap();
        for _ in 0..2 {
            super::stage(&staging, &stage).unwrap();
            assert_eq!(tree(&stage), ["Makefile", "bin/", "bin/run.sh", "empty/", "empty/.keep"]);
            let copy = fs::metadata(stage.join("bin/run.sh")).unwrap();
            assert_eq!((copy.permissions().mode() & 0o777, copy.modified().unwrap()), (0o555, old));
        }
        fs::write(stage.join("Makefile"), "changed").unwrap();
        assert_eq!(fs::read_to_string(staging.folder.join("Makefile")).unwrap(), "all:");
    }

    #[test]
    fn what_gitignore_names_is_left_out_and_only_by_the_folders_own() {
        let files = [
            (".gitignore", "*.o\n/build/\n"),
            ("a.c", ""),
            ("a.o", ""),
            ("build/x", ""),
            ("sub/.gitignore", "!b.o"),
            ("sub/b.o", ""),
        ];
        let (folder, staging, stage) = folders(&files);
        fs::write(folder.path().join(".gitignore"), "a.c\n").unwrap();
        super::stage(&staging, &stage).unwrap();
        assert_eq!(tree(&stage), [".gitignore", "a.c", "sub/", "sub/.gitignore", "sub/b.o"]);
    }

    #[test]
    fn what_is_read_only_is_linked_as_a_whole() {
        let (_folder, mut staging, stage) =
            folders(&[("data/big.bin", "x"), ("mesh/a", ""), ("mesh/deep/b", ""), ("run.sh", "")]);
        staging.readonly_files = vec!["data/*.bin".into(), "mesh".into()];
        super::stage(&staging, &stage).unwrap();
        assert_eq!(tree(&stage), ["data/", "data/big.bin ->", "mesh ->", "run.sh"]);
        assert_eq!(fs::read_to_string(stage.join("data/big.bin")).unwrap(), "x");
        assert!(stage.join("mesh/deep/b").exists());
    }

    #[test]
    fn a_link_is_copied_as_what_it_leads_to() {
        let (folder, staging, stage) = folders(&[("real/a", "inside")]);
        fs::write(folder.path().join("outside"), "outside").unwrap();
        symlink("../outside", staging.folder.join("file")).unwrap();
        symlink("real", staging.folder.join("folder")).unwrap();
        super::stage(&staging, &stage).unwrap();
        assert_eq!(tree(&stage), ["file", "folder/", "folder/a", "real/", "real/a"]);
        assert_eq!(fs::read_to_string(stage.join("file")).unwrap(), "outside");
    }

    #[test]
    fn what_cannot_be_staged_says_why() {
        let mut all = Vec::new();
        let (folder, staging, stage) = folders(&[("a", "")]);
        symlink("nowhere", staging.folder.join("broken")).unwrap();
        all.push(says(super::stage(&staging, &stage), &folder));
        let (folder, staging, stage) = folders(&[("a/b", "")]);
        symlink("..", staging.folder.join("a/up")).unwrap();
        all.push(says(super::stage(&staging, &stage), &folder));
        let (folder, mut staging, stage) = folders(&[("a", "")]);
        staging.readonly_files = vec!["a".into(), "*.bin".into()];
        all.push(says(super::stage(&staging, &stage), &folder));
        let (folder, staging, stage) = folders(&[("rfm_job.out", "")]);
        all.push(says(super::stage(&staging, &stage), &folder));
        fs::remove_dir_all(&staging.folder).unwrap();
        all.push(says(super::stage(&staging, &stage), &folder));
        fs::write(&staging.folder, "").unwrap();
        all.push(says(super::stage(&staging, &stage), &folder));
        insta::assert_snapshot!(all.join("\n"), @"
        read what is in /src: /src/broken: IO error for operation on /src/broken: No such file or directory (os error 2)
        read what is in /src: File system loop found: /src/a/up points to an ancestor /src
        `readonly_files`: nothing in /src fits `*.bin`
        the folder /src cannot be staged: it holds rfm_job.out, which Muster itself writes into a stage folder
        the folder /src is not there, which `sourcesdir` names
        the folder /src cannot be staged: it is no folder
        ");
    }
}
