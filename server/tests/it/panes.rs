//! Panes of the Build page: who may open one, what its session is for, and what its conditions do.

use std::time::Instant;

use platform_protocol::names::Environment;
use platform_server::auth::panes::SLOW;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::caller::Caller;
use crate::support::{Answer, TestApp, send};

const PANE: &str = "pane-1--dev-game";
const ENTRANCE: &str = "/__platform/pane";
const TOKEN: &str = "/__platform/pane/token";
const SECOND: i64 = 1_000;

/// Returns the session of a pane, from the project API.
async fn session(owner: &Caller<'_>, wish: Value) -> String {
    let answer = owner.post("/api/projects/game/panes", wish).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let answer: Value = answer.json();
    answer["session"].as_str().unwrap().to_owned()
}

/// Begins a session as the Build page does.
fn begin(app: &TestApp, label: &str, session: &str) -> RequestBuilder {
    app.request(Method::POST, label, ENTRANCE)
        .header("origin", app.running.state.platform.origin.to_string())
        .header("sec-fetch-site", "same-site")
        .body(session.to_owned())
}

/// Returns the cookie of a browser in whose first pane test user 1 plays under `condition`.
async fn cookie(owner: &Caller<'_>, condition: &str) -> String {
    let wish = json!({ "pane": 1, "number": 1, "condition": condition });
    let session = session(owner, wish).await;
    let answer = send(begin(owner.app, PANE, &session)).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{answer:?}");
    format!("platform-pane={session}")
}

/// Requests a token as the game in the pane does.
async fn token(app: &TestApp, cookie: &str) -> Answer {
    let request = app.request(Method::POST, PANE, TOKEN);
    let request = request.header("origin", app.origin(PANE));
    let request = request.header("sec-fetch-site", "same-origin");
    send(request.header("cookie", cookie)).await
}

/// Opens an address as a browser does, in a tab or a frame.
async fn navigate(app: &TestApp, label: &str, path: &str, cookie: &str) -> Answer {
    let navigation = app.get(label, path).header("cookie", cookie);
    let navigation = navigation
        .header("sec-fetch-mode", "navigate")
        .header("accept", "text/html");
    send(navigation).await
}

async fn page(app: &TestApp, path: &str, cookie: &str) -> Answer {
    send(app.get(PANE, path).header("cookie", cookie)).await
}

/// Starts a backend that responds with 200 to everything, and names the origin that it was told.
async fn backend() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
            let lines = head
                .lines()
                .filter(|line| line.starts_with("origin:") || line.starts_with("cookie:"));
            let body = lines.collect::<Vec<_>>().join("|");
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn a_pane_plays_its_own_test_player() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let wish = json!({ "pane": 1.0, "number": 3, "guest": true });
    let answer: Value = owner.post("/api/projects/game/panes", wish).await.json();
    assert_eq!(answer["origin"], app.origin(PANE));
    assert_eq!(answer["username"], "test-guest-3");
    assert_eq!(answer["expires_in"], 1_800);
    let session = answer["session"].as_str().unwrap();

    let begun = send(begin(&app, PANE, session)).await;
    let console = app.running.state.platform.origin.to_string();
    assert_eq!(begun.header("access-control-allow-origin"), Some(&*console));
    let set = begun.header("set-cookie").unwrap();
    assert!(set.starts_with(&format!(
        "platform-pane={session}; HttpOnly; SameSite=Strict"
    )));

    let cookie = format!("platform-pane={session}");
    let given = token(&app, &cookie).await;
    assert_eq!(given.status, StatusCode::OK);
    assert_eq!(given.header("cache-control"), Some("no-store"));
    let claims = given.claims();
    assert_eq!(answer["sub"], claims.sub);
    assert_eq!(claims.aud, "game:dev-game");
    assert!(claims.is_anon);

    let index = page(&app, "/", &cookie).await;
    assert_eq!(index.status, StatusCode::OK);
    let policy = index.header("content-security-policy").unwrap();
    assert_eq!(policy, format!("frame-ancestors {console}"));
    let runtime = page(&app, "/__platform/runtime.js", &cookie).await;
    let runtime = runtime.text();
    let auth_url = format!("\"{}{ENTRANCE}\"", app.origin(PANE));
    assert!(runtime.contains(&auth_url), "it asks the pane for tokens");
    assert!(!runtime.contains(&app.origin("auth")));
}

