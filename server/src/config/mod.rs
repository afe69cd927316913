//! The settings of the operator, validated before anything starts.
//!
//! | module | contents |
//! |---|---|
//! | `contradiction` | errors of settings that are valid on their own and not together |
//! | [`names`] | the table of all settings, from which `docs/settings.md` is generated |
//! | [`load`] | reading `platform.toml` and the environment |
//! | [`parse`] | parsing of the values |
//! | [`provider`] | `[[identity_provider]]` |
//! | [`otlp`] | where traces and log lines are sent |
//! | [`redis`] | the address of Redis |
//! | `s3` | the bucket of deployed files |
//! | [`tls`] | TLS of the platform's own |
//! | [`show`] | output of the effective settings, without secrets |

mod contradiction;
pub mod load;
pub mod names;
pub mod otlp;
pub mod parse;
pub mod provider;
pub mod redis_place;
mod s3;
mod services;
pub mod show;
pub mod tls;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use platform_protocol::limits;
use uuid::Uuid;

use crate::clock::Millis;
use crate::domain::retention::Retention;
use crate::domain::room::RoomLimits;
use crate::origin::PlatformOrigin;
use crate::store::GuestCap;
pub use crate::web::limiter::{Period, Rate};
use otlp::OtlpSettings;
pub use platform_domain::secret::Secret;
use platform_openid::IdentityProvider;
pub use services::Service;
use tls::TlsSettings;

/// A bucket of deployed files.
#[derive(Clone, Debug, Default)]
pub struct S3Settings {
    /// The bucket.
    pub bucket: String,
    /// What the names of its objects begin with; may be empty.
    pub prefix: String,
    /// The variables `AWS_*` of the environment: endpoint, region, keys.
    pub variables: BTreeMap<String, Secret>,
}

impl S3Settings {
    /// Returns the address of the S3 server; `None` for AWS.
    #[must_use]
    pub fn endpoint(&self) -> Option<&str> {
        let names = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
        let mut found = names.iter().filter_map(|name| self.variables.get(*name));
        found.next().map(Secret::expose)
    }
}

/// Where the server keeps the backups that it makes by itself.
#[derive(Clone, Debug)]
pub enum BackupPlace {
    /// A folder.
    Folder(PathBuf),
    /// A bucket.
    Bucket(S3Settings),
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Human-readable.
    #[default]
    Human,
    /// One JSON object per line.
    Json,
}

/// The private addresses that a game's backend may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrivateBackends {
    /// All of them.
    All,
    /// None.
    None,
    /// Addresses in these networks.
    Networks(Vec<IpNet>),
}

/// The maximum number of rows of guests whose cookie has not come back, for one address and one
/// game, if the address may not hold more guests than that.
const AWAITED_GUESTS: u32 = 32;
/// For how long a new guest counts against the limit of its game although its cookie has not come
/// back. A browser brings it back after five seconds.
const NEW_GUEST_PERIOD: Millis = 2 * 60 * 1_000;

/// The source of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaidBy {
    /// The file that `--config` names.
    File,
    /// The environment.
    Variable,
}

