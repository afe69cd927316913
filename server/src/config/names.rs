//! The table of all settings: the name in `platform.toml`, the variable, the default and the
//! meaning. `docs/settings.md` is generated from it.

use std::fmt::Write as _;

/// The prefix of the variable of every setting.
pub const PREFIX: &str = "PLATFORM_";

/// Variables with our prefix that belong to the command-line tool, which may run in the same shell.
pub const OF_THE_CLI: [&str; 3] = [
    "PLATFORM_TOKEN",
    "PLATFORM_PROJECT",
    "PLATFORM_INSTALL_FOLDER",
];

/// The key of the identity providers, which can only be set in the file.
pub const IDENTITY_PROVIDER: &str = "identity_provider";

/// The identifier of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// `origin`
    Origin,
    /// `games_origin`
    GamesOrigin,
    /// `listen`
    Listen,
    /// `operations_listen`
    OperationsListen,
    /// `tls`
    Tls,
    /// `tls_certificates`
    TlsCertificates,
    /// `tls_keys`
    TlsKeys,
    /// `redirect_listen`
    RedirectListen,
    /// `acme_directory`
    AcmeDirectory,
    /// `acme_email`
    AcmeEmail,
    /// `acme_ca`
    AcmeCa,
    /// `acme_orders_per_hour`
    AcmeOrdersPerHour,
    /// `acme_dns_command`
    AcmeDnsCommand,
    /// `acme_eab_kid`
    AcmeEabKid,
    /// `acme_eab_key`
    AcmeEabKey,
    /// `shutdown_delay_seconds`
    ShutdownDelaySeconds,
    /// `data`
    Data,
    /// `database_url`
    DatabaseUrl,
    /// `logs_database_url`
    LogsDatabaseUrl,
    /// `redis_url`
    RedisUrl,
    /// `files_url`
    FilesUrl,
    /// `backup`
    Backup,
    /// `backup_hours`
    BackupHours,
    /// `backups_kept`
    BackupsKept,
    /// `demo_folder`
    DemoFolder,
    /// `file_cache_mib`
    FileCacheMib,
    /// `file_disk_cache_mib`
    FileDiskCacheMib,
    /// `cli_folder`
    CliFolder,
    /// `trusted_proxies`
    TrustedProxies,
    /// `forwarded_host`
    ForwardedHost,
    /// `resolver`
    Resolver,
    /// `domain_addresses`
    DomainAddresses,
    /// `keep_cookies`
    KeepCookies,
    /// `security_contact`
    SecurityContact,
    /// `admins`
    Admins,
    /// `token_seconds`
    TokenSeconds,
    /// `verified_tokens`
    VerifiedTokens,
    /// `guests_per_address`
    GuestsPerAddress,
    /// `projects_per_account`
    ProjectsPerAccount,
    /// `guest_idle_hours`
    GuestIdleHours,
    /// `guest_rate`
    GuestRate,
    /// `sign_in_rate`
    SignInRate,
    /// `heartbeat_seconds`
    HeartbeatSeconds,
    /// `log_rate`
    LogRate,
    /// `log_rate_game`
    LogRateGame,
    /// `log_bytes_rate`
    LogBytesRate,
    /// `log_bytes_rate_game`
    LogBytesRateGame,
    /// `log_retention_days`
    LogRetentionDays,
    /// `event_retention_days`
    EventRetentionDays,
    /// `address_days`
    AddressDays,
    /// `log_quota_mib`
    LogQuotaMib,
    /// `project_mib`
    ProjectMib,
    /// `account_mib`
    AccountMib,
    /// `disk_floor_mib`
    DiskFloorMib,
    /// `overload_millis`
    OverloadMillis,
    /// `private_backends`
    PrivateBackends,
    /// `backend_timeout_seconds`
    BackendTimeoutSeconds,
    /// `backend_idle_seconds`
    BackendIdleSeconds,
    /// `key_secret`
    KeySecret,
    /// `key_secret_old`
    KeySecretOld,
    /// `log`
    Log,
    /// `log_format`
    LogFormat,
    /// `otlp_endpoint`
    OtlpEndpoint,
    /// `otlp_headers`
    OtlpHeaders,
    /// `trace_sample`
    TraceSample,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The identifier.
    pub key: Key,
    /// Its name in `platform.toml`; its variable is the same in capitals,
    /// after [`PREFIX`].
    pub name: &'static str,
    /// The default, as it would be written in the file.
    pub default: &'static str,
    /// Its meaning, as a phrase for the documentation.
    pub meaning: &'static str,
}

