//! `POST /token`: who may call it, and with what.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::claims::PrincipalKind;
use reqwest::Method;
use serde_json::json;

use crate::caller::Caller;
use crate::support::{TestApp, send};

/// The claims of a game token, in the order of the alphabet.
const NINE: [&str; 9] = [
    "aud",
    "exp",
    "iat",
    "is_anon",
    "iss",
    "jti",
    "principal_kind",
    "sub",
    "username",
];
/// The browser's `Sec-Fetch-Site` of a request.
const SITES: [Option<&str>; 5] = [
    Some("same-origin"),
    Some("same-site"),
    Some("cross-site"),
    Some("none"),
    None,
];
/// Bodies whose content type needs no preflight, and one that does.
const BODIES: [&[Option<&str>]; 3] = [
    &[None, Some("application/json")],
    &[Some("text/plain")],
    &[Some("application/x-www-form-urlencoded")],
];

/// Each origin, whether it is allowed, and the rule for it.
fn origins(app: &TestApp) -> [(Option<String>, bool, &'static str); 9] {
    let demo = app.origin("demo");
    let port = app.port();
    [
        (
            Some(demo.clone()),
            true,
            "a deployed game's exact origin may ask",
        ),
        (
            Some("http://other.example".into()),
            false,
            "another site may not ask",
        ),
        (Some("null".into()), false, "an opaque origin is nobody's"),
        (None, false, "without an origin there is no audience"),
        (
            Some(demo.replace("http:", "https:")),
            false,
            "another scheme is another origin",
        ),
        (
            Some(demo.replace(&port.to_string(), "1")),
            false,
            "another port is another origin",
        ),
        (
            Some(demo.replace("localhost", "localhost.")),
            false,
            "a name with a dot at its end is another name",
        ),
        (
            Some(demo.replace("demo", "DEMO")),
            false,
            "browsers write origins in lower case, so capitals were forged",
        ),
        (
            Some(format!("{demo}.evil.example")),
            false,
            "the whole origin counts, not its beginning",
        ),
    ]
}

/// 5 × 9 × 3 = 135 cells. `Sec-Fetch-Site` and `Content-Type` change nothing: the browser sets
/// `Origin` and no page can forge it, and the body is not read.
#[tokio::test]
async fn the_origin_alone_decides_in_all_135_cells() {
    let app = TestApp::start().await;
    let mut cells = 0;
    for site in SITES {
        for (origin, allowed, rule) in origins(&app) {
            for content_types in BODIES {
                cells += 1;
                for content_type in content_types {
                    let players = app.count_players();
                    let mut request = app.request(Method::POST, "auth", "/token");
                    if let Some(site) = site {
                        request = request.header("sec-fetch-site", site);
                    }
                    if let Some(origin) = &origin {
                        request = request.header("origin", origin);
                    }
                    if let Some(content_type) = content_type {
                        request = request.header("content-type", *content_type).body("{}");
                    }
                    let answer = send(request).await;
                    let cell = format!("{rule}: {site:?} {origin:?} {content_type:?}");
                    let allow_origin = answer.header("access-control-allow-origin");
                    assert_eq!(answer.header("vary"), Some("Origin"), "{cell}");
                    if allowed {
                        assert_eq!(answer.status, 200, "{cell}");
                        assert_eq!(allow_origin, origin.as_deref(), "{cell}");
                        assert!(answer.cookie().is_some(), "{cell}");
                        assert_eq!(app.count_players(), players + 1, "{cell}");
                    } else {
                        assert_eq!(answer.status, 403, "{cell}");
                        assert_eq!(answer.problem(), "unknown-origin", "{cell}");
                        assert_eq!(allow_origin, None, "{cell}");
                        assert_eq!(
                            answer.header("access-control-allow-credentials"),
                            None,
                            "{cell}"
                        );
                        assert_eq!(answer.header("set-cookie"), None, "{cell}");
                        assert_eq!(app.count_players(), players, "no guest was made: {cell}");
                    }
                }
            }
        }
    }
    assert_eq!(cells, 135);
}

#[tokio::test]
async fn two_origins_in_one_request_are_none() {
    let app = TestApp::start().await;
    let answer = send(app.post_token().header("origin", app.origin("dev-demo"))).await;
    assert_eq!(answer.problem(), "unknown-origin");
    assert_eq!(answer.header("access-control-allow-origin"), None);
    assert_eq!(app.count_players(), 0);
}

#[tokio::test]
async fn the_audience_follows_from_the_origin() {
    let app = TestApp::start().await;
    let platform = app.running.origin.clone();
    for (origin, audience, life) in [
        (app.origin("demo"), "game:demo", 900),
        (app.origin("dev-demo"), "game:dev-demo", 900),
        (platform, "platform:console", 300),
    ] {
        let request = app
            .request(Method::POST, "auth", "/token")
            .header("origin", &origin);
        let answer = send(request).await;
        let claims = answer.claims();
        assert_eq!(claims.aud, audience);
        assert_eq!(claims.iss, app.origin("auth"));
        assert_eq!((claims.is_anon, claims.exp - claims.iat), (true, life));
        assert_eq!(claims.iat, 1_767_225_600);
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some(origin.as_str())
        );
        assert_eq!(
            answer.header("access-control-allow-credentials"),
            Some("true")
        );
        assert_eq!(
            answer.header("access-control-expose-headers"),
            Some("X-Request-Id, Retry-After")
        );
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let body: serde_json::Value = answer.json();
        assert_eq!(
            (&body["token_type"], &body["expires_in"]),
            (&"Bearer".into(), &life.into())
        );
    }
    for label in ["auth", "nobody", "x.demo"] {
        let request = app
            .request(Method::POST, "auth", "/token")
            .header("origin", app.origin(label));
        assert_eq!(send(request).await.problem(), "unknown-origin", "{label}");
    }
}

