//! `platform-server restore`: goes back to a backup.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use clap::Args;
use platform_server::app::backups::Backups;
use platform_server::app::data_folder::FolderLock;
use platform_server::app::restore::{self, Allowed, Checked};
use platform_server::clock::Millis;
use platform_server::config::load::bucket_from_process;
use platform_server::config::{BackupPlace, Config};
use platform_server::domain::errors::chain;
use platform_server::platform::disk::SystemDisk;

use crate::Failure;

/// The word for the newest of the server's own backups.
const LATEST: &str = "latest";

#[derive(Args)]
pub(crate) struct RestoreCommand {
    /// The backup: a file, `s3://<bucket>/<prefix>/<name>` with the variables `AWS_*`, or `latest` for
    /// the newest one in PLATFORM_BACKUP
    backup: String,
    /// Only check the backup, and change nothing
    #[arg(long, conflicts_with_all = ["force", "without_files"])]
    check: bool,
    /// Restore it although there is data, which is kept aside
    #[arg(long)]
    force: bool,
    /// Restore the store alone, and leave deployed files as they are
    #[arg(long)]
    without_files: bool,
    /// Restore it although deployed files are missing in it
    #[arg(long)]
    incomplete: bool,
}

impl RestoreCommand {
    /// Locks the folder against servers until the returned lock is dropped.
    pub(crate) fn lock(&self, config: &Config) -> Result<Option<FolderLock>, Failure> {
        if self.check {
            return Ok(None);
        }
        let lock = FolderLock::take(config);
        lock.map(Some).map_err(|error| error.to_string())
    }

    /// Checks or restores the backup, and returns what was done.
    pub(crate) async fn run(&self, config: &Config, now: Millis) -> Result<String, Failure> {
        let (name, archive) = self.open(config).await?;
        if self.check {
            let checked = restore::check(archive).await;
            let checked = checked.map_err(|error| format!("{name}: {}", chain(&error)))?;
            return self.checked(&name, &checked);
        }
        let allowed = Allowed {
            force: self.force,
            without_files: self.without_files,
            incomplete: self.incomplete,
        };
        let restored = restore::run(archive, config, &SystemDisk, allowed, now).await;
        let restored = restored.map_err(|error| format!("{name}: {}", chain(&error)))?;
        let mut text = format!("{name} is restored: {}\n", contents(&restored.checked));
        if restored.missing > 0 {
            let _ = writeln!(text, "{} deployed files are missing", restored.missing);
        }
        for folder in &restored.aside {
            let _ = writeln!(text, "the data from before is in {}", folder.display());
        }
        let copy = &restored.checked.copy;
        text.push_str(if copy.schema < copy.known {
            "start the server, which upgrades the store\n"
        } else {
            "start the server\n"
        });
        Ok(text)
    }

    /// Returns the message about a checked backup. One that lacks files counts as a failure.
    fn checked(&self, name: &str, checked: &Checked) -> Result<String, Failure> {
        match checked.missing() {
            missing if missing > 0 && !self.incomplete => Err(format!(
                "{name} is a backup, but lacks {missing} of the {} deployed files of its games",
                checked.copy.files.len()
            )),
            _ => Ok(format!("{name} is whole: {}\n", contents(checked))),
        }
    }

    /// Opens the backup, and returns its name.
    async fn open(&self, config: &Config) -> Result<(String, File), Failure> {
        if self.backup == LATEST {
            let backups = Backups::new(config).map_err(|error| chain(&error))?;
            let names = backups.list().await.map_err(|error| chain(&error))?;
            let Some(name) = names.last() else {
                return Err("there is no backup in PLATFORM_BACKUP yet".to_owned());
            };
            let file = backups.open(name).await.map_err(|error| chain(&error))?;
            return Ok((name.clone(), file));
        }
        if self.backup.starts_with("s3://") {
            let (place, name) = self.backup.rsplit_once('/').unwrap_or_default();
            let settings = bucket_from_process("the backup", place);
            let settings = Config {
                backup: Some(BackupPlace::Bucket(
                    settings.map_err(|error| error.to_string())?,
                )),
                data: config.data.clone(),
                ..Config::default()
            };
            let backups = Backups::new(&settings).map_err(|error| chain(&error))?;
            let file = backups.open(name).await.map_err(|error| chain(&error))?;
            return Ok((self.backup.clone(), file));
        }
        let file = File::open(Path::new(&self.backup));
        let file = file.map_err(|error| format!("{} cannot be read: {error}", self.backup))?;
        Ok((self.backup.clone(), file))
    }
}

/// Says what is in a backup.
fn contents(checked: &Checked) -> String {
    let (copy, files) = (&checked.copy, checked.files.len());
    let (players, schema) = (copy.players, copy.schema);
    format!("{players} players, {files} deployed files, schema version {schema}")
}
