//! The settings: what the operator chose, checked before anything starts.
//!
//! | module | holds |
//! |---|---|
//! | [`names`] | the table of every setting, which also makes `docs/settings.md` |
//! | [`load`] | reading `platform.toml` and the environment |
//! | [`parse`] | the text of one setting into its value |
//! | [`provider`] | `[[identity_provider]]` |
//! | [`show`] | the settings in force, secrets hidden |

pub mod load;
pub mod names;
pub mod parse;
pub mod provider;
pub mod show;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use platform_protocol::limits;
use uuid::Uuid;

use crate::clock::Millis;
use crate::domain::room::RoomLimits;
use crate::origin::PlatformOrigin;
use crate::store::GuestCap;
pub use crate::web::limiter::{Period, Rate};
use provider::IdentityProvider;

/// A value that must never be shown or logged.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for the one who must use it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// Which addresses of private networks a game's backend may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrivateBackends {
    /// All of them.
    All,
    /// None.
    None,
    /// Those of these networks.
    Networks(Vec<IpNet>),
}

/// Rows of guests whose cookie has not come back, for one address and one game.
const AWAITED_GUESTS: u32 = 32;

/// What a setting was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaidBy {
    /// The file that `--config` names.
    File,
    /// The environment.
    Variable,
}

/// Every setting, with the value in force.
#[derive(Clone, Debug)]
pub struct Config {
    /// The platform origin; where none is set, `http://platform.localhost:`
    /// and the port that is listened on.
    pub origin: Option<PlatformOrigin>,
    /// The socket to listen on; port 0 picks one.
    pub listen: SocketAddr,
    /// Directory of the embedded store and of deployed files.
    pub data: PathBuf,
    /// The file of the embedded store; inside `data` where none is set.
    pub database: Option<PathBuf>,
    /// The directory of deployed files; inside `data` where none is set.
    pub files: Option<PathBuf>,
    /// MiB of deployed files that lie in memory while they are in use, at most.
    pub file_cache_mib: u32,
    /// Networks whose forwarding headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether their `X-Forwarded-Host` is believed as well.
    pub forwarded_host: bool,
    /// Names of the cookies that a proxy or a CDN in front sets, and that are left
    /// alone.
    pub keep_cookies: Vec<String>,
    /// Where weaknesses are reported: a URI.
    pub security_contact: Option<String>,
    /// Players who may administer.
    pub admins: Vec<Uuid>,
    /// Life of a production game token, in seconds.
    pub token_seconds: u64,
    /// Guests that one address holds at one time; 0 for any number.
    pub guests_per_address: u32,
    /// Projects that one account owns at one time; 0 for any number.
    pub projects_per_account: u32,
    /// Hours after which an unused guest no longer counts as held.
    pub guest_idle_hours: u32,
    /// Edge rate limit on guest creation, per address.
    pub guest_rate: Rate,
    /// Limit on the sign-ins that one address may begin.
    pub sign_in_rate: Rate,
    /// Seconds between two heartbeats, as the runtime is told.
    pub heartbeat_seconds: u64,
    /// Frontend log records that one address may send.
    pub log_rate: Rate,
    /// Frontend log records that one environment of a project may send.
    pub log_rate_game: Rate,
    /// Bytes of frontend log requests that one address may send.
    pub log_bytes_rate: Rate,
    /// Bytes of frontend log requests that one environment of a project may
    /// send.
    pub log_bytes_rate_game: Rate,
    /// Days after which log records are swept.
    pub log_retention_days: u32,
    /// MiB that the log records of one project may take; 0 for any number.
    pub log_quota_mib: u32,
    /// MiB that the deployments of one project may take; 0 for any number.
    pub project_mib: u32,
    /// MiB that the deployments of one account may take; 0 for any number.
    pub account_mib: u32,
    /// MiB of the disk that stay free; 0 for none.
    pub disk_floor_mib: u32,
    /// Which private addresses a game's backend may have; where none is set,
    /// all under `localhost` and none elsewhere.
    pub private_backends: Option<PrivateBackends>,
    /// Seconds that a backend may take to begin its answer.
    pub backend_timeout_seconds: u64,
    /// Seconds that a backend may be silent in the middle of its answer.
    pub backend_idle_seconds: u64,
    /// Seals the private signing keys in the store, if set.
    pub key_secret: Option<Secret>,
    /// Opens those that are still sealed under the secret of before.
    pub key_secret_old: Option<Secret>,
    /// Which log lines are written, as `tracing` filter directives.
    pub log: String,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// Who signs players in.
    pub identity_providers: Vec<IdentityProvider>,
    /// Whether the demo game is deployed on an empty store under `localhost`.
    pub demo: bool,
    /// What each setting was taken from that is no default, by its name.
    pub said_by: BTreeMap<&'static str, SaidBy>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            origin: None,
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT),
            data: PathBuf::from("./data"),
            database: None,
            files: None,
            file_cache_mib: 64,
            trusted_proxies: Vec::new(),
            forwarded_host: false,
            keep_cookies: Vec::new(),
            security_contact: None,
            admins: Vec::new(),
            token_seconds: limits::TOKEN_SECONDS,
            guests_per_address: 50,
            projects_per_account: 20,
            guest_idle_hours: 24,
            guest_rate: Rate::new(60, Period::Minute, 30),
            sign_in_rate: Rate::new(600, Period::Minute, 600),
            heartbeat_seconds: limits::HEARTBEAT_SECONDS,
            log_rate: Rate::new(1_000, Period::Second, 10_000),
            log_rate_game: Rate::new(10_000, Period::Second, 50_000),
            log_bytes_rate: Rate::new(1_000_000, Period::Minute, 4_000_000),
            log_bytes_rate_game: Rate::new(20_000_000, Period::Minute, 80_000_000),
            log_retention_days: 14,
            log_quota_mib: 200,
            project_mib: 2_048,
            account_mib: 10_240,
            disk_floor_mib: 512,
            private_backends: None,
            backend_timeout_seconds: 60,
            backend_idle_seconds: 600,
            key_secret: None,
            key_secret_old: None,
            log: "info".to_owned(),
            log_format: LogFormat::Human,
            identity_providers: Vec::new(),
            demo: true,
            said_by: BTreeMap::new(),
        }
    }
}

