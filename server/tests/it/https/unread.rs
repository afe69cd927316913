//! Peers that ask for much and read little or nothing: what the program holds for them in memory, and that slow
//! peers lose nothing.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::Instant;

use super::raw::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, Peer, WINDOW_UPDATE, frame, get,
    setting,
};
use super::{Authority, NAMES};
use crate::program::{Server, program};

const INITIAL_WINDOW: u16 = 4;
const CONNECTIONS: usize = 50;
const REQUESTS: u32 = 100;
/// How much more memory the program may have.
const MAX_MORE: u64 = 32 << 20;
/// The largest documents that any visitor may read.
const DOCUMENTS: [(&str, &str); 4] = [
    (NAMES[0], "/api/openapi.json"),
    (NAMES[0], "/docs/hosting"),
    (NAMES[0], "/docs/api"),
    ("demo.platform.localhost", "/__platform/runtime.js"),
];
/// The variable with how many bytes each slow peer reads.
const SLOW_BYTES: &str = "TESTS_SLOW_BYTES";

/// The program, with the platform's own TLS or without.
struct ServerUnderTest {
    server: Server,
    authority: Authority,
    _folder: TempDir,
}

impl Drop for ServerUnderTest {
    fn drop(&mut self) {
        self.server.signal("-KILL");
    }
}

impl ServerUnderTest {
    fn start(with_tls: bool) -> Self {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        authority.certify(folder.path(), "one", &NAMES);
        let mut command = program(&folder.path().join("data"));
        // Its log is not read.
        command.stderr(std::process::Stdio::null());
        if with_tls {
            command
                .env("PLATFORM_ORIGIN", format!("https://{}", NAMES[0]))
                .env("PLATFORM_TLS", "files")
                .env("PLATFORM_TLS_CERTIFICATES", folder.path().join("one.pem"))
                .env("PLATFORM_TLS_KEYS", folder.path().join("one.key"));
        }
        Self {
            server: Server::start(&mut command),
            authority,
            _folder: folder,
        }
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.server.port).into()
    }

    async fn peer(&self, settings: &[u8]) -> Peer {
        self.peer_from(Ipv4Addr::LOCALHOST, settings).await
    }

    async fn peer_from(&self, from: Ipv4Addr, settings: &[u8]) -> Peer {
        Peer::connect_from(from, &self.authority, self.address(), settings).await
    }

    /// The memory that the process has, once it does not change any more.
    async fn memory(&self) -> u64 {
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        let mut last = (0, 0);
        for _ in 0..1_200 {
            ticks.tick().await;
            let now = self.memory_now();
            let is_same = now.abs_diff(last.0) < 128 << 10;
            last = if is_same {
                (last.0, last.1 + 1)
            } else {
                (now, 0)
            };
            if last.1 == 20 {
                return now;
            }
        }
        panic!("the memory of the program changes for a minute: {last:?}");
    }

    fn memory_now(&self) -> u64 {
        self.server.memory("VmRSS")
    }

    fn assert_memory(&self, what: &str, before: u64, after: u64) {
        let more = after.saturating_sub(before);
        assert!(
            more <= MAX_MORE,
            "{what}: {} MiB more, of {} MiB before",
            more >> 20,
            before >> 20
        );
    }
}

/// Reads a whole response.
async fn read(peer: &mut Peer, stream: u32) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let frame = peer.next().await.unwrap();
        if frame.stream != stream {
            continue;
        }
        if frame.kind == DATA {
            grant(peer, stream, frame.content.len()).await;
            body.extend(frame.content);
        }
        if frame.flags & END_STREAM != 0 {
            return body;
        }
    }
}

/// Lets the server send as much more, of this response and of the connection.
async fn grant(peer: &mut Peer, stream: u32, bytes: usize) {
    if bytes == 0 {
        return;
    }
    let bytes = u32::try_from(bytes).unwrap();
    for stream in [0, stream] {
        peer.send(&frame_of_window(stream, bytes)).await;
    }
}

