//! `platform-server backup`: one file with the store and all deployed files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use platform_server::app::backup::{self, Backup, BackupError, DeployedFiles};
use platform_server::app::backups::Backups;
use platform_server::app::data_folder::require_platform;
use platform_server::clock::Millis;
use platform_server::config::Config;
use platform_server::domain::errors::chain;
use platform_server::platform::disk::{DiskFloor, SystemDisk};
#[cfg(not(feature = "cluster"))]
use platform_server::store::ConnectError;
use platform_server::store::{self, SchemaPolicy, SqliteStore};

use crate::Failure;

#[derive(Args)]
pub(crate) struct BackupCommand {
    /// The file to make; without it, the backup is named by the time and kept in PLATFORM_BACKUP,
    /// from which older ones are removed
    file: Option<PathBuf>,
    /// Read PostgreSQL at this address, for example a standby, and not at that of the settings
    #[arg(long, value_name = "postgres://…", requires = "file")]
    from: Option<String>,
    /// Read frontend logs at this address
    #[arg(long, value_name = "postgres://…", requires = "from")]
    logs_from: Option<String>,
    /// Leave deployed files out, for example if the bucket keeps older versions
    #[arg(long, requires = "file")]
    without_files: bool,
}

impl BackupCommand {
    /// Makes the backup, and returns its size.
    pub(crate) async fn run(&self, config: &Config, now: Millis) -> Result<String, Failure> {
        let Some(file) = &self.file else {
            return self.keep(config, now).await;
        };
        let folder = config.files_path();
        if self.without_files {
            return self.write(config, file, DeployedFiles::LeftOut).await;
        }
        let Some(settings) = &config.s3 else {
            let files = DeployedFiles::Folder(&folder);
            return self.write(config, file, files).await;
        };
        #[cfg(feature = "cluster")]
        {
            use platform_server::games::files::copies::BucketCopies;
            let bucket = BucketCopies::open_to_read(settings);
            let bucket = bucket.map_err(|error| chain(&error))?;
            let files = DeployedFiles::Bucket(&bucket);
            self.write(config, file, files).await
        }
        #[cfg(not(feature = "cluster"))]
        {
            let _ = settings;
            Err(ConnectError::Unsupported("S3").to_string())
        }
    }

    /// Makes one among the backups that the server makes by itself.
    async fn keep(&self, config: &Config, now: Millis) -> Result<String, Failure> {
        require_platform(config).map_err(|error| error.to_string())?;
        let backups = Backups::new(config).map_err(|error| chain(&error))?;
        let floor = DiskFloor::new(Arc::new(SystemDisk), config.folders(), config.disk_floor());
        let made = backups.make(config, &floor, now).await;
        let made = made.map_err(|error| chain(&error))?;
        told(&made.name, true, made.backup)
    }

    async fn write(
        &self,
        config: &Config,
        file: &Path,
        files: DeployedFiles<'_>,
    ) -> Result<String, Failure> {
        let settings = config
            .postgres
            .as_ref()
            .map(platform_server::config::Secret::expose);
        let made = match self.from.as_deref().or(settings) {
            Some(url) => self.write_shared(config, url, file, files).await?,
            None => {
                require_platform(config).map_err(|error| error.to_string())?;
                let opened = SqliteStore::open(&config.database_path(), SchemaPolicy::Refuse).await;
                let store = opened.map_err(|error| chain(&error))?;
                let copy = async |folder| Ok(store.copy_into(folder).await?);
                let made = backup::write(copy, files, file).await;
                let closed = store::Store::close(&store).await;
                closed.map_err(|error| chain(&error))?;
                made.map_err(|error: BackupError| chain(&error))?
            }
        };
        let with_files = !matches!(files, DeployedFiles::LeftOut);
        told(&file.display().to_string(), with_files, made)
    }

    #[cfg(not(feature = "cluster"))]
    #[expect(clippy::unused_async, reason = "the other one waits")]
    async fn write_shared(
        &self,
        _config: &Config,
        _url: &str,
        _file: &Path,
        _files: DeployedFiles<'_>,
    ) -> Result<Backup, Failure> {
        let _ = &self.logs_from;
        Err(ConnectError::Unsupported("PostgreSQL").to_string())
    }

    /// Copies one moment of a store in PostgreSQL into the files of an embedded store.
    #[cfg(feature = "cluster")]
    async fn write_shared(
        &self,
        config: &Config,
        url: &str,
        file: &Path,
        files: DeployedFiles<'_>,
    ) -> Result<Backup, Failure> {
        use platform_server::app::moving;
        use platform_server::config::Secret;
        use platform_server::domain::administration::StoreCopy;

        use crate::commands::not_opened;
        use crate::commands::progress::OnStderr;

        let logs = config.postgres_logs.as_ref().map(Secret::expose);
        let logs = self.logs_from.as_deref().or(logs);
        let source = store::open_shared_rows(url, logs).await;
        let source = source.map_err(|error| match self.from {
            Some(_) => not_opened(["--from", "--logs-from"], &error),
            None => chain(&error),
        })?;
        let copy = async |folder: Arc<tempfile::TempDir>| {
            let target = store::create_embedded_rows(folder.path()).await;
            let target = target.map_err(BackupError::Create)?;
            moving::run(&*source, &*target, None, &OnStderr::new()).await?;
            Ok(StoreCopy {
                files: moving::list_files(&*source).await?,
            })
        };
        let made = backup::write(copy, files, file).await;
        made.map_err(|error: BackupError| chain(&error))
    }
}

/// Returns the message about a backup. A backup with missing files is kept, but counts as a failure.
fn told(file: &str, with_files: bool, made: Backup) -> Result<String, Failure> {
    let bytes = made.bytes;
    if !with_files {
        return Ok(format!(
            "{file}: the store, {bytes} bytes, without deployed files\n"
        ));
    }
    if made.missing > 0 {
        return Err(format!(
            "{file} is a backup, but without {} files of deployments, which are missing or damaged \
             where the platform keeps them",
            made.missing
        ));
    }
    Ok(format!(
        "{file}: the store and {} deployed files, {bytes} bytes\n",
        made.files
    ))
}
