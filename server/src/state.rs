//! What every handler is handed: store, keys, clock, entropy, settings.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use uuid::Uuid;

use crate::backends::Backends;
use crate::clock::Clock;
use crate::config::Config;
use crate::console_files::ConsoleFiles;
use crate::counting::Counting;
use crate::demo_provider::DemoProvider;
use crate::deploy::Deploys;
use crate::devices::DeviceLimits;
use crate::disk::DiskFloor;
use crate::endings::Endings;
use crate::entropy::Entropy;
use crate::faces::Faces;
use crate::files::FileStore;
use crate::guests::GuestLimits;
use crate::hosting::contents::Contents;
use crate::http::asset::Asset;
use crate::http::client_address::Network;
use crate::http::limiter::Limiter;
use crate::keys::KeyRing;
use crate::live::Presence;
use crate::log_streams::LogStreams;
use crate::logs::LogLimits;
use crate::oidc::Providers;
use crate::origin::PlatformOrigin;
use crate::page_warnings::PageWarnings;
use crate::refusals::RefusalLimits;
use crate::runtime::RuntimeFiles;
use crate::settings_limits::SettingsLimits;
use crate::sites::Sites;
use crate::store::{Store, StoreError};
use crate::suspensions::Suspensions;
use crate::tokens::GameTokens;

/// The parts of the running platform. One allocation, so that handing it to a
/// handler costs one count.
#[derive(Clone, Debug)]
pub struct AppState(Arc<Parts>);

/// What [`AppState`] holds.
#[derive(Debug)]
pub struct Parts {
    /// What must never be lost.
    pub store: Arc<dyn Store>,
    /// The signing keys.
    pub keys: Arc<KeyRing>,
    /// Deployed files by their content.
    pub files: Arc<FileStore>,
    /// The same as they are sent, those in use in memory.
    pub contents: Contents,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// The settings in force.
    pub config: Arc<Config>,
    /// The platform origin, resolved.
    pub origin: PlatformOrigin,
    /// `{auth_url}`, written once.
    pub auth_url: String,
    /// The socket that is listened on.
    pub listening: SocketAddr,
    /// Which games there are.
    pub sites: Sites,
    /// What the games look like in a list.
    pub faces: Faces,
    /// How their pages should load the runtime and do not.
    pub page_warnings: PageWarnings,
    /// The edge limits on guest creation.
    pub guest_limits: GuestLimits,
    /// The limit on sign-ins that begin.
    pub sign_in_limiter: Limiter<Network>,
    /// The limits on devices that sign in.
    pub device_limits: DeviceLimits,
    /// The limit on new names, for one player.
    pub rename_limiter: Limiter<Uuid>,
    /// Who signs players in.
    pub providers: Providers,
    /// The built-in provider, where there is one.
    pub demo_provider: Option<Arc<DemoProvider>>,
    /// Verifies game tokens.
    pub tokens: GameTokens,
    /// Whose tokens are still valid and no longer wanted.
    pub suspensions: Suspensions,
    /// Whose tokens are still valid and of a session that ended.
    pub endings: Endings,
    /// Who is playing.
    pub presence: Arc<dyn Presence>,
    /// What is counted of them.
    pub counting: Counting,
    /// The limits on frontend log records.
    pub log_limits: LogLimits,
    /// Who follows frontend log records.
    pub log_streams: LogStreams,
    /// `runtime.js` and its source map.
    pub runtime: RuntimeFiles,
    /// The stylesheet of the platform's own pages.
    pub stylesheet: Asset,
    /// What the console's pages for developers load.
    pub console_files: ConsoleFiles,
    /// The games' own backends.
    pub backends: Backends,
    /// The deploys on their way.
    pub deploys: Deploys,
    /// How many refusals the log of events keeps.
    pub refusal_limits: RefusalLimits,
    /// The limits on writes of projects' settings.
    pub settings_limits: SettingsLimits,
    /// How much of the disks stays free.
    pub disk: DiskFloor,
    /// The limit on calls of the project API, by player.
    pub api_limiter: Limiter<Uuid>,
}

impl AppState {
    /// Wraps the parts.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// Reads from the store which games there are, and ends what is open to the
    /// backends of those that were taken down.
    ///
    /// # Errors
    /// The store's; what was known stays so.
    pub async fn read_games(&self) -> Result<(), StoreError> {
        self.sites.refresh(&*self.store).await?;
        self.backends.follow(&self.sites);
        Ok(())
    }
}

impl Deref for AppState {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
