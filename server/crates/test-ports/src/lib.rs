//! Ports for tests and tools that must know a number before a program listens there, or that need a port on
//! which nothing listens.
//!
//! A port that a test takes from the system (port 0) and gives back is free for everybody: the system may
//! choose it for the next socket of any process, also for an outgoing connection, before the program listens.
//! So these ports lie outside of the range from which the system chooses. Processes of this machine that use
//! this crate exclude each other by a name for each port.
//!
//! Only Linux has such names, and only there do the tests run.

use std::fs::read_to_string;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The lowest port that is reserved. Well-known services and development servers have lower ones, and browsers
/// refuse some up to 10080 (<https://fetch.spec.whatwg.org/#port-blocking>).
const MIN_PORT: u16 = 10_100;
/// With fewer ports than this, parallel test runs could use up all of them.
const MIN_COUNT: usize = 1_000;
/// How far apart two processes with consecutive ids begin, so that they rarely try the same port.
const STRIDE: usize = 64;
/// The file with the first and the last port that the system chooses by itself.
const EPHEMERAL: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// How long a program may take to accept a connection; the system does it for most of them at once.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// A port, for TCP and UDP, that neither the system nor another process with this type gives away while this
/// value exists. Keep it as long as the program that listens there, or may be started again there.
#[derive(Debug)]
pub struct ReservedPort {
    number: u16,
    /// It has an abstract name (unix(7)), which only one socket of a network namespace can have. The name goes
    /// with the process, however that ends, and started programs do not inherit the socket.
    _name: UnixDatagram,
}

impl ReservedPort {
    /// Reserves a port on which nothing listens.
    ///
    /// # Errors
    /// The system leaves too few ports, or all of them are in use; the error says what to do.
    pub fn take() -> io::Result<Self> {
        static TRIED: AtomicUsize = AtomicUsize::new(0);
        let ports = outside_of(&read_to_string(EPHEMERAL)?)?;
        let first = usize::try_from(std::process::id()).unwrap_or_default() * STRIDE;
        for _ in 0..ports.len() {
            // A port that was given back is the last one that is tried again.
            let next = first + TRIED.fetch_add(1, Ordering::Relaxed);
            let port = ports.clone().nth(next % ports.len());
            if let Some(reserved) = port.map(Self::take_this).transpose()?.flatten() {
                return Ok(reserved);
            }
        }
        Err(io::Error::new(
            ErrorKind::AddrInUse,
            format!("each port of {ports:?} is in use or reserved: end programs that listen there"),
        ))
    }

    /// Reserves this port, or returns `None` if it is reserved or in use.
    fn take_this(number: u16) -> io::Result<Option<Self>> {
        let name = UnixAddress::from_abstract_name(format!("platform-test-port-{number}"))?;
        let name = match UnixDatagram::bind_addr(&name) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => return Ok(None),
            bound => bound?,
        };
        let reserved = Self {
            number,
            _name: name,
        };
        Ok((!is_in_use(number)?).then_some(reserved))
    }

    /// Returns its number.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// Returns its address on this machine, 127.0.0.1.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}

/// The ports above or below those that the system chooses, whichever are more.
fn outside_of(ephemeral: &str) -> io::Result<Range<u16>> {
    let mut limits = ephemeral.split_whitespace().map(str::parse);
    let (Some(Ok(first)), Some(Ok(last))) = (limits.next(), limits.next()) else {
        let error = format!("{EPHEMERAL} has no two ports: {ephemeral:?}");
        return Err(io::Error::new(ErrorKind::InvalidData, error));
    };
    let above = MIN_PORT.max(u16::saturating_add(last, 1))..u16::MAX;
    let outside = [MIN_PORT..first, above];
    let most = outside.into_iter().max_by_key(ExactSizeIterator::len);
    most.filter(|ports| ports.len() >= MIN_COUNT)
        .ok_or_else(|| {
            io::Error::other(format!(
                "the system chooses from the ports {first} to {last}, which leaves too few for tests: run \
                 `sudo sysctl net.ipv4.ip_local_port_range='32768 60999'`"
            ))
        })
}

