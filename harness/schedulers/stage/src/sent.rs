//! The files of a stage folder, for schedulers whose jobs do not see it: they send them to where the job runs.

use crate::copy::special;
use muster_core::{
    error::{Class, SchedulerError},
    job::stage_folder,
};
use muster_host::files::open_regular;
use std::{
    fs,
    io::{self, Read},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};
use tokio::{sync::oneshot, time::timeout};
use tokio_util::sync::CancellationToken;

/// Nothing comes for so long only from a file server that is gone.
const SILENCE: Duration = Duration::from_secs(20);

/// Links to folders with links to folders may make them many.
const MOST_ENTRIES: u32 = 100_000;

/// How much of a file is read between two signs of life.
const CHUNK: u64 = 1 << 20;

/// The error of the operating system for links that lead to themselves.
const LOOP: i32 = 40;

/// A file that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentFile {
    /// Relative to the stage folder: `input/mesh.dat`.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    pub data: Vec<u8>,
}

/// Returns what was staged, in the order of its paths, without what Muster itself has written into the folder. Links are
/// followed, and empty folders are left out. `most`: the most bytes that the files may have together.
///
/// # Errors
/// Of class `Config` if there is more, or something else than files; of class `Infra` if a file cannot be read, or its server is
/// silent.
pub async fn sent_files(stage: PathBuf, most: u64) -> Result<Vec<SentFile>, SchedulerError> {
    watched(SILENCE, move |reading| read(&stage, most, reading)).await
}

/// How far a thread is that reads.
#[derive(Debug)]
struct Reading {
    steps: AtomicU64,
    at: parking_lot::Mutex<PathBuf>,
    stop: CancellationToken,
}

impl Reading {
    /// A sign of life. `false`: nobody waits for it any more.
    fn goes_on(&self) -> bool {
        self.steps.fetch_add(1, Ordering::Relaxed);
        !self.stop.is_cancelled()
    }

    fn is_at(&self, path: &Path) -> io::Result<()> {
        path.clone_into(&mut self.at.lock());
        if self.goes_on() { Ok(()) } else { Err(io::Error::other("nobody waits for it")) }
    }
}

/// Reads on a thread of its own, which is left to itself if it hangs within the kernel: nothing else waits for it then, nor does the
/// end of the process.
async fn watched<T: Send + 'static>(
    silence: Duration,
    work: impl FnOnce(&Reading) -> Result<T, SchedulerError> + Send + 'static,
) -> Result<T, SchedulerError> {
    let stop = CancellationToken::new();
    let _stopping = stop.clone().drop_guard();
    let reading = Arc::new(Reading { steps: AtomicU64::new(0), at: parking_lot::Mutex::default(), stop });
    let (answer, mut answered) = oneshot::channel();
    let its = Arc::clone(&reading);
    let run = move || drop(answer.send(work(&its)));
    let failed = |error| SchedulerError::new(Class::Infra, "read what is sent with the job", error).with_nothing_created();
    thread::Builder::new().name("sent".to_owned()).spawn(run).map_err(failed)?;
    let mut steps = 0;
    loop {
        match timeout(silence, &mut answered).await {
            Ok(answer) => return answer.unwrap_or_else(|_| Err(failed(io::Error::other("it panicked")))),
            Err(_) if reading.steps.load(Ordering::Relaxed) == steps => {
                let path = reading.at.lock().clone();
                let why = format!("nothing came for {} s", silence.as_secs());
                return Err(unread(&path, io::Error::new(io::ErrorKind::TimedOut, why)));
            }
            Err(_) => steps = reading.steps.load(Ordering::Relaxed),
        }
    }
}

fn read(stage: &Path, most: u64, reading: &Reading) -> Result<Vec<SentFile>, SchedulerError> {
    let mut files = Vec::new();
    let mut room = most;
    for path in walk(stage, reading)? {
        let file = one(stage, &path, room, reading).map_err(|error| unread(&path, error))?;
        let Some(left) = room.checked_sub(file.data.len() as u64) else {
            return Err(mistake(format!(
                "the files of `sourcesdir` are sent with the job, and there may be {most} bytes of them: with {} there are more",
                file.path
            )));
        };
        room = left;
        files.push(file);
    }
    Ok(files)
}

fn mistake(what: String) -> SchedulerError {
    SchedulerError::plain(Class::Config, what).with_nothing_created()
}

fn unread(path: &Path, error: io::Error) -> SchedulerError {
    SchedulerError::new(Class::Infra, format!("read {}, which is sent with the job", path.display()), error)
        .with_nothing_created()
}

/// What tells a folder from others.
fn id(about: &fs::Metadata) -> (u64, u64) {
    (about.dev(), about.ino())
}

