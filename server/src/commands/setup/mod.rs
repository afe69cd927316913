//! `platform-server setup`: makes the settings of a platform that speaks TLS itself, on a machine with the
//! Debian package; starts it, waits until it has its certificates, and says what comes next.
//!
//! | module | contents |
//! |---|---|
//! | `files` | settings, secrets, and the sockets that systemd opens |
//! | `service` | starting, and waiting for certificates |

mod files;
mod service;

use std::path::Path;

use clap::Args;
use platform_server::domain::origin::{AUTH_LABEL, PlatformOrigin};
use platform_server::entropy::Entropy;

use self::files::Files;
use super::output;
use crate::Failure;

/// The name of a game that nobody has: only a wildcard record gives it an address.
const ANY_GAME: &str = "setup--looks";

#[derive(Args)]
pub(crate) struct SetupCommand {
    /// The platform's address, such as https://play.example. This name and all names below it lead to this
    /// machine
    origin: PlatformOrigin,
    /// The address at which Let's Encrypt may reach you. The platform agrees to its terms of service for you
    #[arg(long, value_name = "email")]
    acme_email: String,
}

impl SetupCommand {
    /// Runs the command and returns its output. What takes time is said on standard error meanwhile.
    ///
    /// # Errors
    /// Settings that the server would refuse, before anything is changed; a file that cannot be written;
    /// what systemd says; certificates that do not come.
    pub(crate) async fn run(self, entropy: &dyn Entropy) -> Result<String, Failure> {
        let files = Files::below(Path::new("/"));
        let made = files.make(&self.origin, &self.acme_email, entropy)?;
        let written = made.write()?;
        for name in &written {
            output::tell(&format!("platform-server: wrote {name}"));
        }
        if let Some(missing) = without_address(&self.origin).await {
            output::tell(&format!("platform-server: {missing}"));
        }
        // Also those that an interrupted command wrote.
        service::start(made.written_at()?).await?;
        output::tell(&format!(
            "platform-server: it runs; waiting for the certificates of {} and {AUTH_LABEL}.{}",
            self.origin.host(),
            self.origin.host()
        ));
        service::wait_for_certificates(made.operations, &self.origin).await?;
        Ok(next(&self.origin))
    }
}

/// Says which names have no address yet, and what to do.
async fn without_address(origin: &PlatformOrigin) -> Option<String> {
    let host = origin.host();
    let names = [
        (host.to_owned(), host.to_owned()),
        (format!("{AUTH_LABEL}.{host}"), format!("*.{host}")),
        (format!("{ANY_GAME}.{host}"), format!("*.{host}")),
    ];
    let (mut missing, mut records) = (Vec::new(), Vec::new());
    for (name, record) in names {
        if tokio::net::lookup_host((name.as_str(), 443)).await.is_err() {
            missing.push(name);
            records.push(record);
        }
    }
    records.dedup();
    (!missing.is_empty()).then(|| {
        format!(
            "{} has no address yet; add a record of {} at your name server (A, AAAA or CNAME)",
            missing.join(", "),
            records.join(" and of ")
        )
    })
}

/// Says what comes next.
fn next(origin: &PlatformOrigin) -> String {
    format!(
        "{origin} serves visitors. Next, make a project with a deploy token:\n\
         platformctl project create <name> --deploy-token\n"
    )
}