/// The port where nothing else is set.
pub const DEFAULT_PORT: u16 = 8787;

impl Config {
    /// The file of the embedded store.
    #[must_use]
    pub fn database_path(&self) -> PathBuf {
        self.database
            .clone()
            .unwrap_or_else(|| self.data.join("platform.db"))
    }

    /// The directory of deployed files.
    #[must_use]
    pub fn files_path(&self) -> PathBuf {
        self.files
            .clone()
            .unwrap_or_else(|| self.data.join("files"))
    }

    /// Bytes of deployed files that lie in memory at most.
    #[must_use]
    pub fn file_cache_bytes(&self) -> u64 {
        u64::from(self.file_cache_mib) * 1024 * 1024
    }

    /// How long an unused guest counts as held, in milliseconds.
    #[must_use]
    pub fn guest_idle(&self) -> Millis {
        Millis::from(self.guest_idle_hours) * 60 * 60 * 1_000
    }

    /// How many guests an address may hold at `now`.
    #[must_use]
    pub fn guest_cap(&self, now: Millis) -> Option<GuestCap> {
        (self.guests_per_address > 0).then(|| GuestCap {
            guests: self.guests_per_address,
            seen_since: now - self.guest_idle(),
            awaited: AWAITED_GUESTS,
        })
    }

    /// What the log records of one project may count for, in bytes; none for
    /// any number.
    #[must_use]
    pub fn log_quota(&self) -> Option<u64> {
        (self.log_quota_mib > 0).then(|| u64::from(self.log_quota_mib) * 1024 * 1024)
    }

    /// How much the deployments of one project, and of one account, may take.
    #[must_use]
    pub fn room_limits(&self) -> RoomLimits {
        let limit = |mib: u32| (mib > 0).then(|| mebibytes(mib));
        RoomLimits {
            project: limit(self.project_mib),
            account: limit(self.account_mib),
        }
    }

    /// Bytes of the disk that stay free.
    #[must_use]
    pub fn disk_floor(&self) -> u64 {
        mebibytes(self.disk_floor_mib)
    }

    /// Whether the forwarding headers of this peer are believed.
    #[must_use]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted_proxies
            .iter()
            .any(|network| network.contains(&peer))
    }
}

fn mebibytes(mib: u32) -> u64 {
    u64::from(mib) * 1024 * 1024
}

/// A setting that stops the start: one line that names it and says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct SettingError {
    /// Which setting, as the operator wrote it.
    pub key: String,
    /// What is wrong and what to do.
    pub problem: String,
}

impl SettingError {
    /// About the setting `key`. Line breaks in `problem` become spaces.
    pub(crate) fn new(key: impl Into<String>, problem: impl fmt::Display) -> Self {
        let problem = problem.to_string();
        let words: Vec<&str> = problem.split_whitespace().collect();
        Self {
            key: key.into(),
            problem: words.join(" "),
        }
    }
}
