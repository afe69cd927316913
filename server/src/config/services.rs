//! The services that the settings name: the databases, Redis, the bucket, the receiver of traces.

use percent_encoding::percent_decode_str;
use url::{Url, form_urlencoded};

use super::redis_place::RedisPlace;
use super::{Config, Secret};

/// The port of PostgreSQL.
const POSTGRES: u16 = 5432;

/// A service that the settings name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its name or IP address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether it is reached over https. Then its public addresses may be shared with the sites of others, and
    /// a client that asks them for another name never reaches the service: its certificate is for another name.
    pub is_https: bool,
}

impl Config {
    /// Returns the services that the settings name, without those of this machine that are reached
    /// through a file.
    #[must_use]
    pub fn services(&self) -> Vec<Service> {
        let databases = [&self.postgres, &self.postgres_logs];
        let databases = databases.into_iter().flatten().map(Secret::expose);
        let bucket = self.s3.as_ref().and_then(|s3| s3.endpoint());
        let bucket = bucket.and_then(|url| Url::parse(url).ok());
        let redis = self.redis.as_ref().map(Secret::expose);
        let redis = redis.and_then(RedisPlace::parse);
        let redis = redis.iter().flat_map(RedisPlace::servers);
        let databases = databases.flat_map(postgres_hosts);
        let others = databases.chain(redis).map(|(host, port)| Service {
            host,
            port,
            is_https: false,
        });
        let urls = bucket.iter().chain(&self.otlp.endpoint);
        others.chain(urls.filter_map(service_of_url)).collect()
    }
}

fn service_of_url(url: &Url) -> Option<Service> {
    Some(Service {
        host: url.host_str()?.trim_matches(['[', ']']).to_owned(),
        port: url.port_or_known_default()?,
        is_https: url.scheme() == "https",
    })
}

/// Returns the hosts of `postgres://<user>:<password>@<host>:<port>,<host>:<port>/<database>`,
/// which no parser of URLs takes because they may be several, and those of its parameters `host`,
/// `hostaddr` and `port`.
fn postgres_hosts(url: &str) -> Vec<(String, u16)> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let mut found = hosts_of_authority(place);
    let (mut names, mut ports) = (Vec::new(), Vec::<u16>::new());
    for (name, value) in form_urlencoded::parse(parameters.as_bytes()) {
        let values = value.split(',').map(str::to_owned);
        match &*name {
            "host" | "hostaddr" => names.extend(values),
            "port" => ports.extend(values.filter_map(|port| port.parse::<u16>().ok())),
            _ => {}
        }
    }
    // `/…` and `@…` are sockets of this machine.
    names.retain(|name| !name.is_empty() && !name.starts_with(['/', '@']));
    // Which port belongs to which host also depends on the hosts before; none of them is a game's.
    names.extend(found.iter().map(|(name, _)| name.clone()));
    let others = !ports.is_empty();
    ports.extend(found.iter().map(|(_, port)| *port));
    if !others && found.is_empty() {
        ports.push(POSTGRES);
    }
    for name in names {
        for port in &ports {
            let host = (name.trim_matches(['[', ']']).to_owned(), *port);
            let known = found.iter().any(|(name, _)| *name == host.0);
            if (others || !known) && !found.contains(&host) {
                found.push(host);
            }
        }
    }
    found
}

/// Returns the hosts before the path of the URL of a PostgreSQL database.
fn hosts_of_authority(place: &str) -> Vec<(String, u16)> {
    let authority = place.split('/').next().unwrap_or_default();
    let hosts = authority.rsplit('@').next().unwrap_or_default();
    let hosts = hosts.split(',').filter_map(|host| {
        let (name, port) = match host.rsplit_once(':') {
            // An IPv6 address without a port ends with `]`.
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()?),
            _ => (host, POSTGRES),
        };
        let name = percent_decode_str(name.trim_matches(['[', ']'])).decode_utf8_lossy();
        // A folder with a socket.
        let is_local = name.is_empty() || name.starts_with(['/', '@']);
        (!is_local).then(|| (name.into_owned(), port))
    });
    hosts.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::S3Settings;
    use crate::config::otlp::OtlpSettings;

    #[test]
    fn every_host_of_every_service_is_found() {
        let secret = |text: &str| Some(Secret::new(text.to_owned()));
        let endpoint = ("AWS_ENDPOINT_URL", "http://[fd00::9]:9000");
        let variables = [(endpoint.0.to_owned(), Secret::new(endpoint.1.to_owned()))];
        let config = Config {
            postgres: secret("postgres://me:p%40ss@db1.example,10.0.0.2:6432,[fd00::1]/platform"),
            postgres_logs: secret("postgresql://[fd00::2]:5433?sslmode=require"),
            redis: secret("rediss://me:hunter2@redis.example"),
            s3: Some(S3Settings {
                variables: BTreeMap::from(variables),
                ..S3Settings::default()
            }),
            otlp: OtlpSettings {
                endpoint: Url::parse("https://otlp.example").ok(),
                ..OtlpSettings::default()
            },
            ..Config::default()
        };
        let expected = [
            ("db1.example", 5432, false),
            ("10.0.0.2", 6432, false),
            ("fd00::1", 5432, false),
            ("fd00::2", 5433, false),
            ("redis.example", 6379, false),
            ("fd00::9", 9000, false),
            ("otlp.example", 443, true),
        ];
        let expected = expected.map(|(host, port, is_https)| Service {
            host: host.to_owned(),
            port,
            is_https,
        });
        assert_eq!(config.services(), expected);
        let local = secret("postgres://me@%2Fvar%2Frun%2Fpostgresql/platform");
        let local = Config {
            postgres: local,
            ..Config::default()
        };
        assert_eq!(local.services(), []);
        assert_eq!(Config::default().services(), []);
    }

    #[test]
    fn hosts_among_the_parameters_of_a_database_are_found() {
        let found = |url: &str| {
            let found = postgres_hosts(url).into_iter();
            let mut found: Vec<_> = found.map(|(name, port)| format!("{name} {port}")).collect();
            found.sort();
            found.join(", ")
        };
        assert_eq!(found("postgres:///platform?host=db1"), "db1 5432");
        let several = "postgres://me:p@/platform?user=x&host=db1,fd00%3A%3A1&port=6432";
        assert_eq!(found(several), "db1 6432, fd00::1 6432");
        let address = "postgres://db1:6432/platform?hostaddr=10.0.0.2";
        assert_eq!(found(address), "10.0.0.2 6432, db1 6432");
        assert_eq!(
            found("postgres://db1/platform?port=6432&sslmode=require"),
            "db1 5432, db1 6432"
        );
        assert_eq!(found("postgres:///platform?host=%2Frun%2Fpostgresql"), "");
        assert_eq!(found("postgres://d%62%31/platform"), "db1 5432");
    }
}
