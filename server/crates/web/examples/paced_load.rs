//! A client that does not send as fast as it can: it holds idle connections, reads slowly, or sends
//! a fixed number of requests a second. `cargo xtask bench` measures servers beside it.
//!
//! `paced_load idle <address> <count> <head>`: each connection gets one response and then waits.
//! `paced_load slow <address> <count> <head>`: each connection requests again and again, and reads a
//! response at 80 kB/s.
//! `paced_load rate <address> <requests a second> <seconds> <head>`: prints the 99th percentile of the
//! response times in milliseconds.
//! `paced_load flood <address> <connections> <requests a second> <seconds> <head>`: the same on many
//! connections, to a server that may refuse requests with 503; prints the responses a second that were
//! not refused, those that were, and the 99th percentile of the former in milliseconds.
//!
//! A head is a request's text without the empty line at its end; `\n` stands for the end of a line. The
//! first two print a line when all connections have had a response, and end with the standard input.
//! Idle connections come from addresses of many networks, so that no limit of a network is reached.

#![expect(clippy::print_stdout, reason = "the program's result")]

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at};

/// Connections from one address.
const PER_ADDRESS: usize = 500;
/// Connections that send at a fixed rate.
const SENDERS: usize = 64;
/// What a slow reader reads at once, and how often.
const SIP: usize = 8_192;
const SIPS: Duration = Duration::from_millis(100);

/// One connection, and what was read beyond the last response.
struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    /// Connects from the address of this number.
    async fn open(to: SocketAddr, number: usize) -> io::Result<Self> {
        let network = u8::try_from(number / PER_ADDRESS + 1).map_err(io::Error::other)?;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        let from = SocketAddr::from((Ipv4Addr::new(127, network, 0, 1), 0));
        socket.bind(&from.into())?;
        socket.connect(&to.into())?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        let stream = TcpStream::from_std(socket.into())?;
        let read = Vec::new();
        Ok(Self { stream, read })
    }

    /// Sends a request and reads its response, at most `most` bytes at once and then only at the
    /// ticks of `pace`. Returns whether it was answered, and not refused.
    async fn ask(&mut self, request: &[u8], pace: Option<(usize, Duration)>) -> io::Result<bool> {
        self.stream.write_all(request).await?;
        self.read.clear();
        let mut wanted = None;
        let mut ticks = pace.map(|(_, every)| interval(every));
        let most = pace.map_or(65_536, |(most, _)| most);
        let mut buffer = vec![0; most];
        loop {
            if let Some(ticks) = &mut ticks {
                ticks.tick().await;
            }
            let count = self.stream.read(&mut buffer).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.read
                .extend_from_slice(buffer.get(..count).unwrap_or_default());
            if wanted.is_none() {
                wanted = length(&self.read)?;
            }
            if let Some((answered, wanted)) = wanted
                && self.read.len() >= wanted
            {
                return Ok(answered);
            }
        }
    }
}

/// Returns whether the response that begins here is a success, and its length, if its head is whole.
///
/// # Errors
/// Returns an error if it is neither a success nor a refusal, or does not say how long it is.
fn length(read: &[u8]) -> io::Result<Option<(bool, usize)>> {
    let end = read.windows(4).position(|window| window == b"\r\n\r\n");
    let Some(head) = end.and_then(|end| read.get(..end)) else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let answered = head.starts_with("http/1.1 200 ");
    if !answered && !head.starts_with("http/1.1 503 ") {
        return Err(io::Error::other(head));
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse::<usize>().ok());
    let length = length.ok_or_else(|| io::Error::other("no Content-Length"))?;
    Ok(Some((answered, head.len() + 4 + length)))
}

/// Opens the connections, and returns them when each has had a response.
async fn opened(to: SocketAddr, count: usize, request: &[u8]) -> io::Result<Vec<Connection>> {
    let mut all = Vec::with_capacity(count);
    for number in 0..count {
        let mut connection = Connection::open(to, number).await?;
        connection.ask(request, None).await?;
        // What is kept here is not to be measured, and there are many.
        connection.read = Vec::new();
        all.push(connection);
    }
    Ok(all)
}

/// What was sent at a fixed rate.
#[derive(Default)]
struct Sent {
    /// The response times, in milliseconds, of requests that were not refused.
    times: Vec<f64>,
    /// The number of those that were.
    refused: usize,
}

