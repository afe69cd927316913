//! Reads the settings: defaults, then `platform.toml`, then the environment.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use config::{ConfigError, Environment, File, FileFormat, Source, Value};

use platform_protocol::command_line::LIST;
use platform_protocol::limits::LONGEST_TOKEN_SECONDS;

use super::contradiction::contradiction;
use super::names::{self, Key, SETTINGS, Setting};
use super::provider::{self, Written};
use super::{BackupPlace, Config, S3Settings, SaidBy, Secret, SettingError, otlp, parse, s3, tls};

/// How errors name the file of the settings as long as its path is not known.
const FILE: &str = "platform.toml";

/// The most slips of the keyboard in a name for which a known one is suggested.
const SLIPS: usize = 3;

/// The sizes that the cache on the disk may have in MiB: the largest file fits twice.
const DISK_CACHE: RangeInclusive<u64> = 1_024..=16 * 1_048_576;

/// Reads the settings of this process: `path`, if given, and its environment.
///
/// # Errors
/// The first invalid setting.
pub fn from_process(path: Option<&Path>) -> Result<Config, SettingError> {
    let environment = environment()?;
    let file = match path {
        None => None,
        Some(path) => Some(std::fs::read_to_string(path).map_err(|error| {
            SettingError::new(
                "--config",
                format!("cannot read {}: {error}", path.display()),
            )
        })?),
    };
    let mut config = from_parts(file.as_deref(), &environment).map_err(|error| match path {
        Some(path) if error.key == FILE => SettingError {
            key: path.display().to_string(),
            ..error
        },
        _ => error,
    })?;
    if config.cli_folder.is_none() {
        config.cli_folder = cli_beside_program();
    }
    Ok(config)
}

/// Returns the folder of the command line that a release has beside this program, if it is there.
fn cli_beside_program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?.join("cli");
    folder.join(LIST).is_file().then_some(folder)
}

/// Reads the address of a bucket, `s3://<bucket>/<prefix>`, and from the environment how to reach it.
/// `named_by` is the option or argument that has the address.
///
/// # Errors
/// What is wrong with the address or with a variable.
pub fn bucket_from_process(named_by: &str, address: &str) -> Result<S3Settings, SettingError> {
    let parsed = s3::address(address);
    let mut settings = parsed.map_err(|problem| SettingError::new(named_by, problem))?;
    s3::read_variables(&mut settings, named_by, &environment()?)?;
    Ok(settings)
}

/// Returns the environment of this process.
fn environment() -> Result<HashMap<String, String>, SettingError> {
    let variables = std::env::vars_os();
    let mut environment = HashMap::new();
    for (name, value) in variables {
        let Ok(name) = name.into_string() else {
            continue;
        };
        match value.into_string() {
            Ok(value) => drop(environment.insert(name, value)),
            Err(_) if name.starts_with(names::PREFIX) => {
                return Err(SettingError::new(name, "the value is not UTF-8 text"));
            }
            Err(_) => {}
        }
    }
    Ok(environment)
}

/// Reads the settings from the text of a `platform.toml` and from environment variables.
///
/// # Errors
/// The first invalid setting.
pub fn from_parts(
    file: Option<&str>,
    environment: &HashMap<String, String>,
) -> Result<Config, SettingError> {
    let mut config = Config::default();
    let mut providers = Vec::new();

    if let Some(text) = file {
        let values = File::from_str(text, FileFormat::Toml)
            .collect()
            .map_err(|error| SettingError::new(FILE, faulty_line(&error)))?;
        // Sorted, so that of several errors always the same one is reported.
        let mut values: Vec<(String, Value)> = values.into_iter().collect();
        values.sort_by(|one, other| one.0.cmp(&other.0));
        for (name, value) in values {
            if name == names::IDENTITY_PROVIDER {
                providers = tables(value)
                    .map_err(|problem| SettingError::new(names::IDENTITY_PROVIDER, problem))?;
                continue;
            }
            let setting = SETTINGS
                .iter()
                .find(|row| row.name == name)
                .ok_or_else(|| {
                    let meant = nearest(&name).map(|setting| setting.name.to_owned());
                    unknown(&name, meant)
                })?;
            let text = text_of(value).map_err(|problem| SettingError::new(&name, problem))?;
            // A variable takes precedence, so a value that it replaces need not be valid.
            if !environment.contains_key(&setting.variable()) {
                apply(&mut config, setting, &text)
                    .map_err(|problem| SettingError::new(&name, problem))?;
                config.said_by.insert(setting.name, SaidBy::File);
            }
        }
    }
    apply_environment(&mut config, environment)?;
    config.identity_providers = provider::check(providers, environment)?;
    provider::check_for(config.origin.as_ref(), &config.identity_providers)?;
    if let Some(settings) = &mut config.s3 {
        s3::read_variables(settings, "files_url", environment)?;
    }
    if let Some(BackupPlace::Bucket(settings)) = &mut config.backup {
        s3::read_variables(settings, "backup", environment)?;
    }
    config.otlp.service = otlp::service_name(environment);
    check_together(&config)?;
    otlp::check(&config.otlp)?;
    tls::check(&config)?;
    Ok(config)
}

