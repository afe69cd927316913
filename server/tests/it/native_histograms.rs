//! A real Prometheus, with native histograms switched on, that scrapes a server.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::operations::with_operations;
use crate::support::send;

/// What Prometheus writes before the address that it listens on.
const LISTENING: &str = "msg=\"Listening on\" address=";

/// A Prometheus that scrapes one server every second. It ends when this is dropped.
struct Prometheus {
    child: Child,
    address: String,
    _data: TempDir,
}

impl Prometheus {
    /// Starts Debian's, which `cargo xtask test` installs.
    fn scraping(operations: SocketAddr) -> Self {
        let data = tempfile::tempdir().unwrap();
        let settings = data.path().join("prometheus.yml");
        let text = format!(
            "scrape_configs:\n- job_name: platform\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  \
             static_configs:\n  - targets: ['{operations}']\n"
        );
        std::fs::write(&settings, text).unwrap();
        let mut child = Command::new("prometheus")
            .arg("--enable-feature=native-histograms")
            .arg(format!("--config.file={}", settings.display()))
            .arg(format!("--storage.tsdb.path={}", data.path().display()))
            .arg("--web.listen-address=127.0.0.1:0")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line = line.unwrap();
            let (_, address) = line.split_once(LISTENING)?;
            Some(address.to_owned())
        });
        // What it writes later is read, so that it is never held up.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            address: address.unwrap(),
            _data: data,
        }
    }

    /// Asks until an expression has a value, and returns it.
    async fn value(&self, expression: &str) -> f64 {
        let mut url = url::Url::parse(&format!("http://{}/api/v1/query", self.address)).unwrap();
        url.query_pairs_mut().append_pair("query", expression);
        let mut ticks = tokio::time::interval(Duration::from_millis(200));
        let asked = async {
            loop {
                ticks.tick().await;
                let Ok(response) = reqwest::get(url.clone()).await else {
                    continue;
                };
                let text = response.text().await.unwrap();
                let json: Value = serde_json::from_str(&text).unwrap_or_default();
                let value = json["data"]["result"][0]["value"][1].as_str();
                if let Some(value) = value.and_then(|value| value.parse().ok()) {
                    return value;
                }
            }
        };
        let within = tokio::time::timeout(Duration::from_secs(60), asked).await;
        within.unwrap_or_else(|_| panic!("no value within a minute: {expression}"))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn prometheus_reads_native_histograms_whose_quantiles_lie_close() {
    let (app, operations) = with_operations().await;
    for _ in 0..20 {
        assert_eq!(send(app.post_token()).await.status, 200);
    }
    let prometheus = Prometheus::scraping(operations);
    let tokens = r#"platform_http_request_duration_seconds{host="auth",route="/token"}"#;
    let count = prometheus
        .value(&format!("histogram_count({tokens})"))
        .await;
    assert!((count - 20.0).abs() < f64::EPSILON, "{count}");
    let mean = prometheus
        .value(&format!(
            "histogram_sum({tokens}) / histogram_count({tokens})"
        ))
        .await;
    let all = prometheus
        .value(&format!("histogram_fraction(0, 4096, {tokens})"))
        .await;
    assert!((all - 1.0).abs() < 1e-9 && mean > 0.0, "{all} {mean}");
    let longest = prometheus
        .value(&format!("histogram_quantile(1, {tokens})"))
        .await;
    // The bound of the bucket with the longest, which is at least the mean.
    assert!(longest >= mean / 1.2, "{longest} {mean}");
    // Nothing else is lost in this format.
    let minted = prometheus.value("sum(platform_tokens_minted_total)").await;
    assert!((minted - 20.0).abs() < f64::EPSILON, "{minted}");
}
