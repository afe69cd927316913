//! The services that the settings name: the databases, Redis, the bucket.

use url::Url;

use super::redis_place::RedisPlace;
use super::{Config, Secret};

/// The port of PostgreSQL.
const POSTGRES: u16 = 5432;

impl Config {
    /// Returns the names and ports of the services that the settings name. A service of this
    /// machine that is reached through a file has none.
    #[must_use]
    pub fn services(&self) -> Vec<(String, u16)> {
        let databases = [&self.postgres, &self.postgres_logs];
        let databases = databases.into_iter().flatten().map(Secret::expose);
        let bucket = self.s3.as_ref().and_then(|s3| s3.endpoint());
        let bucket = bucket.and_then(host);
        let redis = self.redis.as_ref().map(Secret::expose);
        let redis = redis.and_then(RedisPlace::parse);
        let redis = redis.iter().flat_map(RedisPlace::servers);
        let databases = databases.flat_map(postgres_hosts);
        databases.chain(redis).chain(bucket).collect()
    }
}

/// Returns the host and the port of a URL.
fn host(url: &str) -> Option<(String, u16)> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
    Some((host, url.port_or_known_default()?))
}

/// Returns the hosts of `postgres://<user>:<password>@<host>:<port>,<host>:<port>/<database>`,
/// which no parser of URLs takes because they may be several.
fn postgres_hosts(url: &str) -> Vec<(String, u16)> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let hosts = authority.rsplit('@').next().unwrap_or_default();
    let hosts = hosts.split(',').filter_map(|host| {
        let (name, port) = match host.rsplit_once(':') {
            // An IPv6 address without a port ends with `]`.
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()?),
            _ => (host, POSTGRES),
        };
        let name = name.trim_matches(['[', ']']);
        // `%2F…` is a folder with a socket.
        (!name.is_empty() && !name.contains('%')).then(|| (name.to_owned(), port))
    });
    hosts.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::S3Settings;

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
            ..Config::default()
        };
        let expected = [
            ("db1.example", 5432),
            ("10.0.0.2", 6432),
            ("fd00::1", 5432),
            ("fd00::2", 5433),
            ("redis.example", 6379),
            ("fd00::9", 9000),
        ];
        let expected = expected.map(|(host, port)| (host.to_owned(), port));
        assert_eq!(config.services(), expected);
        let local = secret("postgres://me@%2Fvar%2Frun%2Fpostgresql/platform");
        let local = Config {
            postgres: local,
            ..Config::default()
        };
        assert_eq!(local.services(), []);
        assert_eq!(Config::default().services(), []);
    }
}
