//! Listing a game on the public page, and what visitors then see.

use platform_tests::browser::Stage;
use serde_json::json;

use super::page::MOVED;
use super::{Scene, comes_to};
use crate::build::examine;

platform_tests::browser_tests![
    in Chromium, because "it is the page's own logic":
    a_game_is_listed_on_the_settings_tab_and_found_by_visitors,
    the_public_page_has_no_barrier_and_keeps_a_players_favourites,
];

async fn a_game_is_listed_on_the_settings_tab_and_found_by_visitors(stage: Stage) {
    let scene = Scene::start().await;
    scene.deploy("prod").await;
    scene.open(&stage, "settings").await;
    stage.says("The game is not listed.").await;
    stage.click("#listing-listed").await;
    stage.fill("Title", "Two Rings").await;
    stage
        .fill("Description", "Hop between two rings\nand gather sparks.")
        .await;
    stage.fill("Tags, with commas between", "Arcade, <b>").await;
    stage.tolerate_log("400");
    stage.press("Save the listing").await;
    stage.says("is not a tag").await;
    stage
        .fill("Tags, with commas between", "Arcade, Two players")
        .await;
    stage.press("Save the listing").await;
    stage.says("The listing is saved.").await;
    stage.says("The public page lists the game.").await;
    let tags = "return document.getElementById('listing-tags').value";
    comes_to(&stage, tags, json!("arcade, two-players")).await;

    stage.press("Look at it").await;
    stage.says("Hop between two rings and gather sparks.").await;
    let ways_in = "return document.getElementById('sign-in').getClientRects().length";
    comes_to(&stage, ways_in, json!(0)).await;
    stage.press("two-players").await;
    stage.says("1 game with the tag two-players").await;
    stage.press("Two Rings").await;
    stage.press("Play Two Rings").await;
    let game = scene.platform.site.url("game", "/");
    stage.arrives_at(&game).await;
}

async fn the_public_page_has_no_barrier_and_keeps_a_players_favourites(stage: Stage) {
    let scene = Scene::start().await;
    let page = |path: &str| format!("{}{path}", scene.platform.site.origin);
    for (path, what) in [
        ("/?q=firefly&tag=arcade", "games that were found"),
        ("/?q=nothing", "no game that was found"),
        ("/", "the public page"),
        ("/games/demo", "the page of a game"),
    ] {
        stage.open(&page(path)).await;
        stage.says("Sign in").await;
        examine(&stage, what).await;
    }
    // Until now, the visitor is nobody.
    let who = "return document.getElementById('account').hidden";
    assert_eq!(stage.look(who, vec![]).await, json!(true));
    stage.press("\u{2606} Favourite").await;
    stage.says("\u{2605} Favourite").await;
    comes_to(&stage, who, json!(false)).await;
    stage.open(&page("/")).await;
    stage.says("Your games").await;
    let own =
        "return [...document.querySelectorAll('#own-games .name')].map((name) => name.textContent)";
    comes_to(&stage, own, json!(["Firefly"])).await;
    examine(&stage, "the public page with favourites").await;
    // The next time their place is free from the start.
    stage.open(&page("/")).await;
    stage.says("Firefly").await;
    comes_to(&stage, own, json!(["Firefly"])).await;
    let session = &stage.browser().session;
    let moved = session.execute_async(MOVED, vec![]).await.unwrap();
    let moved = moved.json().as_f64().unwrap();
    assert!(moved < 0.02, "{moved}");
    stage.open(&page("/games/demo")).await;
    stage.press("\u{2605} Favourite").await;
    stage.says("\u{2606} Favourite").await;
}
