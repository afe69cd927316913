//! The project API behaves as its description says: schemathesis generates requests from the
//! description, valid and invalid ones, and checks the responses.

use std::path::Path;
use std::process::{Command, Stdio};

use platform_tests::deployer::{Deployer, archive};
use platform_tests::python::environment;
use platform_tests::server::Server;
use platform_tests::settings;
use platform_tests::visitor::claims;
use tempfile::TempDir;

/// Requests for each call and each way to generate them; more in a long run.
const EXAMPLES: [&str; 2] = ["10", "100"];
/// The time limit for all of them, unless `TESTS_API_SECONDS` has another one.
const SECONDS: &str = "40";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_of_the_project_api_is_one_that_is_described() {
    let data = TempDir::with_prefix("platform-tests-").unwrap();
    let server = Server::start(data.path()).await;
    let owner = Deployer::new(&server).await;
    let page = vec![("index.html".to_owned(), b"<body>".to_vec())];
    let deployed = owner.deploy(archive(&page)).send().await.unwrap();
    assert_eq!(deployed.status(), 201);
    let sub = claims(&owner.token).sub;
    let (granted, _) = server.operate(&["admin", "grant", &sub]);
    assert!(granted, "administration is described too");

    let seconds = settings::variable("TESTS_API_SECONDS");
    let examples = EXAMPLES[usize::from(seconds.is_some())];
    let seconds = seconds.unwrap_or_else(|| SECONDS.to_owned());
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let origin = format!("http://{}", server.address);
    let report = tokio::task::spawn_blocking(move || {
        let mut schemathesis =
            Command::new(environment(&tests, "schemathesis").join("schemathesis"));
        schemathesis
            .arg("--config-file")
            .arg(tests.join("schemathesis.toml"))
            .args([
                "run",
                &format!("{origin}/api/openapi.json"),
                "--url",
                &origin,
            ])
            .args([
                "--max-examples",
                examples,
                "--seed",
                "1",
                "--max-time",
                &seconds,
            ])
            // The limit of calls is tested elsewhere.
            .args(["--rate-limit", "20/s"])
            // A stream does not end.
            .args(["--exclude-path-regex", "/stream$"])
            .env("PLATFORM_HOOKS", tests.join("hooks.py"))
            .env("PLATFORM_HOST", &owner.host)
            .env("PLATFORM_TOKEN", &owner.token)
            .env("NO_COLOR", "1")
            .current_dir(data.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    let said = String::from_utf8_lossy(&report.stdout);
    let errors = String::from_utf8_lossy(&report.stderr);
    println!("{said}");
    assert!(report.status.success(), "{said}{errors}");
    server.stop().await;
}
