//! What a server says about itself to Prometheus.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use platform_server::platform::metrics::names::{self, Kind};
use reqwest::Method;
use serde_json::json;

use crate::operations::{ask, with_operations};
use crate::support::{TestApp, send};

/// One line of an exposition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The name, such as `…_bucket` of a histogram.
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

/// Everything that a server exports.
#[derive(Debug)]
pub(crate) struct Scrape {
    pub(crate) samples: Vec<Sample>,
    /// The type of each metric that is described.
    pub(crate) kinds: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl Scrape {
    pub(crate) async fn of(operations: SocketAddr) -> Self {
        let (status, text) = ask(operations, "node-1", "/metrics").await;
        assert_eq!(status, 200, "{text}");
        let described = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let described = described.map(|line| line.split_once(' ').unwrap());
        let kinds = described.map(|(name, kind)| (name.to_owned(), kind.to_owned()));
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self {
            samples: lines.map(sample).collect(),
            kinds: kinds.collect(),
            text: text.clone(),
        }
    }

    /// The value of the series with these labels; 0 if it is not there.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let found = |sample: &&Sample| sample.name == name && sample.labels == labels;
        self.samples
            .iter()
            .find(found)
            .map_or(0.0, |sample| sample.value)
    }
}

fn sample(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels.strip_suffix('}').unwrap();
    let pairs = labels.split("\",").filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once("=\"").unwrap());
    Sample {
        name: name.to_owned(),
        labels: pairs
            .map(|(name, value)| (name.to_owned(), value.trim_end_matches('"').to_owned()))
            .collect(),
        value: value.parse().unwrap(),
    }
}

/// A series by its name and labels, and its value.
type Expected<'a> = (&'a str, &'a [(&'a str, &'a str)], f64);

