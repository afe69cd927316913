//! A disk that is read-only or broken, from the start or while the server runs.

use super::small_disk::SmallDisk;
use super::{
    Injection, UNLIMITED, arrive_until_refused, assert_come_again, assert_healed, assert_kept,
    assert_plays_on,
};
use crate::program::{Server, guest, one_line, program};

/// What the system answers to SQLite: a file system that Linux has made read-only after an error, a broken
/// disk, a quota, and a disk that loses what it has accepted.
const FAULTS: [&str; 5] = [
    "pwrite64:error=EROFS",
    "pwrite64:error=EIO",
    "pwrite64:error=EDQUOT",
    "fdatasync:error=EIO",
    "fdatasync:error=ENOSPC",
];

#[test]
fn while_the_disk_takes_no_writes_known_players_play_on_and_nothing_is_promised() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(program(data.path()).envs(UNLIMITED));
    let known = guest(&server);
    let mut accepted = vec![known.0.clone()];
    for fault in FAULTS {
        let injected = Injection::into(&server, fault);
        for _ in 0..3 {
            assert_come_again(&arrive_until_refused(&server, &mut accepted), 1);
        }
        assert_plays_on(&server, &known);
        drop(injected);
        assert_healed(&server, &mut accepted);
    }
    // What was accepted after the faults also survives the end of the process.
    server.stop("-KILL");
    assert_kept(data.path(), &accepted);
}

#[test]
fn a_server_on_a_read_only_disk_does_not_start_and_says_why() {
    let disk = SmallDisk::new(64);
    let server = Server::start(&mut disk.program());
    guest(&server);
    server.stop("-TERM");
    disk.forbid_writes();
    let Err(refused) = Server::try_start(&mut disk.program()) else {
        panic!("it started");
    };
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let line = one_line(&refused).to_lowercase();
    assert!(
        line.contains("read-only") || line.contains("readonly"),
        "{line}"
    );
}
