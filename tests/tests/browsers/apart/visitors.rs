//! Visitors of games on a site of their own: with two tabs at once, without cookies, in private windows.

use std::sync::Arc;

use platform_tests::browser::{Manner, Stage};
use platform_tests::gateway::{Fault, Gate};
use platform_tests::poll;
use reqwest::Method;
use reqwest::header::COOKIE;
use serde_json::json;
use thirtyfour::{By, WindowHandle};

use super::{game_url, player, world};

platform_tests::browser_tests![
    two_tabs_that_a_new_visitor_opens_at_once_are_one_player,
    without_cookies_a_game_is_played_with_a_guest_and_sends_nobody_away_twice,
    a_private_window_has_one_player_in_every_game,
];

/// Opens both addresses in tabs of their own, at the same moment.
async fn open_both(stage: &Stage, [one, other]: [&str; 2]) {
    let session = &stage.browser().session;
    // Some browsers let only a click open tabs.
    stage
        .run(&format!(
            "document.body.innerHTML = '<button id=both>Open both</button>';
             document.getElementById('both').onclick = () => {{ open('{one}'); open('{other}'); }}"
        ))
        .await;
    let button = session.find(By::Id("both")).await.unwrap();
    button.click().await.unwrap();
}

/// Returns the tabs beside this one. Chromium's driver says nothing of a tab that waits for a response.
async fn other_tabs(stage: &Stage) -> Vec<WindowHandle> {
    let session = &stage.browser().session;
    let first = session.window().await.unwrap();
    poll::until("both tabs are open", async || {
        let mut windows = session.windows().await.ok()?;
        windows.retain(|window| *window != first);
        (windows.len() == 2).then_some(windows)
    })
    .await
}

async fn two_tabs_that_a_new_visitor_opens_at_once_are_one_player(stage: Stage) {
    let world = world().await;
    let game = game_url(&world, "demo", "/");
    let gate = Gate::closed();
    let hold = Fault::Hold(Arc::clone(&gate));
    world.gateway.spoil(Method::GET, "/continue", hold, 2);
    let addresses = ["?tab=1", "?tab=2"].map(|query| format!("{game}{query}"));
    open_both(&stage, [&addresses[0], &addresses[1]]).await;
    // Both are at the auth service, and neither has a cookie there.
    gate.reached_by(2).await;
    for seen in world.gateway.seen(&Method::GET, "/continue") {
        let cookies = seen.headers.get(COOKIE);
        let cookies = cookies.map_or("", |line| line.to_str().unwrap());
        assert!(!cookies.contains("platform-session"), "{cookies}");
    }
    gate.open();
    let session = &stage.browser().session;
    let (mut subs, mut seen) = (Vec::new(), Vec::new());
    for tab in other_tabs(&stage).await {
        session.switch_to_window(tab).await.unwrap();
        seen.push(stage.arrives_below(&game).await);
        subs.push(player(&stage).await);
    }
    seen.sort();
    assert_eq!(seen, addresses);
    assert_eq!(subs[0], subs[1], "both tabs have one player");
    assert_eq!(world.gateway.seen(&Method::GET, "/continue").len(), 4);
    stage.open(&game_url(&world, "dev-demo", "/")).await;
    assert_eq!(player(&stage).await, subs[0], "so has another game");
    assert_eq!(world.gateway.seen(&Method::GET, "/continue").len(), 5);
}

async fn without_cookies_a_game_is_played_with_a_guest_and_sends_nobody_away_twice(stage: Stage) {
    let world = world().await;
    let blind = stage.beside_in(Manner::WithoutCookies).await;
    let asked = game_url(&world, "demo", "/?level=2#end");
    let marked = game_url(&world, "demo", "/?level=2&platform-continued=1#end");
    blind.open(&asked).await;
    assert_eq!(blind.run("return location.href").await, json!(marked));
    let sub = player(&blind).await;
    let again = "const { id, isGuest } = await platform.player(); return [id, isGuest]";
    assert_eq!(blind.run(again).await, json!([sub, true]));
    // The game's own calls are the guest's.
    let called = blind
        .run("return (await platform.fetch('/api/me')).status")
        .await;
    assert_eq!(called, 200);
    blind.reload().await;
    assert_eq!(blind.run("return location.href").await, json!(marked));
    assert!(player(&blind).await.is_string());
    let over = world.gateway.seen(&Method::GET, "/continue");
    assert_eq!(over.len(), 1, "it is sent over the auth service once");
    blind.close().await;
}

async fn a_private_window_has_one_player_in_every_game(stage: Stage) {
    let world = world().await;
    let private = stage.beside_in(Manner::Private).await;
    let game = game_url(&world, "demo", "/?level=2");
    private.open(&game).await;
    assert_eq!(private.run("return location.href").await, json!(game));
    let sub = player(&private).await;
    private.reload().await;
    assert_eq!(player(&private).await, sub, "after a reload");
    private.open(&game_url(&world, "dev-demo", "/")).await;
    assert_eq!(player(&private).await, sub, "in the second game");
    private.open(&game).await;
    assert_eq!(player(&private).await, sub);
    let over = world.gateway.seen(&Method::GET, "/continue");
    assert_eq!(over.len(), 2, "once for each game");
    private.close().await;
    // The usual windows know nothing of it.
    stage.open(&game).await;
    assert_ne!(player(&stage).await, sub);
}
