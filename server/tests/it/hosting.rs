//! A game's files, as deployed.

use std::time::Duration;

use bytes::Bytes;
use platform_protocol::names::Environment;
use platform_server::domain::project::Project;
use platform_server::projects::deploy::Target;
use platform_test_ports::ReservedPort;
use reqwest::Method;
use tokio::time::timeout;

use crate::support::{TestApp, send};

/// How long compressing a small file may take.
const PATIENCE: Duration = Duration::from_secs(60);

async fn deploy(app: &TestApp, files: &[(&str, &[u8])]) {
    let state = &app.running.state;
    if state
        .platform
        .store
        .find_project("game")
        .await
        .unwrap()
        .is_none()
    {
        let project = Project {
            slug: "game".into(),
            owner: None,
            created_at: 1,
        };
        state.platform.store.add_project(project).await.unwrap();
    }
    let files = files
        .iter()
        .map(|(path, content)| ((*path).to_owned(), Bytes::copy_from_slice(content)))
        .collect();
    let target = Target::of_platform("game", Environment::Prod);
    let deployments = &state.projects.deployments;
    deployments.deploy_contents(files, &target).await.unwrap();
}

#[tokio::test]
async fn files_are_served_as_deployed() {
    let app = TestApp::start().await;
    deploy(
        &app,
        &[
            ("index.html", b"<!doctype html>start"),
            ("level/index.html", b"<!doctype html>level"),
            ("main.3f2a9c1b.js", b"1"),
            ("data.json", b"{}"),
            ("game.wasm", b"\0asm"),
            ("a b.txt", b"text"),
        ],
    )
    .await;
    let (short, ever) = ("no-cache", "public, max-age=31536000, immutable");
    for (path, body, content_type, cache) in [
        (
            "/",
            "<!doctype html>start",
            "text/html; charset=utf-8",
            "no-cache",
        ),
        (
            "/index.html",
            "<!doctype html>start",
            "text/html; charset=utf-8",
            "no-cache",
        ),
        (
            "/?a=b",
            "<!doctype html>start",
            "text/html; charset=utf-8",
            "no-cache",
        ),
        (
            "/level/",
            "<!doctype html>level",
            "text/html; charset=utf-8",
            "no-cache",
        ),
        (
            "/main.3f2a9c1b.js",
            "1",
            "text/javascript; charset=utf-8",
            ever,
        ),
        ("/data.json", "{}", "application/json; charset=utf-8", short),
        ("/game.wasm", "\0asm", "application/wasm", short),
        ("/a%20b.txt", "text", "text/plain; charset=utf-8", short),
    ] {
        let answer = send(app.get("game", path)).await;
        assert_eq!(
            (answer.status.as_u16(), answer.text()),
            (200, body),
            "{path}"
        );
        assert_eq!(answer.header("content-type"), Some(content_type), "{path}");
        assert_eq!(answer.header("cache-control"), Some(cache), "{path}");
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
    }
    let directory = send(app.get("game", "/level?a=b")).await;
    assert_eq!(directory.status, 308);
    assert_eq!(directory.header("location"), Some("/level/?a=b"));
    assert_eq!(
        send(app.get("game", "/nothing")).await.problem(),
        "not-found"
    );
    assert_eq!(send(app.get("dev-game", "/")).await.problem(), "not-found");
    assert_eq!(
        send(app.get("dev-game", "/__platform/runtime.js"))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn who_calls_a_backend_that_is_not_there_reads_which_path_that_was() {
    let app = TestApp::start().await;
    deploy(&app, &[("index.html", b"start")]).await;
    let long = format!("/api/{}", "a".repeat(300));
    for (method, path, detail) in [
        (
            Method::GET,
            "/api/scores?of=me",
            "This game has no file at /api/scores.".to_owned(),
        ),
        (
            Method::POST,
            "/api/scores",
            "This game has no backend for /api/scores, and files accept only GET and HEAD."
                .to_owned(),
        ),
        (
            Method::GET,
            &long,
            format!("This game has no file at {}….", &long[..200]),
        ),
    ] {
        let answer = send(app.request(method, "game", path)).await;
        assert_eq!(answer.json::<serde_json::Value>()["detail"], detail);
    }
    let opened = app.get("game", "/Sign-in-at-evil.example");
    let page = send(opened.header("accept", "text/html")).await;
    assert!(!page.text().contains("evil"));
}

#[tokio::test]
async fn a_game_may_bring_its_own_page_for_what_is_not_there() {
    let app = TestApp::start().await;
    deploy(&app, &[("index.html", b"start"), ("404.html", b"lost")]).await;
    let opened = app.get("game", "/nothing").header("accept", "text/html");
    assert_eq!(send(opened).await.text(), "lost");
    let answer = send(app.get("game", "/nothing")).await;
    assert_eq!((answer.status.as_u16(), answer.text()), (404, "lost"));
    assert_eq!(
        answer.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(answer.header("x-request-id").is_some());
    assert_eq!(
        send(app.get("game", "/__platform/nothing")).await.problem(),
        "not-found"
    );
}

#[tokio::test]
async fn unchanged_files_and_parts_of_files_are_answered_as_such() {
    let app = TestApp::start().await;
    let large: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    deploy(&app, &[("index.html", b"start"), ("large.bin", &large)]).await;
    let whole = send(app.get("game", "/large.bin")).await;
    assert_eq!(whole.body, large);
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    let etag = whole.header("etag").unwrap();
    let again = send(app.get("game", "/large.bin").header("if-none-match", etag)).await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    let part = send(
        app.get("game", "/large.bin")
            .header("range", "bytes=999999-2000000"),
    )
    .await;
    assert_eq!(part.status, 206);
    assert_eq!(
        part.header("content-range"),
        Some("bytes 999999-2000000/4000000")
    );
    assert_eq!(part.body, &large[999_999..=2_000_000]);
    let outside = send(
        app.get("game", "/large.bin")
            .header("range", "bytes=4000000-"),
    )
    .await;
    assert_eq!(outside.status, 416);
    assert_eq!(outside.header("content-range"), Some("bytes */4000000"));
    assert_eq!(outside.header("cache-control"), Some("no-store"));
    let other = app
        .get("game", "/large.bin")
        .header("range", "bytes=0-0")
        .header("if-range", "\"x\"");
    assert_eq!(send(other).await.status, 200);
    let head = app
        .request(Method::HEAD, "game", "/large.bin")
        .header("range", "bytes=0-0");
    let head = send(head).await;
    assert_eq!(
        (head.status.as_u16(), head.header("content-length")),
        (200, Some("4000000")),
        "only GET has parts"
    );
}

#[tokio::test]
async fn compressed_siblings_go_to_those_who_take_them() {
    let app = TestApp::start().await;
    deploy(
        &app,
        &[
            ("index.html", b"start"),
            ("game.wasm", b"plain"),
            ("game.wasm.br", b"brotli"),
            ("other.js", b"plain"),
        ],
    )
    .await;
    for (path, accept, body, coding) in [
        ("/game.wasm", "gzip, br", "brotli", Some("br")),
        ("/game.wasm", "gzip", "plain", None),
        ("/other.js", "gzip, br", "plain", None),
    ] {
        let answer = send(app.get("game", path).header("accept-encoding", accept)).await;
        assert_eq!(
            (answer.text(), answer.header("content-encoding")),
            (body, coding),
            "{path}"
        );
        assert_eq!(answer.header("vary"), Some("Accept-Encoding"));
    }
    let answer = send(
        app.get("game", "/game.wasm")
            .header("accept-encoding", "br"),
    )
    .await;
    assert_eq!(answer.header("content-type"), Some("application/wasm"));
}

#[tokio::test]
async fn what_was_deployed_uncompressed_is_compressed_once_it_is_asked_for() {
    let app = TestApp::start().await;
    let script = "let coins = 0;\n".repeat(2_000);
    let picture = [0_u8; 20_000];
    deploy(
        &app,
        &[
            ("index.html", b"start"),
            ("game.js", script.as_bytes()),
            ("game.png", &picture),
        ],
    )
    .await;
    for coding in ["br", "gzip"] {
        let ask = || {
            app.get("game", "/game.js")
                .header("accept-encoding", coding)
        };
        let ready = async {
            loop {
                let answer = send(ask()).await;
                if answer.header("content-encoding").is_some() {
                    return answer;
                }
                // A request before it is ready gets the uncompressed file.
                assert_eq!(answer.text(), script);
            }
        };
        let compressed = timeout(PATIENCE, ready).await.unwrap();
        assert_eq!(compressed.header("content-encoding"), Some(coding));
        assert_eq!(compressed.header("vary"), Some("Accept-Encoding"));
        assert!(compressed.body.len() < script.len() / 10);
        let etag = compressed.header("etag").unwrap();
        let again = send(ask().header("if-none-match", etag)).await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
        let plain = send(app.get("game", "/game.js").header("if-none-match", etag)).await;
        assert_eq!(plain.text(), script, "each coding has an ETag of its own");
        // A browser that has the uncompressed file need not load it again.
        let etag = send(app.get("game", "/game.js")).await;
        let etag = etag.header("etag").unwrap();
        assert_eq!(send(ask().header("if-none-match", etag)).await.status, 304);
        let part = send(ask().header("range", "bytes=4-8")).await;
        assert_eq!(
            (
                part.status.as_u16(),
                part.text(),
                part.header("content-encoding")
            ),
            (206, "coins", None)
        );
        for _ in 0..2 {
            let picture = app
                .get("game", "/game.png")
                .header("accept-encoding", coding);
            assert_eq!(send(picture).await.header("content-encoding"), None);
        }
    }
}

#[tokio::test]
async fn a_unity_build_loads_as_it_was_exported() {
    let app = TestApp::start().await;
    deploy(
        &app,
        &[("index.html", b"start"), ("Build/game.wasm.br", b"brotli")],
    )
    .await;
    let asked = app.get("game", "/Build/game.wasm.br");
    let answer = send(asked.header("accept-encoding", "gzip, br")).await;
    assert_eq!(answer.header("content-type"), Some("application/wasm"));
    assert_eq!(answer.header("content-encoding"), Some("br"));
    assert_eq!(answer.text(), "brotli");
}

#[tokio::test]
async fn a_new_deployment_is_shown_at_once() {
    let app = TestApp::start().await;
    deploy(&app, &[("index.html", b"one")]).await;
    let first = send(app.get("game", "/")).await;
    deploy(&app, &[("index.html", b"two")]).await;
    let etag = first.header("etag").unwrap();
    let second = send(app.get("game", "/").header("if-none-match", etag)).await;
    assert_eq!((second.status.as_u16(), second.text()), (200, "two"));
}

#[tokio::test]
async fn a_page_of_an_earlier_deployment_finds_its_files_whatever_their_hashes_look_like() {
    let app = TestApp::start().await;
    let before = [
        "assets/index-DAkgGDa_.js",
        "assets/level-abcdefgh.js",
        "assets/tree-12345678.png",
        "secrets-of-mine.env",
        "logo-DAkgGDa_.svg",
        "game.js",
        "service-worker.js",
    ];
    let mut files: Vec<(&str, &[u8])> = before.iter().map(|path| (*path, &b"one"[..])).collect();
    files.push(("index.html", b"one"));
    deploy(&app, &files).await;
    deploy(
        &app,
        &[("index.html", b"two"), ("assets/index-B2kgGDa_.js", b"two")],
    )
    .await;
    for path in &before[..3] {
        let answer = send(app.get("game", &format!("/{path}"))).await;
        assert_eq!(
            (answer.status.as_u16(), answer.text()),
            (200, "one"),
            "{path}"
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    for path in &before[3..6] {
        let asked = app.get("game", &format!("/{path}"));
        assert_eq!(send(asked).await.status, 404, "{path}");
    }
    // A worker that is no longer deployed is replaced by one that unregisters itself.
    let asked = app.get("game", "/service-worker.js");
    let worker = send(asked.header("service-worker", "script")).await;
    assert!(worker.text().contains("unregister"), "{}", worker.text());

    // If the content at such a path changes, the name refers to the current file from then on.
    deploy(
        &app,
        &[
            ("index.html", b"three"),
            ("assets/level-abcdefgh.js", b"three"),
        ],
    )
    .await;
    let level = || send(app.get("game", "/assets/level-abcdefgh.js"));
    assert_eq!(level().await.text(), "three");
    deploy(&app, &[("index.html", b"four")]).await;
    assert_eq!(level().await.status, 404);
}

#[tokio::test]
async fn only_names_that_change_with_their_content_are_kept_for_ever() {
    let app = TestApp::start().await;
    let ever = "public, max-age=31536000, immutable";
    let files: [(&str, &[u8]); 5] = [
        ("index.html", b"start"),
        ("assets/index-DAkgGDa_.js", b"1"),
        ("assets/index-DUEEZswr.css", b"2"),
        ("data-2024-11-22.json", b"3"),
        ("photo-0a1b2c3d.png", b"4"),
    ];
    let cache = async |path: &str| {
        let answer = send(app.get("game", path)).await;
        assert_eq!(answer.status, 200, "{path}");
        answer.header("cache-control").map(str::to_owned).unwrap()
    };
    deploy(&app, &files).await;
    for (path, expected) in [
        ("/assets/index-DAkgGDa_.js", ever),
        ("/assets/index-DUEEZswr.css", ever),
        ("/data-2024-11-22.json", "no-cache"),
        ("/photo-0a1b2c3d.png", ever),
    ] {
        assert_eq!(cache(path).await, expected, "{path}");
    }
    // A name that had different content is not an identifier of its content.
    let mut changed = files;
    changed[4].1 = b"5";
    deploy(&app, &changed).await;
    assert_eq!(cache("/photo-0a1b2c3d.png").await, "no-cache");
    assert_eq!(cache("/assets/index-DAkgGDa_.js").await, ever);
}

#[tokio::test]
async fn the_demo_is_left_out_where_it_is_not_wanted() {
    let app = TestApp::with(|config| config.demo = false).await;
    assert_eq!(send(app.get("demo", "/")).await.problem(), "unknown-host");
    let app =
        TestApp::with(|config| config.origin = Some("https://games.example".parse().unwrap()))
            .await;
    let host = format!("demo.games.example:{}", app.port());
    assert_eq!(
        send(app.request_host(Method::GET, &host, "/"))
            .await
            .problem(),
        "unknown-host"
    );
}

#[tokio::test]
async fn a_demo_that_has_changed_is_deployed_again_after_a_restart() {
    let app = TestApp::start().await;
    let page = send(app.get("demo", "/")).await;
    let state = &app.running.state;
    let target = Target::of_platform("demo", Environment::Prod);
    let older = vec![("index.html".into(), Bytes::from_static(b"an older demo"))];
    let deployments = &state.projects.deployments;
    deployments.deploy_contents(older, &target).await.unwrap();
    let app = app.restart(|_| {}).await;
    assert_eq!(send(app.get("demo", "/")).await.body, page.body);
    let one = app
        .running
        .state
        .games
        .catalogue
        .find("demo")
        .unwrap()
        .deployment
        .clone()
        .unwrap()
        .id;
    let app = app.restart(|_| {}).await;
    let other = app
        .running
        .state
        .games
        .catalogue
        .find("demo")
        .unwrap()
        .deployment
        .clone()
        .unwrap()
        .id;
    assert_eq!(one, other, "an unchanged demo is left alone");
}

#[tokio::test]
async fn a_backend_that_cannot_be_reached_is_a_problem() {
    use platform_server::config::Config;
    use platform_server::games::catalogue::Game;
    use platform_server::hosting::backends::{Backends, Settings};
    use platform_server::web::request_context::Context;
    use platform_server::web::request_id::RequestId;

    let origin = platform_server::origin::PlatformOrigin::local(8787);
    let closed = ReservedPort::take().unwrap();
    let address = closed.address();
    let settings = Settings::new(
        &Config::default(),
        (&origin, &origin),
        vec!["127.0.0.1:8787".parse().unwrap()],
    );
    let backends = Backends::new(&origin, settings).unwrap();
    backends.add("game", Environment::Prod, address);
    let game = Game {
        slug: "game".into(),
        environment: Environment::Prod,
        preview: None,
        audience: "game:game".into(),
        origin: origin.sub_domain("game"),
        is_apart: false,
        canonical: None,
        deployment: None,
        lasting: std::sync::Arc::default(),
        isolated: false,
        traced: false,
        taken_down: false,
        forget_from: None,
        framing: None,
        listing: std::sync::Arc::default(),
        backend: None,
        caller: None,
    };
    let backend = backends.find(&game, "/api/x").unwrap();
    assert!(backends.find(&game, "/apix").is_none());
    let context = Context {
        id: RequestId::unknown(),
        peer: address,
        trusted_peer: false,
        client: address.ip(),
    };
    let request = axum::http::Request::get("/api/x")
        .body(axum::body::Body::empty())
        .unwrap();
    let refusal = backends
        .forward(&backend, &game, &context, request)
        .await
        .unwrap_err();
    assert_eq!(refusal.slug().as_str(), "backend-unreachable");
}

#[tokio::test]
async fn a_games_address_and_the_auth_service_say_which_platform_they_belong_to() {
    let app = TestApp::start().await;
    // A game cannot respond at these paths itself.
    deploy(&app, &[("index.html", b"start")]).await;
    for label in ["game", "dev-game", "auth"] {
        let answer = send(app.get(label, "/__platform/platform.json")).await;
        assert_eq!(answer.status, 200, "{label}");
        let said: serde_json::Value = answer.json();
        let origin = format!("http://platform.localhost:{}", app.port());
        assert_eq!(said["origin"], origin);
        assert_eq!(
            said["games_origin"], origin,
            "games are on the platform's own"
        );
        assert_eq!(
            said["auth_url"],
            format!("http://auth.platform.localhost:{}", app.port())
        );
    }
}
