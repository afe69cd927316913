//! The address of a database, `postgres://…`, and the connection settings that are made from it.
//! The address may contain a password, so nothing here shows it.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use platform_store::ConnectError;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long opening a connection may take.
const CONNECT: Duration = Duration::from_secs(3);
/// How long sent data may stay unacknowledged, and how long a silent connection waits before it
/// sends a keepalive probe. So an unreachable server is noticed within seconds.
const SILENT: Duration = Duration::from_secs(5);

/// Parses an address, and sets what it leaves open. Connections go only to a server that accepts
/// writes, and keepalive probes notice an unreachable server.
pub(super) fn parse(url: &str) -> Result<Config, ConnectError> {
    let mut config: Config = url
        .parse()
        .map_err(|error: tokio_postgres::Error| ConnectError::Database(Box::new(error)))?;
    if config.get_application_name().is_none() {
        config.application_name("platform");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENT);
    }
    // A standby may lag behind. It would not know a new session yet, and the player would become a
    // new guest.
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    config.keepalives_idle(SILENT);
    config.keepalives_interval(Duration::from_secs(1));
    config.keepalives_retries(3);
    Ok(config)
}

/// Returns whether connections may go over a network without TLS.
pub(super) fn may_be_read(config: &Config) -> bool {
    let is_local = |host: &Host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    let hosts = config.get_hosts();
    let addresses = config.get_hostaddrs();
    let is_here = hosts.iter().all(is_local) && addresses.iter().all(IpAddr::is_loopback);
    config.get_ssl_mode() != SslMode::Require && !is_here
}

/// Returns the TLS settings: they trust the system's certificates and check the host name of the
/// address. The certificates are read only once per process, because there are many.
pub(super) fn tls() -> Result<MakeRustlsConnect, ConnectError> {
    static KNOWN: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(MakeRustlsConnect::new(known.clone()));
    }
    let failed = |error: rustls::Error| ConnectError::Database(Box::new(error));
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_platform_verifier()
        .map_err(failed)?
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(KNOWN.get_or_init(|| config).clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_be_read_is_not_repeated() {
        for url in [
            "postgres://platform:hunter2@host:port/x",
            "postgres://platform:hunter2@host/x?no_such=1",
        ] {
            let error = parse(url).unwrap_err();
            let mut said = error.to_string();
            let mut cause = std::error::Error::source(&error);
            while let Some(next) = cause {
                said = format!("{said}: {next}");
                cause = next.source();
            }
            assert!(!said.contains("hunter2"), "{said}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let config = parse("postgres://platform:hunter2@one,two/x").unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
        assert_eq!(config.get_hosts().len(), 2);
    }

    #[test]
    fn an_address_on_a_network_without_tls_is_noticed() {
        for (url, may_be_read) in [
            ("postgres://platform@db.example/x", true),
            ("postgres://platform@db.example/x?sslmode=prefer", true),
            ("postgres://platform@localhost,db.example/x", true),
            ("postgres://platform@db.example/x?sslmode=require", false),
            ("postgres://platform@localhost/x", false),
            ("postgres://platform@127.0.0.1,[::1]/x", false),
            ("postgres://platform@%2Frun%2Fpostgresql/x", false),
        ] {
            assert_eq!(
                super::may_be_read(&parse(url).unwrap()),
                may_be_read,
                "{url}"
            );
        }
    }
}
