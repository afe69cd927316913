//! The server as a service: sockets that are passed to it, what it tells the service manager, and the
//! unit of `deploy/` for systemd.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use platform_server::app::sockets::Purpose;
use tokio::time::Instant;

use crate::program::{Server, program};

/// Much longer than anything here takes; reaching it is a failure.
const NEVER: Duration = Duration::from_secs(60);

/// Starts the program as systemd does: with a listening socket as its third descriptor. Its own setting
/// names an address on which it could not listen.
const PASSED: &str = r#"
    exec 3<&0 </dev/null
    export LISTEN_FDS=1 LISTEN_PID=$$
    exec "$0" "$@"
"#;

/// The program, which gets `socket`.
fn with_socket(data: &Path, socket: &TcpListener) -> Command {
    let mut command = Command::new("sh");
    let socket = OwnedFd::from(socket.try_clone().unwrap());
    command
        .args(["-c", PASSED, env!("CARGO_BIN_EXE_platform-server")])
        .env_clear()
        .env("PLATFORM_DATA", data)
        .env("PLATFORM_ORIGIN", "http://platform.localhost")
        .env("PLATFORM_LISTEN", "192.0.2.1:1")
        .stdin(Stdio::from(socket))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Asks for the demo's page. Returns the response, which is empty if the connection ends before it.
///
/// # Panics
/// If the connection is refused.
fn visit(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(NEVER)).unwrap();
    let request = "GET / HTTP/1.1\r\nHost: demo.platform.localhost\r\nConnection: close\r\n\r\n";
    let mut answer = String::new();
    // The server may close it while it stops, before it has read anything.
    let _ = stream.write_all(request.as_bytes());
    let _ = stream.read_to_string(&mut answer);
    answer
}

/// Tells the visitors to stop, also if the test fails.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_restart_with_a_passed_socket_refuses_no_connection() {
    let directory = tempfile::tempdir().unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let (is_over, served) = (AtomicBool::new(false), AtomicUsize::new(0));
    let wait_for_more = || {
        let (start, before) = (Instant::now(), served.load(Ordering::SeqCst));
        while served.load(Ordering::SeqCst) < before + 3 {
            assert!(start.elapsed() < NEVER, "nobody is served");
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        let visitors = [(); 2].map(|()| {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let answer = visit(address);
                    if answer.starts_with("HTTP/1.1 200") {
                        served.fetch_add(1, Ordering::SeqCst);
                    } else {
                        assert!(answer.is_empty(), "{answer}");
                    }
                }
            })
        });
        let _end = OnDrop(&is_over);
        for _ in 0..3 {
            // The first visitors wait until the server is there.
            let server = Server::start(&mut with_socket(directory.path(), &socket));
            assert_eq!(server.port, address.port());
            wait_for_more();
            let (_, log, code) = server.stop("-TERM");
            assert_eq!(code, Some(0), "{log}");
        }
        // Whoever waits now is served as well, also the last ones.
        let server = Server::start(&mut with_socket(directory.path(), &socket));
        wait_for_more();
        is_over.store(true, Ordering::SeqCst);
        while !visitors
            .iter()
            .all(std::thread::ScopedJoinHandle::is_finished)
        {
            std::thread::yield_now();
        }
        server.stop("-TERM");
    });
}

#[test]
fn a_descriptor_that_is_no_socket_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = with_socket(directory.path(), &socket);
    let output = command.stdin(Stdio::null()).arg("serve").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("a socket that was passed cannot be used"),
        "{said}"
    );
}

#[test]
fn the_service_manager_is_told_that_the_server_is_ready_works_and_stops() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(NEVER)).unwrap();
    let next = || {
        let mut said = [0; 500];
        let length = socket.recv(&mut said).unwrap();
        String::from_utf8(said[..length].to_vec()).unwrap()
    };
    let mut command = program(&directory.path().join("data"));
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "300000");
    let server = Server::start(&mut command);
    let ready = next();
    assert!(
        ready.starts_with("READY=1\nSTATUS=Serving http://platform.localhost:"),
        "{ready}"
    );
    for _ in 0..3 {
        assert_eq!(next(), "WATCHDOG=1");
    }
    server.signal("-TERM");
    while next() != "STOPPING=1\nSTATUS=Stopping" {}
    let (_, log, code) = server.stop("-CONT");
    assert_eq!(code, Some(0), "{log}");
}

/// Returns the path of a file of `deploy/systemd/`.
fn unit(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/systemd");
    folder.join(name)
}

#[test]
fn the_service_may_do_little_if_it_is_taken_over() {
    // Of 100; a service that restricts nothing has 96.
    let output = Command::new("systemd-analyze")
        .args(["security", "--no-pager", "--offline=true", "--threshold=20"])
        .arg(unit("platform-server.service"))
        .output()
        .expect("run `cargo xtask test`, which installs systemd");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{output:?}");
    assert!(said.contains("Overall exposure level"), "{said}");
}

#[test]
fn systemd_understands_every_line_of_the_units() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "platform-server.service",
        "platform-server.socket",
        "platform-server-redirect.socket",
    ];
    for name in names {
        let text = std::fs::read_to_string(unit(name)).unwrap();
        // It must exist, and need not be installed here.
        let text = text.replace(
            "/usr/bin/platform-server",
            env!("CARGO_BIN_EXE_platform-server"),
        );
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .args(names.map(|name| folder.path().join(name)))
        .output()
        .expect("run `cargo xtask test`, which installs systemd");
    let said = String::from_utf8_lossy(&output.stderr);
    let ours = said.lines().filter(|line| line.contains("platform-server"));
    let ours: Vec<&str> = ours.collect();
    assert!(ours.is_empty(), "{said}");
}

#[test]
fn every_name_of_a_socket_is_one_that_the_server_knows() {
    let mut named = 0;
    for name in crate::restore::names(&unit("")) {
        let text = std::fs::read_to_string(unit(&name)).unwrap();
        let names = text
            .lines()
            .filter_map(|line| line.strip_prefix("FileDescriptorName="));
        for socket in names {
            assert!(Purpose::named(socket).is_some(), "{name}: {socket}");
            named += 1;
        }
    }
    assert_eq!(named, 1);
}
