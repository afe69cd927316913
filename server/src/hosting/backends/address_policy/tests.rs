//! Tests of public and private addresses, and of the platform's own.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::Uri;
use moka::future::Cache;
use tower::{Service as _, ServiceExt as _};
use url::Url;

use super::{AddressPolicy, Connector, OwnSockets, PolicyResolver, Resolver, is_public};
use crate::config::{Config, PrivateBackends, S3Settings, Secret};
use crate::hosting::backends::Settings;
use crate::origin::PlatformOrigin;

const PRIVATE: [&str; 27] = [
    "0.0.0.0",
    "0.1.2.3",
    "10.1.2.3",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.8.8.8",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "fd00::1",
    "fe80::1",
    "ff02::1",
];

fn origin(text: &str) -> PlatformOrigin {
    text.parse().unwrap()
}

fn reach(private: Option<PrivateBackends>, platform: &str, listening: &str) -> AddressPolicy {
    let listening = vec![listening.parse().unwrap()];
    AddressPolicy::new(
        private,
        &origin(platform),
        OwnSockets::new(listening, Vec::new()),
    )
}

fn check(reach: &AddressPolicy, address: &str) -> Result<(), &'static str> {
    let url = Url::parse(address).unwrap();
    let host = url.host().unwrap();
    reach.check_host(&host, url.port_or_known_default().unwrap())
}

#[test]
fn private_addresses_are_told_from_public_ones() {
    for public in [
        "93.184.216.34",
        "8.8.8.8",
        "100.63.0.1",
        "100.128.0.1",
        "172.32.0.1",
        "2606:2800:220:1::1",
    ] {
        assert!(is_public(public.parse().unwrap()), "{public}");
    }
    for private in PRIVATE {
        assert!(!is_public(private.parse().unwrap()), "{private}");
    }
}

#[test]
fn private_networks_are_for_local_platforms_or_as_the_operator_says() {
    let public = reach(None, "https://games.example", "0.0.0.0:443");
    let local = reach(None, "http://platform.localhost:8787", "127.0.0.1:8787");
    let some = PrivateBackends::Networks(vec!["10.1.0.0/16".parse().unwrap()]);
    let some = reach(Some(some), "https://games.example", "0.0.0.0:443");
    let refused = reach(
        Some(PrivateBackends::None),
        "http://platform.localhost:8787",
        "127.0.0.1:8787",
    );
    for (address, expected) in [
        ("http://93.184.216.34", [true, true, true, true]),
        ("https://game.example:3000", [true, true, true, true]),
        ("http://10.1.2.3", [false, true, true, false]),
        ("http://10.2.2.3", [false, true, false, false]),
        ("http://[::ffff:10.1.2.3]", [false, true, true, false]),
        ("http://0x7f.1:3000", [false, true, false, false]),
        ("http://localhost:3000", [false, true, false, false]),
        ("http://game.localhost.:3000", [false, true, false, false]),
        ("http://169.254.169.254", [false, true, false, false]),
        ("http://[fd00::1]", [false, true, false, false]),
    ] {
        let found = [&public, &local, &some, &refused].map(|reach| check(reach, address).is_ok());
        assert_eq!(found, expected, "{address}");
    }
}

#[tokio::test]
async fn the_databases_redis_and_the_bucket_of_the_settings_are_no_backends() {
    let secret = |text: &str| Some(Secret::new(text.to_owned()));
    let endpoint = Secret::new("http://127.0.0.1:9000".to_owned());
    let config = Config {
        // The operator allows every network, and still not these.
        private_backends: Some(PrivateBackends::All),
        postgres: secret("postgres://me:hunter2@db1.example,10.0.0.2:6432/platform"),
        postgres_logs: secret("postgres://me:hunter2@[fd00::2]:5433/logs"),
        redis: secret("redis+cluster://me:hunter2@localhost:6379,10.0.0.3:6380"),
        s3: Some(S3Settings {
            variables: [("AWS_ENDPOINT_URL".to_owned(), endpoint)].into(),
            ..S3Settings::default()
        }),
        ..Config::default()
    };
    let own = origin("https://games.example");
    let settings = Settings::new(&config, (&own, &own), Vec::new());
    let reach = settings.reach;
    reach.own_sockets().look_up(Vec::new()).await;
    for (address, is_allowed) in [
        ("http://db1.example:5432", false),
        ("http://DB1.example.:5432", false),
        ("http://10.0.0.2:6432", false),
        ("http://[::ffff:10.0.0.2]:6432", false),
        ("http://[fd00::2]:5433", false),
        ("http://localhost:6379", false),
        ("http://127.0.0.1:6379", false),
        ("http://10.0.0.3:6380", false),
        ("http://127.0.0.1:9000", false),
        ("http://game.localhost:9000", false),
        ("http://0x7f.1:9000", false),
        // Another program on the same machine.
        ("http://10.0.0.2:3000", true),
        ("http://127.0.0.1:9001", true),
    ] {
        assert_eq!(check(&reach, address).is_ok(), is_allowed, "{address}");
    }
}

