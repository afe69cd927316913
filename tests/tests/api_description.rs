//! The project API behaves as its description says: schemathesis generates requests from the
//! description, valid and invalid ones, and checks the responses.

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::path::Path;
use std::process::{Command, Stdio};

use platform_tests::deployer::{Deployer, archive};
use platform_tests::owner::Owner;
use platform_tests::person::Person;
use platform_tests::platform::Site;
use platform_tests::poll;
use platform_tests::python::environment;
use platform_tests::server::Server;
use platform_tests::settings;
use platform_tests::visitor::claims;
use reqwest::Method;
use tempfile::TempDir;

/// Requests for each call and each way to generate them; more in a long run.
const EXAMPLES: [&str; 2] = ["10", "100"];
/// The time limit for all of them, unless `TESTS_API_SECONDS` has another one.
const SECONDS: &str = "40";
/// The time limit for each caller without rights.
const STRANGERS_SECONDS: &str = "15";

/// Who asks, and for how long.
struct Caller {
    host: String,
    token: String,
    seconds: String,
    examples: &'static str,
}

/// Asks the project API of `server` as a caller, and fails if an answer is not as described.
async fn examine(server: &Server, folder: &Path, caller: Caller) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let origin = format!("http://{}", server.address);
    let mut schemathesis = Command::new(environment(&tests, "schemathesis").join("schemathesis"));
    schemathesis
        .arg("--config-file")
        .arg(tests.join("schemathesis.toml"))
        .args(["run", &format!("{origin}/api/openapi.json")])
        .args(["--url", &origin, "--seed", "1"])
        .args(["--max-examples", caller.examples])
        .args(["--max-time", &caller.seconds])
        // The limit of calls is tested elsewhere.
        .args(["--rate-limit", "20/s"])
        // A stream does not end.
        .args(["--exclude-path-regex", "/stream$"])
        .env("PLATFORM_HOOKS", tests.join("hooks.py"))
        .env("PLATFORM_HOST", &caller.host)
        .env("PLATFORM_TOKEN", &caller.token)
        .env("NO_COLOR", "1")
        .current_dir(folder)
        .stdin(Stdio::null());
    let report = tokio::task::spawn_blocking(move || schemathesis.output());
    let report = report.await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&report.stdout);
    let errors = String::from_utf8_lossy(&report.stderr);
    assert!(report.status.success(), "{said}{errors}");
}

/// A server with a project that was deployed, and its owner.
async fn deployed() -> (TempDir, Server, Deployer) {
    let data = TempDir::with_prefix("platform-tests-").unwrap();
    let server = Server::start(data.path()).await;
    let owner = Deployer::new(&server).await;
    let page = vec![("index.html".to_owned(), b"<body>".to_vec())];
    let deployed = owner.deploy(archive(&page)).send().await.unwrap();
    assert_eq!(deployed.status(), 201);
    (data, server, owner)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_of_the_project_api_is_one_that_is_described() {
    let (data, server, owner) = deployed().await;
    let sub = claims(&owner.token).sub;
    let (granted, _) = server.operate(&["admin", "grant", &sub]);
    assert!(granted, "administration is described too");

    let seconds = settings::variable("TESTS_API_SECONDS");
    let caller = Caller {
        host: owner.host.clone(),
        token: owner.token.clone(),
        examples: EXAMPLES[usize::from(seconds.is_some())],
        seconds: seconds.unwrap_or_else(|| SECONDS.to_owned()),
    };
    examine(&server, data.path(), caller).await;
    server.stop().await;
}

/// While somebody asks, the sessions end, or the account is suspended: all answers are described, and from then
/// on nothing is changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_loses_the_right_to_ask_meanwhile_is_answered_as_described() {
    for act in ["end-sessions", "suspend"] {
        let (data, server, owner) = deployed().await;
        let sub = claims(&owner.token).sub;
        let caller = Caller {
            host: owner.host.clone(),
            token: owner.token.clone(),
            seconds: STRANGERS_SECONDS.to_owned(),
            examples: EXAMPLES[0],
        };
        let first = owner.call(Method::GET, "/api/projects").send();
        let first = first.await.unwrap().text().await.unwrap();
        let ending = async {
            // It has done something: it may, at first.
            poll::until("a project is made or changed", async || {
                let now = owner.call(Method::GET, "/api/projects").send().await;
                (now.ok()?.text().await.ok()? != first).then_some(())
            })
            .await;
            let (ended, said) = server.operate(&["player", act, &sub]);
            assert!(ended, "{said}");
        };
        tokio::join!(examine(&server, data.path(), caller), ending);
        let refused = owner.call(Method::GET, "/api/projects").send().await;
        let status = refused.unwrap().status();
        assert!(matches!(status.as_u16(), 401 | 403), "{act}: {status}");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_has_no_part_in_a_project_is_answered_as_described_and_changes_nothing() {
    let (data, server, owner) = deployed().await;
    let project = async || {
        let answer = owner
            .call(Method::GET, "/api/projects/my-game")
            .send()
            .await;
        answer.unwrap().text().await.unwrap()
    };
    let before = project().await;

    let site = Site::from(&server);
    let stranger = Owner::sign_in(&site, "stranger").await;
    let guest = Owner::of(&mut Person::new(&site), &site).await;
    for token in [stranger.token, guest.token] {
        let caller = Caller {
            host: owner.host.clone(),
            token,
            examples: EXAMPLES[0],
            seconds: STRANGERS_SECONDS.to_owned(),
        };
        examine(&server, data.path(), caller).await;
        assert_eq!(project().await, before);
    }
    server.stop().await;
}
