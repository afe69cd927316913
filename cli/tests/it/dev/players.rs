//! The four paths, and what they say when something is missing.

use http::Method;
use serde_json::{Value, json};

use super::{Dev, RUNTIME, scene};
use crate::platform::Platform;
use crate::support::Home;

#[tokio::test]
async fn the_four_paths_are_answered_with_the_sign_in_of_the_command_line() {
    let (platform, home) = scene().await;
    let mut dev = Dev::start(&home, &[]).await;
    let block = dev.block().await;
    assert!(block.contains("signed in as swift-otter-1"), "{block}");
    for _ in 0..2 {
        let script = dev.get("/__platform/runtime.js").await;
        assert_eq!(script.status, 200, "{script:?}");
        assert_eq!(script.body, RUNTIME);
        assert_eq!(
            script.header("content-type"),
            "text/javascript; charset=utf-8"
        );
        assert_eq!(script.header("cache-control"), "no-store");
    }
    let fetched = platform.seen("/__platform/runtime.js");
    assert_eq!(fetched.len(), 1, "once per run");
    let login = dev.get("/__platform/login?redirect=/").await;
    assert_eq!(login.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(
        login.body.matches("<script").count(),
        1,
        "the tag alone: {login:?}"
    );
    for (player, number, guest) in [("user/3", 3, false), ("guest/10", 10, true)] {
        let token = dev.token(player).await;
        assert_eq!(token.status, 200, "{token:?}");
        assert_eq!(token.header("content-type"), "application/json");
        assert_eq!(token.header("cache-control"), "no-store");
        assert!(token.headers.get("access-control-allow-origin").is_none());
        assert_eq!(token.json()["access_token"], "a.b.c");
        let asked = platform.seen("/api/projects/game/test-tokens");
        let asked: Value = serde_json::from_slice(&asked.last().unwrap().body).unwrap();
        assert_eq!(asked, json!({ "number": number, "guest": guest }));
    }
    assert_eq!(dev.end().await, (Some(0), String::new()));
}

#[tokio::test]
async fn without_a_sign_in_the_problem_names_the_command() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    home.write("dist/index.html", super::PAGE);
    let mut dev = Dev::start(&home, &[]).await;
    let block = dev.block().await;
    let command = format!("`platform login --origin {}`", platform.origin());
    assert!(
        block.contains(&format!("nobody is signed in: run {command}")),
        "{block}"
    );
    for _ in 0..2 {
        let detail = dev.token("guest/1").await.problem(401);
        assert!(detail.contains(&command), "{detail}");
    }
    let (_, said) = dev.end().await;
    assert_eq!(said.matches("Nobody is signed in").count(), 1, "{said}");
}

#[tokio::test]
async fn a_problem_of_the_platform_is_passed_on_with_what_to_do() {
    let (platform, home) = scene().await;
    let detail = "Test players exist after the first deploy: run \"platform deploy\" once.";
    let problem = platform.problem("not-deployed", 409, detail);
    platform.say("POST - /api/projects/game/test-tokens", &[(409, problem)]);
    let dev = Dev::start(&home, &[]).await;
    let answer = dev.token("user/1").await;
    assert_eq!(answer.problem(409), detail);
    assert_eq!(answer.json()["request_id"], "req-1");
    let missing = platform.problem("not-found", 404, "There is no such project.");
    platform.say("POST - /api/projects/game/test-tokens", &[(404, missing)]);
    let detail = dev.token("user/1").await.problem(404);
    assert!(detail.contains("platform projects create"), "{detail}");
    let (_, said) = dev.end().await;
    assert!(said.contains("There is no such project."), "{said}");
}

#[tokio::test]
async fn the_runtime_is_kept_for_work_without_a_network() {
    let (platform, home) = scene().await;
    let dev = Dev::start(&home, &[]).await;
    assert_eq!(dev.get("/__platform/runtime.js").await.body, RUNTIME);
    let _ = dev.end().await;
    let call = "GET dev-game /__platform/runtime.js";
    let away = platform.problem("unavailable", 503, "The platform is away.");
    platform.say(call, &[(503, away)]);
    let dev = Dev::start(&home, &[]).await;
    for _ in 0..2 {
        assert_eq!(dev.get("/__platform/runtime.js").await.body, RUNTIME);
    }
    let (_, said) = dev.end().await;
    assert_eq!(said.matches("The platform is away.").count(), 1, "{said}");
    assert!(said.contains("start again for a new one"), "{said}");

    let other = Home::of(&platform);
    other.write("dist/index.html", super::PAGE);
    let dev = Dev::start(&other, &[]).await;
    let detail = dev.get("/__platform/runtime.js").await.problem(503);
    assert!(detail.contains("The platform is away."), "{detail}");
    super::serves_runtime(&platform);
    let again = dev.get("/__platform/runtime.js").await;
    assert_eq!(again.body, RUNTIME, "a failure is not kept");
}

#[tokio::test]
async fn a_path_accepts_only_its_own_method() {
    let (_platform, home) = scene().await;
    let dev = Dev::start(&home, &[]).await;
    for (method, path, allowed) in [
        (Method::GET, "/__platform/token/user/3", "POST"),
        (Method::PUT, "/__platform/token/user/3", "POST"),
        (Method::OPTIONS, "/__platform/token/user/3", "POST"),
        (Method::POST, "/__platform/runtime.js", "GET, HEAD"),
        (Method::POST, "/__platform/login", "GET, HEAD"),
    ] {
        let answer = dev.send(method.clone(), path, &[]).await;
        let _ = answer.problem(405);
        assert_eq!(answer.header("allow"), allowed, "{method} {path}");
    }
    for path in [
        "user/0", "user/11", "user/03", "guest/", "user/3/", "other/3",
    ] {
        let _ = dev.token(path).await.problem(404);
    }
    for path in ["/__platform/other", "/__platform/", "/__PLATFORM/login"] {
        let _ = dev.get(path).await.problem(404);
    }
    let head = dev.send(Method::HEAD, "/__platform/login", &[]).await;
    assert_eq!((head.status.as_u16(), head.body.as_str()), (200, ""));
}
