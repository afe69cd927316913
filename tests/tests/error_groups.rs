//! Errors of builds that real bundlers made are grouped as a person would group them.

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::collections::BTreeMap;
use std::process::Stdio;

use platform_tests::deployer::{Deployer, archive};
use platform_tests::poll::until;
use platform_tests::server::Server;
use platform_tests::{npm, settings};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

/// What the bundlers made, and how it fails.
#[derive(Deserialize)]
struct Made {
    builds: Vec<Build>,
}

#[derive(Deserialize)]
struct Build {
    name: String,
    files: BTreeMap<String, String>,
    failures: Vec<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    cause: u32,
    message: String,
    stack: String,
}

/// Returns the builds of a game at this origin.
async fn builds(origin: &str) -> Vec<Build> {
    let folder = npm::packages("bundlers").await;
    let made = Command::new(settings::program("NODE", &["node"]))
        .args(["errors.mjs", origin])
        .current_dir(folder)
        .stderr(Stdio::inherit())
        .output()
        .await
        .unwrap();
    assert!(made.status.success(), "{}", made.status);
    let made: Made = serde_json::from_slice(&made.stdout).unwrap();
    made.builds
}

/// Deploys a build, and logs how it fails.
async fn fail(owner: &Deployer, number: usize, build: &Build) {
    let files = build.files.iter();
    let mut files: Vec<(String, Vec<u8>)> = files
        .map(|(path, content)| (path.clone(), content.clone().into_bytes()))
        .collect();
    files.push(("index.html".to_owned(), b"<!doctype html>".to_vec()));
    let deployed = owner.deploy(archive(&files)).send().await.unwrap();
    assert_eq!(deployed.status(), 201, "{}", build.name);
    let failures = build.failures.iter();
    let records: Vec<Value> = failures
        .map(|failure| {
            json!({
                "time": 0, "level": "error", "source": "error", "message": failure.message,
                "stack": failure.stack, "metadata": {"cause": failure.cause, "build": number}
            })
        })
        .collect();
    let body = json!({ "page": "AAAAAAAAAAAAAAAAAAAAAA", "records": records });
    let sent = owner.log(body.to_string()).send().await.unwrap();
    assert_eq!(sent.status(), 204, "{}", build.name);
}

async fn ask(owner: &Deployer, path: &str) -> Value {
    let path = format!("/api/projects/{}/error-groups{path}", Deployer::SLUG);
    // A player may make so many calls a second.
    until("the platform answers", async || {
        let answer = owner.call(Method::GET, &path).send().await.unwrap();
        let is_answer = answer.status() == 200;
        let content = answer.bytes().await.unwrap();
        is_answer.then(|| serde_json::from_slice(&content).unwrap())
    })
    .await
}

/// Returns the groups, once all errors are in one.
async fn groups(owner: &Deployer, errors: u64) -> Vec<Value> {
    until("all errors are grouped", async || {
        let list = ask(owner, "?limit=100").await;
        let groups = list["groups"].as_array().unwrap();
        let count: u64 = groups
            .iter()
            .filter_map(|group| group["count"].as_u64())
            .sum();
        (count == errors).then(|| groups.clone())
    })
    .await
}

#[tokio::test]
async fn errors_of_real_builds_are_grouped_as_a_person_would() {
    let data = TempDir::with_prefix("platform-tests-").unwrap();
    let server = Server::start(data.path()).await;
    let owner = Deployer::new(&server).await;
    let builds = builds(&format!("http://{}.{}", Deployer::SLUG, owner.host)).await;
    let errors: usize = builds.iter().map(|build| build.failures.len()).sum();
    assert!(errors >= 200, "{errors}");
    for (number, build) in builds.iter().enumerate() {
        fail(&owner, number, build).await;
        // While it is the current one.
        groups(&owner, (number as u64 + 1) * build.failures.len() as u64).await;
    }
    let mut causes = BTreeMap::new();
    let groups = groups(&owner, errors as u64).await;
    for group in &groups {
        let id = group["id"].as_str().unwrap();
        for record in ask(&owner, &format!("/{id}")).await["records"]
            .as_array()
            .unwrap()
        {
            let said = &record["metadata"];
            let key = (said["cause"].as_u64(), said["build"].as_u64());
            causes.insert(key, id.to_owned());
        }
    }
    let causes: Vec<_> = causes.into_iter().collect();
    let (mut right, mut pairs, mut wrong) = (0, 0, Vec::new());
    for (at, (one, group)) in causes.iter().enumerate() {
        for (other, other_group) in &causes[at + 1..] {
            pairs += 1;
            if (one.0 == other.0) == (group == other_group) {
                right += 1;
            } else {
                wrong.push((one, other));
            }
        }
    }
    let told: Vec<_> = groups
        .iter()
        .map(|group| format!("{} {} {}", group["count"], group["message"], group["place"]))
        .collect();
    let told = told.join("\n");
    assert!(pairs > 10_000, "{pairs} of {}: {told}", causes.len());
    assert!(
        right * 100 >= pairs * 95,
        "{right} of {pairs}: {wrong:?}\n{told}"
    );
    // No cause has a handful of groups, either.
    assert!(groups.len() <= 25, "{}\n{told}", groups.len());
}
