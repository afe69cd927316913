//! What the doctor finds of PostgreSQL, Redis and buckets: real ones that answer, refuse, or stay silent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use platform_server::app::backups::Backups;
use platform_server::app::doctor::{Finding, Patient, State, examine};
use platform_server::clock::{ManualClock, SystemClock};
use platform_server::config::{BackupPlace, Config, S3Settings, Secret};
use platform_server::entropy::SystemEntropy;
use platform_server::platform::disk::{DiskFloor, ManualDisk, SystemDisk};
use platform_test_postgres::TestDatabase;
use platform_test_redis::TestRedis;
use tokio::time::Instant;

use super::{examined, the};
use crate::bucket::server::{Bucket, SECRET};
use crate::postgres::settings;
use crate::sign_in::providers::named;
use crate::support::{NOW, TestApp};

const HOUR: i64 = 3_600_000;

/// The settings of a platform whose server does not run, from an empty data folder.
fn alone(data: &tempfile::TempDir) -> Config {
    Config {
        data: data.path().to_owned(),
        // Nobody listens on port 1.
        listen: "127.0.0.1:1".parse().unwrap(),
        ..Config::default()
    }
}

/// Settings of a bucket, with another value for one variable.
fn with(mut settings: S3Settings, name: &str, value: &str) -> S3Settings {
    let secret = Secret::new(value.to_owned());
    settings.variables.insert(name.to_owned(), secret);
    settings
}

