//! Finds the port on which a started command listens, since only few tools take it from `PORT`.

use std::collections::BTreeSet;
use std::time::Duration;

use http::{Request, header};
use hyper::body::Incoming;

use super::forward::{Address, Connections};
use super::program::Group;
use crate::client::{Body, empty};
use crate::clock::{Stopwatch, pause};
use crate::terminal;

/// How often the command is looked at.
const LOOK: Duration = Duration::from_millis(150);
/// How long one response to the trial may take: some servers compile a page when it is requested.
const TRIAL: Duration = Duration::from_secs(5);
/// After this time a server counts that serves no pages.
const NO_PAGES: Duration = Duration::from_secs(10);
/// After this time it is said that nothing was found.
const LONG: Duration = Duration::from_secs(20);

/// Waits until the command listens, and returns the address. `given` is the port that it was told to
/// use; it may as well use another. Of several servers, the one counts that responds with a page.
pub(super) async fn find(connections: &Connections, group: Group, given: u16) -> Address {
    let begun = Stopwatch::start();
    let mut was_told = false;
    loop {
        let mut ports = listening(group);
        if is_listening(given).await {
            ports.insert(given);
        }
        if ports.contains(&given) {
            return Address::local(given);
        }
        for port in &ports {
            let address = Address::local(*port);
            if trial(connections, &address).await == Trial::Page {
                return address;
            }
        }
        if begun.elapsed() > NO_PAGES
            && let Some(port) = ports.first()
        {
            return Address::local(*port);
        }
        if begun.elapsed() > LONG && !was_told {
            was_told = true;
            terminal::note(
                "The command listens on no port yet. If it runs its server elsewhere, name the \
                 address with --to.",
            );
        }
        pause(LOOK).await;
    }
}

/// Waits until something listens at an address.
pub(super) async fn wait_for(connections: &Connections, address: &Address) {
    while trial(connections, address).await == Trial::Nothing {
        pause(LOOK).await;
    }
}

/// What a server responds with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trial {
    Nothing,
    Something,
    Page,
}

async fn trial(connections: &Connections, address: &Address) -> Trial {
    match start_page(connections, address).await {
        None => Trial::Nothing,
        Some(response) if is_page(&response) || response.status().is_redirection() => Trial::Page,
        Some(_) => Trial::Something,
    }
}

/// Requests the start page of a server, as a browser does.
pub(super) async fn start_page(
    connections: &Connections,
    address: &Address,
) -> Option<http::Response<Incoming>> {
    let request: Request<Body> = Request::get(format!("{address}/"))
        .header(header::ACCEPT, "text/html")
        .body(empty())
        .ok()?;
    let response = tokio::time::timeout(TRIAL, connections.request(request)).await;
    response.ok()?.ok()
}

/// Whether a response is a page.
pub(super) fn is_page<B>(response: &http::Response<B>) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

async fn is_listening(port: u16) -> bool {
    tokio::net::TcpStream::connect(("localhost", port))
        .await
        .is_ok()
}

/// The ports on which processes of the group listen, as far as the system shows them.
#[cfg(target_os = "linux")]
fn listening(group: Group) -> BTreeSet<u16> {
    use procfs::net::TcpState;
    use procfs::process::{FDTarget, all_processes};

    let Some(group) = group.number() else {
        return BTreeSet::new();
    };
    let members = all_processes().into_iter().flatten().flatten();
    let members = members.filter(|process| process.stat().is_ok_and(|stat| stat.pgrp == group));
    let sockets: BTreeSet<u64> = members
        .filter_map(|process| process.fd().ok())
        .flatten()
        .filter_map(|open| match open.ok()?.target {
            FDTarget::Socket(inode) => Some(inode),
            _ => None,
        })
        .collect();
    let four = procfs::net::tcp().into_iter().flatten();
    let six = procfs::net::tcp6().into_iter().flatten();
    four.chain(six)
        .filter(|socket| socket.state == TcpState::Listen && sockets.contains(&socket.inode))
        .map(|socket| socket.local_address.port())
        .collect()
}

/// Elsewhere `lsof` knows, which macOS has.
#[cfg(all(unix, not(target_os = "linux")))]
fn listening(group: Group) -> BTreeSet<u16> {
    let Some(group) = group.number() else {
        return BTreeSet::new();
    };
    let group = group.to_string();
    let output = std::process::Command::new("lsof")
        .args(["-a", "-g", &group, "-nP", "-iTCP", "-sTCP:LISTEN", "-Fn"])
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    ports_of(&text.unwrap_or_default())
}

#[cfg(not(unix))]
fn listening(_group: Group) -> BTreeSet<u16> {
    BTreeSet::new()
}

/// The ports in the output of `lsof -Fn`: a line `n127.0.0.1:5173` for each socket.
#[cfg(any(test, all(unix, not(target_os = "linux"))))]
fn ports_of(text: &str) -> BTreeSet<u16> {
    text.lines()
        .filter_map(|line| line.strip_prefix('n')?.rsplit_once(':')?.1.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_from_lsof() {
        let text = "p4711\nf23\nn127.0.0.1:5173\nf24\nn[::1]:5173\nf25\nn*:24678\np4712\n";
        assert_eq!(ports_of(text), BTreeSet::from([5173, 24678]));
    }
}
