//! Which revision of its sources is deployed, where git knows it.
//!
//! It is told with the deployment, so that people find what a game was made of.
//! Whatever keeps git from saying it keeps no deploy from happening.

use std::path::Path;
use std::process::{Command, Stdio};

/// What marks a revision whose files have been changed since.
const CHANGED: &str = "-dirty";

/// The commit of the work tree that `folder` lies in, marked where tracked files
/// differ from it. None without git, without a repository or before its first
/// commit.
pub(crate) fn of(folder: &Path) -> Option<String> {
    let commit = git(folder, &["rev-parse", "--verify", "--quiet", "HEAD"])?;
    let commit = commit.trim();
    let is_hash =
        (7..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hash {
        return None;
    }
    // A hash of SHA-256 and the mark would be too long for the platform.
    let commit = commit.get(..40).unwrap_or(commit);
    let status = git(folder, &["status", "--porcelain", "--untracked-files=no"]);
    let changed = status.is_some_and(|status| !status.trim().is_empty());
    Some(format!("{commit}{}", if changed { CHANGED } else { "" }))
}

/// What a command of git prints. A repository's own settings name no program
/// that would run for it.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "core.fsmonitor=false"])
        .args(arguments)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_outside_of_any_repository_has_no_revision() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of(folder.path()), None);
        assert_eq!(of(&folder.path().join("nowhere")), None);
    }

    #[test]
    fn a_commit_is_named_and_marked_when_files_differ_from_it() {
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| git(folder.path(), arguments).unwrap();
        run(&["init", "--quiet"]);
        assert_eq!(of(folder.path()), None);
        let file = folder.path().join("a.txt");
        std::fs::write(&file, "1").unwrap();
        run(&["add", "a.txt"]);
        let who = [
            "-c",
            "user.name=otter",
            "-c",
            "user.email=otter@example.org",
        ];
        let commit = ["commit", "--quiet", "--no-gpg-sign", "-m", "first"];
        run(&[&who[..], &commit[..]].concat());
        let revision = of(folder.path()).unwrap();
        assert_eq!(revision.len(), 40, "{revision}");
        std::fs::write(&file, "2").unwrap();
        assert_eq!(of(folder.path()), Some(format!("{revision}-dirty")));
    }
}
