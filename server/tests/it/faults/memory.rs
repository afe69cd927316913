//! A process that gets no more memory. Rust's programs end then, as if the system had killed them; and where a
//! control group has a limit, the system does kill them.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;

use super::memory_group::MemoryGroup;
use super::{MANY, PATIENCE, UNLIMITED, assert_kept};
use crate::program::{Server, guest, program, program_by, subject};

/// Connections that hold memory at the same time.
const CONNECTIONS: usize = 400;

/// Forbids the server to take more address space than it has.
fn forbid_more(server: &Server) {
    let id = server.id().to_string();
    let limit = format!("--as={}:", server.memory("VmSize"));
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

/// Begins requests that never end, and that the server has to remember, until it closes their connections.
/// Returns those that are open.
fn send_endless_heads(server: &Server) -> Vec<TcpStream> {
    let line = format!("X-Long: {}\r\n", "x".repeat(7_000));
    let open = |_: usize| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        let head = format!(
            "GET / HTTP/1.1\r\nHost: demo.platform.localhost:{}\r\n",
            server.port
        );
        stream.write_all(head.as_bytes()).ok()?;
        // Less than the longest head, and more than the server has memory for, with all of them.
        for _ in 0..80 {
            stream.write_all(line.as_bytes()).ok()?;
        }
        Some(stream)
    };
    (0..CONNECTIONS).map_while(open).collect()
}

/// What a program of Rust says, whose allocator gets no more memory, before it ends.
const NO_MEMORY: &str = "memory allocation of ";

#[test]
fn without_memory_the_server_ends_and_whoever_was_accepted_is_kept() {
    let data = tempfile::tempdir().unwrap();
    // An allocator with one heap takes no address space in advance.
    let mut command = program(data.path());
    let server = Server::start(command.envs(UNLIMITED).env("MALLOC_ARENA_MAX", "1"));
    let mut accepted = vec![guest(&server).0];
    forbid_more(&server);
    let (arrived, open) = std::thread::scope(|scope| {
        let arriving = scope.spawn(|| (0..MANY).map_while(|_| arrive(&server)).collect::<Vec<_>>());
        let open = send_endless_heads(&server);
        (arriving.join().unwrap(), open)
    });
    accepted.extend(arrived);
    // It has ended already.
    let (_, log, code) = server.stop("-KILL");
    drop(open);
    assert!(log.contains(NO_MEMORY), "{code:?}: {log}");
    assert_kept(data.path(), &accepted);
    let server = Server::start(program(data.path()).envs(UNLIMITED));
    accepted.push(guest(&server).0);
    server.stop("-TERM");
    assert_kept(data.path(), &accepted);
}

/// How much more memory the group may have than the server needs when nobody visits it.
const SPARE: u64 = 16 << 20;

#[test]
fn beyond_the_memory_of_its_group_the_server_is_killed_and_whoever_was_accepted_is_kept() {
    let group = match MemoryGroup::make() {
        Ok(group) => group,
        Err(why) => {
            // Not by a macro, whose output nobody sees where a test succeeds.
            let mut terminal = std::io::stderr();
            writeln!(
                terminal,
                "\nNOT TESTED, since this user may make no control group for memory: {why}"
            )
            .unwrap();
            return;
        }
    };
    let data = tempfile::tempdir().unwrap();
    let join = format!(
        "echo $$ > {} && exec \"$0\" \"$@\"",
        group.members().display()
    );
    let mut command = program_by(&["sh", "-c", &join], data.path());
    let server = Server::start(command.envs(UNLIMITED));
    group.assert_has(server.id());
    let mut accepted = vec![guest(&server).0];
    group.allow_more(SPARE);
    accepted.extend((0..5).map_while(|_| arrive(&server)));
    let (arrived, open) = std::thread::scope(|scope| {
        let arriving = scope.spawn(|| (0..MANY).map_while(|_| arrive(&server)).collect::<Vec<_>>());
        let open = send_endless_heads(&server);
        (arriving.join().unwrap(), open)
    });
    accepted.extend(arrived);
    assert!(accepted.len() > 1);
    // The kernel has killed it.
    server.stop("-KILL");
    drop(open);
    group.assert_killed();
    assert_kept(data.path(), &accepted);
    let server = Server::start(program(data.path()).envs(UNLIMITED));
    accepted.push(guest(&server).0);
    server.stop("-TERM");
    assert_kept(data.path(), &accepted);
}
