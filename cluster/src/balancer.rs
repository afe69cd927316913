//! haproxy before the nodes.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;

use anyhow::Result;

use crate::node::Node;
use crate::poll;
use crate::process::{Process, User, find, guarded};

/// What does not depend on the cluster. A request goes to any node, so that nothing works only
/// because one node has seen a player before. It is sent to another node only while no byte of it
/// has been sent, so that none is done twice.
///
/// Where no node is ready, for example while no database takes writes, requests go to every node
/// that runs: it still serves files, keys and heartbeats, and says itself what it cannot do.
const COMMON: &str = "\
global
  log stdout format raw local0

defaults
  mode http
  log global
  option httplog
  option redispatch
  retry-on conn-failure
  retries 3
  timeout connect 1s
  timeout client 75s
  timeout server 75s
  timeout http-request 10s
  timeout http-keep-alive 75s
  timeout tunnel 1h

frontend players
  bind {address}
  use_backend running_nodes if { nbsrv(ready_nodes) eq 0 }
  default_backend ready_nodes
";

/// What is the same for both groups of nodes.
const GROUP: &str = "
  balance random
  http-check expect status 200
  option forwardfor
  http-request set-header X-Forwarded-Proto http
  default-server check inter 500ms fall 2 rise 1
";

/// The running haproxy.
#[derive(Debug)]
pub struct Balancer {
    /// The program.
    pub process: Process,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Balancer {
    pub(crate) fn start(folder: &Path, port: u16, nodes: &[Node]) -> Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let file = folder.join("haproxy.cfg");
        std::fs::write(&file, configuration(address, nodes))?;
        let mut command = guarded(&find("haproxy", "haproxy")?, User::Same)?;
        // In the foreground, in this one process.
        command.arg("-db").arg("-f").arg(&file);
        let mut process = Process::start("haproxy", folder, &mut command)?;
        poll::until("haproxy to listen", || {
            process.check()?;
            Ok(TcpStream::connect(address).is_ok())
        })?;
        Ok(Self { process, address })
    }
}

fn configuration(address: SocketAddr, nodes: &[Node]) -> String {
    let mut text = COMMON.replace("{address}", &address.to_string());
    for (group, question) in [("ready_nodes", "/readyz"), ("running_nodes", "/healthz")] {
        // Writing into a string cannot fail.
        let _ = write!(
            text,
            "\nbackend {group}\n  option httpchk GET {question}{GROUP}"
        );
        for Node {
            name,
            address,
            operations,
            ..
        } in nodes
        {
            let port = operations.port();
            let _ = writeln!(text, "  server {name} {address} port {port}");
        }
    }
    text
}
