//! What players notice when one part of a cluster dies.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use platform_cluster::Cluster;
use platform_protocol::paths;
use platform_tests::nodes::{self, Load, Seen};
use platform_tests::person::Person;
use platform_tests::poll;
use platform_tests::server;
use platform_tests::terminal;
use platform_tests::visitor::{NotMinted, Visitor};
use reqwest::Method;
use serde_json::Value;

/// Requests a second of the steady load.
pub(crate) const RATE: u32 = 50;
/// How long an answer may take at most, whatever is broken.
pub(crate) const LONGEST: Duration = Duration::from_secs(6);

/// Asserts that every acknowledged guest is still the same player.
pub(crate) async fn assert_the_same_players(cluster: &Cluster, seen: &Seen) {
    let visitor = nodes::visitor(cluster);
    assert_eq!(seen.strangers(), 0, "a known cookie became another player");
    for guest in seen.guests() {
        let again = visitor.mint("demo", Some(&guest.cookie)).await;
        let again = again.unwrap_or_else(|error| {
            let balancer = cluster.balancer.process.output().unwrap_or_default();
            panic!("no token: {error:?}\n{balancer}")
        });
        assert_eq!(again.claims.sub, guest.claims.sub, "a guest was lost");
        assert_eq!(again.claims.username, guest.claims.username);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_has_the_same_keys_games_and_players() {
    let cluster = nodes::start();
    let visitor = nodes::visitor(&cluster);
    let mut key_sets = BTreeSet::new();
    let mut pages = BTreeSet::new();
    let guest = visitor.mint("demo", None).await.unwrap();
    for node in &cluster.nodes {
        let direct = Visitor::new(node.address, cluster.balancer.address.port());
        let get = |label, path| direct.request(Method::GET, label, path).send();
        let keys: Value = get("auth", paths::JWKS)
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        assert!(!keys["keys"].as_array().unwrap().is_empty());
        key_sets.insert(keys.to_string());
        pages.insert(get("demo", "/").await.unwrap().text().await.unwrap());
        let again = direct.mint("demo", Some(&guest.cookie)).await.unwrap();
        assert_eq!(again.claims.sub, guest.claims.sub);
    }
    assert_eq!(key_sets.len(), 1, "{key_sets:?}");
    assert_eq!(pages.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_killed_costs_its_own_requests_and_loses_nobody() {
    let mut cluster = nodes::start();
    let visitor = nodes::visitor(&cluster);
    let load = Load::of_guests(&visitor, RATE);
    load.seen.until_more_passed(100).await;
    cluster.nodes[1].process.kill().unwrap();
    load.seen.until_more_passed(200).await;
    cluster.nodes[1].restart().unwrap();
    load.seen.until_more_passed(100).await;
    let seen = load.end().await;
    let failures = seen.failures();
    println!(
        "{} passed, {} failed: {failures:?}",
        seen.passed(),
        failures.len()
    );
    // Those in flight there, and two seconds of its share.
    let allowed = usize::try_from(RATE).unwrap() * 2 / 3 + 16;
    assert!(failures.len() <= allowed, "{failures:?}");
    assert_the_same_players(&cluster, &seen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_standby_takes_over_and_knows_every_player() {
    let mut cluster = nodes::start();
    let visitor = nodes::visitor(&cluster);
    let load = Load::of_guests(&visitor, RATE);
    let keys = Load::of_gets(&visitor, "auth", paths::JWKS, 20);
    let page = Load::of_gets(&visitor, "demo", "/", 20);
    load.seen.until_more_passed(100).await;
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
    for failure in seen.failures() {
        assert!(failure.what.starts_with("503"), "{failure:?}");
    }
    assert!(seen.longest() < LONGEST, "{:?}", seen.longest());
    for (what, seen) in [("key set", keys), ("page", page)] {
        println!(
            "{what}: {} passed, longest {:?}",
            seen.passed(),
            seen.longest()
        );
        assert!(seen.failures().is_empty(), "{what}: {:?}", seen.failures());
    }
    assert_the_same_players(&cluster, &seen).await;
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
async fn without_s3_games_are_played_and_afterwards_nothing_is_missing() {
    let mut cluster = nodes::start();
    let visitor = nodes::visitor(&cluster);
    // Each node fetches the page once.
    for node in &cluster.nodes {
        let direct = Visitor::new(node.address, cluster.balancer.address.port());
        let page = direct
            .request(Method::GET, "demo", "/")
            .send()
            .await
            .unwrap();
        assert_eq!(page.status(), 200);
    }
    cluster.files.process.kill().unwrap();
    let load = Load::of_guests(&visitor, RATE);
    let page = Load::of_gets(&visitor, "demo", "/", 20);
    load.seen.until_more_passed(100).await;
    page.seen.until_more_passed(40).await;
    cluster.files.restart().unwrap();
    let (seen, page) = (load.end().await, page.end().await);
    for seen in [&seen, &page] {
        assert!(seen.failures().is_empty(), "{:?}", seen.failures());
    }
    assert_the_same_players(&cluster, &seen).await;
}

/// Restarts the nodes one after the other under load. Returns what the load has seen.
async fn restart_in_turn(cluster: &mut Cluster) -> Arc<Seen> {
    let visitor = nodes::visitor(cluster);
    let load = Load::of_guests(&visitor, RATE);
    load.seen.until_more_passed(50).await;
    for node in &mut cluster.nodes {
        // It says that it is not ready, and goes on until the balancer has noticed.
        let stopped = node.stop().and_then(|status| {
            assert!(status.success(), "{status}");
            node.restart()
        });
        assert!(stopped.is_ok(), "{stopped:?}");
        load.seen.until_more_passed(100).await;
    }
    let seen = load.end().await;
    assert!(seen.failures().is_empty(), "{:?}", seen.failures());
    assert_the_same_players(cluster, &seen).await;
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_are_restarted_in_turn_cost_no_request() {
    let seen = restart_in_turn(&mut nodes::start()).await;
    println!("{} passed", seen.passed());
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_restart_on_the_schema_of_a_newer_version() {
    let mut cluster = nodes::start();
    let sql = "ALTER TABLE players ADD COLUMN of_the_next_version INTEGER;
               INSERT INTO platform_schema_history (version, name, applied_on, checksum)
               SELECT version + 1, 'next', applied_on, checksum FROM platform_schema_history
               ORDER BY version DESC LIMIT 1";
    cluster.postgres.primary.sql("platform", sql).unwrap();
    let seen = restart_in_turn(&mut cluster).await;
    println!("{} passed", seen.passed());
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
    assert!(seen.failures().is_empty(), "{:?}", seen.failures());
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

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_provider_is_one_on_all_nodes() {
    let cluster = nodes::start();
    let sites = nodes::sites(&cluster);
    let mut players = BTreeSet::new();
    // The nodes exchange the code through the balancer, with any node.
    for (round, name) in ["Ada", "ada", "ADA", "aDA"].into_iter().enumerate() {
        let node = |step: usize| &sites[(round + step) % cluster.nodes.len()];
        let mut person = Person::new(node(0));
        let game = person.game();
        let address = person.begin("demo", &game).await;
        let mut person = person.through(node(1));
        let page = person.follow(&address).await;
        let form = terminal::form(&page, "/demo-provider/authorize", "request");
        let mut person = person.through(node(2));
        let typed = [("name", name), ("action", "sign-in")];
        let answered = terminal::press(&mut person, &form, &typed).await;
        let callback = answered.see_other().to_owned();
        let mut person = person.through(node(3));
        assert_eq!(person.follow(&callback).await.see_other(), game);
        let player = person.play().await;
        assert!(!player.is_anon);
        players.insert(player.sub);
    }
    assert_eq!(players.len(), 1, "one name is one person: {players:?}");
}
