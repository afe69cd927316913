//! `POST /__platform/heartbeat`: counting players.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{TestApp, send};

const PATH: &str = "/__platform/heartbeat";

/// The id of a page, 22 characters.
fn page(number: u8) -> String {
    format!("{}AAAAAAAAAAAAAAAAAAAAA", char::from(b'a' + number))
}

/// A heartbeat to the address `label`.
fn beat(app: &TestApp, label: &str, body: &Value) -> RequestBuilder {
    app.request(Method::POST, label, PATH)
        .header("content-type", "application/json")
        .body(body.to_string())
}

/// The bearer header of a new guest at the address `label`, with a cookie that came back.
async fn bearer(app: &TestApp, label: &str) -> String {
    format!("Bearer {}", app.new_player(label).await.0.token())
}

async fn playing(app: &TestApp, audience: &str) -> usize {
    let state = &app.running.state;
    let playing = state
        .games
        .presence
        .playing(audience, state.platform.clock.now());
    playing.await.unwrap()
}

#[tokio::test]
async fn a_beat_counts_its_player_in_its_environment() {
    let app = TestApp::start().await;
    let one = bearer(&app, "demo").await;
    for tab in [1, 2, 3] {
        let body = json!({"page": page(tab), "later": [1]});
        let answer = send(beat(&app, "demo", &body).header("authorization", &one)).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (204, ""));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert!(answer.header("x-request-id").is_some());
    }
    assert_eq!(playing(&app, "game:demo").await, 1);
    let other = bearer(&app, "dev-demo").await;
    let request = beat(
        &app,
        "dev-demo",
        &json!({"page": page(4), "leaving": false}),
    );
    assert_eq!(
        send(request.header("authorization", &other)).await.status,
        204
    );
    assert_eq!(playing(&app, "game:demo").await, 1);
    assert_eq!(playing(&app, "game:dev-demo").await, 1);
    app.clock.advance(75_001);
    assert_eq!(playing(&app, "game:demo").await, 0);
}

#[tokio::test]
async fn a_page_that_says_farewell_stops_counting_with_and_without_a_token() {
    let app = TestApp::start().await;
    let bearer = bearer(&app, "demo").await;
    for tab in [1, 2] {
        let request = beat(&app, "demo", &json!({"page": page(tab), "leaving": null}));
        let answer = send(request.header("authorization", &bearer)).await;
        assert_eq!(answer.status, 204);
    }
    let leave = |tab| beat(&app, "demo", &json!({"page": page(tab), "leaving": true}));
    let with = send(leave(1).header("authorization", &bearer)).await;
    assert_eq!(
        (with.status.as_u16(), playing(&app, "game:demo").await),
        (204, 1)
    );
    let without = send(leave(2)).await;
    assert_eq!(
        (without.status.as_u16(), playing(&app, "game:demo").await),
        (204, 0)
    );
    // A request about an unknown page needs a token.
    assert_eq!(send(leave(2)).await.problem(), "not-signed-in");
    let again = send(leave(2).header("authorization", &bearer)).await;
    assert_eq!(again.status, 204);
}

#[tokio::test]
async fn a_farewell_at_another_address_changes_nothing() {
    let app = TestApp::start().await;
    let bearer = bearer(&app, "demo").await;
    let request = beat(&app, "demo", &json!({"page": page(1)}));
    send(request.header("authorization", &bearer)).await;
    let request = beat(&app, "dev-demo", &json!({"page": page(1), "leaving": true}));
    assert_eq!(send(request).await.problem(), "not-signed-in");
    assert_eq!(playing(&app, "game:demo").await, 1);
}

