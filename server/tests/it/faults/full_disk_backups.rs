//! A backup that is due while its disk is full.

use std::sync::Arc;

use platform_server::app::backups::MakeBackups;
use platform_server::config::BackupPlace;
use platform_server::platform::disk::ManualDisk;
use platform_server::platform::jobs::Job as _;
use tokio::time::Instant;

use super::PATIENCE;
use super::own_machine::OwnMachine;
use crate::restore::names;
use crate::support::TestApp;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;
/// How many pages of 4 KiB are free: the backup fails at its folder, at the deployed files, at the copy of the store,
/// or at the end of its archive. It needs more than a MiB.
const PAGES: [u64; 6] = [0, 1, 2, 10, 50, 150];
/// The folder of a backup that is being made.
const UNFINISHED: &str = ".unfinished-backup";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_a_backup_fails_as_a_whole_earlier_ones_stay_and_it_is_made_when_there_is_room()
 {
    let name = "faults::full_disk_backups::on_a_full_disk_a_backup_fails_as_a_whole_earlier_ones_stay_and_it_is_made_when_there_is_room";
    let Some(machine) = OwnMachine::enter(name) else {
        return;
    };
    let (disk, folder) = (machine.filler(), machine.disk().join("backups"));
    let change = |config: &mut platform_server::config::Config| {
        config.backup = Some(BackupPlace::Folder(folder.clone()));
        config.backups_kept = 2;
    };
    // There seems to be room at the beginning: others fill the disk meanwhile.
    let room = Arc::new(ManualDisk::new(u64::MAX / 2));
    let app = TestApp::on_disk(room, change).await;
    let kept = || {
        let mut names = names(&folder);
        names.retain(|name| name != UNFINISHED);
        names
    };
    let begun = Instant::now();
    while !folder.exists() || kept().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "the server makes the first one");
        tokio::task::yield_now().await;
    }
    let mut job = MakeBackups::new(app.running.state.clone());
    for pages in PAGES {
        let before = kept();
        let content = || {
            let read = |name| std::fs::read(folder.join(name)).unwrap();
            before.iter().map(read).collect::<Vec<_>>()
        };
        let earlier = content();
        disk.leave(pages);
        app.clock.advance(DAY);
        assert!(job.run().await.is_err(), "with {pages} free pages");
        assert_eq!(kept(), before, "with {pages} free pages");
        assert!(content() == earlier, "with {pages} free pages");
        let begun = Instant::now();
        // The server's own job may be trying as well.
        while names(&folder.join(UNFINISHED)) != ["lock"] {
            assert!(begun.elapsed() < PATIENCE, "nothing is left");
        }
        disk.free();
        while kept() == before {
            app.clock.advance(15 * MINUTE);
            let _ = job.run().await;
            assert!(begun.elapsed() < PATIENCE, "it is made when there is room");
        }
        let after = kept();
        assert_eq!(after.len(), 2);
        assert!(!before.contains(&after[1]), "{before:?}, {after:?}");
        assert!(before.ends_with(&after[..1]), "{before:?}, {after:?}");
    }
}