/// Equal, for numbers that were only counted.
fn assert_counted(scrape: &Scrape, expected: &[Expected<'_>]) {
    for (name, labels, value) in expected {
        let found = scrape.value(name, labels);
        assert!(
            (found - value).abs() < 0.5,
            "{name} {labels:?}: {found}\n{}",
            scrape.text
        );
    }
}

#[tokio::test]
async fn every_metric_of_the_table_is_exported_with_its_type_and_labels() {
    let (app, operations) = with_operations().await;
    assert_eq!(send(app.post_token()).await.status, 200);
    let scrape = Scrape::of(operations).await;
    for (name, kind) in &scrape.kinds {
        let row = names::ALL.iter().find(|row| row.name == name);
        let row = row.unwrap_or_else(|| panic!("{name} is not in the table"));
        assert_eq!(row.kind.name(), kind, "{name}");
    }
    for sample in &scrape.samples {
        let part_of = |row: &&&names::Metric| match row.kind {
            Kind::Histogram => sample.name.starts_with(row.name),
            Kind::Counter | Kind::Gauge => sample.name == row.name,
        };
        let row = names::ALL.iter().find(part_of);
        let row = row.unwrap_or_else(|| panic!("{} is not in the table", sample.name));
        let mut labels: Vec<&str> = sample.labels.keys().map(String::as_str).collect();
        labels.retain(|label| *label != "le");
        let mut expected = row.labels.to_vec();
        expected.sort_unstable();
        assert_eq!(labels, expected, "{}", sample.name);
    }
    // The others are those of certificates, of PostgreSQL, of backups, and of a receiver of traces.
    let missing = names::ALL.iter().map(|row| row.name);
    let missing: Vec<_> = missing
        .filter(|name| !scrape.kinds.contains_key(*name))
        .collect();
    let of_others = [
        "platform_certificates",
        "platform_certificates_expiring",
        "platform_certificate_left_seconds",
        "platform_certificates_missing",
        "platform_store_connections",
        "platform_store_connections_limit",
        "platform_store_connections_waiting",
        "platform_store_writes_unanswered",
        "platform_backup_newest_timestamp_seconds",
        "platform_backup_overdue_seconds",
        "platform_clock_offset_seconds",
        "platform_telemetry_items_total",
    ];
    assert_eq!(missing, of_others);
    assert!(scrape.value("process_resident_memory_bytes", &[]) > 1e6);
    assert!(scrape.value("platform_signing_keys", &[("phase", "signing")]) > 0.5);
}

#[tokio::test]
async fn what_players_do_is_counted() {
    let (app, operations) = with_operations().await;
    let first = send(app.post_token()).await;
    let cookie = first.cookie().unwrap().to_owned();
    assert_eq!(
        send(app.post_token().header("cookie", cookie)).await.status,
        200
    );
    let stranger = app.request(Method::POST, "auth", "/token");
    let stranger = send(stranger.header("origin", "https://elsewhere.example")).await;
    let refused = stranger.status.as_str().to_owned();
    assert_eq!(send(app.get("demo", "/")).await.status, 200);
    assert_eq!(
        send(app.get("demo", "/__platform/runtime.js")).await.status,
        200
    );
    let batch = json!({ "page": "AAAAAAAAAAAAAAAAAAAAAA", "records": [] });
    let logs = app
        .request(Method::POST, "demo", "/__platform/logs")
        .json(&batch);
    let logs = send(logs).await.status.as_str().to_owned();
    let scrape = Scrape::of(operations).await;
    let requests = "platform_http_requests_total";
    let of = |host, route, status| [("host", host), ("route", route), ("status", status)];
    assert_counted(
        &scrape,
        &[
            ("platform_tokens_minted_total", &[("kind", "game")], 2.0),
            ("platform_guests_created_total", &[("kind", "new")], 1.0),
            (requests, &of("auth", "/token", "200"), 2.0),
            (requests, &of("auth", "/token", &refused), 1.0),
            (requests, &of("game", "(files)", "200"), 1.0),
            (requests, &of("game", "/__platform/runtime.js", "200"), 1.0),
            (requests, &of("game", "/__platform/logs", &logs), 1.0),
            (
                "platform_http_request_duration_seconds_count",
                &[("host", "auth"), ("route", "/token")],
                3.0,
            ),
        ],
    );
    let commits = "platform_store_commit_duration_seconds_count";
    assert!(scrape.value(commits, &[("database", "main")]) > 0.5);
    assert!(scrape.value("platform_connections", &[]) > 0.5);
}

#[tokio::test]
async fn refusals_are_counted_by_limit() {
    let app = TestApp::with(|config| {
        config.operations_listen = Some("127.0.0.1:0".parse().unwrap());
        config.guest_rate.burst = 2.try_into().unwrap();
        config.guest_rate.count = 1.try_into().unwrap();
    });
    let app = app.await;
    let mut refused = 0;
    for _ in 0..5 {
        refused += u32::from(send(app.post_token()).await.status == 429);
    }
    assert_eq!(refused, 3);
    let scrape = Scrape::of(app.running.operations.unwrap()).await;
    let name = "platform_limit_refusals_total";
    assert_counted(&scrape, &[(name, &[("limit", "guests")], 3.0)]);
}

/// What visitors make up, none of which may become a label.
async fn flood(app: &TestApp, round: u32) {
    let methods = ["GET", "POST", "PUT", "BREW", "PROPFIND"];
    for number in 0..40 {
        let word = format!("flood{round}x{number}");
        let method = Method::from_bytes(methods[number % methods.len()].as_bytes()).unwrap();
        for label in ["", "auth", "demo"] {
            for path in [
                format!("/{word}"),
                format!("/__platform/{word}"),
                format!("/games/{word}"),
                format!("/login/{word}"),
                format!("/api/projects/{word}"),
                format!("/token?{word}"),
            ] {
                send(app.request(method.clone(), label, &path)).await;
            }
        }
        for host in [word.clone(), format!("{word}.platform.localhost")] {
            send(app.request_host(method.clone(), &host, "/")).await;
        }
        let named = app.request(Method::from_bytes(word.as_bytes()).unwrap(), "", "/");
        send(named).await;
    }
}

#[tokio::test]
async fn no_visitor_adds_a_series() {
    let (app, operations) = with_operations().await;
    let series = async |round| {
        flood(&app, round).await;
        let scrape = Scrape::of(operations).await;
        assert!(!scrape.text.contains("flood"), "{}", scrape.text);
        let mut series: Vec<_> = scrape.samples.into_iter().collect();
        series.retain(|sample| sample.name.starts_with("platform_http"));
        series.len()
    };
    let (first, second) = (series(1).await, series(2).await);
    assert_eq!(first, second);
    // There are three hosts with six paths, and every route has eighteen series of durations.
    assert!(first < 700, "{first}");
}

#[tokio::test]
async fn without_a_listener_nothing_is_counted() {
    let app = TestApp::start().await;
    assert_eq!(send(app.post_token()).await.status, 200);
    assert!(app.running.state.platform.metrics.figures().is_none());
}
