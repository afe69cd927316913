//! Output of the effective settings, for `platform-server config`. Secrets are hidden.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::names::{Key, SETTINGS};
use super::{BackupPlace, Config, LogFormat, Period, PrivateBackends, Rate, S3Settings, SaidBy};
use crate::origin::PlatformOrigin;

/// The replacement for a secret.
const HIDDEN: &str = "(hidden)";

/// Returns the effective settings as a `platform.toml`: defaults are resolved, secrets are hidden,
/// settings without a value are comments, and each has its source.
#[must_use]
pub fn settings_in_force(config: &Config) -> String {
    let mut page = String::new();
    for row in SETTINGS {
        // Writing to a string cannot fail.
        let from = match config.said_by.get(row.name) {
            None => "default".to_owned(),
            Some(SaidBy::File) => "the file of --config".to_owned(),
            Some(SaidBy::Variable) => row.variable(),
        };
        let _ = match value_of(config, row.key) {
            Some(value) => writeln!(page, "{} = {value}  # {from}", row.name),
            None => writeln!(page, "# {} is not set", row.name),
        };
    }
    for provider in &config.identity_providers {
        let _ = writeln!(
            page,
            "\n[[identity_provider]]\nid = {}\nname = {}\nissuer = {}\nclient_id = {}\nclient_secret = {}\nscopes = {:?}",
            quoted(&provider.id),
            quoted(&provider.name),
            quoted(&provider.issuer),
            quoted(&provider.client_id),
            quoted(HIDDEN),
            provider.scopes,
        );
    }
    page
}

/// The setting by which a node tells the others the socket of its health checks.
pub const OPERATIONS: &str = "operations_listen";

/// Settings that every node may have for itself: of its machine, and of what it logs.
const OF_A_NODE: [Key; 29] = [
    Key::Listen,
    Key::OperationsListen,
    Key::Tls,
    Key::TlsCertificates,
    Key::TlsKeys,
    Key::RedirectListen,
    Key::AcmeCa,
    Key::AcmeDnsCommand,
    Key::ShutdownDelaySeconds,
    Key::Data,
    Key::DatabaseUrl,
    Key::LogsDatabaseUrl,
    Key::FilesUrl,
    Key::Backup,
    Key::BackupHours,
    Key::BackupsKept,
    Key::DemoFolder,
    Key::FileCacheMib,
    Key::FileDiskCacheMib,
    Key::DiskFloorMib,
    Key::OverloadMillis,
    Key::CliFolder,
    Key::TrustedProxies,
    Key::Resolver,
    Key::Log,
    Key::LogFormat,
    Key::OtlpEndpoint,
    Key::OtlpHeaders,
    Key::TraceSample,
];

/// Returns the settings that must be the same on every node that shares a store, by name. Secrets
/// are hidden, so nodes with different secrets look the same.
#[must_use]
pub fn shared_settings(config: &Config) -> BTreeMap<String, String> {
    let shared = SETTINGS.iter().filter(|row| !OF_A_NODE.contains(&row.key));
    let mut settings: BTreeMap<String, String> = shared
        .map(|row| {
            let value = value_of(config, row.key);
            (row.name.to_owned(), value.unwrap_or_default())
        })
        .collect();
    for provider in &config.identity_providers {
        let name = format!("identity_provider {}", provider.id);
        let value = format!(
            "issuer = {}, client_id = {}, scopes = {:?}",
            quoted(&provider.issuer),
            quoted(&provider.client_id),
            provider.scopes
        );
        settings.insert(name, value);
    }
    settings
}

/// Returns the platform origin: the default follows from the port, unless that is only known once
/// the server listens.
fn origin(config: &Config) -> Option<PlatformOrigin> {
    let by_port = || {
        let port = config.listen.port();
        (port != 0).then(|| PlatformOrigin::local(port))
    };
    config.origin.clone().or_else(by_port)
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

fn quoted_list<T: ToString>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    format!("{values:?}")
}

fn quoted_paths(paths: &[PathBuf]) -> Option<String> {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    (!paths.is_empty()).then(|| quoted_list(&paths))
}

