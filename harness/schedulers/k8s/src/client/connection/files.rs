//! Files that do not answer: a pipe that nobody writes to, a file system whose server is away. kube reads them without a limit.

use crate::client::ConnectError;
use kube::config::Kubeconfig;
use muster_core::probe::{PART, seconds};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

/// How long a file may take, and all that a context names together.
const LIMIT: Duration = PART;

/// Does `work` on a thread of its own, which is left behind when it takes longer.
pub(super) fn within<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (done, result) = mpsc::sync_channel(1);
    thread::Builder::new().name("kubeconfig".into()).spawn(move || drop(done.send(work())))?;
    result.recv_timeout(LIMIT).map_err(|_| io::Error::new(io::ErrorKind::TimedOut, no_answer()))
}

/// What a context names beside the kubeconfig.
pub(super) fn named(kubeconfig: &Kubeconfig, context: &str) -> Vec<PathBuf> {
    let found = kubeconfig.contexts.iter().find(|named| named.name == context).and_then(|named| named.context.as_ref());
    let Some(context) = found else { return Vec::new() };
    let cluster = kubeconfig.clusters.iter().find(|named| named.name == context.cluster).and_then(|named| named.cluster.as_ref());
    let user = kubeconfig.auth_infos.iter().find(|named| Some(&named.name) == context.user.as_ref());
    let user = user.and_then(|named| named.auth_info.as_ref());
    let of_user = user.map(|user| [&user.token_file, &user.client_certificate, &user.client_key]);
    let all = cluster.map(|cluster| &cluster.certificate_authority).into_iter().chain(of_user.into_iter().flatten());
    all.flatten().map(PathBuf::from).collect()
}

/// Whether all of them can be read to their ends. What else is wrong with them, kube says.
///
/// # Errors
/// The first that does not answer.
pub(super) async fn answer(context: &str, paths: Vec<PathBuf>) -> Result<(), ConnectError> {
    let reading: Vec<(PathBuf, oneshot::Receiver<()>)> = paths.into_iter().map(|path| (path.clone(), read(path))).collect();
    let by = Instant::now() + LIMIT;
    for (path, end) in reading {
        // A thread that could not be started says nothing of the file.
        if timeout_at(by, end).await.is_err() {
            return Err(ConnectError::Unusable { context: context.to_owned(), why: unread(&path) });
        }
    }
    Ok(())
}

fn read(path: PathBuf) -> oneshot::Receiver<()> {
    let (done, end) = oneshot::channel();
    let read = move || {
        drop(fs::read(path));
        let _ = done.send(());
    };
    let _ = thread::Builder::new().name("kubeconfig".into()).spawn(read);
    end
}

fn unread(path: &Path) -> String {
    format!("{} cannot be read: {}", path.display(), no_answer())
}

fn no_answer() -> String {
    format!("no answer within {}", seconds(LIMIT))
}
