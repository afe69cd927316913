//! A relay before a server, which can fall silent: connections stay open and no byte passes, as in
//! a network that drops packets.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};

/// How many bytes are passed on at once.
const PIECE: usize = 64 * 1024;

/// What a relay does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Passes,
    Silent,
    Ended,
}

/// The state, for which every connection waits before it passes bytes on.
#[derive(Debug)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.changed.notify_all();
    }

    /// Waits while the relay is silent. Returns whether bytes pass.
    fn passes(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_while(state, |state| *state == State::Silent);
        *waited.unwrap_or_else(PoisonError::into_inner) == State::Passes
    }
}

/// A running relay. Its threads end with it, or with the connections that they have.
#[derive(Debug)]
pub struct Relay {
    /// Where it listens, under 127.0.0.1.
    pub port: u16,
    gate: Arc<Gate>,
}

impl Relay {
    /// Starts one before the server on this port of 127.0.0.1.
    pub(crate) fn start(server: u16) -> Result<Self> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = TcpListener::bind(any).context("no port for a relay")?;
        let port = listener.local_addr()?.port();
        let gate = Arc::new(Gate {
            state: Mutex::new(State::Passes),
            changed: Condvar::new(),
        });
        let shared = Arc::clone(&gate);
        thread::spawn(move || accept(&listener, server, &shared));
        Ok(Self { port, gate })
    }

    /// From now on no byte passes, until [`Relay::pass`].
    pub fn fall_silent(&self) {
        self.gate.set(State::Silent);
    }

    /// Passes everything on again, also what came meanwhile.
    pub fn pass(&self) {
        self.gate.set(State::Passes);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.gate.set(State::Ended);
        // Its thread waits for the next connection.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn accept(listener: &TcpListener, server: u16, gate: &Arc<Gate>) {
    for client in listener.incoming() {
        if !gate.passes() {
            return;
        }
        let (Ok(client), Ok(server)) = (client, TcpStream::connect((Ipv4Addr::LOCALHOST, server)))
        else {
            // Nothing listens there: the client's connection ends.
            continue;
        };
        let copies = (client.try_clone(), server.try_clone());
        if let (Ok(from_client), Ok(from_server)) = copies {
            for (from, to) in [(from_client, server), (from_server, client)] {
                let gate = Arc::clone(gate);
                thread::spawn(move || pass_on(from, to, &gate));
            }
        }
    }
}

/// Passes bytes on in one direction until one side ends.
fn pass_on(mut from: TcpStream, mut to: TcpStream, gate: &Gate) {
    let mut piece = vec![0; PIECE];
    while let Ok(length) = from.read(&mut piece) {
        if length == 0 || !gate.passes() || to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    // The other side may have ended both.
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
