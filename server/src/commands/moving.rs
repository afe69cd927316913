//! `platform-server move`: moves a platform from its folder into PostgreSQL and S3.

use clap::Args;
use platform_server::app::data_folder::{FolderLock, require_platform};
use platform_server::config::Config;

use crate::Failure;

#[derive(Args)]
pub(crate) struct MoveCommand {
    /// The PostgreSQL database that gets everything; it must exist and be empty
    #[arg(long, value_name = "postgres://…")]
    to: String,
    /// Another one for frontend logs
    #[arg(long, value_name = "postgres://…")]
    logs_to: Option<String>,
    /// The bucket that gets the deployed files, reached with the variables `AWS_*`. Without it they
    /// stay in their folder
    #[arg(long, value_name = "s3://bucket/prefix")]
    files: Option<String>,
    /// Go on without deployed files that are damaged or missing
    #[arg(long)]
    leave_damaged_files_out: bool,
}

impl MoveCommand {
    /// Locks the folder against servers until the returned lock is dropped.
    pub(crate) fn lock(&self, config: &Config) -> Result<FolderLock, Failure> {
        if config.postgres.is_some() {
            return Err(
                "the settings name PostgreSQL already, and this command moves the embedded store; \
                 leave PLATFORM_DATABASE_URL out, and name the new database with --to"
                    .to_owned(),
            );
        }
        for address in [Some(&self.to), self.logs_to.as_ref()]
            .into_iter()
            .flatten()
        {
            // It may contain a password, so it is not repeated.
            if !address.starts_with("postgres://") && !address.starts_with("postgresql://") {
                return Err(
                    "write --to and --logs-to as postgres://<user>:<password>@<host>/<database>"
                        .to_owned(),
                );
            }
        }
        if config.s3.is_some() && self.files.is_some() {
            return Err(
                "deployed files are in a bucket already, and stay there; leave --files out"
                    .to_owned(),
            );
        }
        require_platform(config).map_err(|error| error.to_string())?;
        FolderLock::take(config).map_err(|error| error.to_string())
    }

    /// Moves the platform, and returns what to do next.
    #[cfg(not(feature = "cluster"))]
    #[expect(clippy::unused_async, reason = "the other one waits")]
    pub(crate) async fn run(&self, _config: &Config) -> Result<String, Failure> {
        Err(platform_server::store::ConnectError::Unsupported("PostgreSQL").to_string())
    }

    /// Moves the platform, and returns what to do next.
    #[cfg(feature = "cluster")]
    pub(crate) async fn run(&self, config: &Config) -> Result<String, Failure> {
        use platform_server::app::moving::{self, FilesMove};
        use platform_server::config::load::bucket_from_process;
        use platform_server::domain::errors::chain;
        use platform_server::games::files::copies::BucketCopies;
        use platform_server::store;

        use crate::commands::not_opened;
        use crate::commands::progress::OnStderr;

        let bucket = self.files.as_deref();
        let bucket = bucket.map(|address| bucket_from_process("--files", address));
        let bucket = bucket.transpose().map_err(|error| error.to_string())?;
        let source = store::open_embedded_rows(&config.database_path()).await;
        let source = source.map_err(|error| chain(&error))?;
        let target = store::create_shared_rows(&self.to, self.logs_to.as_deref()).await;
        let target = target.map_err(|error| not_opened(["--to", "--logs-to"], &error))?;
        let bucket = match &bucket {
            None => None,
            Some(settings) => {
                let opened = BucketCopies::open(settings).await;
                Some(opened.map_err(|error| format!("--files: {}", chain(&error)))?)
            }
        };
        let folder = config.files_path();
        let files = bucket.as_ref().map(|bucket| FilesMove {
            folder: &folder,
            bucket,
            leave_bad_out: self.leave_damaged_files_out,
        });
        let done = moving::run(&*source, &*target, files, &OnStderr::new()).await;
        let done = done.map_err(|error| chain(&error))?;
        Ok(told::next(self, config, &done))
    }
}

/// What the operator is told.
#[cfg(feature = "cluster")]
mod told {
    use std::fmt::Write as _;

    use platform_server::app::moving::Done;
    use platform_server::config::names::SETTINGS;
    use platform_server::config::{Config, SaidBy};

    use super::MoveCommand;

    /// Settings that change.
    const CHANGED: [&str; 4] = ["database_url", "logs_database_url", "files_url", "data"];

    /// Returns what was moved, and what to do next.
    pub(super) fn next(command: &MoveCommand, config: &Config, done: &Done) -> String {
        let mut text = format!("moved {} rows and {} files\n", done.rows, done.files);
        for bad in &done.left_out {
            let _ = writeln!(text, "left out: {bad}");
        }
        text.push_str("\nGive every node these settings:\n");
        text.push_str("  PLATFORM_DATABASE_URL=<the address after --to>\n");
        if command.logs_to.is_some() {
            text.push_str("  PLATFORM_LOGS_DATABASE_URL=<the address after --logs-to>\n");
        }
        match (&command.files, &config.s3) {
            (Some(bucket), _) => {
                let _ = writeln!(
                    text,
                    "  PLATFORM_FILES_URL={bucket} and the variables AWS_* of this command"
                );
            }
            (None, Some(_)) => {
                text.push_str("  PLATFORM_FILES_URL and the variables AWS_* as before\n");
            }
            (None, None) => {
                let folder = config.files_path();
                let _ = writeln!(
                    text,
                    "  PLATFORM_FILES_URL=file://{} for one node; several nodes need a bucket \
                     (--files)",
                    folder.display()
                );
            }
        }
        text.push_str("  PLATFORM_DATA=<a new folder on each node>\n");
        if !config.said_by.contains_key("redis_url") {
            text.push_str("  PLATFORM_REDIS_URL=<Redis> if there are several nodes\n");
        }
        if config.key_secret.is_some() {
            text.push_str("  PLATFORM_KEY_SECRET as before: the signing keys are sealed with it\n");
        }
        let said_by = |source| {
            let said = config.said_by.iter();
            said.filter(move |(name, by)| **by == source && !CHANGED.contains(name))
                .filter_map(|(name, _)| SETTINGS.iter().find(|setting| setting.name == *name))
                .filter(|setting| setting.name != "key_secret")
        };
        for setting in said_by(SaidBy::Variable) {
            let _ = writeln!(text, "  {} as before", setting.variable());
        }
        if said_by(SaidBy::File).next().is_some() || !config.identity_providers.is_empty() {
            text.push_str("  the file of --config as before\n");
        }
        text.push_str("\nThen start a node, and look at a game and at /admin/nodes.\n");
        if config.key_secret.is_none() {
            text.push_str(
                "The signing keys are not sealed: set PLATFORM_KEY_SECRET on every node, and run \
                 `platform-server keys reseal`.\n",
            );
        }
        let _ = writeln!(
            text,
            "Keep {} until you are sure, but start no server on it again: it would go on with the \
             old data.",
            config.data.display()
        );
        text
    }
}
