//! The operator's program that publishes TXT records, for challenges by DNS (RFC 8555 §8.4).

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::config::names::SETTINGS;

/// How long a call may take. It returns when the record can be seen, which may take a while.
const LIMIT: Duration = Duration::from_secs(60);
/// How much of what it writes is repeated in an error.
const REPEATED: usize = 300;

/// Why a record was not published.
#[derive(Debug, thiserror::Error)]
pub(super) enum DnsError {
    /// The program was not run.
    #[error("{program} cannot be run")]
    Run {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// It did not end.
    #[error("{program} took longer than {} s", LIMIT.as_secs())]
    Slow {
        /// The program.
        program: PathBuf,
    },
    /// It says that it failed.
    #[error("{program} failed ({status}): {said}")]
    Failed {
        /// The program.
        program: PathBuf,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The end of what it wrote to standard error.
        said: String,
    },
}

/// Why the program of the settings cannot be run at all.
#[derive(Debug, thiserror::Error)]
pub enum DnsCommandError {
    /// There is no such program.
    #[error(
        "PLATFORM_ACME_DNS_COMMAND: there is no program {0} that the server's user may execute; write its \
         whole path"
    )]
    Missing(PathBuf),
    /// It is not a program, or not one for the server's user.
    #[error(
        "PLATFORM_ACME_DNS_COMMAND: {0} is not a file that the server's user may execute; `chmod 755 {0}`"
    )]
    NotExecutable(PathBuf),
}

/// Makes sure that a program can be run, so that not only the first order fails. A name without a folder
/// is one of the variable `PATH`.
///
/// # Errors
/// [`DnsCommandError`]
pub(in crate::app::tls) fn require(program: &Path) -> Result<(), DnsCommandError> {
    match which::which(program) {
        Ok(_) => Ok(()),
        Err(_) if has_folder(program) && program.exists() => {
            Err(DnsCommandError::NotExecutable(program.to_owned()))
        }
        Err(_) => Err(DnsCommandError::Missing(program.to_owned())),
    }
}

/// Whether a program is not looked for in the folders of `PATH`.
fn has_folder(program: &Path) -> bool {
    program
        .parent()
        .is_some_and(|folder| folder != Path::new(""))
}

/// Publishes and removes records.
#[derive(Clone, Debug)]
pub(super) struct DnsCommand(PathBuf);

impl DnsCommand {
    /// Runs this program.
    pub(super) fn new(program: &Path) -> Self {
        Self(program.to_owned())
    }

    /// Adds a TXT record. There may be others of the same name.
    pub(super) async fn present(&self, name: &str, value: &str) -> Result<(), DnsError> {
        self.run("present", name, value).await
    }

    /// Removes the record again.
    pub(super) async fn cleanup(&self, name: &str, value: &str) -> Result<(), DnsError> {
        self.run("cleanup", name, value).await
    }

    async fn run(&self, what: &str, name: &str, value: &str) -> Result<(), DnsError> {
        let mut command = Command::new(&self.0);
        command.args([what, name, value]).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // It needs credentials of the DNS, and none of the platform's.
        for setting in SETTINGS {
            command.env_remove(setting.variable());
        }
        let ran = tokio::time::timeout(LIMIT, command.stderr(Stdio::piped()).output()).await;
        let program = || self.0.clone();
        let output = ran.map_err(|_| DnsError::Slow { program: program() })?;
        let output = output.map_err(|source| DnsError::Run {
            program: program(),
            source,
        })?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let words: Vec<&str> = said.split_whitespace().collect();
        let letters: Vec<char> = words.join(" ").chars().collect();
        let begin = letters.len().saturating_sub(REPEATED);
        Err(DnsError::Failed {
            program: program(),
            status: output.status,
            said: letters[begin..].iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn program(folder: &Path, script: &str) -> DnsCommand {
        let path = folder.join("dns");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&path, mode).unwrap();
        DnsCommand::new(&path)
    }

    #[tokio::test]
    async fn the_program_gets_its_arguments_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let script = format!("printf '%s|' \"$@\" >>{}", log.display());
        let dns = program(folder.path(), &script);
        dns.present("_acme-challenge.play.example", "$(id) a")
            .await
            .unwrap();
        dns.cleanup("_acme-challenge.play.example", "b")
            .await
            .unwrap();
        let called = std::fs::read_to_string(log).unwrap();
        let name = "_acme-challenge.play.example";
        assert_eq!(called, format!("present|{name}|$(id) a|cleanup|{name}|b|"));
    }

    #[tokio::test]
    async fn what_went_wrong_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let dns = program(folder.path(), "echo the zone is gone >&2; exit 3");
        let error = dns.present("name", "value").await.unwrap_err().to_string();
        assert!(error.contains("the zone is gone"), "{error}");
        let nothing = DnsCommand::new(&folder.path().join("nothing"));
        let error = nothing.present("name", "value").await.unwrap_err();
        assert!(error.to_string().contains("cannot be run"), "{error}");
    }

    #[test]
    fn a_program_that_cannot_be_run_is_refused_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let DnsCommand(path) = program(folder.path(), "exit 0");
        require(&path).unwrap();
        require(Path::new("sh")).unwrap();
        let refused = |path: &Path| require(path).unwrap_err().to_string();
        for missing in [
            folder.path().join("nothing"),
            PathBuf::from("no-such-program"),
        ] {
            let said = refused(&missing);
            let expected = format!(
                "PLATFORM_ACME_DNS_COMMAND: there is no program {}",
                missing.display()
            );
            assert!(said.starts_with(&expected), "{said}");
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        for not_executable in [path.as_path(), folder.path()] {
            let said = refused(not_executable);
            assert!(said.contains("may execute"), "{said}");
        }
    }
}