#[tokio::test]
async fn a_session_is_for_one_pane_of_one_project_and_half_an_hour() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let session = session(&owner, json!({ "pane": 1, "number": 1 })).await;
    let cookie = format!("platform-pane={session}");
    for label in ["pane-2--dev-game", "pane-1--dev-demo"] {
        let refused = send(begin(&app, label, &session)).await;
        assert_eq!(refused.problem(), "not-allowed", "{label}");
        assert!(refused.header("set-cookie").is_none());
        let closed = send(app.get(label, "/").header("cookie", &cookie)).await;
        assert_eq!(closed.problem(), "not-allowed", "{label}");
    }
    for label in ["pane-5--dev-game", "pane-1--game", "pane-1--dev-nothing"] {
        let nowhere = send(begin(&app, label, &session)).await;
        assert_eq!(nowhere.problem(), "unknown-host", "{label}");
    }
    // Neither is a token of the other's kind.
    let game_token = token(&app, &cookie).await.token();
    for wrong in [&game_token, &owner.token, &"x".to_owned()] {
        let refused = send(begin(&app, PANE, wrong)).await;
        assert_eq!(refused.problem(), "not-allowed");
    }
    let call = send(owner.with_token(&session).ask(Method::GET, "/api/projects")).await;
    assert_eq!(call.problem(), "not-signed-in");

    app.clock.advance(30 * 60 * SECOND + 61 * SECOND);
    assert_eq!(token(&app, &cookie).await.problem(), "session-expired");
    assert_eq!(page(&app, "/", &cookie).await.problem(), "not-allowed");
}

#[tokio::test]
async fn who_may_no_longer_develop_gets_no_token_in_an_open_pane() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let (ada, admin) = (Caller::account(&app).await, Caller::admin(&app).await);
    let invitation = json!({ "role": "developer" });
    let invitation = owner.post("/api/projects/game/invitations", invitation);
    let invitation: Value = invitation.await.json();
    let (_, secret) = invitation["link"]
        .as_str()
        .unwrap()
        .split_once('#')
        .unwrap();
    let joined = ada.post("/api/invitations/accept", json!({ "secret": secret }));
    assert_eq!(joined.await.status, StatusCode::OK);
    let own = cookie(&owner, "none").await;
    let open = cookie(&ada, "none").await;
    assert_eq!(token(&app, &open).await.status, StatusCode::OK);

    let person = format!("/api/projects/game/people/{}", ada.sub);
    for (role, expected) in [("viewer", 401), ("developer", 200)] {
        let changed = owner.put(&person, json!({ "role": role })).await;
        assert_eq!(changed.status, StatusCode::OK, "{changed:?}");
        assert_eq!(token(&app, &open).await.status, expected, "{role}");
    }
    let removed = send(owner.ask(Method::DELETE, &person)).await;
    assert_eq!(removed.status, StatusCode::OK, "{removed:?}");
    assert_eq!(token(&app, &open).await.problem(), "session-expired");
    assert_eq!(token(&app, &own).await.status, StatusCode::OK);

    let open = cookie(&admin, "none").await;
    assert_eq!(token(&app, &open).await.status, StatusCode::OK);
    app.clock.advance(15 * 60 * SECOND + 1);
    assert_eq!(token(&app, &open).await.problem(), "session-expired");
    assert_eq!(token(&app, &own).await.status, StatusCode::OK);
    let sub = owner.sub.simple();
    app.sql(&format!("DELETE FROM sessions WHERE player = X'{sub}'"));
    assert_eq!(token(&app, &own).await.problem(), "session-expired");
}

#[tokio::test]
async fn no_other_page_begins_a_session_or_gets_a_token() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let session = session(&owner, json!({ "pane": 1, "number": 1 })).await;
    let cookie = format!("platform-pane={session}");
    for origin in [app.origin("demo"), app.origin(PANE), app.origin("auth")] {
        let request = app.request(Method::POST, PANE, ENTRANCE);
        let request = request.header("origin", &origin).body(session.clone());
        let refused = send(request).await;
        assert_eq!(refused.problem(), "unknown-origin", "{origin}");
        assert!(refused.header("access-control-allow-origin").is_none());
        assert!(refused.header("set-cookie").is_none());
    }
    let ask = |origin: Option<&str>, site: &'static str| {
        let request = app.request(Method::POST, PANE, TOKEN);
        let request = request.header("cookie", &cookie);
        let request = request.header("sec-fetch-site", site);
        send(match origin {
            Some(origin) => request.header("origin", origin),
            None => request,
        })
    };
    let (own, other) = (app.origin(PANE), app.origin("pane-2--dev-game"));
    for (origin, site) in [
        (Some(&*other), "same-site"),
        (Some(&*other), "same-origin"),
        (Some(&*own), "same-site"),
        (Some("null"), "cross-site"),
        (None, "same-origin"),
    ] {
        let refused = ask(origin, site).await;
        assert_eq!(refused.problem(), "unknown-origin", "{origin:?} {site}");
    }
    // The auth service knows no panes.
    let request = app.request(Method::POST, "auth", "/token");
    let refused = send(request.header("origin", &own)).await;
    assert_eq!(refused.problem(), "unknown-origin");
}

