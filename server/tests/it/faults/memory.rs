//! A process that gets no more memory. Rust's programs end then, as if the system had killed them.

use std::process::Command;

use super::{UNLIMITED, assert_kept};
use crate::program::{Server, guest, program, subject};

/// Connections that hold memory at the same time.
const CONNECTIONS: usize = 400;

/// Forbids the server to take more address space than it has.
fn forbid_more(server: &Server) {
    let id = server.id().to_string();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let size = size.unwrap().trim().strip_suffix(" kB").unwrap();
    let bytes = size.parse::<u64>().unwrap() * 1_024;
    let limit = format!("--as={bytes}:");
    let set = Command::new("prlimit")
        .args(["--pid", &id, &limit])
        .status();
    assert!(set.unwrap().success());
}

/// Asks for a token as a new guest. Returns the id, if there was an answer with one.
fn arrive(server: &Server) -> Option<String> {
    let answer = super::try_token(server)?;
    answer.starts_with("HTTP/1.1 200").then(|| subject(&answer))
}

#[test]
fn without_memory_the_server_answers_or_ends_and_whoever_was_accepted_is_kept() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(program(data.path()).envs(UNLIMITED));
    let mut accepted = vec![guest(&server).0];
    forbid_more(&server);
    let arrived = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    (0..CONNECTIONS / 8)
                        .map_while(|_| arrive(&server))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let all = all.into_iter().flat_map(|thread| thread.join().unwrap());
        all.collect::<Vec<_>>()
    });
    accepted.extend(arrived);
    // It may have ended already.
    server.stop("-KILL");
    assert_kept(data.path(), &accepted);
    let server = Server::start(program(data.path()).envs(UNLIMITED));
    accepted.push(guest(&server).0);
    server.stop("-TERM");
    assert_kept(data.path(), &accepted);
}
