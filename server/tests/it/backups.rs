//! The backups that a server makes by itself: when, how many, and what a killed one leaves.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use platform_server::app::backups::{Backups, BackupsError, Kept, MakeBackups};
use platform_server::config::{BackupPlace, Config};
use platform_server::platform::disk::{DiskFloor, ManualDisk};
use platform_server::platform::jobs::Job as _;

use crate::metrics::Scrape;
use crate::operator::run;
use crate::program::{Server, guest, program};
use crate::restore::names;
use crate::support::{NOW, TestApp};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// Backups of a server into `folder`, of which two are kept, on a disk with free space.
struct Case {
    config: Config,
    floor: DiskFloor,
    disk: Arc<ManualDisk>,
    backups: Backups,
}

impl Case {
    fn new(app: &TestApp, folder: &Path) -> Self {
        let config = Config {
            backup: Some(BackupPlace::Folder(folder.to_owned())),
            backups_kept: 2,
            ..app.running.state.platform.config.clone()
        };
        let disk = Arc::new(ManualDisk::new(u64::MAX / 2));
        Self {
            floor: DiskFloor::new(disk.clone(), config.folders(), config.disk_floor()),
            backups: Backups::new(&config).unwrap(),
            config,
            disk,
        }
    }

    async fn at(&self, now: i64) -> Result<Option<Kept>, BackupsError> {
        self.backups
            .make_if_due(&self.config, &self.floor, now)
            .await
    }

    /// Makes one that is due, and returns its name.
    async fn made(&self, now: i64) -> String {
        self.at(now).await.unwrap().unwrap().name
    }
}

#[tokio::test]
async fn a_backup_is_made_once_a_day_and_the_newest_are_kept() {
    let (app, folder) = (TestApp::start().await, tempfile::tempdir().unwrap());
    let folder = folder.path().join("backups");
    let case = Case::new(&app, &folder);
    let first = case.made(NOW).await;
    assert_eq!(first, "platform-2026-01-01T000000Z.tar");
    assert_eq!(case.at(NOW + DAY - 1).await.unwrap(), None);
    let second = case.made(NOW + DAY).await;
    let third = case.at(NOW + 2 * DAY).await.unwrap().unwrap();
    assert_eq!((third.removed, third.backup.missing), (1, 0));
    assert!(third.backup.files > 0);
    assert_eq!(
        case.backups.list().await.unwrap(),
        [second.clone(), third.name.clone()]
    );
    // Set back an hour, nothing is due; a year ahead and back, everything is as it was.
    assert_eq!(case.at(NOW + 2 * DAY - HOUR).await.unwrap(), None);
    let ahead = case.made(NOW + 365 * DAY).await;
    let fourth = case.made(NOW + 3 * DAY).await;
    assert_eq!(
        case.backups.list().await.unwrap(),
        [third.name, fourth, ahead]
    );
    // Other files are left alone.
    std::fs::write(folder.join("platform-before-the-move.tar"), "").unwrap();
    case.made(NOW + 4 * DAY).await;
    assert!(folder.join("platform-before-the-move.tar").exists());
}

#[tokio::test]
async fn an_older_backup_that_could_not_be_removed_is_removed_although_none_is_due() {
    let (app, folder) = (TestApp::start().await, tempfile::tempdir().unwrap());
    let case = Case::new(&app, folder.path());
    let (first, second) = (case.made(NOW).await, case.made(NOW + DAY).await);
    let older = folder.path().join("platform-2025-12-31T000000Z.tar");
    std::fs::write(&older, "").unwrap();
    assert_eq!(case.at(NOW + DAY + HOUR).await.unwrap(), None);
    assert_eq!(case.backups.list().await.unwrap(), [first, second]);
}

