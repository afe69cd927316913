//! What an idle server costs: the time to its start, its memory, and that of a connection which
//! waits.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Both;
use super::servers;
use super::turns::in_turns;
use super::verdict::{Better, Figure};
use crate::contenders;
use crate::process::Process;

/// How long the starts are measured at most.
const STARTS_PERIOD: Duration = Duration::from_secs(150);
/// Connections that wait: fewer than the files that a program may open if nobody raises that.
const CONNECTIONS: usize = 800;
/// How long a response may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Compares starts on a store that is there.
pub(super) fn measure(both: &Both<'_>) -> Result<Vec<Figure>> {
    let [starts, idle, waiting] = in_turns("starts", STARTS_PERIOD, |side| {
        let server = servers::start(both, side, "starts", &[])?;
        let start = server.ready_after.as_secs_f64() * 1_000.0;
        contenders::visit(&server)?;
        let idle = server.memory()? as f64;
        let connections = (0..CONNECTIONS).map(|_| wait_after_answer(&server));
        let connections = connections.collect::<Result<Vec<_>>>()?;
        let grown = server.memory()? as f64 - idle;
        drop(connections);
        ensure!(
            grown > 0.0,
            "the server's memory did not grow by {CONNECTIONS} connections, so there is nothing to compare: \
             measure again on a machine that does less"
        );
        Ok([start, idle, grown * 1_024.0 / CONNECTIONS as f64])
    })?;
    Ok(vec![
        Figure::measured("start on an existing store, ms", Better::Less, &starts),
        Figure::measured("memory of the idle server, kB", Better::Less, &idle),
        Figure::measured(
            "memory of an idle connection, bytes",
            Better::Less,
            &waiting,
        ),
    ])
}

/// Opens a connection, has one response, and keeps it open.
fn wait_after_answer(server: &Process) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(server.address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let host = server.host("demo");
    write!(stream, "HEAD / HTTP/1.1\r\nHost: {host}\r\n\r\n")?;
    let mut head = Vec::new();
    let mut part = [0; 1_024];
    while !head.ends_with(b"\r\n\r\n") {
        let count = stream
            .read(&mut part)
            .context("a connection that waits got no answer")?;
        ensure!(count > 0, "the server closed a connection that waits");
        head.extend_from_slice(&part[..count]);
    }
    Ok(stream)
}
