//! One measurement with wrk.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use xtask::command::output;

use super::machine::load_command;

/// Parallel connections.
pub(super) const CONNECTIONS: usize = 64;
/// Seconds of one measurement.
const SECONDS: u32 = 2;

/// A request that is repeated.
pub(super) struct Load {
    /// The name of the measured server.
    pub(super) name: &'static str,
    /// The address.
    pub(super) url: String,
    /// The script that makes the request.
    pub(super) script: PathBuf,
}

/// What one measurement gave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Sample {
    /// All responses.
    pub(super) responses: f64,
    /// Responses per second.
    pub(super) per_second: f64,
    /// The median response time, in milliseconds.
    pub(super) p50_milliseconds: f64,
    /// The 99th percentile of the response times, in milliseconds.
    pub(super) p99_milliseconds: f64,
}

/// A wrk script for one `POST` request.
pub(super) fn script(headers: &[(&str, &str)], body: Option<&str>) -> String {
    let mut lines = vec!["wrk.method = \"POST\"".to_owned()];
    lines.extend(
        headers
            .iter()
            .map(|(name, value)| format!("wrk.headers[{name:?}] = {value:?}")),
    );
    lines.extend(body.map(|body| format!("wrk.body = {body:?}")));
    lines.join("\n") + "\n"
}

/// A wrk script for one `GET` request.
pub(super) fn get_script(headers: &[(&str, &str)]) -> String {
    let headers = headers
        .iter()
        .map(|(name, value)| format!("wrk.headers[{name:?}] = {value:?}\n"));
    headers.collect()
}

/// Sends requests as fast as possible for a few seconds.
pub(super) fn run(load: &Load) -> Result<Sample> {
    run_on(load, CONNECTIONS)
}

/// The same on this many connections.
pub(super) fn run_on(load: &Load, connections: usize) -> Result<Sample> {
    run_for(load, connections, SECONDS)
}

/// The same for so many seconds.
pub(super) fn run_for(load: &Load, connections: usize, seconds: u32) -> Result<Sample> {
    let mut wrk = load_command("wrk");
    wrk.args([
        "--threads",
        "1",
        "--connections",
        &connections.to_string(),
        "--duration",
        &seconds.to_string(),
        "--latency",
    ]);
    wrk.arg("--script").arg(&load.script).arg(&load.url);
    let text = output(&mut wrk)?;
    read(&text).with_context(|| format!("wrk said:\n{text}"))
}

/// Reads the output of wrk. Refused and failed requests make it invalid.
fn read(text: &str) -> Result<Sample> {
    let lines = || text.lines().map(str::trim);
    let after = |prefix: &str| {
        lines()
            .find_map(|line| line.strip_prefix(prefix))
            .map(str::trim)
    };
    if let Some(count) = after("Non-2xx or 3xx responses:") {
        bail!("{count} requests were refused");
    }
    if let Some(errors) = after("Socket errors:") {
        // Every connection must hold; only timeouts of the last moment are allowed.
        let broken = errors
            .split(',')
            .filter(|part| !part.contains("timeout"))
            .any(|part| !part.trim().ends_with(" 0"));
        ensure!(!broken, "connections broke: {errors}");
    }
    let responses = lines()
        .find_map(|line| line.split_once(" requests in "))
        .context("there is no number of responses")?
        .0
        .parse()?;
    let per_second = after("Requests/sec:")
        .context("there is no rate")?
        .parse()?;
    let p50 = after("50%").context("there is no median")?;
    let p99 = after("99%").context("there is no 99th percentile")?;
    Ok(Sample {
        responses,
        per_second,
        p50_milliseconds: milliseconds(p50)?,
        p99_milliseconds: milliseconds(p99)?,
    })
}

/// A duration as wrk writes it: `812.00us`, `3.50ms`, `1.20s`, `2.00m`.
fn milliseconds(text: &str) -> Result<f64> {
    let unit_at = text
        .find(|c: char| c.is_ascii_alphabetic())
        .context("there is no unit")?;
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit {
        "us" => 0.001,
        "ms" => 1.0,
        "s" => 1_000.0,
        "m" => 60_000.0,
        _ => bail!("`{unit}` is no unit of time"),
    };
    Ok(number.parse::<f64>()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "Running 4s test @ http://127.0.0.1:1/token
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     5.21ms    1.02ms  30.11ms   91.20%
    Req/Sec    12.10k   300.00    13.00k    80.00%
  Latency Distribution
     50%    5.00ms
     99%    9.25ms
  48400 requests in 4.01s, 20.00MB read
Requests/sec:  12069.83
Transfer/sec:      4.99MB
";

    #[test]
    fn the_rate_and_the_99th_percentile_are_read() {
        let sample = Sample {
            responses: 48_400.0,
            per_second: 12_069.83,
            p50_milliseconds: 5.0,
            p99_milliseconds: 9.25,
        };
        assert_eq!(read(GOOD).unwrap(), sample);
    }

    #[test]
    fn refused_requests_are_no_measurement() {
        let text = GOOD.replace(
            "Requests/sec:",
            "  Non-2xx or 3xx responses: 7\nRequests/sec:",
        );
        assert!(
            read(&text)
                .unwrap_err()
                .to_string()
                .contains("7 requests were refused")
        );
    }

    #[test]
    fn broken_connections_are_no_measurement() {
        let with = |errors: &str| {
            read(&GOOD.replace(
                "Requests/sec:",
                &format!("  Socket errors: {errors}\nRequests/sec:"),
            ))
        };
        assert!(with("connect 0, read 3, write 0, timeout 0").is_err());
        assert!(with("connect 0, read 0, write 0, timeout 2").is_ok());
    }

    #[test]
    fn every_unit_of_wrk_is_understood() {
        let close = |text, wanted: f64| (milliseconds(text).unwrap() - wanted).abs() < 1e-9;
        assert!(close("812.00us", 0.812));
        assert!(close("3.50ms", 3.5));
        assert!(close("1.20s", 1_200.0));
        assert!(close("2.00m", 120_000.0));
        assert!(milliseconds("2.00h").is_err());
        assert!(milliseconds("2.00").is_err());
    }

    #[test]
    fn a_script_sets_method_headers_and_body() {
        let text = script(&[("Host", "auth.localhost:1")], Some("a=b"));
        let wanted = "wrk.method = \"POST\"\nwrk.headers[\"Host\"] = \"auth.localhost:1\"\nwrk.body = \"a=b\"\n";
        assert_eq!(text, wanted);
    }
}