#[test]
fn ports_of_other_protocols_are_no_backends() {
    assert!(super::BAD_PORTS.is_sorted(), "they are searched by halves");
    for platform in ["http://platform.localhost:8787", "https://games.example"] {
        let reach = reach(None, platform, "127.0.0.1:8787");
        for port in [1, 22, 25, 6000, 6667, 10080] {
            for host in ["93.184.216.34", "game.example"] {
                let refused = check(&reach, &format!("http://{host}:{port}")).unwrap_err();
                assert!(refused.contains("port"), "{host}:{port}: {refused}");
            }
        }
        for port in [80, 443, 3000, 8080, 6001] {
            assert!(check(&reach, &format!("http://game.example:{port}")).is_ok());
        }
    }
}

#[test]
fn the_platform_is_no_backend_of_a_game() {
    let local = reach(None, "http://platform.localhost:8787", "127.0.0.1:8787");
    for own in [
        "http://127.0.0.1:8787",
        "http://localhost:8787",
        "http://0.0.0.0:8787",
        "http://[::ffff:127.0.0.1]:8787",
        "http://platform.localhost:8787",
        "http://demo.platform.localhost:8787",
        "http://DEMO.platform.localhost.:1",
    ] {
        let sentence = check(&local, own).unwrap_err();
        assert!(sentence.contains("itself"), "{own}: {sentence}");
    }
    assert!(check(&local, "http://127.0.0.1:8788").is_ok());
    assert!(check(&local, "http://notplatform.localhost:3000").is_ok());
    let public = reach(
        Some(PrivateBackends::All),
        "https://games.example",
        "0.0.0.0:443",
    );
    assert!(check(&public, "https://auth.games.example").is_err());
    assert!(check(&public, "https://127.0.0.1").is_err());
    assert!(check(&public, "https://notgames.example").is_ok());
}

#[tokio::test]
async fn a_name_that_turns_out_to_be_private_is_not_connected_to() {
    let reach = Arc::new(reach(None, "https://games.example", "0.0.0.0:443"));
    let found = Cache::new(10);
    let resolver = PolicyResolver {
        reach: Arc::clone(&reach),
        found: found.clone(),
        names: Resolver::with_limit(1),
    };
    // The name server's earlier result, and its current one.
    for (said, reachable) in [
        ("93.184.216.34", true),
        ("169.254.169.254", false),
        ("::1", false),
    ] {
        let addresses = [said.parse().unwrap()].into();
        found.insert("game.example".to_owned(), addresses).await;
        let outcome = resolver.look_up("game.example").await;
        assert_eq!(outcome.is_ok(), reachable, "{said}");
    }
    // Of several addresses, the private ones are removed.
    let both = ["10.0.0.1", "93.184.216.34"].map(|text| text.parse().unwrap());
    found.insert("game.example".to_owned(), both.into()).await;
    let outcome = resolver.look_up("game.example").await.unwrap();
    let public: SocketAddr = "93.184.216.34:0".parse().unwrap();
    assert_eq!(outcome, [public]);
}

#[tokio::test]
async fn private_addresses_are_refused_when_they_are_connected_to() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = async |reach: AddressPolicy, uri: &str| {
        let mut connector = Connector::new(Arc::new(reach));
        let connector = connector.ready().await.unwrap();
        let uri: Uri = uri.parse().unwrap();
        connector
            .call(uri)
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    };
    let elsewhere = "127.0.0.1:1";
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let address = format!("http://{host}:{port}");
        let public = reach(None, "https://games.example", elsewhere);
        assert!(connect(public, &address).await.is_err(), "{address}");
        let local = reach(None, "http://platform.localhost:1", elsewhere);
        let outcome = connect(local, &address).await;
        assert_eq!(outcome, Ok(()), "{address}");
        let own = reach(
            None,
            "http://platform.localhost:1",
            &format!("127.0.0.1:{port}"),
        );
        let error = connect(own, &address).await.unwrap_err();
        assert_eq!(error, "the address is the platform's own", "{address}");
    }
}
