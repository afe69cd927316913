//! Players over time, and the ranking.

use std::collections::BTreeMap;

use platform_server::clock::Clock as _;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{TestApp, send};

/// One player on one game's page.
struct Player {
    label: String,
    bearer: String,
    page: String,
}

impl Player {
    async fn new(app: &TestApp, label: &str, number: usize) -> Self {
        Self {
            label: label.to_owned(),
            bearer: app.new_player(label).await.0.token(),
            page: format!("{number:0>21}A"),
        }
    }

    async fn beat(&self, app: &TestApp) {
        let beat = app
            .request(Method::POST, &self.label, "/__platform/heartbeat")
            .header("content-type", "application/json")
            .bearer_auth(&self.bearer)
            .body(json!({ "page": self.page }).to_string());
        assert_eq!(send(beat).await.status, 204);
    }
}

async fn keep(app: &TestApp) {
    let (state, now) = (&app.running.state, app.clock.now());
    let presence = &*state.games.presence;
    state.players.counting.look(presence, now).await;
    state
        .players
        .counting
        .keep(&*state.platform.store, now)
        .await
        .unwrap();
    let ranking = &state.players.counting.ranking;
    ranking.refresh(&*state.platform.store, now).await.unwrap();
}

async fn ranking(app: &TestApp) -> BTreeMap<String, (u64, u64)> {
    let answer = send(app.get("", "/api/ranking")).await;
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    let games = answer.json::<Value>()["games"].as_array().unwrap().clone();
    let number = |game: &Value, name: &str| game[name].as_u64().unwrap();
    games
        .iter()
        .map(|game| {
            let numbers = (number(game, "players_now"), number(game, "players_day"));
            (game["slug"].as_str().unwrap().to_owned(), numbers)
        })
        .collect()
}

#[tokio::test]
async fn who_plays_for_a_minute_counts_in_the_ranking_and_who_only_looks_does_not() {
    let app = TestApp::start().await;
    let (one, two) = (
        Player::new(&app, "demo", 1).await,
        Player::new(&app, "demo", 2).await,
    );
    one.beat(&app).await;
    two.beat(&app).await;
    for _ in 0..2 {
        app.clock.advance(30_000);
        one.beat(&app).await;
    }
    keep(&app).await;
    assert_eq!(ranking(&app).await["demo"], (2, 1));
    let home = send(app.get("", "/")).await;
    let html = home.text();
    for part in [
        "2 playing now</strong> · 1 player in the last day",
        &format!("src=\"{}/", app.origin("demo")),
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let policy = home.header("content-security-policy").unwrap();
    let pictures = format!("img-src 'self' {};", app.origin("*"));
    assert!(policy.contains(&pictures), "{policy}");
    app.clock.advance(75_001);
    assert_eq!(ranking(&app).await["demo"], (0, 1));
    app.clock.advance(24 * 60 * 60 * 1_000);
    keep(&app).await;
    assert_eq!(ranking(&app).await["demo"], (0, 0));
}

/// Returns a console token of an account that owns the demo.
async fn owner(app: &TestApp) -> String {
    let ask = |cookie: Option<&str>| {
        let console = app.running.state.platform.origin.to_string();
        let request = app
            .request(Method::POST, "auth", "/token")
            .header("origin", console);
        match cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        }
    };
    let guest = send(ask(None)).await;
    let id = guest.claims().sub.replace('-', "");
    app.sql(&format!("UPDATE players SET linked = 1 WHERE id = X'{id}'"));
    app.sql(&format!(
        "UPDATE projects SET owner = X'{id}' WHERE slug = 'demo'"
    ));
    send(ask(guest.cookie())).await.token()
}

async fn players(app: &TestApp, token: &str, query: &str) -> Value {
    let path = format!("/api/projects/demo/players{query}");
    send(app.get("", &path).bearer_auth(token)).await.json()
}

#[tokio::test]
async fn players_over_time_are_there_after_a_restart() {
    let app = TestApp::start().await;
    let (one, two) = (
        Player::new(&app, "demo", 1).await,
        Player::new(&app, "demo", 2).await,
    );
    let state = &app.running.state;
    one.beat(&app).await;
    two.beat(&app).await;
    for _ in 0..6 {
        let now = app.clock.now();
        state
            .players
            .counting
            .look(&*state.games.presence, now)
            .await;
        app.clock.advance(5_000);
    }
    one.beat(&app).await;
    let now = app.clock.now();
    state
        .players
        .counting
        .look(&*state.games.presence, now)
        .await;
    // Nothing was stored yet: the collected counts are stored at the end.
    let app = app.restart(|_| {}).await;

    let token = owner(&app).await;
    let view = players(&app, &token, "").await;
    assert_eq!(
        view["now"], 0,
        "who plays now is nobody before the next beat"
    );
    assert_eq!(view["step_seconds"], 60);
    let points = view["points"].as_array().unwrap();
    assert!((1_440..=1_441).contains(&points.len()));
    let peaks = points.iter().filter_map(|point| point["peak"].as_u64());
    assert_eq!(peaks.max(), Some(2));
    let minutes = points.iter().filter_map(|point| point["mean"].as_f64());
    assert!(minutes.fold(0.0, f64::max) > 0.0);
    assert_eq!(view["days"][0]["players"], 2);
    assert_eq!(view["months"][0]["players"], 2);

    // The day continues with the players who were already counted.
    let three = Player::new(&app, "demo", 3).await;
    three.beat(&app).await;
    keep(&app).await;
    let view = players(&app, &token, "?env=prod").await;
    assert_eq!(view["days"][0]["players"], 3);
    assert_eq!(view["now"], 1);
    assert_eq!(players(&app, &token, "?env=dev").await["days"], json!([]));
}