#[tokio::test]
async fn an_environment_without_a_deployment_gets_no_tokens() {
    let app = TestApp::start().await;
    app.sql("INSERT INTO projects (slug, created_at) VALUES ('empty', 1)");
    app.learn_games().await;
    let request = app
        .request(Method::POST, "auth", "/token")
        .header("origin", app.origin("empty"));
    assert_eq!(send(request).await.problem(), "unknown-origin");
}

#[tokio::test]
async fn errors_carry_cors_headers_for_allowed_origins() {
    let app = TestApp::start().await;
    let origin = app.origin("demo");
    let too_large = app.post_token().body("x".repeat(2_000));
    let wrong_method = app.get("auth", "/token").header("origin", &origin);
    let head = app
        .request(Method::HEAD, "auth", "/token")
        .header("origin", &origin);
    for (request, status) in [(too_large, 413), (wrong_method, 405), (head, 405)] {
        let answer = send(request).await;
        assert_eq!(answer.status, status);
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some(origin.as_str())
        );
        if status == 405 {
            assert_eq!(answer.header("allow"), Some("POST,OPTIONS"));
        }
    }
}

#[tokio::test]
async fn a_preflight_is_answered_for_allowed_origins_alone() {
    let app = TestApp::start().await;
    let preflight = |origin: String| {
        app.request(Method::OPTIONS, "auth", "/token")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "content-type")
    };
    let answer = send(preflight(app.origin("demo"))).await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-methods"), Some("POST"));
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some(app.origin("demo").as_str())
    );
    let answer = send(preflight("http://evil.example".into())).await;
    assert_eq!(answer.problem(), "unknown-origin");
    assert_eq!(answer.header("access-control-allow-methods"), None);
}

#[tokio::test]
async fn the_games_backend_takes_the_token_of_its_environment_alone() {
    let app = TestApp::start().await;
    let answer = send(app.post_token()).await;
    let bearer = format!("Bearer {}", answer.token());
    let me = send(app.get("demo", "/api/me").header("authorization", &bearer)).await;
    assert_eq!(me.status, 200, "{me:?}");
    assert_eq!(me.json::<serde_json::Value>()["sub"], answer.claims().sub);
    let other = send(
        app.get("dev-demo", "/api/me")
            .header("authorization", &bearer),
    )
    .await;
    assert_eq!(other.status, 401);
}