fn assert_no_secret(findings: &[Finding]) {
    let all = format!("{findings:?}");
    for secret in [SECRET, "hunter2", "wrong-wrong"] {
        assert!(!all.contains(secret), "{all}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_that_answer_are_fine() {
    let (database, redis) = (TestDatabase::new(), TestRedis::start());
    let (bucket, files) = (Bucket::start().await, tempfile::tempdir().unwrap());
    let app = TestApp::with(settings(&database, files.path())).await;
    let platform = &app.running.state.platform;
    platform.nodes.report().await.unwrap();
    let data = tempfile::tempdir().unwrap();
    let config = Config {
        data: data.path().to_owned(),
        listen: app.running.address,
        redis: Some(Secret::new(redis.url())),
        s3: Some(bucket.settings()),
        ..platform.config.clone()
    };
    let findings = examined(&config, Arc::new(SystemClock)).await;
    let found = the(&findings, "database");
    // On a busy machine it may be slow, which is a warning.
    assert_ne!(found.state, State::Wrong, "{found:?}");
    let begin = "PostgreSQL answers in ";
    assert!(found.found.starts_with(begin), "{found:?}");
    for check in ["redis", "bucket", "signing keys"] {
        let found = the(&findings, check);
        assert_eq!(found.state, State::Fine, "{found:?}");
    }
    // The clock of the tests stands still, which may be a warning.
    let servers = the(&findings, "servers");
    assert!(servers.found.starts_with("1 run"), "{servers:?}");
    assert_no_secret(&findings);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_that_refuse_are_wrong_with_what_to_correct() {
    let (empty, bucket) = (TestDatabase::new(), Bucket::start().await);
    let data = tempfile::tempdir().unwrap();
    let refused = with(bucket.settings(), "AWS_SECRET_ACCESS_KEY", "wrong-wrong");
    let mut config = alone(&data);
    // A database without a platform.
    config.postgres = Some(Secret::new(empty.url()));
    config.redis = Some(Secret::new("http://x:hunter2@127.0.0.1:1".to_owned()));
    config.s3 = Some(refused.clone());
    config.backup = Some(BackupPlace::Bucket(refused));
    let findings = examined(&config, Arc::new(SystemClock)).await;
    for (check, found, advice) in [
        ("database", "", "PLATFORM_DATABASE_URL"),
        ("redis", "redis_url: ", "correct PLATFORM_REDIS_URL"),
        ("bucket", "status 403", "the credentials"),
        ("backups", "status 403", "AWS_*"),
    ] {
        let finding = the(&findings, check);
        assert_eq!(finding.state, State::Wrong, "{finding:?}");
        assert!(finding.found.contains(found), "{finding:?}");
        let given = finding.advice.as_deref().unwrap();
        assert!(given.contains(advice), "{finding:?}");
    }
    // Nobody listens there.
    let closed = "postgres://platform:hunter2@127.0.0.1:1/x";
    config.postgres = Some(Secret::new(closed.to_owned()));
    let unreached = examined(&config, Arc::new(SystemClock)).await;
    let finding = the(&unreached, "database");
    assert_eq!(finding.state, State::Wrong, "{finding:?}");
    assert_no_secret(&[findings, unreached].concat());
}

/// Time passes by itself here whenever everybody waits, so nobody waits for long.
#[tokio::test(start_paused = true)]
async fn services_that_stay_silent_are_wrong_within_a_minute() {
    // Connections are accepted, and nothing reads from them.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let data = tempfile::tempdir().unwrap();
    let url = |scheme: &str| format!("{scheme}://x:hunter2@127.0.0.1:{port}");
    let keys = [
        ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")),
        ("AWS_ACCESS_KEY_ID", "platform".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
    ];
    let silent = S3Settings {
        bucket: "games".to_owned(),
        prefix: String::new(),
        variables: keys
            .map(|(name, value)| (name.to_owned(), Secret::new(value)))
            .into(),
    };
    let issuer = format!("http://id.localhost:{port}");
    let config = Config {
        postgres: Some(Secret::new(format!("{}/x", url("postgres")))),
        redis: Some(Secret::new(url("redis"))),
        s3: Some(silent.clone()),
        backup: Some(BackupPlace::Bucket(silent)),
        identity_providers: vec![named("one", &issuer)],
        ..alone(&data)
    };
    let begun = Instant::now();
    let findings = examined(&config, Arc::new(SystemClock)).await;
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(60), "{took:?}");
    for check in ["database", "redis", "bucket", "backups", "sign-in"] {
        let finding = the(&findings, check);
        assert_eq!(finding.state, State::Wrong, "{finding:?}");
        assert!(finding.advice.is_some(), "{finding:?}");
    }
    for check in ["redis", "bucket", "backups"] {
        let finding = the(&findings, check);
        assert!(finding.found.contains(" within "), "{finding:?}");
    }
    assert_no_secret(&findings);
    drop(listener);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_backup_in_a_bucket_must_be_recent() {
    let (app, bucket) = (TestApp::start().await, Bucket::start().await);
    let place = S3Settings {
        prefix: "backups".to_owned(),
        ..bucket.settings()
    };
    let served = Config {
        backup: Some(BackupPlace::Bucket(place)),
        ..app.running.state.platform.config.clone()
    };
    // Another folder: this process must not open the store's files a second time.
    let data = tempfile::tempdir().unwrap();
    let config = Config {
        backup: served.backup.clone(),
        ..alone(&data)
    };
    let at = async |now: i64| {
        let findings = examined(&config, Arc::new(ManualClock::new(now))).await;
        the(&findings, "backups").clone()
    };
    let none = at(NOW).await;
    assert_eq!(none.state, State::Wrong, "{none:?}");
    assert!(none.found.starts_with("there is no backup in"), "{none:?}");

    let floor = DiskFloor::new(Arc::new(SystemDisk), served.folders(), 0);
    let backups = Backups::new(&served).unwrap();
    for made in [NOW - 24 * HOUR, NOW] {
        backups.make(&served, &floor, made).await.unwrap();
    }
    let name = "platform-2026-01-01T000000Z.tar";
    let fine = at(NOW + 30 * HOUR).await;
    assert_eq!(fine.state, State::Fine, "{fine:?}");
    assert_eq!(fine.found, format!("the newest, {name}, is 30 hours old"));
    let late = at(NOW + 30 * HOUR + 1).await;
    assert_eq!(late.state, State::Wrong, "{late:?}");
    let advice = late.advice.as_deref().unwrap();
    assert!(advice.contains("\"no backup could be made\""), "{advice}");

    // A folder that the operator names is looked at instead.
    let patient = Patient {
        config: &config,
        backups: Some(PathBuf::from("/nowhere")),
        clock: Arc::new(ManualClock::new(NOW)),
        entropy: Arc::new(SystemEntropy),
        disk: Arc::new(ManualDisk::new(u64::MAX)),
    };
    let findings = examine(&patient).await;
    let named = the(&findings, "backups");
    assert!(named.found.starts_with("/nowhere cannot"), "{named:?}");

    bucket.kill();
    let gone = at(NOW).await;
    assert_eq!(gone.state, State::Wrong, "{gone:?}");
    assert!(gone.found.contains("PLATFORM_BACKUP"), "{gone:?}");
    let advice = gone.advice.as_deref().unwrap();
    assert!(advice.contains("reaches the bucket"), "{advice}");
    assert_no_secret(&[gone]);
}
