//! Sockets that a service manager has opened and passes to the server (`LISTEN_FDS`). They stay open
//! while the server is restarted, so that visitors who come meanwhile wait for a moment and are not
//! refused. They are told apart by their names (`LISTEN_FDNAMES`), or by their addresses.

use std::net::{SocketAddr, TcpListener};

use listenfd::ListenFd;

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Visitors, over http or https.
    Visitors,
    /// Visitors without TLS, who are redirected.
    Redirect,
    /// The operator: health checks and metrics.
    Operations,
}

impl Purpose {
    /// Returns what a socket with this name (`FileDescriptorName=` of systemd) is for. `None` for other
    /// names, such as that of the unit, which systemd uses by itself.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "http" | "https" => Some(Self::Visitors),
            "redirect" => Some(Self::Redirect),
            "operations" => Some(Self::Operations),
            _ => None,
        }
    }

    /// Returns the setting without which such a socket is not used.
    pub(super) const fn setting(self) -> &'static str {
        match self {
            Self::Visitors => "PLATFORM_LISTEN",
            Self::Redirect => "PLATFORM_REDIRECT_LISTEN",
            Self::Operations => "PLATFORM_OPERATIONS_LISTEN",
        }
    }
}

/// A socket that nobody uses yet.
#[derive(Debug)]
struct Passed {
    socket: TcpListener,
    /// What its name says.
    purpose: Option<Purpose>,
}

/// The sockets that were passed and are not used yet.
#[derive(Debug, Default)]
pub struct Sockets(Vec<Passed>);

impl Sockets {
    /// Takes those that this process was started with.
    ///
    /// # Errors
    /// One of them is not a listening TCP socket.
    pub fn from_process() -> std::io::Result<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "this variable is no setting: the service manager sets it for one process"
        )]
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut passed = ListenFd::from_env();
        let mut sockets = Vec::new();
        for index in 0..passed.len() {
            sockets.extend(passed.take_tcp_listener(index)?);
        }
        Ok(Self::new(sockets, &names))
    }

    /// Uses these, whose names are separated by colons.
    fn new(sockets: Vec<TcpListener>, names: &str) -> Self {
        let purposes = names.split(':').map(Purpose::named);
        let purposes = purposes.chain(std::iter::repeat(None));
        let passed = sockets.into_iter().zip(purposes);
        Self(
            passed
                .map(|(socket, purpose)| Passed { socket, purpose })
                .collect(),
        )
    }

    /// Takes the socket for this purpose: the one that is named so, or else one without a name that has
    /// this address.
    pub(super) fn take(&mut self, purpose: Purpose, address: SocketAddr) -> Option<TcpListener> {
        let named = |passed: &Passed| passed.purpose == Some(purpose);
        self.take_first(named)
            .or_else(|| self.take_first(|passed| passed.is_at(address)))
    }

    /// Takes the socket for visitors: if there is none for them, the first one without a name, which has an
    /// address that only the service manager knows.
    pub(super) fn take_for_visitors(&mut self, address: SocketAddr) -> Option<TcpListener> {
        self.take(Purpose::Visitors, address)
            .or_else(|| self.take_first(|passed| passed.purpose.is_none()))
    }

    fn take_first(&mut self, is_it: impl Fn(&Passed) -> bool) -> Option<TcpListener> {
        let index = self.0.iter().position(is_it)?;
        Some(self.0.remove(index).socket)
    }

    /// Returns the addresses of those that nobody took, and what they are for if it is known.
    pub(super) fn left(&self) -> Vec<(SocketAddr, Option<Purpose>)> {
        let left = self.0.iter().filter_map(|passed| {
            let address = passed.socket.local_addr().ok()?;
            Some((address, passed.purpose))
        });
        left.collect()
    }
}

impl Passed {
    /// Whether it has no name, and listens at this address. Who listens at every address is meant with IPv4
    /// and with IPv6: systemd makes `[::]:443` of `ListenStream=443`.
    fn is_at(&self, address: SocketAddr) -> bool {
        let own = self.socket.local_addr();
        self.purpose.is_none()
            && own.is_ok_and(|own| {
                let everywhere = own.ip().is_unspecified() && address.ip().is_unspecified();
                own == address || everywhere && own.port() == address.port()
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(at: &str) -> (TcpListener, SocketAddr) {
        let socket = TcpListener::bind(at).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    fn at(taken: Option<TcpListener>) -> Option<SocketAddr> {
        taken.map(|socket| socket.local_addr().unwrap())
    }

    const NOWHERE: &str = "127.0.0.1:1";

    #[test]
    fn a_socket_is_found_by_its_address_and_visitors_get_the_first_one_otherwise() {
        let ((one, first), (other, second)) = (listen("127.0.0.1:0"), listen("127.0.0.1:0"));
        let nowhere = NOWHERE.parse().unwrap();
        let mut sockets = Sockets::new(vec![one, other], "platform-server.socket:unknown");
        assert_eq!(at(sockets.take(Purpose::Operations, nowhere)), None);
        assert_eq!(at(sockets.take(Purpose::Operations, second)), Some(second));
        assert_eq!(sockets.left(), [(first, None)]);
        assert_eq!(at(sockets.take_for_visitors(nowhere)), Some(first));
        assert_eq!(at(sockets.take_for_visitors(nowhere)), None);
        assert!(sockets.left().is_empty());
    }

    #[test]
    fn a_name_says_what_a_socket_is_for_whatever_its_address() {
        let made = [(); 4].map(|()| listen("127.0.0.1:0"));
        let addresses = made.each_ref().map(|(_, address)| *address);
        let nowhere = NOWHERE.parse().unwrap();
        let sockets = || {
            let own = made
                .each_ref()
                .map(|(socket, _)| socket.try_clone().unwrap());
            Sockets::new(own.into(), "operations:redirect:https")
        };
        let mut named = sockets();
        // One that is named for something else is not taken, even if it is at the address.
        let taken = named.take(Purpose::Redirect, addresses[0]);
        assert_eq!(at(taken), Some(addresses[1]));
        assert_eq!(at(named.take(Purpose::Redirect, addresses[0])), None);
        assert_eq!(at(named.take_for_visitors(nowhere)), Some(addresses[2]));
        let operations = Some(Purpose::Operations);
        assert_eq!(
            named.left(),
            [(addresses[0], operations), (addresses[3], None)]
        );
        // Fewer names than sockets: the others have none.
        assert_eq!(at(named.take_for_visitors(nowhere)), Some(addresses[3]));
        assert_eq!(at(named.take_for_visitors(nowhere)), None);
    }

    #[test]
    fn a_socket_for_every_address_is_meant_with_ipv4_and_ipv6() {
        let (socket, address) = listen("0.0.0.0:0");
        let mut sockets = Sockets::new(vec![socket], "");
        let with = |ip: &str, port: u16| format!("{ip}:{port}").parse().unwrap();
        for other in [
            with("127.0.0.1", address.port()),
            with("[::]", address.port().wrapping_add(1)),
        ] {
            assert_eq!(at(sockets.take(Purpose::Redirect, other)), None, "{other}");
        }
        let meant = with("[::]", address.port());
        assert_eq!(at(sockets.take(Purpose::Redirect, meant)), Some(address));
    }
}