#[tokio::test]
async fn too_many_new_guests_are_told_to_come_back() {
    let app = TestApp::with(|config| {
        config.guest_rate = platform_server::config::Config::default().guest_rate;
    })
    .await;
    let first = send(app.post_token()).await;
    for _ in 1..30 {
        assert_eq!(send(app.post_token()).await.status, 200);
    }
    let refused = send(app.post_token()).await;
    assert_eq!(refused.status, 429);
    assert_eq!(
        refused.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(
        refused.header("access-control-allow-origin"),
        Some(app.origin("demo").as_str())
    );
    assert_eq!(app.count_players(), 30);
    // An existing player is not counted.
    let again = send(app.post_token().header("cookie", first.cookie().unwrap())).await;
    assert_eq!(again.claims().sub, first.claims().sub);
    app.clock.advance(1_000);
    assert_eq!(send(app.post_token()).await.status, 200);
    assert_eq!(send(app.post_token()).await.status, 429);
}

/// Creates a guest whose cookie has come back once.
async fn guest(app: &TestApp) -> String {
    let first = send(app.post_token()).await;
    let cookie = first.cookie().unwrap().to_owned();
    let again = send(app.post_token().header("cookie", &cookie)).await;
    assert_eq!(again.claims().sub, first.claims().sub);
    cookie
}

#[tokio::test]
async fn a_loop_that_keeps_no_cookie_locks_nobody_out_and_fills_no_store() {
    let defaults = platform_server::config::Config::default();
    let app = TestApp::with(|config| {
        config.guest_rate = defaults.guest_rate;
        config.guests_per_address = defaults.guests_per_address;
    })
    .await;
    let other = app.origin("dev-demo");
    let mut cookies = Vec::new();
    let mut made = 0;
    for round in 0..10 {
        for _ in 0..40 {
            made += i32::from(send(app.post_token()).await.status == 200);
        }
        // A visitor of another game, during the flood, who waits as long as each response says.
        let visit = || {
            app.request(Method::POST, "auth", "/token")
                .header("origin", &other)
        };
        let mut first = send(visit()).await;
        let mut waited = 0;
        while first.status == 429 {
            let wait: u32 = first.header("retry-after").unwrap().parse().unwrap();
            assert!(wait <= 30, "round {round}: the runtime waits no longer");
            waited += wait;
            assert!(
                waited <= 60,
                "round {round}: the game has room within a minute"
            );
            for _ in 0..wait {
                app.clock.advance(1_000);
                for _ in 0..2 {
                    made += i32::from(send(app.post_token()).await.status == 200);
                }
            }
            first = send(visit()).await;
        }
        assert_eq!(first.status, 200, "round {round}: {first:?}");
        let cookie = first.cookie().unwrap().to_owned();
        let again = send(visit().header("cookie", &cookie)).await;
        assert_eq!(again.claims().sub, first.claims().sub);
        cookies.push(cookie);
        app.clock.advance(60_000);
    }
    assert!(made >= 100, "{made}");
    assert!(app.count_players() <= 50 + 10, "{}", app.count_players());
    // And a visitor of the same game, after it.
    app.clock.advance(2 * 60_000);
    guest(&app).await;
    // Guests whose cookie never came back are removed after minutes.
    app.clock.advance(20 * 60_000);
    app.sweep_sessions().await;
    assert_eq!(app.count_players(), 11);
    assert_eq!(app.count_sessions(), 11);
    for cookie in cookies {
        let answer = send(app.post_token().header("cookie", cookie)).await;
        assert!(answer.claims().is_anon);
        assert_eq!(answer.cookie(), None, "the session is there");
    }
}

/// A server with the default limits on guests.
async fn school() -> TestApp {
    let defaults = platform_server::config::Config::default();
    TestApp::with(|config| {
        config.guest_rate = defaults.guest_rate;
        config.guests_per_address = defaults.guests_per_address;
    })
    .await
}

#[tokio::test]
async fn forty_first_visitors_of_a_school_all_play() {
    let app = school().await;
    for visitor in 0..40 {
        let first = send(app.post_token()).await;
        assert_eq!(first.status, 200, "visitor {visitor}");
        app.clock.advance(1_500);
    }
}

#[tokio::test]
async fn of_forty_first_visitors_at_once_the_rest_play_with_their_one_retry() {
    let app = school().await;
    let mut waits = Vec::new();
    for visitor in 0..40 {
        let first = send(app.post_token()).await;
        if visitor < 30 {
            assert_eq!(first.status, 200, "visitor {visitor}");
            continue;
        }
        assert_eq!(first.status, 429);
        assert_eq!(
            first.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
        let wait: i64 = first.header("retry-after").unwrap().parse().unwrap();
        assert!(wait <= 30, "the runtime waits no longer: {wait}");
        waits.push(wait);
    }
    // Each page asks once more, when the response says.
    waits.sort_unstable();
    let mut waited = 0;
    for wait in waits {
        app.clock.advance((wait - waited) * 1_000);
        waited = wait;
        assert_eq!(send(app.post_token()).await.status, 200, "after {wait} s");
    }
    // And all of them bring their cookies back and stay.
    assert_eq!(app.count_players(), 40);
}

#[tokio::test]
async fn all_games_of_an_address_share_one_rate() {
    let app = school().await;
    let ask = |label: &str| {
        app.request(Method::POST, "auth", "/token")
            .header("origin", app.origin(label))
    };
    for turn in 0..30 {
        let label = if turn % 2 == 0 { "demo" } else { "dev-demo" };
        assert_eq!(send(ask(label)).await.status, 200, "turn {turn}");
    }
    for label in ["demo", "dev-demo"] {
        let refused = send(ask(label)).await;
        assert_eq!(refused.status, 429, "{label}");
        assert!(refused.header("retry-after").is_some());
    }
}

#[tokio::test]
async fn a_new_guest_is_said_to_be_new_and_a_player_who_comes_back_is_not() {
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    assert_eq!(first.json::<serde_json::Value>()["is_new"], true);
    let cookie = first.cookie().unwrap();
    for _ in 0..2 {
        let again = send(app.post_token().header("cookie", cookie)).await;
        let json = again.json::<serde_json::Value>();
        assert_eq!(json.get("is_new"), None, "{json}");
        assert_eq!(again.claims().sub, first.claims().sub);
    }
}

#[tokio::test]
async fn a_guest_who_comes_back_after_the_sweep_is_the_same_player() {
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    let cookie = first.cookie().unwrap().to_owned();
    let sweep = async || {
        app.clock.advance(24 * 60 * 60_000);
        app.sweep_sessions().await;
    };
    sweep().await;
    assert_eq!(app.count_players(), 0);
    let ask = || send(app.post_token().header("cookie", &cookie));
    // Two simultaneous tabs are one player.
    let (one, two) = tokio::join!(ask(), ask());
    for back in [&one, &two] {
        let (now, before) = (back.claims(), first.claims());
        assert_eq!((now.sub, now.username), (before.sub, before.username));
    }
    assert_eq!(app.count_players(), 1);
    // Each gets a different cookie, and whichever the browser keeps works. From now on the guest
    // stays.
    sweep().await;
    for back in [&one, &two] {
        let fresh = back.cookie().unwrap();
        assert_ne!(fresh, cookie);
        let again = send(app.post_token().header("cookie", fresh)).await;
        assert_eq!(again.claims().sub, first.claims().sub);
    }
    // The old cookie is not valid any more.
    assert_ne!(ask().await.claims().sub, first.claims().sub);
}

#[tokio::test]
async fn a_guest_who_signed_out_comes_back_by_no_cookie_of_before() {
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    let cookie = first.cookie().unwrap().to_owned();
    let ask = || send(app.post_token().header("cookie", &cookie));
    for swept in [false, true] {
        if swept {
            app.clock.advance(24 * 60 * 60_000);
            app.sweep_sessions().await;
        }
        app.sign_out(&cookie).await;
        assert_ne!(ask().await.claims().sub, first.claims().sub);
    }
}

#[tokio::test]
async fn an_address_holds_so_many_guests_and_those_it_holds_play_on() {
    let app = TestApp::with(|config| config.guests_per_address = 50).await;
    let mut cookies = Vec::new();
    for _ in 0..50 {
        cookies.push(guest(&app).await);
    }
    let refused = send(app.post_token()).await;
    assert_eq!(
        (refused.status.as_u16(), refused.problem()),
        (429, "guest-limit-reached".to_owned())
    );
    assert_eq!(
        refused.header("access-control-allow-origin"),
        Some(app.origin("demo").as_str())
    );
    assert!(refused.cookie().is_none());
    assert_eq!(app.count_players(), 50);
    for cookie in &cookies {
        assert_eq!(
            send(app.post_token().header("cookie", cookie)).await.status,
            200
        );
    }
    // A day later only guests that have come back since then count: one of them came back half a
    // day later.
    app.clock.advance(12 * 3_600_000);
    assert_eq!(
        send(app.post_token().header("cookie", &cookies[0]))
            .await
            .status,
        200
    );
    app.clock.advance(12 * 3_600_000 + 1);
    for _ in 0..49 {
        guest(&app).await;
    }
    assert_eq!(
        send(app.post_token()).await.problem(),
        "guest-limit-reached"
    );
    assert_eq!(
        send(app.post_token().header("cookie", &cookies[1]))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_game_token_has_the_nine_claims_and_no_other() {
    let app = TestApp::start().await;
    let guest = send(app.post_token()).await.token();
    let session = app.sign_in("somebody", None).await;
    let account = send(app.post_token().header("cookie", session)).await;
    // The tokens of test players have the same claims, from `platform test-token` and from the page
    // that picks one.
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let mut tokens = vec![guest, account.token()];
    for (is_guest, name) in [(false, "test-user-3"), (true, "test-guest-3")] {
        let player = json!({ "number": 3, "guest": is_guest });
        let given = owner.post("/api/projects/game/test-tokens", player).await;
        let claims = given.claims();
        assert_eq!(claims.username, name);
        assert_eq!(claims.aud, "game:dev-game");
        assert_eq!(claims.is_anon, is_guest);
        assert_eq!(claims.principal_kind, PrincipalKind::TestUser);
        assert_eq!(claims.exp - claims.iat, 30 * 60);
        tokens.push(given.token());
    }
    for token in tokens {
        let payload = token.split('.').nth(1).unwrap();
        let payload = URL_SAFE_NO_PAD.decode(payload).unwrap();
        let claims: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&payload).unwrap();
        let mut names: Vec<&str> = claims.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, NINE);
    }
}