/// Describes the invalid line, its content and the error. The parser's own message has several
/// lines and would be unreadable as one.
fn faulty_line(error: &ConfigError) -> String {
    let text = match error {
        ConfigError::FileParse { cause, .. } => cause.to_string(),
        other => other.to_string(),
    };
    let drawn: Option<String> = (|| {
        let mut lines = text.lines();
        let place = lines.next()?.split_once("at line ")?.1;
        let number = place.split(',').next()?;
        let source = lines.find_map(|line| line.trim_start().strip_prefix(number))?;
        let source = source.trim_start().strip_prefix('|')?.trim();
        // The rest of the line may be a secret.
        let bare = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.');
        let key = source.split_once('=').map_or("", |(key, _)| key.trim());
        let key = if key.chars().all(bare) { key } else { "" };
        let problem: Vec<&str> = lines
            .filter(|line| !line.trim_start().starts_with('|') && !line.trim().is_empty())
            .map(str::trim)
            .collect();
        (!problem.is_empty()).then(|| {
            let problem = problem.join("; ");
            match key {
                "" => format!("line {number}: {problem}"),
                key => format!("line {number}, `{key}`: {problem}"),
            }
        })
    })();
    drawn.unwrap_or_else(|| text.lines().next().unwrap_or_default().to_owned())
}

/// Returns the tables of identity providers; errors count them from one.
fn tables(value: Value) -> Result<Vec<Written>, String> {
    let tables = value
        .into_array()
        .map_err(|_| "write each provider as a table, [[identity_provider]]".to_owned())?;
    let read = |(before, table): (usize, Value)| {
        let number = before + 1;
        table.try_deserialize::<Written>().map_err(|error| {
            let error = match error {
                ConfigError::At { error, .. } => *error,
                other => other,
            };
            match error {
                ConfigError::NotFound(member) => {
                    format!("identity provider {number} has no `{member}`")
                }
                other => format!("identity provider {number}: {other}"),
            }
        })
    };
    tables.into_iter().enumerate().map(read).collect()
}

fn apply_environment(
    config: &mut Config,
    environment: &HashMap<String, String>,
) -> Result<(), SettingError> {
    let ours = environment
        .iter()
        .filter(|(name, _)| name.starts_with(names::PREFIX))
        .filter(|(name, _)| !names::OF_THE_CLI.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let values = Environment::with_prefix("PLATFORM")
        .prefix_separator("_")
        .keep_prefix(true)
        .source(Some(ours))
        .collect()
        .map_err(|error| SettingError::new("environment", error))?;
    let mut values: Vec<(String, Value)> = values.into_iter().collect();
    values.sort_by(|one, other| one.0.cmp(&other.0));
    for (name, value) in values {
        let variable = name.to_ascii_uppercase();
        let setting = SETTINGS
            .iter()
            .find(|row| row.variable() == variable)
            .ok_or_else(|| unknown(&variable, nearest(&name).map(Setting::variable)))?;
        let text = text_of(value).map_err(|problem| SettingError::new(&variable, problem))?;
        apply(config, setting, &text).map_err(|problem| SettingError::new(&variable, problem))?;
        config.said_by.insert(setting.name, SaidBy::Variable);
    }
    Ok(())
}

/// Describes a setting that does not exist. `meant` is the one whose name is nearest.
fn unknown(name: &str, meant: Option<String>) -> SettingError {
    let problem = match meant {
        Some(meant) => format!("there is no such setting; did you mean `{meant}`?"),
        None => {
            "there is no such setting; remove it, or see `platform-server config --docs` for all \
                 that there are"
                .to_owned()
        }
    };
    SettingError::new(name, problem)
}

/// Returns the setting whose name differs from that of a setting or variable by a few slips of the
/// keyboard.
fn nearest(name: &str) -> Option<&'static Setting> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix("platform_").unwrap_or(&name);
    let distance = |setting: &&Setting| strsim::damerau_levenshtein(name, setting.name);
    let nearest = SETTINGS.iter().min_by_key(distance)?;
    // In a short word, even few slips make another one.
    (distance(&nearest) <= SLIPS.min(name.len() / 3)).then_some(nearest)
}

