//! Two nodes that start at the same time on an empty database.

use platform_protocol::paths;
use platform_test_postgres::TestDatabase;
use platform_tests::server::Server;
use platform_tests::visitor::Visitor;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::wanted;

/// How often, unless `TESTS_STARTS` has another number.
const STARTS: usize = 10;
/// The port of the platform's origin. Nothing listens there: the nodes are asked directly.
const PORT: u16 = 8780;

async fn key_set(node: &Visitor) -> Value {
    let answer = node.request(Method::GET, "auth", paths::JWKS).send().await;
    let text = answer.unwrap().text().await.unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The slugs of the games that a node knows.
async fn games(node: &Visitor) -> Vec<String> {
    let ranking = platform_tests::crowd::ranking(node).await.into_iter();
    ranking.map(|game| game.slug).collect()
}

/// The status of a heartbeat with a token, which the node verifies.
async fn beat(node: &Visitor, token: &str) -> u16 {
    let request = node
        .request(Method::POST, "demo", paths::HEARTBEAT)
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .header(CONTENT_TYPE, "application/json")
        .body(json!({ "page": "aAAAAAAAAAAAAAAAAAAAAA" }).to_string());
    request.send().await.unwrap().status().as_u16()
}

/// Starts two nodes on an empty database, and lets each verify the other's first token.
async fn start_two() {
    let database = TestDatabase::new();
    let folders = [(); 2].map(|()| TempDir::with_prefix("platform-tests-").unwrap());
    let files = TempDir::with_prefix("platform-tests-").unwrap();
    let (url, files) = (database.url(), format!("file://{}", files.path().display()));
    let origin = format!("http://platform.localhost:{PORT}");
    let settings = [
        ("PLATFORM_ORIGIN", &*origin),
        ("PLATFORM_DATABASE_URL", &url),
        ("PLATFORM_FILES_URL", &files),
        (
            "PLATFORM_KEY_SECRET",
            "the same thirty-two or more characters",
        ),
    ];
    let (one, other) = tokio::join!(
        Server::start_set(folders[0].path(), "", &settings),
        Server::start_set(folders[1].path(), "", &settings),
    );
    let nodes = [&one, &other].map(|server| Visitor::new(server.address, PORT));
    let keys = key_set(&nodes[0]).await;
    assert_eq!(keys, key_set(&nodes[1]).await);
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1);
    for (first, second) in [(&nodes[0], &nodes[1]), (&nodes[1], &nodes[0])] {
        assert_eq!(games(first).await, ["demo"]);
        let token = first.mint("demo", None).await.unwrap().token;
        assert_eq!(beat(second, &token).await, 204);
    }
    one.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_that_start_on_an_empty_database_are_one_platform() {
    for _ in 0..wanted("TESTS_STARTS", STARTS) {
        start_two().await;
    }
}
