//! The alert rules and the dashboard of `deploy/`, and what Prometheus' own tool says of them and of a
//! scrape.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use platform_server::platform::metrics::names::{self, Kind};
use serde_json::Value;

use crate::metrics::Scrape;
use crate::operations::with_operations;
use crate::support::send;

fn deploy() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy"))
}

/// Runs `promtool` in the folder of the rules. Returns what it says.
fn promtool(arguments: &[&str], input: &str) -> String {
    let mut command = Command::new("promtool");
    command
        .args(arguments)
        .current_dir(deploy().join("prometheus"));
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // `cargo xtask test` installs it, with Debian's prometheus.
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(ended.status.success(), "promtool {arguments:?}: {said}");
    said
}

#[test]
fn every_alert_is_raised_when_it_must_be_and_not_otherwise() {
    promtool(&["check", "rules", "alerts.yml"], "");
    promtool(&["test", "rules", "alerts.test.yml"], "");
    let read =
        |name: &str| std::fs::read_to_string(deploy().join("prometheus").join(name)).unwrap();
    let (rules, tests) = (read("alerts.yml"), read("alerts.test.yml"));
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let alerts: Vec<&str> = alerts.collect();
    assert!(alerts.len() > 15, "{alerts:?}");
    for alert in alerts {
        for way in ["is raised", "is not raised"] {
            assert!(
                tests.contains(&format!("name: {alert} {way}\n")),
                "{alert} {way}"
            );
        }
    }
}

#[tokio::test]
async fn prometheus_finds_nothing_to_criticise_in_a_scrape() {
    let (app, operations) = with_operations().await;
    assert_eq!(send(app.post_token()).await.status, 200);
    let scrape = Scrape::of(operations).await;
    let said = promtool(&["check", "metrics"], &scrape.text);
    assert_eq!(said, "");
}

/// The words of a text that may be names of metrics.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let named = words.filter(|word| word.starts_with("platform_") || word.starts_with("process_"));
    named.map(str::to_owned).collect()
}

fn is_exported(word: &str) -> bool {
    names::ALL.iter().any(|row| match row.kind {
        Kind::Counter | Kind::Gauge => row.name == word,
        Kind::Histogram => ["_bucket", "_count", "_sum"]
            .iter()
            .any(|end| word.strip_suffix(end) == Some(row.name)),
    })
}

/// All texts in a document of JSON under one of these names.
fn texts<'json>(json: &'json Value, under: &[&str], found: &mut Vec<&'json str>) {
    match json {
        Value::Array(values) => values.iter().for_each(|value| texts(value, under, found)),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if under.contains(&name.as_str()) => found.push(text),
                    other => texts(other, under, found),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn rules_and_dashboard_name_only_metrics_that_the_server_exports() {
    let rules = std::fs::read_to_string(deploy().join("prometheus/alerts.yml")).unwrap();
    let dashboard = std::fs::read_to_string(deploy().join("grafana/platform.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let mut queries = Vec::new();
    texts(&dashboard, &["expr", "definition"], &mut queries);
    assert!(queries.len() > 30, "{}", queries.len());
    for (place, named) in [
        ("the rules", metrics_in(&rules)),
        ("the dashboard", metrics_in(&queries.join(" "))),
    ] {
        assert!(named.len() > 15, "{place}: {named:?}");
        for word in named {
            assert!(is_exported(&word), "{place}: {word}");
        }
    }
}

#[test]
fn the_dashboard_shows_every_metric_that_can_raise_an_alert() {
    let rules = std::fs::read_to_string(deploy().join("prometheus/alerts.yml")).unwrap();
    let dashboard = std::fs::read_to_string(deploy().join("grafana/platform.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let mut queries = Vec::new();
    texts(&dashboard, &["expr"], &mut queries);
    let shown = metrics_in(&queries.join(" "));
    let missing: Vec<_> = metrics_in(&rules).difference(&shown).cloned().collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn panels_of_the_dashboard_have_ids_and_places_of_their_own() {
    let dashboard = std::fs::read_to_string(deploy().join("grafana/platform.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len());
    let mut taken = BTreeSet::new();
    for panel in panels {
        let of = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(of("x") + of("w") <= 24, "{panel}");
        for x in of("x")..of("x") + of("w") {
            for y in of("y")..of("y") + of("h") {
                assert!(taken.insert((x, y)), "{}", panel["title"]);
            }
        }
    }
}

/// A query of the dashboard is a rule for the tool, once Grafana's variables have values.
#[test]
fn every_query_of_the_dashboard_can_be_evaluated() {
    let dashboard = std::fs::read_to_string(deploy().join("grafana/platform.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let mut queries = Vec::new();
    texts(&dashboard, &["expr"], &mut queries);
    let mut rules = "groups:\n- name: dashboard\n  rules:\n".to_owned();
    for (number, query) in queries.iter().enumerate() {
        let query = query.replace("$__rate_interval", "5m");
        let query = query.replace("$instance", ".*");
        let query = serde_json::to_string(&query).unwrap();
        rules += &format!("  - record: dashboard:query:{number}\n    expr: {query}\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queries.yml");
    std::fs::write(&file, rules).unwrap();
    promtool(&["check", "rules", file.to_str().unwrap()], "");
}