/// Returns a value as one text; the members of an array are joined with commas.
fn text_of(value: Value) -> Result<String, String> {
    match value.clone().into_array() {
        Ok(members) if matches!(value.kind, config::ValueKind::Array(_)) => members
            .into_iter()
            .map(|member| member.into_string().map_err(|_| wrong_kind()))
            .collect::<Result<Vec<_>, _>>()
            .map(|members| members.join(",")),
        _ => value.into_string().map_err(|_| wrong_kind()),
    }
}

fn wrong_kind() -> String {
    "write a string, a number or a list of strings".to_owned()
}

/// Parses one setting and stores it.
#[expect(clippy::too_many_lines, reason = "one line for each setting")]
fn apply(config: &mut Config, setting: &Setting, text: &str) -> Result<(), String> {
    let text = text.trim();
    if text.is_empty()
        && !matches!(
            setting.key,
            Key::TrustedProxies | Key::KeepCookies | Key::Admins
        )
    {
        return Err("it is empty; write a value or leave it out".to_owned());
    }
    match setting.key {
        Key::Origin => {
            config.origin = Some(text.parse().map_err(|error| format!("`{text}`: {error}"))?);
        }
        Key::GamesOrigin => {
            config.games_origin = Some(text.parse().map_err(|error| format!("`{text}`: {error}"))?);
        }
        Key::Listen => config.listen = parse::socket(text, "127.0.0.1:8787")?,
        Key::OperationsListen => {
            config.operations_listen = Some(parse::socket(text, "127.0.0.1:9090")?);
        }
        Key::Tls => config.tls.mode = parse::tls_mode(text)?,
        Key::TlsCertificates => config.tls.certificates = parse::list(text, parse::path)?,
        Key::TlsKeys => config.tls.keys = parse::list(text, parse::path)?,
        Key::RedirectListen => {
            config.tls.redirect_listen = Some(parse::socket(text, "0.0.0.0:80")?);
        }
        Key::AcmeDirectory => config.tls.acme.directory = parse::acme_directory(text)?,
        Key::AcmeEmail => config.tls.acme.email = Some(parse::email(text)?),
        Key::AcmeCa => config.tls.acme.ca = Some(text.into()),
        Key::AcmeOrdersPerHour => {
            config.tls.acme.orders_per_hour = parse::number(text, 1..=10_000)?;
        }
        Key::AcmeDnsCommand => config.tls.acme.dns_command = Some(text.into()),
        Key::AcmeEabKid => config.tls.acme.eab_kid = Some(text.to_owned()),
        Key::AcmeEabKey => config.tls.acme.eab_key = Some(parse::eab_key(text)?),
        Key::ShutdownDelaySeconds => {
            config.shutdown_delay_seconds = Some(parse::number(text, 0..=300)?);
        }
        Key::Data => config.data = text.into(),
        Key::DatabaseUrl => apply_database(config, text)?,
        Key::LogsDatabaseUrl if parse::is_postgres(text) => {
            config.postgres_logs = Some(Secret::new(text.to_owned()));
        }
        Key::LogsDatabaseUrl => {
            return Err("write postgres://<user>:<password>@<host>/<database>".to_owned());
        }
        Key::RedisUrl => config.redis = Some(parse::redis(text)?),
        Key::FilesUrl => apply_files(config, text)?,
        Key::Backup => config.backup = Some(backup_place(text)?),
        Key::BackupHours => config.backup_hours = parse::number(text, 1..=8_760)?,
        Key::BackupsKept => config.backups_kept = parse::number(text, 1..=10_000)?,
        Key::FileDiskCacheMib => config.file_disk_cache_mib = parse::number(text, DISK_CACHE)?,
        Key::DemoFolder => config.demo_folder = Some(text.into()),
        Key::FileCacheMib => config.file_cache_mib = parse::number(text, 0..=1_048_576)?,
        Key::CliFolder => config.cli_folder = Some(text.into()),
        Key::TrustedProxies => config.trusted_proxies = parse::list(text, parse::network)?,
        Key::ForwardedHost => config.forwarded_host = parse::boolean(text)?,
        Key::Resolver => config.resolver = parse::list(text, parse::dns_server)?,
        Key::DomainAddresses => config.domain_addresses = parse::list(text, parse::network)?,
        Key::KeepCookies => config.keep_cookies = parse::list(text, parse::foreign_cookie)?,
        Key::SecurityContact => config.security_contact = Some(parse::contact(text)?),
        Key::Admins => {
            config.admins = parse::list(text, |id| {
                id.parse()
                    .map_err(|_| format!("`{id}` is not a player's id (`sub`), which is a UUID"))
            })?;
        }
        Key::TokenSeconds => config.token_seconds = parse::number(text, 5..=LONGEST_TOKEN_SECONDS)?,
        Key::VerifiedTokens => config.verified_tokens = parse::number(text, 1..=100_000_000)?,
        Key::GuestsPerAddress => {
            config.guests_per_address = parse::number(text, 0..=1_000_000_000)?;
        }
        Key::ProjectsPerAccount => {
            config.projects_per_account = parse::number(text, 0..=1_000_000_000)?;
        }
        Key::GuestIdleHours => config.guest_idle_hours = parse::number(text, 1..=8_760)?,
        Key::GuestRate => config.guest_rate = parse::rate(text)?,
        Key::SignInRate => config.sign_in_rate = parse::rate(text)?,
        Key::HeartbeatSeconds => config.heartbeat_seconds = parse::number(text, 1..=75)?,
        Key::LogRate => config.log_rate = parse::rate(text)?,
        Key::LogRateGame => config.log_rate_game = parse::rate(text)?,
        Key::LogBytesRate => config.log_bytes_rate = parse::rate(text)?,
        Key::LogBytesRateGame => config.log_bytes_rate_game = parse::rate(text)?,
        Key::LogRetentionDays => config.log_retention_days = parse::number(text, 1..=3_650)?,
        Key::EventRetentionDays => config.event_retention_days = parse::event_days(text)?,
        Key::AddressDays => config.address_days = parse::number(text, 1..=365)?,
        Key::LogQuotaMib => config.log_quota_mib = parse::number(text, 0..=1_000_000_000)?,
        Key::ProjectMib => config.project_mib = parse::number(text, 0..=1_000_000_000)?,
        Key::AccountMib => config.account_mib = parse::number(text, 0..=1_000_000_000)?,
        Key::DiskFloorMib => config.disk_floor_mib = parse::number(text, 0..=1_000_000_000)?,
        Key::OverloadMillis => config.overload_millis = parse::number(text, 0..=10_000)?,
        Key::PrivateBackends => config.private_backends = Some(parse::private_backends(text)?),
        Key::BackendTimeoutSeconds => {
            config.backend_timeout_seconds = parse::number(text, 1..=3_600)?;
        }
        Key::BackendIdleSeconds => config.backend_idle_seconds = parse::number(text, 1..=86_400)?,
        Key::KeySecret => config.key_secret = Some(parse::secret(text)?),
        Key::KeySecretOld => config.key_secret_old = Some(parse::secret(text)?),
        Key::Log => config.log = parse::log_filter(text)?,
        Key::LogFormat => config.log_format = parse::log_format(text)?,
        Key::OtlpEndpoint => config.otlp.endpoint = Some(otlp::endpoint(text)?),
        Key::OtlpHeaders => config.otlp.headers = otlp::headers(text)?,
        Key::TraceSample => config.otlp.sample = otlp::share(text)?,
    }
    Ok(())
}

