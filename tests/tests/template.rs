//! The template, from a copy to two players in two tabs.

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::collections::BTreeSet;
use std::sync::Arc;

use platform_protocol::claims::PrincipalKind;
use platform_tests::browser::{Browser, Engine, Stage};
use platform_tests::template::Game;
use platform_tests::visitor::claims;
use platform_tests::world::World;
use platform_tests::{poll, raw};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use thirtyfour::Key;

const SLUG: &str = "rings";

/// Starts a world, and a game in it whose tool knows every test player.
async fn start() -> (World, Game) {
    let world = World::start().await;
    world.own(SLUG).await;
    let game = Game::install(&world, SLUG).await;
    for kind in ["guest", "user"] {
        for number in 1..=10 {
            let token = world.test_token(SLUG, kind, number).await;
            game.tool
                .prints(&format!("{kind}-{number}"), &token.to_string());
        }
    }
    (world, game)
}

/// Waits until the text of `#id` satisfies `wanted`.
async fn shows(stage: &Stage, id: &str, wanted: impl Fn(&str) -> bool) -> String {
    let script = format!("return document.getElementById('{id}')?.textContent");
    poll::until(&format!("#{id} to show it"), async || {
        let text = stage.attempt(&script).await.ok()?;
        text.as_str().filter(|text| wanted(text)).map(str::to_owned)
    })
    .await
}

