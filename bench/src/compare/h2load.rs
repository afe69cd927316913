//! One measurement with nghttp2's h2load: HTTP/2 over TLS.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use xtask::command::output;

use crate::machine::load_command;

/// Connections, and requests at a time on each, as a browser has them.
const CONNECTIONS: &str = "16";
const AT_A_TIME: &str = "8";

/// What one measurement gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Answers {
    /// All responses.
    pub(super) succeeded: f64,
    /// Responses per second.
    pub(super) per_second: f64,
}

/// Asks for the same file for some seconds. It checks no certificate.
pub(super) fn run(address: SocketAddr, url: &str, seconds: u32) -> Result<Answers> {
    let mut load = load_command("h2load");
    load.args(["--threads=1", "--clients", CONNECTIONS])
        .args(["--max-concurrent-streams", AT_A_TIME])
        .args(["--npn-list=h2", "--header=accept-encoding: br"])
        .arg(format!("--duration={seconds}"))
        .arg(format!("--connect-to={address}"))
        .arg(url);
    let text = output(&mut load)?;
    read(&text).with_context(|| format!("h2load said:\n{text}"))
}

/// Reads the output of h2load. Failed requests make it invalid.
fn read(text: &str) -> Result<Answers> {
    ensure!(
        text.contains("Application protocol: h2"),
        "it was not HTTP/2"
    );
    let after = |prefix: &str| text.lines().find_map(|line| line.strip_prefix(prefix));
    let parts = after("requests: ").context("there is no number of responses")?;
    let number = |word: &str| -> Result<f64> {
        let mut parts = parts.split(", ");
        let number = parts.find_map(|part| part.strip_suffix(word)?.trim().parse().ok());
        number.with_context(|| format!("the number that {word} is not there"))
    };
    for bad in ["failed", "errored", "timeout"] {
        ensure!(number(bad)? == 0.0, "requests {bad}: {parts}");
    }
    let codes = after("status codes: ").context("there are no status codes")?;
    ensure!(
        codes.contains(" 0 3xx, 0 4xx, 0 5xx"),
        "not all were served: {codes}"
    );
    let rate = after("finished in ").and_then(|line| line.split(", ").nth(1));
    let rate = rate.and_then(|rate| rate.strip_suffix(" req/s")?.parse().ok());
    Ok(Answers {
        succeeded: number("succeeded")?,
        per_second: rate.context("there is no rate")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "TLS Protocol: TLSv1.3
Application protocol: h2

finished in 1.00s, 9876.00 req/s, 37.31MB/s
requests: 9876 total, 10004 started, 9876 done, 9876 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 9877 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 37.31MB (39123456) total, 1.00KB (1024) headers (space savings 95.55%), 37.00MB (38797312) data
";

    #[test]
    fn the_rate_and_the_number_are_read() {
        let answers = Answers {
            succeeded: 9_876.0,
            per_second: 9_876.0,
        };
        assert_eq!(read(GOOD).unwrap(), answers);
    }

    #[test]
    fn failures_and_another_protocol_are_no_measurement() {
        for (good, bad) in [
            ("0 failed", "1 failed"),
            ("0 timeout", "2 timeout"),
            ("0 4xx", "9 4xx"),
            ("protocol: h2", "protocol: http/1.1"),
            ("9876.00 req/s", "? req/s"),
        ] {
            assert!(read(&GOOD.replace(good, bad)).is_err(), "{bad}");
        }
    }
}
