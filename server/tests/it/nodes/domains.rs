//! Domains of games' own on several nodes: what one of them verifies, makes canonical or removes holds on
//! the others with the next request, as every other change does.

use platform_test_dns::TestDns;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Cluster, page};
use crate::caller::Caller;
use crate::domains::prove;
use crate::support::{Answer, TestApp, send};

const ALL: &str = "/api/projects/game/environments/prod/domains";

/// Opens the start page at this host, as a browser does.
async fn open(node: &TestApp, host: &str) -> Answer {
    let host = format!("{host}:8787");
    let request = node.request_host(Method::GET, &host, "/");
    send(request.header("accept", "text/html,*/*;q=0.8")).await
}

async fn shown(node: &TestApp) -> (u16, String) {
    let answer = open(node, "play.example").await;
    (answer.status.as_u16(), answer.text().to_owned())
}

#[tokio::test]
async fn a_domain_that_one_node_verifies_the_others_serve_with_the_next_request() {
    let dns = TestDns::start().await;
    let cluster = Cluster::new();
    let node = || cluster.node_set(|config| config.resolver = vec![dns.address]);
    let (one, other, third) = tokio::join!(node(), node(), node());
    let owner = Caller::account(&one).await;
    let there = Caller::with_cookie(&other, Some(&owner.cookie)).await;
    assert_eq!(owner.create("game").await.status, 201);
    assert_eq!(owner.deploy("prod", page("game")).await.status, 201);

    let claimed = owner.post(ALL, json!({ "domain": "play.example" })).await;
    assert_eq!(claimed.status, 201, "{}", claimed.text());
    prove(&dns, &claimed.json());
    assert_eq!(shown(&other).await.0, 404, "a claim leads nowhere");
    let verify = format!("{ALL}/play.example/verify");
    let verified: Value = send(owner.ask(Method::POST, &verify)).await.json();
    assert_eq!(verified["state"], "active", "{verified}");
    for node in [&other, &third, &one] {
        assert_eq!(shown(node).await, (200, "game".to_owned()));
    }

    let path = format!("{ALL}/play.example");
    let set = there.put(&path, json!({ "canonical": true })).await;
    assert_eq!(set.status, 200, "{}", set.text());
    for node in [&one, &third] {
        let led = open(node, "game.platform.localhost").await;
        let to = led.header("location").map(str::to_owned);
        let expected = "http://play.example:8787/".to_owned();
        assert_eq!((led.status.as_u16(), to), (308, Some(expected)));
    }

    let removed = send(there.ask(Method::DELETE, &path)).await;
    assert_eq!(removed.status, 204, "{}", removed.text());
    for node in [&one, &third] {
        assert_eq!(shown(node).await.0, 404);
        assert_eq!(open(node, "game.platform.localhost").await.status, 200);
    }
}
