//! The command palette: opened by keys and by a button, searched by typing, and used without a mouse.

use platform_tests::browser::Stage;
use platform_tests::poll;
use serde_json::json;
use thirtyfour::Key;
use thirtyfour::prelude::TypingData;

use super::{Scene, comes_to, is_open, texts};
use crate::build::examine;

platform_tests::browser_tests![
    the_palette_leads_everywhere_by_keyboard;
    in Chromium, because "it is the page's own logic":
    the_palette_copies_an_address_and_has_no_barrier,
];

const IS_OPEN: &str = "return document.getElementById('palette').open";

async fn keys(stage: &Stage, keys: impl Into<TypingData>) {
    let chain = stage.browser().session.action_chain();
    chain.send_keys(keys).perform().await.unwrap();
}

async fn press_shortcut(stage: &Stage) {
    let chain = stage.browser().session.action_chain();
    let pressed = chain.key_down(Key::Control).send_keys("k");
    pressed.key_up(Key::Control).perform().await.unwrap();
}

/// Opens the palette with its keys, and waits for the viewer's projects.
async fn open(stage: &Stage) {
    press_shortcut(stage).await;
    comes_to(stage, IS_OPEN, json!(true)).await;
    stage.says("harbour").await;
}

async fn the_palette_leads_everywhere_by_keyboard(stage: Stage) {
    let scene = Scene::start().await;
    scene.owner.create("harbour").await;
    scene.open(&stage, "").await;
    open(&stage).await;
    let field = "return document.activeElement.id";
    assert_eq!(stage.look(field, vec![]).await, "palette-text");
    // Without words, this project comes first.
    let first = texts(&stage, "#palette-list li:first-child .palette-name").await;
    assert_eq!(first, json!(["game"]));
    keys(&stage, "logs har").await;
    let found = "return [...document.querySelectorAll('#palette-list .palette-name')].map(name => name.textContent)";
    comes_to(&stage, found, json!(["harbour: Logs"])).await;
    stage.says("Enter takes harbour: Logs.").await;
    keys(&stage, Key::Enter).await;
    let harbour = format!("{}/projects/harbour", scene.platform.site.origin);
    stage.arrives_at(&format!("{harbour}/logs")).await;
    is_open(&stage).await;

    open(&stage).await;
    keys(&stage, "game settings").await;
    comes_to(&stage, found, json!(["game: Settings"])).await;
    // The arrow keys move through the list and back to the field, where typing goes on.
    keys(&stage, Key::Down).await;
    let (name, is_seen) = stage.focused().await.unwrap();
    assert!(name.starts_with("game: Settings") && is_seen, "{name}");
    keys(&stage, Key::Down).await;
    assert_eq!(stage.look(field, vec![]).await, "palette-text");
    keys(&stage, "x").await;
    stage.says("Nothing is called so.").await;
    keys(&stage, Key::Escape).await;
    comes_to(&stage, IS_OPEN, json!(false)).await;

    // Both ways to open it give the focus back.
    stage.press("Go to…").await;
    comes_to(&stage, IS_OPEN, json!(true)).await;
    press_shortcut(&stage).await;
    comes_to(&stage, IS_OPEN, json!(false)).await;
    poll::until("the button has the focus again", async || {
        let (name, _) = stage.focused().await?;
        (name == "Go to…").then_some(())
    })
    .await;
}

async fn the_palette_copies_an_address_and_has_no_barrier(stage: Stage) {
    let scene = Scene::start().await;
    scene.owner.create("harbour").await;
    scene.open(&stage, "settings").await;
    open(&stage).await;
    examine(&stage, "the command palette").await;
    keys(&stage, "copy harbour prod").await;
    stage.says("1 choice. Enter takes").await;
    keys(&stage, Key::Enter).await;
    comes_to(&stage, IS_OPEN, json!(false)).await;
    let told = "return document.getElementById('toast').textContent.includes('//harbour.')";
    comes_to(&stage, told, json!(true)).await;
    examine(&stage, "what the palette says that it did").await;
    // A question that is open is answered first.
    stage.press("Delete…").await;
    press_shortcut(&stage).await;
    assert_eq!(stage.look(IS_OPEN, vec![]).await, false);
    stage.press("Cancel").await;
    open(&stage).await;
    stage.press("Close").await;
    comes_to(&stage, IS_OPEN, json!(false)).await;
}
