//! The S3 server dies.

use std::path::Path;

use platform_cluster::Cluster;
use platform_tests::nodes::{self, Load};
use platform_tests::owner::Owner;
use platform_tests::poll;
use reqwest::Method;

use super::{RATE, assert_none_failed, assert_the_same_players};

const GAME: &str = "kept";

/// A page with this title.
fn page(title: &str) -> String {
    format!("<!doctype html><title>{title}</title><script src=\"/__platform/runtime.js\"></script>")
}

/// Returns whether every node serves the page with this title now.
async fn is_shown(cluster: &Cluster, label: &str, title: &str) -> bool {
    let title = format!("<title>{title}</title>");
    for direct in nodes::direct_visitors(cluster) {
        let answer = direct.request(Method::GET, label, "/").send().await;
        if !answer.unwrap().text().await.unwrap().contains(&title) {
            return false;
        }
    }
    true
}

/// The deployed files that are not in the bucket.
fn missing(cluster: &Cluster) -> Vec<String> {
    let every = "SELECT DISTINCT encode(sha256, 'hex') FROM deployment_files";
    let files = cluster.postgres.primary.sql("platform", every).unwrap();
    assert!(!files.is_empty(), "nothing is deployed");
    let bucket = cluster.folder().join("s3/games/platform");
    let is_missing = |bucket: &Path, file: &str| {
        let (folder, name) = file.split_at(2);
        !bucket.join(folder).join(name).is_file()
    };
    let files = files.lines().filter(|file| is_missing(&bucket, file));
    files.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_s3_games_are_played_nothing_is_deployed_and_afterwards_nothing_is_missing() {
    let mut cluster = nodes::start();
    let visitor = nodes::visitor(&cluster);
    let site = nodes::site(&cluster, cluster.balancer.address);
    let owner = Owner::sign_in(&site, "the maker").await;
    owner.create(GAME).await;
    let deploy = async |title: &str| {
        let files = [("index.html", &*page(title)), ("a.js", "a()")];
        owner.try_to_deploy(GAME, "prod", &files).await
    };
    assert_eq!(deploy("before").await.0, 201);
    // Each node fetches the pages once.
    assert!(is_shown(&cluster, GAME, "before").await);
    for direct in nodes::direct_visitors(&cluster) {
        let answer = direct.request(Method::GET, "demo", "/").send().await;
        assert_eq!(answer.unwrap().status(), 200);
    }
    cluster.files.process.kill().unwrap();
    let load = Load::of_guests(&visitor, RATE);
    let pages = Load::of_gets(&visitor, "demo", "/", 20);
    load.seen.until_more_passed(100).await;
    let (status, text) = deploy("while it is gone").await;
    assert_eq!(status, 503, "{text}");
    assert!(is_shown(&cluster, GAME, "before").await);
    pages.seen.until_more_passed(40).await;
    cluster.files.restart().unwrap();
    assert!(is_shown(&cluster, GAME, "before").await);
    assert_eq!(missing(&cluster), [""; 0]);
    poll::until("a deploy", async || {
        (deploy("after").await.0 == 201).then_some(())
    })
    .await;
    // For a second after a failure, a node does not ask the bucket.
    poll::until("every node shows the deploy", async || {
        is_shown(&cluster, GAME, "after").await.then_some(())
    })
    .await;
    assert_eq!(missing(&cluster), [""; 0]);
    let (seen, pages) = (load.end().await, pages.end().await);
    assert_none_failed(&cluster, "tokens", &seen);
    assert_none_failed(&cluster, "pages", &pages);
    assert_the_same_players(&cluster, &seen).await;
}
