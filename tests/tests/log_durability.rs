//! Accepted records are durable: a log request that got 204 survives the end of the server
//! completely.

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use platform_protocol::log::LogLevel;
use platform_protocol::names::Environment;
use platform_protocol::paths;
use platform_server::domain::log::LogQuery;
use platform_server::store::{self, SchemaPolicy};
use platform_tests::load::Load;
use platform_tests::server::Server;
use platform_tests::visitor::Visitor;
use platform_tests::{poll, settings};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;

/// How often the server is killed.
const ROUNDS: usize = 20;
/// The number of concurrent pages.
const PAGES: usize = 16;

/// Requests by name, each with its number of records.
type Requests = HashMap<String, usize>;

/// Sends requests of a few records each until the server is gone, and returns the accepted ones.
async fn send(visitor: Visitor, load: Arc<Load>, name: String, random: fastrand::Rng) -> Requests {
    let mut random = random;
    let mut accepted = Requests::new();
    for number in 0.. {
        let request = format!("{name}.{number}");
        let count = random.usize(1..=20);
        let record = json!({"time": 0, "level": "info", "source": "console", "message": request});
        let body = json!({"page": "AAAAAAAAAAAAAAAAAAAAAA", "records": vec![record; count]});
        let answer = visitor
            .request(Method::POST, "demo", paths::LOGS)
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string())
            .send()
            .await;
        let Ok(answer) = answer else { break };
        assert_eq!(answer.status(), 204);
        accepted.insert(request, count);
        load.count();
    }
    accepted
}

/// One life of the server: load until some responses have arrived and a moment more, then SIGKILL.
/// Returns the accepted requests.
async fn live_and_die(data: &TempDir, round: usize, random: &mut fastrand::Rng) -> Requests {
    let mut server = Server::start(data.path()).await;
    let load = Arc::new(Load::default());
    let mut pages = JoinSet::new();
    for page in 0..PAGES {
        let name = format!("{round}.{page}");
        let load = Arc::clone(&load);
        pages.spawn(send(server.visitor(), load, name, random.fork()));
    }
    load.kill_under_way(&mut server, random).await;
    let accepted = poll::within("pages to notice", pages.join_all()).await;
    accepted.into_iter().flatten().collect()
}

/// Returns the requests that the killed server has stored.
async fn kept(data: &TempDir) -> Requests {
    let url = format!("sqlite://{}", data.path().join("platform.db").display());
    let store = store::connect(&url, SchemaPolicy::Upgrade).await.unwrap();
    let query = LogQuery {
        slug: "demo".into(),
        environment: Environment::Prod,
        level: LogLevel::Debug,
        before: None,
        limit: usize::MAX,
        bytes: usize::MAX,
    };
    let records = store.list_log_records(query).await.unwrap().records;
    store.close().await.unwrap();
    let ids: HashSet<_> = records.iter().map(|record| record.id).collect();
    assert_eq!(ids.len(), records.len(), "no record stands there twice");
    let mut kept = Requests::new();
    for record in records {
        *kept.entry(record.entry.message).or_default() += 1;
    }
    kept
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_accepted_log_request_survives_kills_at_random_moments_whole() {
    let given = settings::variable("TESTS_SEED").and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("repeat with TESTS_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let data = TempDir::with_prefix("platform-tests-").unwrap();
    let mut accepted = Requests::new();
    for round in 0..ROUNDS {
        let told = live_and_die(&data, round, &mut random).await;
        assert!(
            !told.is_empty(),
            "round {round}: the load reached the server"
        );
        accepted.extend(told);
        let kept = kept(&data).await;
        for (request, count) in &accepted {
            assert_eq!(
                kept.get(request),
                Some(count),
                "round {round}: request {request} was accepted"
            );
        }
    }
    println!("{} requests over {ROUNDS} kills", accepted.len());
}
