//! Tests of what is in a stage folder, and what cannot be put there.

use super::*;
use crate::Stager;
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
    (folder, Staging { folder: src, readonly_files: Vec::new(), limit: None }, stage)
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

/// Stages without being stopped.
fn staged(staging: &Staging, stage: &Path) -> Result<(), StagingError> {
    super::stage(staging, stage, &CancellationToken::new())
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
        staged(&staging, &stage).unwrap();
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
    staged(&staging, &stage).unwrap();
    assert_eq!(tree(&stage), [".gitignore", "a.c", "sub/", "sub/.gitignore", "sub/b.o"]);
}

#[test]
fn what_is_read_only_is_linked_as_a_whole() {
    let (_folder, mut staging, stage) = folders(&[("data/big.bin", "x"), ("mesh/a", ""), ("mesh/deep/b", ""), ("run.sh", "")]);
    staging.readonly_files = vec!["data/*.bin".into(), "mesh".into()];
    staged(&staging, &stage).unwrap();
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
    staged(&staging, &stage).unwrap();
    assert_eq!(tree(&stage), ["file", "folder/", "folder/a", "real/", "real/a"]);
    assert_eq!(fs::read_to_string(stage.join("file")).unwrap(), "outside");
}

#[test]
fn what_cannot_be_staged_says_why() {
    let mut all = Vec::new();
    let (folder, staging, stage) = folders(&[("a", "")]);
    symlink("nowhere", staging.folder.join("broken")).unwrap();
    all.push(says(staged(&staging, &stage), &folder));
    let (folder, staging, stage) = folders(&[("a/b", "")]);
    symlink("..", staging.folder.join("a/up")).unwrap();
    all.push(says(staged(&staging, &stage), &folder));
    let (folder, mut staging, stage) = folders(&[("a", "")]);
    staging.readonly_files = vec!["a".into(), "*.bin".into()];
    all.push(says(staged(&staging, &stage), &folder));
    let (folder, staging, stage) = folders(&[("rfm_job.out", "")]);
    all.push(says(staged(&staging, &stage), &folder));
    fs::remove_dir_all(&staging.folder).unwrap();
    all.push(says(staged(&staging, &stage), &folder));
    fs::write(&staging.folder, "").unwrap();
    all.push(says(staged(&staging, &stage), &folder));
    insta::assert_snapshot!(all.join("\n"), @"
    read what is in /src: /src/broken: IO error for operation on /src/broken: No such file or directory (os error 2)
    read what is in /src: File system loop found: /src/a/up points to an ancestor /src
    `readonly_files`: nothing in /src fits `*.bin`
    the folder /src cannot be staged: it holds rfm_job.out, which Muster itself writes into a stage folder
    the folder /src of `sourcesdir` does not exist
    the folder /src cannot be staged: it is not a folder
    ");
}

#[test]
fn a_large_file_is_copied_whole_and_nothing_after_a_stop() {
    let (_folder, staging, stage) = folders(&[("large", &"0123456789".repeat(1 << 20))]);
    let stop = CancellationToken::new();
    stop.cancel();
    assert!(matches!(super::stage(&staging, &stage, &stop), Err(StagingError::Stopped(_))));
    assert_eq!(tree(&stage), [""; 0]);
    staged(&staging, &stage).unwrap();
    assert!(fs::read(stage.join("large")).unwrap() == fs::read(staging.folder.join("large")).unwrap());
}

#[tokio::test]
async fn a_folder_that_hangs_keeps_no_other_from_its_turn() {
    let (_folder, mut hanging, stage) = folders(&[("a", "")]);
    let pipe = hanging.folder.join(".gitignore");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    hanging.limit = Some(Duration::from_millis(50));
    let stager = Stager::default();
    let never = || Box::pin(std::future::pending::<()>());
    let all = (0..10).map(|_| {
        let (stager, hanging, stage) = (stager.clone(), hanging.clone(), stage.clone());
        async move { stager.stage(hanging, stage, never().as_mut()).await }
    });
    let ends = futures_util::future::join_all(all).await;
    let slow = |error: &muster_core::error::SchedulerError| muster_core::error::chain(error).contains("(stage_limit)");
    assert!(ends.iter().all(|end| end.as_ref().is_err_and(slow)), "{ends:?}");
    let (_folder, staging, stage) = folders(&[("a", "")]);
    stager.stage(staging, stage.clone(), never().as_mut()).await.unwrap();
    assert_eq!(tree(&stage), ["a"]);
}