#[tokio::test]
async fn a_damaged_store_takes_no_place_of_a_whole_backup() {
    let (app, folder) = (TestApp::start().await, tempfile::tempdir().unwrap());
    let case = Case::new(&app, folder.path());
    let whole = [case.made(NOW).await, case.made(NOW + DAY).await];
    let damage = "PRAGMA foreign_keys = off; INSERT INTO admins VALUES (zeroblob(16), 1)";
    let store = rusqlite::Connection::open(case.config.database_path()).unwrap();
    store.execute_batch(damage).unwrap();
    let refused = case.at(NOW + 2 * DAY).await.unwrap_err();
    assert!(matches!(refused, BackupsError::Damaged(_)), "{refused:?}");
    assert_eq!(case.backups.list().await.unwrap(), whole);
}

/// What a server says of its backups: how many runs were done and failed, when one was last done, when
/// the newest backup was begun, and for how long one has been due.
async fn exported(app: &TestApp) -> ([String; 2], [Option<String>; 3]) {
    let scrape = Scrape::of(app.running.operations.unwrap()).await;
    let task = ("task", "make-backups");
    let runs = |outcome| {
        let labels = [task, ("outcome", outcome)];
        scrape.value("platform_job_runs_total", &labels).to_string()
    };
    let gauge = |name: &str, labels: &[(&str, &str)]| {
        let is_there = scrape.samples.iter().any(|one| {
            one.name == name && labels.iter().all(|(key, value)| one.labels[*key] == *value)
        });
        is_there.then(|| scrape.value(name, labels).to_string())
    };
    (
        [runs("done"), runs("failed")],
        [
            gauge("platform_job_last_success_timestamp_seconds", &[task]),
            gauge("platform_backup_newest_timestamp_seconds", &[]),
            gauge("platform_backup_overdue_seconds", &[]),
        ],
    )
}

#[tokio::test]
async fn backups_that_fail_become_overdue_and_count_as_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("backups");
    // A file where the folder should be.
    std::fs::write(&place, "").unwrap();
    let app = TestApp::with(|config| {
        config.backup = Some(BackupPlace::Folder(place.clone()));
        config.operations_listen = Some("127.0.0.1:0".parse().unwrap());
    });
    let app = app.await;
    let seconds = |millis: i64| Some((millis / 1_000).to_string());
    let at = |hours: i64| seconds(NOW + hours * HOUR);
    let hours = |hours: i64| seconds(hours * HOUR);
    let first_run = async {
        while exported(&app).await.0 != ["0", "1"] {
            tokio::task::yield_now().await;
        }
    };
    let ran = tokio::time::timeout(Duration::from_secs(30), first_run).await;
    assert!(ran.is_ok(), "{:?}", exported(&app).await);
    assert_eq!(exported(&app).await.1, [None, None, hours(0)]);
    app.clock.advance(7 * HOUR);
    assert_eq!(exported(&app).await.1, [None, None, hours(7)]);

    // The same job once more, whose runs the test begins.
    let mut job = MakeBackups::new(app.running.state.clone());
    std::fs::remove_file(&place).unwrap();
    job.run().await.unwrap();
    assert!(!job.is_paused());
    assert_eq!(exported(&app).await.1, [None, at(7), hours(0)]);
    app.clock.advance(24 * HOUR);
    assert_eq!(exported(&app).await.1, [None, at(7), hours(0)]);
    app.clock.advance(HOUR);
    assert_eq!(exported(&app).await.1, [None, at(7), hours(1)]);

    // One is due and cannot be written; then not even a list can be read.
    std::fs::remove_dir_all(place.join(".unfinished-backup")).unwrap();
    std::fs::write(place.join(".unfinished-backup"), "").unwrap();
    let backups = folder.path().join("unmounted");
    for minutes in [0, 15] {
        app.clock.advance(minutes * 60_000);
        assert!(!job.is_paused());
        job.run().await.unwrap_err();
        assert!(job.is_paused());
        let [_, newest, overdue] = exported(&app).await.1;
        let expected = seconds(HOUR + minutes * 60_000);
        assert_eq!((newest, overdue), (at(7), expected));
        if minutes == 0 {
            std::fs::rename(&place, &backups).unwrap();
            std::fs::write(&place, "").unwrap();
        }
    }
    // It does not wait for a clock that was set back.
    app.clock.jump(-HOUR);
    assert!(!job.is_paused());
}