/// Whether a program of this machine uses the port: it accepts connections on it, or has a socket for UDP with it.
///
/// Binding the port would answer as well. But while another thread starts a program, that process has a copy of
/// each socket of this one, so the port could still be in use after the attempt.
fn is_in_use(port: u16) -> io::Result<bool> {
    let loopback = [
        SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
    ];
    for address in loopback {
        match TcpStream::connect_timeout(&address, ANSWER_TIMEOUT) {
            // A program that does not accept a connection in time listens as well.
            Ok(_) => return Ok(true),
            Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(true),
            // Nothing listens there, or there is no IPv6.
            Err(_) => {}
        }
    }
    // The table of TCP would show every listener, but the system takes many milliseconds to write it.
    for table in ["udp", "udp6"] {
        match read_to_string(format!("/proc/thread-self/net/{table}")) {
            Ok(sockets) if has_port(&sockets, port) => return Ok(true),
            Ok(_) => {}
            // There is no IPv6.
            Err(error) if error.kind() == ErrorKind::NotFound && table.ends_with('6') => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Whether a table of sockets has one with this local port: its second column, in hexadecimal (proc(5)).
fn has_port(sockets: &str, port: u16) -> bool {
    let ending = format!(":{port:04X}");
    sockets.lines().skip(1).any(|line| {
        let local = line.split_whitespace().nth(1);
        local.is_some_and(|local| local.ends_with(&ending))
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::process::{Command, Stdio};

    use super::*;

    // Ports from 1 to 4 are never reserved by others, and nothing listens there.

    /// Whether this port can be reserved soon: a process that another test starts has a copy of each socket until
    /// it runs its program.
    fn is_given_back(port: u16) -> bool {
        (0..1_000_000).any(|_| {
            std::thread::yield_now();
            ReservedPort::take_this(port).unwrap().is_some()
        })
    }

    #[test]
    fn every_reserved_port_is_another_one_and_not_of_those_that_the_system_chooses() {
        let ports: Vec<_> = (0..50).map(|_| ReservedPort::take().unwrap()).collect();
        let range = read_to_string(EPHEMERAL).unwrap();
        let chosen: Vec<u16> = range
            .split_whitespace()
            .map(|port| port.parse().unwrap())
            .collect();
        let mut numbers: Vec<_> = ports.iter().map(ReservedPort::number).collect();
        for number in &numbers {
            assert!(*number < chosen[0] || *number > chosen[1], "{number}");
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), ports.len());
    }

    #[test]
    fn a_reserved_port_can_be_listened_on() {
        let port = ReservedPort::take().unwrap();
        let listener = TcpListener::bind(port.address()).unwrap();
        assert_eq!(listener.local_addr().unwrap().port(), port.number());
        UdpSocket::bind(port.address()).unwrap();
    }

    #[test]
    fn a_port_is_reserved_once_until_it_is_given_back() {
        let port = ReservedPort::take_this(1).unwrap().unwrap();
        assert!(ReservedPort::take_this(1).unwrap().is_none());
        drop(port);
        assert!(is_given_back(1));
    }

    #[test]
    fn a_started_program_does_not_keep_a_port_reserved() {
        let port = ReservedPort::take_this(2).unwrap().unwrap();
        // It runs until its input ends.
        let mut program = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        drop(port);
        assert!(is_given_back(2));
        drop(program.stdin.take());
        program.wait().unwrap();
    }

    #[test]
    fn another_process_does_not_get_a_reserved_port() {
        let _port = ReservedPort::take_this(3).unwrap().unwrap();
        // A copy of this program runs the test below, which fails because the port is reserved here.
        let other = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::port_3_is_free", "--ignored"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&other.stdout);
        assert!(said.contains("port 3 is reserved"), "{said}");
    }

    #[test]
    #[ignore = "the test above runs it in another process"]
    fn port_3_is_free() {
        let port = ReservedPort::take_this(3).unwrap();
        assert!(port.is_some(), "port 3 is reserved");
    }

    #[test]
    fn a_port_that_a_program_uses_is_not_reserved() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let mut used = vec![listener.local_addr(), socket.local_addr()];
        // A machine may have no IPv6.
        let other = TcpListener::bind((Ipv6Addr::LOCALHOST, 0));
        used.extend(other.iter().map(TcpListener::local_addr));
        for address in used {
            let address = address.unwrap();
            let taken = ReservedPort::take_this(address.port()).unwrap();
            assert!(taken.is_none(), "{address}");
        }
        assert!(ReservedPort::take_this(4).unwrap().is_some());
    }

    #[test]
    fn ports_are_taken_from_the_larger_side_of_what_the_system_chooses() {
        assert_eq!(outside_of("32768\t60999\n").unwrap(), 10_100..32_768);
        assert_eq!(outside_of("1024 30000").unwrap(), 30_001..65_535);
        assert_eq!(outside_of("1024 5000").unwrap(), 10_100..65_535);
        let none = outside_of("1024 65535").unwrap_err().to_string();
        assert!(none.contains("sysctl"), "{none}");
        assert!(outside_of("").is_err());
    }

    #[test]
    fn sockets_are_found_by_their_local_port_alone() {
        let table = "  sl  local_address rem_address   st\n   \
             0: 0100007F:2EE0 00000000:0000 07\n   1: 0100007F:A000 0100007F:2EE1 01\n";
        assert!(has_port(table, 0x2EE0));
        assert!(!has_port(table, 0x2EE1));
    }
}