#[tokio::test]
async fn only_a_good_token_of_this_address_counts() {
    let app = TestApp::start().await;
    let good = bearer(&app, "demo").await;
    let other = bearer(&app, "dev-demo").await;
    let cut = &good[..good.len() - 1];
    let rows = [
        ("no token", None),
        ("another audience's token", Some(other.as_str())),
        ("a token that was cut", Some(cut)),
        ("no token after the scheme", Some("Bearer")),
        ("another scheme", Some("Basic YTpi")),
        ("not a token at all", Some("Bearer abc")),
    ];
    for (name, authorization) in rows {
        let mut request = beat(&app, "demo", &json!({"page": page(1)}));
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let answer = send(request).await;
        assert_eq!(answer.status, 401, "{name}");
        assert_eq!(answer.problem(), "not-signed-in", "{name}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{name}");
    }
    let twice = beat(&app, "demo", &json!({"page": page(1)}))
        .header("authorization", &good)
        .header("authorization", &good);
    assert_eq!(send(twice).await.status, 401, "two tokens are none");
    assert_eq!(playing(&app, "game:demo").await, 0);
    let request = || beat(&app, "demo", &json!({"page": page(1)})).header("authorization", &good);
    assert_eq!(send(request()).await.status, 204);
    app.clock.advance(960_000);
    assert_eq!(send(request()).await.status, 401, "a token ends");
}

#[tokio::test]
async fn requests_of_another_shape_are_refused_each_with_its_problem() {
    let app = TestApp::start().await;
    let bearer = bearer(&app, "demo").await;
    let good = json!({"page": page(1)}).to_string();
    let long = format!("{good}{}", " ".repeat(1_025 - good.len()));
    let fits = format!("{good}{}", " ".repeat(1_024 - good.len()));
    let json = "application/json";
    let rows: [(&str, &str, &str, u16, &str); 13] = [
        ("text", "text/plain", &good, 415, "unsupported-media-type"),
        ("no type", "", &good, 415, "unsupported-media-type"),
        ("too long", json, &long, 413, "payload-too-large"),
        ("just short enough", json, &fits, 204, ""),
        (
            "with a charset",
            "application/json; charset=utf-8",
            &good,
            204,
            "",
        ),
        ("nothing", json, "", 400, "invalid-request"),
        ("half a document", json, "{", 400, "invalid-request"),
        ("no object", json, "[]", 400, "invalid-request"),
        ("no page", json, "{}", 400, "invalid-request"),
        (
            "a page that is a number",
            json,
            r#"{"page":1}"#,
            400,
            "invalid-request",
        ),
        (
            "a short page",
            json,
            r#"{"page":"abc"}"#,
            400,
            "invalid-request",
        ),
        (
            "a page with other letters",
            json,
            r#"{"page":"AAAAAAAAAAAAAAAAAAAA+A"}"#,
            400,
            "invalid-request",
        ),
        (
            "leaving that is a text",
            json,
            r#"{"page":"AAAAAAAAAAAAAAAAAAAAAA","leaving":"true"}"#,
            400,
            "invalid-request",
        ),
    ];
    for (name, content_type, body, status, problem) in rows {
        let mut request = app
            .request(Method::POST, "demo", PATH)
            .header("authorization", &bearer)
            .body(body.to_owned());
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        let answer = send(request).await;
        assert_eq!(answer.status, status, "{name}: {answer:?}");
        if status != 204 {
            assert_eq!(answer.problem(), problem, "{name}");
        }
    }
    let answer = send(app.get("demo", PATH)).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("allow")),
        (405, Some("POST"))
    );
    let elsewhere = send(app.request(Method::POST, "auth", PATH)).await;
    assert_eq!(elsewhere.problem(), "not-found");
}

#[tokio::test]
async fn another_site_may_not_count_players() {
    let app = TestApp::start().await;
    let bearer = bearer(&app, "demo").await;
    for (site, status) in [("cross-site", 403), ("same-origin", 204), ("none", 204)] {
        let request = beat(&app, "demo", &json!({"page": page(1)}))
            .header("authorization", &bearer)
            .header("sec-fetch-site", site);
        let answer = send(request).await;
        assert_eq!(answer.status, status, "{site}");
        if status == 403 {
            assert_eq!(answer.problem(), "not-allowed");
            assert_eq!(playing(&app, "game:demo").await, 0);
        }
    }
}

