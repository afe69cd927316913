//! A process that may open no more files and connections.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use super::{PATIENCE, UNLIMITED, assert_healed, assert_kept};
use crate::program::{Server, guest, program, subject};

/// Sets the lowest number that no descriptor of the server may have.
fn limit(server: &Server, soft: &str) {
    let id = server.id().to_string();
    let limit = format!("--nofile={soft}:");
    let set = Command::new("prlimit")
        .args(["--pid", &id, &limit])
        .status();
    assert!(set.unwrap().success());
}

/// Returns the number that the server's next descriptor would have.
fn next_descriptor(server: &Server) -> u32 {
    let folder = format!("/proc/{}/fd", server.id());
    let open = std::fs::read_dir(folder).unwrap();
    let open = open.map(|entry| {
        entry
            .unwrap()
            .file_name()
            .to_str()
            .unwrap()
            .parse()
            .unwrap()
    });
    let open: std::collections::BTreeSet<u32> = open.collect();
    (0..).find(|number| !open.contains(number)).unwrap()
}

/// Reads one response of a connection that stays open.
fn read_answer(stream: &mut TcpStream) -> String {
    let (mut answer, mut some) = (Vec::new(), [0; 4_096]);
    loop {
        let read = stream.read(&mut some).unwrap();
        assert_ne!(read, 0, "the connection was closed");
        answer.extend_from_slice(&some[..read]);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        if length.is_some_and(|length| body.len() >= length.parse::<usize>().unwrap()) {
            return text;
        }
    }
}

#[test]
fn without_free_descriptors_connected_players_play_on_and_others_wait_until_there_are_some() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(program(data.path()).envs(UNLIMITED));
    let (sub, cookie) = guest(&server);
    let mut accepted = vec![sub.clone()];
    let port = server.port;
    let connect = || {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    };
    let ask = |stream: &mut TcpStream, cookie: &str| {
        write!(
            stream,
            "POST /token HTTP/1.1\r\nHost: auth.platform.localhost:{port}\r\n\
             Origin: http://demo.platform.localhost:{port}\r\nCookie: {cookie}\r\n\
             Content-Length: 0\r\n\r\n"
        )
        .unwrap();
    };
    let mut connected = connect();
    ask(&mut connected, &cookie);
    assert_eq!(subject(&read_answer(&mut connected)), sub);

    limit(&server, &next_descriptor(&server).to_string());
    // The store needs no more files, so whoever is connected gets a token, and can even be new.
    ask(&mut connected, &cookie);
    assert_eq!(subject(&read_answer(&mut connected)), sub);
    ask(&mut connected, "");
    accepted.push(subject(&read_answer(&mut connected)));
    // Somebody else is in the system's queue. The server may have closed a file meanwhile, whose
    // place the first of them takes.
    let mut taken = Vec::new();
    let mut waiting = loop {
        let mut waiting = connect();
        ask(&mut waiting, &cookie);
        let soon = Duration::from_millis(300);
        waiting.set_read_timeout(Some(soon)).unwrap();
        if waiting.read(&mut [0]).is_err() {
            break waiting;
        }
        taken.push(waiting);
        assert!(taken.len() < 8, "there are descriptors for everybody");
    };

    limit(&server, "4096");
    waiting.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(subject(&read_answer(&mut waiting)), sub);
    assert_healed(&server, &mut accepted);
    let (_, log, code) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("a connection could not be accepted"), "{log}");
    assert_kept(data.path(), &accepted);
}