/// All settings with their effective values.
#[derive(Clone, Debug)]
pub struct Config {
    /// The platform origin; the default is `http://platform.localhost:` and the port of `listen`.
    pub origin: Option<PlatformOrigin>,
    /// The origin below which games have their addresses, if it is not the platform origin.
    pub games_origin: Option<PlatformOrigin>,
    /// The socket to listen on; port 0 picks one.
    pub listen: SocketAddr,
    /// The socket for health checks; without one, there are none.
    pub operations_listen: Option<SocketAddr>,
    /// TLS of the platform's own.
    pub tls: TlsSettings,
    /// Seconds from the signal to stop until connections are closed, if configured.
    pub shutdown_delay_seconds: Option<u64>,
    /// The directory of the embedded store and of deployed files.
    pub data: PathBuf,
    /// The file of the embedded store; the default is inside `data`.
    pub database: Option<PathBuf>,
    /// The address of the store in PostgreSQL, instead of the embedded store.
    pub postgres: Option<Secret>,
    /// The address of a separate PostgreSQL database for frontend logs.
    pub postgres_logs: Option<Secret>,
    /// The address of the Redis that several nodes share.
    pub redis: Option<Secret>,
    /// The directory of deployed files; the default is inside `data`.
    pub files: Option<PathBuf>,
    /// The bucket of deployed files, instead of a directory.
    pub s3: Option<S3Settings>,
    /// Where backups are kept that the server makes by itself.
    pub backup: Option<BackupPlace>,
    /// Hours from one of them to the next.
    pub backup_hours: u32,
    /// How many of them are kept.
    pub backups_kept: u32,
    /// The directory of the demo game's scores; the default is inside `data`.
    pub demo_folder: Option<PathBuf>,
    /// The maximum size of the cache of a bucket's files on the disk, in MiB.
    pub file_disk_cache_mib: u64,
    /// The maximum size of the cache of deployed files, in MiB.
    pub file_cache_mib: u32,
    /// The folder of the command line that the platform hands out, if there is one.
    pub cli_folder: Option<PathBuf>,
    /// Networks of trusted proxies, whose forwarding headers are used.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether their `X-Forwarded-Host` is used as well.
    pub forwarded_host: bool,
    /// The DNS servers that are asked about games' own domains; none for the system's.
    pub resolver: Vec<SocketAddr>,
    /// The addresses to which games' own domains may lead; none for those of games' addresses.
    pub domain_addresses: Vec<IpNet>,
    /// Names of cookies that a proxy or a CDN in front sets, and that are left alone.
    pub keep_cookies: Vec<String>,
    /// Where to report vulnerabilities: a URI.
    pub security_contact: Option<String>,
    /// Players who are administrators.
    pub admins: Vec<Uuid>,
    /// The lifetime of a production game token, in seconds.
    pub token_seconds: u64,
    /// The maximum number of tokens that are remembered as verified.
    pub verified_tokens: u64,
    /// The maximum number of guests per address; 0 for no limit.
    pub guests_per_address: u32,
    /// The maximum number of projects per account; 0 for no limit.
    pub projects_per_account: u32,
    /// Hours after which an unused guest no longer counts for its address.
    pub guest_idle_hours: u32,
    /// The rate limit on guest creation per address.
    pub guest_rate: Rate,
    /// The rate limit on starting sign-ins per address.
    pub sign_in_rate: Rate,
    /// Seconds between two heartbeats of the runtime.
    pub heartbeat_seconds: u64,
    /// The rate limit on frontend log records per address.
    pub log_rate: Rate,
    /// The rate limit on frontend log records per environment of a project.
    pub log_rate_game: Rate,
    /// The rate limit on bytes of frontend log requests per address.
    pub log_bytes_rate: Rate,
    /// The rate limit on bytes of frontend log requests per environment of a project.
    pub log_bytes_rate_game: Rate,
    /// Days after which log records are swept.
    pub log_retention_days: u32,
    /// Security events older than this are swept; 0 keeps them.
    pub event_retention_days: u32,
    /// Addresses older than this are shortened.
    pub address_days: u32,
    /// The maximum size of the log records of one project, in MiB; 0 for no limit.
    pub log_quota_mib: u32,
    /// The maximum size of the deployments of one project, in MiB; 0 for no limit.
    pub project_mib: u32,
    /// The maximum size of the deployments of one account, in MiB; 0 for no limit.
    pub account_mib: u32,
    /// The disk space that must stay free, in MiB; 0 for none.
    pub disk_floor_mib: u32,
    /// How long requests wait for a processor, in milliseconds, when the server counts as
    /// overloaded; 0 for never.
    pub overload_millis: u32,
    /// The private addresses that a game's backend may have; the default is all under `localhost`
    /// and none elsewhere.
    pub private_backends: Option<PrivateBackends>,
    /// Seconds that a backend may take to begin its response.
    pub backend_timeout_seconds: u64,
    /// Seconds that a backend may pause during its response.
    pub backend_idle_seconds: u64,
    /// Seals the private signing keys in the store, if set.
    pub key_secret: Option<Secret>,
    /// Opens keys that are still sealed with the previous secret.
    pub key_secret_old: Option<Secret>,
    /// The log filter, as `tracing` directives.
    pub log: String,
    /// The format of log lines.
    pub log_format: LogFormat,
    /// Where traces and log lines are sent.
    pub otlp: OtlpSettings,
    /// The identity providers.
    pub identity_providers: Vec<IdentityProvider>,
    /// Whether the demo game is deployed on an empty store under `localhost`. A program
    /// without the feature `demo` has none.
    pub demo: bool,
    /// The source of each setting that is not a default, by its name.
    pub said_by: BTreeMap<&'static str, SaidBy>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            origin: None,
            games_origin: None,
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT),
            operations_listen: None,
            tls: TlsSettings::default(),
            shutdown_delay_seconds: None,
            data: PathBuf::from("./data"),
            database: None,
            postgres: None,
            postgres_logs: None,
            redis: None,
            files: None,
            s3: None,
            file_disk_cache_mib: 4_096,
            backup: None,
            backup_hours: 24,
            backups_kept: 7,
            demo_folder: None,
            file_cache_mib: 64,
            cli_folder: None,
            trusted_proxies: Vec::new(),
            forwarded_host: false,
            resolver: Vec::new(),
            domain_addresses: Vec::new(),
            keep_cookies: Vec::new(),
            security_contact: None,
            admins: Vec::new(),
            token_seconds: limits::TOKEN_SECONDS,
            verified_tokens: 200_000,
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
            event_retention_days: 0,
            address_days: 30,
            log_quota_mib: 200,
            project_mib: 2_048,
            account_mib: 10_240,
            disk_floor_mib: 512,
            overload_millis: 0,
            private_backends: None,
            backend_timeout_seconds: 60,
            backend_idle_seconds: 600,
            key_secret: None,
            key_secret_old: None,
            log: "info".to_owned(),
            log_format: LogFormat::Human,
            otlp: OtlpSettings::default(),
            identity_providers: Vec::new(),
            demo: true,
            said_by: BTreeMap::new(),
        }
    }
}