impl Sent {
    /// The 99th percentile of the response times.
    fn p99(&mut self) -> Option<f64> {
        self.times.sort_by(f64::total_cmp);
        let last = self.times.len().checked_sub(1)?;
        self.times
            .get((self.times.len() * 99 / 100).min(last))
            .copied()
    }
}

/// Sends at a fixed rate for some seconds. A request whose time has come while the one before is on
/// its way has waited since then, but no request is sent after the end.
async fn at_rate(
    to: SocketAddr,
    senders: usize,
    (rate, seconds): (u32, u32),
    request: Arc<[u8]>,
) -> Result<Sent, Box<dyn Error>> {
    let connections = opened(to, senders, &request).await?;
    let senders = u32::try_from(senders)?;
    let every = Duration::from_secs(1) * senders / rate.max(1);
    let begin = Instant::now() + Duration::from_millis(50);
    let end = begin + Duration::from_secs(seconds.into());
    let mut sending = JoinSet::new();
    for (number, connection) in connections.into_iter().enumerate() {
        let request = Arc::clone(&request);
        let offset = every * u32::try_from(number)? / senders;
        sending.spawn(send(connection, (begin + offset, every, end), request));
    }
    let mut all = Sent::default();
    while let Some(sent) = sending.join_next().await {
        let sent = sent??;
        all.times.extend(sent.times);
        all.refused += sent.refused;
    }
    Ok(all)
}

/// Sends requests on one connection until the end.
async fn send(
    mut connection: Connection,
    (begin, every, end): (Instant, Duration, Instant),
    request: Arc<[u8]>,
) -> io::Result<Sent> {
    let mut ticks = interval_at(begin, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut sent = Sent::default();
    let mut free = begin;
    loop {
        let due = ticks.tick().await;
        if free.max(due) >= end {
            return Ok(sent);
        }
        // A timer of the runtime is up to a millisecond late, which is not the server's fault.
        let begun = if free > due { due } else { Instant::now() };
        let answered = connection.ask(&request, None).await?;
        free = Instant::now();
        if answered {
            sent.times.push((free - begun).as_secs_f64() * 1_000.0);
        } else {
            sent.refused += 1;
        }
    }
}

/// Reads a response at a slow pace again and again.
async fn read_slowly(mut connection: Connection, request: Arc<[u8]>) -> io::Result<()> {
    loop {
        connection.ask(&request, Some((SIP, SIPS))).await?;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    rlimit::increase_nofile_limit(u64::MAX)?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let request = |head: &str| -> Arc<[u8]> {
        let text = head.replace("\\n", "\r\n") + "\r\n\r\n";
        text.into_bytes().into()
    };
    match words[..] {
        ["idle", address, count, head] => {
            let _held = opened(address.parse()?, count.parse()?, &request(head)).await?;
            until_told().await
        }
        ["slow", address, count, head] => {
            let request = request(head);
            let mut readers = JoinSet::new();
            for connection in opened(address.parse()?, count.parse()?, &request).await? {
                readers.spawn(read_slowly(connection, Arc::clone(&request)));
            }
            tokio::select! {
                told = until_told() => told,
                Some(ended) = readers.join_next() => Ok(ended??),
            }
        }
        ["rate", address, rate, seconds, head] => {
            let pace = (rate.parse()?, seconds.parse()?);
            let mut sent = at_rate(address.parse()?, SENDERS, pace, request(head)).await?;
            if sent.refused > 0 {
                return Err(format!("{} requests were refused", sent.refused).into());
            }
            println!("{}", sent.p99().ok_or("nothing was sent")?);
            Ok(())
        }
        ["flood", address, connections, rate, seconds, head] => {
            let pace = (rate.parse()?, seconds.parse()?);
            let senders = connections.parse()?;
            let mut sent = at_rate(address.parse()?, senders, pace, request(head)).await?;
            let p99 = sent.p99().ok_or("nothing was answered")?;
            let seconds = f64::from(pace.1);
            let [answered, refused] =
                [sent.times.len(), sent.refused].map(|count| count as f64 / seconds);
            println!("{answered} {refused} {p99}");
            Ok(())
        }
        _ => Err("see the first lines of the source".into()),
    }
}

/// Prints that all is ready, and waits for the end of the standard input.
async fn until_told() -> Result<(), Box<dyn Error>> {
    println!("ready");
    let ended = tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink()));
    ended.await??;
    Ok(())
}
