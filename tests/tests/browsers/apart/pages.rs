//! The pages of the auth service that visitors of games apart come over.

use platform_tests::browser::Stage;
use serde_json::json;

use super::{game_url, player, world};
use crate::build::examine;

platform_tests::browser_tests![
    in Chromium, because "a form without scripts is sent alike everywhere":
    the_page_that_signs_out_of_every_game_asks_first,
    the_page_before_a_frame_gets_its_player_says_who_that_is,
];

async fn the_page_that_signs_out_of_every_game_asks_first(stage: Stage) {
    let world = world().await;
    let game = game_url(&world, "demo", "/");
    stage.open(&game).await;
    let sub = player(&stage).await;
    let encoded = url_encoded(&game);
    let page = world.url("auth", &format!("/sign-out?redirect={encoded}"));
    stage.open(&page).await;
    stage.says("Sign out of every game?").await;
    examine(&stage, "signing out of every game").await;
    stage.press("Sign out").await;
    stage.says("Nothing was changed").await;
    examine(&stage, "signing out too early").await;
    world.pass_reading();
    stage.press("Sign out").await;
    stage.arrives_at(&game).await;
    assert_ne!(player(&stage).await, sub);
}

async fn the_page_before_a_frame_gets_its_player_says_who_that_is(stage: Stage) {
    let world = world().await;
    let game = game_url(&world, "demo", "");
    let secret = "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA";
    let to = url_encoded(&game);
    let page = world.url("auth", &format!("/frame?to={to}&state={secret}"));
    stage.open(&page).await;
    stage.says("the same guest as in this browser").await;
    examine(&stage, "a frame's question to who has not played").await;
    stage.open(&format!("{game}/")).await;
    let name = stage.run("return (await platform.player()).username").await;
    stage.open(&page).await;
    stage.says("Go on in Firefly").await;
    stage.says(name.as_str().unwrap()).await;
    examine(&stage, "a frame's question").await;
    stage.press("Go on in the game").await;
    stage.says("Nothing was changed").await;
    world.pass_reading();
    stage.press("Go on in the game").await;
    // Nobody has opened this tab, so it says how to go on.
    stage.says("Go back to Firefly").await;
    let code = stage
        .look("return document.body.innerText.includes('code')", vec![])
        .await;
    assert_eq!(code, json!(false));
}

fn url_encoded(text: &str) -> String {
    text.replace(':', "%3A").replace('/', "%2F")
}