/// The default port.
pub const DEFAULT_PORT: u16 = 8787;

/// The default delay before a shutdown for servers with health checks: time for several of them,
/// which most balancers make every one or two seconds.
const SHUTDOWN_DELAY_SECONDS: u64 = 5;

impl Config {
    /// Returns the file of the embedded store.
    #[must_use]
    pub fn database_path(&self) -> PathBuf {
        self.database
            .clone()
            .unwrap_or_else(|| self.data.join("platform.db"))
    }

    /// Returns the directory of deployed files.
    #[must_use]
    pub fn files_path(&self) -> PathBuf {
        self.files
            .clone()
            .unwrap_or_else(|| self.data.join("files"))
    }

    /// Returns the directory of the demo game's scores.
    #[must_use]
    pub fn demo_path(&self) -> PathBuf {
        self.demo_folder
            .clone()
            .unwrap_or_else(|| self.data.join("demo"))
    }

    /// Returns the folders that the server writes to.
    #[must_use]
    pub fn folders(&self) -> [PathBuf; 2] {
        let files = match self.s3 {
            Some(_) => self.data.clone(),
            None => self.files_path(),
        };
        [self.data.clone(), files]
    }

    /// Returns how long the server continues after the signal to stop, before it closes its
    /// connections. Without health checks no balancer would know, so the default is then 0.
    #[must_use]
    pub fn shutdown_delay(&self) -> Duration {
        let usual = match self.operations_listen {
            Some(_) => SHUTDOWN_DELAY_SECONDS,
            None => 0,
        };
        Duration::from_secs(self.shutdown_delay_seconds.unwrap_or(usual))
    }

    /// Returns the maximum size of the cache on the disk in bytes.
    #[must_use]
    pub fn file_disk_cache_bytes(&self) -> u64 {
        self.file_disk_cache_mib.saturating_mul(1024 * 1024)
    }

    /// Returns the maximum size of the cache of deployed files in bytes.
    #[must_use]
    pub fn file_cache_bytes(&self) -> u64 {
        u64::from(self.file_cache_mib) * 1024 * 1024
    }

    /// Returns the time from one backup to the next, in milliseconds.
    #[must_use]
    pub fn backup_period(&self) -> Millis {
        Millis::from(self.backup_hours) * 60 * 60 * 1_000
    }

    /// Returns how long an unused guest counts for its address, in milliseconds.
    #[must_use]
    pub fn guest_idle(&self) -> Millis {
        Millis::from(self.guest_idle_hours) * 60 * 60 * 1_000
    }

    /// Returns which events and addresses are too old at `now`.
    #[must_use]
    pub fn retention(&self, now: Millis) -> Retention {
        const DAY: Millis = 24 * 60 * 60 * 1_000;
        let addresses_before = now - Millis::from(self.address_days) * DAY;
        let events = self.event_retention_days;
        Retention {
            events_before: (events > 0).then(|| now - Millis::from(events) * DAY),
            addresses_before,
            // As long as a guest counts for its address, the address must be known.
            guests_before: addresses_before.min(now - self.guest_idle()),
        }
    }

    /// Returns the limit on guests of an address at `now`.
    #[must_use]
    pub fn guest_cap(&self, now: Millis) -> Option<GuestCap> {
        (self.guests_per_address > 0).then(|| GuestCap {
            guests: self.guests_per_address,
            seen_since: now - self.guest_idle(),
            awaited_since: now - NEW_GUEST_PERIOD,
            // Fewer rows than guests would forget new guests that still count.
            awaited: self.guests_per_address.max(AWAITED_GUESTS),
        })
    }

    /// Returns the maximum size of the log records of one project, in bytes; `None` for no limit.
    #[must_use]
    pub fn log_quota(&self) -> Option<u64> {
        (self.log_quota_mib > 0).then(|| u64::from(self.log_quota_mib) * 1024 * 1024)
    }

    /// Returns the limits on the size of the deployments of one project, and of one account.
    #[must_use]
    pub fn room_limits(&self) -> RoomLimits {
        let limit = |mib: u32| (mib > 0).then(|| mebibytes(mib));
        RoomLimits {
            project: limit(self.project_mib),
            account: limit(self.account_mib),
        }
    }

    /// Returns the number of bytes of the disk that must stay free.
    #[must_use]
    pub fn disk_floor(&self) -> u64 {
        mebibytes(self.disk_floor_mib)
    }

    /// Whether the forwarding headers of this peer are trusted.
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

/// An invalid setting, which prevents the start: one line that names it and says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct SettingError {
    /// The setting, as the operator wrote it.
    pub key: String,
    /// The error and what to do.
    pub problem: String,
}

impl SettingError {
    /// Creates an error about the setting `key`. Line breaks in `problem` become spaces.
    pub(crate) fn new(key: impl Into<String>, problem: impl fmt::Display) -> Self {
        let problem = problem.to_string();
        let words: Vec<&str> = problem.split_whitespace().collect();
        Self {
            key: key.into(),
            problem: words.join(" "),
        }
    }
}
