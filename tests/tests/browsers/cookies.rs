//! How a game can affect its player with cookies and by signing them out, and how the player stays
//! the same one.

use platform_protocol::claims::GameTokenClaims;
use platform_tests::browser::{Engine, Stage};
use platform_tests::world::{PageBuilder, World};
use reqwest::Method;
use reqwest::header::COOKIE;
use serde_json::Value;

use crate::identity::player;

platform_tests::browser_tests![
    cookies_that_a_game_sets_for_the_whole_platform_take_no_player_away,
    a_session_cookie_that_a_game_tosses_in_is_removed,
    a_guest_that_a_game_signed_out_is_gone_on_as_by_a_press,
];

/// Sets `cookies` cookies of `bytes` bytes each for the whole platform.
fn flood(cookies: usize, bytes: usize) -> String {
    format!(
        "for (let number = 0; number < {cookies}; number += 1) {{
             const name = 'c' + number.toString(36);
             document.cookie = `${{name}}=${{'x'.repeat(Math.max(1, {bytes} - name.length))}}; Domain=platform.localhost; Path=/`;
         }}
         return document.cookie.length"
    )
}

/// Opens the demo, whose player must still be `sub`, and the platform's pages.
async fn is_still(stage: &Stage, world: &World, before: &GameTokenClaims, case: &str) {
    let asked = world.gateway.token_requests();
    stage.open(&world.url("demo", "/")).await;
    let now = player(stage).await;
    assert_eq!(now.sub, before.sub, "{case}");
    assert!(world.gateway.token_requests() > asked, "{case}");
    for (label, path) in [("auth", "/login"), ("auth", "/profile"), ("demo", "/")] {
        stage.open(&world.url(label, path)).await;
        // Only the page itself, not its later requests.
        let host = format!("{label}.");
        let mut seen = world.gateway.seen(&Method::GET, path);
        seen.retain(|seen| seen.path == path && seen.host.starts_with(&host));
        let status = seen.last().unwrap().status.unwrap();
        // 304 if the browser has cached the page.
        let good = matches!(status.as_u16(), 200 | 304);
        assert!(good, "{case}: {label}{path}: {status}");
    }
    assert_eq!(player(stage).await.sub, before.sub, "{case}");
}

async fn cookies_that_a_game_sets_for_the_whole_platform_take_no_player_away(stage: Stage) {
    let world = World::start().await;
    let hostile = world.publish(PageBuilder::new()).await;
    stage.open(&world.url("demo", "/")).await;
    let before = player(&stage).await;
    for (cookies, bytes) in [(400, 1), (70, 4_000), (110, 4_000)] {
        // Only Chromium supports priorities: other engines evict the session.
        if cookies > 180 && stage.engine() != Engine::Chromium {
            continue;
        }
        let case = format!("{cookies} cookies of {bytes} bytes");
        stage.open(&hostile).await;
        let set = stage.run(&flood(cookies, bytes)).await;
        println!("{case} in {}: {set} bytes", stage.engine());
        is_still(&stage, &world, &before, &case).await;
    }
    // After a few responses none of them is left: each expires about twenty, but one of four
    // responses expires those of other domains.
    let mut left = Value::Null;
    for _ in 0..6 {
        for _ in 0..4 {
            stage.open(&world.url("auth", "/login")).await;
        }
        stage.open(&hostile).await;
        left = stage.run("return document.cookie.length").await;
        if left == 0 {
            break;
        }
    }
    assert_eq!(left, 0, "the auth service lets them expire");
}

async fn a_session_cookie_that_a_game_tosses_in_is_removed(stage: Stage) {
    let world = World::start().await;
    let hostile = world.publish(PageBuilder::new()).await;
    stage.open(&world.url("demo", "/")).await;
    let before = player(&stage).await;
    for path in ["/", "/token"] {
        stage.open(&hostile).await;
        let value = "A".repeat(43);
        stage
            .run(&format!(
                "document.cookie = 'platform-session={value}; Domain=platform.localhost; Path={path}'"
            ))
            .await;
        is_still(&stage, &world, &before, path).await;
        let asked = world.gateway.seen(&Method::POST, "/token");
        let cookies = |at: usize| {
            let line = asked[at].headers.get(COOKIE).unwrap().to_str().unwrap();
            line.matches("platform-session=").count()
        };
        // The page is opened twice above.
        assert_eq!(cookies(asked.len() - 2), 2, "{path}: it was sent once");
        assert_eq!(cookies(asked.len() - 1), 1, "{path}: and then no more");
    }
}

async fn a_guest_that_a_game_signed_out_is_gone_on_as_by_a_press(stage: Stage) {
    let world = World::start().await;
    let demo = world.url("demo", "/");
    stage.open(&demo).await;
    let before = player(&stage).await;
    // Another game does it without any notice.
    let hostile = PageBuilder::new().file("after.html", &PageBuilder::new().html());
    stage.open(&world.publish(hostile).await).await;
    stage.run("void platform.signOut('/after.html')").await;
    stage.arrives_at(&world.url("arena", "/after.html")).await;
    stage.open(&demo).await;
    let meanwhile = player(&stage).await;
    assert_ne!(meanwhile.sub, before.sub, "the next visit is a new guest");

    stage.press("Sign in").await;
    stage.says("You played here before").await;
    stage.press(&format!("Go on as {}", before.username)).await;
    world.pass_reading();
    stage.press(&format!("Go on as {}", before.username)).await;
    stage.arrives_at(&demo).await;
    let back = player(&stage).await;
    assert_eq!((back.sub, back.username), (before.sub, before.username));
    assert!(back.is_anon);

    // And the other guest is not lost either.
    let page = world.url("auth", "/restore-guest");
    stage.open(&page).await;
    world.pass_reading();
    stage
        .press(&format!("Go on as {}", meanwhile.username))
        .await;
    // Who goes elsewhere before the response is there does not get its cookie.
    stage.arrives_at(&world.url("", "/")).await;
    stage.open(&demo).await;
    assert_eq!(player(&stage).await.sub, meanwhile.sub);
}