/// All files below a folder, sorted.
fn walk(folder: &Path, reading: &Reading) -> Result<Vec<PathBuf>, SchedulerError> {
    reading.is_at(folder).map_err(|error| unread(folder, error))?;
    let about = fs::metadata(folder).map_err(|error| unread(folder, error))?;
    let (mut files, mut folders) = (Vec::new(), vec![(folder.to_owned(), vec![id(&about)])]);
    let mut count = 0;
    while let Some((within, above)) = folders.pop() {
        let failed = |error| unread(&within, error);
        reading.is_at(&within).map_err(failed)?;
        for entry in fs::read_dir(&within).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if within == folder && stage_folder::is_ours(&entry.file_name()) {
                continue;
            }
            let path = entry.path();
            reading.is_at(&path).map_err(|error| unread(&path, error))?;
            // What `readonly_files` names is a link here.
            let about = match fs::metadata(&path) {
                Err(error) if error.raw_os_error() == Some(LOOP) => return Err(leads_back(&path)),
                about => about.map_err(|error| unread(&path, error))?,
            };
            count += 1;
            if count > MOST_ENTRIES {
                let folder = folder.display();
                return Err(mistake(format!(
                    "there are more than {MOST_ENTRIES} files and folders in {folder} to be sent with a job"
                )));
            }
            let id = id(&about);
            if about.is_file() {
                files.push(path);
            } else if about.is_dir() && above.contains(&id) {
                return Err(leads_back(&path));
            } else if about.is_dir() {
                folders.push((path, above.iter().copied().chain([id]).collect()));
            } else {
                let what = special(about.file_type()).unwrap_or("no file");
                return Err(mistake(format!("{} is {what}, and only files can be sent with a job", path.display())));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn leads_back(path: &Path) -> SchedulerError {
    mistake(format!("{} is a link that leads back to itself: what is sent with a job would have no end", path.display()))
}

/// Reads no more than a byte beyond what fits.
fn one(stage: &Path, path: &Path, room: u64, reading: &Reading) -> io::Result<SentFile> {
    reading.is_at(path)?;
    let file = open_regular(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    let mut data = Vec::new();
    let mut file = file.take(room.saturating_add(1));
    while reading.goes_on() && (&mut file).take(CHUNK).read_to_end(&mut data)? > 0 {}
    let relative = path.strip_prefix(stage).unwrap_or(path);
    let Some(relative) = relative.to_str() else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its name is not valid UTF-8"));
    };
    Ok(SentFile { path: relative.to_owned(), mode, data })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::fs::symlink, process::Command, sync::mpsc, time::Instant};

    fn read(stage: &Path, most: u64) -> Result<Vec<SentFile>, SchedulerError> {
        let stop = CancellationToken::new();
        super::read(stage, most, &Reading { steps: AtomicU64::new(0), at: parking_lot::Mutex::default(), stop })
    }

    #[test]
    fn what_was_staged_is_sent_and_muster_s_own_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("sub/empty")).unwrap();
        fs::write(at("sub/run.sh"), "true").unwrap();
        fs::set_permissions(at("sub/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(at("rfm_job.sh"), "ours").unwrap();
        fs::write(at("a"), "1").unwrap();
        symlink("sub", at("link")).unwrap();
        let files = read(folder.path(), 100).unwrap();
        let seen: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.mode & 0o111 != 0, file.data.len())).collect();
        assert_eq!(seen, [("a", false, 1), ("link/run.sh", true, 4), ("sub/run.sh", true, 4)]);
    }

    #[test]
    fn more_than_fits_is_the_check_s_mistake_and_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "12345").unwrap();
        fs::write(folder.path().join("b"), "123456").unwrap();
        assert!(read(folder.path(), 11).is_ok());
        let error = read(folder.path(), 10).unwrap_err();
        assert_eq!(error.class, Class::Config);
        assert!(error.to_string().contains("10 bytes of them: with b there are more"), "{error}");
    }

    #[test]
    fn a_link_to_nowhere_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        symlink("nowhere", folder.path().join("x")).unwrap();
        let error = read(folder.path(), 10).unwrap_err();
        assert_eq!(error.class, Class::Infra);
    }

    #[test]
    fn what_has_no_end_or_is_no_file_is_refused_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let (stage, pipe) = (folder.path().join("stage"), folder.path().join("pipe"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let device = PathBuf::from("/dev/zero");
        let rows = [
            (pipe.as_path(), "data", " is a pipe, and only files"),
            (&device, "data", " is a device, and only files"),
            (Path::new("."), "loop", " is a link that leads back"),
            (Path::new("loop"), "loop", " is a link that leads back"),
            (Path::new(".."), "sub/up", " is a link that leads back"),
        ];
        for (target, name, what) in rows {
            fs::create_dir_all(stage.join("sub")).unwrap();
            symlink(target, stage.join(name)).unwrap();
            let error = read(&stage, 100).unwrap_err();
            let (is_config, said) = (error.class == Class::Config, error.to_string());
            assert!(is_config && said.contains(&format!("{name}{what}")), "{said}");
            fs::remove_dir_all(&stage).unwrap();
        }
    }

    #[tokio::test]
    async fn a_file_that_hangs_is_named_and_holds_nobody() {
        let (started, (goes_on, waits)) = (Instant::now(), mpsc::channel::<()>());
        let hangs = move |reading: &Reading| {
            reading.is_at(Path::new("far/away")).map_err(|error| unread(Path::new("x"), error))?;
            let _ = waits.recv();
            Ok(reading.goes_on())
        };
        let error = watched(Duration::from_millis(50), hangs).await.unwrap_err();
        assert_eq!((error.class, error.to_string()), (Class::Infra, "read far/away, which is sent with the job".to_owned()));
        assert!(started.elapsed() < Duration::from_secs(10));
        drop(goes_on);
    }
}