/// Reads each document once, as a good peer. Returns the documents.
async fn read_documents(program: &ServerUnderTest) -> Vec<Vec<u8>> {
    let mut peer = program.peer(&[]).await;
    let mut documents = Vec::new();
    for (stream, (host, path)) in (1..).step_by(2).zip(DOCUMENTS) {
        peer.ask_host(stream, host, path).await;
        documents.push(read(&mut peer, stream).await);
    }
    documents
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_of_http_2_that_open_no_window_hold_little_memory() {
    let program = ServerUnderTest::start(true);
    let documents = read_documents(&program).await;
    assert!(documents[0].len() > 100_000, "a large document");
    let before = program.memory().await;
    for (what, window) in [("a window of 0", 0), ("a window of 1", 1)] {
        let mut peers = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut peer = program.peer(&setting(INITIAL_WINDOW, window)).await;
            for (number, (host, path)) in (0..REQUESTS).zip(DOCUMENTS.iter().cycle()) {
                peer.ask_host(2 * number + 1, host, path).await;
            }
            peer.send(&frame(PING, 0, 0, &[7; 8])).await;
            peers.push(peer);
        }
        for peer in &mut peers {
            let answered = peer.find(|frame| frame.kind == PING).await;
            assert!(answered.is_some());
        }
        let after = program.memory().await;
        // Others of the same address are served meanwhile.
        assert_eq!(read_documents(&program).await, documents);
        program.assert_memory(what, before, after);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_of_http_2_that_do_not_read_at_all_hold_little_memory() {
    let program = ServerUnderTest::start(true);
    read_documents(&program).await;
    let before = program.memory().await;
    let mut peers = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut peer = program.peer(&setting(INITIAL_WINDOW, u32::MAX >> 1)).await;
        let window = (u32::MAX >> 2).to_be_bytes();
        peer.send(&frame(WINDOW_UPDATE, 0, 0, &window)).await;
        for (number, (host, path)) in (0..REQUESTS).zip(DOCUMENTS.iter().cycle()) {
            peer.ask_host(2 * number + 1, host, path).await;
        }
        peers.push(peer);
    }
    program.assert_memory("over TLS", before, program.memory().await);
    drop(peers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_of_many_small_fields_end_their_connections_and_leave_no_memory() {
    let program = ServerUnderTest::start(true);
    read_documents(&program).await;
    let before = program.memory().await;
    // `age` without a value, of the static table (RFC 7541 Appendix A): a byte for each.
    let fields = [get(NAMES[0], "/"), vec![0x80 | 21; 30_000]].concat();
    let parts: Vec<&[u8]> = fields.chunks(16_000).collect();
    let mut head = frame(HEADERS, END_STREAM, 0, parts[0]);
    head.extend(frame(CONTINUATION, END_HEADERS, 0, parts[1]));
    for _ in 0..20 {
        let mut peer = program.peer(&[]).await;
        for stream in (1..REQUESTS).step_by(2) {
            // The number of the stream is in the last bytes of each frame's head.
            for at in [5, 9 + parts[0].len() + 5] {
                head[at..at + 4].copy_from_slice(&stream.to_be_bytes());
            }
            if !peer.send(&head).await {
                break;
            }
        }
        peer.end().await;
    }
    program.assert_memory("small fields", before, program.memory().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_with_many_lines_hold_little_memory() {
    let program = ServerUnderTest::start(true);
    read_documents(&program).await;
    let before = program.memory().await;
    // `x-a: v`, which becomes the first entry of the dynamic table (RFC 7541 §6.2.1), and later a byte.
    let first = [&get(NAMES[0], DOCUMENTS[0].1)[..], b"\x40\x03x-a\x01v"].concat();
    let later = [get(NAMES[0], DOCUMENTS[0].1), vec![0x80 | 62; 95]].concat();
    let mut peers = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut peer = program.peer(&setting(INITIAL_WINDOW, 0)).await;
        let heads = std::iter::once(&first).chain(std::iter::repeat(&later));
        for (stream, head) in (1..2 * REQUESTS).step_by(2).zip(heads) {
            let flags = END_HEADERS | END_STREAM;
            peer.send(&frame(HEADERS, flags, stream, head)).await;
        }
        peers.push(peer);
    }
    program.assert_memory("many lines", before, program.memory().await);
    drop(peers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_without_tls_that_do_not_read_hold_little_memory() {
    let program = ServerUnderTest::start(false);
    let port = program.server.port;
    let head =
        |path: &str| format!("GET {path} HTTP/1.1\r\nHost: platform.localhost:{port}\r\n\r\n");
    let one = program.server.ask("GET /api/openapi.json", NAMES[0], "");
    assert!(one.len() > 100_000, "a large document");
    let before = program.memory().await;
    let all = head("/api/openapi.json").repeat(usize::try_from(REQUESTS).unwrap());
    let mut peers = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut peer = std::net::TcpStream::connect(program.address()).unwrap();
        peer.write_all(all.as_bytes()).unwrap();
        peers.push(peer);
    }
    program.assert_memory("without TLS", before, program.memory().await);
    drop(peers);
}

/// A response that arrives.
struct Arriving {
    /// Its place among the documents.
    document: usize,
    body: Vec<u8>,
    /// What was read since the server was last allowed to send more.
    read: usize,
}

/// Reads documents, twenty at a time, at 50 kB/s, until it has this many bytes. As a browser does, it opens a
/// window again when half of it is used. Returns the longest time that a response took to begin while nineteen
/// others were asked for before it.
async fn read_slowly(
    program: &ServerUnderTest,
    documents: &[Vec<u8>],
    from: Ipv4Addr,
    bytes: usize,
) -> Duration {
    const HALF_WINDOW: usize = 32_768;
    const PER_TICK: usize = 5_000;
    let mut peer = program.peer_from(from, &[]).await;
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    let (mut next, mut done, mut read, mut may_wait) = (1, 0, 0, 0);
    let mut arriving: BTreeMap<u32, Arriving> = BTreeMap::new();
    let mut last_asked = (0, Instant::now());
    let mut longest = Duration::ZERO;
    while done < bytes {
        while arriving.len() < 20 {
            let document = usize::try_from(next / 2).unwrap() % DOCUMENTS.len();
            let (host, path) = DOCUMENTS[document];
            peer.ask_host(next, host, path).await;
            let (body, read) = (Vec::new(), 0);
            arriving.insert(
                next,
                Arriving {
                    document,
                    body,
                    read,
                },
            );
            if last_asked.0 == 0 {
                last_asked = (next, Instant::now());
            }
            next += 2;
        }
        // A slow peer is not cut off.
        let frame = peer.next().await.unwrap();
        let Some(response) = arriving.get_mut(&frame.stream) else {
            continue;
        };
        if last_asked.0 == frame.stream {
            longest = longest.max(last_asked.1.elapsed());
            last_asked.0 = 0;
        }
        if frame.kind == DATA {
            let length = frame.content.len();
            done += length;
            may_wait += length;
            while may_wait >= PER_TICK {
                may_wait -= PER_TICK;
                ticks.tick().await;
            }
            response.body.extend(&frame.content);
            response.read += length;
            read += length;
            for (stream, read) in [(frame.stream, &mut response.read), (0, &mut read)] {
                if *read > HALF_WINDOW {
                    let more = u32::try_from(std::mem::take(read)).unwrap();
                    let more = frame_of_window(stream, more);
                    peer.send(&more).await;
                }
            }
        }
        if frame.flags & END_STREAM != 0 {
            let response = arriving.remove(&frame.stream).unwrap();
            let (name, whole) = (DOCUMENTS[response.document], &documents[response.document]);
            assert!(response.body == *whole, "{name:?} is whole");
        }
    }
    longest
}

fn frame_of_window(stream: u32, more: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_phones_at_50_kilobytes_a_second_lose_nothing() {
    #[expect(clippy::disallowed_methods, reason = "a longer form of this test")]
    let bytes = std::env::var(SLOW_BYTES);
    let bytes = bytes.map_or(2_000_000, |bytes| bytes.parse().unwrap());
    let program = ServerUnderTest::start(true);
    let documents = read_documents(&program).await;
    let began = Instant::now();
    // Ten of one school, and ten with an address of their own.
    let school = (0..10).map(|_| Ipv4Addr::new(127, 0, 1, 1));
    let own = (0..10).map(|number| Ipv4Addr::new(127, 0, 2, number + 1));
    let phones = school.chain(own);
    let phones = phones.map(|from| read_slowly(&program, &documents, from, bytes));
    let longest = futures_util::future::join_all(phones).await;
    let own = longest[10..].iter().max().unwrap();
    assert!(
        *own < Duration::from_secs(15),
        "a response began after {longest:?}"
    );
    let ideal = Duration::from_millis(u64::try_from(bytes / 50).unwrap());
    let took = began.elapsed();
    assert!(
        took < ideal * 5 / 4 + Duration::from_secs(5),
        "{took:?} for {ideal:?}"
    );
}