#[expect(clippy::too_many_lines, reason = "one line for each setting")]
fn value_of(config: &Config, key: Key) -> Option<String> {
    Some(match key {
        Key::Origin => quoted(&origin(config)?.to_string()),
        Key::GamesOrigin => match &config.games_origin {
            Some(games) => quoted(&games.to_string()),
            None => quoted(&origin(config)?.to_string()),
        },
        Key::Listen => quoted(&config.listen.to_string()),
        Key::OperationsListen => quoted(&config.operations_listen?.to_string()),
        Key::Tls => quoted(config.tls.mode.name()),
        Key::TlsCertificates => quoted_paths(&config.tls.certificates)?,
        Key::TlsKeys => quoted_paths(&config.tls.keys)?,
        Key::RedirectListen => quoted(&config.tls.redirect_listen?.to_string()),
        Key::AcmeDirectory => quoted(&config.tls.acme.directory),
        Key::AcmeEmail => quoted(config.tls.acme.email.as_ref()?),
        Key::AcmeCa => quoted(&config.tls.acme.ca.as_ref()?.display().to_string()),
        Key::AcmeOrdersPerHour => config.tls.acme.orders_per_hour.to_string(),
        Key::AcmeDnsCommand => quoted(&config.tls.acme.dns_command.as_ref()?.display().to_string()),
        Key::AcmeEabKid => quoted(config.tls.acme.eab_kid.as_ref()?),
        Key::AcmeEabKey => {
            config.tls.acme.eab_key.as_ref()?;
            quoted(HIDDEN)
        }
        Key::ShutdownDelaySeconds => config.shutdown_delay().as_secs().to_string(),
        Key::Data => quoted(&config.data.display().to_string()),
        Key::DatabaseUrl if config.postgres.is_some() => hidden_postgres(),
        Key::DatabaseUrl => quoted(&format!("sqlite://{}", config.database_path().display())),
        Key::LogsDatabaseUrl => {
            config.postgres_logs.as_ref()?;
            hidden_postgres()
        }
        Key::RedisUrl => {
            let address = config.redis.as_ref()?.expose();
            let (scheme, _) = address.split_once("://")?;
            quoted(&format!("{scheme}://{HIDDEN}"))
        }
        Key::FilesUrl if config.s3.is_some() => bucket(config.s3.as_ref()?),
        Key::FilesUrl => quoted(&format!("file://{}", config.files_path().display())),
        Key::Backup => match config.backup.as_ref()? {
            BackupPlace::Folder(folder) => quoted(&folder.display().to_string()),
            BackupPlace::Bucket(settings) => bucket(settings),
        },
        Key::BackupHours => config.backup_hours.to_string(),
        Key::BackupsKept => config.backups_kept.to_string(),
        Key::DemoFolder => quoted(&config.demo_path().display().to_string()),
        Key::FileCacheMib => config.file_cache_mib.to_string(),
        Key::FileDiskCacheMib => config.file_disk_cache_mib.to_string(),
        Key::CliFolder => quoted(&config.cli_folder.as_ref()?.display().to_string()),
        Key::TrustedProxies => quoted_list(&config.trusted_proxies),
        Key::ForwardedHost => config.forwarded_host.to_string(),
        Key::Resolver => {
            (!config.resolver.is_empty()).then_some(())?;
            quoted_list(&config.resolver)
        }
        Key::DomainAddresses => {
            (!config.domain_addresses.is_empty()).then_some(())?;
            quoted_list(&config.domain_addresses)
        }
        Key::KeepCookies => quoted_list(&config.keep_cookies),
        Key::SecurityContact => quoted(config.security_contact.as_ref()?),
        Key::Admins => quoted_list(&config.admins),
        Key::TokenSeconds => config.token_seconds.to_string(),
        Key::VerifiedTokens => config.verified_tokens.to_string(),
        Key::GuestsPerAddress => config.guests_per_address.to_string(),
        Key::ProjectsPerAccount => config.projects_per_account.to_string(),
        Key::GuestIdleHours => config.guest_idle_hours.to_string(),
        Key::GuestRate => quoted(&rate(&config.guest_rate)),
        Key::SignInRate => quoted(&rate(&config.sign_in_rate)),
        Key::HeartbeatSeconds => config.heartbeat_seconds.to_string(),
        Key::LogRate => quoted(&rate(&config.log_rate)),
        Key::LogRateGame => quoted(&rate(&config.log_rate_game)),
        Key::LogBytesRate => quoted(&rate(&config.log_bytes_rate)),
        Key::LogBytesRateGame => quoted(&rate(&config.log_bytes_rate_game)),
        Key::LogRetentionDays => config.log_retention_days.to_string(),
        Key::EventRetentionDays => config.event_retention_days.to_string(),
        Key::AddressDays => config.address_days.to_string(),
        Key::LogQuotaMib => config.log_quota_mib.to_string(),
        Key::ProjectMib => config.project_mib.to_string(),
        Key::AccountMib => config.account_mib.to_string(),
        Key::DiskFloorMib => config.disk_floor_mib.to_string(),
        Key::OverloadMillis => config.overload_millis.to_string(),
        Key::PrivateBackends => match &config.private_backends {
            Some(PrivateBackends::All) => "true".to_owned(),
            Some(PrivateBackends::None) => "false".to_owned(),
            Some(PrivateBackends::Networks(networks)) => quoted_list(networks),
            None => origin(config)
                .is_none_or(|origin| origin.is_local())
                .to_string(),
        },
        Key::BackendTimeoutSeconds => config.backend_timeout_seconds.to_string(),
        Key::BackendIdleSeconds => config.backend_idle_seconds.to_string(),
        Key::KeySecret => {
            config.key_secret.as_ref()?;
            quoted(HIDDEN)
        }
        Key::KeySecretOld => {
            config.key_secret_old.as_ref()?;
            quoted(HIDDEN)
        }
        Key::Log => quoted(&config.log),
        Key::LogFormat => quoted(match config.log_format {
            LogFormat::Human => "human",
            LogFormat::Json => "json",
        }),
        Key::OtlpEndpoint => quoted(config.otlp.endpoint.as_ref()?.as_str()),
        Key::OtlpHeaders => {
            (!config.otlp.headers.is_empty()).then_some(())?;
            quoted(HIDDEN)
        }
        Key::TraceSample => config.otlp.sample.to_string(),
    })
}

/// The address of a bucket, which has no key in it.
fn bucket(settings: &S3Settings) -> String {
    quoted(&format!("s3://{}/{}", settings.bucket, settings.prefix))
}

/// The address of a PostgreSQL database, which may contain a password.
fn hidden_postgres() -> String {
    quoted(&format!("postgres://{HIDDEN}"))
}

fn rate(rate: &Rate) -> String {
    let period = match rate.period {
        Period::Second => "s",
        Period::Minute => "m",
        Period::Hour => "h",
    };
    format!("{}/{period}, burst {}", rate.count, rate.burst)
}