/// Sets the address of the store, which has two forms.
fn apply_database(config: &mut Config, text: &str) -> Result<(), String> {
    (config.postgres, config.database) = if parse::is_postgres(text) {
        (Some(Secret::new(text.to_owned())), None)
    } else {
        let path = parse::path_url(text, "sqlite")
            .map_err(|error| format!("{error}, or postgres://<user>:<password>@<host>/<database>"));
        (None, Some(path?))
    };
    Ok(())
}

/// Deployed files are in one place only.
fn apply_files(config: &mut Config, text: &str) -> Result<(), String> {
    if text.starts_with("s3://") {
        config.s3 = Some(s3::address(text)?);
        config.files = None;
    } else {
        config.files = Some(parse::path_url(text, "file")?);
        config.s3 = None;
    }
    Ok(())
}

/// Returns the place of backups, which has two forms.
fn backup_place(text: &str) -> Result<BackupPlace, String> {
    match text.split_once("://") {
        Some(("s3", _)) => Ok(BackupPlace::Bucket(s3::address(text)?)),
        Some(_) => Err("write the path of a folder, or s3://<bucket>/<prefix>".to_owned()),
        None => Ok(BackupPlace::Folder(text.into())),
    }
}

/// Checks that backups can be made, and that they are not among what is backed up.
fn check_backups(config: &Config) -> Result<(), SettingError> {
    let wrong = |others: &[&'static str], problem: &str| {
        let names = [&["backup"][..], others].concat();
        Err(contradiction(config, &names, problem))
    };
    let Some(place) = &config.backup else {
        return Ok(());
    };
    if config.postgres.is_some() {
        return wrong(
            &["database_url"],
            "the store is in PostgreSQL, whose own tools make backups of it all the time; leave it \
             out, and see docs/several-nodes.md",
        );
    }
    match place {
        BackupPlace::Folder(folder)
            if *folder == config.data || folder.starts_with(config.files_path()) =>
        {
            wrong(
                &["data", "files_url"],
                "the server keeps other files there; use a folder of its own",
            )
        }
        BackupPlace::Bucket(_) if cfg!(not(feature = "cluster")) => wrong(
            &[],
            "this program was built without S3; use the program of a release, or write the path of \
             a folder",
        ),
        _ => Ok(()),
    }
}