#[tokio::test]
async fn a_backup_that_would_fill_the_disk_is_not_begun() {
    let (app, folder) = (TestApp::start().await, tempfile::tempdir().unwrap());
    let case = Case::new(&app, folder.path());
    case.disk.set(case.config.disk_floor() + 10_000);
    let refused = case.at(NOW).await.unwrap_err();
    let said = refused.to_string();
    assert!(
        said.contains("no room") && said.contains("PLATFORM_BACKUPS_KEPT"),
        "{said}"
    );
    assert_eq!(names(folder.path()), [".unfinished-backup"]);
    case.disk.set(u64::MAX / 2);
    case.made(NOW).await;
}

#[test]
fn a_server_makes_its_first_backup_by_itself_and_it_is_restored_as_the_latest() {
    let folder = tempfile::tempdir().unwrap();
    let [data, backups, restored] = ["data", "backups", "new"].map(|name| folder.path().join(name));
    let with = |data: &Path| {
        let mut command = program(data);
        command.env("PLATFORM_BACKUP", &backups);
        command
    };
    let mut server = Server::start(&mut with(&data));
    let (sub, _) = guest(&server);
    drop(server.read_log_until("backed up"));
    // One more by hand, which has the guest.
    let mut by_hand = with(&data);
    let by_hand = by_hand.arg("backup").output().unwrap();
    let said = String::from_utf8(by_hand.stdout).unwrap();
    assert!(
        said.starts_with("platform-20") && said.contains(" deployed files, "),
        "{said}"
    );
    server.stop("-TERM");
    let output = with(&restored)
        .args(["restore", "latest"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(run(&restored, &["player", "show", &sub]).0, Some(0));
}

#[test]
fn a_backup_that_is_killed_is_none_and_the_next_one_removes_what_it_left() {
    let folder = tempfile::tempdir().unwrap();
    let [data, backups] = ["data", "backups"].map(|name| folder.path().join(name));
    Server::start(&mut program(&data)).stop("-TERM");
    // Whoever reads this file waits for ever.
    let waits = data.join("files/00");
    std::fs::create_dir_all(&waits).unwrap();
    let waits = waits.join("0".repeat(62));
    assert!(
        Command::new("mkfifo")
            .arg(&waits)
            .status()
            .unwrap()
            .success()
    );
    let backup = || {
        let mut command = program(&data);
        command.env("PLATFORM_BACKUP", &backups).arg("backup");
        command
    };
    let mut killed = backup().spawn().unwrap();
    let work = backups.join(".unfinished-backup");
    let begun = || work.exists() && names(&work).len() > 1;
    let time = tokio::time::Instant::now();
    while !begun() {
        assert!(
            time.elapsed() < Duration::from_secs(60),
            "the backup begins"
        );
        std::thread::yield_now();
    }
    // Nobody else begins one meanwhile.
    let other = backup().output().unwrap();
    let said = String::from_utf8(other.stderr).unwrap();
    assert!(said.contains("another backup is being made"), "{said}");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(
        names(&backups),
        [".unfinished-backup"],
        "nothing looks like a backup"
    );
    let (code, said) = {
        let mut latest = program(&folder.path().join("new"));
        latest.env("PLATFORM_BACKUP", &backups);
        let output = latest.args(["restore", "latest"]).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert!(
        code == Some(1) && said.contains("there is no backup"),
        "{said}"
    );

    std::fs::remove_file(&waits).unwrap();
    assert!(backup().output().unwrap().status.success());
    assert_eq!(names(&work), ["lock"]);
    assert_eq!(names(&backups).len(), 2);
}
