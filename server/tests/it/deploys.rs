//! Deploys under attack: malicious archives, uploads with false headers, uploads that stall or
//! disconnect, and many at once. The current game stays available.

mod atomicity;
mod contents;
mod deployment_details;
mod hostile;
mod room;

use std::path::PathBuf;
use std::time::Duration;

use platform_checks::limits::MAX_ARCHIVE_BYTES;
use reqwest::Method;
use serde_json::Value;
use tar::EntryType;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use self::hostile::{PAGE, bad_kinds, bad_names, bad_wholes, pax, said, tar, with, with_files};
use crate::caller::{Caller, archive, gzip};
use crate::support::{TestApp, send};

/// Much longer than anything here takes; reaching it is a failure.
const NEVER: Duration = Duration::from_secs(20);
const GOOD: &str = "the game that is there";
const DEPLOYMENT: &str = "/api/projects/game/environments/prod/deployment";

struct World<'a> {
    app: &'a TestApp,
    owner: Caller<'a>,
}

impl<'a> World<'a> {
    /// Creates a deployed game.
    async fn new(app: &'a TestApp) -> Self {
        let owner = Caller::with_project(app).await;
        let world = Self { app, owner };
        world.deploy(&[("index.html", GOOD.as_bytes())]).await;
        world
    }

    async fn deploy(&self, files: &[(&str, &[u8])]) -> Value {
        let answer = self.owner.deploy("prod", archive(files)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()
    }

    async fn page(&self) -> String {
        send(self.app.get("game", "/")).await.text().to_owned()
    }

    fn left_over(&self) -> Vec<PathBuf> {
        let uploads = std::fs::read_dir(self.app.directory.path().join("uploads")).unwrap();
        uploads.map(|entry| entry.unwrap().path()).collect()
    }

    /// Waits until no files of any upload are left.
    async fn nothing_is_left(&self) {
        let empty = async {
            while !self.left_over().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        let left = timeout(NEVER, empty).await;
        assert!(left.is_ok(), "{:?}", self.left_over());
    }

    /// Sends the head of a deploy with `headers`, on a new connection.
    async fn begin(&self, token: &str, headers: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.app.running.address).await.unwrap();
        let head = format!(
            "PUT {DEPLOYMENT} HTTP/1.1\r\nHost: platform.localhost:{}\r\n\
             Authorization: Bearer {token}\r\nContent-Type: application/gzip\r\n{headers}\r\n",
            self.app.port()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }
}

/// Reads until `end` was read, or the other side has closed the connection.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut read = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&read).contains(end) {
            match stream.read_buf(&mut read).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    };
    assert!(timeout(NEVER, reading).await.is_ok(), "no answer");
    String::from_utf8_lossy(&read).into_owned()
}

#[tokio::test]
async fn a_hostile_archive_is_refused_and_the_game_plays_on() {
    let app = TestApp::start().await;
    let world = World::new(&app).await;
    for (what, bad, sentence) in [bad_names(), bad_kinds(), bad_wholes()].concat() {
        app.clock.advance(1_000);
        let answer = world.owner.deploy("prod", bad).await;
        assert_eq!(answer.problem(), "deployment-invalid", "{what}");
        assert_eq!(answer.status, 422, "{what}");
        let problem: Value = answer.json();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(sentence), "{what}: {detail}");
        assert_eq!(world.page().await, GOOD, "{what}");
        assert_eq!(world.left_over(), Vec::<PathBuf>::new(), "{what}");
    }
    // Nothing of the refused archives is stored.
    let state = &app.running.state;
    let names = state.games.files.list().await.unwrap();
    let unreferenced = state
        .platform
        .store
        .list_unreferenced_files(names)
        .await
        .unwrap();
    assert_eq!(unreferenced, Vec::<String>::new());
}

#[tokio::test]
async fn odd_archives_that_are_sound_are_deployed() {
    let app = TestApp::start().await;
    let world = World::new(&app).await;
    let plain = tar(&[PAGE]);
    let (first, second) = plain.split_at(600);
    let long = format!("{}/long.txt", "x".repeat(200));
    let pax_name = [pax("path", "by-pax.txt"), pax("mtime", "1.5")].concat();
    for (what, archive, path, content) in [
        (
            "several members",
            [gzip(first), gzip(second)].concat(),
            "index.html",
            "page",
        ),
        (
            "long name",
            archive(&[("index.html", b"p"), (&long, b"l")]),
            &long,
            "l",
        ),
        (
            "pax name",
            said(EntryType::XHeader, &pax_name),
            "by-pax.txt",
            "next",
        ),
        (
            "names that differ in case",
            archive(&[("index.html", b"1"), ("INDEX.html", b"2")]),
            "INDEX.html",
            "2",
        ),
        (
            "folders",
            with(EntryType::Directory, b"./a b/", b""),
            "index.html",
            "page",
        ),
    ] {
        let answer = world.owner.deploy("prod", archive).await;
        assert_eq!(answer.status, 201, "{what}: {answer:?}");
        let shown = send(app.get("game", &format!("/{path}"))).await;
        assert_eq!(shown.text(), content, "{what}");
    }
}

