//! `platform-server ready`: asks the running server whether visitors can be sent to it. A container with
//! nothing but the server has no other program that could.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use platform_server::config::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Failure;

/// How long the server may take. It asks its store for two seconds at most.
const ANSWERS: Duration = Duration::from_secs(5);
/// The maximum number of bytes of its response.
const BYTES: u64 = 4 * 1_024 * 1_024;

/// Returns what the server says about itself.
///
/// # Errors
/// The server is not ready, does not answer, or has no listener for operators.
pub(crate) async fn run(config: &Config) -> Result<String, Failure> {
    let Some(listening) = config.operations_listen else {
        return Err("PLATFORM_OPERATIONS_LISTEN is not set, so the server cannot be asked".into());
    };
    let answer = ask(listening, "/readyz").await?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.starts_with("HTTP/1.1 200 ") {
        return Ok(format!("{body}\n"));
    }
    Err(format!("not ready: {body}"))
}

/// Returns where a listener is reached that may listen on all addresses.
const fn reached_at(listening: IpAddr) -> IpAddr {
    match listening {
        IpAddr::V4(address) if address.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(address) if address.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        address => address,
    }
}

/// Asks the listener for operators for a path, and returns its whole response.
///
/// # Errors
/// It does not answer, or not in time.
pub(super) async fn ask(listening: SocketAddr, path: &str) -> Result<String, Failure> {
    let address = SocketAddr::new(reached_at(listening.ip()), listening.port());
    let answer = tokio::time::timeout(ANSWERS, response(address, path)).await;
    let answer = answer.map_err(|_| format!("{address} did not answer in time"))?;
    answer.map_err(|error| format!("{address} does not answer: {error}"))
}

async fn response(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut answer = String::new();
    stream.take(BYTES).read_to_string(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_reached_on_this_machine() {
        for (listening, reached) in [
            ("0.0.0.0", "127.0.0.1"),
            ("::", "::1"),
            ("10.0.0.1", "10.0.0.1"),
        ] {
            let at = reached_at(listening.parse().unwrap());
            assert_eq!(at, reached.parse::<IpAddr>().unwrap());
        }
    }
}