#[tokio::test]
async fn a_page_of_a_suspended_player_is_told_within_seconds_while_its_token_lives() {
    let app = TestApp::start().await;
    let bearer = bearer(&app, "demo").await;
    let beat = async || {
        let request = beat(&app, "demo", &json!({"page": page(1)}));
        send(request.header("authorization", &bearer)).await
    };
    assert_eq!(beat().await.status, 204);
    let state = &app.running.state;
    let player = state
        .auth
        .tokens
        .verify(bearer.trim_start_matches("Bearer "), "game:demo")
        .unwrap()
        .player;
    app.suspend(player, Some("Why.")).await;
    app.learn_who_may_play().await;
    let answer = beat().await;
    assert_eq!(
        (answer.status.as_u16(), answer.problem()),
        (403, "account-suspended".to_owned())
    );
    assert!(answer.text().contains("\"Why.\""), "{}", answer.text());
    app.unsuspend(player).await;
    app.learn_who_may_play().await;
    assert_eq!(beat().await.status, 204);
}

#[tokio::test]
async fn a_page_whose_player_signed_out_elsewhere_is_told_with_its_next_beat() {
    let app = TestApp::start().await;
    let mint = async |cookie: Option<&str>| {
        let mut request = app
            .request(Method::POST, "auth", "/token")
            .header("origin", app.origin("demo"));
        if let Some(cookie) = cookie {
            request = request.header("cookie", cookie);
        }
        send(request).await
    };
    let beat = async |token: &str, leaving: bool| {
        let body = json!({"page": page(1), "leaving": leaving});
        let request = beat(&app, "demo", &body);
        send(request.header("authorization", format!("Bearer {token}"))).await
    };
    let first = mint(None).await;
    let cookie = first.cookie().unwrap().to_owned();
    let old = first.token();
    let stranger = mint(None).await.token();
    assert_eq!(beat(&old, false).await.status, 204);

    // In a tab with another game.
    app.clock.advance(2_000);
    let sign_out = app
        .request(Method::POST, "auth", "/sign-out")
        .header("origin", app.origin("dev-demo"))
        .header("cookie", &cookie);
    assert_eq!(send(sign_out).await.status, 204);
    app.learn_who_may_play().await;
    let told = beat(&old, false).await;
    assert_eq!(
        (told.status.as_u16(), told.problem()),
        (401, "not-signed-in".to_owned())
    );
    assert_eq!(told.header("www-authenticate"), Some("Bearer"));
    // The final heartbeat is accepted all the same, and other players are not affected.
    assert_eq!(beat(&old, true).await.status, 204);
    assert_eq!(beat(&stranger, false).await.status, 204);
    // The new player of the page can play on.
    let next = mint(Some(&cookie)).await;
    assert_ne!(next.claims().sub, first.claims().sub);
    assert_eq!(beat(&next.token(), false).await.status, 204);
}

#[tokio::test]
async fn a_page_in_another_browser_of_the_player_plays_on_with_a_new_token() {
    let app = TestApp::start().await;
    let here = app.sign_in("ann", None).await;
    let there = app.sign_in("ann", None).await;
    let mint = async |cookie: &str| {
        let request = app
            .request(Method::POST, "auth", "/token")
            .header("origin", app.origin("demo"))
            .header("cookie", cookie);
        send(request).await.token()
    };
    let beat = async |token: &str| {
        let request = beat(&app, "demo", &json!({"page": page(1)}));
        send(request.header("authorization", format!("Bearer {token}"))).await
    };
    let old = mint(&there).await;
    app.clock.advance(2_000);
    app.sign_out(&here).await;
    app.learn_who_may_play().await;
    assert_eq!(beat(&old).await.problem(), "not-signed-in");
    let new = mint(&there).await;
    assert_eq!(beat(&new).await.status, 204);
}