#[tokio::test]
async fn only_those_of_a_project_see_its_players() {
    let app = TestApp::start().await;
    let token = owner(&app).await;
    let path = "/api/projects/demo/players";
    assert_eq!(send(app.get("", path)).await.problem(), "not-signed-in");
    let wrong = send(app.get("", &format!("{path}?from=now")).bearer_auth(&token)).await;
    assert_eq!(wrong.problem(), "invalid-request");
    app.sql("UPDATE projects SET owner = NULL WHERE slug = 'demo'");
    let other = send(app.get("", path).bearer_auth(&token)).await;
    assert_eq!(other.problem(), "not-allowed");
}

#[tokio::test]
async fn players_are_drawn_for_those_of_the_project() {
    let app = TestApp::start().await;
    let one = Player::new(&app, "demo", 1).await;
    one.beat(&app).await;
    app.clock.advance(30_000);
    one.beat(&app).await;
    keep(&app).await;
    let token = owner(&app).await;
    let path = "/api/projects/demo/players/chart";
    for query in ["", "?show=days&width=360&theme=dark", "?show=months"] {
        let drawn = send(app.get("", &format!("{path}{query}")).bearer_auth(&token)).await;
        assert_eq!(drawn.status, 200, "{}", drawn.text());
        assert_eq!(drawn.header("content-type"), Some("image/svg+xml"));
        assert_eq!(drawn.header("cache-control"), Some("no-store"));
        let policy = drawn.header("content-security-policy");
        assert_eq!(policy, Some("default-src 'none'"));
        assert!(drawn.text().starts_with("<svg "), "{}", drawn.text());
    }
    let wrong = send(app.get("", &format!("{path}?width=1")).bearer_auth(&token)).await;
    assert_eq!(wrong.problem(), "invalid-request");
}

/// Sends heartbeats with these tokens, each from a page of its own.
async fn beat_all(app: &TestApp, tokens: &[String]) {
    for (number, bearer) in tokens.iter().enumerate() {
        let player = Player {
            label: "demo".into(),
            bearer: bearer.clone(),
            page: format!("{number:0>21}A"),
        };
        player.beat(app).await;
    }
}

#[tokio::test]
async fn a_client_without_cookies_is_no_player_however_often_it_asks() {
    let app = TestApp::with(|config| config.guests_per_address = 3).await;
    // When each guest began, and its token.
    let mut made: Vec<(i64, String)> = Vec::new();
    let forged = |number: usize| format!("platform-session={number:A>43}");
    for half_minute in 0..20 {
        for number in 0..10 {
            let request = match number % 2 {
                0 => app.post_token(),
                // Cookies that were never issued make no difference.
                _ => app.post_token().header("cookie", forged(number)),
            };
            let answer = send(request).await;
            if answer.status != 200 {
                assert_eq!(
                    (answer.status.as_u16(), answer.problem()),
                    (429, "guest-limit-reached".to_owned())
                );
                continue;
            }
            assert_eq!(answer.json::<Value>()["is_new"], true);
            made.push((app.clock.now(), answer.token()));
        }
        let now = app.clock.now();
        let new = made.iter().filter(|(at, _)| now - at < 120_000);
        assert!(new.count() <= 3, "{half_minute}");
        // Tokens are valid for 15 minutes.
        let tokens: Vec<String> = made.iter().map(|(_, token)| token.clone()).collect();
        beat_all(&app, &tokens).await;
        keep(&app).await;
        assert_eq!(ranking(&app).await.get("demo"), Some(&(0, 0)));
        app.clock.advance(30_000);
    }
    assert!(made.len() >= 3);
    let token = owner(&app).await;
    let view = players(&app, &token, "").await;
    assert_eq!(view["now"], 0, "{view}");
    assert_eq!((&view["days"], &view["months"]), (&json!([]), &json!([])));
    let points = view["points"].as_array().unwrap();
    assert!(
        points
            .iter()
            .all(|point| point["mean"].as_f64() == Some(0.0))
    );
}

#[tokio::test]
async fn cookies_that_come_back_together_are_no_more_players_than_the_address_may_hold() {
    let app = TestApp::with(|config| config.guests_per_address = 3).await;
    // Guests of four times two minutes, with their cookies.
    let mut cookies = Vec::new();
    for _ in 0..4 {
        for _ in 0..5 {
            let answer = send(app.post_token()).await;
            cookies.extend(answer.cookie().map(str::to_owned));
        }
        app.clock.advance(121_000);
    }
    assert_eq!(cookies.len(), 12);
    let mut tokens = Vec::new();
    for cookie in &cookies {
        let answer = send(app.post_token().header("cookie", cookie)).await;
        if answer.status == 200 {
            tokens.push(answer.token());
        }
    }
    assert!(tokens.len() > 3, "a guest whose cookie is known plays on");
    beat_all(&app, &tokens).await;
    keep(&app).await;
    assert_eq!(ranking(&app).await["demo"].0, 3);
}
