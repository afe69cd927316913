//! `platform-server backup`: one file with the store and all deployed files.

use std::path::PathBuf;

use clap::Args;
use platform_server::app::backup::{self, Backup, BackupError, DeployedFiles};
use platform_server::app::data_folder::require_platform;
use platform_server::config::Config;
use platform_server::domain::errors::chain;
#[cfg(not(feature = "cluster"))]
use platform_server::store::ConnectError;
use platform_server::store::{self, SchemaPolicy, SqliteStore};

use crate::Failure;

#[derive(Args)]
pub(crate) struct BackupCommand {
    /// The file to make
    file: PathBuf,
    /// Read PostgreSQL at this address, for example a standby, and not at that of the settings
    #[arg(long, value_name = "postgres://…")]
    from: Option<String>,
    /// Read frontend logs at this address
    #[arg(long, value_name = "postgres://…", requires = "from")]
    logs_from: Option<String>,
    /// Leave deployed files out, for example if the bucket keeps older versions
    #[arg(long)]
    without_files: bool,
}

impl BackupCommand {
    /// Makes the backup, and returns its size.
    pub(crate) async fn run(&self, config: &Config) -> Result<String, Failure> {
        let folder = config.files_path();
        if self.without_files {
            return self.write(config, DeployedFiles::LeftOut).await;
        }
        let Some(settings) = &config.s3 else {
            return self.write(config, DeployedFiles::Folder(&folder)).await;
        };
        #[cfg(feature = "cluster")]
        {
            use platform_server::games::files::copies::BucketCopies;
            let bucket = BucketCopies::open_to_read(settings);
            let bucket = bucket.map_err(|error| chain(&error))?;
            self.write(config, DeployedFiles::Bucket(&bucket)).await
        }
        #[cfg(not(feature = "cluster"))]
        {
            let _ = settings;
            Err(ConnectError::Unsupported("S3").to_string())
        }
    }

    async fn write(&self, config: &Config, files: DeployedFiles<'_>) -> Result<String, Failure> {
        let settings = config
            .postgres
            .as_ref()
            .map(platform_server::config::Secret::expose);
        let made = match self.from.as_deref().or(settings) {
            Some(url) => self.write_shared(config, url, files).await?,
            None => {
                require_platform(config).map_err(|error| error.to_string())?;
                let opened = SqliteStore::open(&config.database_path(), SchemaPolicy::Refuse).await;
                let store = opened.map_err(|error| chain(&error))?;
                let copy = async |folder| Ok(store.copy_into(folder).await?);
                let made = backup::write(copy, files, &self.file).await;
                let closed = store::Store::close(&store).await;
                closed.map_err(|error| chain(&error))?;
                made.map_err(|error: BackupError| chain(&error))?
            }
        };
        let with_files = !matches!(files, DeployedFiles::LeftOut);
        self.told(with_files, made)
    }

    #[cfg(not(feature = "cluster"))]
    #[expect(clippy::unused_async, reason = "the other one waits")]
    async fn write_shared(
        &self,
        _config: &Config,
        _url: &str,
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
        let copy = async |folder: std::sync::Arc<tempfile::TempDir>| {
            let target = store::create_embedded_rows(folder.path()).await;
            let target = target.map_err(BackupError::Create)?;
            moving::run(&*source, &*target, None, &OnStderr::new()).await?;
            Ok(StoreCopy {
                files: moving::list_files(&*source).await?,
            })
        };
        let made = backup::write(copy, files, &self.file).await;
        made.map_err(|error: BackupError| chain(&error))
    }

    /// Returns the message about a backup. A backup with missing files is kept, but counts as a
    /// failure.
    fn told(&self, with_files: bool, made: Backup) -> Result<String, Failure> {
        let (file, bytes) = (self.file.display(), made.bytes);
        if !with_files {
            return Ok(format!(
                "{file}: the store, {bytes} bytes, without deployed files\n"
            ));
        }
        if made.missing > 0 {
            return Err(format!(
                "{file} is a backup, but without {} files of deployments, which are missing or \
                 damaged where the platform keeps them",
                made.missing
            ));
        }
        Ok(format!(
            "{file}: the store and {} deployed files, {bytes} bytes\n",
            made.files
        ))
    }
}
