//! Any node is as good as any other: keys, games, players, sign-ins and deploys are the same on all.

use std::collections::BTreeSet;

use platform_protocol::paths;
use platform_tests::nodes;
use platform_tests::owner::Owner;
use platform_tests::visitor::Visitor;
use reqwest::Method;
use serde_json::{Value, json};

use super::{rounds, sign_in_across};

/// Deploys, unless `TESTS_ROUNDS` has another number.
const DEPLOYS: usize = 30;
/// Deploys of one game: the platform limits how many there are in an hour.
const OF_ONE_GAME: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn every_node_has_the_same_keys_games_and_players() {
    let cluster = nodes::start();
    let visitor = nodes::visitor(&cluster);
    let mut key_sets = BTreeSet::new();
    let mut pages = BTreeSet::new();
    let guest = visitor.mint("demo", None).await.unwrap();
    for direct in nodes::direct_visitors(&cluster) {
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

    let directs = nodes::direct_visitors(&cluster);
    let score = |node: &Visitor, method, score: Value| {
        let request = node.request(method, "demo", "/api/score");
        request.bearer_auth(&guest.token).json(&score).send()
    };
    for (number, direct) in directs.iter().enumerate() {
        let best = 10 + number;
        let told = score(direct, Method::POST, json!({"score": best})).await;
        assert_eq!(told.unwrap().status(), 200);
        for other in &directs {
            let shown = score(other, Method::GET, Value::Null).await.unwrap();
            let shown: Value = shown.json().await.unwrap();
            assert_eq!(shown["best"], best, "{shown}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_provider_is_one_on_all_nodes() {
    let cluster = nodes::start();
    let sites = nodes::sites(&cluster);
    let mut players = BTreeSet::new();
    for (round, name) in ["Ada", "ada", "ADA", "aDA"].into_iter().enumerate() {
        let mut person = sign_in_across(&sites[..3], round, name).await;
        let player = person.play().await;
        assert!(!player.is_anon);
        players.insert(player.sub);
    }
    assert_eq!(players.len(), 1, "one name is one person: {players:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_shows_a_deploy_as_soon_as_one_has_answered() {
    let cluster = nodes::start();
    let sites = nodes::sites(&cluster);
    let owner = Owner::sign_in(&sites[0], "the maker").await;
    for round in 0..rounds(DEPLOYS) {
        let page = format!(
            "<!doctype html><title>{round}</title><script src=\"/__platform/runtime.js\"></script>"
        );
        // Through a different node each time, and through the balancer.
        let owner = owner.through(&sites[round % sites.len()]);
        let game = format!("shown-{}", round / OF_ONE_GAME);
        if round % OF_ONE_GAME == 0 {
            owner.create(&game).await;
        }
        owner.deploy(&game, "prod", &[("index.html", &page)]).await;
        for visitor in nodes::direct_visitors(&cluster) {
            let answer = visitor
                .request(Method::GET, &game, "/")
                .send()
                .await
                .unwrap();
            let text = answer.text().await.unwrap();
            assert!(
                text.contains(&format!("<title>{round}</title>")),
                "{round}: {text}"
            );
        }
    }
}
