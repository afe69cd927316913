//! `platform-server keys …`: the signing keys, also while the server runs.

use std::sync::Arc;

use clap::{ArgGroup, Subcommand};
use platform_server::app::data_folder::{FolderLock, require_platform};
use platform_server::app::start::{open_keys, open_store, unread_keys};
use platform_server::app::tls::acme::kept;
use platform_server::auth::keys::{KeyError, KeyRing};
use platform_server::clock::{Clock, SystemClock};
use platform_server::config::Config;
use platform_server::domain::audit::Actor;
use platform_server::domain::errors::chain;
use platform_server::domain::key::KeyPhase;
use platform_server::entropy::{Entropy, SystemEntropy};
use platform_server::store::{SchemaPolicy, Store};

use crate::Failure;

/// What follows a new secret.
const NEXT: &str = "the server needs it from now on: give it this secret and restart it, and keep a copy apart from the \
                    backups\n";

#[derive(Subcommand)]
pub(crate) enum KeysCommand {
    /// List the keys and what each does now
    List,
    /// Publish a new key, which signs 21 minutes later
    Rotate,
    /// Take back a key that somebody else may know: it is gone from the key set
    /// at once, and a new key signs
    #[command(group = ArgGroup::new("which").required(true).args(["kid", "unreadable"]))]
    Revoke {
        /// Which key, as `keys list` shows it
        // Some begin with a hyphen.
        #[arg(allow_hyphen_values = true)]
        kid: Option<String>,
        /// Every key that cannot be read with `PLATFORM_KEY_SECRET` and `PLATFORM_KEY_SECRET_OLD`,
        /// because the secret that sealed it is lost. The server must be stopped
        #[arg(long)]
        unreadable: bool,
    },
    /// Seal every key in the store, also those of certificates, under
    /// `PLATFORM_KEY_SECRET`; where keys lie sealed under another secret, that one is `PLATFORM_KEY_SECRET_OLD`
    Reseal,
}

impl KeysCommand {
    /// Runs the command and returns its output.
    pub(crate) async fn run(self, config: &Config) -> Result<String, Failure> {
        let failed = |error: KeyError| chain(&error);
        if let Self::Revoke { kid: None, .. } = self {
            return revoke_unreadable(config).await;
        }
        let (ring, store) = open(config).await?;
        Ok(match self {
            Self::List => list(&ring),
            Self::Rotate => {
                let kid = ring.rotate(Actor::Operator).await.map_err(failed)?;
                format!("{kid} is published, and signs in 21 minutes\n")
            }
            Self::Revoke { kid, .. } => {
                let kid = kid.unwrap_or_default();
                let next = ring.revoke(&kid, Actor::Operator).await.map_err(failed)?;
                let signs = next.map_or_else(String::new, |next| format!("{next} signs now. "));
                format!(
                    "{kid} is revoked. {signs}A running server stops using it within 3 seconds, \
                     games' backends within 10 minutes\n"
                )
            }
            Self::Reseal => {
                let signing = ring.reseal().await.map_err(failed)?;
                let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
                let others = kept::reseal(config, &*store, &entropy).await;
                match signing + others.map_err(|error| chain(&error))? {
                    0 => "every key was sealed under PLATFORM_KEY_SECRET before\n".to_owned(),
                    1 => format!("1 key is sealed under PLATFORM_KEY_SECRET now; {NEXT}"),
                    keys => {
                        format!("{keys} keys are sealed under PLATFORM_KEY_SECRET now; {NEXT}")
                    }
                }
            }
        })
    }
}

/// Revokes the keys that the settings do not open. A server that has read them could go on signing with
/// them, so none may run.
async fn revoke_unreadable(config: &Config) -> Result<String, Failure> {
    require_platform(config).map_err(|error| error.to_string())?;
    let _lock = FolderLock::take(config).map_err(|error| error.to_string())?;
    let store = open_store(config, SchemaPolicy::Refuse).await;
    let store = store.map_err(|error| chain(&error))?;
    let (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) =
        (Arc::new(SystemClock), Arc::new(SystemEntropy));
    let revoked = async {
        let ring = unread_keys(config, &store, &clock, &entropy)?;
        ring.revoke_unreadable(Actor::Operator).await
    };
    let revoked = revoked.await;
    store.close().await.map_err(|error| chain(&error))?;
    let revoked = revoked.map_err(|error| chain(&error))?;
    Ok(match &revoked[..] {
        [] => "these settings open every key; none was revoked\n".to_owned(),
        kids => format!(
            "revoked, because these settings do not open them: {}. Start the server; games' backends follow within 10 \
             minutes. Certificates of ACME are obtained anew\n",
            kids.join(", ")
        ),
    })
}

async fn open(config: &Config) -> Result<(Arc<KeyRing>, Arc<dyn Store>), Failure> {
    require_platform(config).map_err(|error| error.to_string())?;
    let store = open_store(config, SchemaPolicy::Refuse)
        .await
        .map_err(|error| chain(&error))?;
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
    let ring = open_keys(config, Arc::clone(&store), clock, entropy).await;
    Ok((ring.map_err(|error| chain(&error))?, store))
}

fn list(ring: &KeyRing) -> String {
    let now = SystemClock.now();
    let line = |key: platform_server::auth::keys::KeyInfo| {
        let phase = match key.phase {
            KeyPhase::Published => {
                format!("published, signs in {}", minutes(key.signs_from - now))
            }
            KeyPhase::Signing => "signing".to_owned(),
            KeyPhase::Retiring => "retiring, verifies older tokens".to_owned(),
            KeyPhase::Gone => "gone".to_owned(),
        };
        let sealed = if key.sealed { ", sealed" } else { "" };
        format!("{}  {phase}{sealed}\n", key.kid)
    };
    ring.list().into_iter().map(line).collect()
}

/// Formats a time in whole minutes, rounded up, so that it is never too short.
fn minutes(millis: i64) -> String {
    match millis.max(0).saturating_add(59_999) / 60_000 {
        1 => "1 minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    }
}
