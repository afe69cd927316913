//! The sockets of a dev server: on this machine only, unless another address is named.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use tokio::net::TcpListener;

use crate::failure::Failure;

/// The port by default. Vite's own is 5173.
const PORT: u16 = 5174;
/// How many ports are tried if the port is not given.
const TRIES: u16 = 20;

/// Listens on both loopback addresses, since `localhost` means either of them, and on `host`.
///
/// # Errors
/// The port is in use, or the address is not one of this machine.
pub(super) async fn listen(
    host: Option<IpAddr>,
    port: Option<u16>,
) -> Result<(Vec<TcpListener>, u16), Failure> {
    let first = port.unwrap_or(PORT);
    // Any port that is free for the first address may be in use for the second.
    let ports = match port {
        Some(0) => vec![0; usize::from(TRIES)],
        Some(port) => vec![port],
        None => (PORT..PORT + TRIES).collect(),
    };
    let mut last = None;
    for port in ports {
        match bind(host, port).await {
            Ok(bound) => return Ok(bound),
            Err((_, error)) if error.kind() == ErrorKind::AddrInUse => last = Some(error),
            Err((address, error)) => {
                return Err(Failure::failed(format!(
                    "This program cannot listen on {address}: {error}."
                )));
            }
        }
    }
    let advice = match port {
        Some(_) => "end the program that uses it, or name another with --port",
        None => "name another with --port",
    };
    let why = last.map_or_else(String::new, |error| format!(" ({error})"));
    Err(Failure::failed(format!(
        "The port {first} is in use{why}: {advice}."
    )))
}

/// Binds one port of every address.
async fn bind(
    host: Option<IpAddr>,
    port: u16,
) -> Result<(Vec<TcpListener>, u16), (IpAddr, io::Error)> {
    let mut listeners = Vec::new();
    let mut port = port;
    for address in addresses(host) {
        match TcpListener::bind(SocketAddr::new(address, port)).await {
            Ok(listener) => {
                if let Ok(bound) = listener.local_addr() {
                    port = bound.port();
                }
                listeners.push(listener);
            }
            // A machine or container without IPv6.
            Err(error)
                if address == IpAddr::V6(Ipv6Addr::LOCALHOST)
                    && error.kind() != ErrorKind::AddrInUse => {}
            Err(error) => return Err((address, error)),
        }
    }
    Ok((listeners, port))
}

/// The addresses to listen on.
fn addresses(host: Option<IpAddr>) -> Vec<IpAddr> {
    let four = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let six = IpAddr::V6(Ipv6Addr::LOCALHOST);
    match host {
        // It includes those of IPv4.
        Some(host @ IpAddr::V6(address)) if address.is_unspecified() => vec![host],
        Some(host) if host.is_unspecified() => vec![host, six],
        Some(host) if host != four && host != six => vec![four, six, host],
        _ => vec![four, six],
    }
}

/// The address under which others in the network reach this machine.
pub(super) fn network_address(host: IpAddr) -> Option<IpAddr> {
    if !host.is_unspecified() {
        return Some(host);
    }
    // Nothing is sent: the system only chooses the way (RFC 5737: an address of nobody).
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// A port for a program that this one starts: the next free one after `port`.
pub(super) fn free_port_after(port: u16) -> Option<u16> {
    (port.checked_add(1)?..=u16::MAX)
        .take(usize::from(TRIES))
        .find(|port| {
            [
                IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                IpAddr::V6(Ipv6Addr::LOCALHOST),
            ]
            .into_iter()
            .all(
                |address| match std::net::TcpListener::bind((address, *port)) {
                    Ok(_) => true,
                    Err(error) => error.kind() != ErrorKind::AddrInUse,
                },
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_reaches_it_unless_an_address_is_named() {
        let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        assert_eq!(addresses(None), loopback);
        assert_eq!(addresses(Some(loopback[0])), loopback);
        let lan = IpAddr::from([192, 168, 1, 20]);
        assert_eq!(addresses(Some(lan)), [loopback[0], loopback[1], lan]);
        let all = IpAddr::from([0, 0, 0, 0]);
        assert_eq!(addresses(Some(all)), [all, loopback[1]]);
    }

    #[tokio::test]
    async fn a_port_in_use_is_skipped_unless_it_was_named() {
        let (held, port) = listen(None, Some(0)).await.unwrap();
        assert!(!held.is_empty());
        let refused = listen(None, Some(port)).await;
        assert!(refused.is_err());
        let next = free_port_after(port - 1).unwrap();
        assert_ne!(next, port);
    }
}
