//! Sockets that a service manager has opened and passes to the server (`LISTEN_FDS`). They stay open
//! while the server is restarted, so that visitors who come meanwhile wait for a moment and are not
//! refused.

use std::net::{SocketAddr, TcpListener};

use listenfd::ListenFd;

/// The sockets that were passed and are not used yet.
#[derive(Debug, Default)]
pub struct Sockets(Vec<TcpListener>);

impl Sockets {
    /// Takes those that this process was started with.
    ///
    /// # Errors
    /// One of them is not a listening TCP socket.
    pub fn from_process() -> std::io::Result<Self> {
        let mut passed = ListenFd::from_env();
        let mut sockets = Vec::new();
        for index in 0..passed.len() {
            sockets.extend(passed.take_tcp_listener(index)?);
        }
        Ok(Self(sockets))
    }

    /// Takes the socket with this address.
    pub(super) fn take(&mut self, address: SocketAddr) -> Option<TcpListener> {
        let has_address =
            |socket: &TcpListener| socket.local_addr().is_ok_and(|own| own == address);
        let index = self.0.iter().position(has_address)?;
        Some(self.0.remove(index))
    }

    /// Takes the socket for visitors: the one with this address, or else the first one, which has an
    /// address that only the service manager knows.
    pub(super) fn take_for_visitors(&mut self, address: SocketAddr) -> Option<TcpListener> {
        let first = |sockets: &mut Self| (!sockets.0.is_empty()).then(|| sockets.0.remove(0));
        self.take(address).or_else(|| first(self))
    }

    /// Returns the addresses of those that nobody took.
    pub(super) fn left(&self) -> Vec<SocketAddr> {
        self.0
            .iter()
            .filter_map(|socket| socket.local_addr().ok())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_found_by_its_address_and_visitors_get_the_first_one_otherwise() {
        let socket = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (one, other) = (socket(), socket());
        let at = |socket: &TcpListener| socket.local_addr().unwrap();
        let (first, second) = (at(&one), at(&other));
        let nowhere = "127.0.0.1:1".parse().unwrap();
        let mut sockets = Sockets(vec![one, other]);
        assert!(sockets.take(nowhere).is_none());
        assert_eq!(at(&sockets.take(second).unwrap()), second);
        assert_eq!(sockets.left(), [first]);
        assert_eq!(at(&sockets.take_for_visitors(nowhere).unwrap()), first);
        assert!(sockets.take_for_visitors(nowhere).is_none());
        assert!(sockets.left().is_empty());
    }
}
