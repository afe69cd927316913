//! Listing a game on the public page, and what visitors then see.

use platform_tests::browser::Stage;
use serde_json::json;

use super::{Scene, comes_to};

platform_tests::browser_tests![
    in Chromium, because "it is the page's own logic":
    a_game_is_listed_on_the_settings_tab_and_found_by_visitors,
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
    stage.press("two-players").await;
    stage.says("1 game with the tag two-players").await;
    stage.press("Two Rings").await;
    stage.press("Play Two Rings").await;
    let game = scene.platform.site.url("game", "/");
    stage.arrives_at(&game).await;
}
