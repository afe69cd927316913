//! Taking a project down on its page, and showing it again.

use platform_server::clock::Clock as _;
use platform_server::domain::audit::Actor;
use platform_server::domain::takedown::Change;
use platform_tests::browser::Stage;
use serde_json::json;

use super::{Scene, comes_to};

platform_tests::browser_tests![a_project_is_taken_down_and_put_up_on_its_page];

const REASON: &str = "A bug eats progress.";
/// Returns whether the notice at the top and the card are shown, and the available buttons.
const SHOWN: &str = "const text = (id) => document.getElementById(id).textContent;
    const there = ['disable', 'enable', 'delete', 'restore'].filter(
        (change) => !document.getElementById(`takedown-${change}`).hidden);
    return [text('standing') === text('takedown-state') && text('standing').includes(':'), there]";

async fn a_project_is_taken_down_and_put_up_on_its_page(stage: Stage) {
    let scene = Scene::start().await;
    scene.deploy("prod").await;
    scene.open(&stage, "settings").await;
    stage
        .says("Disabled, the game is shown to nobody until")
        .await;
    comes_to(&stage, SHOWN, json!([false, ["disable", "delete"]])).await;
    stage.press("Disable…").await;
    stage.says("Disable this project?").await;
    stage
        .fill("Why (optional, shown on this page)", REASON)
        .await;
    stage.press("Disable").await;
    stage.says("The project is disabled.").await;
    stage.says(REASON).await;
    // Both places show the time.
    comes_to(&stage, SHOWN, json!([true, ["enable", "delete"]])).await;
    // The Build page says why it shows no game.
    stage
        .open(&format!("{}/build/game", scene.platform.site.origin))
        .await;
    stage.says(REASON).await;
    stage.open(&scene.tab("settings")).await;
    stage.press("Enable…").await;
    stage.press("Enable").await;
    stage.says("The game is shown.").await;
    stage.press("Delete…").await;
    stage.press("Delete").await;
    stage.says("It will be removed permanently at").await;
    comes_to(&stage, SHOWN, json!([true, ["restore"]])).await;
    stage.press("Restore…").await;
    stage.press("Restore").await;
    stage.says("The game is shown.").await;

    // An owner is not offered what they could not undo.
    let store = scene.platform.store();
    let reason = Some(REASON.to_owned());
    let disable = Change::Disable { reason };
    let now = scene.platform.clock.now();
    let disabled = store.change_standing("game", disable, Actor::Operator.into(), now);
    disabled.await.unwrap();
    stage.open(&scene.tab("settings")).await;
    stage.says("only they can enable it again. Ask them.").await;
    comes_to(&stage, SHOWN, json!([true, ["delete"]])).await;
}