#[tokio::test]
async fn a_wish_that_cannot_be_meant_is_refused() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    for wish in [
        json!({ "pane": 0, "number": 1 }),
        json!({ "pane": 5, "number": 1 }),
        json!({ "pane": 1.5, "number": 1 }),
        json!({ "pane": 1, "number": 11 }),
        json!({ "pane": 1, "number": 1, "condition": "rain" }),
        json!({ "pane": 1, "number": 1, "player": "me" }),
    ] {
        let refused = owner.post("/api/projects/game/panes", wish.clone()).await;
        assert_eq!(refused.problem(), "invalid-request", "{wish}");
    }
    let stranger = Caller::account(&app).await;
    let wish = json!({ "pane": 1, "number": 1 });
    let refused = stranger.post("/api/projects/game/panes", wish).await;
    assert_eq!(refused.problem(), "not-allowed");
}

#[tokio::test]
async fn the_conditions_of_tokens_are_met_at_the_exchange() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    for (condition, problem) in [
        ("session-expired", "session-expired"),
        ("account-suspended", "account-suspended"),
        ("guest-limit-reached", "guest-limit-reached"),
    ] {
        let cookie = cookie(&owner, condition).await;
        assert_eq!(token(&app, &cookie).await.problem(), problem);
        assert_eq!(page(&app, "/", &cookie).await.status, StatusCode::OK);
    }
    let now = u64::try_from(crate::support::NOW / SECOND).unwrap();
    let expired = cookie(&owner, "token-expired").await;
    let claims = token(&app, &expired).await.claims();
    assert_eq!((claims.iat, claims.exp), (now - 8_100, now - 7_200));
    let wrong = cookie(&owner, "wrong-clock").await;
    let given = token(&app, &wrong).await;
    let claims = given.claims();
    assert_eq!((claims.iat, claims.exp), (now + 7_200, now + 900));
    // The platform's own endpoints refuse them as a backend does.
    let beat = app.request(Method::POST, PANE, "/__platform/heartbeat");
    let beat = beat
        .header("content-type", "application/json")
        .header("cookie", &wrong)
        .bearer_auth(given.token())
        .body(json!({ "page": "AAAAAAAAAAAAAAAAAAAAAA" }).to_string());
    let later = beat.try_clone().unwrap();
    assert_eq!(send(beat).await.problem(), "not-signed-in");
    // Nor do they when their own clock has come to the time of issue.
    app.clock.advance(7_200 * SECOND);
    assert_eq!(send(later).await.problem(), "not-signed-in");
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "a slow pane lets real time pass, whatever clock tests move"
)]
async fn the_conditions_of_the_network_are_met_by_every_request() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let backends = &app.running.state.hosting.backends;
    backends.add("game", Environment::Dev, backend().await);

    let none = cookie(&owner, "none").await;
    let request = app.get(PANE, "/api/x").header("origin", app.origin(PANE));
    let answer = send(request.header("cookie", format!("a=1; {none}"))).await;
    let expected = format!("cookie: a=1|origin: {}", app.origin("dev-game"));
    let mut lines: Vec<_> = answer.text().split('|').map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines.join("|"), expected);

    let refused = cookie(&owner, "backend-unauthorized").await;
    let answer = page(&app, "/api/x", &refused).await;
    assert_eq!(answer.problem(), "not-signed-in");
    assert_eq!(page(&app, "/", &refused).await.status, StatusCode::OK);

    let offline = cookie(&owner, "offline").await;
    for path in ["/", "/api/x", "/__platform/runtime.js"] {
        let answer = page(&app, path, &offline).await;
        assert_eq!(answer.header("location"), Some("data:,offline"), "{path}");
    }
    let lost = token(&app, &offline).await;
    assert_eq!(lost.header("location"), Some("data:,offline"));
    assert_eq!(navigate(&app, PANE, "/", &offline).await.status, 503);

    let slow = cookie(&owner, "slow").await;
    let began = Instant::now();
    let (answer, given) = tokio::join!(page(&app, "/api/x", &slow), token(&app, &slow));
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(given.status, StatusCode::OK);
    assert!(began.elapsed() >= SLOW, "{:?}", began.elapsed());
}

