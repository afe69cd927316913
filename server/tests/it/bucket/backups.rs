//! Backups in a bucket: made, kept by count, restored, and not made while the bucket is away.

use std::sync::Arc;

use platform_server::app::backups::Backups;
use platform_server::config::{BackupPlace, Config, S3Settings};
use platform_server::platform::disk::{DiskFloor, SystemDisk};

use super::server::{BUCKET, Bucket, SECRET};
use super::{MIB, noise, on};
use crate::caller::{Caller, archive};
use crate::program::program;
use crate::support::{NOW, TestApp, send};

const DAY: i64 = 24 * 3_600_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_in_a_bucket_is_made_removed_and_restored_with_the_files_of_another_one() {
    let (bucket, elsewhere) = (Bucket::start().await, Bucket::start().await);
    // Deployed files are in a bucket as well, and larger than a part.
    let app = TestApp::with(on(&bucket)).await;
    let owner = Caller::account(&app).await;
    owner.create("game").await;
    let large = noise(1, 9 * MIB);
    let files = [("index.html", b"here".as_slice()), ("large.bin", &large)];
    let deployed = owner.deploy("prod", archive(&files)).await;
    assert_eq!(deployed.status, 201, "{deployed:?}");
    let place = S3Settings {
        prefix: "backups".to_owned(),
        ..elsewhere.settings()
    };
    let config = Config {
        backup: Some(BackupPlace::Bucket(place)),
        backups_kept: 1,
        ..app.running.state.platform.config.clone()
    };
    let floor = DiskFloor::new(Arc::new(SystemDisk), config.folders(), 0);
    let backups = Backups::new(&config).unwrap();
    for (now, removed) in [(NOW, 0), (NOW + DAY, 1)] {
        let made = backups.make_if_due(&config, &floor, now).await.unwrap();
        assert_eq!(made.unwrap().removed, removed);
    }
    let name = "platform-2026-01-02T000000Z.tar";
    assert_eq!(backups.list().await.unwrap(), [name]);
    elsewhere.kill();
    let failed = backups.make(&config, &floor, NOW + 2 * DAY).await;
    let said = platform_server::domain::errors::chain(&failed.unwrap_err());
    assert!(
        said.contains("PLATFORM_BACKUP") && !said.contains(SECRET),
        "{said}"
    );
    elsewhere.run();
    let (data, running) = (app.directory, app.running);
    running.stop().await.unwrap();
    drop(data);

    // A new machine, with an empty bucket for deployed files.
    let data = tempfile::tempdir().unwrap();
    let fresh = elsewhere.settings();
    let mut restore = program(data.path());
    for (name, value) in &fresh.variables {
        restore.env(name, value.expose());
    }
    let url = format!("s3://{BUCKET}/{}", fresh.prefix);
    restore.env("PLATFORM_FILES_URL", url);
    restore.args(["restore", &format!("s3://{BUCKET}/backups/{name}")]);
    let done = tokio::task::spawn_blocking(move || restore.output()).await;
    let done = done.unwrap().unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let app = TestApp::in_directory(data, on(&elsewhere)).await;
    for (path, content) in [("/", b"here".as_slice()), ("/large.bin", &large)] {
        let answer = send(app.get("game", path)).await;
        assert!(answer.status == 200 && answer.body == content, "{path}");
    }
}
