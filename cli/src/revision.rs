//! Which revision of its sources is deployed, if git knows it.
//!
//! It is sent with the deployment, so that people find the sources of a game. If git cannot tell
//! it, the deploy goes on without it.
//!
//! A repository may come from a stranger, and its settings can name programs: filters, monitors,
//! pagers. None of them is run. Since git runs filters when it looks for changes, it does so with a
//! folder of ours in place of the repository's `.git`, with settings of ours.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// The suffix of a revision whose files have been changed since.
const CHANGED: &str = "-dirty";
/// Settings of a repository on how files are compared with the commit. They name no program.
const COMPARING: [&str; 5] = [
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.symlinks",
];

/// The commit of the work tree that contains `folder`, with a mark if tracked files differ from it.
/// `None` without git, without a repository or before its first commit.
pub(crate) fn of(folder: &Path) -> Option<String> {
    let commit = git(folder, &["rev-parse", "--verify", "--quiet", "HEAD"])?;
    let commit = commit.trim();
    let is_hash =
        (7..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hash {
        return None;
    }
    let changed = is_changed(folder, commit).unwrap_or_default();
    // A SHA-256 hash with the mark would be too long for the platform.
    let commit = commit.get(..40).unwrap_or(commit);
    Some(format!("{commit}{}", if changed { CHANGED } else { "" }))
}

/// The branch that is checked out in the work tree that contains `folder`. `None` without one, as in
/// most pipelines.
pub(crate) fn branch(folder: &Path) -> Option<String> {
    let branch = git(folder, &["symbolic-ref", "--short", "--quiet", "HEAD"])?;
    Some(branch.trim().to_owned()).filter(|branch| !branch.is_empty())
}

/// Whether tracked files differ from the commit; `None` if that is unknown.
fn is_changed(folder: &Path, commit: &str) -> Option<bool> {
    let places = [
        "--path-format=absolute",
        "--git-path",
        "objects",
        "--git-path",
        "index",
        "--show-toplevel",
    ];
    let places = git(folder, &[&["rev-parse"], &places[..]].concat())?;
    let places: Vec<&str> = places.lines().collect();
    let [objects, index, top] = places[..] else {
        return None;
    };
    let ours = tempfile::tempdir().ok()?;
    // The minimum for git to accept the folder as a repository.
    std::fs::create_dir(ours.path().join("refs")).ok()?;
    std::fs::write(ours.path().join("HEAD"), format!("{commit}\n")).ok()?;
    std::fs::write(ours.path().join("config"), settings(folder, commit)).ok()?;
    let mut status = harmless();
    status
        .args(["status", "--porcelain", "--untracked-files=no"])
        // Submodules have settings of their own.
        .arg("--ignore-submodules=all")
        .env("GIT_DIR", ours.path())
        .env("GIT_OBJECT_DIRECTORY", objects)
        .env("GIT_INDEX_FILE", index)
        .env("GIT_WORK_TREE", top)
        .current_dir(top);
    output(&mut status).map(|status| !status.trim().is_empty())
}

/// The settings of our folder, in git's format.
fn settings(folder: &Path, commit: &str) -> String {
    // https://git-scm.com/docs/repository-version
    let mut settings = if commit.len() == 64 {
        "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectformat = sha256\n".to_owned()
    } else {
        "[core]\nrepositoryformatversion = 0\n".to_owned()
    };
    settings.push_str("[core]\nbare = false\n");
    for name in COMPARING {
        let value = git(folder, &["config", "--get", name]);
        let value = value.as_deref().map(str::trim).filter(|value| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric();
            !value.is_empty() && value.bytes().all(plain)
        });
        if let (Some(value), Some((_, key))) = (value, name.split_once('.')) {
            settings.push_str(&format!("{key} = {value}\n"));
        }
    }
    settings
}

/// The output of a git command about the repository that contains `folder`. The command must run no
/// other program, whatever the repository's settings are.
fn git(folder: &Path, arguments: &[impl AsRef<OsStr>]) -> Option<String> {
    output(harmless().arg("-C").arg(folder).args(arguments))
}