#[tokio::test]
async fn the_console_alone_shows_the_error_pages_of_a_pane_in_a_frame() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let none = cookie(&owner, "none").await;
    let offline = cookie(&owner, "offline").await;
    let console = app.running.state.platform.origin.to_string();
    for (label, path, cookie, status, framed) in [
        (PANE, "/", &*offline, 503, true),
        (PANE, "/", "a=1", 403, true),
        (PANE, "/nothing", &none, 404, true),
        (PANE, "/__platform/nothing", &none, 404, true),
        ("dev-game", "/nothing", "a=1", 404, false),
        ("auth", "/nothing", "a=1", 404, false),
        ("pane-5--dev-game", "/", "a=1", 404, false),
    ] {
        let answer = navigate(&app, label, path, cookie).await;
        assert_eq!(answer.status, status, "{label} {path}");
        let policy = answer.header("content-security-policy").unwrap();
        let (_, ancestors) = policy.split_once("; frame-ancestors ").unwrap();
        let expected = if framed { &*console } else { "'none'" };
        assert_eq!(ancestors, expected, "{label} {path}");
        // A link that opened in the frame would lead to a page that refuses it.
        let leaves = answer.text().contains("<base target=\"_blank\">");
        assert_eq!(leaves, framed, "{label} {path}");
    }
}

#[tokio::test]
async fn the_log_knows_the_player_of_a_pane_without_a_token() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let cookie = cookie(&owner, "offline").await;
    let (own, dev) = (app.origin(PANE), app.origin("dev-game"));
    let at = |origin: &str| format!("Error: lost\n    at play ({origin}/main.js:1:2)");
    let record = json!({
        "time": 1,
        "level": "error",
        "source": "error",
        "message": "lost",
        "url": format!("{own}/main.js"),
        "stack": at(&own),
    });
    let batch = json!({ "page": "AAAAAAAAAAAAAAAAAAAAAA", "records": [record] });
    let sent = app.request(Method::POST, PANE, "/__platform/logs");
    let sent = sent
        .header("content-type", "application/json")
        .header("cookie", &cookie)
        .body(batch.to_string());
    assert_eq!(send(sent).await.status, StatusCode::NO_CONTENT);
    let log: Value = owner.get("/api/projects/game/logs?env=dev").await.json();
    let wish = json!({ "pane": 2, "number": 1 });
    let player: Value = owner.post("/api/projects/game/panes", wish).await.json();
    let logged = &log["records"][0];
    assert_eq!(logged["player"], player["sub"]);
    // Its scripts are those of the dev environment.
    assert_eq!(logged["url"], format!("{dev}/main.js"));
    assert_eq!(logged["stack"], at(&dev));
}

#[tokio::test]
async fn signing_in_or_out_leads_back_to_the_game_in_the_pane() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let cookie = cookie(&owner, "none").await;
    let own = app.origin(PANE);
    for (redirect, expected) in [
        (format!("{own}/level?a=1"), format!("{own}/level?a=1")),
        ("https://evil.example/".to_owned(), "/".to_owned()),
        (format!("{own}.evil.example/"), "/".to_owned()),
        ("javascript:alert(1)".to_owned(), "/".to_owned()),
    ] {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("redirect", &redirect)
            .finish();
        let path = format!("{ENTRANCE}/login?{query}");
        let answer = page(&app, &path, &cookie).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
        assert_eq!(answer.header("location"), Some(&*expected), "{redirect}");
    }
    let request = app.request(Method::POST, PANE, "/__platform/pane/sign-out");
    let request = request.header("origin", &own).header("cookie", &cookie);
    assert_eq!(send(request).await.status, StatusCode::NO_CONTENT);
    assert_eq!(token(&app, &cookie).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_pane_of_a_game_that_is_taken_down_shows_nothing() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let cookie = cookie(&owner, "none").await;
    let disabled = owner.post("/api/projects/game/disable", json!({})).await;
    assert_eq!(disabled.status, StatusCode::OK, "{disabled:?}");
    assert_eq!(page(&app, "/", &cookie).await.problem(), "project-disabled");
    assert_eq!(token(&app, &cookie).await.problem(), "project-disabled");
    let wish = json!({ "pane": 1, "number": 1 });
    let refused = owner.post("/api/projects/game/panes", wish).await;
    assert_eq!(refused.problem(), "project-disabled");
}
