//! The command line that a platform hands out: its page, its files, and what a start refuses.

use std::path::Path;
use std::sync::Arc;

use platform_server::config::Config;
use platform_server::{entropy::SystemEntropy, start};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::pages::assert_is_page;
use crate::support::{Answer, TestApp, send};

/// The name and the content of the program for Linux.
const LINUX: (&str, &str) = ("platform-linux-x86_64.tar.gz", "0123456789");

fn sum(text: &str) -> String {
    base16ct::lower::encode_string(&Sha256::digest(text))
}

/// Writes a folder as a release has it, and returns its list.
fn release_in(folder: &Path) -> Value {
    let files = [
        LINUX,
        ("platform-windows-x86_64.zip", "windows"),
        ("platform.tgz", "npm"),
        ("vite-plugin-platform.tgz", "plugin"),
    ];
    let listed = files.map(|(name, content)| {
        std::fs::write(folder.join(name), content).unwrap();
        let mut file = json!({ "name": name, "bytes": content.len(), "sha256": sum(content) });
        let os = ["linux", "windows"]
            .into_iter()
            .find(|os| name.contains(os));
        if let Some(os) = os {
            file["os"] = os.into();
            file["cpu"] = "x86_64".into();
        }
        file
    });
    let list = json!({ "version": "7.8.9", "files": listed });
    write(folder, &list);
    list
}

fn write(folder: &Path, list: &Value) {
    std::fs::write(folder.join("version.json"), list.to_string()).unwrap();
}

/// A server with a release, and the release's folder.
async fn app_with_release() -> (TestApp, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    release_in(folder.path());
    let cli = folder.path().to_owned();
    let app = TestApp::with(|config| config.cli_folder = Some(cli)).await;
    (app, folder)
}

