//! PostgreSQL dies, one server or both, and is backed up.

use std::time::Duration;

use platform_protocol::paths;
use platform_tests::nodes::{self, Load};
use platform_tests::visitor::NotMinted;
use platform_tests::{poll, server};

use super::{
    LONGEST, RATE, assert_none_failed, assert_the_same_accounts, assert_the_same_players,
    sign_some_in,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_standby_takes_over_and_knows_every_player() {
    let mut cluster = nodes::start();
    let accounts = sign_some_in(&cluster).await;
    let visitor = nodes::visitor(&cluster);
    let load = Load::of_guests(&visitor, RATE);
    let keys = Load::of_gets(&visitor, "auth", paths::JWKS, 20);
    let page = Load::of_gets(&visitor, "demo", "/", 20);
    load.seen.until_more_passed(100).await;
    let beats = Load::of_heartbeats(&visitor, load.seen.guests(), 20);
    beats.seen.until_more_passed(20).await;
    cluster.postgres.primary.process.kill().unwrap();
    // So much later somebody notices.
    let noticed = load.seen.failures().len() + 100;
    poll::until("requests to fail", async || {
        (load.seen.failures().len() >= noticed).then_some(())
    })
    .await;
    cluster.postgres.promote().unwrap();
    let promoted = tokio::time::Instant::now();
    load.seen.until_more_passed(100).await;
    println!("minting again {:?} after the promotion", promoted.elapsed());
    assert!(promoted.elapsed() < Duration::from_secs(30));
    let (seen, keys, page) = (load.end().await, keys.end().await, page.end().await);
    let beats = beats.end().await;
    for failure in seen.failures() {
        assert!(failure.what.starts_with("503"), "{failure:?}");
    }
    assert!(seen.longest() < LONGEST, "{:?}", seen.longest());
    for (what, seen) in [("key set", keys), ("page", page), ("heartbeats", beats)] {
        println!(
            "{what}: {} passed, longest {:?}",
            seen.passed(),
            seen.longest()
        );
        assert_none_failed(&cluster, what, &seen);
    }
    assert_the_same_players(&cluster, &seen).await;
    assert_the_same_accounts(&cluster, accounts).await;
    // The promoted server has no standby, which every node says once.
    for node in &cluster.nodes {
        let said = poll::until("the warning", async || {
            let said = node.process.output().unwrap();
            let said = said.matches("does not wait for a standby").count();
            (said > 0).then_some(said)
        });
        assert_eq!(said.await, 1, "{}", node.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_standby_no_new_player_is_acknowledged() {
    let mut cluster = nodes::start();
    let visitor = nodes::visitor(&cluster);
    let guest = visitor.mint("demo", None).await.unwrap();
    cluster.postgres.standby.process.kill().unwrap();
    let start = tokio::time::Instant::now();
    match visitor.mint("demo", None).await {
        Err(NotMinted::Refused { status: 503, .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed() < LONGEST, "{:?}", start.elapsed());
    // A known player needs no write.
    let again = visitor.mint("demo", Some(&guest.cookie)).await.unwrap();
    assert_eq!(again.claims.sub, guest.claims.sub);
    cluster.postgres.standby.restart().unwrap();
    poll::until("new players", async || {
        visitor.mint("demo", None).await.ok()
    })
    .await;
    let again = visitor.mint("demo", Some(&guest.cookie)).await.unwrap();
    assert_eq!(again.claims.sub, guest.claims.sub);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_from_the_standby_has_every_acknowledged_player() {
    let cluster = nodes::start();
    let visitor = nodes::visitor(&cluster);
    let load = Load::of_guests(&visitor, RATE);
    load.seen.until_more_passed(100).await;
    let before = load.seen.guests();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("platform.tar");
    let program = |data: &std::path::Path| {
        let mut command = std::process::Command::new(server::program());
        command.env_clear().env("PLATFORM_DATA", data);
        command
    };
    let standby = |database| {
        let port = cluster.postgres.standby.port;
        format!("postgres://platform@127.0.0.1:{port}/{database}")
    };
    let made = program(folder.path())
        .envs(cluster.files.settings())
        .arg("backup")
        .arg(&file)
        .args([
            "--from",
            &standby("platform"),
            "--logs-from",
            &standby("logs"),
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(made.status.success(), "{said}");
    let seen = load.end().await;
    assert_none_failed(&cluster, "tokens", &seen);
    let restored = tempfile::tempdir().unwrap();
    let unpacked = std::fs::File::open(&file).unwrap();
    tar::Archive::new(unpacked).unpack(restored.path()).unwrap();
    assert!(restored.path().join("files").is_dir());
    let last = before.last().unwrap().claims.sub.to_string();
    let shown = program(restored.path())
        .args(["player", "show", &last])
        .output()
        .unwrap();
    assert!(shown.status.success(), "{shown:?}");
}