impl Setting {
    /// Returns the setting's environment variable.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_ascii_uppercase())
    }
}

const fn setting(
    key: Key,
    name: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Setting {
    Setting {
        key,
        name,
        default,
        meaning,
    }
}

/// Every setting, in the order of the documentation.
pub const SETTINGS: [Setting; 65] = [
    setting(
        Key::Origin,
        "origin",
        "http://platform.localhost:8787",
        "the platform origin; every other address is a sub-domain of it. Plain http only under `localhost`. If it is not set, the port is the one that the server listens on",
    ),
    setting(
        Key::GamesOrigin,
        "games_origin",
        "the platform origin",
        "the origin below which games have their addresses, if they are to be on a site of their own, such as `https://games.example` beside `https://play.example`. Https if the platform origin is https; else both under `localhost`",
    ),
    setting(
        Key::Listen,
        "listen",
        "127.0.0.1:8787",
        "socket to listen on; port 0 picks one, and the ready line says which",
    ),
    setting(
        Key::OperationsListen,
        "operations_listen",
        "none",
        "socket for `/healthz`, `/readyz`, `/metrics` and `/certificate`, plain HTTP under any host name, for balancers, monitoring, and proxies that get certificates; keep it away from visitors",
    ),
    setting(
        Key::Tls,
        "tls",
        "off",
        "`files` or `acme`: the server itself speaks TLS on `listen`, with HTTP/2 and HTTP/1.1, with certificates from files or from an ACME server such as Let's Encrypt; `off`: a proxy in front of it does. `origin` must be https",
    ),
    setting(
        Key::TlsCertificates,
        "tls_certificates",
        "none",
        "files of certificates for `tls = files`, PEM, each with its chain; of several, the first one for the name that a visitor asks for is used. Read again every ten seconds",
    ),
    setting(
        Key::TlsKeys,
        "tls_keys",
        "none",
        "files of their private keys, PEM, in the same order",
    ),
    setting(
        Key::RedirectListen,
        "redirect_listen",
        "none",
        "socket for plain HTTP, such as `0.0.0.0:80`, on which pages are redirected to https and calls of programs refused; only with `tls`",
    ),
    setting(
        Key::AcmeDirectory,
        "acme_directory",
        "https://acme-v02.api.letsencrypt.org/directory",
        "the directory of the ACME server (RFC 8555) for `tls = acme`, https; using it means to agree to its terms of service",
    ),
    setting(
        Key::AcmeEmail,
        "acme_email",
        "none",
        "address at which the ACME server may reach the operator",
    ),
    setting(
        Key::AcmeCa,
        "acme_ca",
        "none: the machine's",
        "file of the root certificates, PEM, with which alone the ACME server itself is verified; for a private one",
    ),
    setting(
        Key::AcmeOrdersPerHour,
        "acme_orders_per_hour",
        "50",
        "the most first certificates that all nodes together order in an hour, 1 to 10,000: half for production, a quarter each for domains of games' own and for dev environments and previews, a tenth of it for one project; renewals have half as many apart",
    ),
    setting(
        Key::AcmeDnsCommand,
        "acme_dns_command",
        "none",
        "program that publishes TXT records, called as `<program> present|cleanup <name> <value>`; with it the platform gets one certificate for `origin` and all names below it",
    ),
    setting(
        Key::AcmeEabKid,
        "acme_eab_kid",
        "none",
        "for a certificate authority that wants an account of its own (external account binding): the key identifier that it gave",
    ),
    setting(
        Key::AcmeEabKey,
        "acme_eab_key",
        "none",
        "the HMAC key that it gave with `acme_eab_kid`, base64url",
    ),
    setting(
        Key::ShutdownDelaySeconds,
        "shutdown_delay_seconds",
        "5 with operations_listen, else 0",
        "seconds from the signal to stop until connections are closed, 0 to 300; `/readyz` says meanwhile that the node is not ready, so that balancers choose another one",
    ),
    setting(
        Key::Data,
        "data",
        "./data",
        "directory of the embedded store and of deployed files",
    ),
    setting(
        Key::DatabaseUrl,
        "database_url",
        "sqlite://$PLATFORM_DATA/platform.db",
        "where the store is: `sqlite://<path>`, or `postgres://<user>:<password>@<host>/<database>` in a program with the feature `cluster`, which releases have",
    ),
    setting(
        Key::LogsDatabaseUrl,
        "logs_database_url",
        "database_url; with SQLite logs.db beside it",
        "a PostgreSQL database for frontend logs alone, if `database_url` is one as well",
    ),
    setting(
        Key::RedisUrl,
        "redis_url",
        "none: in-process",
        "the Redis that several nodes share, for the number of current players and for rate limits: `redis://<user>:<password>@<host>:<port>`, `redis+cluster://<user>:<password>@<host>:<port>,<host>:<port>` for a cluster, or `redis+sentinel://<user>:<password>@<host>:<port>,<host>:<port>/<service>` for the primary that sentinels name; `rediss` for TLS; in a program with the feature `cluster`, which releases have",
    ),
    setting(
        Key::FilesUrl,
        "files_url",
        "file://$PLATFORM_DATA/files",
        "where deployed files are: `file://<path>`, or `s3://<bucket>/<prefix>` in a program with the feature `cluster`, which releases have; the variables `AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` say how to reach it",
    ),
    setting(
        Key::Backup,
        "backup",
        "none",
        "where the server keeps backups that it makes by itself, if the store is the embedded one: a folder, best on another disk, or `s3://<bucket>/<prefix>` in a program with the feature `cluster`, which releases have, reached like that of `files_url`. They contain the signing keys",
    ),
    setting(
        Key::BackupHours,
        "backup_hours",
        "24",
        "hours from one backup to the next, 1 to 8,760",
    ),
    setting(
        Key::BackupsKept,
        "backups_kept",
        "7",
        "how many backups are kept, 1 to 10,000; older ones are removed",
    ),
    setting(
        Key::DemoFolder,
        "demo_folder",
        "$PLATFORM_DATA/demo",
        "directory of the demo game's scores; several nodes on one machine can share it",
    ),
    setting(
        Key::FileCacheMib,
        "file_cache_mib",
        "64",
        "MiB of deployed files, and of those compressed for browsers, that are cached in memory",
    ),
    setting(
        Key::FileDiskCacheMib,
        "file_disk_cache_mib",
        "4096",
        "MiB of deployed files that are kept in `$PLATFORM_DATA/cache` if `files_url` is a bucket; at least 1024",
    ),
    setting(
        Key::CliFolder,
        "cli_folder",
        "cli beside the program, if it exists",
        "folder of the command line for every machine, which a release contains; the page `/cli` of the platform hands it out. It is read at the start, and its sums are checked",
    ),
    setting(
        Key::TrustedProxies,
        "trusted_proxies",
        "none",
        "networks (CIDR), separated by commas, whose `X-Forwarded-For` and `-Proto` are trusted",
    ),
    setting(
        Key::ForwardedHost,
        "forwarded_host",
        "false",
        "whether their `X-Forwarded-Host` is trusted as well; only for a proxy that cannot pass `Host` on and overwrites what a visitor wrote",
    ),
    setting(
        Key::Resolver,
        "resolver",
        "the system's",
        "the DNS servers that are asked for the records of games' own domains: addresses, separated by commas, such as `9.9.9.9` or `127.0.0.1:5353`",
    ),
    setting(
        Key::DomainAddresses,
        "domain_addresses",
        "those of games' addresses",
        "the addresses and networks (CIDR), separated by commas, to which games' own domains may lead, if names do not tell: those of a load balancer or a CDN in front",
    ),
    setting(
        Key::KeepCookies,
        "keep_cookies",
        "none",
        "exact names of cookies, separated by commas, that a proxy or a CDN in front sets on the platform's hosts (`cf_clearance`, `AWSALB`, …); the auth service and the console remove all other foreign cookies",
    ),
    setting(
        Key::SecurityContact,
        "security_contact",
        "none",
        "where to report weaknesses of this platform, `mailto:` or `https://`; it makes `/.well-known/security.txt` (RFC 9116)",
    ),
    setting(
        Key::Admins,
        "admins",
        "none",
        "player ids (`sub`), separated by commas, that may administer",
    ),
    setting(
        Key::TokenSeconds,
        "token_seconds",
        "900",
        "life of a production game token, 5 to 86,400 seconds",
    ),
    setting(
        Key::VerifiedTokens,
        "verified_tokens",
        "200000",
        "how many game tokens each server remembers as verified, in about 1 kB each: more than its players who play at the same time, or tokens are verified again with each request",
    ),
    setting(
        Key::GuestsPerAddress,
        "guests_per_address",
        "50",
        "the most guests of one address (IPv4, or IPv6 /64) at the same time; 0 for no limit",
    ),
    setting(
        Key::ProjectsPerAccount,
        "projects_per_account",
        "20",
        "the most projects of one account at the same time; 0 for no limit. Administrators have no limit",
    ),
    setting(
        Key::GuestIdleHours,
        "guest_idle_hours",
        "24",
        "after which an unused guest no longer counts as held",
    ),
    setting(
        Key::GuestRate,
        "guest_rate",
        "60/m, burst 30",
        "edge rate limit on guest creation, per address: a number per `s`, `m` or `h`, and how many at once",
    ),
    setting(
        Key::SignInRate,
        "sign_in_rate",
        "600/m, burst 600",
        "how many sign-ins one address may begin; a school or a mobile network may be one address",
    ),
    setting(
        Key::HeartbeatSeconds,
        "heartbeat_seconds",
        "30",
        "seconds between two heartbeats, as the runtime is told, 1 to 75",
    ),
    setting(
        Key::LogRate,
        "log_rate",
        "1000/s, burst 10000",
        "rate limit on frontend log records, per address; here and in the next three, those with a player's token and those without are counted apart",
    ),
    setting(
        Key::LogRateGame,
        "log_rate_game",
        "10000/s, burst 50000",
        "rate limit on frontend log records, per environment of a project",
    ),
    setting(
        Key::LogBytesRate,
        "log_bytes_rate",
        "1000000/m, burst 4000000",
        "rate limit on the bytes of frontend log requests, per address",
    ),
    setting(
        Key::LogBytesRateGame,
        "log_bytes_rate_game",
        "20000000/m, burst 80000000",
        "rate limit on the bytes of frontend log requests, per environment of a project",
    ),
    setting(
        Key::LogRetentionDays,
        "log_retention_days",
        "14",
        "log records older than this are swept",
    ),
    setting(
        Key::EventRetentionDays,
        "event_retention_days",
        "0",
        "security events older than this are swept, at least 90; 0 keeps them, except those that are kept for 90 days in any case",
    ),
    setting(
        Key::AddressDays,
        "address_days",
        "30",
        "days after which addresses are shortened to the /24 or /48, in security events, of devices and of deployments, 1 to 365; a guest's own is erased then",
    ),
    setting(
        Key::LogQuotaMib,
        "log_quota_mib",
        "200",
        "MiB that the log records of one project may take, both environments together; the oldest are removed first, those without a player's token before all others while they take more than half of it; 0 for no limit",
    ),
    setting(
        Key::ProjectMib,
        "project_mib",
        "2048",
        "MiB that the deployments of one project may take; earlier ones are removed first, then a deploy is refused; 0 for no limit",
    ),
    setting(
        Key::AccountMib,
        "account_mib",
        "10240",
        "MiB that the deployments of all projects of one account may take; 0 for no limit",
    ),
    setting(
        Key::DiskFloorMib,
        "disk_floor_mib",
        "512",
        "MiB of the disk that stay free: below it deploys and frontend logs are refused, while games keep running; 0 for no limit",
    ),
    setting(
        Key::OverloadMillis,
        "overload_millis",
        "0",
        "milliseconds that requests wait for a processor, such as 20, from which on some are refused so that the others are answered in time: logs and charts first, tokens last; 0 never refuses any, up to 10,000",
    ),
    setting(
        Key::PrivateBackends,
        "private_backends",
        "true under localhost, else false",
        "whether games' backends may have addresses of private networks, this machine's included: `true`, `false`, or the networks (CIDR), separated by commas",
    ),
    setting(
        Key::BackendTimeoutSeconds,
        "backend_timeout_seconds",
        "60",
        "seconds that a game's backend may take to begin its answer, 1 to 3,600; an upload may take longer as long as it flows",
    ),
    setting(
        Key::BackendIdleSeconds,
        "backend_idle_seconds",
        "600",
        "seconds that a game's backend may be silent in the middle of its answer, 1 to 86,400; WebSockets may be silent without a limit",
    ),
    setting(
        Key::KeySecret,
        "key_secret",
        "none",
        "seals the private signing keys in the store, at least 32 random characters; keep it, for without it sealed keys cannot be read",
    ),
    setting(
        Key::KeySecretOld,
        "key_secret_old",
        "none",
        "the key secret before `key_secret`, needed as long as keys are sealed with it; `platform-server keys reseal` seals them with the new one",
    ),
    setting(
        Key::Log,
        "log",
        "info",
        "which log lines are written, as `tracing` filter directives such as `info,platform_server=debug`",
    ),
    setting(
        Key::LogFormat,
        "log_format",
        "human",
        "how log lines are written: `human` or `json`",
    ),
    setting(
        Key::OtlpEndpoint,
        "otlp_endpoint",
        "none",
        "where traces and log lines are sent, by OpenTelemetry's OTLP over HTTP (protobuf): the address of a collector, such as `http://127.0.0.1:4318`, to which `/v1/traces` and `/v1/logs` are added. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say more of this server",
    ),
    setting(
        Key::OtlpHeaders,
        "otlp_headers",
        "none",
        "headers of these requests, such as a key of the receiver: `<name>=<value>`, separated by commas, with percent signs for what is not plain in a value",
    ),
    setting(
        Key::TraceSample,
        "trace_sample",
        "0.05",
        "the share of requests that are traced, 0 to 1, where no trusted proxy has decided it with `traceparent`",
    ),
];

/// Returns the content of `docs/settings.md`.
#[must_use]
pub fn documentation() -> String {
    let mut page = String::from(
        "# Settings\n\n\
         `platform-server serve --config platform.toml` reads the file; an environment variable wins\n\
         over it. Unknown names, unreadable values and settings that contradict each other stop the\n\
         start with one line that names the setting. `platform-server config` prints what is in force.\n\n\
         | variable | in `platform.toml` | default | meaning |\n|---|---|---|---|\n",
    );
    for row in SETTINGS {
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "| `{}` | `{}` | `{}` | {} |",
            row.variable(),
            row.name,
            row.default,
            row.meaning.replace('|', "\\|")
        );
    }
    page.push_str(
        "\nLists are written with commas in a variable, and as an array or with commas in the file.\n\n\
         ## Identity providers\n\n\
         Only in the file, one table each, in the order of the buttons:\n\n\
         ```toml\n[[identity_provider]]\n\
         id = \"google\"                       # path segment\n\
         name = \"Google\"                     # on the button\n\
         issuer = \"https://accounts.google.com\"\n\
         client_id = \"…\"\n\
         client_secret_env = \"GOOGLE_SECRET\" # or client_secret, or client_secret_file\n\
         scopes = [\"openid\"]\n```\n\n\
         Their form is checked at the start. The provider itself is first asked when somebody signs in; see \
         [sign-in.md](sign-in.md).\n\n\
         This page is made by `platform-server config --docs` from `server/src/config/names.rs`.\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_twice_in_the_table() {
        let mut names: Vec<&str> = SETTINGS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SETTINGS.len());
    }
}