async fn get(app: &TestApp, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = app.get("", path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(request).await
}

/// Returns a page without the elements where a line may break.
fn unbroken(page: &Answer) -> String {
    page.text().replace("<wbr>", "")
}

#[tokio::test]
async fn the_page_says_how_to_install_each_file() {
    let (app, _folder) = app_with_release().await;
    let page = get(&app, "/cli", &[]).await;
    assert_eq!(page.status, 200);
    assert_is_page(&page, "/cli");
    let html = unbroken(&page);
    let origin = app.running.origin.as_str();
    for part in [
        format!("curl -fsSL {origin}/cli/install.sh | sh"),
        format!("platform login --origin {origin}"),
        // Node.js does not find a platform under `localhost`.
        format!("curl -fsSLO {origin}/cli/platform.tgz"),
        format!("npm install -g ./platform.tgz\nplatform login --origin {origin}</code>"),
        "npm install -D ./vite-plugin-platform.tgz".to_owned(),
        "Version 7.8.9".to_owned(),
        "Linux, x86-64".to_owned(),
        "Windows, x86-64".to_owned(),
        "Not among them: macOS.".to_owned(),
        sum(LINUX.1),
        sum("npm"),
    ] {
        assert!(html.contains(&part), "{part}\n{html}");
    }
    assert!(!html.contains("PLATFORM_CLI_FOLDER"), "{html}");
}

#[tokio::test]
async fn a_public_platform_is_installed_from_by_npm_itself() {
    let folder = tempfile::tempdir().unwrap();
    release_in(folder.path());
    let cli = folder.path().to_owned();
    let app = TestApp::with(|config| {
        config.cli_folder = Some(cli);
        config.origin = Some("https://games.example".parse().unwrap());
    });
    let app = app.await;
    let page = send(app.request_host(reqwest::Method::GET, "games.example", "/cli")).await;
    let html = unbroken(&page);
    for command in [
        "npm install -g https://games.example/cli/platform.tgz",
        "npm install -D https://games.example/cli/vite-plugin-platform.tgz",
    ] {
        assert!(html.contains(command), "{html}");
    }
}

#[tokio::test]
async fn a_file_is_served_as_other_files_are() {
    let (app, _folder) = app_with_release().await;
    let path = format!("/cli/{}", LINUX.0);
    let whole = get(&app, &path, &[]).await;
    assert_eq!((whole.status.as_u16(), whole.text()), (200, LINUX.1));
    let etag = format!("\"{}\"", sum(LINUX.1));
    for (name, value) in [
        ("content-type", "application/gzip"),
        ("content-length", "10"),
        ("accept-ranges", "bytes"),
        ("cache-control", "no-cache"),
        ("etag", &etag),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(whole.header(name), Some(value), "{name}");
    }
    let zip = get(&app, "/cli/platform-windows-x86_64.zip", &[]).await;
    assert_eq!(zip.header("content-type"), Some("application/zip"));

    let head = app.request(reqwest::Method::HEAD, "", &path);
    let head = send(head.header("range", "bytes=0-1")).await;
    assert_eq!((head.status.as_u16(), head.text()), (200, ""));
    assert_eq!(head.header("content-length"), Some("10"));

    let same = get(&app, &path, &[("if-none-match", &etag)]).await;
    assert_eq!((same.status.as_u16(), same.text()), (304, ""));
    let part = get(&app, &path, &[("range", "bytes=2-4")]).await;
    assert_eq!((part.status.as_u16(), part.text()), (206, "234"));
    assert_eq!(part.header("content-range"), Some("bytes 2-4/10"));
    let condition = [("range", "bytes=2-4"), ("if-range", "\"another\"")];
    assert_eq!(get(&app, &path, &condition).await.text(), LINUX.1);
    let outside = get(&app, &path, &[("range", "bytes=10-")]).await;
    assert_eq!((outside.status.as_u16(), outside.text()), (416, ""));
    assert_eq!(outside.header("content-range"), Some("bytes */10"));
}

#[tokio::test]
async fn the_list_the_sums_and_the_installer_name_the_files() {
    let (app, folder) = app_with_release().await;
    let list = get(&app, "/cli/version.json", &[]).await;
    assert_eq!(list.header("content-type"), Some("application/json"));
    let list: Value = serde_json::from_str(list.text()).unwrap();
    assert_eq!(list, release_in(folder.path()));

    let sums = get(&app, "/cli/SHA256SUMS", &[]).await;
    let line = format!("{}  {}\n", sum(LINUX.1), LINUX.0);
    assert!(sums.text().starts_with(&line), "{}", sums.text());

    let installer = get(&app, "/cli/install.sh", &[]).await;
    assert_eq!(
        installer.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let script = installer.text();
    for part in [
        format!("origin='{}'", app.running.origin),
        format!("archive='{}'", LINUX.0),
        format!("expected='{}'", sum(LINUX.1)),
    ] {
        assert!(script.contains(&part), "{part}\n{script}");
    }
    assert!(!script.contains("windows"), "{script}");
}

#[tokio::test]
async fn nothing_else_is_served() {
    let (app, folder) = app_with_release().await;
    std::fs::write(folder.path().join("unlisted.tar.gz"), "secret").unwrap();
    for path in [
        "/cli/unlisted.tar.gz",
        "/cli/platform-macos-aarch64.tar.gz",
        "/cli/..%2fversion.json",
        "/cli/%2e%2e%2fplatform.db",
        "/cli/..%2f..%2fetc%2fpasswd",
        "/cli/",
        "/cli/%ff",
        "/cli/a/b",
    ] {
        let answer = get(&app, path, &[]).await;
        assert!(answer.status.is_client_error(), "{path}");
        assert!(!answer.text().contains("secret"), "{path}");
    }
    let unknown = get(&app, "/cli/platform-macos-aarch64.tar.gz", &[]).await;
    assert_eq!(unknown.problem(), "not-found");
    assert!(unknown.text().contains("/cli lists those that there are"));
    for label in ["auth", "demo"] {
        assert_eq!(send(app.get(label, "/cli")).await.status, 404, "{label}");
    }
}

#[tokio::test]
async fn what_was_checked_is_served_whatever_takes_its_place() {
    let (app, folder) = app_with_release().await;
    let new = folder.path().join("new");
    std::fs::write(&new, "replaced").unwrap();
    std::fs::rename(&new, folder.path().join(LINUX.0)).unwrap();
    let answer = get(&app, &format!("/cli/{}", LINUX.0), &[]).await;
    assert_eq!(answer.text(), LINUX.1);
}

#[tokio::test]
async fn a_server_without_programs_says_so_everywhere() {
    let app = TestApp::start().await;
    let page = get(&app, "/cli", &[]).await;
    assert_eq!(page.status, 200);
    assert_is_page(&page, "/cli");
    for part in ["PLATFORM_CLI_FOLDER", "cargo install --locked --path cli"] {
        assert!(page.text().contains(part), "{part}");
    }
    assert!(!page.text().contains("install.sh"), "{}", page.text());
    let installer = get(&app, "/cli/install.sh", &[]).await;
    assert_eq!(installer.status, 200);
    let script = installer.text();
    assert!(script.contains("has no programs to install"), "{script}");
    assert!(script.ends_with("exit 1\n"), "{script}");
    let file = get(&app, &format!("/cli/{}", LINUX.0), &[]).await;
    assert_eq!(file.problem(), "not-found");
    assert!(file.text().contains("has no programs to hand out"));
    let call = get(&app, "/api/projects", &[]).await;
    assert_eq!(call.header("x-platform-cli"), None);
}

#[tokio::test]
async fn every_answer_of_the_project_api_names_the_version() {
    let (app, _folder) = app_with_release().await;
    for (path, status) in [
        ("/api/openapi.json", 200),
        ("/api/projects", 401),
        ("/api/admin/keys", 401),
    ] {
        let answer = get(&app, path, &[]).await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.header("x-platform-cli"), Some("7.8.9"), "{path}");
    }
    let upload = app.request(
        reqwest::Method::PUT,
        "",
        "/api/projects/a-game/environments/dev/deployment",
    );
    let upload = send(upload.body("no archive")).await;
    assert!(upload.status.is_client_error());
    assert_eq!(upload.header("x-platform-cli"), Some("7.8.9"));
    let page = get(&app, "/cli", &[]).await;
    assert_eq!(page.header("x-platform-cli"), None);
}

#[tokio::test]
async fn a_folder_that_is_not_as_it_was_released_stops_the_start() {
    type Change = fn(&Path, &mut Value);
    let cases: [(Change, &str); 6] = [
        (
            |folder, _| std::fs::write(folder.join(LINUX.0), "012345678X").unwrap(),
            "platform-linux-x86_64.tar.gz has another SHA-256",
        ),
        (
            |_, list| list["files"][0]["bytes"] = 11.into(),
            "platform-linux-x86_64.tar.gz has another SHA-256",
        ),
        (
            |folder, _| std::fs::remove_file(folder.join("platform.tgz")).unwrap(),
            "platform.tgz cannot be read",
        ),
        (
            |_, list| list["files"][0]["name"] = "../platform.db".into(),
            "is not a list of a release",
        ),
        (
            |_, list| list["version"] = "1'; rm -rf ~ #".into(),
            "is not a list of a release",
        ),
        (|_, list| *list = json!([]), "is not a list of a release"),
    ];
    for (change, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let mut list = release_in(folder.path());
        change(folder.path(), &mut list);
        write(folder.path(), &list);
        let said = refusal(folder.path()).await;
        assert!(said.contains(expected), "{said}");
        assert!(said.starts_with("cli_folder: "), "{said}");
    }
    let nowhere = tempfile::tempdir().unwrap().path().join("nowhere");
    let said = refusal(&nowhere).await;
    assert!(said.contains("version.json cannot be read"), "{said}");
}

/// Why a server with this folder does not start.
async fn refusal(cli: &Path) -> String {
    let data = tempfile::tempdir().unwrap();
    let config = Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        data: data.path().to_owned(),
        cli_folder: Some(cli.to_owned()),
        ..Config::default()
    };
    let clock = platform_server::clock::ManualClock::new(crate::support::NOW);
    let started = start(config, Arc::new(clock), Arc::new(SystemEntropy)).await;
    started.unwrap_err().to_string()
}
