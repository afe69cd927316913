//! An upgrade of the store that is killed.

use std::path::Path;

use platform_server::clock::{Clock as _, SystemClock};

use crate::program::{Server, program_by};
use crate::support::TestApp;
use crate::upgrades::{BEFORE, assert_whole, data_folder, version};

/// More starts than an upgrade of one version after the other needs.
const STARTS: usize = 200;

/// The programs have the machine's clock, by which nothing may be too old.
fn be_recent(data: &Path) {
    let database = rusqlite::Connection::open(data.join("platform.db")).unwrap();
    let now = SystemClock.now();
    let recent = "UPDATE sessions SET renewed_at = ?1";
    database.execute(recent, [now]).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_is_killed_at_its_writes_goes_on_where_it_was_and_loses_nothing() {
    for before in &BEFORE {
        let data = data_folder(before);
        be_recent(data.path());
        let mut reached = before.version;
        let mut kills = 0;
        let server = loop {
            // Each start is killed one write later than the last one, before that write is on the disk.
            let kill = format!("inject=fsync,fdatasync:signal=KILL:when={}", kills + 1);
            let strace = [
                "strace",
                "-D",
                "-f",
                "-o",
                "/dev/null",
                "-e",
                "trace=fsync,fdatasync",
                "-e",
                &kill,
            ];
            let mut program = program_by(&strace, data.path());
            program.env("PLATFORM_LOG_RETENTION_DAYS", "3650");
            match Server::try_start(&mut program) {
                Ok(server) => break server,
                Err(killed) => assert_eq!(killed.status.code(), None, "{killed:?}"),
            }
            kills += 1;
            assert!(kills < STARTS, "it never gets through");
            let now = version(data.path());
            assert!(now >= reached, "{now} after {reached}");
            reached = now;
        };
        // The process ends when it writes again, or when it is asked to.
        server.stop("-KILL");
        assert!(kills > 0 || reached == before.version, "nothing was killed");
        let app = TestApp::in_directory(data, |config| config.log_retention_days = 3_650).await;
        assert_whole(&app, before.version).await;
        app.running.stop().await.unwrap();
    }
}