/// Checks that players' browsers can go from the games' origin to the platform's and back.
fn check_games_origin(config: &Config) -> Result<(), SettingError> {
    let Some(games) = &config.games_origin else {
        return Ok(());
    };
    let origin = config.origin.as_ref();
    let problem = match origin {
        Some(origin) if origin.is_secure() != games.is_secure() => {
            "it has another scheme than origin; use https for both, or plain http for both under \
             localhost"
        }
        None if games.is_secure() => "set origin to an https address as well",
        Some(origin) if origin.host() != games.host() && games.holds(origin.host()) => {
            "the platform origin is below it, so that the address of a game could be the \
             platform's; use a name that is not a parent of origin"
        }
        Some(origin) if games.host() == origin.host() && games.port() != origin.port() => {
            "it has the host of origin, but another port; leave it out, or use another host"
        }
        Some(origin) if games.holds(&format!("auth.{}", origin.host())) && games != origin => {
            "it is the address of the auth service; use another host"
        }
        _ => return Ok(()),
    };
    Err(contradiction(config, &["games_origin", "origin"], problem))
}

/// Checks combinations of settings that are valid on their own.
fn check_together(config: &Config) -> Result<(), SettingError> {
    check_backups(config)?;
    check_games_origin(config)?;
    if config.postgres_logs.is_some() && config.postgres.is_none() {
        return Err(contradiction(
            config,
            &["logs_database_url", "database_url"],
            "the embedded store keeps its logs in logs.db; set database_url to a PostgreSQL \
             database as well, or leave it out",
        ));
    }
    if config.s3.is_none() && config.database_path() == config.files_path() {
        return Err(contradiction(
            config,
            &["files_url", "database_url"],
            "it is the path of database_url; use a separate directory",
        ));
    }
    if config
        .operations_listen
        .is_some_and(|socket| socket.port() != 0 && socket == config.listen)
    {
        return Err(contradiction(
            config,
            &["operations_listen", "listen"],
            "it is the socket of listen, which visitors reach; use one of its own",
        ));
    }
    if config.key_secret_old.is_some() && config.key_secret.is_none() {
        return Err(contradiction(
            config,
            &["key_secret_old", "key_secret"],
            "it is only needed to change key_secret; set key_secret as well, or move this value to key_secret",
        ));
    }
    if config.forwarded_host && config.trusted_proxies.is_empty() {
        return Err(contradiction(
            config,
            &["forwarded_host", "trusted_proxies"],
            "without trusted_proxies, no proxy is trusted; list your proxies there",
        ));
    }
    let everyone = config
        .trusted_proxies
        .iter()
        .find(|network| network.prefix_len() == 0);
    if let Some(network) = everyone {
        return Err(contradiction(
            config,
            &["trusted_proxies"],
            format!(
                "{network} contains every address, so anybody could fake a client address; list \
                 your proxies"
            ),
        ));
    }
    Ok(())
}
