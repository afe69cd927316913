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
const COMMON: &str = "\
defaults
  mode http
  option redispatch
  retry-on conn-failure
  retries 3
  timeout connect 1s
  timeout client 75s
  timeout server 75s
  timeout http-request 10s
  timeout tunnel 1h

backend nodes
  balance random
  option httpchk GET /readyz
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
    let mut text = COMMON.to_owned();
    for node in nodes {
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "  server {} {} port {}",
            node.name,
            node.address,
            node.operations.port()
        );
    }
    let _ = write!(
        text,
        "\nfrontend players\n  bind {address}\n  default_backend nodes\n"
    );
    text
}