#[tokio::test]
async fn what_its_headers_say_is_no_archive_is_not_taken() {
    let app = TestApp::start().await;
    let world = World::new(&app).await;
    let whole = archive(&[("index.html", b"bad")]);
    let forms: [&[(&str, &str)]; 5] = [
        &[],
        &[("content-type", "application/zip")],
        &[("content-type", "application/json")],
        &[
            ("content-type", "application/gzip"),
            ("content-type", "application/gzip"),
        ],
        &[
            ("content-type", "application/gzip"),
            ("content-encoding", "br"),
        ],
    ];
    for headers in forms {
        let mut request = world.owner.ask(Method::PUT, DEPLOYMENT);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = send(request.body(whole.clone())).await;
        assert_eq!(answer.problem(), "unsupported-media-type", "{headers:?}");
        assert_eq!(answer.status, 415);
    }
    let large = format!("Content-Length: {}\r\n", MAX_ARCHIVE_BYTES + 1);
    let mut stream = world.begin(&world.owner.token, &large).await;
    let answer = read_until(&mut stream, "}").await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("payload-too-large"), "{answer}");
    assert_eq!(world.page().await, GOOD);
    assert!(world.left_over().is_empty());
}

#[tokio::test]
async fn who_may_not_deploy_is_told_before_the_archive_is_read() {
    let app = TestApp::start().await;
    let world = World::new(&app).await;
    let other = Caller::account(&app).await;
    for (token, status, slug) in [
        ("none", "401", "not-signed-in"),
        (&other.token, "403", "not-allowed"),
    ] {
        // No byte of the body is sent.
        let mut stream = world.begin(token, "Content-Length: 1000000\r\n").await;
        let answer = read_until(&mut stream, "}").await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        assert!(answer.contains(slug), "{answer}");
        // A client that expects `100 Continue` does not get it.
        let expecting = "Content-Length: 1000000\r\nExpect: 100-continue\r\n";
        let mut stream = world.begin(token, expecting).await;
        let answer = read_until(&mut stream, "}").await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        // A client that sends a large body all the same still gets the response.
        for _ in 0..10 {
            let upload = app
                .request(Method::PUT, "", DEPLOYMENT)
                .bearer_auth(token)
                .header("content-type", "application/gzip")
                .body(vec![0; 8 * 1024 * 1024]);
            assert_eq!(send(upload).await.problem(), slug);
        }
    }
    let whole = archive(&[("index.html", b"new")]);
    let expecting = format!(
        "Content-Length: {}\r\nExpect: 100-continue\r\n",
        whole.len()
    );
    let mut stream = world.begin(&world.owner.token, &expecting).await;
    let answer = read_until(&mut stream, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 100 "), "{answer}");
    stream.write_all(&whole).await.unwrap();
    let answer = read_until(&mut stream, "}").await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert!(world.left_over().is_empty());
}

#[tokio::test]
async fn an_upload_that_breaks_off_or_lies_leaves_nothing_behind() {
    let app = TestApp::start().await;
    let world = World::new(&app).await;
    let whole = archive(&[("index.html", b"bad")]);
    let longer = format!("Content-Length: {}\r\n", whole.len() + 1);
    for headers in [longer.as_str(), "Transfer-Encoding: chunked\r\n"] {
        let mut stream = world.begin(&world.owner.token, headers).await;
        if headers == longer {
            stream.write_all(&whole).await.unwrap();
        } else {
            stream.write_all(b"10\r\n0123").await.unwrap();
        }
        while world.left_over().is_empty() {
            tokio::task::yield_now().await;
        }
        drop(stream);
        world.nothing_is_left().await;
    }
    let mut stream = world
        .begin(&world.owner.token, "Transfer-Encoding: chunked\r\n")
        .await;
    stream.write_all(b"nonsense\r\n").await.unwrap();
    let answer = read_until(&mut stream, "}").await;
    assert!(answer.contains(" 400 "), "{answer}");
    // A length that is too short covers only a part of the archive.
    let shorter = format!("Content-Length: {}\r\n", whole.len() - 1);
    let mut stream = world.begin(&world.owner.token, &shorter).await;
    stream.write_all(&whole).await.unwrap();
    let answer = read_until(&mut stream, "}").await;
    assert!(answer.starts_with("HTTP/1.1 422 "), "{answer}");
    world.nothing_is_left().await;
    assert_eq!(world.page().await, GOOD);
}

#[tokio::test]
async fn a_deploy_ends_whole_if_nobody_waits_for_it() {
    const FILES: usize = 200;
    let app = TestApp::start().await;
    let world = World::new(&app).await;
    let whole = with_files(FILES);
    let length = format!("Content-Length: {}\r\n", whole.len());
    for _ in 0..5 {
        world.deploy(&[("index.html", GOOD.as_bytes())]).await;
        let mut stream = world.begin(&world.owner.token, &length).await;
        stream.write_all(&whole).await.unwrap();
        let is_unpacked = || {
            let folders = world.left_over();
            folders.iter().any(|folder| folder.join("files/0").exists())
        };
        let unpacking = async {
            while !is_unpacked() {
                tokio::task::yield_now().await;
            }
        };
        assert!(timeout(NEVER, unpacking).await.is_ok(), "nothing arrives");
        // Nobody reads the response.
        drop(stream);
        world.nothing_is_left().await;
        assert_eq!(world.page().await, "page");
        let last = format!("/f{}", FILES - 1);
        assert_eq!(send(app.get("game", &last)).await.status, 200);
    }
}

#[tokio::test]
async fn one_player_has_two_deploys_on_the_way_at_most() {
    let app = TestApp::start().await;
    let world = World::new(&app).await;
    let whole = archive(&[("index.html", b"new")]);
    let length = format!("Content-Length: {}\r\n", whole.len());
    let mut first = world.begin(&world.owner.token, &length).await;
    let second = world.begin(&world.owner.token, &length).await;
    while world.left_over().len() < 2 {
        tokio::task::yield_now().await;
    }
    let third = world.owner.deploy("prod", whole.clone()).await;
    assert_eq!(third.problem(), "too-many-requests");
    assert_eq!(third.header("retry-after"), Some("10"));
    first.write_all(&whole).await.unwrap();
    let answer = read_until(&mut first, "}").await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    drop(second);
    world.nothing_is_left().await;
    assert_eq!(world.page().await, "new");
    world.deploy(&[("index.html", GOOD.as_bytes())]).await;
}

#[tokio::test]
async fn slow_uploads_of_many_accounts_keep_nobody_from_deploying() {
    let app = TestApp::start().await;
    let world = World::new(&app).await;
    let mut uploads = Vec::new();
    for number in 0..16 {
        let account = Caller::account(&app).await;
        let slug = format!("slow-{number}");
        assert_eq!(account.create(&slug).await.status, 201);
        for _ in 0..2 {
            let mut stream = TcpStream::connect(app.running.address).await.unwrap();
            let head = format!(
                "PUT /api/projects/{slug}/environments/prod/deployment HTTP/1.1\r\n\
                 Host: platform.localhost:{}\r\nAuthorization: Bearer {}\r\n\
                 Content-Type: application/gzip\r\nContent-Length: 1000000\r\n\
                 Expect: 100-continue\r\n\r\n",
                app.port(),
                account.token
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            // The upload takes its slot when its body is requested.
            read_until(&mut stream, "100 Continue\r\n\r\n").await;
            stream.write_all(b"x").await.unwrap();
            uploads.push(stream);
        }
    }
    let deploying = world.deploy(&[("index.html", b"after all")]);
    let deployed = timeout(NEVER, deploying).await;
    assert!(deployed.is_ok(), "a deploy waits for those of others");
    assert_eq!(world.page().await, "after all");
    drop(uploads);
    world.nothing_is_left().await;
}

#[tokio::test]
async fn an_upload_that_outlives_its_session_deploys_nothing() {
    let app = TestApp::start().await;
    let world = World::new(&app).await;
    let whole = archive(&[("index.html", b"new")]);
    let length = format!("Content-Length: {}\r\n", whole.len());
    let mut stream = world.begin(&world.owner.token, &length).await;
    while world.left_over().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(app.end_sessions(world.owner.sub).await, 1);
    stream.write_all(&whole).await.unwrap();
    let answer = read_until(&mut stream, "}").await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    world.nothing_is_left().await;
    assert_eq!(world.page().await, GOOD);
}
