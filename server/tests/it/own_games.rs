//! What a player keeps of games: favourites, and what they played lately.

use platform_protocol::names::Environment;
use platform_server::domain::counting::{HOUR, NewPlayTime};
use platform_server::players::counting::persistence;
use reqwest::Method;
use serde_json::{Value, json};

use crate::caller::{Caller, archive};
use crate::support::{Answer, TestApp, send};

const GAMES: &str = "/api/me/games";

/// Returns slug, whether it is a favourite, and whether it was played lately, of each game.
fn brief(answer: &Answer) -> Vec<(String, bool, bool)> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let own: Value = answer.json();
    let games = own["games"].as_array().unwrap().iter();
    let parts = games.map(|game| {
        let slug = game["slug"].as_str().unwrap().to_owned();
        let favourite = game["favourite"].as_bool().unwrap();
        (slug, favourite, !game["played_at"].is_null())
    });
    parts.collect()
}

fn favourite(caller: &Caller<'_>, method: Method, slug: &str) -> reqwest::RequestBuilder {
    caller.ask(method, &format!("/api/me/favourites/{slug}"))
}

#[tokio::test]
async fn a_guest_keeps_favourites_and_sees_what_was_played_lately() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    owner
        .deploy(
            "prod",
            archive(&[("index.html", b"<head><title>Rings</title>")]),
        )
        .await;
    let guest = Caller::guest(&app).await;
    assert_eq!(brief(&guest.get(GAMES).await), []);
    let added = send(favourite(&guest, Method::PUT, "demo")).await;
    assert_eq!(brief(&added), [("demo".to_owned(), true, false)]);
    let store = &app.running.state.platform.store;
    let now = app.running.state.platform.clock.now();
    let hour = now - now % HOUR;
    let played = NewPlayTime {
        slug: "game".into(),
        environment: Environment::Prod,
        player: guest.sub,
        hour,
        millis: 5,
    };
    store.add_play_times(vec![played]).await.unwrap();
    let both = [
        ("game".to_owned(), false, true),
        ("demo".to_owned(), true, false),
    ];
    assert_eq!(brief(&guest.get(GAMES).await), both);
    let own: Value = guest.get(GAMES).await.json();
    assert_eq!(own["games"][0]["title"], "Rings");
    assert_eq!(own["games"][0]["listed"], false);
    // Others see nothing of it.
    assert_eq!(brief(&owner.get(GAMES).await), []);
    for (method, slug) in [(Method::PUT, "none"), (Method::DELETE, "none")] {
        let answer = send(favourite(&guest, method, slug)).await;
        assert_eq!(answer.problem(), "not-found");
    }
    // A game that is taken down is left out, and comes back with the game.
    owner.post("/api/projects/game/disable", json!({})).await;
    assert_eq!(brief(&guest.get(GAMES).await), both[1..]);
    owner.post("/api/projects/game/enable", json!({})).await;
    let removed = send(favourite(&guest, Method::DELETE, "demo")).await;
    assert_eq!(brief(&removed), both[..1]);
    // It is forgotten after 90 days.
    persistence::sweep(&**store, now + 91 * 24 * HOUR)
        .await
        .unwrap();
    assert_eq!(brief(&guest.get(GAMES).await), []);
}

#[tokio::test]
async fn a_page_learns_who_its_visitor_is_without_making_a_guest() {
    let app = TestApp::start().await;
    let ask = |cookie: Option<&str>| {
        let console = app.running.state.platform.origin.to_string();
        let request = app.request(Method::POST, "auth", "/token?guest=no");
        let request = request.header("origin", console);
        match cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        }
    };
    let before = app.count_players();
    for cookie in [None, Some("platform-session=nonsense")] {
        let nobody = send(ask(cookie)).await;
        assert_eq!((nobody.status.as_u16(), nobody.cookie()), (204, None));
    }
    assert_eq!(app.count_players(), before);
    let guest = Caller::guest(&app).await;
    let known = send(ask(Some(&guest.cookie))).await;
    assert_eq!(known.claims().sub, guest.sub.to_string());
}