/// Plays one round without a jump, until a rock ends it, and returns the score.
async fn play(stage: &Stage) -> u64 {
    let space = stage
        .browser()
        .session
        .action_chain()
        .send_keys(Key::Space + "");
    space.perform().await.unwrap();
    let words = shows(stage, "words", |text| text.starts_with("You gathered")).await;
    let score = words.split(' ').find_map(|word| word.parse().ok()).unwrap();
    assert!(score >= 3, "the first sparks lie on the way: {words}");
    shows(stage, "best", |text| text == format!("Best {score}")).await;
    score
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_checked_built_and_played_as_two_players_in_two_tabs() {
    let (world, game) = start().await;
    game.npm(&["run", "check"]).await;
    let built = game.npm(&["run", "build"]).await;
    let warns = |line: &str| line.to_lowercase().contains("warn") && !line.starts_with("npm ");
    assert!(!built.lines().any(warns), "{built}");
    assert!(!built.contains("can't be bundled"), "{built}");
    let page = std::fs::read_to_string(game.file("dist/index.html")).unwrap();
    let head = page.split("</head>").next().unwrap();
    let tag = r#"defer src="/__platform/runtime.js"></script>"#;
    assert!(
        head.find(tag).unwrap() < head.find("type=\"module\"").unwrap(),
        "{page}"
    );
    assert!(!page.contains("vite-ignore"), "{page}");

    let dev = game.dev().await;
    let browser = Browser::start(Engine::Chromium).await;
    let stage = Stage::new(Arc::new(browser));
    stage.open(&dev.url).await;
    shows(&stage, "name", |text| text == "test-guest-1").await;
    let first = play(&stage).await;
    let guest = world.test_token(SLUG, "guest", 1).await["sub"].clone();
    let guest = guest.as_str().unwrap();
    kept(&game, guest, first).await;

    let session = &stage.browser().session;
    let tab = session.new_tab().await.unwrap();
    session.switch_to_window(tab).await.unwrap();
    let login = format!("{}/__platform/login?redirect=/", dev.url);
    stage.open(&login).await;
    let pick = "[...document.querySelectorAll('main button')].find(b => b.textContent == 'test-user-3').click()";
    poll::until("the picker", async || stage.attempt(pick).await.ok()).await;
    shows(&stage, "name", |text| text == "test-user-3").await;
    shows(&stage, "best", |text| text == "Best 0").await;
    let second = play(&stage).await;
    let user = world.test_token(SLUG, "user", 3).await["sub"].clone();
    kept(&game, user.as_str().unwrap(), second).await;
    kept(&game, guest, first).await;
    stage.reload().await;
    shows(&stage, "best", |text| text == format!("Best {second}")).await;
    let asked = game.tool.asked();
    assert_eq!(
        asked.iter().filter(|line| *line == "runtime").count(),
        1,
        "the runtime is fetched once: {asked:?}"
    );
    assert_eq!(stage.complaints().await, [""; 0]);
    let browser = Arc::into_inner(stage.into_browser());
    browser.unwrap().close().await;
}

/// Waits until the backend has stored `score` for `sub`.
async fn kept(game: &Game, sub: &str, score: u64) {
    poll::until("the score to be kept", async || {
        (game.scores()[sub] == json!(score)).then_some(())
    })
    .await;
}

/// Sends a request to the dev server and returns status and JSON body.
async fn ask(method: Method, url: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let mut request = Client::new().request(method, url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(json!(text)))
}

/// A token is only for a page of exactly this address, in browsers that send `Sec-Fetch-Site` and
/// in those that do not; an invalid address is refused.
async fn only_the_games_own_page(own: &str) {
    let token = format!("{own}/__platform/token/user/3");
    let (_, port) = own.rsplit_once(':').unwrap();
    let port: u16 = port.parse().unwrap();
    let other_port = format!("http://localhost:{}", port ^ 1);
    for (origin, site, status) in [
        (own, "same-origin", 200),
        (own, "cross-site", 403),
        (own, "same-site", 403),
        (own, "", 200),
        (&other_port, "", 403),
        (&other_port, "same-origin", 403),
        ("http://localhost", "", 403),
        ("http://evil.example", "", 403),
        ("null", "", 403),
    ] {
        let headers = [("origin", origin), ("sec-fetch-site", site)];
        let sent = if site.is_empty() {
            &headers[..1]
        } else {
            &headers
        };
        let (answered, body) = ask(Method::POST, &token, sent).await;
        assert_eq!(answered, status, "{origin} {site}: {body}");
        if status == 403 {
            assert_eq!(body["type"], "urn:platform:not-allowed", "{origin} {site}");
        }
    }
    // A page whose name resolves to this machine: the browser treats it as the game.
    let name = format!("evil.example:{port}");
    let origin = format!("http://{name}");
    let rebound = [("host", name.as_str()), ("origin", &origin)];
    assert_eq!(ask(Method::POST, &token, &rebound).await.0, 403);

    let answer = raw::get(port, "//[").await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("urn:platform:invalid-request"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_with_the_tool_is_a_problem_that_says_what_to_do() {
    let (world, game) = start().await;
    let relayed = json!({ "type": "http://auth.x/problems/not-deployed", "title": "Not deployed",
        "status": 409, "detail": "Deploy the game once.", "request_id": "r-7" });
    game.tool.prints("user-2", &relayed.to_string());
    game.tool.fails("user-2", 1, "");
    game.tool.fails("user-4", 3, "error: not signed in");
    game.tool.fails(
        "user-5",
        1,
        "error: The platform cannot be reached (request r-1).\n",
    );
    game.tool.prints("user-5", "");
    let dev = game.dev().await;
    let token = |path: &str| format!("{}/__platform/token/{path}", dev.url);
    let post = async |path: &str| ask(Method::POST, &token(path), &[]).await;

    let (status, body) = post("user/3").await;
    let printed = std::fs::read_to_string(game.file("tool/user-3")).unwrap();
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((status, body), (200, printed));
    assert_eq!(post("user/2").await, (409, relayed));
    for (path, status, kind, part) in [
        (
            "user/4",
            401,
            "urn:platform:not-signed-in",
            "platform login",
        ),
        (
            "user/5",
            502,
            "urn:platform:cli-failed",
            "The platform cannot be reached (request r-1).",
        ),
        (
            "user/11",
            404,
            "urn:platform:not-found",
            "/__platform/token/user/11",
        ),
        (
            "user/0",
            404,
            "urn:platform:not-found",
            "/__platform/token/user/0",
        ),
        ("guest/3;ls", 404, "urn:platform:not-found", "guest/3;ls"),
    ] {
        let (answered, body) = post(path).await;
        assert_eq!(
            (answered, &body["type"]),
            (status, &json!(kind)),
            "{path}: {body}"
        );
        assert_eq!(body["status"], status);
        assert!(
            body["detail"].as_str().unwrap().contains(part),
            "{path}: {body}"
        );
    }
    assert_eq!(ask(Method::GET, &token("user/3"), &[]).await.0, 405);
    only_the_games_own_page(&dev.url).await;

    // The local backend responds through the dev server.
    let me = format!("{}/api/me", dev.url);
    let (status, body) = ask(Method::GET, &me, &[]).await;
    assert_eq!(
        (status, &body["type"]),
        (401, &json!("urn:platform:not-signed-in")),
        "{body}"
    );
    let answer = world.test_token(SLUG, "guest", 6).await;
    let bearer = format!("Bearer {}", answer["access_token"].as_str().unwrap());
    let (status, body) = ask(Method::GET, &me, &[("authorization", &bearer)]).await;
    let expected =
        json!({ "sub": answer["sub"], "username": "test-guest-6", "is_anon": true, "best": 0 });
    assert_eq!((status, body), (200, expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_is_kept_for_work_without_a_network() {
    let (_world, game) = start().await;
    let runtime = std::fs::read_to_string(game.file("tool/runtime")).unwrap();
    game.tool.prints("runtime", "");
    game.tool.fails(
        "runtime",
        1,
        "error: There is no deployment of this game.\n",
    );
    let fetch = async |url: &str| {
        let url = format!("{url}/__platform/runtime.js");
        ask(Method::GET, &url, &[]).await
    };
    {
        let dev = game.dev().await;
        let (status, body) = fetch(&dev.url).await;
        assert_eq!(status, 502, "{body}");
        // As soon as the tool has it, the page has it, too; then it is cached.
        std::fs::remove_file(game.file("tool/runtime.code")).unwrap();
        game.tool.prints("runtime", &runtime);
        assert_eq!(fetch(&dev.url).await, (200, json!(runtime)));
    }
    std::fs::remove_file(game.file("tool/platform")).unwrap();
    let dev = game.dev().await;
    assert_eq!(fetch(&dev.url).await, (200, json!(runtime)));
    dev.says("The page goes on with the runtime of").await;
    let token = format!("{}/__platform/token/guest/1", dev.url);
    let (status, body) = ask(Method::POST, &token, &[]).await;
    assert_eq!(
        (status, &body["type"]),
        (503, &json!("urn:platform:cli-missing")),
        "{body}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_test_player_is_somebody_else_and_always_the_same() {
    let world = World::start().await;
    for slug in ["rings", "other"] {
        world.own(slug).await;
    }
    let mut players = BTreeSet::new();
    for slug in ["rings", "other"] {
        for kind in ["guest", "user"] {
            for number in 1..=10 {
                let token = world.test_token(slug, kind, number).await;
                let again = world.test_token(slug, kind, number).await;
                assert_eq!(token["sub"], again["sub"]);
                assert_ne!(token["access_token"], again["access_token"]);
                let named = claims(token["access_token"].as_str().unwrap());
                assert_eq!(token["sub"], named.sub);
                assert_eq!(named.aud, format!("game:dev-{slug}"));
                assert_eq!(named.is_anon, kind == "guest");
                assert_eq!(named.principal_kind, PrincipalKind::TestUser);
                assert_eq!(named.exp - named.iat, 1_800);
                players.insert(named.sub);
            }
        }
    }
    assert_eq!(players.len(), 40);
}
