//! The files that a script leaves, from S3 into the stage folder: there a session finds what `keep_files` names.

use crate::{agent::parcel::OUTPUTS, cloud::Method, decide::seen::Outputs, failure, plan::Handle, poll::Region};
use flate2::read::GzDecoder;
use muster_core::{
    error::{Class, SchedulerError},
    job::{
        scheduler::{Ending, Exit, Job, JobStatus},
        stage_folder,
    },
};
use muster_stage::blocking;
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read},
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// How long an address works by which the harness itself fetches them.
const FETCHED_WITHIN: Duration = Duration::from_hours(1);

/// What is said of a job before its files are fetched: that its script has ended. `None`: that was said already, or no files are kept.
///
/// # Errors
/// Its handle cannot be read.
pub(crate) fn first_said(job: &Job, ending: &Ending, seen: Option<&JobStatus>) -> Result<Option<JobStatus>, SchedulerError> {
    let was_said = matches!(seen, Some(JobStatus::Running { has_ended: true, .. }));
    if was_said || Handle::of(job)?.keep_files.is_empty() {
        return Ok(None);
    }
    let what = Some("its files are fetched".to_owned());
    Ok(Some(JobStatus::Running { since: ending.started, nodes: ending.nodes.clone(), partly_ended: what, has_ended: true }))
}

/// Fetches what the script has left. Returns what is to be said of it: that some of it is missing.
///
/// # Errors
/// The script has passed and no file came back: a check that reads them would find nothing to judge.
pub(crate) async fn bring(region: &Arc<Region>, job: &Job, ending: &Ending) -> Result<Option<String>, SchedulerError> {
    let handle = Handle::of(job)?;
    if handle.keep_files.is_empty() {
        return Ok(None);
    }
    let has_passed = ending.exits.iter().all(|section| section.exit == Exit::Code(0));
    let missing = |why: &str| {
        if has_passed {
            Err(SchedulerError::plain(Class::Infra, format!("the files of `keep_files` did not come back: {why}")))
        } else {
            tracing::warn!(case = job.case, why, "the files of a case did not come back");
            Ok(None)
        }
    };
    match region.track(job)?.outputs() {
        Outputs::Sent => fetch(region, job, &handle).await,
        Outputs::Large => missing("they are more than 1 GiB"),
        Outputs::None | Outputs::Lost => missing("the instance could not send them"),
    }
}

async fn fetch(region: &Region, job: &Job, handle: &Handle) -> Result<Option<String>, SchedulerError> {
    let (bucket, key) = (&handle.bucket.name, format!("{}0/{OUTPUTS}", handle.prefix));
    let until = region.now().plus(FETCHED_WITHIN);
    let signed = region.cloud.presign(bucket, &[(Method::Get, key.clone())], until).await;
    let address = signed.map_err(|error| failure::of_running(error, "sign an address"))?.remove(0);
    let archive = tempfile::Builder::new().prefix("rfm_job.outputs").tempfile_in(&job.stage);
    let archive =
        archive.map_err(|error| SchedulerError::new(Class::Infra, format!("write to {}", job.stage.display()), error))?;
    let shown = format!("s3://{bucket}/{key}");
    let downloaded = region.cloud.download(&address, &shown, archive.path()).await;
    downloaded.map_err(|error| failure::of_running(error, "fetch the files of a job"))?;
    let stage = job.stage.clone();
    let unpacked = blocking(move || unpack(archive.path(), &stage)).await;
    unpacked.map(|missing| missing_files(&missing)).map_err(|error| {
        let class = if matches!(error, NotUnpacked::Link { .. }) { Class::Config } else { Class::Infra };
        SchedulerError::new(class, format!("unpack the files of {}", job.case), error)
    })
}

/// Why files are not where a session looks for them.
#[derive(Debug, thiserror::Error)]
enum NotUnpacked {
    #[error(
        "{} is kept, and {} is a link in the stage folder: leave it out of `keep_files`, or the folder out of `readonly_files`",
        path.display(),
        link.display()
    )]
    Link { path: PathBuf, link: PathBuf },
    #[error("write {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("read the archive")]
    Archive(#[from] io::Error),
}

/// In the archive, the names of the files that the agent could not put into it.
const MISSING: &str = "rfm_missing";
/// The most of it that is read, and how many of them are named.
const MISSING_BYTES: u64 = 1 << 16;
const NAMED: usize = 5;

/// `keep_files`: 2 files could not be sent: a, b
fn missing_files(names: &str) -> Option<String> {
    let names: Vec<String> = names.lines().map(|name| name.escape_debug().to_string()).collect();
    let more =
        names.len().checked_sub(NAMED).filter(|more| *more > 0).map_or_else(String::new, |more| format!(", and {more} more"));
    let files = if names.len() == 1 { "1 file".to_owned() } else { format!("{} files", names.len()) };
    let first = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| format!("`keep_files`: {files} could not be sent from the instance: {first}{more}"))
}

