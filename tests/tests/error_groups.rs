//! Errors of builds that real bundlers made are grouped as a person would group them.

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::collections::BTreeMap;
use std::process::Stdio;

use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_server::clock::{Clock as _, Millis};
use platform_server::domain::error_group::{ErrorGroup, ErrorGroupQuery};
use platform_server::domain::log::{LogEntry, LogId, NewLogRecords};
use platform_server::domain::page::PageId;
use platform_tests::deployer::{Deployer, archive};
use platform_tests::owner::Owner;
use platform_tests::platform::Platform;
use platform_tests::poll::until;
use platform_tests::server::Server;
use platform_tests::{npm, settings};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use uuid::Uuid;

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

/// Returns the builds of a game at this origin, which fails in twenty ways in each area. Each version
/// is built by each of the bundlers.
async fn builds(origin: &str, areas: usize, versions: usize) -> Vec<Build> {
    let folder = npm::packages("bundlers").await;
    let made = Command::new(settings::program("NODE", &["node"]))
        .args(["errors.mjs", origin])
        .args([areas, versions].map(|number| number.to_string()))
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
    let origin = format!("http://{}.{}", Deployer::SLUG, owner.host);
    let builds = builds(&origin, 1, 2).await;
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
    let (right, pairs, wrong) = compare(&causes);
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

/// A game in production on a platform in this process, whose errors are put into the store as if
/// pages had sent them.
struct Game {
    platform: Platform,
}

/// The areas of the large game: with twenty causes each, there are 200.
const AREAS: usize = 10;
/// The usual number of records; `TESTS_ERROR_RECORDS` has another one. From this number times ten on,
/// there are fifty builds.
const RECORDS: usize = 4_000;
/// Records of one request in the store.
const AT_ONCE: usize = 1_000;

impl Game {
    async fn start() -> Self {
        let platform = Platform::start_with(&[], |config| config.log_quota_mib = 0).await;
        let owner = Owner::sign_in(&platform.site, "Ada").await;
        owner.create(Deployer::SLUG).await;
        Self { platform }
    }

    async fn deploy(&self, build: &Build) -> Uuid {
        let files = build.files.iter();
        let mut files: Vec<(&str, &str)> = files
            .map(|(path, content)| (path.as_str(), content.as_str()))
            .collect();
        files.push(("index.html", "<!doctype html>"));
        // A token lives for minutes, the long form takes longer.
        let owner = Owner::sign_in(&self.platform.site, "Ada").await;
        let deployed = owner.deploy(Deployer::SLUG, "prod", &files).await;
        deployed["id"].as_str().unwrap().parse().unwrap()
    }

    /// Adds errors that were received at the same time, each of the player with this number.
    async fn log(&self, deployment: Uuid, player: u128, at: Millis, failures: &[&Failure]) {
        let entry = |failure: &&Failure| LogEntry {
            time: at,
            level: LogLevel::Error,
            source: LogSource::Error,
            message: failure.message.clone(),
            stack: Some(failure.stack.clone()),
            url: None,
            line: None,
            column: None,
            metadata: None,
            count: 1,
        };
        let records = NewLogRecords {
            slug: Deployer::SLUG.to_owned(),
            environment: Environment::Prod,
            deployment: Some(deployment),
            player: Some(Uuid::from_u128(player)),
            page: PageId([7; 16]),
            received_at: at,
            entries: failures.iter().map(entry).collect(),
        };
        self.platform
            .store()
            .add_log_records(records)
            .await
            .unwrap();
    }

    /// Waits until all errors are in a group.
    async fn grouped(&self) {
        until("all errors are grouped", async || {
            let waiting = self.platform.store().list_ungrouped(1).await.unwrap();
            waiting.is_empty().then_some(())
        })
        .await;
    }

    /// Returns all groups.
    async fn groups(&self) -> Vec<ErrorGroup> {
        let (mut groups, mut before) = (Vec::new(), None);
        loop {
            let query = ErrorGroupQuery {
                slug: Deployer::SLUG.to_owned(),
                environment: Environment::Prod,
                state: None,
                text: None,
                before,
                limit: 100,
                hours_from: 0,
            };
            let page = self
                .platform
                .store()
                .list_error_groups(query)
                .await
                .unwrap();
            groups.extend(page.groups.into_iter().map(|counted| counted.group));
            before = page.next;
            if before.is_none() {
                return groups;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_200_causes_are_grouped_however_many_there_are() {
    let wanted = settings::variable("TESTS_ERROR_RECORDS");
    let wanted = wanted.map_or(RECORDS, |wanted| wanted.parse().unwrap());
    let versions = if wanted >= RECORDS * 10 { 10 } else { 2 };
    let game = Game::start().await;
    let builds = builds(&game.platform.site.url(Deployer::SLUG, ""), AREAS, versions).await;
    let causes = builds[0].failures.len();
    assert_eq!(causes, AREAS * 20);
    let passes = wanted.div_ceil(builds.len() * causes);
    let mut known = Vec::new();
    for (number, build) in builds.iter().enumerate() {
        let deployment = game.deploy(build).await;
        // Each error of the first pass is known by its time.
        let start = game.platform.clock.now() - Millis::try_from(causes).unwrap();
        for (failure, at) in build.failures.iter().zip(start..) {
            game.log(deployment, failure.cause.into(), at, &[failure])
                .await;
        }
        game.grouped().await;
        for group in game.groups().await {
            for record in &group.detail.records {
                let cause = usize::try_from(LogId(*record).received_at() - start);
                if let Some(cause) = cause.ok().filter(|cause| *cause < causes) {
                    known.push(((cause, number), group.id));
                }
            }
        }
        let again: Vec<&Failure> = (1..passes).flat_map(|_| &build.failures).collect();
        for (some, player) in again.chunks(AT_ONCE).zip(1_000..) {
            game.log(deployment, player, game.platform.clock.now(), some)
                .await;
            game.grouped().await;
        }
    }
    let groups = game.groups().await;
    let counted: u64 = groups.iter().map(|group| group.count).sum();
    assert_eq!(counted, (builds.len() * causes * passes) as u64);
    // Of a group with very many causes, not all records are known.
    let all = builds.len() * causes;
    assert!(known.len() * 100 >= all * 95, "{} of {all}", known.len());
    let (right, pairs, wrong) = compare(&known);
    // Most pairs are of two causes, so those of one cause are looked at alone, too.
    let (mut one_right, mut one_pairs) = (0, 0);
    for cause in 0..causes {
        let of_cause = known.iter().filter(|error| error.0.0 == cause);
        let of_cause: Vec<_> = of_cause.copied().collect();
        let (right, pairs, _) = compare(&of_cause);
        (one_right, one_pairs) = (one_right + right, one_pairs + pairs);
    }
    println!(
        "{counted} records of {causes} causes in {} builds: {} groups, {right} of {pairs} pairs, \
         {one_right} of {one_pairs} of one cause",
        builds.len(),
        groups.len()
    );
    assert!(right * 100 >= pairs * 95, "{right} of {pairs}: {wrong:?}");
    assert!(
        one_right * 100 >= one_pairs * 95,
        "{one_right} of {one_pairs}"
    );
}

/// Compares each two errors, each with its cause and build, and its group. Returns how many pairs are
/// grouped as a person would, the number of pairs, and some of the others.
fn compare<C: PartialEq, B, G: PartialEq>(
    errors: &[((C, B), G)],
) -> (usize, usize, Vec<[&(C, B); 2]>) {
    let (mut right, mut pairs, mut wrong) = (0, 0, Vec::new());
    for (at, (one, group)) in errors.iter().enumerate() {
        for (other, other_group) in &errors[at + 1..] {
            pairs += 1;
            if (one.0 == other.0) == (group == other_group) {
                right += 1;
            } else if wrong.len() < 100 {
                wrong.push([one, other]);
            }
        }
    }
    (right, pairs, wrong)
}
