//! The section about domains: adding one, its records, having them verified, the canonical address,
//! and removing it.

use platform_test_dns::TestDns;
use platform_tests::browser::Stage;
use platform_tests::platform::Platform;
use reqwest::Method;
use serde_json::json;

use super::{Scene, comes_to, texts};
use crate::build::examine;

platform_tests::browser_tests![
    in Chromium, because "it is the page's own logic":
    a_domain_is_added_verified_made_canonical_and_removed,
];

/// The texts in which a domain's records are.
const RECORDS: &str = "#domains code";

async fn a_domain_is_added_verified_made_canonical_and_removed(stage: Stage) {
    let dns = TestDns::start().await;
    let servers = vec![dns.address];
    let platform = Platform::start_with(&[], |config| config.resolver = servers).await;
    let scene = Scene::start_on(platform).await;
    scene.deploy("prod").await;
    scene.open(&stage, "settings").await;
    stage.says("None yet: the game has its address").await;
    stage.tolerate_log("422");
    stage.fill("A domain of your own", "192.0.2.1").await;
    stage.press("Add the domain").await;
    let wrong = "return document.getElementById('domain-error').textContent !== ''";
    comes_to(&stage, wrong, json!(true)).await;

    stage.fill("A domain of your own", "play.example").await;
    stage.press("Add the domain").await;
    stage.says("play.example is added.").await;
    stage.says("Waits for its records").await;
    let error = "return document.getElementById('domain-error').textContent";
    comes_to(&stage, error, json!("")).await;
    let shown = texts(&stage, RECORDS).await;
    let shown = |place: usize| shown[place].as_str().unwrap().to_owned();
    assert_eq!(shown(0), "_platform.play.example");
    assert!(shown(1).starts_with("platform-verify="), "{}", shown(1));
    assert_eq!(shown(2), "play.example");
    assert_eq!(shown(3), "game.platform.localhost");

    stage.press("Verify play.example").await;
    stage
        .says("There is no TXT record at _platform.play.example")
        .await;
    examine(&stage, "a domain that waits for its records").await;
    dns.text(&shown(0), &shown(1));
    dns.alias(&shown(2), &shown(3));
    stage.press("Verify play.example").await;
    stage.says("play.example is active.").await;
    stage.says("once its records are verified").await;

    stage.press("Make canonical play.example").await;
    stage.says("play.example is the canonical address.").await;
    stage.says("other addresses redirect to play.example").await;
    examine(&stage, "a canonical domain").await;
    stage.press("No longer canonical play.example").await;
    stage
        .says("play.example is no longer the canonical address.")
        .await;

    stage.press("Remove\u{2026} play.example").await;
    stage.says("Remove this domain?").await;
    examine(&stage, "the question before a domain is removed").await;
    stage.press("Cancel").await;
    stage.press("Remove\u{2026} play.example").await;
    stage.press("Remove").await;
    stage.says("play.example is removed.").await;
    stage.says("None yet: the game has its address").await;
    let path = "/api/projects/game/environments/prod/domains";
    let (_, left) = scene.owner.ask(Method::GET, path, None).await;
    assert_eq!(left["domains"], json!([]));
}
