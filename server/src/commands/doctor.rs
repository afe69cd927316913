//! `platform-server doctor`: what is wrong with the platform, and what to do.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use platform_server::app::doctor::{Patient, as_json, as_text, count_wrong, examine};
use platform_server::clock::SystemClock;
use platform_server::config::Config;
use platform_server::entropy::SystemEntropy;
use platform_server::platform::disk::SystemDisk;

use crate::Failure;

#[derive(Args)]
pub(crate) struct DoctorCommand {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
    /// A folder of backups, or the newest backup, in place of PLATFORM_BACKUP: say how old it is
    #[arg(long, value_name = "folder")]
    backups: Option<PathBuf>,
}

impl DoctorCommand {
    /// Looks at everything. Returns what was found, and a failure if something is wrong.
    pub(crate) async fn run(self, config: &Config) -> (String, Result<(), Failure>) {
        let patient = Patient {
            config,
            backups: self.backups,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            disk: Arc::new(SystemDisk),
        };
        let findings = examine(&patient).await;
        let text = if self.json {
            as_json(&findings)
        } else {
            as_text(&findings)
        };
        let ended = match count_wrong(&findings) {
            0 => Ok(()),
            1 => Err("one part of the platform does not work".to_owned()),
            wrong => Err(format!("{wrong} parts of the platform do not work")),
        };
        (text, ended)
    }
}
