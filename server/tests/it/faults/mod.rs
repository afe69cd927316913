//! What players see when something outside of the server fails, what is kept, and that it heals without
//! a restart. `docs/faults.md` is the table of all faults with their tests.

mod clock;
mod descriptors;
mod full_disk;
mod full_disk_backups;
mod full_disk_writes;
mod memory;
mod memory_group;
mod name_server;
mod own_machine;
mod read_only;
mod sign_in;
mod small_disk;
mod upgrade;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::program::{Server, guest, subject, token};

/// Limits that allow very many guests and log records of this machine.
pub(super) const UNLIMITED: [(&str, &str); 6] = [
    ("PLATFORM_GUESTS_PER_ADDRESS", "0"),
    ("PLATFORM_GUEST_RATE", "1000000/s, burst 1000000"),
    ("PLATFORM_LOG_RATE", "1000000/s, burst 1000000"),
    ("PLATFORM_LOG_BYTES_RATE", "1000000000/s, burst 1000000000"),
    (
        "PLATFORM_LOG_BYTES_RATE_GAME",
        "1000000000/s, burst 1000000000",
    ),
    // What is written must fail, not be refused before.
    ("PLATFORM_DISK_FLOOR_MIB", "0"),
];
/// How long a response may take at most, whatever has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// More guests than any fault lets arrive.
const MANY: usize = 2_000;

/// Lets guests arrive until one is refused, and adds the ids of those who were accepted. Returns the
/// refusal.
fn arrive_until_refused(server: &Server, accepted: &mut Vec<String>) -> String {
    for _ in 0..MANY {
        let answer = token(server, "");
        if !answer.starts_with("HTTP/1.1 200") {
            return answer;
        }
        accepted.push(subject(&answer));
    }
    panic!("{MANY} guests were accepted");
}

/// Returns the response to a new guest, if it arrives whole: the server may end meanwhile.
fn try_token(server: &Server) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let port = server.port;
    let head = format!(
        "POST /token HTTP/1.1\r\nHost: auth.platform.localhost:{port}\r\n\
         Origin: http://demo.platform.localhost:{port}\r\nContent-Length: 0\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    serde_json::from_str::<serde_json::Value>(body).ok()?;
    Some(answer)
}

/// Asserts that a response says that the same request may succeed in so many seconds, and not why.
fn assert_come_again(answer: &str, seconds: u32) {
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer.contains(&format!("retry-after: {seconds}\r\n")),
        "{answer}"
    );
    assert!(answer.contains("/problems/unavailable\""), "{answer}");
    for cause in ["sqlite", "database", "errno", "os error", "I/O"] {
        assert!(!answer.contains(cause), "{answer}");
    }
}

/// Asserts that a player whom the server knows gets a token, and the game's page.
fn assert_plays_on(server: &Server, (sub, cookie): &(String, String)) {
    let answer = token(server, cookie);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(&subject(&answer), sub);
    let page = server.ask("GET /", "demo.platform.localhost", "");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
}

/// Asserts that everything works, at once and without a restart.
fn assert_healed(server: &Server, accepted: &mut Vec<String>) {
    accepted.push(guest(server).0);
}

/// Sends a request with a body and returns the whole response as text. The server may answer before it
/// has read all of it.
fn send(server: &Server, request: &str, host: &str, headers: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let (port, length) = (server.port, body.len());
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {host}:{port}\r\n{headers}Content-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    )
    .unwrap();
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Returns the ids of the players in a data folder that no server uses.
fn players(data: &Path) -> BTreeSet<String> {
    let database = rusqlite::Connection::open(data.join("platform.db")).unwrap();
    let integrity = "PRAGMA integrity_check";
    let sound: String = database.query_row(integrity, [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    let mut all = database.prepare("SELECT id FROM players").unwrap();
    let ids = all.query_map([], |row| row.get::<_, [u8; 16]>(0)).unwrap();
    ids.map(|id| uuid::Uuid::from_bytes(id.unwrap()).to_string())
        .collect()
}

/// Asserts that every accepted player is in the data folder.
fn assert_kept(data: &Path, accepted: &[String]) {
    let kept = players(data);
    let lost: Vec<_> = accepted.iter().filter(|sub| !kept.contains(*sub)).collect();
    assert!(lost.is_empty(), "{} were lost: {lost:?}", lost.len());
}

/// Makes system calls of a running program fail, until it is dropped.
struct Injection(Child);

impl Injection {
    /// `what` is the call and its fault as `strace` reads it, such as `pwrite64:error=EIO`.
    fn into(server: &Server, what: &str) -> Self {
        let (call, _) = what.split_once(':').unwrap();
        let mut strace = Command::new("strace")
            .args(["-f", "-o", "/dev/null", "-p", &server.id().to_string()])
            .args(["-e", &format!("trace={call}")])
            .args(["-e", &format!("inject={what}")])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{error}: run `cargo xtask test`, which installs strace")
            });
        let mut said = BufReader::new(strace.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("attached") {
            line.clear();
            let read = said.read_line(&mut line).unwrap();
            assert_ne!(read, 0, "strace may attach to no process of this user");
        }
        // It says more when it detaches.
        std::thread::spawn(move || said.read_to_end(&mut Vec::new()));
        Self(strace)
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        let id = self.0.id().to_string();
        let _ = Command::new("kill").args(["-INT", &id]).status();
        let _ = self.0.wait();
    }
}
