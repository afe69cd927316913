//! A relay before a server, which can fall silent: connections stay open and no byte passes, as in
//! a network that drops packets. It counts how often a client had to wait for the server.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

/// Round trips of all connections: a client sends, in one piece or several, and the server answers.
#[derive(Debug, Default)]
struct RoundTrips(AtomicU64);

/// Which side sends on one connection.
#[derive(Debug)]
struct Turn {
    all: Arc<RoundTrips>,
    is_clients: AtomicBool,
}

impl Turn {
    fn new(all: &Arc<RoundTrips>) -> Arc<Self> {
        Arc::new(Self {
            all: Arc::clone(all),
            is_clients: AtomicBool::new(false),
        })
    }

    /// The client has sent something: a round trip begins, unless one has begun.
    fn client_sent(&self) {
        if !self.is_clients.swap(true, Ordering::SeqCst) {
            self.all.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The server has sent something.
    fn server_sent(&self) {
        self.is_clients.store(false, Ordering::SeqCst);
    }
}

/// A running relay. Its threads end with it, or with the connections that they have.
#[derive(Debug)]
pub struct Relay {
    /// Where it listens, under 127.0.0.1.
    pub port: u16,
    gate: Arc<Gate>,
    round_trips: Arc<RoundTrips>,
}

impl Relay {
    /// Starts one before the server on this port of 127.0.0.1.
    ///
    /// # Errors
    /// No port is free.
    pub fn start(server: u16) -> Result<Self> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = TcpListener::bind(any).context("no port for a relay")?;
        let port = listener.local_addr()?.port();
        let gate = Arc::new(Gate {
            state: Mutex::new(State::Passes),
            changed: Condvar::new(),
        });
        let round_trips = Arc::<RoundTrips>::default();
        let shared = (Arc::clone(&gate), Arc::clone(&round_trips));
        thread::spawn(move || accept(&listener, server, &shared.0, &shared.1));
        Ok(Self {
            port,
            gate,
            round_trips,
        })
    }

    /// From now on no byte passes, until [`Relay::pass`].
    pub fn fall_silent(&self) {
        self.gate.set(State::Silent);
    }

    /// Passes everything on again, also what came meanwhile.
    pub fn pass(&self) {
        self.gate.set(State::Passes);
    }

    /// How often a client has sent something after the server had answered, on all connections so
    /// far: what is sent in one go is one round trip.
    #[must_use]
    pub fn round_trips(&self) -> u64 {
        self.round_trips.0.load(Ordering::SeqCst)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.gate.set(State::Ended);
        // Its thread waits for the next connection.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn accept(listener: &TcpListener, server: u16, gate: &Arc<Gate>, trips: &Arc<RoundTrips>) {
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
            let turn = Turn::new(trips);
            let way_in = (Arc::clone(gate), Arc::clone(&turn));
            thread::spawn(move || {
                pass_on(from_client, server, &way_in.0, || way_in.1.client_sent());
            });
            let gate = Arc::clone(gate);
            thread::spawn(move || pass_on(from_server, client, &gate, || turn.server_sent()));
        }
    }
}

/// Passes bytes on in one direction until one side ends. `sent` is called before the other side has
/// them, so that nothing which follows from them is counted earlier.
fn pass_on(mut from: TcpStream, mut to: TcpStream, gate: &Gate, sent: impl Fn()) {
    let mut piece = vec![0; PIECE];
    while let Ok(length) = from.read(&mut piece) {
        if length == 0 || !gate.passes() {
            break;
        }
        sent();
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    // The other side may have ended both.
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_before_an_answer_is_one_round_trip() {
        let all = Arc::<RoundTrips>::default();
        let count = || all.0.load(Ordering::SeqCst);
        let (one, other) = (Turn::new(&all), Turn::new(&all));
        one.client_sent();
        one.client_sent();
        assert_eq!(count(), 1);
        one.server_sent();
        one.server_sent();
        one.client_sent();
        assert_eq!(count(), 2);
        // Each connection has its own turn.
        other.client_sent();
        assert_eq!(count(), 3);
        one.client_sent();
        assert_eq!(count(), 3);
        // What a server sends by itself is no round trip.
        other.server_sent();
        other.server_sent();
        assert_eq!(count(), 3);
    }

    #[test]
    fn a_relay_counts_the_questions_of_a_client() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::start(server.local_addr().unwrap().port()).unwrap();
        let answers = thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut question = [0; 4];
            while stream.read_exact(&mut question).is_ok() {
                stream.write_all(b"answer").unwrap();
            }
        });
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port)).unwrap();
        for asked in 1..=3 {
            client.write_all(b"ask?").unwrap();
            client.read_exact(&mut [0; 6]).unwrap();
            assert_eq!(relay.round_trips(), asked);
        }
        drop(client);
        answers.join().unwrap();
    }
}
