//! A log that is followed while its node is killed.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use platform_protocol::paths;
use platform_tests::nodes;
use platform_tests::owner::Owner;
use platform_tests::poll;
use platform_tests::server::built;
use platform_tests::visitor::Visitor;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

const GAME: &str = "followed";
/// Records that are sent after the kill of each node.
const RECORDS: usize = 60;

/// How often each message came.
type Received = Arc<Mutex<BTreeMap<String, usize>>>;

/// Reads what the command line prints.
async fn read(output: tokio::process::ChildStdout, received: Received) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let record: Value = serde_json::from_str(&line).unwrap();
        let message = record["message"].as_str().unwrap().to_owned();
        *received.lock().unwrap().entry(message).or_default() += 1;
    }
}

/// Sends one record. Returns whether it was acknowledged.
async fn log(visitor: &Visitor, message: &str) -> bool {
    let record = json!({"time": 0, "level": "warn", "source": "console", "message": message});
    let body = json!({"page": "AAAAAAAAAAAAAAAAAAAAAA", "records": [record]});
    let request = visitor
        .request(Method::POST, GAME, paths::LOGS)
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string());
    let answer = request.send().await;
    answer.is_ok_and(|answer| answer.status() == 204)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_followed_log_misses_nothing_and_repeats_nothing_when_its_node_is_killed() {
    let mut cluster = nodes::start();
    let site = nodes::site(&cluster, cluster.balancer.address);
    let owner = Owner::sign_in(&site, "the maker").await;
    owner.create(GAME).await;
    let page = "<!doctype html><script src=\"/__platform/runtime.js\"></script>";
    owner.deploy(GAME, "prod", &[("index.html", page)]).await;

    let home = TempDir::new().unwrap();
    let mut child = Command::new(built("platform-cli", "platform"))
        .args([
            "logs",
            "--follow",
            "--json",
            "--env",
            "prod",
            "--project",
            GAME,
        ])
        .env_clear()
        .env("HOME", home.path())
        .env("PLATFORM_ORIGIN", &site.origin)
        .env("PLATFORM_TOKEN", &owner.token)
        .current_dir(home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let received = Received::default();
    let reading = tokio::spawn(read(child.stdout.take().unwrap(), Arc::clone(&received)));

    let visitor = nodes::visitor(&cluster);
    let mut acknowledged = Vec::new();
    let mut number = 0;
    let mut send = async |acknowledged: &mut Vec<String>| {
        for _ in 0..RECORDS {
            number += 1;
            let message = format!("record {number}");
            if log(&visitor, &message).await {
                acknowledged.push(message);
            }
        }
    };
    let all_came = async |acknowledged: &[String]| {
        poll::until("every acknowledged record has come", async || {
            let received = received.lock().unwrap();
            let came = |message: &String| received.contains_key(message);
            acknowledged.iter().all(came).then_some(())
        })
        .await;
    };
    send(&mut acknowledged).await;
    all_came(&acknowledged).await;
    // The stream is on one of them.
    for number in 0..cluster.nodes.len() {
        cluster.nodes[number].process.kill().unwrap();
        send(&mut acknowledged).await;
        cluster.nodes[number].restart().unwrap();
        send(&mut acknowledged).await;
        all_came(&acknowledged).await;
    }
    let repeated: Vec<_> = {
        let received = received.lock().unwrap();
        let repeated = received.iter().filter(|(_, times)| **times != 1);
        repeated
            .map(|(message, times)| (message.clone(), *times))
            .collect()
    };
    assert_eq!(repeated, []);
    println!("{} of {number} records acknowledged", acknowledged.len());
    child.kill().await.unwrap();
    reading.await.unwrap();
}