/// Regular files alone, nothing outside of the folder, and nothing in the place of Muster's own files: an instance is not trusted.
/// Returns the names of those that are missing.
fn unpack(archive: &Path, stage: &Path) -> Result<String, NotUnpacked> {
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(archive)?));
    let (mut missing, mut unpacked) = (String::new(), BTreeSet::new());
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = plain(&entry.path()?);
        if path == Path::new(MISSING) {
            let mut names = Vec::new();
            entry.by_ref().take(MISSING_BYTES).read_to_end(&mut names)?;
            missing = String::from_utf8_lossy(&names).into_owned();
            continue;
        }
        let is_ours = path.components().next().is_none_or(|part| stage_folder::is_ours(part.as_os_str()));
        let kind = entry.header().entry_type();
        if is_ours || !(kind.is_file() || kind.is_hard_link()) {
            continue;
        }
        if let Some(link) = link_above(stage, &path) {
            return Err(NotUnpacked::Link { path, link });
        }
        if kind.is_hard_link() {
            // Another name of a file that came before.
            let first = entry.link_name()?.map(|name| plain(&name)).filter(|name| unpacked.contains(name));
            if let Some(first) = first.filter(|_| is_within(&path)) {
                copy(&stage.join(first), &stage.join(&path)).map_err(|source| NotUnpacked::File { path, source })?;
            }
            continue;
        }
        entry.set_preserve_permissions(false);
        match entry.unpack_in(stage) {
            Ok(true) => drop(unpacked.insert(path)),
            Ok(false) => {}
            Err(source) => return Err(NotUnpacked::File { path, source }),
        }
    }
    Ok(missing)
}

/// A path of an archive without its leading `./`.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}

fn is_within(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// A new file at the end of a path, also where there is one.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::copy(from, to).map(drop)
}

/// The folder of a path that is a link: nothing may be written through it.
fn link_above(stage: &Path, path: &Path) -> Option<PathBuf> {
    let above = path.ancestors().skip(1);
    above.filter(|folder| stage.join(folder).is_symlink()).last().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};

    #[test]
    fn nothing_leaves_the_folder_and_nothing_of_muster_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let stage = folder.path().join("stage");
        fs::create_dir(&stage).unwrap();
        fs::write(stage.join("rfm_job.sh"), "ours").unwrap();
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for path in ["./out/result", "rfm_job.sh", "./rfm_job.out", "../outside"] {
            let mut header = tar::Header::new_gnu();
            header.set_size(3);
            header.set_mode(0o644);
            let name = header.as_gnu_mut().unwrap();
            name.name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            archive.append(&header, &b"new"[..]).unwrap();
        }
        let mut link = tar::Header::new_gnu();
        link.set_entry_type(tar::EntryType::Symlink);
        link.set_size(0);
        archive.append_link(&mut link, "link", "/etc").unwrap();
        let bytes = archive.into_inner().unwrap().finish().unwrap();
        fs::write(folder.path().join("archive"), bytes).unwrap();
        unpack(&folder.path().join("archive"), &stage).unwrap();
        assert_eq!(fs::read_to_string(stage.join("out/result")).unwrap(), "new");
        assert_eq!(fs::read_to_string(stage.join("rfm_job.sh")).unwrap(), "ours");
        for absent in ["rfm_job.out", "link", "../outside"] {
            assert!(!stage.join(absent).exists(), "{absent}");
        }
    }

    #[test]
    fn both_names_of_a_file_come_back_and_what_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let stage = folder.path().join("stage");
        fs::create_dir(&stage).unwrap();
        fs::write(stage.join("sent"), "sent").unwrap();
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (path, text) in [("./a", "new"), ("./rfm_missing", "b\nc\u{1b}[1m\n")] {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, path, text.as_bytes()).unwrap();
        }
        for (path, to) in [("./deep/a", "./a"), ("./sent", "a"), ("stolen", "/etc/passwd"), ("other", "../stage/sent")] {
            let mut link = tar::Header::new_gnu();
            link.set_entry_type(tar::EntryType::Link);
            link.set_size(0);
            archive.append_link(&mut link, path, to).unwrap();
        }
        let bytes = archive.into_inner().unwrap().finish().unwrap();
        fs::write(folder.path().join("archive"), bytes).unwrap();
        let missing = unpack(&folder.path().join("archive"), &stage).unwrap();
        for path in ["a", "deep/a", "sent"] {
            assert_eq!(fs::read_to_string(stage.join(path)).unwrap(), "new", "{path}");
        }
        assert!(!stage.join("stolen").exists() && !stage.join("other").exists() && !stage.join("rfm_missing").exists());
        let said = "`keep_files`: 2 files could not be sent from the instance: b, c\\u{1b}[1m";
        assert_eq!(missing_files(&missing).as_deref(), Some(said));
        assert_eq!(missing_files(""), None);
        let many = missing_files("a\nb\nc\nd\ne\nf\n").unwrap();
        assert!(many.ends_with("a, b, c, d, e, and 1 more"), "{many}");
    }

    #[test]
    fn a_file_below_a_link_is_the_check_s_mistake_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let (stage, far) = (folder.path().join("stage"), folder.path().join("far"));
        fs::create_dir(&stage).unwrap();
        fs::create_dir(&far).unwrap();
        std::os::unix::fs::symlink(&far, stage.join("sets")).unwrap();
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        let mut header = tar::Header::new_gnu();
        header.set_size(3);
        header.set_mode(0o644);
        archive.append_data(&mut header, "./sets/deep/made", &b"new"[..]).unwrap();
        fs::write(folder.path().join("archive"), archive.into_inner().unwrap().finish().unwrap()).unwrap();
        let error = unpack(&folder.path().join("archive"), &stage).unwrap_err();
        assert_eq!(
            error.to_string(),
            "sets/deep/made is kept, and sets is a link in the stage folder: leave it out of `keep_files`, or the folder out of `readonly_files`"
        );
        assert!(fs::read_dir(&far).unwrap().next().is_none(), "nothing is written through it");
    }
}