/// A git command that writes nothing, fetches nothing, runs no hook, and does not treat a folder of
/// a work tree as a repository (`safe.bareRepository`).
fn harmless() -> Command {
    let mut command = Command::new("git");
    command
        .arg("--no-pager")
        .args(["-c", "core.fsmonitor=false"])
        .args(["-c", "core.hooksPath=/dev/null"])
        .args(["-c", "safe.bareRepository=explicit"])
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with one commit of `a.txt`.
    fn repository(folder: &Path) {
        let run = |arguments: &[&str]| git(folder, arguments).unwrap();
        run(&["init", "--quiet"]);
        assert_eq!(of(folder), None);
        std::fs::write(folder.join("a.txt"), "1").unwrap();
        run(&["add", "a.txt"]);
        let who = [
            "-c",
            "user.name=otter",
            "-c",
            "user.email=otter@example.org",
        ];
        let commit = ["commit", "--quiet", "--no-gpg-sign", "-m", "first"];
        run(&[&who[..], &commit[..]].concat());
    }

    #[test]
    fn a_folder_outside_of_any_repository_has_no_revision() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of(folder.path()), None);
        assert_eq!(of(&folder.path().join("nowhere")), None);
    }

    #[test]
    fn a_commit_is_named_and_marked_when_files_differ_from_it() {
        let folder = tempfile::tempdir().unwrap();
        repository(folder.path());
        let revision = of(folder.path()).unwrap();
        assert_eq!(revision.len(), 40, "{revision}");
        git(
            folder.path(),
            &["checkout", "--quiet", "-b", "feature/Rings"],
        )
        .unwrap();
        assert_eq!(branch(folder.path()).as_deref(), Some("feature/Rings"));
        git(folder.path(), &["checkout", "--quiet", "--detach"]).unwrap();
        assert_eq!(branch(folder.path()), None);
        let file = folder.path().join("a.txt");
        std::fs::write(&file, "2").unwrap();
        let dirty = Some(format!("{revision}-dirty"));
        assert_eq!(of(folder.path()), dirty);
        // What is staged and not committed differs as well, seen from any folder.
        git(folder.path(), &["add", "a.txt"]).unwrap();
        let within = folder.path().join("within");
        std::fs::create_dir(&within).unwrap();
        assert_eq!(of(&within), dirty);
        std::fs::write(&file, "1").unwrap();
        git(folder.path(), &["add", "a.txt"]).unwrap();
        assert_eq!(of(folder.path()), Some(revision));
    }

    #[cfg(unix)]
    #[test]
    fn a_repository_runs_no_program_that_its_settings_name() {
        let folder = tempfile::tempdir().unwrap();
        repository(folder.path());
        let revision = of(folder.path()).unwrap();
        let ran = folder.path().join("ran");
        let program = format!("touch '{}'; cat", ran.display());
        for name in [
            "filter.bad.clean",
            "filter.bad.process",
            "filter.bad.smudge",
            "core.fsmonitor",
            "core.pager",
            "pager.status",
            "pager.rev-parse",
            "diff.bad.textconv",
            "diff.external",
        ] {
            git(folder.path(), &["config", name, &program]).unwrap();
        }
        git(folder.path(), &["config", "filter.bad.required", "true"]).unwrap();
        let hooks = folder.path().join("hooks");
        std::fs::create_dir(&hooks).unwrap();
        let hook = hooks.join("post-index-change");
        std::fs::write(&hook, format!("#!/bin/sh\n{program}\n")).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&hook, executable).unwrap();
        git(
            folder.path(),
            &["config", "core.hooksPath", hooks.to_str().unwrap()],
        )
        .unwrap();
        std::fs::write(
            folder.path().join(".gitattributes"),
            "* filter=bad diff=bad\n",
        )
        .unwrap();
        let attributes = folder.path().join(".git/info/attributes");
        std::fs::create_dir_all(attributes.parent().unwrap()).unwrap();
        std::fs::write(attributes, "* filter=bad diff=bad\n").unwrap();
        // Its time and size differ, so git must compare its content.
        std::fs::write(folder.path().join("a.txt"), "22").unwrap();
        assert_eq!(of(folder.path()), Some(format!("{revision}-dirty")));
        std::fs::write(folder.path().join("a.txt"), "1").unwrap();
        assert_eq!(of(folder.path()), Some(revision));
        assert!(!ran.exists(), "a program of the repository was run");
    }
}
